//! The title and description of a diagram, for readers who do not see it.

use super::super::Taken;
use super::super::figure::circumstances;
use super::super::text::label;
use wrkflw_core::graph::{Graph, StateKind};

/// Maximum number of sentences of a description. The rest is only counted.
const SENTENCES_MAX: usize = 100;
/// Maximum length of a state's title in a sentence.
const TITLE_CHARS_MAX: usize = 60;

pub(in super::super) struct Words {
    pub(super) title: String,
    pub(super) description: String,
}

impl Words {
    pub(in super::super) fn of(graph: &Graph, path: Option<&Taken>) -> Words {
        let (what, sentences) = match path {
            None => ("the ways between them", declared(graph)),
            Some(path) => ("the path taken through them", taken(graph, path)),
        };
        let title = match graph.title.as_str() {
            "" => format!("States of the flow and {what}"),
            title => format!("{title}: states and {what}"),
        };
        let about = [graph.description.as_str(), &sentences];
        let about = about.into_iter().filter(|text| !text.is_empty());
        Words {
            title,
            description: about.collect::<Vec<_>>().join(" "),
        }
    }
}

fn declared(graph: &Graph) -> String {
    let mut sentences = vec![format!("It starts in {}.", named(graph, &graph.initial))];
    for state in &graph.states {
        if let StateKind::Terminal(outcome) = &state.kind {
            let outcome = label(outcome);
            sentences.push(format!(
                "{} ends it as {outcome}.",
                named(graph, &state.name)
            ));
        }
    }
    for way in &graph.transitions {
        let targets: Vec<String> = way.targets.iter().map(|name| named(graph, name)).collect();
        let state = graph.state(&way.source);
        let circumstances = state.map(|state| circumstances(state, way));
        let circumstances = match circumstances.unwrap_or_default().as_str() {
            "" => String::new(),
            text => format!(" ({})", text.trim_end_matches('.')),
        };
        sentences.push(format!(
            "From {}, {}{circumstances} leads to {}.",
            named(graph, &way.source),
            label(&way.trigger),
            targets.join(" or ")
        ));
    }
    bounded(sentences)
}

fn taken(graph: &Graph, path: &Taken) -> String {
    let active = path.active.iter().map(|(name, work)| {
        let work = work.iter().map(|line| label(line));
        let parts: Vec<_> = [named(graph, name)].into_iter().chain(work).collect();
        parts.join(", ")
    });
    let active: Vec<String> = active.collect();
    let mut sentences = vec![if active.is_empty() {
        "No state is active.".into()
    } else {
        format!("Active: {}.", active.join("; "))
    }];
    for (step, edge) in path.edges.iter().enumerate() {
        sentences.push(format!(
            "Step {}: from {}, {} led to {}.",
            step + 1,
            named(graph, &edge.source),
            label(&edge.trigger),
            named(graph, &edge.target)
        ));
    }
    bounded(sentences)
}

/// A state by its title, and by its name where that differs.
fn named(graph: &Graph, name: &str) -> String {
    let short = label(name);
    match graph.state(name) {
        Some(state) if state.title != name => {
            let title: String = state.title.chars().take(TITLE_CHARS_MAX).collect();
            format!("{title} ({short})")
        }
        Some(_) | None => short,
    }
}

fn bounded(mut sentences: Vec<String>) -> String {
    let count = sentences.len();
    if count > SENTENCES_MAX {
        sentences.truncate(SENTENCES_MAX);
        sentences.push(format!("{} more are left out.", count - SENTENCES_MAX));
    }
    sentences.join(" ")
}
