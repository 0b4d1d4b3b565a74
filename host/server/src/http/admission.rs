//! Admission: limits the requests in flight and the requests that wait for a place, and refuses the rest.
//!
//! Requests that cannot begin soon are refused at once, so that admitted requests are answered in time and memory stays
//! bounded. A request releases its place when its response begins. Streams hold no place. Probes and metrics need no place,
//! because operators need them most under overload.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::task::TaskTracker;

use super::App;
use super::extract::Vouched;
use super::observe::only_reads;
use super::problem::Problem;
use wrkflw_store::error::Outage;

/// The default limit of requests in flight. More than a few hundred do not increase the throughput.
pub const IN_FLIGHT_MAX: usize = 256;
/// Requests that may wait for each place.
const WAITING_PER_PLACE: usize = 4;
/// How long a request waits for a place.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// How long `/readyz` reports that the database refused a write. Then the next write shows whether it still does.
const OUTAGE_SHOWN: Duration = Duration::from_secs(10);
/// The paths that need no place.
const OPERATIONAL: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// The limits of one host, and its requests in flight. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Admission(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    places: Semaphore,
    in_flight_max: usize,
    waiting: Semaphore,
    waiting_max: usize,
    /// Counts the requests that a shutdown waits for.
    requests: TaskTracker,
    outage: Mutex<Option<(Outage, Instant)>>,
}

/// Why a request gets no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// Too many requests wait.
    Full,
    /// It waited too long.
    Waited,
}

impl Default for Admission {
    fn default() -> Admission {
        Admission::sized(IN_FLIGHT_MAX)
    }
}

impl Admission {
    /// Admits so many requests at once, and lets four times as many wait.
    pub fn sized(in_flight_max: usize) -> Admission {
        Admission::new(
            in_flight_max,
            in_flight_max.saturating_mul(WAITING_PER_PLACE),
        )
    }

    /// At least one request is admitted, even if `in_flight_max` is 0.
    pub fn new(in_flight_max: usize, waiting_max: usize) -> Admission {
        Admission::counting(in_flight_max, waiting_max, TaskTracker::new())
    }

    fn counting(in_flight_max: usize, waiting_max: usize, requests: TaskTracker) -> Admission {
        let in_flight_max = in_flight_max.clamp(1, Semaphore::MAX_PERMITS);
        let waiting_max = waiting_max.min(Semaphore::MAX_PERMITS);
        Admission(Arc::new(Parts {
            places: Semaphore::new(in_flight_max),
            in_flight_max,
            waiting: Semaphore::new(waiting_max),
            waiting_max,
            requests,
            outage: Mutex::new(None),
        }))
    }

    /// Another admission with the same limits, for routes that make requests to the API themselves. If both shared the places,
    /// requests that wait for a place could hold all of them. A shutdown waits for the requests of both.
    #[must_use]
    pub fn beside(&self) -> Admission {
        let Parts {
            in_flight_max,
            waiting_max,
            requests,
            ..
        } = &*self.0;
        Admission::counting(*in_flight_max, *waiting_max, requests.clone())
    }

    /// How many requests are admitted at once.
    pub fn in_flight_max(&self) -> usize {
        self.0.in_flight_max
    }

    /// Waits until the requests in flight are answered. The caller must have cancelled `App::cancel`.
    pub async fn drained(&self) {
        self.0.requests.close();
        self.0.requests.wait().await;
    }

    /// The latest outage of writes. A read of the database does not show it.
    pub(super) fn outage(&self) -> Option<Outage> {
        let seen = *self
            .0
            .outage
            .lock()
            .expect("nobody panics while holding it");
        seen.filter(|(_, at)| at.elapsed() < OUTAGE_SHOWN)
            .map(|(outage, _)| outage)
    }

    /// Sets the gauges of requests.
    pub(super) fn measure(&self) {
        let used = |max: usize, free: usize| {
            f64::from(u32::try_from(max.saturating_sub(free)).unwrap_or(u32::MAX))
        };
        let Parts {
            places, waiting, ..
        } = &*self.0;
        metrics::gauge!("wrkflw_requests_in_flight")
            .set(used(self.0.in_flight_max, places.available_permits()));
        metrics::gauge!("wrkflw_requests_waiting")
            .set(used(self.0.waiting_max, waiting.available_permits()));
    }

    async fn place(&self) -> Result<SemaphorePermit<'_>, Refused> {
        if let Ok(place) = self.0.places.try_acquire() {
            return Ok(place);
        }
        let _waiting = self.0.waiting.try_acquire().map_err(|_| Refused::Full)?;
        match tokio::time::timeout(WAIT_MAX, self.0.places.acquire()).await {
            Ok(place) => Ok(place.expect("the places are never closed")),
            Err(_) => Err(Refused::Waited),
        }
    }

    /// A write succeeded, so the outage is over.
    fn forget(&self) {
        *self
            .0
            .outage
            .lock()
            .expect("nobody panics while holding it") = None;
    }

    fn note(&self, outage: Outage) {
        if matches!(outage, Outage::Full | Outage::ReadOnly) {
            *self
                .0
                .outage
                .lock()
                .expect("nobody panics while holding it") = Some((outage, Instant::now()));
        }
    }
}

/// Admits a request, or refuses it.
pub(super) async fn admit<F: Future<Output = Response>>(
    app: &App,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    if OPERATIONAL.contains(&request.uri().path()) {
        return next(request).await;
    }
    let admission = &app.admission;
    // Count the request before the check for a shutdown: either the shutdown waits for it, or it sees the shutdown.
    let _counted = admission.0.requests.token();
    // The page that makes this request was admitted before, and may need several requests.
    let is_of_page = request.extensions().get::<Vouched>().is_some();
    if app.cancel.is_cancelled() && !is_of_page {
        return Problem::new("unavailable", "this host is shutting down").into_response();
    }
    let _place = match admission.place().await {
        Ok(place) => place,
        Err(refused) => {
            let (reason, detail) = match refused {
                Refused::Full => ("full", "too many requests are waiting already"),
                Refused::Waited => ("waited", "the request waited too long for its turn"),
            };
            return overloaded(reason, detail).into_response();
        }
    };
    let writes = may_write(&request);
    let response = next(request).await;
    if writes && response.status().is_success() {
        admission.forget();
    }
    if let Some(outage) = response
        .extensions()
        .get::<Problem>()
        .and_then(|problem| problem.outage)
    {
        metrics::counter!("wrkflw_database_outages_total", "kind" => outage.name()).increment(1);
        admission.note(outage);
        if outage == Outage::ReadOnly {
            app.engine.reader().renew();
        }
    }
    response
}

/// Whether the database may have taken a write if the request succeeds. A dry run writes nothing.
fn may_write(request: &Request) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let is_dry = query.split('&').any(|pair| pair == "dryRun=true");
    !is_dry && !only_reads(request)
}

/// Refuses a request for which this host has no place, and counts it by the limit that was reached.
pub fn overloaded(reason: &'static str, detail: &str) -> Problem {
    metrics::counter!("wrkflw_requests_refused_total", "reason" => reason).increment(1);
    Problem::new("overloaded", detail)
}

#[cfg(test)]
mod tests;
