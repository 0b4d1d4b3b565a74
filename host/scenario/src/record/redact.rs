//! Redacts people and their texts in a scenario that is made of an instance: only the shape of texts is kept, unless a rule says otherwise.
//!
//! Schemas have patterns, so each text is replaced by one of the same shape: with as many letters, digits and other characters.

use std::collections::BTreeMap;

use serde::Deserialize;
use wrkflw_core::json::{Json, Node, escaped};
use wrkflw_core::moment;

use crate::file::Problem;
use crate::yaml::Document;

/// The replacement of a comment.
const COMMENT: &str = "(comment)";
/// The replacement of a masked text.
const MASK: &str = "(text)";
/// How many replacements are tried for a text, so that no two texts get the same.
const TRIES_MAX: u32 = 1000;
/// The values of `keep` besides fields of the data.
const WHOLES: [&str; 3] = ["people", "comments", "entity"];
/// Limit of the rules.
const RULES_MAX: usize = 1000;

/// Which texts are kept, and which numbers are not.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// `people`, `comments`, `entity`, or JSON Pointers into data and inputs.
    keep: Vec<String>,
    /// JSON Pointers into data and inputs whose values are fully replaced: no number, no boolean, no shape of a text is kept.
    mask: Vec<String>,
}

impl Rules {
    /// Reads a file of rules.
    pub fn read(text: &str) -> Result<Rules, Problem> {
        let problem = |line, message: String| Problem {
            line,
            field: String::new(),
            message,
        };
        let document = Document::read(text).map_err(|error| problem(error.line, error.detail))?;
        let rules: Rules = serde_json::from_str(&document.node.to_string())
            .map_err(|error| problem(1, error.to_string()))?;
        let is_known = |rule: &String| WHOLES.contains(&rule.as_str()) || rule.starts_with('/');
        for (list, index, rule) in rules.all() {
            let is_right = is_known(rule) && (list == "keep" || rule.starts_with('/'));
            if !is_right {
                let whole = if list == "keep" {
                    WHOLES.join(", ") + " or "
                } else {
                    String::new()
                };
                let message = format!("`{rule}`: write {whole}a JSON Pointer such as /amount");
                return Err(problem(document.line(&format!("/{list}/{index}")), message));
            }
        }
        if rules.all().count() > RULES_MAX {
            return Err(problem(1, format!("these are more than {RULES_MAX} rules")));
        }
        Ok(rules)
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, usize, &String)> {
        let of = |list: &'static str| move |(index, rule)| (list, index, rule);
        let keep = self.keep.iter().enumerate().map(of("keep"));
        keep.chain(self.mask.iter().enumerate().map(of("mask")))
    }

    fn keeps(&self, what: &str) -> bool {
        self.keep.iter().any(|rule| rule == what)
    }
}

/// Applies the rules: one person or text always gets the same other one.
pub(super) struct Redactor<'a> {
    rules: &'a Rules,
    people: BTreeMap<String, String>,
    texts: BTreeMap<String, String>,
}

impl<'a> Redactor<'a> {
    pub(super) fn new(rules: &'a Rules, people: Vec<String>) -> Redactor<'a> {
        let mut redactor = Redactor {
            rules,
            people: BTreeMap::new(),
            texts: BTreeMap::new(),
        };
        for person in people {
            let next = redactor.people.len() + 1;
            let other = if rules.keeps("people") {
                person.clone()
            } else {
                format!("person-{next}")
            };
            redactor.people.entry(person).or_insert(other);
        }
        redactor
    }

    /// The other name of a person.
    pub(super) fn person(&mut self, id: &str) -> String {
        let known = self.people.get(id).cloned();
        known.unwrap_or_else(|| self.text(id))
    }

    /// A name that may be that of a person, such as the label of their task.
    pub(super) fn name(&mut self, name: &str) -> String {
        let known = self.people.get(name).cloned();
        known.unwrap_or_else(|| name.to_owned())
    }

    /// The replacement of a text that is in the data or is the name of a person, such as the key of an item.
    pub(super) fn known(&self, text: &str) -> String {
        let known = self.people.get(text).or_else(|| self.texts.get(text));
        known.map_or_else(|| text.to_owned(), Clone::clone)
    }

    /// Every name of a person in it, also as the name of a member.
    pub(super) fn names(&mut self, node: &Node) -> Node {
        match node {
            Node::String(text) => Node::String(self.name(text)),
            Node::Array(items) => Node::Array(items.iter().map(|item| self.names(item)).collect()),
            Node::Object(members) => {
                let members = members.iter();
                let named = members.map(|(name, value)| (self.name(name), self.names(value)));
                Node::Object(named.collect())
            }
            other => other.clone(),
        }
    }

    /// The config: only people have other names in it.
    pub(super) fn config(&mut self, config: &Json) -> Node {
        self.names(&config.node())
    }

    pub(super) fn comment(&self, comment: &str) -> String {
        if self.rules.keeps("comments") {
            comment.to_owned()
        } else {
            COMMENT.to_owned()
        }
    }

    /// The id of an entity, or a text derived from it, such as a correlation key.
    pub(super) fn entity(&mut self, id: &str) -> String {
        if self.rules.keeps("entity") {
            id.to_owned()
        } else {
            self.text(id)
        }
    }

    /// Data, or an input.
    pub(super) fn data(&mut self, data: &Json) -> Node {
        self.field(&data.node(), "")
    }

    fn field(&mut self, node: &Node, at: &str) -> Node {
        let is_below = |rule: &String| {
            at.strip_prefix(rule.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if self.rules.keep.iter().any(is_below) {
            return node.clone();
        }
        let is_masked = self.rules.mask.iter().any(is_below);
        match node {
            Node::String(_) if is_masked => Node::String(MASK.to_owned()),
            Node::String(text) => Node::String(self.value(text)),
            Node::Number(_) if is_masked => Node::Number("1".to_owned()),
            Node::Bool(_) if is_masked => Node::Bool(false),
            Node::Array(items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(index, item)| self.field(item, &format!("{at}/{index}")));
                Node::Array(items.collect())
            }
            Node::Object(members) => {
                let members = members.iter().map(|(name, value)| {
                    let at = format!("{at}/{}", escaped(name));
                    (name.clone(), self.field(value, &at))
                });
                Node::Object(members.collect())
            }
            other => other.clone(),
        }
    }

    /// A text of the data: times stay, because flows count by them.
    fn value(&mut self, text: &str) -> String {
        if text.is_empty() || moment::parse(text).is_some() {
            return text.to_owned();
        }
        let known = self.people.get(text).cloned();
        known.unwrap_or_else(|| self.text(text))
    }

    /// The text of the same shape that stands for this one.
    pub(super) fn text(&mut self, text: &str) -> String {
        if let Some(other) = self.texts.get(text) {
            return other.clone();
        }
        let first = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        let tried = (0..TRIES_MAX).map(|more| shaped(text, first.saturating_add(more)));
        let is_free = |other: &String| !self.texts.values().any(|taken| taken == other);
        let other = tried.into_iter().find(is_free);
        let other = other.unwrap_or_else(|| shaped(text, first));
        self.texts.insert(text.to_owned(), other.clone());
        other
    }

    /// The names and texts that were kept.
    pub(super) fn kept(&self) -> Vec<String> {
        let mut kept: Vec<String> = [
            "the names of states, outcomes, groups and permissions",
            "labels of tasks",
            "keys of items, unless such a text stands in data or inputs or names a person",
            "the config, with other names for people",
            "times",
            "of other texts, how many letters, digits and other characters they have",
            "numbers, booleans and names of fields in data and inputs, unless a rule masks them",
        ]
        .map(str::to_owned)
        .into();
        kept.extend(
            self.rules
                .keep
                .iter()
                .map(|rule| format!("{rule}, by a rule")),
        );
        kept
    }
}

/// A text of this shape: its letters and digits count to `number` from the end.
fn shaped(text: &str, mut number: u32) -> String {
    let mut digit = |base: u32| {
        let digit = number % base;
        number /= base;
        u8::try_from(digit).unwrap_or_default()
    };
    let mut chars: Vec<char> = text.chars().collect();
    for c in chars.iter_mut().rev() {
        *c = match *c {
            // Digits of every script, because digits of other scripts are also numbers of people.
            numeric if numeric.is_numeric() => char::from(b'0' + digit(10)),
            upper if upper.is_uppercase() => char::from(b'A' + digit(26)),
            letter if letter.is_alphabetic() => char::from(b'a' + digit(26)),
            other => other,
        };
    }
    chars.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(rules: &str, data: &str) -> String {
        let rules = Rules::read(rules).expect("rules");
        let people = vec!["ann".to_owned(), "bob".to_owned()];
        let mut redactor = Redactor::new(&rules, people);
        redactor.data(&Json::parse(data).expect("JSON")).to_string()
    }

    #[test]
    fn texts_and_people_have_other_names_and_the_rest_stays() {
        for (rules, data, expected) in [
            (
                "{}",
                r#"{"a":"Desk","b":["Desk","Lamp"],"by":"bob","n":1.50,"t":"2026-01-05T09:00:00Z","x":true}"#,
                r#"{"a":"Aaaa","b":["Aaaa","Aaab"],"by":"person-2","n":1.50,"t":"2026-01-05T09:00:00Z","x":true}"#,
            ),
            (
                "keep: [/a]",
                r#"{"a":"Desk","ab":"Desk"}"#,
                r#"{"a":"Desk","ab":"Aaaa"}"#,
            ),
            (
                "keep: [/a]",
                r#"{"a":{"b":["Desk"]}}"#,
                r#"{"a":{"b":["Desk"]}}"#,
            ),
            (
                "mask: [/a]",
                r#"{"a":{"b":7,"c":true,"e":"Desk"},"d":7}"#,
                r#"{"a":{"b":1,"c":false,"e":"(text)"},"d":7}"#,
            ),
            (
                "keep: [people]",
                r#"{"a":"ann","b":"Desk"}"#,
                r#"{"a":"ann","b":"Aaaa"}"#,
            ),
        ] {
            assert_eq!(redacted(rules, data), expected, "{rules}");
        }
    }

    #[test]
    fn names_of_people_in_the_config_and_keys_that_stand_in_the_data_have_other_names() {
        let rules = Rules::default();
        let mut redactor = Redactor::new(&rules, vec!["ann".to_owned()]);
        let config = Json::parse(r#"{"limits":{"ann":500},"first":"ann"}"#).expect("JSON");
        assert_eq!(
            redactor.config(&config).to_string(),
            r#"{"first":"person-1","limits":{"person-1":500}}"#
        );
        let data = Json::parse(r#"{"to":"Desk"}"#).expect("JSON");
        redactor.data(&data);
        let keys = ["ann", "Desk", "7"].map(|key| redactor.known(key));
        assert_eq!(keys, ["person-1", "Aaaa", "7"]);
        let kept = redactor.kept();
        assert!(
            kept.iter().any(|kept| kept.starts_with("keys of items")),
            "{kept:?}"
        );
    }

    #[test]
    fn a_text_keeps_its_shape_and_no_two_become_the_same() {
        let rules = Rules::default();
        let mut redactor = Redactor::new(&rules, vec![]);
        for (text, other) in [
            ("EUR", "AAA"),
            ("4711", "0001"),
            ("Ärger & Söhne, 1. OG", "Aaaaa & Aaaaa, 0. AC"),
            ("USD", "AAD"),
            ("a", "e"),
            ("b", "f"),
            ("EUR", "AAA"),
            ("\u{0e54}\u{0e57}\u{0661}\u{096b}", "0006"),
        ] {
            assert_eq!(redactor.text(text), other, "{text}");
        }
    }

    #[test]
    fn a_rule_that_means_nothing_is_refused_with_its_line() {
        for (rules, line) in [
            ("keep:\n  - /a\n  - persons", 3),
            ("mask: [people]", 1),
            ("kept: []", 1),
        ] {
            assert_eq!(Rules::read(rules).expect_err(rules).line, line, "{rules}");
        }
    }
}
