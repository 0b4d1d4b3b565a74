//! The attempts of one call, and the command that reports its result.
//!
//! An attempt counts once its result is stored: with the command, or with the job for the next attempt. If a host dies before
//! that, another host makes the same attempt again, under the same idempotency key. If the command cannot run now, the job keeps
//! the answer of the service, so the service is not asked again.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Failed, Replied, ServiceRequest};
use crate::job_handlers::{self, REST, payload};
use crate::pipeline::load;
use crate::request::{Identity, Trace};
use crate::{Engine, Error};
use wrkflw_core::answer::Violation;
use wrkflw_core::command::Command;
use wrkflw_core::ids::StateId;
use wrkflw_core::instance::{OpenCall, StateInstance, Status};
use wrkflw_core::json::Json;
use wrkflw_core::rejection::Rejection;
use wrkflw_runtime::clock::{Clock, later, new_id};
use wrkflw_runtime::telemetry::traceparent;
use wrkflw_runtime::worker::Backoff;
use wrkflw_store::Store;
use wrkflw_store::jobs::{Job, STOPPED_RETRY, calls};
use wrkflw_store::load::LoadOptions;

/// The pauses after a command that could not run. They do not depend on the service.
const RETRY: Backoff = Backoff {
    first: Duration::from_secs(1),
    last: Duration::from_mins(10),
};

/// The progress of a call, as its job stores it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Progress {
    /// The attempts that have failed.
    #[serde(default)]
    pub(super) failed: u32,
    /// How often the command of the report could not run.
    #[serde(skip_serializing_if = "is_zero", default)]
    refused: u32,
    /// The result to report. None while the service is still to be asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    report: Option<Report>,
    /// The trace of the attempt that `report` is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    traceparent: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Report {
    Answered {
        attempts: u32,
        output: Json,
        model: Option<String>,
        model_version: Option<String>,
    },
    Failed {
        attempts: u32,
        error: String,
    },
}

/// The next step of a call.
enum CallStep {
    /// The call is over.
    Over,
    /// There is something to report.
    Report(Report),
    /// The call goes on after the pause.
    Later(Duration, Option<String>),
}

/// The call as the instance has it now.
enum CurrentCall {
    Open(Box<OpenCall>),
    /// The instance is suspended, or its version is stopped. The worker checks the call again after the pause.
    Rests(Duration),
    Gone,
}

/// Makes the next attempt of a call, and reports its result if it was the last one. `cancel` ends an attempt, which is then
/// made again.
pub(super) async fn run_call(
    engine: &Engine,
    job: &Job,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let (store, clock) = (&engine.0.store, &engine.0.clock);
    let mut progress: Progress = payload(job)?;
    let trace = traceparent(progress.traceparent.as_deref());
    let call = match (open_call(engine, job).await?, progress.report.clone()) {
        (CurrentCall::Open(call), _) => call,
        (CurrentCall::Rests(pause), _) => {
            return keep_call(store, clock, job, &progress, pause, None).await;
        }
        (CurrentCall::Gone, None) => return Ok(calls::finish(store, job).await?),
        // The instance records that the reply came too late.
        (CurrentCall::Gone, Some(report)) => {
            let pause = match command(engine, job, report, &trace).await {
                Ok(()) => return Ok(calls::finish(store, job).await?),
                Err(error) => rest(&error).ok_or(error)?,
            };
            return keep_call(store, clock, job, &progress, pause, None).await;
        }
    };
    // If this report is refused, the next attempt has a trace of its own.
    progress.traceparent = None;
    let mut step = match progress.report.take() {
        Some(report) => CallStep::Report(report),
        None => call_service(engine, job, &call, &mut progress, (cancel, &trace)).await?,
    };
    // A reply that does not fit is a failed attempt. If that was the last one, the failure is reported.
    while let CallStep::Report(report) = step {
        step = give_report(engine, job, &call, &mut progress, (report, &trace)).await;
    }
    match step {
        CallStep::Over | CallStep::Report(_) => Ok(calls::finish(store, job).await?),
        CallStep::Later(pause, error) => {
            keep_call(store, clock, job, &progress, pause, error.as_deref()).await
        }
    }
}

async fn open_call(engine: &Engine, job: &Job) -> Result<CurrentCall, Error> {
    let host = Identity::host(job.tenant, "").caller();
    let options = LoadOptions::at(engine.0.clock.now());
    let loaded = load::loaded(engine, &host, job.instance, options).await?;
    let Some(instance) = loaded.found.map(|stored| stored.instance) else {
        return Ok(CurrentCall::Gone);
    };
    let mut active = instance.active.iter();
    let found = active.find(|one| one.id.0 == job.id);
    Ok(match found.and_then(StateInstance::open_call) {
        None => CurrentCall::Gone,
        Some(_) if matches!(instance.status, Status::Suspended { .. }) => CurrentCall::Rests(REST),
        Some(_) if loaded.stopped.contains(&instance.definition) => {
            CurrentCall::Rests(STOPPED_RETRY)
        }
        Some(call) => CurrentCall::Open(Box::new(call.clone())),
    })
}

/// Asks the service.
async fn call_service(
    engine: &Engine,
    job: &Job,
    call: &OpenCall,
    progress: &mut Progress,
    (cancel, trace): (&CancellationToken, &str),
) -> Result<CallStep, Error> {
    let tenant = engine.tenant_name(job.tenant).await?;
    let attempts = progress.failed.saturating_add(1);
    let request = ServiceRequest {
        tenant: &tenant,
        instance: job.instance.to_string(),
        state: job.id.to_string(),
        attempt: attempts,
        call,
        traceparent: trace,
    };
    let (now, begun) = (engine.0.clock.now(), Instant::now());
    let answer = tokio::select! {
        answer = engine.0.services.attempt(&request, now) => answer,
        () = cancel.cancelled() => return Ok(CallStep::Later(Duration::ZERO, None)),
    };
    metrics::histogram!("wrkflw_service_call_seconds", "service" => call.service.clone())
        .record(begun.elapsed().as_secs_f64());
    wrkflw_fault::point("call.answered");
    Ok(match answer {
        Ok(Replied {
            output,
            model,
            model_version,
        }) => CallStep::Report(Report::Answered {
            attempts,
            output,
            model,
            model_version,
        }),
        Err(failed) => failure(call, progress, failed),
    })
}

/// Reports the result by a command. The commit deletes the job.
async fn give_report(
    engine: &Engine,
    job: &Job,
    call: &OpenCall,
    progress: &mut Progress,
    (report, trace): (Report, &str),
) -> CallStep {
    let is_reply = matches!(report, Report::Answered { .. });
    let error = match command(engine, job, report.clone(), trace).await {
        Ok(()) => {
            tally(call, if is_reply { "answered" } else { "given_up" });
            return CallStep::Over;
        }
        Err(Error::Rejected(Rejection::Invalid(violations))) if is_reply => {
            return failure(call, progress, misfit(&violations));
        }
        Err(error) => error,
    };
    progress.report = Some(report);
    progress.traceparent = Some(trace.to_owned());
    if let Some(pause) = rest(&error) {
        return CallStep::Later(pause, None);
    }
    let error = error.to_string();
    tracing::warn!(instance.id = %job.instance, service = call.service, "the result of a service call could not be recorded; it is tried again: {error}");
    let pause = RETRY.pause(progress.refused);
    progress.refused = progress.refused.saturating_add(1);
    CallStep::Later(pause, Some(error))
}

async fn command(engine: &Engine, job: &Job, report: Report, trace: &str) -> Result<(), Error> {
    let (instance, state) = (job.instance, StateId(job.id));
    let command = match report {
        Report::Answered {
            attempts,
            output,
            model,
            model_version,
        } => Command::ServiceAnswered {
            instance,
            state,
            attempts,
            output,
            model,
            model_version,
        },
        Report::Failed { attempts, error } => Command::ServiceFailed {
            instance,
            state,
            attempts,
            error,
        },
    };
    let result = if matches!(command, Command::ServiceAnswered { .. }) {
        "answered"
    } else {
        "failed"
    };
    let trace = Trace::new(new_id().to_string(), trace.to_owned());
    if !job_handlers::act_in(engine, trace, job.tenant, command, Some(job.id)).await? {
        tracing::info!(instance.id = %instance, state.id = %state, result, "the result of a service call came after its instance had ended");
    }
    Ok(())
}

/// Keeps the call for later.
async fn keep_call(
    store: &Store,
    clock: &Clock,
    job: &Job,
    progress: &Progress,
    pause: Duration,
    error: Option<&str>,
) -> Result<(), Error> {
    let next = later(clock.now(), pause);
    let kept = Json::of(progress);
    let attempts = progress.failed.saturating_add(progress.refused);
    calls::keep(store, job, &kept, attempts, error, next).await?;
    wrkflw_fault::point("call.kept");
    Ok(())
}

/// The pause before the next check of a call whose instance is suspended or whose version is stopped.
fn rest(error: &Error) -> Option<Duration> {
    match error {
        Error::Rejected(Rejection::Suspended { .. }) => Some(REST),
        Error::Stopped { .. } => Some(STOPPED_RETRY),
        _ => None,
    }
}

/// Counts a failed attempt: the next one comes after a pause, unless it was the last or would fail in the same way.
fn failure(call: &OpenCall, progress: &mut Progress, failed: Failed) -> CallStep {
    tally(call, "failed");
    let pause = usize::try_from(progress.failed)
        .ok()
        .and_then(|taken| call.retries.get(taken))
        .filter(|_| !failed.is_final);
    progress.failed = progress.failed.saturating_add(1);
    let Some(pause) = pause else {
        return CallStep::Report(Report::Failed {
            attempts: progress.failed,
            error: failed.error,
        });
    };
    let pause = Duration::from_secs((*pause).into());
    CallStep::Later(
        pause.max(failed.pause.unwrap_or_default()),
        Some(failed.error),
    )
}

/// The failure of an attempt whose reply the transition does not take.
fn misfit(violations: &[Violation]) -> Failed {
    let Some(first) = violations.first() else {
        return Failed::new("the reply is refused");
    };
    Failed::new(format!(
        "the reply is refused: {} {}",
        first.field, first.message
    ))
}

/// Counts a result: `failed` for each failed attempt, `answered`, or `given_up` after the last attempt.
fn tally(call: &OpenCall, result: &'static str) {
    metrics::counter!("wrkflw_service_calls_total", "service" => call.service.clone(), "result" => result)
        .increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(retries: &[u32]) -> OpenCall {
        OpenCall {
            service: "scorer".into(),
            request: Json::empty(),
            timeout: 5,
            retries: retries.to_vec(),
            on_reply: "SCORED".into(),
            on_failure: "UNSCORED".into(),
            result: None,
        }
    }

    /// The pause before the next attempt, or the attempts that are reported.
    fn after(step: &CallStep) -> Result<u64, u32> {
        match step {
            CallStep::Later(pause, _) => Ok(pause.as_secs()),
            CallStep::Report(Report::Failed { attempts, .. }) => Err(*attempts),
            CallStep::Over | CallStep::Report(_) => panic!("a failure"),
        }
    }

    #[test]
    fn attempts_follow_after_their_pauses_and_then_the_failure_is_reported() {
        let (call, mut progress) = (call(&[10, 60]), Progress::default());
        let steps = [(); 3].map(|()| {
            let step = failure(&call, &mut progress, Failed::new("down"));
            after(&step)
        });
        assert_eq!(steps, [Ok(10), Ok(60), Err(3)]);
    }

    #[test]
    fn a_final_failure_is_reported_at_once_and_a_longer_pause_is_kept() {
        let (call, mut progress) = (call(&[10, 60]), Progress::default());
        let asks = |seconds| Failed {
            pause: Some(Duration::from_secs(seconds)),
            ..Failed::new("busy")
        };
        assert_eq!(after(&failure(&call, &mut progress, asks(30))), Ok(30));
        assert_eq!(after(&failure(&call, &mut progress, asks(5))), Ok(60));
        let wrong = Failed {
            is_final: true,
            ..Failed::new("wrong")
        };
        let first = failure(&call, &mut Progress::default(), wrong);
        assert_eq!(after(&first), Err(1));
    }

    #[test]
    fn what_a_job_keeps_is_read_again() {
        let kept = Progress {
            failed: 2,
            refused: 1,
            report: Some(Report::Answered {
                attempts: 3,
                output: Json::parse(r#"{"score":1.50}"#).expect("JSON"),
                model: Some("m".into()),
                model_version: None,
            }),
            traceparent: Some(traceparent(None)),
        };
        let read = serde_json::from_str::<Progress>(Json::of(&kept).as_str());
        assert_eq!(read.expect("progress"), kept);
        let new = serde_json::from_str::<Progress>("{}");
        assert_eq!(new.expect("a new call"), Progress::default());
    }
}
