//! Deadlines: their checks, and their beginning with the work. `overdue` has the effects of a passed deadline.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::enter::ENTER;
use super::fault::Fault;
use super::overdue::next_repetition;
use super::{Ids, assign, effort};
use crate::answer::{Assignment, Deadline, Due, OverdueAction, Reason, Since};
use crate::apply::next_due;
use crate::calendar::Calendar;
use crate::event::Event;
use crate::graph::{FiredBy, Graph};
use crate::ids::{DeadlineId, TaskId};
use crate::instance::{Instance, OpenDeadline, StateInstance, Status};
use crate::lookup::Findings;
use crate::question::EntryCause;
use crate::rejection::Rejection;

/// How many deadlines a state instance or a task may have.
pub(super) const DEADLINES_MAX: usize = 16;
/// How many deadlines of an assignment may count by a calendar. The calculation of each may cover twenty years.
pub(super) const WORKING_MAX: usize = 400;
/// The shortest pause between two repetitions, and from an escalation to that of the new tasks, in seconds.
const REPEAT_MIN: u32 = 60;
/// The longest reason of a deadline that cancels.
const REASON_CHARS_MAX: usize = 2_000;
/// The code of a refused claim whose deadlines cannot be computed, because the calendar was changed or deleted.
const CALENDAR: &str = "calendar_unusable";

/// Checks the number, the calendars, the beginning, the repetition and the triggers of deadlines: of a task, or of a state as a
/// whole.
pub(super) fn check(
    graph: &Graph,
    state: &str,
    deadlines: &[Deadline],
    of_task: bool,
) -> Result<(), Fault> {
    let refuse = |message: String| Err(Fault::new(ENTER, message));
    if deadlines.len() > DEADLINES_MAX {
        return refuse(format!(
            "{state} has more than {DEADLINES_MAX} deadlines in one place"
        ));
    }
    for deadline in deadlines {
        if deadline.repeat.is_some_and(|pause| pause < REPEAT_MIN) {
            return refuse(format!(
                "a deadline of {state} repeats more often than every {REPEAT_MIN} seconds"
            ));
        }
        // Without a declaration, a missing calendar would be found only when an instance enters the state.
        if let Some(calendar) = deadline
            .when
            .calendar()
            .filter(|name| !graph.uses_calendar(name))
        {
            return refuse(format!(
                "a deadline of {state} counts by the calendar {calendar:?}, which the graph does not list among the names that it uses"
            ));
        }
        if matches!(deadline.when, Due::WorkingDays { days: 0, .. }) {
            return refuse(format!(
                "a deadline of {state} counts no working day; it must count at least one"
            ));
        }
        let from_claim = deadline.since == Since::Claimed;
        if from_claim && !of_task {
            return refuse(format!(
                "a deadline of {state} as a whole counts from a claim; only a deadline of a task can"
            ));
        }
        if from_claim && matches!(deadline.when, Due::At(_)) {
            return refuse(format!(
                "a deadline of {state} is at a fixed time and counts from a claim; it can be only one of them"
            ));
        }
        match &deadline.action {
            OverdueAction::Fire(trigger) if !may_fire(graph, state, trigger) => {
                return refuse(format!(
                    "a deadline of {state} fires {trigger:?}, which is declared for no deadline there"
                ));
            }
            OverdueAction::Cancel(reason) if reason.trim().is_empty() => {
                return refuse(format!("a deadline of {state} cancels for no reason"));
            }
            OverdueAction::Cancel(reason) if reason.chars().count() > REASON_CHARS_MAX => {
                return refuse(format!(
                    "the reason for which a deadline of {state} cancels has more than {REASON_CHARS_MAX} characters"
                ));
            }
            OverdueAction::Fire(_)
            | OverdueAction::Cancel(_)
            | OverdueAction::Remind
            | OverdueAction::Escalate
            | OverdueAction::Release => {}
        }
    }
    Ok(())
}

/// Like [`check`], for a state without tasks. There, only deadlines that move the state have an effect.
pub(super) fn check_without_tasks(
    graph: &Graph,
    state: &str,
    deadlines: &[Deadline],
) -> Result<(), Fault> {
    check(graph, state, deadlines, false)?;
    for deadline in deadlines {
        let does = match deadline.action {
            OverdueAction::Fire(_) | OverdueAction::Cancel(_) => continue,
            OverdueAction::Remind => "reminds",
            OverdueAction::Escalate => "escalates",
            OverdueAction::Release => "releases",
        };
        let message = format!(
            "a deadline of {state} {does}, and the state has no tasks; let it cancel, or fire a trigger, such as one that begins a task beside the state"
        );
        return Err(Fault::new(ENTER, message));
    }
    Ok(())
}

/// Whether a deadline may fire this trigger in the state.
pub(super) fn may_fire(graph: &Graph, state: &str, trigger: &str) -> bool {
    let way = graph.transition(state, trigger);
    way.is_some_and(|way| way.by.contains(&FiredBy::Deadline))
}

/// The calendars that these deadlines count by.
pub(super) fn calendars(deadlines: &[Deadline]) -> impl Iterator<Item = &String> {
    deadlines
        .iter()
        .filter_map(|deadline| deadline.when.calendar())
}

/// All deadlines of an assignment: those of the state, then those of each offer.
pub(super) fn of(assignment: &Assignment) -> impl Iterator<Item = &[Deadline]> {
    let of_offers = assignment
        .offers
        .iter()
        .map(|offer| offer.deadlines.as_slice());
    std::iter::once(assignment.deadlines.as_slice()).chain(of_offers)
}

/// The earliest due time.
pub(super) fn earliest(deadlines: &[OpenDeadline]) -> Option<Timestamp> {
    let mut due_at = None;
    next_due(deadlines, &mut due_at);
    due_at
}

/// Prepares the deadlines of an assignment of work that is offered again. They count from `now`. Without this, a deadline at a fixed time
/// that has acted would act again at once, and an escalation would repeat without end. `events` are those of the command.
pub(super) fn prepare(
    events: &[Event],
    now: Timestamp,
    state_instance: &StateInstance,
    cause: &EntryCause,
    assignment: &mut Assignment,
) {
    let passed = || {
        events.iter().find_map(|event| match event {
            Event::DeadlinePassed { due_at, .. } => Some(*due_at),
            _ => None,
        })
    };
    let is_escalated = matches!(cause, EntryCause::Overdue { .. });
    let times = match cause {
        EntryCause::Entered => return,
        // Deadlines act in order, unless one is stuck. So those after the passed one are still to come, even if they are late.
        EntryCause::Overdue { .. } => (passed().unwrap_or(now), now),
        EntryCause::Migrated | EntryCause::Reoffered => (now, now),
    };
    continue_fixed(&mut assignment.deadlines, &state_instance.deadlines, times);
    let tasks = state_instance.tasks.iter();
    let replaced: Vec<_> = tasks
        .filter(|task| assign::may_be_replaced(task, cause))
        .collect();
    for offer in &mut assignment.offers {
        let is_known = replaced.iter().any(|task| task.label == offer.label);
        let before = replaced
            .iter()
            .filter(|task| !is_known || task.label == offer.label);
        let open = before.flat_map(|task| &task.deadlines);
        continue_fixed(&mut offer.deadlines, open, times);
        if is_escalated {
            for deadline in &mut offer.deadlines {
                delay_escalation(deadline, now);
            }
        }
    }
}

/// The moment from which newly opened deadlines count. While the instance is suspended, this is the moment of the suspension.
pub(super) fn counting_from(instance: &Instance, now: Timestamp) -> Timestamp {
    match instance.status {
        Status::Suspended { at, .. } => at,
        _ => now,
    }
}

/// Opens deadlines that count from this moment. Deadlines that count from a claim are computed, too, so that a missing calendar
/// is found at once. They do not count yet unless the task `is_owned`.
pub(super) fn open(
    ids: &mut Ids<'_>,
    from: Timestamp,
    deadlines: &[Deadline],
    is_owned: bool,
    findings: &Findings,
) -> Result<Vec<OpenDeadline>, Fault> {
    let mut open = Vec::with_capacity(deadlines.len());
    for deadline in deadlines {
        let due_at =
            due(&deadline.when, from, findings).map_err(|message| Fault::new(ENTER, message))?;
        let from_claim = deadline.since == Since::Claimed;
        open.push(OpenDeadline {
            id: DeadlineId(ids()),
            due_at: (is_owned || !from_claim).then_some(due_at),
            since_claim: from_claim.then(|| deadline.when.clone()),
            repeat: deadline.repeat,
            action: deadline.action.clone(),
            count: 0,
        });
    }
    Ok(open)
}

/// The calendars that a claim of this task needs.
pub(super) fn calendars_of_claim(instance: &Instance, id: TaskId) -> BTreeSet<String> {
    let task = instance.open_task(id).map(|(_, task)| task);
    let deadlines = task.into_iter().flat_map(|task| &task.deadlines);
    let counted = deadlines.filter_map(|deadline| deadline.since_claim.as_ref());
    counted.filter_map(Due::calendar).cloned().collect()
}

/// The deadlines of this task that count from a claim, for a claim now.
pub(super) fn since_claim(
    instance: &Instance,
    now: Timestamp,
    id: TaskId,
    findings: &Findings,
) -> Result<Vec<OpenDeadline>, Rejection> {
    let task = instance.open_task(id).map(|(_, task)| task);
    let deadlines = task.into_iter().flat_map(|task| &task.deadlines);
    let counting = deadlines.filter_map(|deadline| {
        let when = deadline.since_claim.as_ref()?;
        let due_at = due(when, now, findings);
        let due_at = due_at.map_err(|message| {
            let code = CALENDAR.to_owned();
            Rejection::RefusedNow(Reason { code, message })
        });
        Some(due_at.map(|due_at| OpenDeadline {
            due_at: Some(due_at),
            ..deadline.clone()
        }))
    });
    counting.collect()
}

/// Each deadline at a fixed time that is not after `until` continues an open deadline with the same action and repetition, which a
/// suspension may have postponed. If there is no such open deadline, it has acted: it is due at its next repetition after `now`, or ends.
///
/// Deadlines act in order. So of those with the same action and repetition, the last ones are open, and each open one belongs to one
/// deadline. If a stuck deadline was overtaken by a later one, the stuck one takes the place of the later one, at its own time.
fn continue_fixed<'d>(
    deadlines: &mut Vec<Deadline>,
    open: impl IntoIterator<Item = &'d OpenDeadline>,
    (until, now): (Timestamp, Timestamp),
) {
    let mut left: Vec<(Timestamp, &OpenDeadline)> = Vec::new();
    for one in open {
        let Some(due_at) = one.due_at.filter(|_| one.since_claim.is_none()) else {
            continue;
        };
        // Several tasks may have the same deadline.
        let is_known = left.iter().any(|(at, known)| {
            *at == due_at && known.action == one.action && known.repeat == one.repeat
        });
        if !is_known {
            left.push((due_at, one));
        }
    }
    left.sort_by_key(|(due_at, _)| *due_at);
    let mut fixed: Vec<_> = deadlines.iter().enumerate().filter_map(fixed_at).collect();
    fixed.sort_unstable();
    let mut gone = BTreeSet::new();
    for (at, place) in fixed.into_iter().rev() {
        let deadline = &mut deadlines[place];
        let same = left
            .iter()
            .rposition(|(_, one)| one.action == deadline.action && one.repeat == deadline.repeat);
        let same = same.map(|same| left.remove(same).0);
        if at > until {
            continue;
        }
        match same.or_else(|| next_repetition(at, deadline.repeat, now)) {
            Some(next) => deadline.when = Due::At(next),
            None => drop(gone.insert(place)),
        }
    }
    let mut places = 0..;
    deadlines.retain(|_| places.next().is_some_and(|place| !gone.contains(&place)));
}

fn fixed_at((place, deadline): (usize, &Deadline)) -> Option<(Timestamp, usize)> {
    match deadline.when {
        Due::At(at) => Some((at, place)),
        Due::After(_) | Due::Working { .. } | Due::WorkingDays { .. } => None,
    }
}

/// The new tasks of an escalation are escalated only after a pause. Otherwise work would pass from one person to the next at once.
fn delay_escalation(deadline: &mut Deadline, now: Timestamp) {
    if deadline.action != OverdueAction::Escalate {
        return;
    }
    match &mut deadline.when {
        Due::At(at) => {
            let pause = SignedDuration::from_secs(i64::from(REPEAT_MIN));
            *at = (*at).max(now.saturating_add(pause).unwrap_or(now));
        }
        Due::After(seconds) | Due::Working { seconds, .. } => {
            *seconds = (*seconds).max(REPEAT_MIN);
        }
        // It ends on a later day.
        Due::WorkingDays { .. } => {}
    }
}

/// The moment at which a deadline is due that counts from `now`. The error says why there is none.
fn due(when: &Due, now: Timestamp, findings: &Findings) -> Result<Timestamp, String> {
    match when {
        Due::At(at) => Ok(*at),
        Due::After(seconds) => now
            .checked_add(SignedDuration::from_secs(i64::from(*seconds)))
            .map_err(|error| error.to_string()),
        Due::Working { seconds, calendar } => {
            let at = calendar_of(calendar, findings)?.after(now, *seconds);
            at.ok_or_else(|| {
                format!("the calendar {calendar:?} has fewer than {seconds} working seconds in twenty years")
            })
        }
        Due::WorkingDays { days, calendar } => {
            let at = calendar_of(calendar, findings)?.days_after(now, *days);
            at.ok_or_else(|| {
                format!(
                    "the calendar {calendar:?} has fewer than {days} working days in twenty years"
                )
            })
        }
    }
}

fn calendar_of(name: &str, findings: &Findings) -> Result<Arc<Calendar>, String> {
    let settings = findings
        .calendars
        .get(name)
        .ok_or_else(|| {
            format!("there is no calendar {name:?}; an operator adds it by `PUT /v1/calendars/{name}` or `wrkflw calendar set {name}`")
        })?;
    effort::calendar(settings).ok_or_else(|| format!("the calendar {name:?} cannot be read"))
}
