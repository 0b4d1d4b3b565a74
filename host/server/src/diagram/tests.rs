//! What a drawing shows, and that it shows no more.

use proptest::prelude::*;

use super::*;
use wrkflw_core::check::samples::{document_approval, sound, state, way, way_by};
use wrkflw_core::graph::{FiredBy, StateKind};

fn taken(edges: &[(&str, &str, &str)], visits: &[(&str, u32)], active: &[&str]) -> Taken {
    Taken {
        visits: visits
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect(),
        edges: edges
            .iter()
            .map(|(source, trigger, target)| TakenEdge {
                source: (*source).to_owned(),
                trigger: (*trigger).to_owned(),
                target: (*target).to_owned(),
            })
            .collect(),
        active: active
            .iter()
            .map(|name| ((*name).to_owned(), Vec::new()))
            .collect(),
    }
}

/// Rejected once, reworked, approved by the first reviewer.
fn reworked() -> Taken {
    taken(
        &[
            ("Submitted", "REJECT", "ReworkRequested"),
            ("ReworkRequested", "SUBMIT", "Submitted"),
            ("Submitted", "APPROVE", "FinalReview"),
        ],
        &[("Submitted", 2), ("ReworkRequested", 1), ("FinalReview", 1)],
        &["FinalReview"],
    )
}

#[test]
fn the_path_taken_is_seen_and_told() {
    let svg = svg(&document_approval(), Some(&reworked()));
    assert!(svg.contains(r#"<g class="state task active" data-state="FinalReview">"#));
    assert!(svg.contains(r#"<g class="state own taken" data-state="ReworkRequested">"#));
    assert!(svg.contains(r#"<g class="state terminal untouched" data-state="Rejected">"#));
    assert!(svg.contains("×2</text>"));
    assert_eq!(svg.matches(r#"<g class="label taken">"#).count(), 3);
    assert_eq!(svg.matches(r#"<g class="label untouched">"#).count(), 3);
    assert!(svg.contains(
        "Active: Final review (FinalReview). Step 1: from First review (Submitted), REJECT led to \
         Rework requested (ReworkRequested). Step 2:"
    ));
    assert!(svg.contains(r#"role="img""#));
}

#[test]
fn who_works_in_an_active_state_is_shown_and_told() {
    let mut path = reworked();
    let without = svg(&document_approval(), Some(&path));
    let work = ["for approvers", "due 2026-11-30 09:00 UTC"];
    let lines = work.map(str::to_owned).to_vec();
    path.active.insert("FinalReview".to_owned(), lines);
    let with = svg(&document_approval(), Some(&path));
    for line in work {
        assert!(with.contains(&format!(">{line}</text>")), "{line}");
    }
    assert!(with.contains(
        "Active: Final review (FinalReview), for approvers, due 2026-11-30 09:00 UTC. Step 1:"
    ));
    assert_eq!(
        with.matches(r#"class="detail""#).count(),
        without.matches(r#"class="detail""#).count() + 2
    );
}

#[test]
fn the_flow_and_its_states_are_described() {
    let mut graph = document_approval();
    graph.title = "Papers & books".into();
    graph.description = "Two reviews.".into();
    graph.states[1].description = "The last <word>.".into();
    let svg = svg(&graph, None);
    assert!(svg.contains(
        r#"<title id="wrkflw-title">Papers &amp; books: states and the ways between them</title>"#
    ));
    assert!(svg.contains(r#"<desc id="wrkflw-desc">Two reviews. It starts in "#));
    assert!(svg.contains("<title>FinalReview: The last &lt;word&gt;.</title>"));
    assert!(svg.contains("<title>Approved</title>"));
}

#[test]
fn without_a_path_the_declared_ways_are_told() {
    let svg = svg(&document_approval(), None);
    assert!(
        svg.contains("From First review (Submitted), APPROVE leads to Final review (FinalReview).")
    );
    assert!(svg.contains("Approved ends it as APPROVED."));
    assert!(!svg.contains("class=\"badge\""));
    assert_eq!(svg.matches("data-state=").count(), 5);
}

#[test]
fn what_fires_a_transition_and_its_condition_are_shown_and_told() {
    let mut graph = document_approval();
    let plain = svg(&graph, None);
    assert!(!plain.contains(r#"class="note""#));
    graph.transitions[0].condition = "Above 500 & below.".into();
    graph.transitions[0].by = vec![FiredBy::Decision, FiredBy::Deadline];
    let of = way_by("Submitted", "REMIND", FiredBy::Deadline, &["Submitted"]);
    graph.transitions.push(of);
    let noted = svg(&graph, None);
    let remarks = [
        "by a decision or a",
        "deadline: Above 500 &amp;…",
        "by a deadline",
    ];
    for remark in remarks {
        assert!(
            noted.contains(&format!(">{remark}</text>")),
            "{remark}: {noted}"
        );
    }
    assert!(noted.contains("(by a decision or a deadline: Above 500 &amp; below) leads to"));
    assert!(noted.contains("REMIND (by a deadline) leads to First review (Submitted)."));
    well_formed(&noted).expect("XML");
}

#[test]
fn an_outcome_that_is_the_title_is_not_repeated() {
    let mut graph = document_approval();
    let end = |title: &str| {
        let mut state = state("Approved", title, StateKind::Terminal("APPROVED".into()));
        state.title = title.into();
        state
    };
    let place = graph
        .states
        .iter()
        .position(|state| state.name == "Approved");
    let place = place.expect("a terminal state");
    graph.states[place] = end("Approved");
    assert!(!svg(&graph, None).contains(">APPROVED</text>"));
    graph.states[place] = end("All agree");
    assert!(svg(&graph, None).contains(">Approved · APPROVED</text>"));
}

#[test]
fn only_declared_edges_are_drawn() {
    let path = taken(
        &[("Submitted", "SKIP", "Approved")],
        &[("Approved", 1)],
        &["Elsewhere"],
    );
    let svg = svg(&document_approval(), Some(&path));
    assert_eq!(svg.matches(r#"<g class="label taken">"#).count(), 0);
    assert_eq!(svg.matches("<g class=\"label").count(), 6);
}

#[test]
fn an_edge_taken_often_shows_its_last_numbers() {
    let mut graph = document_approval();
    graph
        .transitions
        .push(way("Submitted", "ASK", &["Submitted"]));
    let path = taken(
        &[("Submitted", "ASK", "Submitted"); 12],
        &[("Submitted", 13)],
        &["Submitted"],
    );
    assert!(svg(&graph, Some(&path)).contains(">…10, 11, 12</text>"));
}

#[test]
fn titles_of_components_cannot_leave_their_place() {
    let mut graph = document_approval();
    graph.states[0].title = "</text><script>alert(1)</script><a href=\"x".into();
    graph.states[1].title = "]]> & 'quoted' \u{0}\u{1b}".into();
    let svg = svg(&graph, Some(&reworked()));
    assert!(!svg.contains("<script") && !svg.contains("<a "));
    well_formed(&svg).expect("XML");
}

#[test]
fn what_cannot_be_drawn_is_told() {
    let mut graph = document_approval();
    graph.transitions.clear();
    for step in 0..5_000 {
        graph.transitions.push(way(
            "Submitted",
            &format!("T{step}"),
            &["FinalReview", "Rejected"],
        ));
    }
    let svg = svg(&graph, None);
    assert!(svg.contains("5 states with 10000 ways between them cannot be drawn"));
    assert!(svg.len() < 40_000, "{}", svg.len());
    graph.states.clear();
    assert!(super::svg(&graph, None).contains("0 states"));
}

/// A chain of `states` states, each also leading `span` states further and back to the start.
fn long(states: usize, span: usize) -> Graph {
    let name = |state: usize| format!("S{}", state.min(states - 1));
    let mut graph = document_approval();
    graph.initial = name(0);
    let end = graph.states[3].kind.clone();
    graph.states = (0..states)
        .map(|position| state(&name(position), "A step on the way", StateKind::Task))
        .collect();
    graph.states[states - 1].kind = end;
    graph.transitions.clear();
    for from in 0..states - 1 {
        for (trigger, to) in [("NEXT", from + 1), ("SKIP", from + span), ("RESET", 0)] {
            graph
                .transitions
                .push(way(&name(from), trigger, &[&name(to)]));
        }
    }
    graph
}

#[test]
fn long_flows_are_drawn_and_the_largest_told() {
    let drawn = svg(&long(60, 9), None);
    assert_eq!(drawn.matches("data-state=").count(), 60);
    assert!(drawn.len() < 1_000_000, "{}", drawn.len());
    assert!(svg(&long(200, 20), None).contains("cannot be drawn"));
}

/// Whether tags are balanced and text is escaped, as far as this writer's output goes.
fn well_formed(svg: &str) -> Result<(), String> {
    let mut open = Vec::new();
    let mut rest = svg;
    while let Some((text, after)) = rest.split_once('<') {
        for entity in text.split('&').skip(1) {
            let known = ["lt;", "gt;", "amp;", "quot;", "#39;"];
            if !known.iter().any(|known| entity.starts_with(known)) {
                return Err(format!("an unknown entity: {entity}"));
            }
        }
        let (tag, after) = after.split_once('>').ok_or("a tag without its end")?;
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("an unexpected </{name}>"));
            }
        } else {
            if tag.matches('"').count() % 2 == 1 {
                return Err(format!("an open quotation: {tag}"));
            }
            if !tag.ends_with('/') {
                open.push(tag.split(' ').next().unwrap_or_default());
            }
        }
        rest = after;
    }
    if open.is_empty() && rest == "\n" {
        Ok(())
    } else {
        Err(format!("left open: {open:?}, {rest}"))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_sound_graph_is_drawn(graph in sound(14, 20), steps in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let mut path = Taken::default();
        for index in steps {
            let way = &graph.transitions[index.index(graph.transitions.len())];
            *path.visits.entry(way.source.clone()).or_default() += 1;
            path.edges.push(TakenEdge {
                source: way.source.clone(),
                trigger: way.trigger.clone(),
                target: way.targets[0].clone(),
            });
        }
        let drawn = svg(&graph, Some(&path));
        prop_assert_eq!(well_formed(&drawn), Ok(()));
        prop_assert_eq!(drawn.matches("data-state=").count(), graph.states.len());
        let lengths = drawn.split(" d=\"").skip(1).filter_map(|rest| rest.split_once('"'));
        for (way, _) in lengths {
            let plain = |c: char| c.is_ascii_digit() || "MCVz .-".contains(c);
            prop_assert!(way.chars().all(plain), "{way}");
        }
        prop_assert_eq!(drawn, svg(&graph, Some(&path)));
    }
}
