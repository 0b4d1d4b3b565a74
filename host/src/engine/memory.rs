//! What this process remembers, so that a command need not read it again: the instances that it committed last, and what
//! somebody was when they asked last.
//!
//! Nothing is done on a memory alone. The commit takes place only if the instance still ends with the remembered entry, and
//! the mark of what decides who may do what is the remembered one; a refusal is told only when both are found so. A
//! memory that is out of date costs a statement, never a wrong answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use moka::future::Cache;
use moka::policy::EvictionPolicy;
use uuid::Uuid;

use crate::domain::actor::Actor;
use crate::domain::answer::AttributeValue;
use crate::domain::ids::{InstanceId, TenantId, VersionRef};
use crate::domain::instance::{Instance, StateInstance, Task};
use crate::domain::json::Json;
use crate::fault;
use crate::store::load::{Loaded, Principalship, Stored};

/// What remembered instances may take, about.
const INSTANCE_BYTES_MAX: u64 = 32 << 20;
/// Groups and permissions of people who are remembered, a few dozen bytes each.
const STANDING_NAMES_MAX: u64 = 500_000;
const TENANTS_MAX: u64 = 10_000;

/// What a part takes without its texts, from the sizes of the types and of what they allocate.
const INSTANCE_BYTES: usize = 1536;
const STAY_BYTES: usize = 1024;
const TASK_BYTES: usize = 1024;
const ITEM_BYTES: usize = 64;

/// Memories that held in a row, at most, which count against those that did not.
const TRUST_MAX: i32 = 256;
/// One that did not hold costs a statement in vain; one that holds spares half of one and the way there.
const MISTAKE: i32 = 4;

/// Cheap to clone; all clones are one memory.
#[derive(Clone)]
pub(super) struct Memory {
    instances: Cache<(TenantId, InstanceId), Arc<Stored>>,
    standings: Cache<Principalship, Arc<Standing>>,
    /// The mark that was read last, of each tenant.
    marks: Cache<TenantId, Uuid>,
    trust: Arc<AtomicI32>,
}

/// What somebody was.
struct Standing {
    actor: Actor,
    /// As of [`Loaded::standing`].
    mark: Uuid,
    /// Of the tenant.
    stopped: Vec<VersionRef>,
}

impl Memory {
    pub(super) fn new() -> Memory {
        let names = |standing: &Standing| {
            let Standing { actor, stopped, .. } = standing;
            4 + actor.groups.len() + actor.permissions.len() + stopped.len()
        };
        Memory {
            instances: Cache::builder()
                .weigher(|_, stored: &Arc<Stored>| small(bytes(stored)))
                .max_capacity(INSTANCE_BYTES_MAX)
                // What was committed last is asked for next, however often others were.
                .eviction_policy(EvictionPolicy::lru())
                .build(),
            standings: Cache::builder()
                .weigher(move |_, standing: &Arc<Standing>| small(names(standing)))
                .max_capacity(STANDING_NAMES_MAX)
                .build(),
            marks: Cache::new(TENANTS_MAX),
            trust: Arc::new(AtomicI32::new(TRUST_MAX)),
        }
    }

    /// What a load would find of the caller and the instance, unless memories were wrong too often of late: as behind
    /// a balancer that sends the commands on one instance to one host after the other.
    pub(super) async fn recall(
        &self,
        who: &Principalship,
        instance: InstanceId,
    ) -> Option<(Loaded, Arc<Stored>)> {
        if self.trust.load(Ordering::Relaxed) <= 0 {
            return None;
        }
        let stored = self.instances.get(&(who.tenant, instance)).await?;
        let standing = self.standings.get(who).await?;
        if self.marks.get(&who.tenant).await != Some(standing.mark) {
            return None;
        }
        let loaded = Loaded {
            actor: standing.actor.clone(),
            reply: None,
            found: None,
            content: None,
            standing: standing.mark,
            lasting: true,
            signalled: None,
            stopped: standing.stopped.clone(),
        };
        Some((loaded, stored))
    }

    /// A change that rested on a memory was committed.
    pub(super) fn held(&self) {
        self.learn(true);
    }

    /// What a load found of the caller, and of an instance if it was about one.
    pub(super) async fn read(&self, who: &Principalship, instance: InstanceId, loaded: &Loaded) {
        let key = (who.tenant, instance);
        if let Some(known) = self.instances.get(&key).await {
            let found = loaded.found.as_ref();
            let held = found.is_some_and(|found| *found == *known);
            fault::invariant(
                || {
                    held || found.is_none_or(|found| {
                        (found.instance.revision, &found.head)
                            != (known.instance.revision, &known.head)
                    })
                },
                format_args!("one revision is one content: {known:?} was left, {found:?} is read"),
            );
            self.learn(held);
            if !held {
                self.instances.invalidate(&key).await;
            }
        }
        // Of two that were read at once the older may be noted last: that costs a statement.
        if self.marks.get(&who.tenant).await != Some(loaded.standing) {
            self.marks.insert(who.tenant, loaded.standing).await;
        }
        let known = self.standings.get(who).await;
        if loaded.lasting && known.is_none_or(|known| known.mark != loaded.standing) {
            let standing = Standing {
                actor: loaded.actor.clone(),
                mark: loaded.standing,
                stopped: loaded.stopped.clone(),
            };
            self.standings.insert(who.clone(), Arc::new(standing)).await;
        }
    }

    /// What a commit left. What has ended is not asked for again.
    pub(super) async fn left(&self, tenant: TenantId, stored: Stored) {
        let key = (tenant, stored.instance.id);
        let ended = stored.instance.status.ended_at().is_some();
        if ended {
            self.instances.invalidate(&key).await;
        } else {
            self.instances.insert(key, Arc::new(stored)).await;
        }
    }

    fn learn(&self, held: bool) {
        metrics::counter!("wrkflw_memories_total", "held" => if held { "true" } else { "false" })
            .increment(1);
        let step = if held { 1 } else { -MISTAKE };
        let trust = self.trust.load(Ordering::Relaxed);
        // Two at once may count as one: it is an estimate.
        let trust = (trust + step).clamp(-TRUST_MAX, TRUST_MAX);
        self.trust.store(trust, Ordering::Relaxed);
    }
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// About what it takes in memory.
fn bytes(stored: &Stored) -> usize {
    let Instance {
        data,
        attributes,
        early,
        requesters,
        ..
    } = &stored.instance;
    let text = |json: &Json| json.as_str().len();
    let early = early
        .iter()
        .map(|signal| ITEM_BYTES * 4 + text(&signal.input));
    INSTANCE_BYTES
        + text(data)
        + attributes.values().map(attribute).sum::<usize>()
        + requesters.len() * ITEM_BYTES
        + early.sum::<usize>()
        + stored.instance.stays().map(stay).sum::<usize>()
}

fn attribute(value: &AttributeValue) -> usize {
    let text = match value {
        AttributeValue::Text(text) | AttributeValue::Decimal(text) => text.len(),
        AttributeValue::Bytes(bytes) => bytes.len(),
        AttributeValue::Boolean(_) | AttributeValue::Float(_) | AttributeValue::Timestamp(_) => 0,
    };
    ITEM_BYTES * 2 + text
}

fn stay(stay: &StateInstance) -> usize {
    let names = stay.exclude.len() + stay.predecessors.len() + stay.deadlines.len();
    let children = stay
        .children
        .iter()
        .map(|child| ITEM_BYTES * 4 + child.data.as_str().len());
    STAY_BYTES
        + names * ITEM_BYTES
        + children.sum::<usize>()
        + stay.tasks.iter().map(task).sum::<usize>()
}

fn task(task: &Task) -> usize {
    let form = task.form.as_ref().map_or(0, |form| form.as_str().len());
    let written = task.decision().map_or(0, |decision| {
        decision.input.as_str().len() + decision.comment.as_ref().map_or(0, String::len)
    });
    TASK_BYTES + (task.candidates.len() + task.deadlines.len()) * ITEM_BYTES + form + written
}

#[cfg(test)]
mod tests;
