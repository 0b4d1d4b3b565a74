//! One step of a scenario: an action, and its expected effects.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use wrkflw_core::json::Json;
use wrkflw_core::moment;

use crate::expect::Expect;
use crate::file::Away;

/// The longest time that one step may wait.
const WAIT_DAYS_MAX: i64 = 3660;

/// A step in a file: one of the members that name the action, and the members that go with it.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Step {
    // What happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decide: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) claim: Option<Which>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) release: Option<Which>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delegate: Option<Which>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resolve: Option<Which>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reassign: Option<Which>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reset: Option<Which>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suspend_task: Option<Which>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resume_task: Option<Which>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) child: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wait: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) join: Option<BTreeMap<String, Vec<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) leave: Option<BTreeMap<String, Vec<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) manager: Option<BTreeMap<String, Option<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) absence: Option<Away>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cancel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suspend: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resume: Option<bool>,
    // What goes with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) entity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requesters: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<String>,
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) item: Option<String>,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub(crate) absent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) comment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correlation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expect: Option<Expect>,
}

/// A task by its label, or `true` for the only one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Which {
    Only(bool),
    Label(String),
}

impl<'de> Deserialize<'de> for Which {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of;
        impl Visitor<'_> for Of {
            type Value = Which;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the label of a task, or true")
            }
            fn visit_bool<E>(self, only: bool) -> Result<Which, E> {
                Ok(Which::Only(only))
            }
            fn visit_str<E>(self, label: &str) -> Result<Which, E> {
                Ok(Which::Label(label.to_owned()))
            }
        }
        deserializer.deserialize_any(Of)
    }
}

impl Which {
    pub(crate) fn label(&self) -> Option<&str> {
        match self {
            Which::Only(_) => None,
            Which::Label(label) => Some(label),
        }
    }
}

/// The members of a step, by the name of its action: those that it needs, and those that it may have besides.
///
/// `at` goes with each of them: the time passes first.
const ACTIONS: [(&str, &[&str], &[&str]); 22] = [
    ("start", &["by"], &["entity", "requesters"]),
    (
        "decide",
        &["by"],
        &["task", "in", "item", "for", "comment", "input"],
    ),
    ("claim", &["by"], &["in", "item", "for"]),
    ("release", &["by"], &["in", "item"]),
    ("delegate", &["by", "to"], &["in", "item", "reason"]),
    ("resolve", &["by"], &["in", "item"]),
    ("reassign", &["by", "to"], &["in", "item", "reason"]),
    ("reset", &["by"], &["in", "item", "reason"]),
    ("suspendTask", &["by"], &["in", "item", "reason", "until"]),
    ("resumeTask", &["by"], &["in", "item"]),
    (
        "signal",
        &["by"],
        &["input", "correlation", "id", "in", "item"],
    ),
    ("child", &["outcome"], &["in", "item", "input", "reason"]),
    (
        "service",
        &[],
        &[
            "in",
            "item",
            "input",
            "error",
            "attempts",
            "model",
            "modelVersion",
        ],
    ),
    ("wait", &[], &[]),
    ("at", &[], &[]),
    ("join", &[], &[]),
    ("leave", &[], &[]),
    ("manager", &[], &[]),
    ("absence", &[], &[]),
    ("cancel", &["by"], &[]),
    ("suspend", &["by"], &[]),
    ("resume", &["by"], &[]),
];

/// The member that moves the time to a moment.
const AT: &str = "at";

impl Step {
    /// The names of the members that it has.
    fn members(&self) -> Vec<String> {
        let written = serde_json::to_value(self).expect("a step is JSON");
        let members = written.as_object().into_iter().flatten();
        members.map(|(name, _)| name.clone()).collect()
    }

    /// The name of the action. None for a step that has only `at`, or only `expect`.
    pub(crate) fn action(&self) -> Option<&'static str> {
        let members = self.members();
        let mut actions = ACTIONS.iter().map(|(name, ..)| *name);
        actions.find(|name| *name != AT && members.iter().any(|member| member == name))
    }

    /// Checks the rules that the schema cannot express. The error has the field, as a JSON Pointer below the step.
    pub(crate) fn check(&self) -> Result<(), (String, String)> {
        let members = self.members();
        let has = |name: &str| members.iter().any(|member| member == name);
        let mut actions: Vec<_> = ACTIONS.iter().filter(|(name, ..)| has(name)).collect();
        if actions.len() > 1 {
            actions.retain(|(name, ..)| *name != AT);
        }
        let (action, needed, allowed) = match actions[..] {
            [(action, needed, allowed)] => (*action, *needed, *allowed),
            [] if members == ["expect"] => return Ok(()),
            [] => {
                let all: Vec<_> = ACTIONS.iter().map(|(name, ..)| *name).collect();
                let message = format!("say what happens: one of {}", all.join(", "));
                return Err((String::new(), message));
            }
            _ => {
                let both: Vec<_> = actions.iter().map(|(name, ..)| *name).collect();
                let message = format!(
                    "a step has one action, but this one has {}",
                    both.join(", ")
                );
                return Err((String::new(), message));
            }
        };
        if let Some(name) = needed.iter().find(|name| !has(name)) {
            return Err((format!("/{name}"), format!("`{action}` needs `{name}`")));
        }
        let goes = |name: &str| {
            [action, "expect", AT].contains(&name)
                || needed.contains(&name)
                || allowed.contains(&name)
        };
        if let Some(other) = members.iter().find(|name| !goes(name)) {
            return Err((
                format!("/{other}"),
                format!("`{other}` cannot be used with `{action}`"),
            ));
        }
        if self.error.is_some() && self.input.is_some() {
            let message = "a service has an `input`, its reply, or an `error`".to_owned();
            return Err(("/error".to_owned(), message));
        }
        if self.wait.is_some() && self.waits(Timestamp::UNIX_EPOCH).is_none() {
            let message =
                format!("write a time such as `3 days` or `1h 30m`, at most {WAIT_DAYS_MAX} days");
            return Err(("/wait".to_owned(), message));
        }
        for (name, text) in [("at", &self.at), ("until", &self.until)] {
            if text
                .as_deref()
                .is_some_and(|text| moment::parse(text).is_none())
            {
                return Err((format!("/{name}"), format!("write {}", moment::expected())));
            }
        }
        let away = self.absence.as_ref();
        if away.is_some_and(|away| away.absence(Timestamp::UNIX_EPOCH).is_none()) {
            return Err((
                "/absence".to_owned(),
                format!("write {}", moment::expected()),
            ));
        }
        Ok(())
    }

    /// The end of the time that it waits from `now` on. A day has 24 hours.
    pub(crate) fn waits(&self, now: Timestamp) -> Option<Timestamp> {
        let span: Span = self.wait.as_deref()?.parse().ok()?;
        let waits = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
        let within =
            !waits.is_negative() && waits <= SignedDuration::from_hours(WAIT_DAYS_MAX * 24);
        within.then(|| now.checked_add(waits).ok())?
    }

    /// The step in words, for people.
    pub(crate) fn words(&self) -> String {
        let otherwise = if self.at.is_some() { AT } else { "expect" };
        let action = self.action().unwrap_or(otherwise);
        let written = serde_json::to_value(self).expect("a step is JSON");
        let what = match &written[action] {
            serde_json::Value::String(text) => format!(" {text}"),
            serde_json::Value::Object(_) if action != "start" => format!(" {}", written[action]),
            _ => String::new(),
        };
        let by = self.by.as_ref().map(|by| format!(" by {by}"));
        format!("{action}{what}{}", by.unwrap_or_default())
    }
}
