//! The shown part of instances with long histories and long texts.

use jiff::Timestamp;
use uuid::Uuid;

use super::samples::{Random, complete, input_of, instance};
use super::*;
use crate::ids::StateId;

/// The decision of this person, with an input of this many bytes.
fn decision(number: usize, bytes: usize) -> Decision {
    Decision {
        outcome: "GO".into(),
        actor: format!("person-{number}"),
        on_behalf_of: None,
        comment: None,
        input: input_of(bytes),
        decided_at: Timestamp::UNIX_EPOCH,
    }
}

/// Past states in this order, each with a decision of this many bytes.
fn past(lengths: &[usize]) -> Instance {
    let mut instance = instance();
    for (number, bytes) in lengths.iter().enumerate() {
        let id = Uuid::from_u128(number as u128);
        let mut task = Random::new(1).task();
        (task.id, task.candidates, task.label) = (TaskId(id), vec![], String::new());
        complete(&mut task, decision(number, *bytes));
        let mut state = StateInstance::new(StateId(id), "Work", Timestamp::UNIX_EPOCH);
        state.tasks = vec![task];
        instance.past.push(PastState {
            state,
            left_at: Timestamp::UNIX_EPOCH,
            left_trigger: "GO".into(),
            actor: None,
        });
    }
    instance
}

/// The numbers of the decisions whose texts are shown.
fn shown_decisions(instance: &Instance) -> Vec<u128> {
    let shown = Shown::of(instance);
    let tasks = shown.past.iter().flat_map(|past| &past.state.tasks);
    let tasks = tasks.filter(|task| shown.shows_texts(task.id));
    tasks.map(|task| task.id.0.as_u128()).collect()
}

#[test]
fn who_decided_is_told_of_every_state() {
    let instance = past(&[60_000; 150]);
    let names: Vec<_> = deciders(&instance)
        .map(|decider| decider.decision.actor.clone())
        .collect();
    let all: Vec<_> = (0..150).map(|number| format!("person-{number}")).collect();
    assert_eq!(names, all);
    let shown = Shown::of(&instance);
    assert_eq!(shown.past.len(), 100);
    let omitted = Omitted {
        texts: 149,
        states: 50,
    };
    assert_eq!(shown.omitted, omitted);
    assert_eq!(shown_decisions(&instance), [149]);
}

#[test]
fn whoever_writes_much_hides_nobody_elses_words() {
    // A long text after and before short ones goes; the short ones stay, however old.
    assert_eq!(
        shown_decisions(&past(&[100, 200, 50_000, 300, 60_000])),
        [0, 1, 2, 3]
    );
    assert_eq!(shown_decisions(&past(&[60_000, 100, 50_000])), [1, 2]);
    // Of equal ones the older go.
    assert_eq!(shown_decisions(&past(&[30_000, 30_000, 30_000])), [1, 2]);
    assert_eq!(shown_decisions(&past(&[65_536, 0])), [0, 1]);
    assert_eq!(Shown::of(&past(&[10, 20])).omitted, Omitted::default());
}

#[test]
fn an_instance_takes_so_many_decisions() {
    let count = |instance: &Instance| check_decision(instance, None, "{}");
    assert_eq!(count(&past(&[0; 500])), Ok(()));
    let full = count(&past(&[0; 700])).expect_err("too many");
    assert_eq!(full.code(), "limit_reached");
    assert!(check(&past(&[0; 700])).is_err());
}

#[test]
fn what_all_decisions_say_has_an_end_too() {
    let mut instance = past(&[80_000; 50]);
    let checked = |instance: &Instance, bytes: usize| {
        check_decision(instance, None, input_of(bytes).as_str())
    };
    assert!(checked(&instance, 12_000).is_ok());
    assert!(checked(&instance, 30_000).is_err());
    instance.past.extend(past(&[80_000; 4]).past);
    assert_eq!(checked(&instance, 0), Ok(()));
    assert!(checked(&instance, 1_000).is_err());
}

/// A blind state of which this task and the next were decided with so many bytes each, and two are open.
fn vote(decided: [usize; 2]) -> Instance {
    let mut instance = instance();
    let mut state = past(&decided).past.swap_remove(0).state;
    state.blind = true;
    state.tasks = (0..4).map(|_| Random::new(1).task()).collect();
    for (number, task) in state.tasks.iter_mut().enumerate() {
        task.status = TaskStatus::Pending;
        if let Some(bytes) = decided.get(number) {
            complete(task, decision(number, *bytes));
        }
    }
    instance.active.push(state);
    instance
}

#[test]
fn a_blind_vote_has_room_that_tells_nothing_of_hidden_texts() {
    let share = TEXTS_BYTES_MAX / 8;
    assert_eq!(room(&vote([0, 0])), share);
    let mut vote = vote([share, share]);
    assert_eq!(room(&vote), share);

    // An escalation replaces a task, at whatever time.
    let mut late = vote.active[0].tasks.pop().expect("a task");
    vote.active[0].tasks.push(late.clone());
    late.status = TaskStatus::Cancelled {
        owner: None,
        cancelled_at: late.created_at,
        reason: None,
    };
    vote.active[0].tasks.push(late);
    assert_eq!(room(&vote), share);

    // Others who decide beside the vote have a share of the rest.
    let mut beside = vote.active[0].clone();
    beside.blind = false;
    beside.tasks.retain(|task| task.decision().is_some());
    vote.active.push(beside);
    assert_eq!(room(&vote), (TEXTS_BYTES_MAX - 2 * share) / 8);
}

/// If the work in a blind state grows and each decision is as long as it may be, all texts fit still.
#[test]
fn the_texts_of_a_blind_state_that_grows_fit() {
    let mut vote = vote([0, 0]);
    vote.active[0].tasks.clear();
    for number in 0..40 {
        let mut task = Random::new(1).task();
        task.status = TaskStatus::Pending;
        vote.active[0].tasks.push(task);
        let decision = decision(number, room(&vote));
        let task = vote.active[0].tasks.last_mut().expect("it was added");
        complete(task, decision);
    }
    let length = text_bytes(vote.active.iter());
    assert!(length <= TEXTS_BYTES_MAX, "{length}");
}

#[test]
fn states_left_keep_what_they_have_and_have_no_more_than_a_command_reads() {
    // These states have no decisions and no texts. Their size is the data of their items.
    let mut instance = past(&[0; 64]);
    for past in &mut instance.past {
        past.state.tasks[0].status = TaskStatus::Cancelled {
            owner: None,
            cancelled_at: Timestamp::UNIX_EPOCH,
            reason: None,
        };
        past.state.data = Some(input_of(ALL_BYTES_MAX / 80));
    }
    assert_eq!(check(&instance), Ok(()));
    for past in &mut instance.past {
        past.state.data = Some(input_of(ALL_BYTES_MAX / 60));
    }
    let refused = check(&instance).expect_err("too much");
    assert_eq!(refused.code(), "limit_reached");
    assert!(
        refused.to_string().contains("in all its states"),
        "{refused}"
    );
}

#[test]
fn nobody_acts_with_more_groups_than_can_be_told() {
    let mut actor = Actor::host();
    actor.groups = vec!["g".repeat(100); 400];
    assert_eq!(check_actor(&actor), Ok(()));
    actor.permissions = vec!["p".repeat(100); 100];
    let refused = check_actor(&actor).expect_err("too many");
    assert_eq!(refused.code(), "limit_reached");
}
