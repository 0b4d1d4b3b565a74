//! Compares the rows that follow from the audit entries with the stored rows. A finding names the table, the key of the row, and the
//! column.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Problem;
use crate::record::rows::Columns;
use wrkflw_core::audit::sha256;
use wrkflw_core::column::Column;
use wrkflw_core::ids::hex;

/// Maximum number of characters of a value that a finding shows.
const SHOWN_MAX: usize = 200;

/// The description of a table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The code of its findings.
    pub(super) code: &'static str,
    /// The columns that identify a row within its tenant.
    pub(super) key: &'static [&'static str],
    /// Columns whose values findings do not show, because they may be confidential or mean nothing to a reader.
    pub(super) hidden: &'static [&'static str],
}

/// The columns of one row, with the values that follow from the audit entries. Columns that no entry records are left out.
pub(super) type ExpectedRow = Vec<(&'static str, Value)>;

/// The rows of a table that follow from the entries, by key. Each comparison removes its row.
pub(super) struct Expected {
    table: &'static Table,
    rows: BTreeMap<String, ExpectedRow>,
}

impl Expected {
    pub(super) fn new(table: &'static Table) -> Expected {
        Expected {
            table,
            rows: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, row: ExpectedRow) {
        let value_of = |name: &str| {
            let column = row.iter().find(|(column, _)| *column == name);
            column.map_or(&Value::Null, |(_, value)| value)
        };
        let key = key(self.table, value_of);
        self.rows.insert(key, row);
    }

    /// Compares a stored row with the expected one.
    pub(super) fn compare(&mut self, stored: &Columns, problems: &mut Vec<Problem>) {
        let table = self.table;
        let key = key(table, |name| stored.get(name).unwrap_or(&Value::Null));
        let name = table.name;
        let Some(expected) = self.rows.remove(&key) else {
            let detail = format!("{name} ({key}): this row exists, but no entry records it");
            problems.push(Problem::new(None, table.code, detail));
            return;
        };
        for (column, expected) in &expected {
            let stored = stored.get(*column).unwrap_or(&Value::Null);
            if stored == expected {
                continue;
            }
            let detail = if table.hidden.contains(column) {
                format!("{name} ({key}): {column} is not what its audit entries say")
            } else {
                let (stored, expected) = (shown(stored), shown(expected));
                format!(
                    "{name} ({key}): {column} is {stored}, but its audit entries say {expected}"
                )
            };
            problems.push(Problem::new(None, table.code, detail));
        }
    }

    /// Reports the expected rows that no stored row matched.
    pub(super) fn report_missing(self, problems: &mut Vec<Problem>) {
        let name = self.table.name;
        for key in self.rows.into_keys() {
            let detail =
                format!("{name} ({key}): this row is missing, but its audit entries record it");
            problems.push(Problem::new(None, self.table.code, detail));
        }
    }

    /// Compares all stored rows, and reports the missing ones.
    pub(super) fn compare_all<'a>(
        mut self,
        stored: impl IntoIterator<Item = &'a Columns>,
        problems: &mut Vec<Problem>,
    ) {
        for row in stored {
            self.compare(row, problems);
        }
        self.report_missing(problems);
    }
}

fn key<'a>(table: &Table, value_of: impl Fn(&str) -> &'a Value) -> String {
    let parts = table
        .key
        .iter()
        .map(|name| format!("{name} {}", shown_key(value_of(name))));
    parts.collect::<Vec<_>>().join(", ")
}

fn shown_key(value: &Value) -> String {
    value.to_string()
}

/// A value as JSON, cut if it is long.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// A time as PostgreSQL stores and writes it: to the microsecond.
pub(super) fn time(at: Timestamp) -> Value {
    let kept = Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at);
    Value::String(kept.strftime("%Y-%m-%dT%H:%M:%S%.f+00:00").to_string())
}

pub(super) fn time_or_null(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, time)
}

/// The columns of a record with their values as PostgreSQL's JSON functions write them.
pub(super) fn columns(names: &[&'static str], values: Vec<Column<'_>>) -> ExpectedRow {
    let values = values.into_iter().map(|value| match value {
        Column::Id(id) => json!(id),
        Column::Ids(ids) => json!(ids),
        Column::Text(text) => json!(text),
        Column::Texts(texts) => json!(texts),
        Column::Json(text) => json!(text),
        Column::Time(at) => time_or_null(at),
        Column::Integer(number) => json!(number),
        Column::Small(number) => json!(number),
        Column::Boolean(is_set) => json!(is_set),
    });
    names.iter().copied().zip(values).collect()
}

/// The SHA-256 of a long text, in hex. Rows have it in place of the text.
pub(super) fn digest(text: &str) -> Value {
    Value::String(hex(&sha256(text.as_bytes())))
}
