//! Migration to another version: which instances fit, what happens to their work, and what is refused.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;

use super::directory::TestDirectory;
use super::script::{Script, decide, json, offers, rejection};
use super::waits::subscription;
use crate::answer::{
    Assignment, AttributeValue, Deadline, Due, Offer, OverdueAction, Plan, Principal, Since,
};
use crate::command::Command;
use crate::event::Event;
use crate::execution::{ExecutionError, Outcome};
use crate::graph::{AttributeType, FiredBy, Graph, Join, StateKind};
use crate::ids::{ForkId, InstanceId, StateId};
use crate::instance::{ChildInstance, Entity, StateInstance, Status, Task};
use crate::question::EntryCause;
use crate::rejection::Rejection;

type Pairs<'a> = &'a [(&'a str, &'a str)];

pub(super) fn migrate(script: &mut Script, states: Pairs<'_>) -> Result<Outcome, ExecutionError> {
    let pairs = states
        .iter()
        .map(|(old, new)| ((*old).into(), (*new).into()));
    let command = Command::Migrate {
        instance: script.instance().id,
        version: 2,
        states: pairs.collect(),
    };
    script.run("ola", &command)
}

/// Everything the refusal says: field and code.
#[track_caller]
pub(super) fn unfit(script: &mut Script, states: Pairs<'_>) -> Vec<String> {
    let before = script.instance().clone();
    let refused = rejection(migrate(script, states));
    assert_eq!(*script.instance(), before);
    match refused {
        Rejection::Invalid(violations) => violations
            .into_iter()
            .map(|violation| format!("{} {}", violation.field, violation.code))
            .collect(),
        other => panic!("another refusal: {other:?}"),
    }
}

/// What happened, a word each.
fn summary(outcome: &Outcome) -> String {
    let words = outcome.events.iter().map(|event| match event {
        Event::TaskCancelled { reason, .. } => format!("CANCELLED:{}", reason.as_deref().unwrap()),
        Event::TaskReleased { owner, reason, .. } => {
            format!("RELEASED:{owner}:{}", reason.as_deref().unwrap())
        }
        Event::TaskRerouted { step, .. } => format!("REROUTED:{step}"),
        other => other.kind().to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn rename(graph: &mut Graph, old: &str, new: &str) {
    for state in graph.states.iter_mut().filter(|state| state.name == old) {
        state.name = new.into();
    }
    for way in &mut graph.transitions {
        if way.source == old {
            way.source = new.into();
        }
        for target in way.targets.iter_mut().filter(|target| *target == old) {
            *target = new.into();
        }
    }
    if graph.initial == old {
        graph.initial = new.into();
    }
}

fn labelled(label: &str, group: &str) -> Offer {
    Offer {
        label: label.into(),
        candidates: vec![Principal::Group(group.into())],
        ..Offer::default()
    }
}

fn of(offers: Vec<Offer>) -> Assignment {
    Assignment {
        offers,
        needed: 1,
        ..Assignment::default()
    }
}

/// `Review` is offered as `before` until it is migrated, and as `after` from then on.
fn between(before: Assignment, after: Assignment) -> Script {
    let assign = move |_: &str, cause: &EntryCause| match cause {
        EntryCause::Migrated => after.clone(),
        _ => before.clone(),
    };
    Script::new()
        .assigning_for(assign)
        .followed_by(|_| ())
        .started()
}

fn tasks(script: &Script) -> &[Task] {
    &script.instance().active[0].tasks
}

#[test]
fn a_state_instance_keeps_its_place_under_its_own_or_another_name() {
    let mut same = Script::new().followed_by(|_| ()).started();
    let state_instance = same.instance().active[0].id;
    let outcome = migrate(&mut same, &[]).expect("a migration");
    assert_eq!(
        summary(&outcome),
        "FLOW_MIGRATED STATE_REASSIGNED CANCELLED:migrated TASK_CREATED"
    );
    assert_eq!(outcome.instance.definition.version, 2);
    assert_eq!(outcome.instance.active[0].id, state_instance);

    let mut renamed = Script::new()
        .followed_by(|graph| rename(graph, "Review", "Check"))
        .started();
    assert_eq!(unfit(&mut renamed, &[]), ["/states/Review unknown_state"]);
    let outcome = migrate(&mut renamed, &[("Review", "Check")]).expect("a migration");
    assert_eq!(outcome.instance.active[0].name, "Check");
    let Event::FlowMigrated {
        previous, states, ..
    } = &outcome.events[0]
    else {
        panic!("it begins with the migration");
    };
    assert_eq!(previous.version, 1);
    assert_eq!(states, &BTreeMap::from([("Review".into(), "Check".into())]));
    // It continues with the new version's transitions.
    renamed.claim(tasks(&renamed)[1].id);
    let done = renamed.run("bob", &decide(tasks(&renamed)[1].id, "GO"));
    assert!(
        done.expect("a decision")
            .instance
            .status
            .ended_at()
            .is_some()
    );
}

#[test]
fn what_does_not_fit_is_named() {
    let state = |change: fn(&mut crate::graph::State)| {
        let change = move |graph: &mut Graph| change(&mut graph.states[0]);
        let mut script = Script::new().followed_by(change).started();
        unfit(&mut script, &[])
    };
    assert_eq!(
        state(|review| review.kind = StateKind::Wait),
        ["/states/Review other_kind"]
    );
    assert_eq!(
        state(|review| review.join = Join::All),
        ["/states/Review other_join"]
    );
    assert_eq!(
        state(|review| review.own_work = true),
        ["/states/Review other_own_work"]
    );
    let mut script = Script::new().followed_by(|_| ()).started();
    let astray = [("Other", "Review"), ("Nowhere", "Review")];
    assert_eq!(
        unfit(&mut script, &astray),
        ["/states/Nowhere not_in_use", "/states/Other not_in_use"]
    );
    assert_eq!(
        unfit(&mut script, &[("Review", "Nowhere")]),
        ["/states/Review unknown_state"]
    );
    assert_eq!(
        unfit(&mut script, &[("Review", "Rework")]),
        ["/states/Review other_own_work"]
    );
    let mut state_instances = Script::new().started();
    assert_eq!(unfit(&mut state_instances, &[]), ["/version same_version"]);
}

#[test]
fn data_and_attributes_must_be_what_the_target_declares() {
    let stricter = |graph: &mut Graph| {
        let schema = r#"{"type":"object","required":["title","sum"]}"#;
        graph.data_schema = Some(json(schema));
        graph
            .attributes
            .retain(|attribute| attribute.name != "title");
        graph.attributes[0].kind = AttributeType::Float;
    };
    let mut script = Script::new().followed_by(stricter).started();
    let mut instance = script.instance().clone();
    let price = AttributeValue::Decimal("1.50".into());
    let title = AttributeValue::Text("A plan".into());
    instance.attributes = [("price".into(), price), ("title".into(), title)].into();
    script.instance = Some(instance);
    assert_eq!(
        unfit(&mut script, &[]),
        [
            "/data/sum required",
            "/attributes/price undeclared_attribute",
            "/attributes/title undeclared_attribute"
        ]
    );
}

#[test]
fn a_join_that_waits_needs_a_join() {
    let join = |graph: &mut Graph, is_join: bool| {
        let other = graph.states.iter_mut().find(|state| state.name == "Other");
        other.expect("a state").join = if is_join { Join::All } else { Join::None };
    };
    for (is_join, expected) in [
        (true, vec![]),
        (false, vec!["/states/Other other_join".to_owned()]),
    ] {
        let mut graph = Script::new().graph().clone();
        join(&mut graph, true);
        let mut script = Script::new()
            .drawn(graph)
            .followed_by(|graph| join(graph, is_join))
            .started();
        let mut instance = script.instance().clone();
        let now = Timestamp::UNIX_EPOCH;
        let fork = ForkId(uuid::Uuid::from_u128(77));
        let mut waiting = StateInstance::new(StateId(uuid::Uuid::from_u128(78)), "Other", now);
        waiting.forks = vec![fork];
        instance.active[0].forks = vec![fork];
        instance.waiting.push(waiting);
        script.instance = Some(instance);
        if expected.is_empty() {
            let outcome = migrate(&mut script, &[]).expect("a migration");
            assert_eq!(outcome.instance.waiting.len(), 1);
        } else {
            assert_eq!(unfit(&mut script, &[]), expected);
        }
    }
}

#[test]
fn a_wait_goes_on_as_it_is_where_its_triggers_lead_somewhere() {
    let wait = |graph: &mut Graph, by: &[FiredBy]| {
        graph.states[0].kind = StateKind::Wait;
        graph.transitions[0].by = by.to_vec();
    };
    let child = |on_end: &str| ChildInstance {
        id: InstanceId(uuid::Uuid::from_u128(99)),
        key: "subflows".into(),
        entity: Entity {
            kind: "errand".into(),
            id: "2".into(),
        },
        data: json("{}"),
        on_end: Some(on_end.into()),
        detached: false,
        outcome: None,
        version: None,
    };
    let waiting = |by: &'static [FiredBy], subscribed: Option<&str>| {
        let mut script = Script::new()
            .followed_by(move |graph| wait(graph, by))
            .started();
        // A state instance of a wait state.
        let mut instance = script.instance().clone();
        let state_instance = &mut instance.active[0];
        state_instance.tasks.clear();
        state_instance.children.push(child("GO"));
        let subscriptions = &mut state_instance.subscriptions;
        subscriptions.extend(subscribed.map(|to| subscription(to, Some("errand-1"), false)));
        script.instance = Some(instance);
        script.redraw(|graph| wait(graph, &[FiredBy::Child, FiredBy::Signal]));
        script
    };
    let mut script = waiting(&[FiredBy::Child, FiredBy::Signal], Some("GO"));
    let before = script.instance().active[0].clone();
    let outcome = migrate(&mut script, &[]).expect("a migration");
    assert_eq!(summary(&outcome), "FLOW_MIGRATED");
    assert_eq!(outcome.instance.active[0], before);
    let unknown = ["/states/Review unknown_trigger"];
    let mut script = waiting(&[FiredBy::Signal], Some("GO"));
    assert_eq!(unfit(&mut script, &[]), unknown);
    let mut script = waiting(&[FiredBy::Child], Some("GO"));
    assert_eq!(unfit(&mut script, &[]), unknown);
    migrate(&mut waiting(&[FiredBy::Child], None), &[]).expect("a migration");
}

#[test]
fn an_owner_keeps_what_is_offered_again() {
    let work = |group: &str| of(vec![labelled("read", group), labelled("sign", group)]);
    let mut script = between(work("crew"), work("crew"));
    let (read, sign) = (tasks(&script)[0].id, tasks(&script)[1].id);
    script.claim(read);
    let outcome = migrate(&mut script, &[]).expect("a migration");
    assert_eq!(
        summary(&outcome),
        "FLOW_MIGRATED STATE_REASSIGNED CANCELLED:migrated TASK_CREATED"
    );
    assert_eq!(tasks(&script)[0].owner(), Some("bob"));
    assert!(tasks(&script)[0].status.is_open());
    assert_eq!(tasks(&script)[1].id, sign);
    assert!(!tasks(&script)[1].status.is_open());
    let labels: Vec<_> = tasks(&script)
        .iter()
        .filter(|task| task.status.is_open())
        .map(|task| &task.label)
        .collect();
    assert_eq!(labels, ["read", "sign"]);
}

#[test]
fn an_owner_loses_what_they_may_not_do_or_nobody_offers() {
    let lost = |after: Assignment, directory: TestDirectory| {
        let directory = Rc::new(RefCell::new(directory));
        let mut script = between(of(vec![labelled("read", "crew")]), after).living_in(&directory);
        let task = script.task(0);
        script.claim(task);
        summary(&migrate(&mut script, &[]).expect("a migration"))
    };
    let start = "FLOW_MIGRATED STATE_REASSIGNED";
    let others = TestDirectory::new().group("desk", &["dan"]);
    // Another label.
    assert_eq!(
        lost(of(vec![labelled("sign", "crew")]), TestDirectory::new()),
        format!("{start} CANCELLED:migrated TASK_CREATED")
    );
    // Offered to others alone.
    assert_eq!(
        lost(of(vec![labelled("read", "desk")]), others),
        format!("{start} REROUTED:migrated RELEASED:bob:lost_eligibility")
    );
    // Excluded from now on.
    let without_bob = Assignment {
        exclude: vec!["bob".into()],
        ..of(vec![labelled("read", "crew")])
    };
    assert_eq!(
        lost(without_bob, TestDirectory::new()),
        format!("{start} CANCELLED:migrated TASK_CREATED")
    );
    // Given to somebody else.
    let mut given = labelled("read", "crew");
    given.owner = Some("dan".into());
    assert_eq!(
        lost(of(vec![given]), TestDirectory::new()),
        format!("{start} CANCELLED:migrated TASK_CREATED")
    );
}

#[test]
fn votes_are_kept() {
    let two = || Assignment {
        needed: 2,
        ..of(vec![
            labelled("one", "crew"),
            labelled("two", "crew"),
            labelled("three", "crew"),
        ])
    };
    let mut script = between(two(), two()).planning(|_, _| Ok(Plan::default()));
    let first = script.task(0);
    script.claim(first);
    script.run("bob", &decide(first, "GO")).expect("a vote");
    migrate(&mut script, &[]).expect("a migration");
    assert_eq!(
        tasks(&script)[0].decision().map(|vote| vote.actor.as_str()),
        Some("bob")
    );
    // Nobody votes twice in one state instance, whatever was offered anew.
    let again = script.task(3);
    let refused = script.run("bob", &Command::Claim { task: again });
    assert_eq!(super::script::forbidden(refused), "already_decided");
}

#[test]
fn deadlines_are_counted_anew() {
    let due = |seconds: u32| Assignment {
        deadlines: vec![Deadline {
            when: Due::After(seconds),
            since: Since::Created,
            repeat: None,
            action: OverdueAction::Remind,
        }],
        ..offers(&["crew"])
    };
    let mut script = between(due(100), due(500));
    let begun = script.instance().updated_at.as_second();
    let old = script.instance().active[0].deadlines.clone();
    assert_eq!(old[0].due_at.map(Timestamp::as_second), Some(begun + 100));
    migrate(&mut script, &[]).expect("a migration");
    let new = &script.instance().active[0];
    assert_eq!(new.deadlines.len(), 1);
    assert_ne!(new.deadlines[0].id, old[0].id);
    let now = script.instance().updated_at.as_second();
    assert_eq!(new.due_at.map(Timestamp::as_second), Some(now + 500));

    // Time stands still while it is suspended.
    let mut script = between(due(100), due(500));
    let mut instance = script.instance().clone();
    let at = instance.updated_at;
    instance.status = Status::Suspended {
        reason: "a strike".into(),
        by: "ola".into(),
        at,
    };
    script.instance = Some(instance);
    script.pass_time(1_000);
    let outcome = migrate(&mut script, &[]).expect("a migration");
    assert!(matches!(outcome.instance.status, Status::Suspended { .. }));
    let due_at = outcome.instance.active[0].due_at;
    assert_eq!(due_at.map(Timestamp::as_second), Some(at.as_second() + 500));
}

#[test]
fn nobody_left_refuses_the_whole() {
    let directory = || Rc::new(RefCell::new(TestDirectory::new().group("bench", &[])));
    let empty = || of(vec![labelled("read", "bench")]);
    let suspend = |script: &mut Script| {
        let mut instance = script.instance().clone();
        instance.status = Status::Suspended {
            reason: "a strike".into(),
            by: "ola".into(),
            at: instance.updated_at,
        };
        script.instance = Some(instance);
    };
    for is_suspended in [false, true] {
        let mut script =
            between(of(vec![labelled("read", "crew")]), empty()).living_in(&directory());
        if is_suspended {
            suspend(&mut script);
        }
        let before = script.instance().clone();
        let refused = rejection(migrate(&mut script, &[]));
        let states = vec!["Review".to_owned()];
        assert_eq!(refused, Rejection::NobodyLeft { states });
        assert_eq!(*script.instance(), before);
    }
    // A manager or a fallback group is somebody.
    let with_manager = Rc::new(RefCell::new(
        TestDirectory::new()
            .group("bench", &[])
            .manager("ann", "max"),
    ));
    let mut script = between(of(vec![labelled("read", "crew")]), empty()).living_in(&with_manager);
    let outcome = migrate(&mut script, &[]).expect("a migration");
    assert!(summary(&outcome).ends_with("REROUTED:manager"));
    // Where nobody was able before, nothing is lost.
    let assign = |_: &str, _: &EntryCause| of(vec![labelled("read", "bench")]);
    let mut script = Script::new()
        .living_in(&directory())
        .assigning_for(assign)
        .followed_by(|_| ())
        .started();
    assert!(script.instance().active[0].unassignable_since.is_some());
    migrate(&mut script, &[]).expect("a migration");
    assert!(script.instance().active[0].unassignable_since.is_some());
}

#[test]
fn what_has_ended_stays_as_it_is() {
    let mut script = Script::new().followed_by(|_| ()).claimed();
    script.go().expect("an end");
    let refused = rejection(migrate(&mut script, &[]));
    assert!(matches!(refused, Rejection::Ended { .. }));
}

#[test]
fn the_version_says_whether_an_instance_is_sole() {
    let sole = |graph: &mut Graph| graph.sole_per_entity = true;
    let mut script = Script::new().followed_by(sole).started();
    assert!(!script.instance().sole);
    let outcome = migrate(&mut script, &[]).expect("a migration");
    assert!(outcome.instance.sole);
    let mut graph = Script::new().graph().clone();
    sole(&mut graph);
    assert!(Script::new().drawn(graph).started().instance().sole);
}
