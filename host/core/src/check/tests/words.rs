//! Texts for people.

use super::*;
use crate::check::words::DESCRIPTION_CHARS_MAX;
use crate::graph::PriorityName;

#[test]
fn a_flow_may_have_a_title_and_descriptions() {
    let words = |graph: &mut Graph| {
        graph.title = "Document approval".into();
        graph.description = "Two reviews.\nThen it is published.".into();
        graph.states[0].description = "x".repeat(DESCRIPTION_CHARS_MAX);
        graph.instance_title = Some("{/title} {{{entityId}}}".into());
        graph.instance_summary = Some("{/author/name}".into());
    };
    assert_eq!(check(&changed(words)), []);
}

#[test]
fn titles_and_descriptions_are_bounded_and_plain() {
    for title in [" ", "a\nb", "a\u{202e}b", &"x".repeat(201)] {
        only(
            &changed(|g| g.title = title.into()),
            "title_malformed",
            "/title",
        );
        only(
            &changed(|g| g.transitions[0].title = title.into()),
            "title_malformed",
            "Submitted/APPROVE",
        );
    }
    for text in ["a\tb", "a\u{2066}", &"x".repeat(DESCRIPTION_CHARS_MAX + 1)] {
        only(
            &changed(|g| g.description = text.into()),
            "description_malformed",
            "/description",
        );
        only(
            &changed(|g| g.states[1].description = text.into()),
            "description_malformed",
            "FinalReview",
        );
        only(
            &changed(|g| g.transitions[0].description = text.into()),
            "description_malformed",
            "Submitted/APPROVE",
        );
        only(
            &changed(|g| g.transitions[0].condition = text.into()),
            "condition_malformed",
            "Submitted/APPROVE",
        );
    }
}

#[test]
fn a_malformed_template_is_refused_with_its_place() {
    let graph = changed(|g| {
        g.instance_title = Some("Invoice {number}".into());
        g.instance_summary = Some("}".into());
    });
    let problems = check(&graph);
    let places = [
        ("template_malformed", "/instanceTitle"),
        ("template_malformed", "/instanceSummary"),
    ];
    assert_eq!(found(&problems), places);
    assert!(
        problems[0]
            .message
            .starts_with("at character 9: `{number}` is no placeholder"),
        "{}",
        problems[0].message
    );
}

fn named(names: &[(&str, u8)]) -> Graph {
    let names = names.iter().map(|(name, at_least)| PriorityName {
        name: (*name).into(),
        at_least: *at_least,
    });
    changed(|g| g.priorities = names.collect())
}

#[test]
fn priorities_have_names_in_ascending_order() {
    let graph = named(&[("normal", 10), ("urgent", 200)]);
    assert_eq!(check(&graph), []);
    for (priority, name) in [
        (0, None),
        (9, None),
        (10, Some("normal")),
        (199, Some("normal")),
        (255, Some("urgent")),
    ] {
        assert_eq!(graph.priority_name(priority), name, "{priority}");
    }
    for (names, code, at) in [
        (
            &[("very urgent", 1)][..],
            "priority_name_malformed",
            "/priorities/0",
        ),
        (&[("a", 1), ("a", 2)], "priority_repeated", "/priorities/1"),
        (
            &[("a", 1), ("b", 1)],
            "priorities_unordered",
            "/priorities/1",
        ),
        (
            &[("a", 2), ("b", 1)],
            "priorities_unordered",
            "/priorities/1",
        ),
    ] {
        only(&named(names), code, at);
    }
    only(
        &named(&[("a", 1); PRIORITIES_MAX + 1]),
        "too_large",
        "/priorities",
    );
}
