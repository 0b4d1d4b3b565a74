//! A change as columns of rows, one struct per table, ready to travel as arrays.
//!
//! The rows are net: what a chain of states created and left within one command is written once, because one
//! statement cannot update a row that it inserts.

use sqlx::types::Uuid;

use super::Change;
use crate::domain::answer::{AttributeValue, Principal};
use crate::domain::audit::Entry;
use crate::domain::instance::{Instance, StateInstance, Status, Task, TaskStatus};
use crate::domain::json::Json;
use crate::store::time::Time;

/// Lanes of the outbox. An instance always hashes to the same one.
pub const LANES: u64 = 16;

/// Declares a struct of columns.
macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident { $($column:ident: $type:ty),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Default)]
        pub(super) struct $name { $(pub(super) $column: Vec<$type>),+ }
    )+};
}

columns! {
    Members {
        tenant: i32, id: Uuid, command: Uuid, revision_from: i32, revision_to: i32, lane: i16, status: String,
        outcome: Option<String>, end_reason: Option<String>, ended_by: Option<String>, ended_at: Option<Time>,
        data: String, updated_at: Time, audit_seq: i64, audit_head: Vec<u8>, event_seq: i64, stays: i32,
    }
    Replies {
        tenant: i32, command: Uuid, principal: String, key: String, fingerprint: Vec<u8>, status: i16,
        body: String, headers: String, created_at: Time,
    }
    Starts {
        command: Uuid, definition_key: String, definition_version: i32, entity_type: String, entity_id: String,
        initiator: String, requesters: String, predecessor: Option<Uuid>, parent: Option<Uuid>, started_at: Time,
    }
    Entered {
        command: Uuid, id: Uuid, ordinal: i32, name: String, entered_at: Time, due_at: Option<Time>, predecessors: String,
        entered_by: Option<String>, caller: Option<String>, needed: i32, exclude: String, fallback: Option<String>,
        priority: i16, left_at: Option<Time>, left_by: Option<String>, left_actor: Option<String>,
    }
    Departed { command: Uuid, id: Uuid, left_at: Time, left_by: String, left_actor: Option<String> }
    Created {
        command: Uuid, id: Uuid, state: Uuid, ordinal: i32, label: String, status: String, owner: Option<String>,
        candidates: String, form: Option<String>, created_at: Time, claimed_at: Option<Time>, ended_at: Option<Time>,
    }
    Changed {
        command: Uuid, id: Uuid, status: String, owner: Option<String>, claimed_at: Option<Time>, ended_at: Option<Time>,
    }
    Offered { command: Uuid, task: Uuid, kind: String, principal: String }
    Withdrawn { command: Uuid, task: Uuid }
    Decided {
        command: Uuid, task: Uuid, outcome: String, actor: String, on_behalf_of: Option<String>, comment: Option<String>,
        input: String, decided_at: Time, key_id: String, mac_version: i16, mac: Vec<u8>,
    }
    Attributed {
        command: Uuid, name: String, kind: String, text: Option<String>, boolean: Option<bool>, decimal: Option<String>,
        float: Option<f64>, timestamp: Option<Time>, bytes: Option<Vec<u8>>,
    }
    Unattributed { command: Uuid, name: String }
    Audited {
        command: Uuid, seq: i64, id: Uuid, kind: String, revision: i32, actor: Option<String>, task: Option<Uuid>,
        payload: String, evidence: Option<String>, salt: Vec<u8>, at: Time, hash: Vec<u8>, event_seq: Option<i64>,
        traceparent: Option<String>,
    }
}

/// All rows of a batch.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) members: Members,
    pub(super) replies: Replies,
    pub(super) starts: Starts,
    pub(super) entered: Entered,
    pub(super) departed: Departed,
    pub(super) created: Created,
    pub(super) changed: Changed,
    pub(super) offered: Offered,
    pub(super) withdrawn: Withdrawn,
    pub(super) decided: Decided,
    pub(super) attributed: Attributed,
    pub(super) unattributed: Unattributed,
    pub(super) audited: Audited,
}

/// When and by what a stay was left.
type Departure = (Time, String, Option<String>);

impl Rows {
    pub(super) fn of(changes: &[&Change]) -> Rows {
        let mut rows = Rows::default();
        for change in changes {
            rows.change(change);
        }
        rows
    }

    fn change(&mut self, change: &Change) {
        let command = change.command.0;
        let before = change.before.as_ref().map(|stored| &stored.instance);
        let stays_before = change.before.as_ref().map_or(0, |stored| stored.stays);
        let mut ordinal = stays_before;
        let mut after: Vec<_> = change
            .after
            .past
            .iter()
            .map(|past| (&past.state, Some(departure(past))))
            .collect();
        after.extend(change.after.active.iter().map(|state| (state, None)));
        // The order of entering is the order of the ids, which one generator made within one command.
        after.sort_by_key(|(state, _)| (state.entered_at, state.id));
        for (state, left) in after {
            match before.and_then(|before| before.stays().find(|stay| stay.id == state.id)) {
                None => {
                    self.enter(command, ordinal, state, left);
                    ordinal += 1;
                    self.tasks(change, &[], state);
                }
                Some(known) => {
                    let was_active = before
                        .is_some_and(|before| before.active.iter().any(|stay| stay.id == state.id));
                    if let (true, Some(left)) = (was_active, left) {
                        self.depart(command, state, left);
                    }
                    self.tasks(change, &known.tasks, state);
                }
            }
        }
        self.attributes(command, before, &change.after);
        for entry in &change.entries {
            self.audit(entry);
        }
        self.reply(change);
        if before.is_none() {
            self.start(command, &change.after);
        }
        self.member(change, ordinal);
    }

    fn member(&mut self, change: &Change, stays: u32) {
        let (rows, after) = (&mut self.members, &change.after);
        let last = change.entries.last();
        let event_seq = change
            .entries
            .iter()
            .rev()
            .find_map(|entry| entry.event_seq);
        let before = change.before.as_ref();
        rows.tenant.push(change.tenant.0);
        rows.id.push(after.id.0);
        rows.command.push(change.command.0);
        rows.revision_from
            .push(before.map_or(0, |stored| stored.instance.revision.cast_signed()));
        rows.revision_to.push(after.revision.cast_signed());
        rows.lane.push(lane(after.id.0));
        rows.status.push(after.status.name().to_owned());
        let (outcome, reason, by) = match &after.status {
            Status::Running | Status::Suspended => (None, None, None),
            Status::Completed { outcome, .. } => (Some(outcome.clone()), None, None),
            Status::Cancelled { reason, by, .. } => (None, Some(reason.clone()), Some(by.clone())),
        };
        rows.outcome.push(outcome);
        rows.end_reason.push(reason);
        rows.ended_by.push(by);
        rows.ended_at.push(after.status.ended_at().map(Time));
        rows.data.push(after.data.to_string());
        rows.updated_at.push(Time(after.updated_at));
        rows.audit_seq
            .push(last.map_or(0, |entry| entry.seq.cast_signed()));
        rows.audit_head
            .push(last.map_or_else(Vec::new, |entry| entry.hash.to_vec()));
        let known = before.map_or(0, |stored| stored.head.event_seq);
        rows.event_seq
            .push(event_seq.unwrap_or(known).cast_signed());
        rows.stays.push(stays.cast_signed());
    }

    fn reply(&mut self, change: &Change) {
        let Some(keyed) = &change.reply else { return };
        let rows = &mut self.replies;
        rows.tenant.push(change.tenant.0);
        rows.command.push(change.command.0);
        rows.principal.push(keyed.principal.clone());
        rows.key.push(keyed.key.clone());
        rows.fingerprint.push(keyed.reply.fingerprint.clone());
        rows.status.push(keyed.reply.status.cast_signed());
        rows.body.push(keyed.reply.body.clone());
        rows.headers.push(keyed.reply.headers.clone());
        rows.created_at.push(Time(change.after.updated_at));
    }

    fn start(&mut self, command: Uuid, after: &Instance) {
        let rows = &mut self.starts;
        rows.command.push(command);
        rows.definition_key.push(after.definition.key.clone());
        rows.definition_version
            .push(after.definition.version.cast_signed());
        rows.entity_type.push(after.entity.kind.clone());
        rows.entity_id.push(after.entity.id.clone());
        rows.initiator.push(after.initiator.clone());
        rows.requesters.push(array(&after.requesters));
        rows.predecessor.push(after.predecessor.map(|id| id.0));
        rows.parent.push(after.parent.map(|id| id.0));
        rows.started_at.push(Time(after.started_at));
    }

    fn enter(
        &mut self,
        command: Uuid,
        ordinal: u32,
        state: &StateInstance,
        left: Option<Departure>,
    ) {
        let rows = &mut self.entered;
        rows.command.push(command);
        rows.id.push(state.id.0);
        rows.ordinal.push(ordinal.cast_signed());
        rows.name.push(state.name.clone());
        rows.entered_at.push(Time(state.entered_at));
        rows.due_at.push(state.due_at.map(Time));
        rows.predecessors.push(array(&state.predecessors));
        rows.entered_by.push(state.entered_by.clone());
        rows.caller.push(state.caller.clone());
        rows.needed.push(state.needed.cast_signed());
        rows.exclude.push(array(&state.exclude));
        rows.fallback.push(state.fallback.clone());
        rows.priority.push(state.priority.into());
        let (left_at, left_by, left_actor) = match left {
            Some((at, by, actor)) => (Some(at), Some(by), actor),
            None => (None, None, None),
        };
        rows.left_at.push(left_at);
        rows.left_by.push(left_by);
        rows.left_actor.push(left_actor);
    }

    fn depart(&mut self, command: Uuid, state: &StateInstance, (at, by, actor): Departure) {
        let rows = &mut self.departed;
        rows.command.push(command);
        rows.id.push(state.id.0);
        rows.left_at.push(at);
        rows.left_by.push(by);
        rows.left_actor.push(actor);
    }

    fn tasks(&mut self, change: &Change, known: &[Task], state: &StateInstance) {
        let command = change.command.0;
        for (ordinal, task) in (0_i32..).zip(&state.tasks) {
            let old = known.iter().find(|old| old.id == task.id);
            match old {
                None => self.create(command, ordinal, state, task),
                Some(old) if old.status != task.status => self.alter(command, old, task),
                Some(_) => continue,
            }
            if task.decision().is_some() && old.is_none_or(|old| old.decision().is_none()) {
                self.decide(change, task);
            }
        }
    }

    fn create(&mut self, command: Uuid, ordinal: i32, state: &StateInstance, task: &Task) {
        let rows = &mut self.created;
        let (claimed_at, ended_at) = times(&task.status);
        rows.command.push(command);
        rows.id.push(task.id.0);
        rows.state.push(state.id.0);
        rows.ordinal.push(ordinal);
        rows.label.push(task.label.clone());
        rows.status.push(task.status.name().to_owned());
        rows.owner.push(task.owner().map(str::to_owned));
        rows.candidates.push(Json::of(&task.candidates).to_string());
        rows.form.push(task.form.as_ref().map(Json::to_string));
        rows.created_at.push(Time(task.created_at));
        rows.claimed_at.push(claimed_at);
        rows.ended_at.push(ended_at);
        if task.status.is_open() {
            self.offer(command, task);
        }
    }

    fn offer(&mut self, command: Uuid, task: &Task) {
        let mut candidates = task.candidates.clone();
        candidates.sort_unstable();
        candidates.dedup();
        for candidate in candidates {
            let (kind, principal) = match candidate {
                Principal::User(id) => ("user", id),
                Principal::Group(id) => ("group", id),
                Principal::ManagerOf(_) => continue,
            };
            self.offered.command.push(command);
            self.offered.task.push(task.id.0);
            self.offered.kind.push(kind.to_owned());
            self.offered.principal.push(principal);
        }
    }

    fn alter(&mut self, command: Uuid, old: &Task, task: &Task) {
        let rows = &mut self.changed;
        let (claimed_at, ended_at) = times(&task.status);
        rows.command.push(command);
        rows.id.push(task.id.0);
        rows.status.push(task.status.name().to_owned());
        rows.owner.push(task.owner().map(str::to_owned));
        rows.claimed_at.push(claimed_at);
        rows.ended_at.push(ended_at);
        if old.status.is_open() && !task.status.is_open() {
            self.withdrawn.command.push(command);
            self.withdrawn.task.push(task.id.0);
        }
    }

    fn decide(&mut self, change: &Change, task: &Task) {
        let decision = task.decision().expect("asked for a decided task only");
        let seal = change
            .seals
            .iter()
            .find(|seal| seal.task == task.id)
            .expect("every decision is sealed");
        let rows = &mut self.decided;
        rows.command.push(change.command.0);
        rows.task.push(task.id.0);
        rows.outcome.push(decision.outcome.clone());
        rows.actor.push(decision.actor.clone());
        rows.on_behalf_of.push(decision.on_behalf_of.clone());
        rows.comment.push(decision.comment.clone());
        rows.input.push(decision.input.to_string());
        rows.decided_at.push(Time(decision.decided_at));
        rows.key_id.push(seal.key_id.clone());
        rows.mac_version.push(seal.version);
        rows.mac.push(seal.mac.to_vec());
    }

    fn attributes(&mut self, command: Uuid, before: Option<&Instance>, after: &Instance) {
        let old = before
            .map(|before| before.attributes.clone())
            .unwrap_or_default();
        for name in old
            .keys()
            .filter(|name| !after.attributes.contains_key(*name))
        {
            self.unattributed.command.push(command);
            self.unattributed.name.push(name.clone());
        }
        for (name, value) in after
            .attributes
            .iter()
            .filter(|(name, value)| old.get(*name) != Some(*value))
        {
            self.attribute(command, name, value);
        }
    }

    fn attribute(&mut self, command: Uuid, name: &str, value: &AttributeValue) {
        let rows = &mut self.attributed;
        rows.command.push(command);
        rows.name.push(name.to_owned());
        let (mut text, mut boolean, mut decimal, mut float, mut timestamp, mut bytes) =
            (None, None, None, None, None, None);
        rows.kind.push(
            match value {
                AttributeValue::Text(value) => {
                    text = Some(value.clone());
                    "text"
                }
                AttributeValue::Boolean(value) => {
                    boolean = Some(*value);
                    "boolean"
                }
                AttributeValue::Decimal(value) => {
                    decimal = Some(value.clone());
                    "decimal"
                }
                AttributeValue::Float(value) => {
                    float = Some(*value);
                    "float"
                }
                AttributeValue::Timestamp(value) => {
                    timestamp = Some(Time(*value));
                    "timestamp"
                }
                AttributeValue::Bytes(value) => {
                    bytes = Some(value.clone());
                    "bytes"
                }
            }
            .to_owned(),
        );
        rows.text.push(text);
        rows.boolean.push(boolean);
        rows.decimal.push(decimal);
        rows.float.push(float);
        rows.timestamp.push(timestamp);
        rows.bytes.push(bytes);
    }

    fn audit(&mut self, entry: &Entry) {
        let (rows, draft) = (&mut self.audited, &entry.draft);
        rows.command.push(draft.command.0);
        rows.seq.push(entry.seq.cast_signed());
        rows.id.push(draft.id);
        rows.kind.push(draft.kind.clone());
        rows.revision.push(draft.revision.cast_signed());
        rows.actor.push(draft.actor.clone());
        rows.task.push(draft.task.map(|task| task.0));
        rows.payload.push(draft.payload.to_string());
        rows.evidence
            .push(draft.evidence.as_ref().map(Json::to_string));
        rows.salt.push(draft.salt.to_vec());
        rows.at.push(Time(draft.at));
        rows.hash.push(entry.hash.to_vec());
        rows.event_seq.push(entry.event_seq.map(u64::cast_signed));
        rows.traceparent.push(draft.traceparent.clone());
    }
}

fn departure(past: &crate::domain::instance::PastState) -> Departure {
    (Time(past.left_at), past.left_by.clone(), past.actor.clone())
}

/// When the task was claimed, and when it ended.
fn times(status: &TaskStatus) -> (Option<Time>, Option<Time>) {
    match status {
        TaskStatus::Pending => (None, None),
        TaskStatus::Claimed { claimed_at, .. } => (Some(Time(*claimed_at)), None),
        TaskStatus::Completed {
            claimed_at,
            decision,
            ..
        } => (Some(Time(*claimed_at)), Some(Time(decision.decided_at))),
        TaskStatus::Cancelled { cancelled_at, .. } => (None, Some(Time(*cancelled_at))),
    }
}

/// The lane of an instance: from the random end of its id, so that any host finds the same.
fn lane(id: Uuid) -> i16 {
    let (_, random) = id.as_u64_pair();
    i16::try_from(random % LANES).expect("fewer lanes than an i16 counts")
}

/// An array inside an array does not travel; its text does.
fn array(items: &[impl ToString]) -> String {
    let quoted = |item: &dyn ToString| {
        format!(
            "\"{}\"",
            item.to_string().replace('\\', "\\\\").replace('"', "\\\"")
        )
    };
    format!(
        "{{{}}}",
        items
            .iter()
            .map(|item| quoted(item))
            .collect::<Vec<_>>()
            .join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_text_keeps_what_ids_may_contain() {
        assert_eq!(
            array(&["a", "b,c", "d\"e\\f", ""]),
            r#"{"a","b,c","d\"e\\f",""}"#
        );
        assert_eq!(array(&[] as &[String]), "{}");
    }
}
