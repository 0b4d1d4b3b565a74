//! The part of an instance that flow logic is shown, and the bounds on its size.
//!
//! Flow logic can be called for every instance, because all parts of a question together fit into [`FACTS_BYTES_MAX`]. The
//! facts that rules depend on - who decided what, the work and the texts of active states, data - are never left out: a command
//! that would exceed their bound is refused with the field and the limit. The oldest past states are left out, and some texts of
//! the others; flow logic is shown how many.
//!
//! Long texts cannot displace others. In active states each open task has an equal share of the remaining room. Texts in blind
//! states are hidden, so the room does not depend on them. Of past states, the longest texts are left out before shorter ones.

use std::collections::BTreeSet;

use super::actor::Actor;
use super::answer::AttributeValue;
use super::ids::TaskId;
use super::instance::{Decision, Instance, PastState, StateInstance, Task, TaskStatus};
use super::rejection::Rejection;

/// The size of a question that every host supports, measured in the contract's types.
pub const FACTS_BYTES_MAX: usize = 1 << 20;
/// The config of a version.
pub const CONFIG_BYTES_MAX: usize = 64 << 10;
/// The data of an instance, and the input of a command on it.
pub const DATA_BYTES_MAX: usize = 64 << 10;
/// The comment of a decision.
pub const COMMENT_BYTES_MAX: usize = 16 << 10;
/// The groups and permissions of the actor.
const ACTOR_BYTES_MAX: usize = 48 << 10;
/// The requesters of an instance, including those of all instances that it restarts.
const REQUESTERS_BYTES_MAX: usize = 16 << 10;
const ATTRIBUTES_BYTES_MAX: usize = 48 << 10;
/// Active and waiting states with their data, tasks, candidates and children, without comments and inputs.
const WORK_BYTES_MAX: usize = 256 << 10;
/// Comments and inputs in active states.
const TEXTS_BYTES_MAX: usize = 128 << 10;
/// The list of deciders.
const DECIDERS_BYTES_MAX: usize = 128 << 10;
/// Comments and inputs in past states.
const PAST_TEXTS_BYTES_MAX: usize = 64 << 10;
/// Past states without comments and inputs.
const PAST_BYTES_MAX: usize = 96 << 10;
/// The number of past states.
const PAST_MAX: usize = 100;
/// Ids, names and timestamps that are not counted above. Each has its own bound.
const REST_BYTES_MAX: usize = 24 << 10;

const _: () = assert!(
    CONFIG_BYTES_MAX
        + 2 * DATA_BYTES_MAX
        + COMMENT_BYTES_MAX
        + ACTOR_BYTES_MAX
        + REQUESTERS_BYTES_MAX
        + ATTRIBUTES_BYTES_MAX
        + WORK_BYTES_MAX
        + TEXTS_BYTES_MAX
        + DECIDERS_BYTES_MAX
        + PAST_TEXTS_BYTES_MAX
        + PAST_BYTES_MAX
        + REST_BYTES_MAX
        <= FACTS_BYTES_MAX
);

/// How many states an instance may enter in all, since each command reads them. States that routers lead to may exceed it, by as
/// many as follow from one command.
pub(crate) const STATE_INSTANCES_MAX: usize = 1_000;
/// How many state instances may be active or waiting at a time. Plans that add none are not held to it.
pub(crate) const BRANCHES_MAX: usize = 200;
/// Comments and inputs of a whole instance, which each command reads.
const ALL_TEXTS_BYTES_MAX: usize = 4 << 20;
/// A whole instance by [`Instance::weight`]. Past states keep their forms, candidates and exclusions, and each command reads
/// them.
const ALL_BYTES_MAX: usize = 16 << 20;
/// One decision may use at most this fraction (1 / n) of the remaining [`ALL_TEXTS_BYTES_MAX`].
const ALL_TEXTS_PART: usize = 16;

/// The sizes of these records without variable texts, measured in the contract's types.
const STATE_INSTANCE_BYTES: usize = 320;
const TASK_BYTES: usize = 260;
const DECISION_BYTES: usize = 160;
const DECIDER_BYTES: usize = 180;
/// An id of the host in a list.
const ID_BYTES: usize = 40;
/// The overhead of a name in a list.
const NAME_BYTES: usize = 8;
const CANDIDATE_BYTES: usize = 24;
const CHILD_BYTES: usize = 100;
const ATTRIBUTE_BYTES: usize = 80;
/// One byte of a list of bytes.
const BYTE_BYTES: usize = 4;
/// The room reserved in each open task for its claim and decision: two ids and an outcome.
const RESERVED_BYTES: usize = 120;

/// How much was left out of the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Omitted {
    /// Decisions in past states whose comment and input are not shown.
    pub texts: usize,
    /// Past states that are not shown, the oldest ones.
    pub states: usize,
}

/// The part of the past states that is shown.
pub struct Shown<'a> {
    /// Oldest first.
    pub past: &'a [PastState],
    pub omitted: Omitted,
    /// The decisions in them whose comment and input are left out.
    unsent: BTreeSet<TaskId>,
}

impl<'a> Shown<'a> {
    pub fn of(instance: &'a Instance) -> Shown<'a> {
        let past = newest(&instance.past);
        let states = instance.past.len() - past.len();
        let unsent = longest(past);
        let gone = instance.past[..states].iter();
        let gone = gone.flat_map(|past| texts(&past.state));
        let gone = gone.filter(|(_, bytes)| *bytes > 0).count();
        Shown {
            past,
            omitted: Omitted {
                texts: gone + unsent.len(),
                states,
            },
            unsent,
        }
    }

    /// Whether the comment and the input of the task's decision are shown.
    pub fn shows_texts(&self, task: TaskId) -> bool {
        !self.unsent.contains(&task)
    }
}

/// The newest past states, as many as there is room for.
fn newest(past: &[PastState]) -> &[PastState] {
    let mut bytes = 0;
    let fits = |past: &&PastState| {
        bytes += of_past(past);
        bytes <= PAST_BYTES_MAX
    };
    let count = past.iter().rev().take(PAST_MAX).take_while(fits).count();
    &past[past.len() - count..]
}

/// The decisions whose texts are left out: the longest first, and the oldest first if equal.
fn longest(past: &[PastState]) -> BTreeSet<TaskId> {
    let states = past.iter().rev().map(|past| &past.state);
    if text_bytes(states.clone()) <= PAST_TEXTS_BYTES_MAX {
        return BTreeSet::new();
    }
    let mut newest_first: Vec<_> = states.flat_map(texts).collect();
    newest_first.sort_by_key(|(_, bytes)| *bytes);
    let mut room = PAST_TEXTS_BYTES_MAX;
    let left_out = newest_first.into_iter().skip_while(|(_, bytes)| {
        let fits = *bytes <= room;
        room = room.saturating_sub(*bytes);
        fits
    });
    left_out.map(|(task, _)| task).collect()
}

/// The decided tasks of a state instance, with the bytes of comment and input in each decision.
fn texts(state_instance: &StateInstance) -> impl Iterator<Item = (TaskId, usize)> + '_ {
    state_instance.tasks.iter().filter_map(|task| {
        let decision = task.decision()?;
        let bytes = decision_bytes(decision.comment.as_deref(), decision.input.as_str());
        Some((task.id, bytes))
    })
}

/// The bytes of all comments and inputs in these state instances.
fn text_bytes<'a>(state_instances: impl Iterator<Item = &'a StateInstance>) -> usize {
    let texts = state_instances.flat_map(texts);
    texts.map(|(_, bytes)| bytes).sum()
}

/// The bytes of a decision's comment and input. An empty input counts 0.
fn decision_bytes(comment: Option<&str>, input: &str) -> usize {
    let input = if input == "{}" { 0 } else { input.len() };
    comment.map_or(0, str::len) + input
}

/// A decision with its state instance.
#[derive(Debug, Clone, Copy)]
pub struct Decider<'a> {
    pub state_instance: &'a StateInstance,
    pub decision: &'a Decision,
}

/// All decisions of an instance, those in past states first.
pub fn deciders(instance: &Instance) -> impl Iterator<Item = Decider<'_>> {
    instance.state_instances().flat_map(|state_instance| {
        let decisions = state_instance.tasks.iter().filter_map(Task::decision);
        decisions.map(move |decision| Decider {
            state_instance,
            decision,
        })
    })
}

/// Refuses a decision that exceeds the bounds.
pub(crate) fn check_decision(
    instance: &Instance,
    comment: Option<&str>,
    input: &str,
) -> Result<(), Rejection> {
    let deciders: usize = deciders(instance).map(of_decider).sum();
    if deciders + DECIDER_BYTES + RESERVED_BYTES > DECIDERS_BYTES_MAX {
        return Err(full(
            "more decisions than its logic can be shown",
            DECIDERS_BYTES_MAX,
        ));
    }
    let (bytes, room) = (decision_bytes(comment, input), room(instance));
    if bytes <= room {
        return Ok(());
    }
    let field = if comment.is_some_and(|comment| comment.len() > input.len()) {
        "/comment"
    } else {
        "/input"
    };
    let message = format!(
        "comment and input have at most {room} bytes together in this decision, not {bytes}: the instance keeps \
         room for those who have not decided yet"
    );
    Err(Rejection::invalid(field, "too_long", message))
}

/// How many bytes of comment and input the next decision may have.
///
/// A decision that is hidden counts as the open task that it was, so the room does not depend on its texts. Only where work was added
/// again and again, in a blind state or beside it, and the decisions filled their shares, what they have left is the limit.
fn room(instance: &Instance) -> usize {
    let (blind, others): (Vec<_>, Vec<_>) = instance.active.iter().partition(|one| one.blind);
    let hidden = blind
        .iter()
        .flat_map(|state_instance| &state_instance.tasks)
        .filter(|task| !matches!(task.status, TaskStatus::Cancelled { .. }));
    let open = others
        .iter()
        .flat_map(|state_instance| &state_instance.tasks)
        .filter(|task| task.status.is_open());
    // Hidden tasks count twice: that leaves room for some that are added later.
    let shares = 2 * hidden.count() + open.count();
    let used = text_bytes(others.iter().copied());
    let left = TEXTS_BYTES_MAX.saturating_sub(used);
    let unseen = text_bytes(blind.iter().copied());
    let part = (left / shares.max(1)).min(left.saturating_sub(unseen));
    let kept = if blind.is_empty() {
        used
    } else {
        TEXTS_BYTES_MAX
    };
    let ended = text_bytes(instance.past.iter().map(|past| &past.state));
    let all = ALL_TEXTS_BYTES_MAX.saturating_sub(kept + ended);
    part.min(all / ALL_TEXTS_PART)
}

/// Refuses an actor with more groups and permissions than flow logic can be shown.
pub fn check_actor(actor: &Actor) -> Result<(), Rejection> {
    let names = actor.groups.iter().chain(&actor.permissions);
    let bytes: usize = names.map(|name| NAME_BYTES + name.len()).sum();
    if bytes <= ACTOR_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "{} is in more groups, or has more permissions, than flow logic can be shown: {bytes} bytes, of at most \
         {ACTOR_BYTES_MAX}",
        actor.id
    );
    Err(Rejection::not_now("limit_reached", message))
}

/// Refuses more state instances than an instance may have.
pub(crate) fn check_state_instances(instance: &Instance, entered: usize) -> Result<(), Rejection> {
    if instance.state_instances().count() + entered <= STATE_INSTANCES_MAX {
        return Ok(());
    }
    let message =
        format!("the instance has been in {STATE_INSTANCES_MAX} states, and enters no more");
    Err(Rejection::not_now("limit_reached", message))
}

/// Refuses an instance that would exceed the bounds.
pub fn check(instance: &Instance) -> Result<(), Rejection> {
    let state_instances = instance.active.iter().chain(&instance.waiting);
    let parts = [
        (
            "more work in its active states than its logic can be shown",
            state_instances.map(of_state_instance).sum(),
            WORK_BYTES_MAX,
        ),
        (
            "longer attributes than its logic can be shown",
            instance.attributes.iter().map(of_attribute).sum(),
            ATTRIBUTES_BYTES_MAX,
        ),
        (
            "more requesters than its logic can be shown",
            instance
                .requesters
                .iter()
                .map(|id| NAME_BYTES + id.len())
                .sum(),
            REQUESTERS_BYTES_MAX,
        ),
        (
            "more decisions than its logic can be shown",
            deciders(instance).map(of_decider).sum(),
            DECIDERS_BYTES_MAX,
        ),
        (
            "more in all its states, forms and candidates of those left included, than a command reads",
            instance.weight(),
            ALL_BYTES_MAX,
        ),
    ];
    let outgrown = parts
        .into_iter()
        .find(|(_, bytes, max): &(_, usize, _)| bytes > max);
    outgrown.map_or(Ok(()), |(what, _, max)| Err(full(what, max)))
}

fn full(what: &str, bytes_max: usize) -> Rejection {
    let message = format!("the instance would have {what} ({bytes_max} bytes); start another one");
    Rejection::not_now("limit_reached", message)
}

fn of_state_instance(state_instance: &StateInstance) -> usize {
    let data = state_instance.data.as_ref();
    let data = data.map_or(0, |data| data.as_str().len());
    of_tasks(state_instance, true) + of_children(state_instance) + data
}

fn of_children(state_instance: &StateInstance) -> usize {
    let children = state_instance.children.iter().map(|child| {
        let entity = child.entity.kind.len() + child.entity.id.len();
        let outcome = child.outcome.as_ref().map_or(RESERVED_BYTES, String::len);
        CHILD_BYTES + child.key.len() + entity + outcome
    });
    children.sum()
}

/// Candidates of past states are not shown.
fn of_past(past: &PastState) -> usize {
    let actor = past.actor.as_ref().map_or(0, String::len);
    of_tasks(&past.state, false) + of_children(&past.state) + past.left_trigger.len() + actor
}

fn of_tasks(state_instance: &StateInstance, is_active: bool) -> usize {
    let tasks = state_instance
        .tasks
        .iter()
        .map(|task| of_task(task, is_active));
    STATE_INSTANCE_BYTES
        + state_instance.name.len()
        + state_instance.key.as_ref().map_or(0, String::len)
        + state_instance.predecessors.len() * ID_BYTES
        + tasks.sum::<usize>()
}

fn of_task(task: &Task, is_active: bool) -> usize {
    let candidates = task.candidates.iter().filter(|_| is_active);
    let candidates = candidates.map(|candidate| {
        let group = candidate.member_of().map_or(0, str::len);
        CANDIDATE_BYTES + candidate.id().len() + group
    });
    let owner = task.owner().map_or(0, str::len);
    let decision = match &task.status {
        TaskStatus::Completed { decision, .. } => DECISION_BYTES + names(decision),
        TaskStatus::Pending | TaskStatus::Claimed { .. } => DECISION_BYTES + RESERVED_BYTES,
        TaskStatus::Cancelled { .. } => 0,
    };
    let suspended = task.suspended.as_ref();
    let suspended = suspended.map_or(0, |suspended| ID_BYTES * 2 + suspended.by.len());
    let candidates = candidates.sum::<usize>();
    TASK_BYTES + task.label.len() + owner + decision + suspended + candidates
}

fn names(decision: &Decision) -> usize {
    let principal = decision.on_behalf_of.as_ref().map_or(0, String::len);
    decision.outcome.len() + decision.actor.len() + principal
}

fn of_decider(decider: Decider<'_>) -> usize {
    DECIDER_BYTES + decider.state_instance.name.len() + names(decider.decision)
}

fn of_attribute((name, value): (&String, &AttributeValue)) -> usize {
    let value = match value {
        AttributeValue::Text(text) | AttributeValue::Decimal(text) => text.len(),
        AttributeValue::Bytes(bytes) => bytes.len() * BYTE_BYTES,
        AttributeValue::Boolean(_) | AttributeValue::Float(_) | AttributeValue::Timestamp(_) => 0,
    };
    ATTRIBUTE_BYTES + name.len() + value
}

#[cfg(any(test, feature = "testing"))]
pub mod samples;
#[cfg(test)]
mod tests;
