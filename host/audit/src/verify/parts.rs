//! Compares an instance's parts - state instances, tasks, candidates, attributes - with the fold of its entries, and the
//! columns of its own row that `instance` does not compare.

use serde::Serialize;
use serde_json::{Value, json};

use super::Problem;
use super::instance::Recorded;
use super::rows::{Expected, ExpectedRow, Table, columns, time, time_or_null};
use crate::record::rows::{Columns, PartRows};
use wrkflw_core::answer::AttributeValue;
use wrkflw_core::ids::{InstanceId, TenantId, hex};
use wrkflw_core::instance::{Instance, PastState, StateInstance, Status, Task, TaskStatus};
use wrkflw_core::json::Json;

static INSTANCE: Table = Table {
    name: "instance",
    code: "instance",
    key: &["id"],
    hidden: &["buffered_signals", "title", "summary"],
};
static STATE: Table = Table {
    name: "state_instance",
    code: "state",
    key: &["id"],
    hidden: &["children", "deadlines", "subscriptions", "data", "call"],
};
static TASK: Table = Table {
    name: "task",
    code: "task",
    key: &["id"],
    hidden: &["deadlines", "suspended", "ownership"],
};
static CANDIDATE: Table = Table {
    name: "task_candidate",
    code: "candidate",
    key: &["task_id", "kind", "principal"],
    hidden: &[],
};
static SUBSCRIPTION: Table = Table {
    name: "signal_subscription",
    code: "signal_subscription",
    key: &["state_id", "trigger", "correlation"],
    hidden: &[],
};
static ATTRIBUTE: Table = Table {
    name: "attribute",
    code: "attribute",
    key: &["instance_id", "name"],
    hidden: &[
        "text_value",
        "boolean_value",
        "decimal_value",
        "float_value",
        "timestamp_value",
        "bytes_value",
    ],
};

/// Compares an instance's parts with their rows.
pub(super) fn compare(
    tenant: TenantId,
    recorded: &Recorded,
    rows: &PartRows,
    problems: &mut Vec<Problem>,
) {
    let Some(instance) = recorded.instance().filter(|_| !recorded.is_stopped()) else {
        return;
    };
    let id = json!(instance.id);
    let mut expected = Expected::new(&INSTANCE);
    expected.add(of_instance(instance));
    expected.compare_all(&rows.own, problems);

    let (mut state_instances, mut tasks) = (Expected::new(&STATE), Expected::new(&TASK));
    let mut candidates = Expected::new(&CANDIDATE);
    let past = instance
        .past
        .iter()
        .map(|past| (&past.state, Some(past), false));
    let waiting = instance
        .waiting
        .iter()
        .map(|state_instance| (state_instance, None, true));
    let active = instance
        .active
        .iter()
        .map(|state_instance| (state_instance, None, false));
    for (state_instance, past, waiting) in past.chain(waiting).chain(active) {
        let mut row = of_state_instance(state_instance, past, waiting);
        row.push(("tenant_id", json!(tenant)));
        row.push(("instance_id", id.clone()));
        row.push(("ordinal", json!(recorded.ordinal(state_instance.id))));
        state_instances.add(row);
        for (ordinal, task) in state_instance.tasks.iter().enumerate() {
            tasks.add(of_task(ordinal, task));
            of_candidates(task, &mut candidates);
        }
    }
    let mut subscriptions = Expected::new(&SUBSCRIPTION);
    for state_instance in &instance.active {
        for (one, key) in state_instance.correlated() {
            subscriptions.add(vec![
                ("tenant_id", json!(tenant)),
                ("instance_id", id.clone()),
                ("state_id", json!(state_instance.id)),
                ("entered_at", time(state_instance.entered_at)),
                ("trigger", json!(one.trigger)),
                ("correlation", json!(key)),
            ]);
        }
    }
    subscriptions.compare_all(&rows.subscriptions, problems);
    state_instances.compare_all(&rows.state_instances, problems);
    tasks.compare_all(&rows.tasks, problems);
    candidates.compare_all(&rows.candidates, problems);
    let mut attributes = Expected::new(&ATTRIBUTE);
    for (name, value) in &instance.attributes {
        attributes.add(of_attribute(instance.id, name, value));
    }
    let stored: Vec<Columns> = rows.attributes.iter().map(comparable).collect();
    attributes.compare_all(&stored, problems);
}

/// The canonical JSON of a list; null for an empty one.
fn filled<T: Serialize>(items: &[T]) -> Value {
    match items {
        [] => Value::Null,
        items => json!(Json::of(&items).as_str()),
    }
}

fn of_instance(instance: &Instance) -> ExpectedRow {
    let suspended_at = match instance.status {
        Status::Suspended { at, .. } => Some(at),
        _ => None,
    };
    let state_instances = instance.state_instances().count();
    vec![
        ("id", json!(instance.id)),
        ("ended_at", time_or_null(instance.status.ended_at())),
        ("started_at", time(instance.started_at)),
        ("updated_at", time(instance.updated_at)),
        ("suspended_at", time_or_null(suspended_at)),
        ("state_instances", json!(state_instances)),
        ("buffered_signals", filled(&instance.buffered)),
        ("title", json!(instance.labels.title)),
        ("summary", json!(instance.labels.summary)),
        ("sole", json!(instance.sole)),
        ("observers", json!(instance.observers)),
    ]
}

fn of_state_instance(
    state_instance: &StateInstance,
    past: Option<&PastState>,
    waiting: bool,
) -> ExpectedRow {
    let mut row = columns(StateInstance::COLUMNS, state_instance.columns());
    if past.is_some() {
        row.retain(|(column, _)| !StateInstance::CLEARED.contains(column));
    }
    row.extend([
        ("waiting", json!(waiting)),
        ("left_at", time_or_null(past.map(|past| past.left_at))),
        ("left_trigger", json!(past.map(|past| &past.left_trigger))),
        (
            "left_actor",
            json!(past.and_then(|past| past.actor.as_ref())),
        ),
    ]);
    row
}

fn of_task(ordinal: usize, task: &Task) -> ExpectedRow {
    let mut row = columns(Task::COLUMNS, task.columns());
    row.extend(columns(TaskStatus::COLUMNS, task.status.columns()));
    // `instance` compares these.
    row.retain(|(column, _)| !["status", "owner"].contains(column));
    row.push(("ordinal", json!(ordinal)));
    row
}

/// The rows of the candidates of an open task.
fn of_candidates(task: &Task, expected: &mut Expected) {
    if !task.status.is_open() {
        return;
    }
    for candidate in &task.candidates {
        expected.add(vec![
            ("task_id", json!(task.id)),
            ("kind", json!(candidate.principal_kind())),
            ("principal", json!(candidate.id())),
        ]);
    }
}

fn of_attribute(instance: InstanceId, name: &str, value: &AttributeValue) -> ExpectedRow {
    let (mut text, mut boolean, mut decimal) = (Value::Null, Value::Null, Value::Null);
    let (mut float, mut timestamp, mut bytes) = (Value::Null, Value::Null, Value::Null);
    let kind = match value {
        AttributeValue::Text(value) => {
            text = json!(value);
            "text"
        }
        AttributeValue::Boolean(value) => {
            boolean = json!(value);
            "boolean"
        }
        AttributeValue::Decimal(value) => {
            decimal = json!(plain(value));
            "decimal"
        }
        AttributeValue::Float(value) => {
            float = json!(value);
            "float"
        }
        AttributeValue::Timestamp(value) => {
            timestamp = time(*value);
            "timestamp"
        }
        AttributeValue::Bytes(value) => {
            bytes = json!(format!("\\x{}", hex(value)));
            "bytes"
        }
    };
    vec![
        ("instance_id", json!(instance)),
        ("name", json!(name)),
        ("type", json!(kind)),
        ("text_value", text),
        ("boolean_value", boolean),
        ("decimal_value", decimal),
        ("float_value", float),
        ("timestamp_value", timestamp),
        ("bytes_value", bytes),
    ]
}

/// A row of an attribute, with numbers in the form of [`of_attribute`].
fn comparable(row: &Columns) -> Columns {
    let mut row = row.clone();
    if let Some(number) = row.get("float_value").and_then(Value::as_f64) {
        row.insert("float_value".to_owned(), json!(number));
    }
    if let Some(decimal) = row.get("decimal_value").and_then(Value::as_str) {
        let decimal = plain(decimal);
        row.insert("decimal_value".to_owned(), json!(decimal));
    }
    row
}

/// A decimal without leading zeros and the sign of zero. Trailing zeros stay, as PostgreSQL keeps them.
fn plain(decimal: &str) -> String {
    let (sign, digits) = match decimal.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", decimal),
    };
    let is_zero = !digits.bytes().any(|digit| (b'1'..=b'9').contains(&digit));
    let trimmed = digits.trim_start_matches('0');
    let whole = if trimmed.is_empty() || trimmed.starts_with('.') {
        "0"
    } else {
        ""
    };
    format!("{}{whole}{trimmed}", if is_zero { "" } else { sign })
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn decimals_of_one_value_are_written_alike() {
        for (written, kept) in [
            ("007.50", "7.50"),
            ("-0.0", "0.0"),
            ("0", "0"),
            ("-12", "-12"),
            ("00", "0"),
            ("-0.5", "-0.5"),
        ] {
            assert_eq!(plain(written), kept, "{written}");
        }
    }
}
