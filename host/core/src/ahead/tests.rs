//! What is ahead in small graphs: a line, a loop, a fork, and one without an end.

use super::*;
use crate::graph::{Join, Transition};

/// A graph of states, where those without a way out are its ends, and its transitions.
fn graph(ways: &[(&str, &[&str])]) -> Graph {
    let mut graph = Graph::default();
    let mut state = |name: &str, kind| {
        graph.states.push(State {
            name: name.to_owned(),
            title: String::new(),
            description: String::new(),
            kind,
            join: Join::None,
            own_work: false,
        });
    };
    for (source, _) in ways {
        state(source, StateKind::Task);
    }
    for (_, targets) in ways {
        for target in targets
            .iter()
            .filter(|target| !ways.iter().any(|(source, _)| source == *target))
        {
            state(target, StateKind::Terminal(String::new()));
        }
    }
    for (source, targets) in ways {
        for target in *targets {
            graph.transitions.push(Transition {
                source: (*source).to_owned(),
                trigger: (*target).to_owned(),
                targets: vec![(*target).to_owned()],
                ..Transition::default()
            });
        }
    }
    graph
}

/// States by name, with the transitions to them, and whether they are certain.
type Expected<'a> = &'a [(&'a str, u32, bool)];

#[test]
fn states_ahead_are_told_by_distance_with_what_is_certain() {
    let approval = graph(&[
        ("Submitted", &["Final", "Rework"]),
        ("Final", &["Approved", "Rework"]),
        ("Rework", &["Submitted", "Given up"]),
    ]);
    let straight = graph(&[("One", &["Two"]), ("Two", &["Three"]), ("Three", &["End"])]);
    let endless = graph(&[("One", &["Two"]), ("Two", &["One"])]);
    let fork = graph(&[
        ("Left", &["Join"]),
        ("Right", &["Join", "Off"]),
        ("Join", &["End"]),
    ]);
    let cases: [(&Graph, &[&str], Expected<'_>); 8] = [
        (
            &approval,
            &["Submitted"],
            &[
                ("Final", 1, false),
                ("Rework", 1, false),
                ("Submitted", 2, false),
                ("Approved", 2, false),
                ("Given up", 2, false),
            ],
        ),
        (
            &approval,
            &["Rework"],
            &[
                ("Submitted", 1, false),
                ("Given up", 1, false),
                ("Final", 2, false),
                ("Rework", 2, false),
                ("Approved", 3, false),
            ],
        ),
        (
            &straight,
            &["One"],
            &[("Two", 1, true), ("Three", 2, true), ("End", 3, true)],
        ),
        (&straight, &["Three"], &[("End", 1, true)]),
        (&straight, &["End"], &[]),
        (&straight, &["Elsewhere"], &[]),
        (&endless, &["One"], &[("Two", 1, false), ("One", 2, false)]),
        // One branch must pass the join, whatever the other one does.
        (
            &fork,
            &["Left", "Right"],
            &[("Join", 1, true), ("Off", 1, false), ("End", 2, true)],
        ),
    ];
    for (graph, active, expected) in cases {
        let found = ahead(graph, active);
        let found: Vec<_> = found
            .iter()
            .map(|step| (step.state.name.as_str(), step.transitions, step.certain))
            .collect();
        assert_eq!(found, expected, "{active:?}");
    }
}
