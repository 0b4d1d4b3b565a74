//! The queue of service calls. Each service has places of its own, of which one tenant may occupy half.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{Services, calls, unserved};
use crate::Engine;
use crate::jobs::{WorkerContext, tally};
use wrkflw_core::execution::TIMEOUT_SECONDS_MAX;
use wrkflw_core::ids::TenantId;
use wrkflw_runtime::clock::later;
use wrkflw_runtime::lease_worker::{Claim, LeaseQueue, Window, guarded};
use wrkflw_store::StoreError;
use wrkflw_store::jobs::{self, CallTurn, Job};

/// Calls of all services in flight at a time. Each waits for its service most of the time.
const CALLS_MAX: usize = 64;
/// The sleep while due calls wait for a place. It ends early when a call ends.
const POLL_AT_LIMIT: Duration = Duration::from_millis(50);
/// The longest attempt.
const ATTEMPT_MAX: Duration = Duration::from_secs(TIMEOUT_SECONDS_MAX as u64);

/// The queue of calls.
pub(crate) struct CallQueue {
    engine: Engine,
    context: Arc<WorkerContext>,
    /// The calls in flight, by service and tenant.
    in_flight: BTreeMap<String, BTreeMap<TenantId, usize>>,
    /// The tenant whose turn was last, by service.
    after: BTreeMap<String, TenantId>,
    /// The service whose turn was last.
    last: String,
}

impl CallQueue {
    pub(crate) fn new(engine: Engine, context: Arc<WorkerContext>) -> CallQueue {
        CallQueue {
            engine,
            context,
            in_flight: BTreeMap::new(),
            after: BTreeMap::new(),
            last: String::new(),
        }
    }

    /// How long a claim lasts: longer than an attempt and the command that follows.
    pub(crate) fn lease(context: &WorkerContext) -> Duration {
        context.lease + ATTEMPT_MAX
    }

    /// The free places of a service.
    fn free(&self, service: &str) -> usize {
        let taken = self.in_flight.get(service);
        let taken = taken.map_or(0, |tenants| tenants.values().sum());
        self.engine.0.services.calls_max.saturating_sub(taken)
    }

    /// The services with free places.
    fn served(&self) -> Vec<String> {
        let all = self.engine.0.services.names();
        all.filter(|name| self.free(name) > 0).cloned().collect()
    }

    /// The tenants that may have no more calls of the service in flight.
    fn full(&self, service: &str) -> Vec<TenantId> {
        let each_max = self.engine.0.services.calls_max.div_ceil(2);
        let tenants = self.in_flight.get(service).into_iter().flatten();
        let full = tenants.filter(|(_, taken)| **taken >= each_max);
        full.map(|(tenant, _)| *tenant).collect()
    }

    /// Takes a place, and begins the call.
    fn begin(&mut self, service: &str, job: Job) -> Claim<(String, TenantId)> {
        let tenant = job.tenant;
        let tenants = self.in_flight.entry(service.to_owned()).or_default();
        *tenants.entry(tenant).or_default() += 1;
        let (engine, context) = (self.engine.clone(), self.context.clone());
        wrkflw_fault::point("call.claimed");
        Claim::new((service.to_owned(), tenant), async move {
            Box::pin(run(&engine, &context, &job)).await;
        })
    }
}

impl LeaseQueue for CallQueue {
    type Place = (String, TenantId);
    type Error = StoreError;

    const NAME: &'static str = "service calls";
    const PLACES: usize = CALLS_MAX;

    async fn claim(&mut self, window: Window) -> Result<Vec<Claim<Self::Place>>, StoreError> {
        let served = self.served();
        if served.is_empty() {
            return Ok(Vec::new());
        }
        let store = self.context.store.clone();
        let (mut claims, mut left) = (Vec::new(), window.limit);
        let due = jobs::calls::due_services(&store, window.now, &served).await?;
        for service in in_turn(due, &self.last) {
            if left <= 0 {
                break;
            }
            let free = i64::try_from(self.free(&service)).unwrap_or(left);
            let full = self.full(&service);
            let turn = CallTurn {
                service: &service,
                after: self.after.get(&service).copied().unwrap_or(TenantId(0)),
                full: &full,
                limit: free.min(left),
            };
            let claimed = jobs::calls::claim(&store, &turn, window.now, window.lease_end);
            let (jobs, after) = match claimed.await {
                Ok(claimed) => claimed,
                // Claimed calls must be made. If the failure lasts, the next claim returns it.
                Err(_) if !claims.is_empty() => break,
                Err(error) => return Err(error),
            };
            self.after.insert(service.clone(), after);
            if !jobs.is_empty() {
                self.last.clone_from(&service);
            }
            left -= i64::try_from(jobs.len()).unwrap_or(left);
            claims.extend(jobs.into_iter().map(|job| self.begin(&service, job)));
        }
        Ok(claims)
    }

    async fn next_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let served = self.served();
        if served.is_empty() {
            return Ok(None);
        }
        let next = jobs::calls::next_due(&self.context.store, &served).await?;
        if served.iter().all(|service| self.full(service).is_empty()) {
            return Ok(next);
        }
        // The next due call may be of a tenant that is at its limit.
        let poll = later(self.context.clock.now(), POLL_AT_LIMIT);
        Ok(next.map(|next| next.max(poll)))
    }

    fn ended(&mut self, (service, tenant): Self::Place) {
        let Some(tenants) = self.in_flight.get_mut(&service) else {
            return;
        };
        if let Some(taken) = tenants.get_mut(&tenant) {
            *taken -= 1;
            if *taken == 0 {
                tenants.remove(&tenant);
            }
        }
    }
}

/// The services with due calls, beginning behind the one whose turn was last. Otherwise, while all places are taken, the first
/// services would get every place that becomes free.
fn in_turn(mut due: Vec<String>, last: &str) -> Vec<String> {
    due.sort_unstable();
    let next = due.partition_point(|service| service.as_str() <= last);
    due.rotate_left(next);
    due
}

/// Makes an attempt of a call. If that fails for a reason of this host, such as its database, the call is due again soon, or when
/// its lease has ended.
async fn run(engine: &Engine, context: &WorkerContext, job: &Job) {
    let lease = CallQueue::lease(context);
    let call = Box::pin(calls::run_call(engine, job, &context.cancel));
    let ran = guarded(lease, call).await;
    tally(&job.kind, ran.is_ok());
    let Err(error) = ran else {
        return;
    };
    tracing::warn!(job.id = %job.id, instance.id = %job.instance, "a call failed within the host: {error}");
    let next = context.retry_at(job.attempts);
    if let Err(error) = jobs::fail(&context.store, job, &error, next).await {
        tracing::warn!(job.id = %job.id, %error, "a call could not be settled");
    }
}

/// Tells operators of due calls that this host cannot make. Another host may still make them.
pub(crate) async fn mark_unserved(context: &WorkerContext, services: &Services) {
    let names: Vec<_> = services.names().cloned().collect();
    let error = unserved("{}");
    let (store, now) = (&context.store, context.clock.now());
    let marked = jobs::calls::mark_unserved(store, now, &names, &error);
    if let Err(error) = marked.await {
        tracing::warn!(%error, "calls of unknown services could not be marked");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_its_turn() {
        let due = || ["c", "a", "b"].map(str::to_owned).to_vec();
        for (last, order) in [
            ("", ["a", "b", "c"]),
            ("a", ["b", "c", "a"]),
            ("b", ["c", "a", "b"]),
            ("bb", ["c", "a", "b"]),
            ("c", ["a", "b", "c"]),
        ] {
            assert_eq!(in_turn(due(), last), order, "after {last}");
        }
    }
}
