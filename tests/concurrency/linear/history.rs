//! The requests about one instance and their answers, and whether there is an order in which every answer was right.
//!
//! Commands that changed something name the revision that they made, which is their place in the order. It must agree with the
//! real time of requests and answers. Every other answer must be right at some revision between the last one that was surely made
//! when it was requested and the last one that could have been made before it was answered.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::effects::seen;
use super::rules::{Command, Flow, Instance, Refusal};

/// One request and its answer.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) who: &'static str,
    pub(super) asked: Asked,
    /// The value of a counter of all beginnings and ends.
    pub(super) begun: u64,
    pub(super) ended: u64,
    pub(super) status: u16,
    pub(super) body: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Asked {
    Start,
    Do(Command),
    Look,
}

/// All requests about an instance.
#[derive(Debug, Clone)]
pub(super) struct History {
    pub(super) flow: Flow,
    pub(super) calls: Vec<Call>,
}

type Checked<T = ()> = Result<T, String>;

impl Call {
    /// The instance as the answer shows it.
    pub(super) fn shown(&self) -> Option<&Value> {
        let instance = match self.asked {
            Asked::Do(_) | Asked::Start => &self.body["instance"],
            Asked::Look => &self.body,
        };
        (self.status < 300).then_some(instance)
    }

    pub(super) fn revision(&self) -> Option<u64> {
        self.shown()?["revision"].as_u64()
    }

    /// Whether it changed something: then its answer has events.
    pub(super) fn is_change(&self) -> bool {
        let events = self.body["events"].as_array();
        self.status < 300
            && self.asked != Asked::Look
            && events.is_some_and(|events| !events.is_empty())
    }

    fn wrong(&self, why: &str) -> String {
        format!("{why}:\n{self:#?}")
    }
}

impl History {
    /// Finds the order, or says what fits in none. Returns the number of revisions, and of the refusals that it explains.
    pub(super) fn check(&self) -> Checked<(usize, usize)> {
        let (mut changes, others): (Vec<_>, Vec<_>) =
            self.calls.iter().partition(|call| call.is_change());
        changes.sort_by_key(|call| call.revision());
        let states = self.replay(&changes)?;
        in_time(&changes)?;
        let mut refused = 0;
        for call in others {
            explained(call, &states, window(call, &changes))?;
            refused += usize::from(call.status >= 400);
        }
        Ok((states.len(), refused))
    }

    /// The instance at each revision, from 1.
    fn replay(&self, changes: &[&Call]) -> Checked<Vec<Instance>> {
        let mut states: Vec<Instance> = Vec::new();
        for call in changes {
            let shown = call.shown().expect("a change shows the instance");
            let next = match (&call.asked, states.last()) {
                (Asked::Start, None) => Instance::started(self.flow, shown),
                (Asked::Do(command), Some(state)) => {
                    let against = state.refusals(call.who, command);
                    if !against.is_empty() || state.has_counted(call.who, command) {
                        return Err(call.wrong(&format!("done, against {against:?} of {state:#?}")));
                    }
                    state.after(call.who, command, shown)
                }
                _ => return Err(call.wrong("begins in the middle")),
            };
            if seen(shown) != next.view() {
                let (shown, expected) = (seen(shown), next.view());
                return Err(call.wrong(&format!("comes to {shown}, not to {expected}")));
            }
            states.push(next);
        }
        Ok(states)
    }
}

/// No change comes after one that began when it had been answered already.
fn in_time(changes: &[&Call]) -> Checked {
    let mut latest = 0;
    for call in changes {
        if call.ended < latest {
            return Err(call.wrong("was answered before its predecessor was asked"));
        }
        latest = latest.max(call.begun);
    }
    Ok(())
}

/// The revisions at which the answer may have been computed.
fn window(call: &Call, changes: &[&Call]) -> RangeInclusive<u64> {
    let before = changes.iter().filter(|change| change.ended < call.begun);
    let first = before.filter_map(|change| change.revision()).max();
    let after = changes.iter().filter(|change| change.begun > call.ended);
    let next = after.filter_map(|change| change.revision()).min();
    let last = next.map_or(changes.len() as u64, |next| next - 1);
    first.unwrap_or(1)..=last
}

/// Whether the answer was right at one of these revisions.
fn explained(call: &Call, states: &[Instance], window: RangeInclusive<u64>) -> Checked {
    let revision = call.body["conflict"]["revision"]
        .as_u64()
        .or(call.revision());
    let mut possible = states.iter().filter(|state| {
        window.contains(&state.revision)
            && revision.is_none_or(|revision| revision == state.revision)
    });
    let is_right = |state: &Instance| match (&call.asked, call.shown()) {
        (Asked::Look, Some(shown)) => seen(shown) == state.view(),
        (Asked::Start, _) | (Asked::Look, None) => false,
        (Asked::Do(command), Some(shown)) => {
            state.has_counted(call.who, command) && seen(shown) == state.view()
        }
        (Asked::Do(command), None) => {
            let against = state.refusals(call.who, command);
            against.iter().any(|refusal| is_told(refusal, &call.body))
        }
    };
    if possible.any(is_right) {
        return Ok(());
    }
    let possible = states
        .iter()
        .filter(|state| window.contains(&state.revision));
    let possible: Vec<_> = possible.map(|state| state.view().to_string()).collect();
    let why = format!("explained by none of {window:?}:\n{}", possible.join("\n"));
    Err(call.wrong(&why))
}

/// Whether the problem document matches the refusal.
fn is_told(refusal: &Refusal, problem: &Value) -> bool {
    let mut members = refusal.conflict.iter().flat_map(|conflict| {
        let members = conflict.as_object();
        members.into_iter().flatten()
    });
    problem["code"] == refusal.code
        && refusal
            .reason
            .is_none_or(|reason| problem["reason"] == reason)
        && members.all(|(name, value)| problem["conflict"][name] == *value)
}
