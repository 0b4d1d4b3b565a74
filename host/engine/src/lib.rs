//! The use cases. Every change of an instance goes through one write path, [`pipeline`]. Reads do not: handlers use the
//! [`Reader`].
//!
//! It uses `wrkflw-core` for the rules, `wrkflw-store` for the database, `wrkflw-sandbox` for calls of flow logic,
//! `wrkflw-audit` for seals, signatures and evidence, `wrkflw-runtime` for the time, and `wrkflw-fault` for faults in tests. It knows neither HTTP nor Kafka nor
//! connections.
//!
//! Start reading at [`Engine::execute`]. `actions` lists the possible actions, `definitions` publishes versions and changes their
//! status, and [`jobs`] runs due jobs. `directory`, `calendars`, `subscriptions`, `notifications`, `sessions`, `dead_letters` and
//! [`bulk`] write everything but instances. Each checks the permission, validates the request with [`validation`], and writes. The
//! verification of the audit is in `wrkflw-audit`.

mod actions;
pub mod budgets;
pub mod bulk;
mod calendars;
pub mod checkpoint;
mod checkpoint_list;
mod children;
mod custody;
mod data_changes;
mod dead_letters;
mod definitions;
mod directory;
mod drafts;
mod eligibility;
mod embedding;
pub mod error;
pub mod host_counts;
mod inbox;
pub mod job_handlers;
pub mod jobs;
pub mod migration;
mod names;
mod notifications;
mod observe;
pub mod offload;
mod past;
pub mod pipeline;
pub mod presence;
mod reassessments;
pub mod replay;
mod request;
mod restart;
mod saved_views;
pub mod services;
mod sessions;
mod signals;
mod subscriptions;
pub mod validation;
mod verification;
mod versions;
mod visibility;

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use budgets::Budgets;
use pipeline::load::{Loader, NO_INSTANCE};
use pipeline::queue::InstanceQueue;
use pipeline::{PostCommit, Writer, WriterBounds};
use wrkflw_audit::keys::CheckpointKeys;
use wrkflw_audit::record::ITEMS_KEPT;
use wrkflw_audit::seal::SealKeys;
use wrkflw_core::actor::Actor;
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_core::lookup::{Findings, Lookup};
use wrkflw_runtime::clock::Clock;
use wrkflw_runtime::lru::Lru;
use wrkflw_sandbox::Sandbox;
use wrkflw_store::load::{LoadOptions, Stored};
use wrkflw_store::{Reader, Store, StoreError};

pub use actions::{Action, Refusal};
pub use checkpoint_list::{CheckpointStatus, ListedCheckpoint};
pub use custody::{ChainLink, CustodyAction, CustodyRecord, SealStatus, Signature};
pub use data_changes::{DataChanges, DataStepAt};
pub use definitions::{
    Activation, ActivationEffects, Published, Retirement, Stopping, check_component,
};
pub use directory::Changed;
pub use directory::me::Me;
pub use directory::roles::PERMISSIONS;
pub use eligibility::{
    AblePerson, EligibilityAt, ExcludedPerson, Orphan, Preview, TaskEligibility,
};
pub use embedding::{
    EMBED_ISSUE, EMBEDDING_MAX, EmbedTarget, Embedding, NewEmbedding, Scope as EmbeddingScope,
};
pub use error::Error;
pub use inbox::OpenTask;
pub use names::UnknownName;
pub use request::{CALLER_ROLES_MAX, Done, Idempotency, Identity, Rendered, Reply, Request, Trace};
pub use sessions::{ProviderSession, SESSION_IDLE_MAX, SESSION_MAX, Session};
pub use signals::{Correlated, Rendering, SentSignal, SignalStatus};
pub use subscriptions::{Subscribed, Subscribing};
pub use verification::Verification;
pub use wrkflw_audit::verify::Finding;
pub use wrkflw_store::drafts::Draft;
pub use wrkflw_store::saved_views::SavedView;
pub use wrkflw_store::sessions::{Preference, SessionRow};

/// Limit of the cached definition versions: estimated bytes.
const VERSIONS_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// The minimum weight of a version, so that at most about ten thousand are cached.
const VERSION_BYTES_MIN: u32 = 12 * 1024;

/// Limit of the names of people and groups in cached lookups, a few dozen bytes each.
const LOOKUP_NAMES_MAX: usize = 1_000_000;
const TENANTS_MAX: usize = 10_000;
/// How long cached versions and tenants are used. After a restore of the database to an earlier moment, their numbers may belong
/// to other versions and tenants.
pub const TRUSTED: Duration = Duration::from_mins(1);

/// How long a reply is repeated for its idempotency key.
const REPLIES_KEPT: Duration = Duration::from_hours(24);
/// How long notifications are kept. The audit keeps their events for good.
const NEWS_KEPT: Duration = Duration::from_hours(90 * 24);
/// Verifications of instances at a time.
const VERIFICATIONS_MAX: usize = 2;
/// How long a delivery is kept that is not pending any more.
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
    /// Places for verifications, which mostly wait for the database.
    verifications: offload::Offload,
    loader: Loader,
    writer: Writer,
    /// The commits and loads in progress.
    tasks: TaskTracker,
    post_commit: PostCommit,
    versions: Cache<(TenantId, VersionRef), versions::CachedVersion>,
    /// Results of directory lookups, by tenant and access mark.
    lookups: Lru<(TenantId, Uuid, Lookup), Arc<Findings>>,
    /// Names of tenants.
    tenants: Lru<TenantId, Arc<str>>,
    /// How long a request may take.
    timeout: Duration,
    budgets: Budgets,
    services: services::Services,
    /// They verify the checkpoints that auditors list.
    checkpoint_keys: CheckpointKeys,
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

    /// The same, with other bounds of the writer.
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
            verifications: offload::Offload::new(VERIFICATIONS_MAX),
            versions: Cache::builder()
                .max_capacity(VERSIONS_BYTES_MAX)
                .weigher(|_, cached: &versions::CachedVersion| cached.weight())
                .time_to_live(TRUSTED)
                .build(),
            lookups: Lru::weighted(LOOKUP_NAMES_MAX, |(_, _, lookup), found| {
                lookup.names() + found.names()
            }),
            tenants: Lru::new(TENANTS_MAX).expiring(TRUSTED),
            timeout,
            budgets: Budgets::default(),
            services: services::Services::default(),
            checkpoint_keys: CheckpointKeys::default(),
        })))
    }

    /// Sets other budgets than the default. Must be called before the engine is cloned.
    #[must_use]
    pub fn budgeted(mut self, budgets: Budgets) -> Engine {
        let parts = Arc::get_mut(&mut self.0).expect("nobody else has the engine yet");
        parts.budgets = budgets;
        self
    }

    /// Sets the services that flows may call. Must be called before the engine is cloned.
    #[must_use]
    pub fn serving(mut self, services: services::Services) -> Engine {
        let parts = Arc::get_mut(&mut self.0).expect("nobody else has the engine yet");
        parts.services = services;
        self
    }

    /// Sets the keys that verify checkpoints. Must be called before the engine is cloned.
    #[must_use]
    pub fn verifying(mut self, keys: CheckpointKeys) -> Engine {
        let parts = Arc::get_mut(&mut self.0).expect("nobody else has the engine yet");
        parts.checkpoint_keys = keys;
        self
    }

    /// Read access to the store that this engine writes to.
    pub fn reader(&self) -> &Reader {
        &self.0.store
    }

    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub fn sandbox(&self) -> &Sandbox {
        &self.0.sandbox
    }

    /// Runs work that may take long.
    pub fn offload(&self) -> &offload::Offload {
        &self.0.offload
    }

    /// Wakes the relay of this process when notified.
    pub fn wake(&self) -> Arc<Notify> {
        self.0.post_commit.wake.clone()
    }

    /// Wakes the workers of this process that run jobs, reassessments and bulk items.
    pub fn wake_workers(&self) {
        self.0.post_commit.wake_workers();
    }

    /// Waits for the commits in progress. Call it when the process ends, after the last request.
    pub async fn settled(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// How long a request may take.
    pub fn timeout(&self) -> Duration {
        self.0.timeout
    }

    /// How many commands of this process wait for their turn at an instance.
    pub fn waiting(&self, instance: InstanceId) -> usize {
        self.0.queue.waiting(instance)
    }

    /// How many changes of this process wait for the next batch of commits.
    pub fn queued(&self) -> usize {
        self.0.writer.waiting()
    }

    /// The counts of this process for the series.
    pub fn host_counts(&self) -> Arc<host_counts::HostCounts> {
        self.0.post_commit.counts.clone()
    }

    /// Changes with each commit of this process that has events.
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.0.post_commit.commits.subscribe()
    }

    /// An instance with all its parts, if the caller sees it. Checks no permission.
    pub async fn read(&self, who: &Identity, id: InstanceId) -> Result<Stored, Error> {
        let asked = LoadOptions::at(self.0.clock.now());
        let loaded = self.loaded(&who.caller(), id, asked).await?;
        self.seen(who.tenant, id, loaded).await
    }

    /// The caller's present groups and permissions, and the absent people they act for.
    pub async fn actor(&self, who: &Identity) -> Result<Actor, Error> {
        let asked = LoadOptions::at(self.0.clock.now());
        let who = who.caller();
        let loaded = self.loaded(&who, NO_INSTANCE, asked).await?;
        Ok(Arc::unwrap_or_clone(loaded.actor))
    }

    /// Deletes what is kept for a limited time: replies to idempotency keys for [`REPLIES_KEPT`], signals for
    /// [`SIGNALS_TOLD`](wrkflw_store::signals::SIGNALS_TOLD), notifications for [`NEWS_KEPT`], items of ended operations for
    /// [`ITEMS_KEPT`], deliveries that are not pending for [`DEAD_KEPT`], sessions until they expire, drafts until their task has
    /// ended, points of series for [`HOURS_KEPT`](wrkflw_store::series::HOURS_KEPT), and rows of hosts until they expire. The clock of
    /// the database counts, not this host's.
    pub async fn purge(&self) -> Result<(), StoreError> {
        let store = &self.0.store;
        // All steps run, even if one of them fails. The first error is returned.
        let done = [
            until_done(|| store.purge_replies(REPLIES_KEPT)).await,
            until_done(|| store.purge_signals()).await,
            until_done(|| store.purge_notifications(NEWS_KEPT)).await,
            until_done(|| store.purge_items(ITEMS_KEPT)).await,
            until_done(|| store.purge_deliveries(DEAD_KEPT)).await,
            until_done(|| store.purge_sessions()).await,
            until_done(|| store.purge_drafts()).await,
            // Only points that were rolled up are deleted.
            match until_done(|| store.roll_up()).await {
                Ok(()) => until_done(|| store.purge_points()).await,
                failed => failed,
            },
            until_done(|| store.purge_hosts()).await,
        ];
        done.into_iter().collect()
    }

    /// The keys that seal decisions.
    pub fn seals(&self) -> &SealKeys {
        &self.0.seals
    }
}

/// Repeats a step until nothing is left.
async fn until_done<F>(mut step: impl FnMut() -> F) -> Result<(), StoreError>
where
    F: Future<Output = Result<bool, StoreError>>,
{
    while step().await? {}
    Ok(())
}
