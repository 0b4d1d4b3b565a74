//! Random commands and deadlines that pass in time, late, twice or long after, compared with a count of those that passed.

use std::collections::BTreeSet;

use jiff::Timestamp;
use proptest::prelude::*;

use super::deadlines::{after, claimed, due, every, graph, kinds, late, open, second};
use super::script::{Script, decide, enter, offers};
use crate::answer::{OverdueAction, Plan};
use crate::apply::{Stamp, apply};
use crate::command::Command;
use crate::event::Event;
use crate::execution::Outcome;
use crate::ids::{DeadlineId, StateId, TaskId};
use crate::instance::{Instance, OpenDeadline, Status, Task};

const PEOPLE: [&str; 3] = ["bob", "cid", "dan"];

#[derive(Debug, Clone)]
enum WatchStep {
    /// Any deadline so far, with any of its due times.
    Pass(prop::sample::Index),
    /// The next one that is open.
    PassNext,
    Claim(usize, prop::sample::Index),
    Decide(prop::sample::Index),
    Release(prop::sample::Index),
    SuspendTask(prop::sample::Index, Option<i64>),
    ResumeTask(prop::sample::Index),
    Suspend,
    Resume,
}

fn step() -> impl Strategy<Value = (i64, WatchStep)> {
    let any = any::<prop::sample::Index>;
    let step = prop_oneof![
        3 => any().prop_map(WatchStep::Pass),
        5 => Just(WatchStep::PassNext),
        3 => (0..PEOPLE.len(), any()).prop_map(|(person, task)| WatchStep::Claim(person, task)),
        1 => any().prop_map(WatchStep::Decide),
        1 => any().prop_map(WatchStep::Release),
        1 => (any(), prop::option::of(1..300_i64))
            .prop_map(|(task, until)| WatchStep::SuspendTask(task, until)),
        2 => any().prop_map(WatchStep::ResumeTask),
        1 => Just(WatchStep::Suspend),
        2 => Just(WatchStep::Resume),
    ];
    (1..150_i64, step)
}

/// Two of three vote, then somebody works; deadlines of all kinds watch over both.
fn flow() -> Script {
    let plan = |state: &str, instance: &Instance| {
        let state_instance = instance
            .active
            .iter()
            .find(|state_instance| state_instance.name == state);
        let votes = state_instance.map_or(0, |state_instance| {
            let decided = state_instance
                .tasks
                .iter()
                .filter(|task| task.decision().is_some());
            decided.count()
        });
        Ok(match (state, votes) {
            ("Review", 0) => Plan::default(),
            ("Review", _) => enter(&["Other"]),
            _ => enter(&["Done"]),
        })
    };
    let assign = |state: &str| {
        let mut assignment = offers(&["crew", "crew", "crew"]);
        assignment.deadlines = vec![
            every(70, after(60, OverdueAction::Remind)),
            after(400, OverdueAction::Escalate),
        ];
        if state == "Review" {
            assignment.deadlines.push(every(300, after(900, late())));
        }
        assignment.offers[0].deadlines = vec![
            every(60, after(100, OverdueAction::Release)),
            after(250, OverdueAction::Escalate),
        ];
        assignment.offers[1].deadlines = vec![
            every(90, after(80, OverdueAction::Remind)),
            claimed(after(50, OverdueAction::Release)),
            claimed(every(65, after(20, OverdueAction::Remind))),
        ];
        assignment
    };
    Script::new()
        .drawn(graph())
        .planning(plan)
        .assigning(assign)
}

fn earliest(deadlines: &[OpenDeadline]) -> Option<Timestamp> {
    deadlines
        .iter()
        .filter_map(|deadline| deadline.due_at)
        .min()
}

/// Those open deadlines that are not of a suspended task.
fn counting(instance: &Instance) -> Vec<(StateId, Option<TaskId>, OpenDeadline)> {
    let mut all = open(instance);
    let rests = |id: &TaskId| {
        let task = instance.task(*id);
        task.is_some_and(|task| task.suspended.is_some())
    };
    all.retain(|(_, task, _)| !task.as_ref().is_some_and(rests));
    all
}

/// Invariants of every instance with deadlines.
fn holds(instance: &Instance) {
    for past in &instance.past {
        assert_eq!(
            past.state.deadlines,
            [],
            "a state instance's deadlines end with it"
        );
    }
    for state_instance in instance.state_instances() {
        for task in &state_instance.tasks {
            let watched = task.status.is_open() || task.deadlines.is_empty();
            assert!(watched, "a task's deadlines end with it");
            for deadline in &task.deadlines {
                let counts = deadline.due_at.is_some();
                let from_claim = deadline.since_claim.is_some();
                assert!(counts || from_claim, "{deadline:?}");
                let is_owned = task.owner().is_some();
                assert!(!counts || !from_claim || is_owned, "nobody owns {task:?}");
            }
        }
    }
    for state_instance in &instance.active {
        let next = earliest(&state_instance.deadlines);
        assert!(next.is_none() || state_instance.due_at == next);
        for task in &state_instance.tasks {
            let next = earliest(task.counting());
            assert!(next.is_none() || task.due_at == next);
            if task.suspended.is_some() {
                assert!(task.due_at.is_none() && task.status.is_open(), "{task:?}");
            }
        }
    }
}

fn folds(before: Instance, outcome: &Outcome, actor: Option<&str>) {
    let after = &outcome.instance;
    let folded = outcome.events.iter().fold(before, |instance, event| {
        let stamp = Stamp {
            instance: after.id,
            revision: after.revision,
            at: after.updated_at,
            actor,
        };
        apply(Some(instance), event, stamp).expect("an event that can follow")
    });
    assert_eq!(folded, *after);
}

/// What has passed, and what has ever been due.
#[derive(Default)]
struct Log {
    passed: BTreeSet<(DeadlineId, u32)>,
    seen: BTreeSet<(DeadlineId, Timestamp)>,
}

impl Log {
    fn see(&mut self, instance: &Instance) {
        let tasks = instance.active.iter().flat_map(|state| &state.tasks);
        self.seen.extend(tasks.filter_map(Task::resumption));
        for (_, _, deadline) in open(instance) {
            self.seen
                .extend(deadline.due_at.map(|due_at| (deadline.id, due_at)));
        }
    }

    /// A deadline command acts exactly if the deadline was open and due at that moment.
    fn note(&mut self, before: &Instance, outcome: &Outcome, id: DeadlineId, due_at: Timestamp) {
        let mut tasks = before.active.iter().flat_map(|state| &state.tasks);
        let resumed = tasks.find(|task| task.resumption() == Some((id, due_at)));
        if resumed.is_some() && before.status == Status::Running {
            assert_eq!(kinds(&outcome.events), ["TASK_RESUMED"]);
            return;
        }
        let was = counting(before)
            .into_iter()
            .find(|(.., open)| open.id == id);
        let was = was.filter(|(.., open)| open.due_at == Some(due_at));
        let Some((state, task, was)) = was.filter(|_| before.status == Status::Running) else {
            assert_eq!((&outcome.events[..], &outcome.instance), (&[][..], before));
            return;
        };
        let now = outcome.instance.updated_at;
        match &outcome.events[0] {
            Event::DeadlinePassed {
                deadline,
                state: of,
                task: about,
                count,
                next,
                late,
                ..
            } => {
                assert_eq!((*deadline, *of, *about), (id, state, task));
                assert_eq!(*count, was.count + 1);
                assert_eq!(next.is_some(), was.repeat.is_some());
                assert!(
                    next.is_none_or(|next| next > now),
                    "it is not due at once again"
                );
                assert_eq!(late.cast_signed(), now.duration_since(due_at).as_secs());
                assert!(self.passed.insert((id, *count)), "it passes once");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The next deadline in time, if there is one.
fn next(instance: &Instance) -> Option<(DeadlineId, Timestamp)> {
    let all = counting(instance).into_iter();
    let all = all.filter_map(|(.., deadline)| Some((deadline.due_at?, deadline.id)));
    let tasks = instance.active.iter().flat_map(|state| &state.tasks);
    let resumptions = tasks.filter_map(Task::resumption);
    let all = all.chain(resumptions.map(|(id, due_at)| (due_at, id)));
    all.min().map(|(due_at, id)| (id, due_at))
}

fn command(script: &Script, step: &WatchStep) -> Option<(String, Command)> {
    let instance = script.instance();
    let tasks: Vec<_> = instance
        .active
        .iter()
        .flat_map(|state_instance| &state_instance.tasks)
        .collect();
    let task = |index: &prop::sample::Index| {
        let task = (!tasks.is_empty()).then(|| tasks[index.index(tasks.len())])?;
        Some((task.id, task.owner().unwrap_or("bob").to_owned()))
    };
    let id = instance.id;
    Some(match step {
        WatchStep::Claim(person, index) => {
            let (task, _) = task(index)?;
            (PEOPLE[*person].to_owned(), Command::Claim { task })
        }
        WatchStep::Decide(index) => {
            let (task, owner) = task(index)?;
            (owner, decide(task, "GO"))
        }
        WatchStep::Release(index) => {
            let (task, owner) = task(index)?;
            (owner, Command::Release { task })
        }
        WatchStep::SuspendTask(index, until) => {
            let (task, owner) = task(index)?;
            let until = until.map(|seconds| second(script.now() + 150 + seconds));
            let reason = None;
            let command = Command::SuspendTask {
                task,
                reason,
                until,
            };
            (owner, command)
        }
        WatchStep::ResumeTask(index) => {
            let (task, owner) = task(index)?;
            (owner, Command::ResumeTask { task })
        }
        WatchStep::Suspend => {
            let reason = "pause".into();
            let instance = id;
            ("amy".to_owned(), Command::Suspend { instance, reason })
        }
        WatchStep::Resume => ("amy".to_owned(), Command::Resume { instance: id }),
        WatchStep::Pass(_) | WatchStep::PassNext => return None,
    })
}

proptest! {
    #[test]
    fn each_deadline_passes_once_at_most_and_never_after_its_work(
        steps in prop::collection::vec(step(), 0..80)
    ) {
        let mut script = flow().started();
        let mut log = Log::default();
        log.see(script.instance());
        for (pause, step) in steps {
            let before = script.instance().clone();
            let then = script.now() + pause;
            let passing = match &step {
                WatchStep::PassNext => next(&before),
                WatchStep::Pass(index) => {
                    let seen: Vec<_> = log.seen.iter().copied().collect();
                    Some(seen[index.index(seen.len())])
                }
                _ => None,
            };
            if let Some((id, due_at)) = passing {
                script.at(then.max(due_at.as_second()));
                match due(&mut script, id, due_at) {
                    Ok(outcome) => {
                        log.note(&before, &outcome, id, due_at);
                        folds(before, &outcome, None);
                    }
                    Err(_) => prop_assert!(
                        matches!(before.status, Status::Suspended { .. }),
                        "only a suspension holds a deadline up"
                    ),
                }
            } else if let Some((actor, command)) = command(&script, &step) {
                script.at(then);
                if let Ok(outcome) = script.run(&actor, &command) {
                    folds(before, &outcome, Some(&actor));
                }
            }
            holds(script.instance());
            log.see(script.instance());
        }
    }
}
