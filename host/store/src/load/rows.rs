//! Converts the rows of an instance and its parts, which the query returns as JSON.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::Stored;
use crate::StoreError;
use wrkflw_core::answer::AttributeValue;
use wrkflw_core::audit::Head;
use wrkflw_core::column::Row;
use wrkflw_core::ids::{InstanceId, StateId, VersionRef, unhex};
use wrkflw_core::instance::{
    Decision, Entity, Instance, PastState, StateInstance, Status, Task, TaskStatus,
};
use wrkflw_core::json::Json;
use wrkflw_core::template::Labels;

/// A row of `instance`, as JSON of the query.
#[derive(Debug, Deserialize)]
pub(super) struct InstanceRow {
    id: Uuid,
    definition_key: String,
    definition_version: u32,
    revision: u32,
    status: String,
    outcome: Option<String>,
    end_reason: Option<String>,
    ended_by: Option<String>,
    ended_at: Option<Timestamp>,
    entity_type: String,
    entity_id: String,
    initiator: String,
    requesters: Vec<String>,
    predecessor: Option<InstanceId>,
    parent: Option<InstanceId>,
    data: String,
    started_at: Timestamp,
    updated_at: Timestamp,
    audit_seq: u64,
    audit_head: String,
    event_seq: u64,
    state_instances: u32,
    suspended_at: Option<Timestamp>,
    suspended_by: Option<String>,
    suspend_reason: Option<String>,
    buffered_signals: Option<String>,
    title: Option<String>,
    summary: Option<String>,
    sole: bool,
    observers: Option<Vec<String>>,
}

/// A row of `attribute`. Decimals are text, so that they lose no digit.
#[derive(Debug, Deserialize)]
pub(super) struct AttributeRow {
    name: String,
    r#type: String,
    text_value: Option<String>,
    boolean_value: Option<bool>,
    decimal_value: Option<String>,
    float_value: Option<f64>,
    timestamp_value: Option<Timestamp>,
    bytes_value: Option<String>,
}

impl InstanceRow {
    pub(super) fn into_domain(
        self,
        state_instances: Vec<&RawValue>,
        tasks: Vec<&RawValue>,
        attributes: Vec<AttributeRow>,
    ) -> Result<Stored, StoreError> {
        let status = self.status()?;
        let hash = bytes(&self.audit_head).and_then(|bytes| bytes.try_into().ok());
        let hash = hash.ok_or_else(|| {
            StoreError::inconsistent("instance", self.id, "a malformed audit head")
        })?;
        let head = Head {
            seq: self.audit_seq,
            hash,
            event_seq: self.event_seq,
        };
        let mut tasks_of: BTreeMap<StateId, Vec<Task>> = BTreeMap::new();
        for row in tasks {
            let (state, task) = task(row.get()).map_err(as_loaded("task"))?;
            tasks_of.entry(state).or_default().push(task);
        }
        let (mut active, mut waiting, mut past) = (Vec::new(), Vec::new(), Vec::new());
        for row in state_instances {
            let place = place(row.get(), &mut tasks_of).map_err(as_loaded("state_instance"))?;
            match place {
                LoadedState::Active(state) => active.push(state),
                LoadedState::Waiting(state) => waiting.push(state),
                LoadedState::Past(state) => past.push(state),
            }
        }
        let mut instance = Instance {
            id: InstanceId(self.id),
            definition: VersionRef {
                key: self.definition_key,
                version: self.definition_version,
            },
            revision: self.revision,
            entity: Entity {
                kind: self.entity_type,
                id: self.entity_id,
            },
            initiator: self.initiator,
            requesters: self.requesters,
            status,
            started_at: self.started_at,
            updated_at: self.updated_at,
            predecessor: self.predecessor,
            sole: self.sole,
            observers: self.observers,
            parent: self.parent,
            data: Json::from_canonical(self.data),
            labels: Labels {
                title: self.title,
                summary: self.summary,
            },
            attributes: attributes
                .into_iter()
                .map(AttributeRow::into_domain)
                .collect::<Result<_, _>>()?,
            active,
            waiting,
            past,
            buffered: list("instance", self.id, self.buffered_signals.as_deref())?,
        };
        instance.sort();
        Ok(Stored {
            instance,
            head,
            state_instances: self.state_instances,
        })
    }

    fn status(&self) -> Result<Status, StoreError> {
        let missing = |what: &str| {
            StoreError::inconsistent(
                "instance",
                self.id,
                format!("{} without {what}", self.status),
            )
        };
        let at = || self.ended_at.ok_or_else(|| missing("ended_at"));
        match self.status.as_str() {
            "RUNNING" => Ok(Status::Running),
            "SUSPENDED" => Ok(Status::Suspended {
                reason: self
                    .suspend_reason
                    .clone()
                    .ok_or_else(|| missing("suspend_reason"))?,
                by: self
                    .suspended_by
                    .clone()
                    .ok_or_else(|| missing("suspended_by"))?,
                at: self.suspended_at.ok_or_else(|| missing("suspended_at"))?,
            }),
            "COMPLETED" => Ok(Status::Completed {
                outcome: self.outcome.clone().ok_or_else(|| missing("outcome"))?,
                at: at()?,
            }),
            "CANCELLED" => Ok(Status::Cancelled {
                reason: self
                    .end_reason
                    .clone()
                    .ok_or_else(|| missing("end_reason"))?,
                by: self.ended_by.clone().ok_or_else(|| missing("ended_by"))?,
                at: at()?,
            }),
            other => Err(StoreError::inconsistent(
                "instance",
                self.id,
                format!("status {other}"),
            )),
        }
    }
}

/// A state instance, by its phase.
enum LoadedState {
    Active(StateInstance),
    Waiting(StateInstance),
    Past(PastState),
}

/// The state instance of a row. Takes its tasks.
fn place(
    row: &str,
    tasks_of: &mut BTreeMap<StateId, Vec<Task>>,
) -> Result<LoadedState, serde_json::Error> {
    let row = Row::parse(row)?;
    let tasks = tasks_of.remove(&row.value("id")?).unwrap_or_default();
    let mut state = StateInstance::of_row(&row, tasks)?;
    let left: (Option<Timestamp>, Option<String>) =
        (row.value("left_at")?, row.value("left_trigger")?);
    Ok(match left {
        (Some(left_at), Some(left_trigger)) => {
            state.clear();
            LoadedState::Past(PastState {
                state,
                left_at,
                left_trigger,
                actor: row.value("left_actor")?,
            })
        }
        _ if row.value("waiting")? => LoadedState::Waiting(state),
        _ => LoadedState::Active(state),
    })
}

/// The task of a row with the row of its decision, and the state instance that it belongs to.
fn task(row: &str) -> Result<(StateId, Task), serde_json::Error> {
    let row = Row::parse(row)?;
    let decision = row.value::<Option<Row<'_>>>("decision")?;
    let decision = decision.map(|row| Decision::of_row(&row)).transpose()?;
    let task = Task::of_row(&row, TaskStatus::of_row(&row, decision)?)?;
    Ok((row.value("state_id")?, task))
}

impl AttributeRow {
    fn into_domain(self) -> Result<(String, AttributeValue), StoreError> {
        let value = match self.r#type.as_str() {
            "text" => self.text_value.map(AttributeValue::Text),
            "boolean" => self.boolean_value.map(AttributeValue::Boolean),
            "decimal" => self.decimal_value.map(AttributeValue::Decimal),
            "float" => self.float_value.map(AttributeValue::Float),
            "timestamp" => self.timestamp_value.map(AttributeValue::Timestamp),
            "bytes" => self
                .bytes_value
                .as_deref()
                .and_then(bytes)
                .map(AttributeValue::Bytes),
            _ => None,
        };
        match value {
            Some(value) => Ok((self.name, value)),
            None => Err(StoreError::inconsistent(
                "attribute",
                self.name,
                format!("no {} value", self.r#type),
            )),
        }
    }
}

/// Parses the JSON of a table's rows.
pub(super) fn read<'t, T: Deserialize<'t>>(
    table: &'static str,
    text: &'t str,
) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(as_loaded(table))
}

fn as_loaded(table: &'static str) -> impl Fn(serde_json::Error) -> StoreError {
    move |error| StoreError::inconsistent(table, "as it was loaded", error)
}

/// Parses a list that is stored as JSON; none is an empty list.
fn list<T: DeserializeOwned>(
    table: &'static str,
    id: impl std::fmt::Display,
    text: Option<&str>,
) -> Result<Vec<T>, StoreError> {
    let Some(text) = text else {
        return Ok(Vec::new());
    };
    serde_json::from_str(text).map_err(|error| StoreError::inconsistent(table, id, error))
}

/// Bytes as PostgreSQL's JSON functions write them: `\x` and hexadecimal digits.
fn bytes(text: &str) -> Option<Vec<u8>> {
    unhex(text.strip_prefix("\\x")?)
}
