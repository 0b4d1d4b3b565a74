//! The instance cache: the instances that this host committed last, or read for items of bulk operations, the groups and permissions
//! of its last callers, and the active versions of the definitions that it started last. A command that finds what it needs here
//! reads nothing from the database.
//!
//! No decision depends on the cache alone. The commit compares the instance's last entry and the tenant's access mark with the
//! cached ones, and writes nothing if they differ. The mark changes with every change of the directory, of permissions and of
//! definitions. A refusal is returned only after both were read from the database and found equal. An outdated row costs a
//! statement, never a wrong answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use uuid::Uuid;

use wrkflw_core::actor::Actor;
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_fault as fault;
use wrkflw_runtime::lru::Lru;
use wrkflw_store::load::{Caller, Loaded, Startable, Stored};

/// Approximate limit of the bytes of all cached instances.
const INSTANCE_BYTES_MAX: usize = 32 << 20;
/// Limit of the groups, permissions and stopped versions of all cached callers. Each takes a few dozen bytes.
const CALLER_NAMES_MAX: usize = 500_000;
const TENANTS_MAX: usize = 10_000;
const DEFINITIONS_MAX: usize = 10_000;

/// The highest hit score. A hit adds 1, a miss subtracts [`MISS_COST`]. At 0 and below, no cached instance is used.
const HIT_SCORE_MAX: i32 = 256;
/// A miss costs a commit that writes nothing. A hit saves half a statement and its round trip.
const MISS_COST: i32 = 4;

/// Cheap to clone; all clones are one cache.
#[derive(Clone)]
pub(super) struct InstanceCache(Arc<Cached>);

struct Cached {
    /// The instance that was committed last is the likeliest to be used next.
    instances: Lru<(TenantId, InstanceId), Arc<Stored>>,
    callers: Lru<Caller, Arc<CachedCaller>>,
    definitions: Lru<(TenantId, String), CachedDefinition>,
    /// Each tenant's access mark, as read last.
    marks: Lru<TenantId, Uuid>,
    hit_score: AtomicI32,
}

/// A caller as read last.
struct CachedCaller {
    actor: Arc<Actor>,
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
        let names = |_: &Caller, caller: &Arc<CachedCaller>| {
            let CachedCaller { actor, stopped, .. } = &**caller;
            4 + actor.groups.len() + actor.permissions.len() + stopped.len()
        };
        InstanceCache(Arc::new(Cached {
            instances: Lru::weighted(INSTANCE_BYTES_MAX, |_, stored| stored.instance.weight()),
            callers: Lru::weighted(CALLER_NAMES_MAX, names),
            definitions: Lru::new(DEFINITIONS_MAX),
            marks: Lru::new(TENANTS_MAX),
            hit_score: AtomicI32::new(HIT_SCORE_MAX),
        }))
    }

    /// The cached caller and instance. None also if too many cached rows were outdated lately, for example behind a load
    /// balancer that spreads the commands on one instance over the hosts.
    pub(super) fn get(&self, who: &Caller, instance: InstanceId) -> Option<(Loaded, Arc<Stored>)> {
        if self.0.hit_score.load(Ordering::Relaxed) <= 0 {
            return None;
        }
        let stored = self.0.instances.get(&(who.tenant, instance))?;
        Some((self.caller(who)?, stored))
    }

    /// The cached caller and definition for a start.
    pub(super) fn get_start(&self, who: &Caller, definition: &str) -> Option<Loaded> {
        let key = (who.tenant, definition.to_owned());
        let known = self.0.definitions.get(&key)?;
        let loaded = self.caller(who)?;
        (known.mark == loaded.access_mark).then_some(Loaded {
            definition: Some(known.startable),
            content: known.content,
            ..loaded
        })
    }

    fn caller(&self, who: &Caller) -> Option<Loaded> {
        let caller = self.0.callers.get(who)?;
        if self.0.marks.get(&who.tenant) != Some(caller.mark) {
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

    /// Counts a hit: a change that relied on cached rows was committed.
    pub(super) fn count_hit(&self) {
        self.score(true);
    }

    /// Compares a load with the cached instance, counts a hit or a miss, and caches the caller.
    pub(super) fn note_load(&self, who: &Caller, instance: InstanceId, loaded: &Loaded) {
        let key = (who.tenant, instance);
        if let Some(known) = self.0.instances.get(&key) {
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
                self.0.instances.remove(&key);
            }
        }
        // Of two concurrent reads the older one may be noted last. That costs a statement.
        if self.0.marks.get(&who.tenant) != Some(loaded.access_mark) {
            self.0.marks.insert(who.tenant, loaded.access_mark);
        }
        let known = self.0.callers.get(who);
        if loaded.lasting && known.is_none_or(|known| known.mark != loaded.access_mark) {
            let caller = CachedCaller {
                actor: loaded.actor.clone(),
                mark: loaded.access_mark,
                stopped: loaded.stopped.clone(),
            };
            self.0.callers.insert(who.clone(), Arc::new(caller));
        }
    }

    /// Caches the definition that a start asked for. One without an active version is not cached.
    pub(super) fn note_definition(&self, tenant: TenantId, definition: &str, loaded: &Loaded) {
        if let Some(startable) = loaded.definition
            && startable.active_version.is_some()
        {
            let known = CachedDefinition {
                startable,
                content: loaded.content.clone(),
                mark: loaded.access_mark,
            };
            let key = (tenant, definition.to_owned());
            self.0.definitions.insert(key, known);
        }
    }

    /// Caches an instance as a commit left it, or as it was read for a command. An ended instance is removed: no more commands are
    /// expected on it.
    pub(super) fn insert(&self, tenant: TenantId, stored: impl Into<Arc<Stored>>) {
        let stored = stored.into();
        let key = (tenant, stored.instance.id);
        let ended = stored.instance.status.ended_at().is_some();
        if ended {
            self.0.instances.remove(&key);
        } else {
            self.0.instances.insert(key, stored);
        }
    }

    fn score(&self, is_hit: bool) {
        metrics::counter!("wrkflw_instance_cache_total", "hit" => if is_hit { "true" } else { "false" })
            .increment(1);
        let step = if is_hit { 1 } else { -MISS_COST };
        let hit_score = self.0.hit_score.load(Ordering::Relaxed);
        // Two concurrent updates may count as one. The score is an estimate.
        let hit_score = (hit_score + step).clamp(-HIT_SCORE_MAX, HIT_SCORE_MAX);
        self.0.hit_score.store(hit_score, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
