//! Checks of the texts for people: titles of the flow and of transitions, descriptions, conditions, templates, and the names
//! of priorities.

use super::Problem;
use super::names::{NAME_RULE, TITLE_CHARS_MAX, is_name, is_plain, is_title, place, shown};
use crate::graph::Graph;
use crate::template::Template;

/// Characters of a description or condition.
pub(super) const DESCRIPTION_CHARS_MAX: usize = 1_000;

pub(super) fn check(graph: &Graph, problems: &mut Vec<Problem>) {
    if !graph.title.is_empty() && !is_title(&graph.title) {
        problems.push(Problem::new(
            "title_malformed",
            "/title",
            format!(
                "give the flow a title of at most {TITLE_CHARS_MAX} characters on one line, without control characters, or \
                 none: then its key is shown"
            ),
        ));
    }
    description("/description", &graph.description, problems);
    for state in &graph.states {
        description(&shown(&state.name), &state.description, problems);
    }
    for transition in &graph.transitions {
        let at = place(&transition.source, &transition.trigger);
        if !transition.title.is_empty() && !is_title(&transition.title) {
            let message = format!(
                "give the transition a title of at most {TITLE_CHARS_MAX} characters on one line, without control \
                 characters, or none: then its trigger is shown"
            );
            problems.push(Problem::new("title_malformed", &at, message));
        }
        description(&at, &transition.description, problems);
        words(&at, "condition_malformed", &transition.condition, problems);
    }
    let templates = [
        ("/instanceTitle", &graph.instance_title),
        ("/instanceSummary", &graph.instance_summary),
    ];
    for (at, template) in templates {
        if let Some(Err(error)) = template.as_deref().map(Template::parse) {
            problems.push(Problem::new("template_malformed", at, error.to_string()));
        }
    }
    priorities(graph, problems);
}

fn description(at: &str, text: &str, problems: &mut Vec<Problem>) {
    words(at, "description_malformed", text, problems);
}

/// Descriptions and conditions may have several lines.
fn words(at: &str, code: &'static str, text: &str, problems: &mut Vec<Problem>) {
    let fits = |c| c == '\n' || is_plain(c);
    if text.chars().count() > DESCRIPTION_CHARS_MAX || !text.chars().all(fits) {
        problems.push(Problem::new(
            code,
            at,
            format!(
                "describe it in at most {DESCRIPTION_CHARS_MAX} characters, without control characters but line ends"
            ),
        ));
    }
}

fn priorities(graph: &Graph, problems: &mut Vec<Problem>) {
    for (index, priority) in graph.priorities.iter().enumerate() {
        let at = format!("/priorities/{index}");
        let name = shown(&priority.name);
        if !is_name(&priority.name) {
            problems.push(Problem::new(
                "priority_name_malformed",
                &at,
                format!("name the priority `{name}` like `urgent`: {NAME_RULE}"),
            ));
        }
        let before = &graph.priorities[..index];
        if before.iter().any(|other| other.name == priority.name) {
            problems.push(Problem::new(
                "priority_repeated",
                &at,
                format!("a priority `{name}` is declared already; rename one of them"),
            ));
        }
        if before
            .last()
            .is_some_and(|other| other.at_least >= priority.at_least)
        {
            problems.push(Problem::new(
                "priorities_unordered",
                &at,
                format!(
                    "`{name}` begins at {}, which is not above the one before it; declare them in ascending order",
                    priority.at_least
                ),
            ));
        }
    }
}
