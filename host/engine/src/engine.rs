//! The parts of the engine, and what a caller begins with: [`Engine::execute`] for a command, or the method that returns the small type of
//! another group of use cases.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::actions::Actions;
use super::budgets::Budgets;
use super::bulk::Bulk;
use super::calendars::Calendars;
use super::checkpoint_list::Checkpoints;
use super::custody::Audit;
use super::dead_letters::DeadLetters;
use super::definitions::Definitions;
use super::directory::Directory;
use super::directory::absences::Absences;
use super::directory::roles::Roles;
use super::drafts::Drafts;
use super::eligibility::EligibilityQueries;
use super::embedding::Embeddings;
use super::error::Error;
use super::host_counts::HostCounts;
use super::notifications::Notifications;
use super::offload::Offload;
use super::permission;
use super::pipeline::load::{self, Loader, NO_INSTANCE};
use super::pipeline::queue::InstanceQueue;
use super::pipeline::{self, PostCommit, Writer, WriterBounds};
use super::request::{Identity, Reply, Request};
use super::saved_views::SavedViews;
use super::services::Services;
use super::sessions::Sessions;
use super::signals::Signals;
use super::subscriptions::Subscriptions;
use super::versions::{self, VersionCache, Versions};
use wrkflw_audit::keys::CheckpointKeys;
use wrkflw_audit::record::ITEMS_KEPT;
use wrkflw_audit::seal::SealKeys;
use wrkflw_core::actor::Actor;
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::lookup::{Findings, Lookup};
use wrkflw_runtime::clock::Clock;
use wrkflw_runtime::lru::Lru;
use wrkflw_sandbox::Sandbox;
use wrkflw_store::load::{LoadOptions, Stored};
use wrkflw_store::{Reader, Store, StoreError, definitions, purge, series, tenants};

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

/// The use cases of a host. Cheap to clone: all clones share the same parts.
#[derive(Clone)]
pub struct Engine(pub(super) Arc<Parts>);

pub(super) struct Parts {
    pub(super) store: Store,
    pub(super) sandbox: Sandbox,
    pub(super) clock: Clock,
    pub(super) seals: SealKeys,
    pub(super) queue: InstanceQueue,
    pub(super) offload: Offload,
    /// Places for verifications, which mostly wait for the database.
    pub(super) verifications: Offload,
    pub(super) loader: Loader,
    pub(super) writer: Writer,
    /// The commits and loads in progress.
    pub(super) tasks: TaskTracker,
    pub(super) post_commit: PostCommit,
    pub(super) versions: VersionCache,
    /// Results of directory lookups, by tenant and access mark.
    pub(super) lookups: Lru<(TenantId, Uuid, Lookup), Arc<Findings>>,
    /// Names of tenants.
    pub(super) tenants: Lru<TenantId, Arc<str>>,
    /// How long a request may take.
    pub(super) timeout: Duration,
    pub(super) budgets: Budgets,
    pub(super) services: Services,
    /// They verify the checkpoints that auditors list.
    pub(super) checkpoint_keys: CheckpointKeys,
}

impl Engine {
    /// Makes an engine, and records the profile of its sandbox, to which the evidence of its commands refers.
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
        definitions::record_profile(
            &store,
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
            offload: Offload::default(),
            verifications: Offload::new(VERIFICATIONS_MAX),
            versions: versions::new_cache(),
            lookups: Lru::weighted(LOOKUP_NAMES_MAX, |(_, _, lookup), found| {
                lookup.names() + found.names()
            }),
            tenants: Lru::new(TENANTS_MAX).expiring(TRUSTED),
            timeout,
            budgets: Budgets::default(),
            services: Services::default(),
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
    pub fn serving(mut self, services: Services) -> Engine {
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

    /// What a caller may do, and why not the rest: [`Actions::on_instance`], and [`Actions::on_tasks`] for a list of tasks.
    pub fn actions(&self) -> Actions<'_> {
        Actions { engine: self }
    }

    /// Migrations and cancellations of many instances: [`Bulk::dry_run`] tries some of them, [`Bulk::begin`] starts an operation.
    pub fn bulk(&self) -> Bulk<'_> {
        Bulk { engine: self }
    }

    /// The working calendars of a tenant: [`Calendars::put`] and [`Calendars::delete`].
    pub fn calendars(&self) -> Calendars<'_> {
        Calendars {
            store: &self.0.store,
            clock: &self.0.clock,
            offload: &self.0.offload,
        }
    }

    /// What auditors ask about instances: [`Audit::custody`] lists decisions with their seals, [`Audit::verify`] checks the audit of one
    /// instance.
    pub fn audit(&self) -> Audit<'_> {
        Audit { engine: self }
    }

    /// The checkpoints of a tenant's audit: [`Checkpoints::list`].
    pub fn checkpoints(&self) -> Checkpoints<'_> {
        Checkpoints {
            store: &self.0.store,
            offload: &self.0.offload,
            keys: &self.0.checkpoint_keys,
        }
    }

    /// Events that are sent to Kafka again: parked ones by [`DeadLetters::release`], published ones by [`DeadLetters::replay`].
    pub fn dead_letters(&self) -> DeadLetters<'_> {
        DeadLetters { engine: self }
    }

    /// The status of definition versions: new with [`Definitions::publish`], in use from [`Definitions::activate`] on.
    pub fn definitions(&self) -> Definitions<'_> {
        Definitions { engine: self }
    }

    /// Changes of people, groups, memberships and managers, such as [`Directory::put_person`]. [`Directory::me`] is about the caller.
    pub fn directory(&self) -> Directory<'_> {
        Directory { engine: self }
    }

    /// Absences, each with its substitute: [`Absences::list`], [`Absences::add`] and [`Absences::end`].
    pub fn absences(&self) -> Absences<'_> {
        Absences { engine: self }
    }

    /// Roles and what they permit: [`Roles::get`] and [`Roles::put`].
    pub fn roles(&self) -> Roles<'_> {
        Roles {
            store: &self.0.store,
            clock: &self.0.clock,
        }
    }

    /// The caller's draft of the comment on a decision: [`Drafts::get`] and [`Drafts::put`].
    pub fn drafts(&self) -> Drafts<'_> {
        Drafts { engine: self }
    }

    /// Who could act on tasks: [`EligibilityQueries::at`] a past moment, and after a planned change by [`EligibilityQueries::preview`].
    pub fn eligibility(&self) -> EligibilityQueries<'_> {
        EligibilityQueries { engine: self }
    }

    /// Embed tokens: [`Embeddings::issue`] makes one, [`Embeddings::verify`] reads that of a request.
    pub fn embeddings(&self) -> Embeddings<'_> {
        Embeddings { engine: self }
    }

    /// What a person does with notifications: [`Notifications::mark_read`] and [`Notifications::prefer`].
    pub fn notifications(&self) -> Notifications<'_> {
        Notifications {
            store: &self.0.store,
            clock: &self.0.clock,
        }
    }

    /// The caller's saved views: [`SavedViews::put`] and [`SavedViews::delete`].
    pub fn saved_views(&self) -> SavedViews<'_> {
        SavedViews {
            store: &self.0.store,
        }
    }

    /// Sessions of the console: [`Sessions::begin`] at the sign-in, then [`Sessions::get`] for each request.
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions { engine: self }
    }

    /// Signals by correlation key: [`Signals::send`], and [`Signals::status`] of one that was sent.
    pub fn signals(&self) -> Signals<'_> {
        Signals { engine: self }
    }

    /// Webhooks: [`Subscriptions::subscribe`], and what people do with subscriptions and their deliveries.
    pub fn subscriptions(&self) -> Subscriptions<'_> {
        Subscriptions {
            store: &self.0.store,
            clock: &self.0.clock,
        }
    }

    /// Definition versions, parsed and cached: [`Versions::get`].
    pub fn versions(&self) -> Versions<'_> {
        Versions {
            store: &self.0.store,
            offload: &self.0.offload,
            cache: &self.0.versions,
        }
    }

    /// The queries of the store. A [`Reader`] cannot write.
    pub fn reader(&self) -> &Reader {
        &self.0.store
    }

    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub fn sandbox(&self) -> &Sandbox {
        &self.0.sandbox
    }

    /// The places for work that may take long.
    pub fn offload(&self) -> &Offload {
        &self.0.offload
    }

    /// The keys that seal decisions.
    pub fn seals(&self) -> &SealKeys {
        &self.0.seals
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
    pub fn host_counts(&self) -> Arc<HostCounts> {
        self.0.post_commit.counts.clone()
    }

    /// Changes with each commit of this process that has events.
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.0.post_commit.commits.subscribe()
    }

    /// Runs a command. Its stages are in [`pipeline`].
    pub async fn execute(&self, request: Request<'_>) -> Result<Reply, Error> {
        pipeline::execute(self, request).await
    }

    /// Refuses a caller without the permission.
    pub async fn permit(&self, who: &Identity, permission: &'static str) -> Result<(), Error> {
        permission::permit(&self.0.store, who, permission).await
    }

    /// Refuses a caller without one of the permissions. It names the first that is missing.
    pub async fn permit_all(
        &self,
        who: &Identity,
        permissions: &[&'static str],
    ) -> Result<(), Error> {
        permission::permit_all(&self.0.store, who, permissions).await
    }

    /// The external name of a tenant. It never changes.
    pub(super) async fn tenant_name(&self, tenant: TenantId) -> Result<Arc<str>, Error> {
        if let Some(name) = self.0.tenants.get(&tenant) {
            return Ok(name);
        }
        let name: Arc<str> = tenants::name(&self.0.store, tenant).await?.into();
        self.0.tenants.insert(tenant, name.clone());
        Ok(name)
    }

    /// An instance with all its parts, if the caller sees it. Checks no permission.
    pub async fn read(&self, who: &Identity, id: InstanceId) -> Result<Stored, Error> {
        let options = LoadOptions::at(self.0.clock.now());
        let loaded = load::loaded(self, &who.caller(), id, options).await?;
        self.seen(who.tenant, id, loaded).await
    }

    /// The caller's present groups and permissions, and the absent people they act for.
    pub async fn actor(&self, who: &Identity) -> Result<Actor, Error> {
        let options = LoadOptions::at(self.0.clock.now());
        let loaded = load::loaded(self, &who.caller(), NO_INSTANCE, options).await?;
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
            until_done(|| purge::replies(store, REPLIES_KEPT)).await,
            until_done(|| purge::signals(store)).await,
            until_done(|| purge::notifications(store, NEWS_KEPT)).await,
            until_done(|| purge::items(store, ITEMS_KEPT)).await,
            until_done(|| purge::deliveries(store, DEAD_KEPT)).await,
            until_done(|| purge::sessions(store)).await,
            until_done(|| purge::drafts(store)).await,
            // Only points that were rolled up are deleted.
            match until_done(|| series::roll_up(store)).await {
                Ok(()) => until_done(|| series::purge_points(store)).await,
                failed => failed,
            },
            until_done(|| series::purge_hosts(store)).await,
        ];
        done.into_iter().collect()
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
