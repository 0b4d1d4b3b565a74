//! The builder of a state: its properties and its transitions.
//!
//! The builders share the declarations by reference counting, so that the closure may be one expression or several statements.

use std::cell::Cell;
use std::fmt::Display;
use std::rc::Rc;

use super::Targets;
use crate::bindings::wrkflw::flow::types::{Join, Transition};
use crate::{CommentRule, FiredBy, States, Triggers};

/// The builder of a state, the argument of the closure of [`Graph::task`](crate::Graph::task) and the other kinds. Each property
/// of the state is a statement. Each transition is a statement, too, followed by the properties of the transition:
///
/// ```
/// # use wrkflw_guest::{CommentRule, Graph, states, triggers};
/// # states! { pub enum State { Review, Approved, Rejected } }
/// # triggers! { pub enum Trigger { Approve, Reject } }
/// # use {State::*, Trigger::*};
/// # fn graph() -> Graph<State, Trigger> {
/// # Graph::start(Review)
/// .task(Review, "Review", |s| {
///     s.on(Approve, Approved).needs("documents:approve");
///     s.on(Reject, Rejected).comment(CommentRule::Required);
/// })
/// # .terminal(Approved, "APPROVED").terminal(Rejected, "REJECTED")
/// # }
/// # graph();
/// ```
///
/// The result of the closure is ignored, so a single transition needs no braces: `|s| s.on(Approve, Approved)`.
pub struct StateBuilder<S, T> {
    state: S,
    fired_by: FiredBy,
    block: Rc<Block<S, T>>,
}

/// The builder of a transition. Its methods set properties of the transition.
pub struct TransitionBuilder<S, T> {
    place: usize,
    block: Rc<Block<S, T>>,
}

/// The declarations of a state and its transitions, which the builders share.
struct Block<S, T> {
    description: Cell<String>,
    join: Cell<Join>,
    own_work: Cell<bool>,
    ways: Cell<Vec<Way<S, T>>>,
    quorum: Cell<Option<(T, T)>>,
    /// Whether schemas are asked for.
    with_schemas: bool,
}

/// The declarations of a block.
pub(super) struct Declared<S, T> {
    pub(super) state: S,
    pub(super) description: String,
    pub(super) join: Join,
    pub(super) own_work: bool,
    pub(super) ways: Vec<Way<S, T>>,
    pub(super) quorum: Option<(T, T)>,
}

/// A transition, and its default behaviour.
#[derive(Clone, Debug)]
pub(super) struct Way<S, T> {
    pub(super) source: S,
    pub(super) trigger: T,
    pub(super) targets: Vec<S>,
    pub(super) leads: Leads,
    /// Further targets, for a vote that may be the last one of a quorum.
    pub(super) as_last_vote: Vec<S>,
    /// The contract's record without source, trigger and targets.
    pub(super) rest: Transition,
}

/// How the default plan uses the targets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leads {
    /// Enters the only target. Among several, `transition` chooses.
    ToOne,
    /// Enters all targets: a fork.
    ToAll,
    /// Enters all targets as branches beside the state, which goes on.
    Beside,
}

impl<S: States, T: Triggers> Way<S, T> {
    /// The transition in the type of the contract.
    pub(super) fn transition(self) -> Transition {
        let targets = self.targets.iter().chain(&self.as_last_vote);
        let mut description = self.rest.description;
        if description.is_empty() {
            description = self.trigger.description().into();
        }
        Transition {
            source: self.source.name().into(),
            trigger: self.trigger.name().into(),
            targets: targets.map(|target| target.name().into()).collect(),
            description,
            ..self.rest
        }
    }
}

impl<S: States, T: Triggers> StateBuilder<S, T> {
    /// An empty block. `fired_by` is the default of its transitions.
    pub(super) fn new(state: S, fired_by: FiredBy, with_schemas: bool) -> Self {
        Self {
            state,
            fired_by,
            block: Rc::new(Block {
                description: Cell::default(),
                join: Cell::new(Join::None),
                own_work: Cell::new(false),
                ways: Cell::default(),
                quorum: Cell::new(None),
                with_schemas,
            }),
        }
    }

    /// The declarations of the block.
    pub(super) fn declared(self) -> Declared<S, T> {
        Declared {
            state: self.state,
            description: self.block.description.take(),
            join: self.block.join.get(),
            own_work: self.block.own_work.get(),
            ways: self.block.ways.take(),
            quorum: self.block.quorum.get(),
        }
    }

    /// What people do in the state, for display. The default is the doc comment of the state's variant.
    pub fn described(&self, description: &str) {
        self.block.description.set(description.into());
    }

    /// The initiator is the only candidate.
    pub(super) fn own_work(&self) {
        self.block.own_work.set(true);
    }

    /// The state begins only when every branch of the fork around it has arrived or ended.
    pub fn join(&self) {
        self.block.join.set(Join::All);
    }

    /// The state begins as soon as this many branches of the fork around it have arrived. The others are cancelled.
    pub fn join_count(&self, branches: u32) {
        self.block.join.set(Join::Count(branches));
    }

    /// A transition by this trigger to the target. With several targets, [`Flow::transition`](crate::Flow::transition) chooses
    /// one.
    pub fn on(&self, trigger: T, targets: impl Targets<S>) -> TransitionBuilder<S, T> {
        self.way(trigger, targets.states(), Leads::ToOne)
    }

    /// A transition by a signal in a state of any kind, such as a withdrawal. [`Flow::guard`](crate::Flow::guard)
    /// decides who may send it.
    pub fn on_signal(&self, trigger: T, targets: impl Targets<S>) -> TransitionBuilder<S, T> {
        self.on(trigger, targets).fired_by(FiredBy::SIGNAL)
    }

    /// A transition to all of these states at once, one branch each.
    pub fn fork(&self, trigger: T, targets: impl Targets<S>) -> TransitionBuilder<S, T> {
        self.way(trigger, targets.states(), Leads::ToAll)
    }

    /// A transition after which the state goes on, and each of these states begins a branch beside it, such as a reminder.
    pub fn spawn(&self, trigger: T, targets: impl Targets<S>) -> TransitionBuilder<S, T> {
        self.way(trigger, targets.states(), Leads::Beside)
    }

    /// Decisions by these two triggers are votes. The assignment says how many must agree. The state goes on until enough people
    /// decide for the first trigger, and then follows its transition. Once that is impossible, it follows the transition of the
    /// other trigger. A vote for neither is a trigger without a target: `s.on(Abstain, [])`.
    ///
    /// Any vote may be the last one, so the published graph has both targets at the trigger of each vote.
    pub fn until_quorum(&self, of: T, otherwise: T) {
        self.block.quorum.set(Some((of, otherwise)));
    }

    /// Not generic, so that a component contains this code only once.
    #[inline(never)]
    fn way(&self, trigger: T, targets: Vec<S>, leads: Leads) -> TransitionBuilder<S, T> {
        let rest = Transition {
            source: String::new(),
            trigger: String::new(),
            targets: vec![],
            by: self.fired_by,
            permission: None,
            title: String::new(),
            description: String::new(),
            condition: String::new(),
            input: None,
            comment: CommentRule::Optional,
            extensions: vec![],
        };
        let mut ways = self.block.ways.take();
        let place = ways.len();
        ways.push(Way {
            source: self.state,
            trigger,
            targets,
            leads,
            as_last_vote: vec![],
            rest,
        });
        self.block.ways.set(ways);
        TransitionBuilder {
            place,
            block: Rc::clone(&self.block),
        }
    }
}

impl<S, T> TransitionBuilder<S, T> {
    /// What may fire the trigger. Replaces the default of the kind of state: `.fired_by(FiredBy::DECISION | FiredBy::DEADLINE)`.
    /// The others are `SIGNAL`, `REPLY`, `FAILURE`, `CHILD` and `ENTRY`.
    pub fn fired_by(self, sources: FiredBy) -> Self {
        self.change(|transition| transition.by = sources)
    }

    /// The permission (`subject:action`) that a person needs to fire the trigger.
    pub fn needs(self, permission: &str) -> Self {
        self.change(|transition| transition.permission = Some(permission.into()))
    }

    /// A title for buttons and diagrams, such as `Send back`. Without one, they show the trigger.
    pub fn titled(self, title: &str) -> Self {
        self.change(|transition| transition.title = title.into())
    }

    /// What the transition means, for display. The default is the doc comment of the trigger's variant.
    pub fn described(self, description: &str) -> Self {
        self.change(|transition| transition.description = description.into())
    }

    /// The condition of the transition or of its targets in words, for display.
    pub fn condition(self, words: &str) -> Self {
        self.change(|transition| transition.condition = words.into())
    }

    /// JSON Schema 2020-12 of the input of decisions, signals and replies: by `|| json!({…})`, or the text of a file by
    /// `|| include_str!("…")`. A closure, because it is only asked for when a version is published. The host refuses any other input.
    /// Tests of a flow check it with the feature `schemas`.
    pub fn input<D: Display>(self, schema: impl FnOnce() -> D) -> Self {
        if !self.block.with_schemas {
            return self;
        }
        self.change(|transition| transition.input = Some(schema().to_string()))
    }

    /// Whether a decision has a comment: `.comment(CommentRule::Required)`.
    pub fn comment(self, rule: CommentRule) -> Self {
        self.change(|transition| transition.comment = rule)
    }

    fn change(self, change: impl FnOnce(&mut Transition)) -> Self {
        let mut ways = self.block.ways.take();
        if let Some(way) = ways.get_mut(self.place) {
            change(&mut way.rest);
        }
        self.block.ways.set(ways);
        self
    }
}
