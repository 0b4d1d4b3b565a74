//! The instance cache: the instances that this host committed last, the groups and permissions of its last callers, and the
//! active versions of the definitions that it started last. A command that finds what it needs here reads nothing from the
//! database.
//!
//! No decision depends on the cache alone. The commit compares the instance's last entry and the tenant's access mark with the
//! cached ones, and writes nothing if they differ. The mark changes with every change of the directory, of permissions and of
//! definitions. A refusal is returned only after both were read from the database and found equal. An outdated row costs a
//! statement, never a wrong answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use moka::future::Cache;
use moka::policy::EvictionPolicy;
use uuid::Uuid;

use wrkflw_core::actor::Actor;
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_fault as fault;
use wrkflw_store::load::{Loaded, Principalship, Startable, Stored};

/// Approximate limit of the bytes of all cached instances.
const INSTANCE_BYTES_MAX: u64 = 32 << 20;
/// Limit of the groups, permissions and stopped versions of all cached callers. Each takes a few dozen bytes.
const CALLER_NAMES_MAX: u64 = 500_000;
const TENANTS_MAX: u64 = 10_000;
const DEFINITIONS_MAX: u64 = 10_000;

/// The highest hit score. A hit adds 1, a miss subtracts [`MISS_COST`]. At 0 and below, no cached instance is used.
const HIT_SCORE_MAX: i32 = 256;
/// A miss costs a commit that writes nothing. A hit saves half a statement and its round trip.
const MISS_COST: i32 = 4;

/// Cheap to clone; all clones are one cache.
#[derive(Clone)]
pub(super) struct InstanceCache {
    instances: Cache<(TenantId, InstanceId), Arc<Stored>>,
    callers: Cache<Principalship, Arc<CachedCaller>>,
    definitions: Cache<(TenantId, String), CachedDefinition>,
    /// Each tenant's access mark, as read last.
    marks: Cache<TenantId, Uuid>,
    hit_score: Arc<AtomicI32>,
}

/// A caller as read last.
struct CachedCaller {
    actor: Actor,
    /// The [`Loaded::access_mark`] of that read.
    mark: Uuid,
    /// The stopped versions of the tenant.
    stopped: Vec<VersionRef>,
}

/// What a start of a definition needs to know of it, as read last.
#[derive(Clone)]
struct CachedDefinition {
    startable: Startable,
    content: Option<Vec<u8>>,
    /// The [`Loaded::access_mark`] of that read.
    mark: Uuid,
}

impl InstanceCache {
    pub(super) fn new() -> InstanceCache {
        let names = |caller: &CachedCaller| {
            let CachedCaller { actor, stopped, .. } = caller;
            4 + actor.groups.len() + actor.permissions.len() + stopped.len()
        };
        InstanceCache {
            instances: Cache::builder()
                .weigher(|_, stored: &Arc<Stored>| small(stored.instance.weight()))
                .max_capacity(INSTANCE_BYTES_MAX)
                // The instance that was committed last is the likeliest to be used next, so how often others were used does not
                // count.
                .eviction_policy(EvictionPolicy::lru())
                .build(),
            callers: Cache::builder()
                .weigher(move |_, caller: &Arc<CachedCaller>| small(names(caller)))
                .max_capacity(CALLER_NAMES_MAX)
                .build(),
            definitions: Cache::new(DEFINITIONS_MAX),
            marks: Cache::new(TENANTS_MAX),
            hit_score: Arc::new(AtomicI32::new(HIT_SCORE_MAX)),
        }
    }

    /// The cached caller and instance. None also if too many cached rows were outdated lately, for example behind a load
    /// balancer that spreads the commands on one instance over the hosts.
    pub(super) async fn get(
        &self,
        who: &Principalship,
        instance: InstanceId,
    ) -> Option<(Loaded, Arc<Stored>)> {
        if self.hit_score.load(Ordering::Relaxed) <= 0 {
            return None;
        }
        let stored = self.instances.get(&(who.tenant, instance)).await?;
        Some((self.caller(who).await?, stored))
    }

    /// The cached caller and definition for a start.
    pub(super) async fn get_start(&self, who: &Principalship, definition: &str) -> Option<Loaded> {
        let key = (who.tenant, definition.to_owned());
        let known = self.definitions.get(&key).await?;
        let loaded = self.caller(who).await?;
        (known.mark == loaded.access_mark).then_some(Loaded {
            definition: Some(known.startable),
            content: known.content,
            ..loaded
        })
    }

    async fn caller(&self, who: &Principalship) -> Option<Loaded> {
        let caller = self.callers.get(who).await?;
        if self.marks.get(&who.tenant).await != Some(caller.mark) {
            return None;
        }
        Some(Loaded {
            actor: caller.actor.clone(),
            reply: None,
            found: None,
            definition: None,
            content: None,
            access_mark: caller.mark,
            lasting: true,
            signalled: None,
            stopped: caller.stopped.clone(),
        })
    }

    /// A change that rested on cached rows was committed.
    pub(super) fn count_hit(&self) {
        self.score(true);
    }

    /// Compares a load with the cached instance, counts a hit or a miss, and caches the caller.
    pub(super) async fn note_load(
        &self,
        who: &Principalship,
        instance: InstanceId,
        loaded: &Loaded,
    ) {
        let key = (who.tenant, instance);
        if let Some(known) = self.instances.get(&key).await {
            let found = loaded.found.as_ref();
            let is_hit = found.is_some_and(|found| *found == *known);
            fault::invariant!(
                || {
                    is_hit
                        || found.is_none_or(|found| {
                            (found.instance.revision, &found.head)
                                != (known.instance.revision, &known.head)
                        })
                },
                format_args!("one revision is one content: {known:?} was left, {found:?} is read"),
            );
            self.score(is_hit);
            if !is_hit {
                self.instances.invalidate(&key).await;
            }
        }
        // Of two concurrent reads the older one may be noted last. That costs a statement.
        if self.marks.get(&who.tenant).await != Some(loaded.access_mark) {
            self.marks.insert(who.tenant, loaded.access_mark).await;
        }
        let known = self.callers.get(who).await;
        if loaded.lasting && known.is_none_or(|known| known.mark != loaded.access_mark) {
            let caller = CachedCaller {
                actor: loaded.actor.clone(),
                mark: loaded.access_mark,
                stopped: loaded.stopped.clone(),
            };
            self.callers.insert(who.clone(), Arc::new(caller)).await;
        }
    }

    /// Caches the definition that a start asked for. One without an active version is not cached.
    pub(super) async fn note_definition(
        &self,
        tenant: TenantId,
        definition: &str,
        loaded: &Loaded,
    ) {
        if let Some(startable) = loaded.definition
            && startable.active_version.is_some()
        {
            let known = CachedDefinition {
                startable,
                content: loaded.content.clone(),
                mark: loaded.access_mark,
            };
            let key = (tenant, definition.to_owned());
            self.definitions.insert(key, known).await;
        }
    }

    /// Caches an instance as a commit left it. An ended instance is removed: no more commands are expected on it.
    pub(super) async fn insert(&self, tenant: TenantId, stored: Stored) {
        let key = (tenant, stored.instance.id);
        let ended = stored.instance.status.ended_at().is_some();
        if ended {
            self.instances.invalidate(&key).await;
        } else {
            self.instances.insert(key, Arc::new(stored)).await;
        }
    }

    fn score(&self, is_hit: bool) {
        metrics::counter!("wrkflw_instance_cache_total", "hit" => if is_hit { "true" } else { "false" })
            .increment(1);
        let step = if is_hit { 1 } else { -MISS_COST };
        let hit_score = self.hit_score.load(Ordering::Relaxed);
        // Two concurrent updates may count as one. The score is an estimate.
        let hit_score = (hit_score + step).clamp(-HIT_SCORE_MAX, HIT_SCORE_MAX);
        self.hit_score.store(hit_score, Ordering::Relaxed);
    }
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
