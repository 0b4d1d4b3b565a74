//! Graphs with one problem each, and valid ones.

mod shape;
mod words;

use proptest::prelude::*;

use super::samples::{document_approval, sound, state, way};
use super::*;
use crate::graph::{
    AttributeDeclaration, AttributeType, CommentRule, FiredBy, Join, NameUse, StateKind, Transition,
};
use crate::json::Json;

/// A kind of state, for [`with`].
const TASK: StateKind = StateKind::Task;

/// The sample flow with one thing changed.
fn changed(change: impl FnOnce(&mut Graph)) -> Graph {
    let mut graph = document_approval();
    change(&mut graph);
    graph
}

/// The sample flow where `Extra`, a state of this kind, is entered from `Submitted` by `DETOUR` and
/// left by `LEAVE`, fired by these.
fn with(kind: StateKind, by: &[FiredBy]) -> Graph {
    changed(|graph| {
        graph.states.push(state("Extra", "Extra", kind));
        graph
            .transitions
            .push(way("Submitted", "DETOUR", &["Extra"]));
        graph.transitions.push(Transition {
            by: by.to_vec(),
            ..way("Extra", "LEAVE", &["Approved"])
        });
    })
}

fn last(graph: &mut Graph) -> &mut Transition {
    graph.transitions.last_mut().expect("transitions")
}

fn found(problems: &[Problem]) -> Vec<(&'static str, &str)> {
    problems
        .iter()
        .map(|problem| (problem.code, problem.at.as_str()))
        .collect()
}

#[track_caller]
fn only(graph: &Graph, code: &str, at: &str) {
    assert_eq!(found(&check(graph)), [(code, at)]);
}

#[test]
fn the_sample_flow_is_sound_and_runs() {
    assert_eq!(check(&document_approval()), []);
}

#[test]
fn the_initial_state_is_declared_and_can_be_left() {
    only(
        &changed(|g| g.initial = "submitted".into()),
        "initial_missing",
        "/initial",
    );
    only(
        &changed(|g| g.states[0].join = Join::All),
        "initial_join",
        "Submitted",
    );
    let ended = changed(|g| {
        g.initial = "Approved".into();
        g.states.retain(|state| state.name == "Approved");
        g.transitions.clear();
    });
    assert!(found(&check(&ended)).contains(&("initial_terminal", "Approved")));
    let empty = changed(|g| {
        g.states.clear();
        g.transitions.clear();
    });
    assert_eq!(
        found(&check(&empty)),
        [("initial_missing", "/initial"), ("no_terminal", "/states")]
    );
}

#[test]
fn every_state_is_reached_and_reaches_an_end() {
    only(
        &changed(|g| {
            g.states
                .push(state("Lost", "Lost", StateKind::Terminal("LOST".into())));
        }),
        "unreachable",
        "Lost",
    );
    only(
        &changed(|g| {
            g.states.push(state("Stuck", "Stuck", TASK));
            g.transitions.push(way("Submitted", "STICK", &["Stuck"]));
        }),
        "no_way_out",
        "Stuck",
    );
    only(
        &changed(|g| {
            g.states.push(state("Loop", "Loop", TASK));
            g.transitions.push(way("Submitted", "CIRCLE", &["Loop"]));
            g.transitions.push(way("Loop", "AGAIN", &["Loop"]));
        }),
        "no_way_to_end",
        "Loop",
    );
    let endless = changed(|g| {
        g.states
            .retain(|state| !matches!(state.kind, StateKind::Terminal(_)));
        g.transitions
            .retain(|way| way.targets != ["Approved"] && way.targets != ["Rejected"]);
    });
    only(&endless, "no_terminal", "/states");
}

#[test]
fn transitions_begin_and_end_at_declared_states() {
    only(
        &changed(|g| g.transitions.push(way("Nowhere", "GO", &["Approved"]))),
        "source_missing",
        "Nowhere/GO",
    );
    only(
        &changed(|g| last(g).targets.push("Nowhere".into())),
        "target_missing",
        "ReworkRequested/ABANDON",
    );
    only(
        &changed(|g| last(g).targets.push("Rejected".into())),
        "target_repeated",
        "ReworkRequested/ABANDON",
    );
    only(
        &changed(|g| g.transitions.push(way("Submitted", "GO", &[]))),
        "targets_missing",
        "Submitted/GO",
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of names")]
fn names_are_well_formed_and_unique() {
    let rename = |from: &'static str, to: &'static str| {
        move |g: &mut Graph| {
            g.states
                .iter_mut()
                .filter(|s| s.name == from)
                .for_each(|s| s.name = to.into());
            for way in &mut g.transitions {
                way.targets
                    .iter_mut()
                    .filter(|t| *t == from)
                    .for_each(|t| *t = to.into());
            }
        }
    };
    only(
        &changed(rename("Approved", "1st")),
        "state_name_malformed",
        "1st",
    );
    only(
        &changed(rename("Approved", "A b\u{202e}")),
        "state_name_malformed",
        "A b\u{fffd}",
    );
    only(
        &changed(|g| g.states.push(g.states[4].clone())),
        "state_repeated",
        "Rejected",
    );
    only(
        &changed(|g| last(g).trigger = "A/B".into()),
        "trigger_name_malformed",
        "ReworkRequested/A/B",
    );
    only(
        &changed(|g| g.transitions.push(g.transitions[5].clone())),
        "trigger_repeated",
        "ReworkRequested/ABANDON",
    );
    only(
        &changed(|g| last(g).permission = Some("all".into())),
        "permission_malformed",
        "ReworkRequested/ABANDON",
    );
    assert_eq!(
        check(&changed(
            |g| last(g).permission = Some("document:drop".into())
        )),
        []
    );
    for title in ["", " ", "two\nlines", "tur\u{202e}ned"] {
        only(
            &changed(|g| g.states[1].title = title.into()),
            "title_malformed",
            "FinalReview",
        );
    }
    only(
        &changed(|g| g.states[1].title = "é".repeat(201)),
        "title_malformed",
        "FinalReview",
    );
    assert_eq!(check(&changed(|g| g.states[1].title = "é".repeat(200))), []);
    for group in ["a b", "cafe\u{301}"] {
        only(
            &changed(|g| g.initiators = vec![group.into()]),
            "group_malformed",
            "/initiators/0",
        );
    }
    only(
        &changed(|g| g.initiators.push("authors".into())),
        "group_repeated",
        "/initiators/1",
    );
    let uses = [
        NameUse::Group("legal".into()),
        NameUse::Person("ann smith".into()),
        NameUse::Calendar("office".into()),
    ];
    assert_eq!(check(&changed(|g| g.uses = uses.to_vec())), []);
    for used in [
        NameUse::Group("a b".into()),
        NameUse::Person("cafe\u{301}".into()),
        NameUse::Person("p".repeat(201)),
        NameUse::Calendar("5 days".into()),
        NameUse::Service("a machine".into()),
    ] {
        only(
            &changed(|g| g.uses = vec![used.clone()]),
            "use_malformed",
            "/uses/0",
        );
    }
    let attribute = |name: &str| AttributeDeclaration {
        name: name.into(),
        kind: AttributeType::Decimal,
    };
    only(
        &changed(|g| g.attributes.push(attribute("-cost"))),
        "attribute_name_malformed",
        "/attributes/1",
    );
    only(
        &changed(|g| g.attributes.push(attribute("title"))),
        "attribute_repeated",
        "/attributes/1",
    );
}

#[test]
fn a_long_name_is_shortened_where_it_is_shown() {
    let graph = changed(|g| g.initial = "x".repeat(100_000));
    let [problem] = &check(&graph)[..] else {
        panic!("one problem");
    };
    assert!(problem.message.len() < 300, "{}", problem.message);
}

#[test]
fn the_data_schema_is_one() {
    let schema = |text: &str| Some(Json::parse(text).expect("JSON"));
    assert_eq!(
        check(&changed(|g| g.data_schema = schema(r#"{"type":"object"}"#))),
        []
    );
    only(
        &changed(|g| g.data_schema = schema(r#"{"properties":{"a":{"type":"line"}}}"#)),
        "schema_invalid",
        "/dataSchema/properties/a/type",
    );
    only(
        &changed(|g| g.data_schema = schema(r#"{"$ref":"https://example.com/a"}"#)),
        "schema_invalid",
        "/dataSchema/$ref",
    );
}

#[test]
fn sizes_are_bounded() {
    only(
        &changed(|g| g.states = vec![g.states[0].clone(); STATES_MAX + 1]),
        "too_large",
        "/states",
    );
    only(
        &changed(|g| g.transitions = vec![g.transitions[0].clone(); TRANSITIONS_MAX + 1]),
        "too_large",
        "/transitions",
    );
    only(
        &changed(|g| last(g).targets = vec!["Approved".into(); TARGETS_MAX + 1]),
        "too_large",
        "ReworkRequested/ABANDON",
    );
    only(
        &changed(|g| g.initiators = vec!["authors".into(); INITIATORS_MAX + 1]),
        "too_large",
        "/initiators",
    );
    let office = NameUse::Calendar("office".into());
    only(
        &changed(|g| g.uses = vec![office.clone(); USES_MAX + 1]),
        "too_large",
        "/uses",
    );
    only(
        &changed(|g| g.attributes = vec![g.attributes[0].clone(); ATTRIBUTES_MAX + 1]),
        "too_large",
        "/attributes",
    );
    let problems = check(&changed(|g| {
        g.transitions = vec![g.transitions[0].clone(); TRANSITIONS_MAX];
    }));
    assert_eq!(problems.len(), PROBLEMS_MAX);
    assert_eq!(problems[PROBLEMS_MAX - 1].code, "too_many_problems");
}

#[test]
fn all_problems_come_at_once() {
    let graph = changed(|g| {
        g.states[1].title = String::new();
        g.states[3].kind = StateKind::Terminal(String::new());
        g.transitions[1].by.clear();
        g.transitions[5].targets = vec!["Dropped".into()];
    });
    assert_eq!(
        found(&check(&graph)),
        [
            ("title_malformed", "FinalReview"),
            ("outcome_missing", "Approved"),
            ("sources_missing", "Submitted/REJECT"),
            ("target_missing", "ReworkRequested/ABANDON"),
            ("unreachable", "Rejected"),
        ]
    );
}

#[test]
fn problems_are_shown_as_json() {
    let problem = &check(&changed(|g| g.initial = "X".into()))[0];
    assert_eq!(
        serde_json::to_value(problem).expect("serialises"),
        serde_json::json!({
            "code": "initial_missing",
            "at": "/initial",
            "message": "the initial state `X` is not declared; name one of the states",
        })
    );
}

/// Whether a terminal state can be reached from `name`, by a simple search.
fn ends(graph: &Graph, name: &str, steps: usize) -> bool {
    let terminal = |name| {
        matches!(
            graph.state(name).map(|s| &s.kind),
            Some(StateKind::Terminal(_))
        )
    };
    terminal(name)
        || steps > 0
            && graph
                .leaving(name)
                .flat_map(|way| &way.targets)
                .any(|target| ends(graph, target, steps - 1))
}

proptest! {
    #[test]
    fn no_graph_makes_the_checker_panic_and_a_sound_one_ends(graph in samples::any()) {
        if check(&graph).is_empty() {
            for state in &graph.states {
                prop_assert!(ends(&graph, &state.name, graph.states.len()), "{}", state.name);
            }
        }
    }

    #[test]
    fn sound_graphs_pass(graph in sound(12, 12)) {
        prop_assert_eq!(check(&graph), vec![]);
    }

    /// Removing a transition is a problem exactly if some state then cannot be reached or cannot reach an end.
    #[test]
    fn a_missing_transition_is_noticed(graph in sound(6, 5), index in any::<prop::sample::Index>()) {
        let mut graph = graph;
        graph.transitions.remove(index.index(graph.transitions.len()));
        let ending = graph.states.iter().all(|s| ends(&graph, &s.name, graph.states.len()));
        let missed = check(&graph).iter().any(|p| p.code == "no_way_out" || p.code == "no_way_to_end");
        prop_assert_eq!(ending, !missed);
    }
}

#[test]
fn names_are_those_of_the_field() {
    for name in [
        "FinalReview",
        "PENDING_REVIEW",
        "purchase_order",
        "com.example.workflows.order-processing",
        "_1",
        &"n".repeat(255),
    ] {
        assert!(names::is_name(name), "{name}");
    }
    for name in [
        "",
        "1st",
        ".",
        "..",
        "-a",
        "a b",
        "a/b",
        "é",
        "a\u{0}",
        "a\n",
        &"n".repeat(256),
    ] {
        assert!(!names::is_name(name), "{name:?}");
    }
    let most = names::NAME_CHARS_MAX.to_string();
    assert!(names::NAME_RULE.contains(&most));
}
