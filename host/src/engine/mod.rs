//! The use cases. One write path: a command is loaded, judged by host and guest, folded and committed here, and
//! nowhere else. Reads do not pass through: handlers ask the store.
//!
//! Start reading at [`Engine::execute`] in `execute`; `turns` drives one turn, `actions` explains buttons,
//! `definitions` publishes, activates and retires versions, and [`jobs`] does what is due.

mod actions;
pub mod budgets;
pub mod bulk;
pub mod checkpoint;
mod children;
mod combine;
mod custody;
mod definitions;
mod entries;
pub mod error;
mod evidence;
mod execute;
pub mod export;
mod ground;
pub mod jobs;
mod joint;
mod loader;
mod memory;
pub mod migration;
mod observe;
pub mod offload;
pub mod perform;
mod queue;
mod rechecks;
pub mod replay;
mod request;
mod restart;
mod rivals;
pub mod seal;
mod signals;
mod standing;
mod turns;
pub mod verify;
mod versions;
pub mod writer;

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::clock::Clock;
use crate::domain::actor::Actor;
use crate::domain::ids::{InstanceId, TenantId, VersionRef};
use crate::domain::lookup::{Findings, Lookup};
use crate::store::load::{Asked, Stored};
use crate::store::{Store, StoreError};
use crate::wasm::Sandbox;
use budgets::Budgets;
use writer::{Aftermath, Writer};

pub use actions::{Action, Refusal};
pub use custody::{ChainLink, CustodyRecord, SealStanding, Signature};
pub use definitions::{Activation, Published, Stopping, check_component};
pub use error::Error;
pub use request::{Done, Idempotency, Identity, Rendered, Reply, Request, Trace};
pub use seal::SealKeys;
pub use signals::{Correlated, Fate, Rendering, Told};
pub use standing::{Orphan, Preview, StandingAt};
pub use writer::WriterBounds;

/// Definition versions kept ready.
const VERSIONS_MAX: u64 = 10_000;

/// Names of people and groups in remembered answers of the directory, a few dozen bytes each.
const LOOKUP_NAMES_MAX: u64 = 1_000_000;
const TENANTS_MAX: u64 = 10_000;
/// How long a version or a tenant is taken for what has its number, where nothing was read beside that tells. A number may
/// be another one's, once the database has lost what had it.
pub const TRUSTED: Duration = Duration::from_mins(1);

/// How long a reply is repeated for its idempotency key.
const REPLIES_KEPT: Duration = Duration::from_hours(24);
/// How long notifications are kept, and what became of each instance in an operation on many. The audit has it for good.
const NEWS_KEPT: Duration = Duration::from_hours(90 * 24);

/// Everything that the host does. Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Parts>);

struct Parts {
    store: Store,
    sandbox: Sandbox,
    clock: Clock,
    seals: SealKeys,
    queue: queue::Queue<joint::Place>,
    offload: offload::Offload,
    loader: loader::Loader,
    writer: Writer,
    /// The commits and loads under way.
    tasks: TaskTracker,
    aftermath: Aftermath,
    versions: Cache<(TenantId, VersionRef), versions::Known>,
    /// What the directory said, as of a mark of its own.
    lookups: Cache<(TenantId, Uuid, Lookup), Arc<Findings>>,
    /// Names of tenants.
    tenants: Cache<TenantId, Arc<str>>,
    /// How long a request may go on.
    patience: Duration,
    budgets: Budgets,
}

impl Engine {
    /// Starts the engine, and records the profile that its evaluations will refer to.
    pub async fn new(
        store: Store,
        sandbox: Sandbox,
        clock: Clock,
        seals: SealKeys,
        patience: Duration,
    ) -> Result<Engine, StoreError> {
        let bounds = WriterBounds::default();
        Engine::bounded(store, sandbox, clock, seals, patience, bounds).await
    }

    /// The same, with bounds of the writer other than usual.
    pub async fn bounded(
        store: Store,
        sandbox: Sandbox,
        clock: Clock,
        seals: SealKeys,
        patience: Duration,
        bounds: WriterBounds,
    ) -> Result<Engine, StoreError> {
        store
            .record_profile(
                sandbox.profile().digest,
                &sandbox.profile().text,
                clock.now(),
            )
            .await?;
        let (tasks, aftermath) = (TaskTracker::new(), Aftermath::default());
        Ok(Engine(Arc::new(Parts {
            loader: loader::Loader::new(&store, &tasks),
            writer: Writer::new(&store, &aftermath, bounds, &tasks),
            tasks,
            aftermath,
            store,
            sandbox,
            clock,
            seals,
            queue: queue::Queue::new(),
            offload: offload::Offload::default(),
            versions: Cache::builder()
                .max_capacity(VERSIONS_MAX)
                .time_to_live(TRUSTED)
                .build(),
            lookups: Cache::builder()
                .weigher(|(_, _, lookup): &(_, _, Lookup), found: &Arc<Findings>| {
                    u32::try_from(lookup.names() + found.names()).unwrap_or(u32::MAX)
                })
                .max_capacity(LOOKUP_NAMES_MAX)
                .build(),
            tenants: Cache::builder()
                .max_capacity(TENANTS_MAX)
                .time_to_live(TRUSTED)
                .build(),
            patience,
            budgets: Budgets::default(),
        })))
    }

    /// Lets instances make more work, or less, than by default. Before anybody else has this engine.
    #[must_use]
    pub fn budgeted(mut self, budgets: Budgets) -> Engine {
        let parts = Arc::get_mut(&mut self.0).expect("nobody else has the engine yet");
        parts.budgets = budgets;
        self
    }

    /// The store that this engine writes to, for reading.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub fn sandbox(&self) -> &Sandbox {
        &self.0.sandbox
    }

    /// Where work goes that may take long.
    pub fn offload(&self) -> &offload::Offload {
        &self.0.offload
    }

    /// Wakes the relay of this process.
    pub fn wake(&self) -> Arc<Notify> {
        self.0.aftermath.wake.clone()
    }

    /// Wakes the worker of this process that does jobs. It has one listener; tell it with `notify_one`.
    pub fn work(&self) -> Arc<Notify> {
        self.0.aftermath.work.clone()
    }

    /// Waits until no commit is under way, once nobody asks for more. For the end of the process.
    pub async fn settled(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// How long a request may go on.
    pub fn patience(&self) -> Duration {
        self.0.patience
    }

    /// How many commands of this process wait for their turn at an instance.
    pub fn waiting(&self, instance: InstanceId) -> usize {
        self.0.queue.waiting(instance)
    }

    /// Changes with each commit of this process that left events.
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.0.aftermath.commits.subscribe()
    }

    /// An instance with all its parts, for those who may read it.
    pub async fn read(&self, who: &Identity, id: InstanceId) -> Result<Stored, Error> {
        let asked = Asked::at(self.0.clock.now());
        let loaded = self.0.store.load(&who.principalship(), id, asked).await?;
        loaded.found.ok_or_else(|| Error::NotFound {
            what: "instance",
            id: id.to_string(),
        })
    }

    /// The standing of somebody at this moment: groups, permissions, and for whom they stand in.
    pub async fn actor(&self, who: &Identity) -> Result<Actor, Error> {
        let asked = Asked::at(self.0.clock.now());
        let who = who.principalship();
        Ok(self.0.store.load(&who, ground::NOTHING, asked).await?.actor)
    }

    /// Forgets what is kept for a time only: replies to idempotency keys for [`REPLIES_KEPT`], signals for
    /// [`SIGNALS_TOLD`](crate::store::signals::SIGNALS_TOLD), notifications and items of operations that ended for
    /// [`NEWS_KEPT`]. By the time of the database, whatever the clock of this host says.
    pub async fn purge(&self) -> Result<(), StoreError> {
        let store = &self.0.store;
        let now = store.now().await?;
        while store.purge_replies(now - REPLIES_KEPT).await? {}
        while store.purge_signals().await? {}
        while store.purge_notifications(now - NEWS_KEPT).await? {}
        while store.purge_items(now - NEWS_KEPT).await? {}
        Ok(())
    }

    /// The keys that seal decisions.
    pub fn seals(&self) -> &SealKeys {
        &self.0.seals
    }
}
