//! The API for the rest of the host: ask a component a question. [`super::admission`] admits it before.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::call::{Call, CallResult, Caller, RawAnswer};
use super::engine;
use super::error::{Cause, GuestError, Pinned};
use super::library::Library;
use super::profile::Profile;
use super::settings::Settings;
use super::v0_1::{lift, lower};
use wrkflw_core::question::{Answer, Facts, Question};

/// Runs flow logic. Cheap to clone; all clones share one engine, its pool and its cache.
#[derive(Clone)]
pub struct Sandbox(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) settings: Arc<Settings>,
    profile: Profile,
    pub(super) library: Arc<Library>,
    pub(super) caller: Caller,
}

/// An answer, and the measures that are recorded with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// SHA-256 of the question to the guest: the contract, the function and its arguments. It depends on the contract's types
    /// and not on the host's, so every later release of the host computes the same digest.
    pub asked: [u8; 32],
    pub answer: Answer,
    /// The same on every run of the same question.
    pub fuel: u64,
    /// Wall time from when the call got its place to the answer.
    pub duration: Duration,
}

impl Evaluation {
    /// The record of a failed call. None if the same question may succeed later.
    pub fn of_failure(digest: [u8; 32], question: &Question, cause: &Cause) -> Option<Evaluation> {
        Some(Evaluation {
            asked: digest,
            answer: question.refused(cause.refusal()?),
            fuel: 0,
            duration: Duration::ZERO,
        })
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sandbox")
            .field(&self.0.profile.text)
            .finish()
    }
}

impl Sandbox {
    /// Starts the engine and reserves its pool. The error names the setting or resource that is wrong.
    pub fn new(settings: Settings) -> Result<Sandbox, String> {
        settings.check()?;
        let engine = engine::new(&settings)?;
        let settings = Arc::new(settings);
        Ok(Sandbox(Arc::new(Shared {
            profile: Profile::new(&settings),
            library: Arc::new(Library::new(&settings, &engine)?),
            caller: Caller::new(engine, Arc::clone(&settings))?,
            settings,
        })))
    }

    /// The conditions under which guests run here.
    pub fn profile(&self) -> &Profile {
        &self.0.profile
    }

    /// Loads a component, so that the first call does not wait for it. Has no timeout. If the caller goes away, a compilation
    /// that has begun continues.
    pub async fn warm<F, Fut, E>(&self, pinned: &Pinned, fetch: F) -> Result<(), GuestError>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Vec<u8>, E>>,
        E: fmt::Display,
    {
        self.0
            .library
            .load(pinned.digest, fetch)
            .await
            .map(drop)
            .map_err(|cause| failure(pinned, "load", cause))
    }

    /// Asks one question in a fresh instance. `fetch` reads the component's bytes. It is called only if the machine code is
    /// neither in memory nor on disk. While a compilation takes long, calls fail with [`Cause::Loading`].
    pub async fn ask<F, Fut, E>(
        &self,
        pinned: &Pinned,
        facts: Facts<'_>,
        question: &Question,
        fetch: F,
    ) -> Result<Evaluation, GuestError>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Vec<u8>, E>>,
        E: fmt::Display,
    {
        let asking = Asking::of(&facts, question);
        self.ask_prepared(pinned, asking, fetch).await
    }

    /// Asks a question that was converted before.
    pub async fn ask_prepared<F, Fut, E>(
        &self,
        pinned: &Pinned,
        Asking { call, digest }: Asking,
        fetch: F,
    ) -> Result<Evaluation, GuestError>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Vec<u8>, E>>,
        E: fmt::Display,
    {
        let function = call.function();
        let ready = self.0.library.get(pinned.digest, fetch);
        let ready = ready
            .await
            .map_err(|cause| failure(pinned, function, cause))?;
        let ran = self.0.caller.run(&ready, &call).await;
        ready.measures.record(&pinned.reference.key, &call, &ran);
        evaluation(digest, ran).map_err(|cause| failure(pinned, function, cause))
    }
}

/// A question with its facts, in the guest's types.
pub struct Asking {
    call: Arc<Call>,
    digest: [u8; 32],
}

impl Asking {
    /// Converts a question and its facts. This takes long for large facts.
    pub fn of(facts: &Facts<'_>, question: &Question) -> Asking {
        let snapshot = lower::snapshot(facts);
        let call = match question {
            Question::Start(by) => Call::Start(snapshot, lower::actor(by, facts.reads)),
            Question::Transition(occurrence) => {
                Call::Transition(snapshot, lower::event(occurrence, facts.reads))
            }
            Question::Enter(entries) => {
                Call::Enter(snapshot, entries.iter().map(lower::entry).collect())
            }
        };
        Asking {
            digest: call.digest(&call.arguments()),
            call: Arc::new(call),
        }
    }

    /// See [`Evaluation::asked`].
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

fn evaluation(digest: [u8; 32], ran: CallResult) -> Result<Evaluation, Cause> {
    let answer = match ran.answer? {
        RawAnswer::Start(answer) => lift::result(answer, Ok).map(Answer::Start),
        RawAnswer::Transition(answer) => lift::result(answer, lift::plan).map(Answer::Transition),
        RawAnswer::Enter(answer) => lift::result(answer, lift::works).map(Answer::Enter),
        RawAnswer::Described(_) => unreachable!("`describe` is no question about facts"),
    };
    Ok(Evaluation {
        asked: digest,
        answer: answer.map_err(|detail| Cause::Malformed { detail })?,
        fuel: ran.fuel,
        duration: ran.duration,
    })
}

fn failure(pinned: &Pinned, function: &'static str, cause: Cause) -> GuestError {
    metrics::counter!(
        "wrkflw_guest_failures_total",
        "definition" => pinned.reference.key.clone(),
        "function" => function,
        "code" => cause.code(),
    )
    .increment(1);
    GuestError {
        pinned: Box::new(pinned.clone()),
        function,
        cause,
    }
}
