//! The title and the summary of an instance, and the names of priorities.

use super::script::{Script, decide, enter, offers};
use crate::answer::{Assignment, Next, Plan};
use crate::command::Command;
use crate::event::Event;
use crate::execution::Outcome;
use crate::graph::{Graph, PriorityName};
use crate::ids::TaskId;

fn templates(graph: &mut Graph) {
    graph.instance_title = Some("{/title}".into());
    graph.instance_summary = Some("{entityId}: {/price}".into());
}

/// Each decision patches the data so, and the state goes on.
fn patching(patches: &'static [Option<&'static str>]) -> Script {
    let count = std::cell::Cell::new(0);
    let mut script = Script::new()
        .assigning(|_| offers(&["crew"; 5]))
        .planning(move |_, _| {
            let patch = patches[count.replace(count.get() + 1)];
            Ok(Plan {
                data: patch.map(str::to_owned),
                ..Plan::default()
            })
        });
    script.redraw(templates);
    script.started()
}

fn step(script: &mut Script, number: usize) -> Outcome {
    let task: TaskId = script.task(number);
    let deciders = ["bob", "cat", "dan", "eve", "fay"];
    script
        .run(deciders[number], &Command::Claim { task })
        .expect("a claim");
    script
        .run(deciders[number], &decide(task, "GO"))
        .expect("a decision")
}

fn labels(script: &Script) -> (Option<&str>, Option<&str>) {
    let labels = &script.instance().labels;
    (labels.title.as_deref(), labels.summary.as_deref())
}

/// What the events say of the labels.
fn changed_labels(outcome: &Outcome) -> Vec<(Option<&str>, Option<&str>)> {
    let changed = outcome.events.iter().filter_map(|event| match event {
        Event::FlowStarted { title, summary, .. } | Event::FlowRetitled { title, summary, .. } => {
            Some((title.as_deref(), summary.as_deref()))
        }
        _ => None,
    });
    changed.collect()
}

#[test]
fn labels_follow_the_data() {
    let mut script = patching(&[
        None,
        Some(r#"{"note":"nothing that is shown"}"#),
        Some(r#"{"price":12.50}"#),
        Some(r#"{"title":" ","price":null}"#),
    ]);
    assert_eq!(labels(&script), (Some("A plan"), Some("1:")));
    assert_eq!(changed_labels(&step(&mut script, 0)), []);
    assert_eq!(changed_labels(&step(&mut script, 1)), []);
    let priced = (Some("A plan"), Some("1: 12.50"));
    assert_eq!(changed_labels(&step(&mut script, 2)), [priced]);
    assert_eq!(labels(&script), priced);
    assert_eq!(changed_labels(&step(&mut script, 3)), [(None, Some("1:"))]);
    assert_eq!(labels(&script), (None, Some("1:")));
}

#[test]
fn the_start_tells_the_labels_and_the_last_step_the_new_ones() {
    let mut script = Script::new().planning(|_, _| {
        Ok(Plan {
            data: Some(r#"{"title":"The plan"}"#.into()),
            ..enter(&["Done"])
        })
    });
    script.redraw(templates);
    let started = script.run("ann", &super::script::start()).expect("a start");
    assert_eq!(changed_labels(&started), [(Some("A plan"), Some("1:"))]);
    let done = step(&mut script, 0);
    assert_eq!(changed_labels(&done), [(Some("The plan"), Some("1:"))]);
    let kinds: Vec<_> = done.events.iter().map(Event::kind).collect();
    let end = ["FLOW_RETITLED", "STATE_ENTERED", "FLOW_COMPLETED"];
    assert_eq!(kinds[kinds.len() - 3..], end);
}

#[test]
fn a_migration_takes_the_templates_of_its_version() {
    for (change, shown) in [
        (
            (|graph| graph.instance_title = Some("Plan {entityId}".into())) as fn(&mut Graph),
            vec![(Some("Plan 1"), Some("1:"))],
        ),
        (
            |graph| graph.instance_title = None,
            vec![(None, Some("1:"))],
        ),
        (|_| (), vec![]),
    ] {
        let mut script = patching(&[]).followed_by(change);
        let command = Command::Migrate {
            instance: script.instance().id,
            version: 2,
            states: [].into(),
        };
        let migrated = script.run("ola", &command).expect("a migration");
        assert_eq!(changed_labels(&migrated), shown);
    }
}

#[test]
fn a_priority_has_the_name_that_the_graph_declares() {
    let name = |name: &str, at_least| PriorityName {
        name: name.into(),
        at_least,
    };
    let of = |priority| Assignment {
        priority,
        ..offers(&["crew", "crew"])
    };
    for (priority, expected) in [(9, None), (10, Some("normal")), (250, Some("urgent"))] {
        let mut script = Script::new()
            .assigning_for(move |_, cause| match cause {
                crate::question::EntryCause::Reoffered => of(10),
                _ => of(priority),
            })
            .planning(|_, _| {
                Ok(Plan {
                    next: Next::Reoffer,
                    ..Plan::default()
                })
            });
        script.redraw(|graph| graph.priorities = vec![name("normal", 10), name("urgent", 200)]);
        let mut script = script.started();
        let named = |script: &Script| script.instance().active[0].priority_name.clone();
        assert_eq!(named(&script).as_deref(), expected);
        step(&mut script, 0);
        assert_eq!(named(&script).as_deref(), Some("normal"));
    }
}
