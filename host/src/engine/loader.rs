//! The loader: reads what many commands start from together, as the writer commits their changes.

use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::combine::{Bounds, Combiner, Full, Work};
use crate::store::load::{LOAD_MAX, Loaded, Wanted};
use crate::store::{Store, StoreError};

/// Statements under way at a time.
const WORKERS: usize = 2;
/// Loads that may wait for a connection.
const WAITING_MAX: usize = 1024;

/// Loads for commands.
pub(super) struct Loader(Combiner<Loads>);

struct Loads(Store);

struct Caller {
    wanted: Wanted,
    told: oneshot::Sender<Result<Loaded, StoreError>>,
}

impl Loader {
    /// A loader whose workers are tasks of `tasks`.
    pub(super) fn new(store: &Store, tasks: &TaskTracker) -> Loader {
        let bounds = Bounds {
            workers: WORKERS,
            together: LOAD_MAX,
            waiting: WAITING_MAX,
        };
        Loader(Combiner::new(Loads(store.clone()), bounds, tasks.clone()))
    }

    pub(super) async fn load(&self, wanted: Wanted) -> Result<Result<Loaded, StoreError>, Full> {
        let (told, loaded) = oneshot::channel();
        let loaded = self.0.carry(Caller { wanted, told }, loaded).await?;
        Ok(loaded.unwrap_or_else(|_| Err(StoreError::Lost)))
    }
}

impl Work for Loads {
    type Item = Caller;
    const NAME: &'static str = "load";

    fn fits(_: &[Caller], _: &Caller) -> bool {
        true
    }

    async fn carry_out(&self, mut callers: Vec<Caller>) {
        // Nobody needs what a caller who went away wanted.
        callers.retain(|caller| !caller.told.is_closed());
        if callers.is_empty() {
            return;
        }
        let wanted: Vec<&Wanted> = callers.iter().map(|caller| &caller.wanted).collect();
        let results: Vec<_> = match self.0.load_together(&wanted).await {
            Ok(results) => results,
            Err(error) => error.for_each().take(callers.len()).map(Err).collect(),
        };
        for (caller, result) in callers.into_iter().zip(results) {
            let _gone = caller.told.send(result);
        }
    }
}
