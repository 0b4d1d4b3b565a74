//! The use cases. There is one write path, [`pipeline`]: every change of an instance goes through it. Reads do not: handlers
//! ask the [`Reader`].
//!
//! It uses `wrkflw-core` for the rules, `wrkflw-store` for the database, `wrkflw-sandbox` for what flows answer,
//! `wrkflw-audit` for seals, signatures and evidence, and `wrkflw-runtime` for the time. It knows nothing of HTTP, of Kafka, or of who is connected.
//!
//! Start reading at [`Engine::execute`]. `actions` explains buttons, `definitions` publishes, activates and retires versions,
//! and [`jobs`] does what is due. `directory`, `calendars`, `subscriptions`, `notifications`, `dead_letters` and [`bulk`] write
//! what is beside instances: each asks for the permission, judges the request by [`validation`], and writes. What proves the
//! record stands in `wrkflw-audit`.

mod actions;
pub mod budgets;
pub mod bulk;
mod calendars;
pub mod checkpoint;
mod children;
mod custody;
mod dead_letters;
mod definitions;
mod directory;
mod eligibility;
pub mod error;
pub mod job_handlers;
pub mod jobs;
pub mod migration;
mod notifications;
mod observe;
pub mod offload;
mod past;
pub mod pipeline;
mod reassessments;
pub mod replay;
mod request;
mod restart;
mod signals;
mod subscriptions;
pub mod validation;
mod versions;

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use budgets::Budgets;
use pipeline::loader::Loader;
use pipeline::queue::InstanceQueue;
use pipeline::{PostCommit, Writer, WriterBounds, load::NO_INSTANCE};
use wrkflw_audit::record::ITEMS_KEPT;
use wrkflw_audit::seal::SealKeys;
use wrkflw_core::actor::Actor;
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_core::lookup::{Findings, Lookup};
use wrkflw_runtime::clock::Clock;
use wrkflw_sandbox::Sandbox;
use wrkflw_store::load::{Asked, Stored};
use wrkflw_store::{Reader, Store, StoreError};

pub use actions::{Action, Refusal};
pub use custody::{ChainLink, CustodyRecord, SealStatus, Signature};
pub use definitions::{Activation, Published, Stopping, check_component};
pub use directory::Changed;
pub use eligibility::{
    AblePerson, EligibilityAt, ExcludedPerson, Orphan, Preview, TaskEligibility,
};
pub use error::Error;
pub use request::{Done, Idempotency, Identity, Rendered, Reply, Request, Trace};
pub use signals::{Correlated, Rendering, SentSignal, SignalStatus};
pub use subscriptions::{Subscribed, Subscribing};

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
/// How long notifications are kept. The audit has them for good.
const NEWS_KEPT: Duration = Duration::from_hours(90 * 24);
/// How long a delivery is kept that was given up.
const DEAD_KEPT: Duration = Duration::from_hours(30 * 24);

/// Everything that the host does. Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Parts>);

struct Parts {
    store: Store,
    sandbox: Sandbox,
    clock: Clock,
    seals: SealKeys,
    queue: InstanceQueue,
    offload: offload::Offload,
    loader: Loader,
    writer: Writer,
    /// The commits and loads under way.
    tasks: TaskTracker,
    post_commit: PostCommit,
    versions: Cache<(TenantId, VersionRef), versions::Known>,
    /// What the directory said, as of a mark of its own.
    lookups: Cache<(TenantId, Uuid, Lookup), Arc<Findings>>,
    /// Names of tenants.
    tenants: Cache<TenantId, Arc<str>>,
    /// How long a request may go on.
    timeout: Duration,
    budgets: Budgets,
}

impl Engine {
    /// Starts the engine, and records the profile that its evaluations will refer to.
    pub async fn new(
        store: Store,
        sandbox: Sandbox,
        clock: Clock,
        seals: SealKeys,
        timeout: Duration,
    ) -> Result<Engine, StoreError> {
        let bounds = WriterBounds::default();
        Engine::bounded(store, sandbox, clock, seals, timeout, bounds).await
    }

    /// The same, with bounds of the writer other than usual.
    pub async fn bounded(
        store: Store,
        sandbox: Sandbox,
        clock: Clock,
        seals: SealKeys,
        timeout: Duration,
        bounds: WriterBounds,
    ) -> Result<Engine, StoreError> {
        store
            .record_profile(
                sandbox.profile().digest,
                &sandbox.profile().text,
                clock.now(),
            )
            .await?;
        let (tasks, post_commit) = (TaskTracker::new(), PostCommit::default());
        Ok(Engine(Arc::new(Parts {
            loader: Loader::new(&store, &tasks),
            writer: Writer::new(&store, &post_commit, bounds, &tasks),
            tasks,
            post_commit,
            store,
            sandbox,
            clock,
            seals,
            queue: InstanceQueue::new(),
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
            timeout,
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

    /// The store that this engine writes to, for those who only read.
    pub fn reader(&self) -> &Reader {
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
        self.0.post_commit.wake.clone()
    }

    /// Wakes the workers of this process that run jobs, reassessments and bulk items.
    pub fn wake_workers(&self) {
        self.0.post_commit.wake_workers();
    }

    /// Waits until no commit is under way, once nobody asks for more. For the end of the process.
    pub async fn settled(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// How long a request may go on.
    pub fn timeout(&self) -> Duration {
        self.0.timeout
    }

    /// How many commands of this process wait for their turn at an instance.
    pub fn waiting(&self, instance: InstanceId) -> usize {
        self.0.queue.waiting(instance)
    }

    /// Changes with each commit of this process that left events.
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.0.post_commit.commits.subscribe()
    }

    /// An instance with all its parts, for those who may read it.
    pub async fn read(&self, who: &Identity, id: InstanceId) -> Result<Stored, Error> {
        let asked = Asked::at(self.0.clock.now());
        let loaded = self.loaded(&who.principalship(), id, asked).await?;
        loaded.found.ok_or_else(|| Error::NotFound {
            what: "instance",
            id: id.to_string(),
        })
    }

    /// Somebody as of now: groups, permissions, and the absent people they act for.
    pub async fn actor(&self, who: &Identity) -> Result<Actor, Error> {
        let asked = Asked::at(self.0.clock.now());
        let who = who.principalship();
        Ok(self.loaded(&who, NO_INSTANCE, asked).await?.actor)
    }

    /// Forgets what is kept for a time only: replies to idempotency keys for [`REPLIES_KEPT`], signals for
    /// [`SIGNALS_TOLD`](wrkflw_store::signals::SIGNALS_TOLD), notifications for [`NEWS_KEPT`], items of
    /// operations that ended for [`ITEMS_KEPT`], deliveries that were given up for [`DEAD_KEPT`]. By the time of the database, whatever the clock of
    /// this host says.
    pub async fn purge(&self) -> Result<(), StoreError> {
        let store = &self.0.store;
        while store.purge_replies(REPLIES_KEPT).await? {}
        while store.purge_signals().await? {}
        while store.purge_notifications(NEWS_KEPT).await? {}
        while store.purge_items(ITEMS_KEPT).await? {}
        while store.purge_deliveries(DEAD_KEPT).await? {}
        Ok(())
    }

    /// The keys that seal decisions.
    pub fn seals(&self) -> &SealKeys {
        &self.0.seals
    }
}
