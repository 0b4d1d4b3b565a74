//! Targets with keys and data: one branch per item.

use super::script::{Script, decide, enter, fault, offers, rejection};
use super::spawn::{graph, spawn};
use crate::answer::{Next, Plan, Target};
use crate::command::Command;
use crate::execution::{ExecutionError, Outcome};
use crate::instance::{Instance, StateInstance, Status};
use crate::question::Occurrence;
use crate::rejection::Rejection;
use crate::shown::BRANCHES_MAX;

fn item(state: &str, key: &str) -> Target {
    Target {
        key: Some(key.into()),
        ..Target::new(state)
    }
}

fn items(state: &str, keys: &[&str]) -> Vec<Target> {
    keys.iter().map(|key| item(state, key)).collect()
}

fn entering(targets: Vec<Target>) -> Plan {
    Plan {
        next: Next::Enter(targets),
        ..Plan::default()
    }
}

fn spawning(targets: Vec<Target>) -> Plan {
    Plan {
        next: Next::Spawn(targets),
        ..Plan::default()
    }
}

/// `Review` has two tasks. ASK and FORK do what `plan_for` says, of the state and its key; GO leads to the join, and from it to the
/// end.
fn flow(plan_for: impl Fn(&str, Option<&str>) -> Plan + 'static) -> Script {
    let plan = move |occurrence: &Occurrence, state: &str, instance: &Instance| {
        let mut active = instance.active.iter();
        let here = active.find(|one| one.id.to_string() == occurrence.state_instance);
        Ok(match (occurrence.trigger.as_str(), state) {
            ("GO", "Meet") => enter(&["Done"]),
            ("GO", _) => enter(&["Meet"]),
            _ => plan_for(state, here.and_then(|one| one.key.as_deref())),
        })
    };
    let assign = |state: &str| match state {
        "Review" => offers(&["crew", "crew"]),
        _ => offers(&["crew"]),
    };
    let script = Script::new().drawn(graph()).planning_for(plan);
    script.assigning(assign).started()
}

fn of<'s>(script: &'s Script, name: &str, key: &str) -> &'s StateInstance {
    let mut active = script.instance().active.iter();
    let found = active.find(|one| one.name == name && one.key.as_deref().unwrap_or("") == key);
    found.unwrap_or_else(|| panic!("{name} {key} is not active"))
}

/// Somebody new decides so in this state, for the item with this key; `""` is none.
fn try_step(
    script: &mut Script,
    (name, key): (&str, &str),
    outcome: &str,
) -> Result<Outcome, ExecutionError> {
    let mut tasks = of(script, name, key).tasks.iter();
    let open = tasks.find(|task| task.status.is_open());
    let (task, person) = (open.expect("an open task").id, format!("p{}", script.now()));
    script
        .run(&person, &Command::Claim { task })
        .expect("a claim");
    script.run(&person, &decide(task, outcome))
}

#[track_caller]
fn step(script: &mut Script, place: (&str, &str), outcome: &str) -> Outcome {
    try_step(script, place, outcome).expect("a decision")
}

fn here(instance: &Instance) -> Vec<(&str, Option<&str>)> {
    let active = instance.active.iter();
    active
        .map(|one| (one.name.as_str(), one.key.as_deref()))
        .collect()
}

/// `Other` is asked for another state with the same key.
fn ordered(keys: &'static [&str]) -> Script {
    flow(move |state, key| match (state, key) {
        ("Other", Some(key)) => entering(items("Review", &[key])),
        _ => entering(items("Other", keys)),
    })
}

#[test]
fn one_branch_per_item_meets_in_the_join() {
    let mut script = ordered(&["a", "b", "c"]);
    let entered = step(&mut script, ("Review", ""), "ASK").instance;
    let all = ["a", "b", "c"].map(|key| ("Other", Some(key)));
    assert_eq!(here(&entered), all);
    step(&mut script, ("Other", "b"), "GO");
    step(&mut script, ("Other", "a"), "GO");
    assert_eq!(here(script.instance()), [("Other", Some("c"))]);
    step(&mut script, ("Other", "c"), "GO");
    assert_eq!(here(script.instance()), [("Meet", None)]);
    assert_eq!(of(&script, "Meet", "").predecessors.len(), 3);
    let past = script.instance().past.iter();
    let keys: Vec<_> = past.filter_map(|past| past.state.key.as_deref()).collect();
    assert_eq!(keys, ["b", "a", "c"], "what they were for is kept");
    step(&mut script, ("Meet", ""), "GO");
    assert!(matches!(script.instance().status, Status::Completed { .. }));
}

#[test]
fn a_branch_goes_on_with_its_item() {
    let mut script = ordered(&["a", "b"]);
    step(&mut script, ("Review", ""), "ASK");
    let fork = of(&script, "Other", "a").forks.clone();
    step(&mut script, ("Other", "a"), "ASK");
    assert_eq!(of(&script, "Review", "a").forks, fork, "no fork of its own");
    step(&mut script, ("Review", "a"), "GO");
    assert_eq!(here(script.instance()), [("Other", Some("b"))]);
    step(&mut script, ("Other", "b"), "GO");
    assert_eq!(here(script.instance()), [("Meet", None)]);
}

/// The state between has no key, and its successor names it again.
#[test]
fn a_branch_that_names_its_key_again_opens_no_fork() {
    let mut script = flow(|state, key| match (state, key) {
        ("Review", None) => entering(items("Other", &["a", "b"])),
        ("Other", Some("a")) => enter(&["Review"]),
        (_, key) => entering(items("Other", &[key.unwrap_or("a")])),
    });
    step(&mut script, ("Review", ""), "ASK");
    let fork = of(&script, "Other", "b").forks.clone();
    step(&mut script, ("Other", "a"), "ASK");
    script = script.planning_for(|occurrence, _, _| {
        Ok(match occurrence.trigger.as_str() {
            "ASK" => entering(items("Other", &["a"])),
            _ => enter(&["Meet"]),
        })
    });
    step(&mut script, ("Review", ""), "ASK");
    assert_eq!(of(&script, "Other", "a").forks, fork);
    step(&mut script, ("Other", "a"), "GO");
    assert_eq!(here(script.instance()), [("Other", Some("b"))], "it waits");
}

/// Of one item among none, the join waits for it alone and not for the branches of the fork around.
#[test]
fn a_single_item_has_a_fork_of_its_own() {
    let mut script = flow(|state, key| match (state, key) {
        ("Review", None) => enter(&["Other", "Reminder"]),
        _ => entering(items("Review", &["only"])),
    });
    step(&mut script, ("Review", ""), "FORK");
    let around = of(&script, "Reminder", "").forks.clone();
    step(&mut script, ("Other", ""), "ASK");
    let inside = of(&script, "Review", "only").forks.clone();
    assert_eq!((inside.len(), &inside[..1]), (2, &around[..]));
    step(&mut script, ("Review", "only"), "GO");
    let met = [("Reminder", None), ("Meet", None)];
    assert_eq!(here(script.instance()), met, "the join is the item's own");
    assert_eq!(of(&script, "Meet", "").forks, around);
}

#[test]
fn items_that_come_one_by_one_are_awaited_with_the_state_that_spawns_them() {
    let mut script = flow(|_, _| spawning(items("Other", &["a"])));
    step(&mut script, ("Review", ""), "ASK");
    let task = of(&script, "Review", "").tasks[1].id;
    let command = Command::Claim { task };
    script.run("eve", &command).expect("a claim");
    step(&mut script, ("Other", "a"), "GO");
    assert_eq!(here(script.instance()), [("Review", None)]);
    script.run("eve", &decide(task, "GO")).expect("a decision");
    assert_eq!(here(script.instance()), [("Meet", None)]);
}

/// The first decision asks for `a`, the second for this item.
fn twice(second: &'static str) -> Result<Outcome, ExecutionError> {
    let script = flow(|_, _| Plan::default());
    let plan = move |_: &Occurrence, _: &str, instance: &Instance| {
        Ok(spawning(items(
            "Other",
            &[if instance.active.len() == 1 {
                "a"
            } else {
                second
            }],
        )))
    };
    let mut script = script.planning_for(plan);
    step(&mut script, ("Review", ""), "ASK");
    try_step(&mut script, ("Review", ""), "ASK")
}

#[test]
fn no_two_active_state_instances_have_the_same_name_and_key() {
    assert_eq!(
        fault(twice("a")),
        "transition: Other is active already with the key \"a\""
    );
    let others = twice("b").expect("another item").instance;
    let active = [("Review", None), ("Other", Some("a")), ("Other", Some("b"))];
    assert_eq!(here(&others), active);
}

/// A state that is left, or cancelled by the plan, leaves its key.
#[test]
fn a_key_is_free_again_once_its_state_is_left() {
    let mut script = flow(|_, _| entering(items("Other", &["a"])));
    step(&mut script, ("Review", ""), "ASK");
    let plan = |_: &Occurrence, _: &str, _: &Instance| Ok(entering(items("Review", &["a"])));
    script = script.planning_for(plan);
    step(&mut script, ("Other", "a"), "ASK");
    let plan = |_: &Occurrence, _: &str, _: &Instance| Ok(entering(items("Other", &["a"])));
    script = script.planning_for(plan);
    step(&mut script, ("Review", "a"), "ASK");
    let plan = |_: &Occurrence, _: &str, instance: &Instance| {
        let others = instance.active.iter().filter(|one| one.name == "Other");
        Ok(Plan {
            cancel: others.map(|one| one.id.to_string()).collect(),
            ..spawning(items("Other", &["a"]))
        })
    };
    let mut script = flow(|_, _| spawning(items("Other", &["a"])));
    step(&mut script, ("Review", ""), "ASK");
    let mut script = script.planning_for(plan);
    let renewed = step(&mut script, ("Review", ""), "ASK").instance;
    assert_eq!(here(&renewed), [("Review", None), ("Other", Some("a"))]);
}

#[test]
fn data_is_kept_in_canonical_form_and_null_is_none() {
    let stored = |data: &'static str| {
        let mut script = flow(move |_, _| {
            entering(vec![Target {
                data: Some(data.into()),
                ..item("Other", "a")
            }])
        });
        let outcome = try_step(&mut script, ("Review", ""), "ASK");
        outcome.map(|outcome| {
            let data = outcome.instance.active[0].data.clone();
            data.map(|data| data.to_string())
        })
    };
    let kept = stored(r#"{"b": 1.50, "a": [] }"#).expect("data");
    assert_eq!(kept.as_deref(), Some(r#"{"a":[],"b":1.50}"#));
    assert_eq!(
        stored("\"bolt\"").expect("data").as_deref(),
        Some("\"bolt\"")
    );
    assert_eq!(stored(" null ").expect("none"), None);
    let error = match stored("{") {
        Err(ExecutionError::Fault(fault)) => fault.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(
        error.starts_with("transition: the data of a state Other has"),
        "{error}"
    );
}

#[test]
fn keys_and_data_are_bounded_and_joins_have_none() {
    let refusal = |target: Target| {
        let mut script = flow(move |_, _| entering(vec![target.clone()]));
        fault(try_step(&mut script, ("Review", ""), "ASK"))
    };
    for key in ["", "a\nb", "e\u{301}", &"k".repeat(201)] {
        let message = refusal(item("Other", key));
        assert!(
            message.starts_with("transition: the key of a state Other is not: "),
            "{message}"
        );
    }
    let long = format!("\"{}\"", "x".repeat(16 * 1024));
    let data = Some(long);
    assert_eq!(
        refusal(Target {
            data,
            ..Target::new("Other")
        }),
        "transition: the data of a state Other is longer than 16384 bytes"
    );
    assert_eq!(
        refusal(item("Meet", "a")),
        "transition: Meet is a join, one for all its branches; it has no key and no data"
    );
    let mut script = flow(|_, _| entering(items("Other", &["a", "a"])));
    assert_eq!(
        fault(try_step(&mut script, ("Review", ""), "ASK")),
        "transition: a plan must not enter Other twice with the key \"a\""
    );
}

#[test]
fn a_plan_enters_so_many_items() {
    let enter_items = |count: usize| {
        let keys = move || (0..count).map(|number| item("Other", &number.to_string()));
        let mut script = flow(move |_, _| entering(keys().collect()));
        try_step(&mut script, ("Review", ""), "ASK")
    };
    let most = enter_items(BRANCHES_MAX)
        .expect("as many as may be")
        .instance;
    assert_eq!(most.active.len(), BRANCHES_MAX);
    assert_eq!(
        fault(enter_items(BRANCHES_MAX + 1)),
        "transition: a plan enters at most 200 states"
    );
}

/// Data of many items, which logic is told with every question, is bounded together.
#[test]
fn all_items_fit_into_what_logic_is_told() {
    let mut script = flow(|_, _| {
        let data = Some(format!("\"{}\"", "x".repeat(16_000)));
        let item = |number: usize| Target {
            data: data.clone(),
            ..item("Other", &number.to_string())
        };
        entering((0..20).map(item).collect())
    });
    let refused = rejection(try_step(&mut script, ("Review", ""), "ASK"));
    assert_eq!(refused.code(), "limit_reached");
    assert!(refused.to_string().contains("more work"), "{refused}");
}

#[test]
fn a_migration_does_not_make_two_items_one() {
    let script = flow(|_, _| entering(vec![item("Other", "a"), item("Reminder", "a")]));
    let mut script = script.followed_by(|_| {});
    step(&mut script, ("Review", ""), "ASK");
    let command = |states: &[(&str, &str)]| Command::Migrate {
        instance: crate::ids::InstanceId(uuid::Uuid::from_u128(1)),
        version: 2,
        states: states
            .iter()
            .map(|(old, new)| ((*old).to_owned(), (*new).to_owned()))
            .collect(),
    };
    let refused = rejection(script.run("ann", &command(&[("Reminder", "Other")])));
    let Rejection::Invalid(violations) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        (&*violations[0].field, &*violations[0].code),
        ("/states/Reminder", "same_key")
    );
    let migrated = script.run("ann", &command(&[])).expect("a migration");
    let kept = [("Other", Some("a")), ("Reminder", Some("a"))];
    assert_eq!(here(&migrated.instance), kept);
}

/// A spawn beside an item keeps no key unless it is named.
#[test]
fn nothing_is_inherited() {
    let mut script = flow(|state, _| match state {
        "Review" => entering(items("Other", &["a", "b"])),
        _ => enter(&["Review"]),
    });
    step(&mut script, ("Review", ""), "ASK");
    step(&mut script, ("Other", "a"), "ASK");
    let mut script = script.planning(|_, _| Ok(spawn(&["Reminder"])));
    step(&mut script, ("Review", ""), "ASK");
    let active = [("Other", Some("b")), ("Review", None), ("Reminder", None)];
    assert_eq!(here(script.instance()), active);
}
