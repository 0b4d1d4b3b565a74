//! Checks the name and texts of each declared item: their form, their length, and that no name is declared twice.
//!
//! Names appear in URLs, event payloads, diagrams and logs, so they have strict patterns. Titles are for people: they may
//! use any script, but no control characters and no characters that override the direction of text.

use std::collections::BTreeSet;

use super::Problem;
use crate::graph::{Graph, NameUse, StateKind};
use crate::ids::{NOT_NORMAL, check_id};

/// Characters of a name.
pub const NAME_CHARS_MAX: usize = 255;
/// The rule of names, as text for messages.
pub const NAME_RULE: &str =
    "letters, digits, `_`, `.` and `-`, a letter or `_` first, at most 255 characters";
/// Characters of a title.
pub const TITLE_CHARS_MAX: usize = 200;
/// Characters of a group's id.
pub(crate) const GROUP_CHARS_MAX: usize = 128;
/// Characters of a person's id.
const PERSON_CHARS_MAX: usize = 200;
/// Characters of a permission.
pub(crate) const PERMISSION_CHARS_MAX: usize = 128;
/// The maximum number of characters of a refused name that a problem quotes.
const SHOWN_CHARS_MAX: usize = 80;

/// Checks the names and texts of everything that `graph` declares.
pub(super) fn check(graph: &Graph, problems: &mut Vec<Problem>) {
    states(graph, problems);
    transitions(graph, problems);
    groups("/initiators", &graph.initiators, problems);
    groups(
        "/observers",
        graph.observers.as_deref().unwrap_or_default(),
        problems,
    );
    uses(graph, problems);
    attributes(graph, problems);
}

/// A name from a component in a form that is safe to show: bounded, without control characters.
pub(crate) fn shown(name: &str) -> String {
    let plain = |character| {
        if is_plain(character) {
            character
        } else {
            '\u{fffd}'
        }
    };
    let mut shown: String = name.chars().take(SHOWN_CHARS_MAX).map(plain).collect();
    if name.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// The place of a trigger of a state in a problem: `state/trigger`.
pub(super) fn place(source: &str, trigger: &str) -> String {
    format!("{}/{}", shown(source), shown(trigger))
}

/// Whether it is the name of a state, trigger, outcome or attribute, or the key of a definition: it follows [`NAME_RULE`].
pub fn is_name(name: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    let follows = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    name.starts_with(begins) && name.len() <= NAME_CHARS_MAX && name.chars().all(follows)
}

/// Any text in normal form C without white space and control characters, since identity providers choose the names.
pub(crate) fn is_group_id(id: &str) -> bool {
    check_id(id, GROUP_CHARS_MAX).is_ok() && id.chars().all(|c| is_plain(c) && !c.is_whitespace())
}

/// A subject and an action, such as `document:publish`.
pub(crate) fn is_permission(permission: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    permission.len() <= PERMISSION_CHARS_MAX
        && permission
            .split_once(':')
            .is_some_and(|(subject, action)| part(subject) && part(action))
}

/// False for control characters, line separators and characters that override the direction of text.
pub(crate) fn is_plain(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// Whether it is a line of 1 to [`TITLE_CHARS_MAX`] plain characters that is not blank.
pub(super) fn is_title(title: &str) -> bool {
    !title.trim().is_empty()
        && title.chars().count() <= TITLE_CHARS_MAX
        && title.chars().all(is_plain)
}

fn states(graph: &Graph, problems: &mut Vec<Problem>) {
    let mut seen = BTreeSet::new();
    for state in &graph.states {
        let at = shown(&state.name);
        if !is_name(&state.name) {
            problems.push(Problem::new(
                "state_name_malformed",
                &at,
                format!("name the state like `FinalReview`: {NAME_RULE}"),
            ));
        }
        if !seen.insert(&state.name) {
            problems.push(Problem::new(
                "state_repeated",
                &at,
                "a state of this name is declared already; rename one of them",
            ));
        }
        if !is_title(&state.title) {
            problems.push(Problem::new(
                "title_malformed",
                &at,
                format!(
                    "give the state a title of 1 to {TITLE_CHARS_MAX} characters on one line that is not blank, without \
                     control characters and characters that override the direction of text"
                ),
            ));
        }
        if let StateKind::Terminal(outcome) = &state.kind {
            outcome_name(outcome, &at, problems);
        }
    }
}

fn outcome_name(outcome: &str, at: &str, problems: &mut Vec<Problem>) {
    if outcome.is_empty() {
        problems.push(Problem::new(
            "outcome_missing",
            at,
            "a terminal state needs an outcome, such as `APPROVED`",
        ));
    } else if !is_name(outcome) {
        problems.push(Problem::new(
            "outcome_malformed",
            at,
            format!("name the outcome like `APPROVED`: {NAME_RULE}"),
        ));
    }
}

fn transitions(graph: &Graph, problems: &mut Vec<Problem>) {
    let mut seen = BTreeSet::new();
    for transition in &graph.transitions {
        let at = place(&transition.source, &transition.trigger);
        if !is_name(&transition.trigger) {
            problems.push(Problem::new(
                "trigger_name_malformed",
                &at,
                format!("name the trigger like `SEND_BACK`: {NAME_RULE}"),
            ));
        }
        if !seen.insert((&transition.source, &transition.trigger)) {
            problems.push(Problem::new(
                "trigger_repeated",
                &at,
                "this state declares the trigger twice; list both targets in one transition, or \
                 rename one trigger",
            ));
        }
        if let Some(permission) = &transition.permission
            && !is_permission(permission)
        {
            problems.push(Problem::new(
                "permission_malformed",
                &at,
                format!(
                    "write the permission `{}` as `subject:action`, each a letter and then letters, digits, `-` and `_`, at most \
                     {PERMISSION_CHARS_MAX} characters",
                    shown(permission)
                ),
            ));
        }
    }
}

fn groups(list: &str, groups: &[String], problems: &mut Vec<Problem>) {
    let mut seen = BTreeSet::new();
    for (index, group) in groups.iter().enumerate() {
        let at = format!("{list}/{index}");
        if !is_group_id(group) {
            problems.push(Problem::new(
                "group_malformed",
                &at,
                format!(
                    "`{}` is no group id: 1 to {GROUP_CHARS_MAX} characters without white space and control characters, {NOT_NORMAL}",
                    shown(group)
                ),
            ));
        }
        if !seen.insert(group) {
            problems.push(Problem::new(
                "group_repeated",
                &at,
                format!("`{}` is in the list twice; remove it here", shown(group)),
            ));
        }
    }
}

fn uses(graph: &Graph, problems: &mut Vec<Problem>) {
    for (index, used) in graph.uses.iter().enumerate() {
        let is_formed = match used {
            NameUse::Group(id) => is_group_id(id),
            NameUse::Person(id) => check_id(id, PERSON_CHARS_MAX).is_ok(),
            NameUse::Calendar(name) | NameUse::Service(name) => is_name(name),
            NameUse::Permission(permission) => is_permission(permission),
        };
        if !is_formed {
            let message = format!("`{}` is no name of a {}", shown(used.name()), used.kind());
            problems.push(Problem::new(
                "use_malformed",
                format!("/uses/{index}"),
                message,
            ));
        }
    }
}

fn attributes(graph: &Graph, problems: &mut Vec<Problem>) {
    let mut seen = BTreeSet::new();
    for (index, attribute) in graph.attributes.iter().enumerate() {
        let at = format!("/attributes/{index}");
        if !is_name(&attribute.name) {
            problems.push(Problem::new(
                "attribute_name_malformed",
                &at,
                format!(
                    "name the attribute `{}` like `costCentre`: {NAME_RULE}",
                    shown(&attribute.name)
                ),
            ));
        }
        if !seen.insert(&attribute.name) {
            problems.push(Problem::new(
                "attribute_repeated",
                &at,
                format!(
                    "an attribute `{}` is declared already; rename one of them",
                    shown(&attribute.name)
                ),
            ));
        }
    }
}
