//! Checks the inputs of transitions: their schemas, and the rules for comments.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{place, shown};
use super::{Problem, TRANSITIONS_MAX};
use crate::graph::{CommentRule, FiredBy, Graph, Transition};
use crate::schema::Schema;

/// Bytes of one transition's input schema, and of all of them.
pub(super) const INPUT_BYTES_MAX: usize = 16 * 1024;
const INPUTS_BYTES_MAX: usize = 256 * 1024;
/// Different input schemas of the transitions that one signal may fire. A signal that no state takes yet is checked against each.
pub(super) const SIGNAL_INPUTS_MAX: usize = 10;

/// Checks the sizes of the input schemas.
pub(super) fn sizes(graph: &Graph, problems: &mut Vec<Problem>) {
    let mut total = 0;
    for transition in graph.transitions.iter().take(TRANSITIONS_MAX) {
        let bytes = transition
            .input
            .as_ref()
            .map_or(0, |schema| schema.as_str().len());
        total += bytes;
        if bytes > INPUT_BYTES_MAX {
            problems.push(Problem::new(
                "too_large",
                place(&transition.source, &transition.trigger),
                format!(
                    "the input schema has {bytes} bytes; at most {INPUT_BYTES_MAX} are allowed"
                ),
            ));
        }
    }
    if total > INPUTS_BYTES_MAX {
        problems.push(Problem::new(
            "too_large",
            "/transitions",
            format!("the input schemas have {total} bytes; at most {INPUTS_BYTES_MAX} are allowed"),
        ));
    }
}

/// Checks the input schemas, each different one once, and the rules for comments.
pub(super) fn check(graph: &Graph, problems: &mut Vec<Problem>) {
    for transition in &graph.transitions {
        senders(transition, problems);
    }
    signals(graph, problems);
    let mut seen = BTreeMap::new();
    for transition in &graph.transitions {
        let Some(schema) = &transition.input else {
            continue;
        };
        let checked = seen.entry(schema.as_str());
        let checked = checked.or_insert_with(|| Schema::admit(schema).err());
        if let Some(error) = checked {
            let at = place(&transition.source, &transition.trigger);
            let message = format!("the input schema is refused: {error}");
            problems.push(Problem::new("input_schema_invalid", at, message));
        }
    }
}

/// A rule for comments needs a decision. A schema needs a sender who gets the violations of the input.
fn senders(transition: &Transition, problems: &mut Vec<Problem>) {
    let at = place(&transition.source, &transition.trigger);
    let has_any = |of: &[FiredBy]| of.iter().any(|by| transition.by.contains(by));
    if transition.comment != CommentRule::Optional && !has_any(&[FiredBy::Decision]) {
        problems.push(Problem::new(
            "comment_without_decision",
            &at,
            "only decisions have comments; let a decision fire the trigger, or leave the rule out",
        ));
    }
    if transition.input.is_some() && !has_any(&[FiredBy::Decision, FiredBy::Signal, FiredBy::Reply])
    {
        problems.push(Problem::new(
            "input_without_sender",
            &at,
            "nobody sends an input: no decision, signal or reply fires the trigger; leave the schema out",
        ));
    }
}

/// A signal that is buffered is checked against all schemas of its trigger.
fn signals(graph: &Graph, problems: &mut Vec<Problem>) {
    let mut of_triggers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for transition in &graph.transitions {
        let by_signal = transition.by.contains(&FiredBy::Signal);
        if let Some(schema) = transition.input.as_ref().filter(|_| by_signal) {
            let schemas = of_triggers.entry(&transition.trigger).or_default();
            schemas.insert(schema.as_str());
        }
    }
    for (trigger, schemas) in of_triggers {
        let count = schemas.len();
        if count > SIGNAL_INPUTS_MAX {
            let message = format!(
                "the signal {} has {count} different input schemas; at most {SIGNAL_INPUTS_MAX} are allowed",
                shown(trigger)
            );
            problems.push(Problem::new("too_many_inputs", "/transitions", message));
        }
    }
}
