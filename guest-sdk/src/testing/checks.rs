//! What the host refuses of a flow's answers. Here it fails the test, with what to mend: the author
//! made the mistake, and nobody who uses the flow could.

use crate::bindings::wrkflw::flow::types::{AttributeValue, Definition, Plan, State};
use crate::{
    Assignment, AttributeType, Deadline, FiredBy, Offer, OverdueAction, Principal, StateInstance,
    Task, Waiting,
};

/// Tasks of one state.
const OFFERS_MAX: usize = 200;

pub(super) fn state<'a>(definition: &'a Definition, name: &str) -> &'a State {
    let mut states = definition.states.iter();
    let state = states.find(|state| state.name == name);
    state.unwrap_or_else(|| panic!("the graph draws no state {name}"))
}

/// The offers for a stay; `kept` are its tasks that stay beside them.
#[track_caller]
pub(super) fn assignment(
    definition: &Definition,
    stay: &StateInstance,
    kept: usize,
    assignment: &Assignment,
    requesters: &[String],
) {
    let name = &stay.name;
    let own_work = state(definition, name).own_work;
    let offers = &assignment.offers;
    let somebody = |offer: &Offer| !offer.candidates.is_empty() || offer.owner.is_some();
    assert!(
        !offers.is_empty() && offers.iter().all(somebody),
        "the flow offers the work of {name} to nobody: {assignment:#?}"
    );
    assert!(
        offers.len() <= OFFERS_MAX && assignment.needed as usize <= offers.len() + kept,
        "{name} needs {} decisions and has {} tasks, of at most {OFFERS_MAX}",
        assignment.needed,
        offers.len() + kept
    );
    deadlines(definition, name, &assignment.deadlines);
    for offer in offers {
        deadlines(definition, name, &offer.deadlines);
        if let Some(owner) = &offer.owner {
            assert!(
                !assignment.exclude.contains(owner) && (own_work || !requesters.contains(owner)),
                "{name} is given to {owner}, who must not decide there"
            );
        }
        let theirs = |principal: &Principal| matches!(principal, Principal::User(id) if requesters.first() == Some(id));
        assert!(
            !own_work || offer.candidates.iter().all(theirs),
            "{name} is the initiator's own work and is offered to somebody else: {offer:#?}"
        );
    }
}

#[track_caller]
pub(super) fn waiting(definition: &Definition, name: &str, waiting: &Waiting) {
    deadlines(definition, name, &waiting.deadlines);
    for trigger in waiting
        .children
        .iter()
        .filter_map(|child| child.on_end.as_ref())
    {
        assert!(
            fires(definition, name, trigger, FiredBy::CHILD),
            "a child's end fires {trigger}, which the graph does not declare for {name} and children"
        );
    }
}

/// What may fire there has to be declared so.
#[track_caller]
pub(super) fn deadlines(definition: &Definition, name: &str, deadlines: &[Deadline]) {
    for deadline in deadlines {
        if let OverdueAction::Fire(trigger) = &deadline.action {
            assert!(
                fires(definition, name, trigger, FiredBy::DEADLINE),
                "a deadline fires {trigger}, which the graph does not declare for {name} and deadlines"
            );
        }
    }
}

#[track_caller]
pub(super) fn plan(definition: &Definition, plan: &Plan) {
    for attribute in &plan.attributes {
        let mut declared = definition.attributes.iter();
        let kind = declared.find(|known| known.name == attribute.name);
        let kind =
            kind.unwrap_or_else(|| panic!("the graph declares no attribute {:?}", attribute.name));
        let fits = attribute
            .value
            .as_ref()
            .is_none_or(|value| is_of(value, kind.kind));
        assert!(fits, "the graph declares another type for {attribute:?}");
    }
    let enter = plan.enter.as_deref().unwrap_or_default();
    for (at, name) in enter.iter().enumerate() {
        assert!(!enter[..at].contains(name), "the plan enters {name} twice");
    }
}

/// A state that goes on has something that could move it.
#[track_caller]
pub(super) fn goes_on(definition: &Definition, stay: &StateInstance, has_deadlines: bool) {
    let ways = definition.transitions.iter();
    let mut signals =
        ways.filter(|way| way.source == stay.name && way.by.contains(FiredBy::SIGNAL));
    let children = stay.children.iter().any(|child| child.outcome.is_none());
    assert!(
        has_deadlines
            || children
            || stay.tasks.iter().any(Task::is_open)
            || signals.next().is_some(),
        "{} goes on with nothing left that could move it",
        stay.name
    );
}

pub(super) fn fires(definition: &Definition, state: &str, trigger: &str, by: FiredBy) -> bool {
    let mut ways = definition.transitions.iter();
    ways.any(|way| way.source == state && way.trigger == trigger && way.by.contains(by))
}

fn is_of(value: &AttributeValue, kind: AttributeType) -> bool {
    match value {
        AttributeValue::Text(_) => kind == AttributeType::Text,
        AttributeValue::Boolean(_) => kind == AttributeType::Boolean,
        AttributeValue::Decimal(text) => {
            kind == AttributeType::Decimal && crate::Decimal::parse(text).is_some()
        }
        AttributeValue::Float(number) => kind == AttributeType::Float && number.is_finite(),
        AttributeValue::Timestamp(text) => {
            kind == AttributeType::Timestamp && crate::Moment::parse(text).is_some()
        }
        AttributeValue::Bytes(_) => kind == AttributeType::Bytes,
    }
}
