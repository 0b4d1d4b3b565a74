//! The declarations of a graph, and its default plans.

use crate::bindings::wrkflw::flow::types::{Definition, Join, State as Declared, Transition};
use crate::{CommentRule, FiredBy, Flow, Graph, Names, NoConfig, Value};

crate::states! {
    enum State {
        /// Somebody decides.
        /// It may take a day.
        Review = "PENDING_REVIEW",
        Meet,
        /// It is over.
        Done,
        Failed,
    }
}
crate::triggers! {
    enum Trigger {
        /// All is well.
        Approve,
        Reject = "send-back",
        Abstain,
        Go,
    }
}
use State::{Done, Failed, Meet, Review};
use Trigger::{Abstain, Approve, Go, Reject};

struct Papers;

impl Flow for Papers {
    type Config = NoConfig;
    type Data = Value;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Review)
            .data_schema(|| "{}")
            .task(Review, "Review", |s| {
                s.until_quorum(Approve, Reject);
                s.on(Approve, Meet).needs("papers:approve");
                s.on(Reject, Failed)
                    .described("It comes back.")
                    .comment(CommentRule::Required)
                    .fired_by(FiredBy::DECISION | FiredBy::DEADLINE);
                s.on(Abstain, []);
                s.on_signal(Go, Failed);
            })
            .own_work(Meet, "Meet", |s| {
                s.join_count(2);
                s.described("They meet.");
                s.fork(Go, [Meet, Done]).input(|| "{}")
            })
            .terminal(Done, "DONE")
            .terminal(Failed, "FAILED")
    }
}

fn graph() -> Definition {
    Papers::graph(&NoConfig {}).definition()
}

fn state(name: &str) -> Declared {
    let mut states = graph().states.into_iter();
    states.find(|one| one.name == name).expect("declared")
}

fn transition(source: &str, trigger: &str) -> Transition {
    let mut all = graph().transitions.into_iter();
    all.find(|one| one.source == source && one.trigger == trigger)
        .expect("declared")
}

#[test]
fn properties_after_a_transition_are_those_of_the_transition() {
    let (approve, reject) = (
        transition("PENDING_REVIEW", "APPROVE"),
        transition("PENDING_REVIEW", "send-back"),
    );
    assert_eq!(approve.permission.as_deref(), Some("papers:approve"));
    assert_eq!(
        (approve.comment, approve.by),
        (CommentRule::Optional, FiredBy::DECISION)
    );
    assert_eq!(
        (reject.permission, reject.comment),
        (None, CommentRule::Required)
    );
    assert_eq!(reject.by, FiredBy::DECISION | FiredBy::DEADLINE);
    let meet = state("Meet");
    assert!(matches!(meet.join, Join::Count(2)));
    assert!(matches!(state("PENDING_REVIEW").join, Join::None));
}

#[test]
fn descriptions_are_doc_comments_unless_the_graph_says_them() {
    let described = |name: &str| state(name).description;
    assert_eq!(
        described("PENDING_REVIEW"),
        "Somebody decides. It may take a day."
    );
    assert_eq!(described("Meet"), "They meet.");
    assert_eq!(
        (described("Done"), described("Failed")),
        ("It is over.".into(), String::new())
    );
    let described = |trigger: &str| transition("PENDING_REVIEW", trigger).description;
    assert_eq!(described("APPROVE"), "All is well.");
    assert_eq!(described("send-back"), "It comes back.");
}

#[test]
fn each_vote_may_have_both_targets_of_the_quorum() {
    let targets = |source: &str, trigger: &str| transition(source, trigger).targets;
    assert_eq!(targets("PENDING_REVIEW", "APPROVE"), ["Meet", "Failed"]);
    assert_eq!(targets("PENDING_REVIEW", "send-back"), ["Failed", "Meet"]);
    assert_eq!(targets("PENDING_REVIEW", "ABSTAIN"), ["Meet", "Failed"]);
    assert_eq!(targets("PENDING_REVIEW", "GO"), ["Failed"]);
    assert_eq!(targets("Meet", "GO"), ["Meet", "Done"]);
}

#[test]
fn a_graph_of_one_state_says_the_same_of_it_without_schemas() {
    let whole = graph();
    assert!(whole.data_schema.is_some());
    for drawn in State::ALL {
        let one = Graph::of::<Papers>(&NoConfig {}, *drawn).definition();
        assert_eq!(one.data_schema, None);
        let state = state(drawn.name());
        assert_eq!(format!("{:?}", one.states), format!("{:?}", [state]));
        let mut leaving = whole.transitions.clone();
        leaving.retain(|way| way.source == drawn.name());
        assert_eq!(
            *drawn == Meet,
            leaving.iter().any(|way| way.input.is_some())
        );
        for way in &mut leaving {
            way.input = None;
        }
        assert_eq!(format!("{:?}", one.transitions), format!("{leaving:?}"));
    }
    assert_eq!(graph().states.len(), whole.states.len());
}
