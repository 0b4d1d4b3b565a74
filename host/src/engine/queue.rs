//! Commands on one instance queue here, so that they do not race each other to the database.
//!
//! The queue spares work; it is not what makes commands safe. That is the revision in the commit.

use tokio::sync::{Mutex, MutexGuard};

use crate::domain::ids::InstanceId;

/// Places. Two instances may share one: they then wait for each other, and nothing else happens.
const STRIPES: usize = 4096;

/// First come, first served, per instance.
pub(super) struct Queue {
    stripes: Box<[Mutex<()>]>,
}

impl Queue {
    pub(super) fn new() -> Queue {
        Queue {
            stripes: (0..STRIPES).map(|_| Mutex::new(())).collect(),
        }
    }

    /// Waits until it is the caller's turn.
    pub(super) async fn turn(&self, instance: InstanceId) -> MutexGuard<'_, ()> {
        let (_, random) = instance.0.as_u64_pair();
        let stripe =
            usize::try_from(random % STRIPES as u64).expect("fewer stripes than a usize counts");
        self.stripes[stripe].lock().await
    }
}
