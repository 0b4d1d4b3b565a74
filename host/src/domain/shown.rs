//! What flow logic is shown of an instance, and what keeps that within bounds.
//!
//! Whatever an instance has gone through, its logic can be asked about it: all parts of a question together fit into
//! [`FACTS_BYTES_MAX`]. What rules rest on - who decided what, the work and the texts of active states, data - is never
//! left out: what would outgrow its bound is refused when it comes, with the field and the limit. Of states left, long
//! texts are left out first, then the oldest states; logic is told how many.
//!
//! Nobody gains by writing much. In active states each open task has an equal part of the room that is left; of states
//! left, the longest texts go before shorter ones, so that padding hides nothing but itself.

use std::collections::BTreeSet;

use super::actor::Actor;
use super::answer::{AttributeValue, Principal};
use super::ids::TaskId;
use super::instance::{Decision, Instance, PastState, StateInstance, Task, TaskStatus};
use super::rejection::Rejection;

/// What a host hands over to flow logic at the least, as its contract's types are measured.
pub const FACTS_BYTES_MAX: usize = 1 << 20;
/// The settings of a version.
pub const CONFIG_BYTES_MAX: usize = 64 << 10;
/// The data of an instance, and the input of whatever happens to it.
pub const DATA_BYTES_MAX: usize = 64 << 10;
/// The comment of a decision.
pub const COMMENT_BYTES_MAX: usize = 16 << 10;
/// The groups and permissions of whoever acts.
const ACTOR_BYTES_MAX: usize = 48 << 10;
/// The requesters of an instance: those of all that it restarts are among them.
const REQUESTERS_BYTES_MAX: usize = 16 << 10;
const ATTRIBUTES_BYTES_MAX: usize = 48 << 10;
/// Active and waiting states with their tasks, candidates and children, without texts.
const WORK_BYTES_MAX: usize = 256 << 10;
/// Comments and inputs in active states.
const TEXTS_BYTES_MAX: usize = 128 << 10;
/// The list of deciders.
const DECIDERS_BYTES_MAX: usize = 128 << 10;
/// Comments and inputs in states left.
const PAST_TEXTS_BYTES_MAX: usize = 64 << 10;
/// States left, without texts.
const PAST_BYTES_MAX: usize = 96 << 10;
/// States left.
const PAST_MAX: usize = 100;
/// Ids, names and moments, for which nothing is reserved above: each is bounded by itself.
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

/// How many states an instance may enter in all: each command reads them. What follows by itself on the last one may
/// add a few.
pub const STAYS_MAX: usize = 1_000;
/// Comments and inputs of a whole instance, which each command reads.
const ALL_TEXTS_BYTES_MAX: usize = 4 << 20;
/// One decision takes no more than this part of what is left of them.
const ALL_TEXTS_PART: usize = 16;

/// What names, marks and moments of these take as the contract's types are measured.
const STAY_BYTES: usize = 280;
const TASK_BYTES: usize = 260;
const DECISION_BYTES: usize = 160;
const DECIDER_BYTES: usize = 180;
/// An id of the host's own, in a list.
const ID_BYTES: usize = 40;
/// Beside the text of a name in a list.
const NAME_BYTES: usize = 8;
const CANDIDATE_BYTES: usize = 24;
const CHILD_BYTES: usize = 100;
const ATTRIBUTE_BYTES: usize = 80;
/// One of many bytes.
const BYTE_BYTES: usize = 4;
/// What somebody's claim and decision will add to an open task: two ids and an outcome.
const RESERVED_BYTES: usize = 120;

/// What was left out of the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Omitted {
    /// Decisions in states left whose comment and input are not shown.
    pub texts: usize,
    /// The oldest states left.
    pub states: usize,
}

/// The part of the states left that is shown.
pub struct Shown<'a> {
    /// Oldest first.
    pub past: &'a [PastState],
    pub omitted: Omitted,
    /// Their decisions whose texts are left out.
    untold: BTreeSet<TaskId>,
}

impl<'a> Shown<'a> {
    pub fn of(instance: &'a Instance) -> Shown<'a> {
        let past = newest(&instance.past);
        let states = instance.past.len() - past.len();
        let untold = longest(past);
        let gone = instance.past[..states].iter().flat_map(written);
        let gone = gone.filter(|(_, bytes)| *bytes > 0).count();
        Shown {
            past,
            omitted: Omitted {
                texts: gone + untold.len(),
                states,
            },
            untold,
        }
    }

    /// Whether the comment and the input of the task's decision are shown.
    pub fn tells(&self, task: TaskId) -> bool {
        !self.untold.contains(&task)
    }
}

/// The newest states left that there is room for.
fn newest(past: &[PastState]) -> &[PastState] {
    let mut bytes = 0;
    let fits = |past: &&PastState| {
        bytes += of_past(past);
        bytes <= PAST_BYTES_MAX
    };
    let count = past.iter().rev().take(PAST_MAX).take_while(fits).count();
    &past[past.len() - count..]
}

/// The decisions whose texts find no room: the longest, and of equal ones the oldest.
fn longest(past: &[PastState]) -> BTreeSet<TaskId> {
    let all: usize = past.iter().flat_map(written).map(|(_, bytes)| bytes).sum();
    if all <= PAST_TEXTS_BYTES_MAX {
        return BTreeSet::new();
    }
    let mut newest_first: Vec<_> = past.iter().rev().flat_map(written).collect();
    newest_first.sort_by_key(|(_, bytes)| *bytes);
    let mut room = PAST_TEXTS_BYTES_MAX;
    let left_out = newest_first.into_iter().skip_while(|(_, bytes)| {
        let fits = *bytes <= room;
        room = room.saturating_sub(*bytes);
        fits
    });
    left_out.map(|(task, _)| task).collect()
}

/// The decided tasks of a state left, and how much was written in each decision.
fn written(past: &PastState) -> impl Iterator<Item = (TaskId, usize)> + '_ {
    texts(&past.state)
}

fn texts(stay: &StateInstance) -> impl Iterator<Item = (TaskId, usize)> + '_ {
    stay.tasks.iter().filter_map(|task| {
        let decision = task.decision()?;
        let bytes = said(decision.comment.as_deref(), decision.input.as_str());
        Some((task.id, bytes))
    })
}

/// How much a decision says; an empty input is none.
fn said(comment: Option<&str>, input: &str) -> usize {
    let input = if input == "{}" { 0 } else { input.len() };
    comment.map_or(0, str::len) + input
}

/// Who decided what in which state.
#[derive(Debug, Clone, Copy)]
pub struct Decider<'a> {
    pub stay: &'a StateInstance,
    pub decision: &'a Decision,
}

/// All that ever decided, those in states left first.
pub fn deciders(instance: &Instance) -> impl Iterator<Item = Decider<'_>> {
    instance.stays().flat_map(|stay| {
        let decisions = stay.tasks.iter().filter_map(Task::decision);
        decisions.map(move |decision| Decider { stay, decision })
    })
}

/// Refuses a decision that there is no room for.
pub fn check_decision(
    instance: &Instance,
    comment: Option<&str>,
    input: &str,
) -> Result<(), Rejection> {
    let deciders: usize = deciders(instance).map(of_decider).sum();
    if deciders + DECIDER_BYTES + RESERVED_BYTES > DECIDERS_BYTES_MAX {
        return Err(full(
            "as many decisions as its logic can be told of",
            DECIDERS_BYTES_MAX,
        ));
    }
    let (bytes, room) = (said(comment, input), room(instance));
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

/// How much the next decision may say.
fn room(instance: &Instance) -> usize {
    let sum = |stays: &mut dyn Iterator<Item = &StateInstance>| -> usize {
        stays.flat_map(texts).map(|(_, bytes)| bytes).sum()
    };
    let active = || instance.active.iter();
    let open = active().flat_map(|stay| &stay.tasks);
    let open = open.filter(|task| task.status.is_open()).count().max(1);
    let part = TEXTS_BYTES_MAX.saturating_sub(sum(&mut active())) / open;
    let all = ALL_TEXTS_BYTES_MAX.saturating_sub(sum(&mut instance.stays()));
    part.min(all / ALL_TEXTS_PART)
}

/// Refuses to act with more groups and permissions than logic can be told of.
pub fn check_actor(actor: &Actor) -> Result<(), Rejection> {
    let names = actor.groups.iter().chain(&actor.permissions);
    let bytes: usize = names.map(|name| NAME_BYTES + name.len()).sum();
    if bytes <= ACTOR_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "{} is in more groups, or has more permissions, than flow logic can be told of: {bytes} bytes, of at most \
         {ACTOR_BYTES_MAX}",
        actor.id
    );
    Err(Rejection::not_now("limit_reached", message))
}

/// Refuses more stays than an instance may have.
pub fn check_stays(instance: &Instance, entered: usize) -> Result<(), Rejection> {
    if instance.stays().count() + entered <= STAYS_MAX {
        return Ok(());
    }
    let message = format!("the instance has been in {STAYS_MAX} states, and enters no more");
    Err(Rejection::not_now("limit_reached", message))
}

/// Refuses an instance that its logic could not be asked about.
pub fn check(instance: &Instance) -> Result<(), Rejection> {
    let stays = instance.active.iter().chain(&instance.waiting);
    let parts = [
        (
            "more work in its active states than its logic can be told of",
            stays.map(of_stay).sum(),
            WORK_BYTES_MAX,
        ),
        (
            "longer attributes than its logic can be told of",
            instance.attributes.iter().map(of_attribute).sum(),
            ATTRIBUTES_BYTES_MAX,
        ),
        (
            "more requesters than its logic can be told of",
            instance
                .requesters
                .iter()
                .map(|id| NAME_BYTES + id.len())
                .sum(),
            REQUESTERS_BYTES_MAX,
        ),
        (
            "more decisions than its logic can be told of",
            deciders(instance).map(of_decider).sum(),
            DECIDERS_BYTES_MAX,
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

fn of_stay(stay: &StateInstance) -> usize {
    let children = stay.children.iter().map(|child| {
        CHILD_BYTES + child.key.len() + child.outcome.as_ref().map_or(RESERVED_BYTES, String::len)
    });
    of_tasks(stay, true) + children.sum::<usize>()
}

/// Candidates of states left are not shown.
fn of_past(past: &PastState) -> usize {
    let actor = past.actor.as_ref().map_or(0, String::len);
    of_tasks(&past.state, false) + past.left_by.len() + actor
}

fn of_tasks(stay: &StateInstance, is_active: bool) -> usize {
    let tasks = stay.tasks.iter().map(|task| of_task(task, is_active));
    STAY_BYTES + stay.name.len() + stay.predecessors.len() * ID_BYTES + tasks.sum::<usize>()
}

fn of_task(task: &Task, is_active: bool) -> usize {
    let candidates = task.candidates.iter().filter(|_| is_active);
    let candidates = candidates.map(|candidate| {
        let (Principal::User(id) | Principal::Group(id) | Principal::ManagerOf(id)) = candidate;
        CANDIDATE_BYTES + id.len()
    });
    let owner = task.owner().map_or(0, str::len);
    let decision = match &task.status {
        TaskStatus::Completed { decision, .. } => DECISION_BYTES + names(decision),
        TaskStatus::Pending | TaskStatus::Claimed { .. } => DECISION_BYTES + RESERVED_BYTES,
        TaskStatus::Cancelled { .. } => 0,
    };
    TASK_BYTES + task.label.len() + owner + decision + candidates.sum::<usize>()
}

fn names(decision: &Decision) -> usize {
    let principal = decision.on_behalf_of.as_ref().map_or(0, String::len);
    decision.outcome.len() + decision.actor.len() + principal
}

fn of_decider(decider: Decider<'_>) -> usize {
    DECIDER_BYTES + decider.stay.name.len() + names(decider.decision)
}

fn of_attribute((name, value): (&String, &AttributeValue)) -> usize {
    let value = match value {
        AttributeValue::Text(text) | AttributeValue::Decimal(text) => text.len(),
        AttributeValue::Bytes(bytes) => bytes.len() * BYTE_BYTES,
        AttributeValue::Boolean(_) | AttributeValue::Float(_) | AttributeValue::Timestamp(_) => 0,
    };
    ATTRIBUTE_BYTES + name.len() + value
}

#[cfg(test)]
pub(crate) mod tests;
