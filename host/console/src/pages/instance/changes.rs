//! The changes of each step to the data of an instance, with the values before and after.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::InstancePageQuery;
use super::record::{further, list};
use crate::data::{Instance, beginning};
use crate::language::Words;
use crate::moment::Moment;
use crate::names::Names;
use crate::session::Visitor;

/// Characters of a value that the page shows.
const VALUE_CHARS_MAX: usize = 200;

/// A page of steps, oldest first.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) steps: Vec<DataStepRow>,
    pub(super) next: Option<String>,
    /// Why they cannot be shown, if they cannot.
    pub(super) refusal: String,
}

/// A step that changed the data.
pub(super) struct DataStepRow {
    pub(super) at: Moment,
    pub(super) name: String,
    /// Empty for the start.
    pub(super) state: String,
    /// Empty where a decision is hidden.
    pub(super) who: String,
    pub(super) values: Vec<Changed>,
}

/// A value before and after. None if there was none.
pub(super) struct Changed {
    pub(super) pointer: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

#[derive(Deserialize)]
struct DataStep {
    at: Timestamp,
    actor: Option<String>,
    trigger: Option<String>,
    state: Option<String>,
    changes: Vec<DataChange>,
}

/// A side that is absent has no value, and `null` is a value.
#[derive(Deserialize)]
struct DataChange {
    pointer: String,
    #[serde(default, deserialize_with = "present")]
    before: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    after: Option<Box<RawValue>>,
}

fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Deserialize::deserialize(value).map(Some)
}

/// The steps of the page that is asked for.
pub(super) async fn of(
    visitor: &Visitor,
    instance: &Instance,
    query: &InstancePageQuery,
) -> Changes {
    let (w, names) = (visitor.w, instance.names());
    let further = |next: String| further(instance.id, query, "data", &next);
    let path = format!("/v1/instances/{}/changes", instance.id);
    match list::<DataStep>(visitor, &path, &[], &query.after).await {
        Ok(found) => Changes {
            steps: found
                .data
                .into_iter()
                .map(|step| DataStepRow::of(step, &names, w))
                .collect(),
            next: found.page.next.map(further),
            refusal: String::new(),
        },
        Err(trouble) => Changes {
            refusal: trouble.detail,
            ..Changes::default()
        },
    }
}

impl DataStepRow {
    fn of(step: DataStep, names: &Names, w: Words) -> DataStepRow {
        let start = || w.t("data-start").into_owned();
        let host = || w.t("audit-host").into_owned();
        let value = |one: DataChange| Changed {
            // The whole data.
            pointer: if one.pointer.is_empty() {
                "/".to_owned()
            } else {
                one.pointer
            },
            before: one.before.as_deref().map(shortened),
            after: one.after.as_deref().map(shortened),
        };
        // The start is in no state.
        let is_hidden = step.trigger.is_none() && step.state.is_some();
        let (name, who) = if is_hidden {
            (w.t("data-hidden").into_owned(), String::new())
        } else {
            let who = step.actor.map_or_else(host, |actor| names.person(&actor));
            (step.trigger.unwrap_or_else(start), who)
        };
        DataStepRow {
            at: Moment::of(step.at, w),
            name,
            state: step.state.unwrap_or_default(),
            who,
            values: step.changes.into_iter().map(value).collect(),
        }
    }
}

/// The beginning of a value, with all its digits.
fn shortened(value: &RawValue) -> String {
    beginning(value.get(), VALUE_CHARS_MAX)
}
