//! Checks whether a declared graph can be published and run.
//!
//! The command line and the server call the same function, so both refuse the same graphs with the same messages. It returns
//! every problem, each with a stable code, the place and how to fix it. It reads only the graph. It does not check whether a
//! group exists or a component answers.
//!
//! Start with [`check`]. [`names`] checks each item alone, `inputs` the inputs of transitions, `words` the texts for people, `shape` each
//! item with its neighbours, `paths` the graph as a whole.

mod inputs;
pub mod names;
mod paths;
#[cfg(any(test, feature = "testing"))]
pub mod samples;
mod shape;
mod words;

use std::fmt;

use serde::Serialize;

use super::graph::Graph;
use super::schema::Schema;

/// States of one definition.
pub const STATES_MAX: usize = 200;
/// Transitions of one definition.
pub(crate) const TRANSITIONS_MAX: usize = 1_000;
/// Targets of one transition.
pub(crate) const TARGETS_MAX: usize = 20;
/// Attribute declarations of one definition.
pub(crate) const ATTRIBUTES_MAX: usize = 100;
/// Groups that may start an instance.
pub(crate) const INITIATORS_MAX: usize = 100;
/// Groups that see instances besides their participants.
pub(crate) const OBSERVERS_MAX: usize = 20;
/// Lists of separate states.
pub(crate) const SEPARATE_MAX: usize = 50;
/// Names of priorities.
pub(crate) const PRIORITIES_MAX: usize = 20;
/// Names of the directory that one definition uses.
pub(crate) const USES_MAX: usize = 1_000;
/// Problems reported at once; the rest is only counted.
pub const PROBLEMS_MAX: usize = 200;

/// One reason why a graph, or the config that it is made of, is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A stable code for programs.
    pub code: &'static str,
    /// The state (`FinalReview`), the trigger of a state (`FinalReview/APPROVE`), or a JSON Pointer
    /// into the graph (`/initial`, `/dataSchema/properties/title`).
    pub at: String,
    /// What is wrong and how to fix it, for people.
    pub message: String,
}

impl Problem {
    /// The code of a problem with the config, which its flow found.
    pub const CONFIG_INVALID: &str = "config_invalid";

    /// A problem found by the caller.
    pub fn new(code: &'static str, at: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem {
            code,
            at: at.into(),
            message: message.into(),
        }
    }

    /// A problem that the flow reports about its config.
    pub fn of_config(field: &str, message: &str, code: &str) -> Problem {
        Problem::new(
            Problem::CONFIG_INVALID,
            field,
            format!("{message} ({code})"),
        )
    }

    /// The problem in words for authors. A problem with the config has the name of its file.
    pub fn with_file(&self, config: &str) -> String {
        match self.code {
            Problem::CONFIG_INVALID => format!("{config}: {self}"),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.at.is_empty() {
            write!(f, "{}: ", self.at)?;
        }
        write!(f, "{} [{}]", self.message, self.code)
    }
}

/// Every problem of `graph` by itself; empty for a valid graph.
///
/// A graph beyond the size limits gets no further checks, because the time of the checks grows with the size.
pub fn check(graph: &Graph) -> Vec<Problem> {
    let mut problems = sizes(graph);
    if problems.is_empty() {
        names::check(graph, &mut problems);
        words::check(graph, &mut problems);
        shape::check(graph, &mut problems);
        paths::check(graph, &mut problems);
        data_schema(graph, &mut problems);
        inputs::check(graph, &mut problems);
    }
    bounded(problems)
}

fn sizes(graph: &Graph) -> Vec<Problem> {
    let mut problems = Vec::new();
    let observers = graph.observers.as_ref().map_or(0, Vec::len);
    for (at, count, max, things) in [
        ("/states", graph.states.len(), STATES_MAX, "states"),
        (
            "/transitions",
            graph.transitions.len(),
            TRANSITIONS_MAX,
            "transitions",
        ),
        (
            "/attributes",
            graph.attributes.len(),
            ATTRIBUTES_MAX,
            "attributes",
        ),
        (
            "/initiators",
            graph.initiators.len(),
            INITIATORS_MAX,
            "initiator groups",
        ),
        ("/observers", observers, OBSERVERS_MAX, "observer groups"),
        (
            "/separate",
            graph.separate.len(),
            SEPARATE_MAX,
            "lists of separate states",
        ),
        (
            "/priorities",
            graph.priorities.len(),
            PRIORITIES_MAX,
            "names of priorities",
        ),
        ("/uses", graph.uses.len(), USES_MAX, "names that are used"),
    ] {
        if count > max {
            problems.push(Problem::new(
                "too_large",
                at,
                format!("{count} {things} are declared; at most {max} are allowed"),
            ));
        }
    }
    for (place, list) in graph.separate.iter().take(SEPARATE_MAX).enumerate() {
        if list.len() > STATES_MAX {
            problems.push(Problem::new(
                "too_large",
                format!("/separate/{place}"),
                format!(
                    "{} states are listed; at most {STATES_MAX} are allowed",
                    list.len()
                ),
            ));
        }
    }
    for transition in graph.transitions.iter().take(TRANSITIONS_MAX) {
        let count = transition.targets.len();
        if count > TARGETS_MAX {
            problems.push(Problem::new(
                "too_large",
                names::place(&transition.source, &transition.trigger),
                format!("{count} targets are declared; at most {TARGETS_MAX} are allowed"),
            ));
        }
    }
    inputs::sizes(graph, &mut problems);
    problems
}

fn data_schema(graph: &Graph, problems: &mut Vec<Problem>) {
    let Some(schema) = &graph.data_schema else {
        return;
    };
    if let Err(error) = Schema::admit(schema) {
        problems.push(Problem::new(
            "schema_invalid",
            format!("/dataSchema{}", error.pointer),
            error.detail,
        ));
    }
}

fn bounded(mut problems: Vec<Problem>) -> Vec<Problem> {
    if problems.len() > PROBLEMS_MAX {
        let left_out = problems.len() - (PROBLEMS_MAX - 1);
        problems.truncate(PROBLEMS_MAX - 1);
        problems.push(Problem::new(
            "too_many_problems",
            "",
            format!("{left_out} more problems are left out; fix those above first"),
        ));
    }
    problems
}

#[cfg(test)]
mod tests;
