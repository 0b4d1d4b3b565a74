//! The way back after a decision, if the flow has one: an action that leads to the state that the decision left.

use serde_json::{Value, json};

use super::{LoadedInstance, act, banner};
use crate::data::{Action, Done, History, State};
use crate::list::Link;
use crate::session::Visitor;

/// Actions that are tried for one page.
const TRIED_MAX: usize = 5;

/// The ways back for the visitor, who has just decided. A dry run tries each, so the flow itself judges it. An action that needs an
/// input cannot be tried, and is among the other actions.
pub(super) async fn of(visitor: &Visitor, loaded: &LoadedInstance, history: &History) -> Vec<Link> {
    let Some(left) = left_by(visitor.id(), &history.data) else {
        return Vec::new();
    };
    let mut ways = Vec::new();
    let actions = loaded.actions.actions.iter();
    for action in actions.filter(|one| may_lead_back(one)).take(TRIED_MAX) {
        let path = format!("{}?dryRun=true", act::path(action, loaded.instance.id));
        let done = visitor.api.post::<Done>(&path, &body(action), None).await;
        if done.is_ok_and(|done| leads_to(left, &done.instance.states)) {
            let name = banner::name(action, visitor);
            let name = visitor.w.with("undo", "action", &name);
            ways.push(Link::to(banner::address(action, loaded), name));
        }
    }
    ways
}

/// Whether an action may fire a transition of the flow.
fn may_lead_back(action: &Action) -> bool {
    action.allowed && (action.trigger.is_some() || action.action == "decide")
}

fn body(action: &Action) -> Value {
    match &action.outcome {
        Some(outcome) => json!({ "outcome": outcome }),
        None => json!({}),
    }
}

/// The name of the state that was left last, if this person left it.
fn left_by<'a>(person: &str, states: &'a [State]) -> Option<&'a str> {
    let past = states
        .iter()
        .filter_map(|state| Some((state, state.left.as_ref()?)));
    let (state, left) = past.max_by_key(|(_, left)| left.at)?;
    (left.actor.as_deref() == Some(person)).then_some(state.name.as_str())
}

fn leads_to(name: &str, states: &[State]) -> bool {
    states.iter().any(|state| state.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(states: &Value) -> Vec<State> {
        serde_json::from_value(states.clone()).expect("states")
    }

    fn state(name: &str, left: &Value) -> Value {
        let id = "00000000-0000-7000-8000-000000000000";
        json!({ "id": id, "name": name, "enteredAt": "2026-01-01T00:00:00Z", "dueAt": null, "key": null,
            "unassignableSince": null, "left": left })
    }

    fn left(at: &str, actor: &str) -> Value {
        json!({ "at": at, "trigger": "APPROVE", "actor": actor })
    }

    #[test]
    fn only_the_last_decision_is_undone_and_only_by_whoever_made_it() {
        let history = states(&json!([
            state("First", &left("2026-01-01T01:00:00Z", "rob")),
            state("Second", &left("2026-01-01T02:00:00Z", "amy")),
            state("Third", &Value::Null),
        ]));
        assert_eq!(left_by("amy", &history), Some("Second"));
        assert_eq!(left_by("rob", &history), None);
        assert_eq!(left_by("amy", &history[2..]), None);
        assert!(leads_to("Third", &history) && !leads_to("Fourth", &history));
    }

    #[test]
    fn what_fires_no_transition_leads_nowhere() {
        let action =
            |action: Value| -> Action { serde_json::from_value(action).expect("an action") };
        let signal = json!({ "action": "signal", "trigger": "RECALL", "allowed": true });
        assert!(may_lead_back(&action(signal)));
        let decide = json!({ "action": "decide", "outcome": "BACK", "allowed": true });
        assert_eq!(body(&action(decide.clone())), json!({ "outcome": "BACK" }));
        assert!(may_lead_back(&action(decide)));
        for other in [
            json!({ "action": "cancel", "allowed": true }),
            json!({ "action": "signal", "trigger": "RECALL", "allowed": false }),
        ] {
            assert!(!may_lead_back(&action(other)));
        }
    }
}
