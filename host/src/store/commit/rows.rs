//! A change as columns of rows, one struct per table, ready to travel as arrays.
//!
//! The rows are net: what was created and left within one change is written once, because one statement cannot update a
//! row that it inserts. Each carries the number of its member in the batch.

mod attributes;
pub(super) mod jobs;
mod stays;
mod tasks;

use sqlx::types::Uuid;

use super::{Change, KeyedReply};
use crate::domain::audit::Entry;
use crate::domain::instance::{Instance, Status};
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
        suspended_at: Option<Time>, suspended_by: Option<String>, suspend_reason: Option<String>,
        early_signals: Option<String>, definition_version: i32, standing: Option<Uuid>,
        head_from: Option<Vec<u8>>,
    }
    Replies {
        tenant: i32, member: i32, principal: String, key: String, fingerprint: Vec<u8>, status: i16,
        body: String, headers: String,
    }
    Starts {
        member: i32, definition_key: String, definition_version: i32, entity_type: String, entity_id: String,
        initiator: String, requesters: String, predecessor: Option<Uuid>, parent: Option<Uuid>, started_at: Time,
    }
    Stays {
        member: i32, id: Uuid, ordinal: i32, name: String, entered_at: Time, due_at: Option<Time>, predecessors: String,
        entered_by: Option<String>, caller: Option<String>, needed: i32, exclude: String, fallback: Option<String>,
        priority: i16, forks: String, choices: i32, waiting: bool, deadlines: Option<String>,
        correlation: Option<String>, keep_early: bool, children: Option<String>, unassignable_since: Option<Time>,
        left_at: Option<Time>, left_by: Option<String>, left_actor: Option<String>,
    }
    Departed { member: i32, id: Uuid, left_at: Time, left_by: String, left_actor: Option<String> }
    Tasks {
        member: i32, id: Uuid, state: Uuid, ordinal: i32, label: String, status: String, owner: Option<String>,
        candidates: String, form: Option<String>, created_at: Time, claimed_at: Option<Time>, ended_at: Option<Time>,
        due_at: Option<Time>, deadlines: Option<String>, holding: Option<String>, cancel_reason: Option<String>,
    }
    Offered { member: i32, task: Uuid, kind: String, principal: String }
    Withdrawn { member: i32, task: Uuid, kind: Option<String>, principal: Option<String> }
    Decided {
        member: i32, task: Uuid, outcome: String, actor: String, on_behalf_of: Option<String>, comment: Option<String>,
        input: String, decided_at: Time, key_id: String, mac_version: i16, mac: Vec<u8>,
    }
    Attributed {
        member: i32, name: String, kind: String, text: Option<String>, boolean: Option<bool>, decimal: Option<String>,
        float: Option<f64>, timestamp: Option<Time>, bytes: Option<Vec<u8>>,
    }
    Unattributed { member: i32, name: String }
    Audited {
        member: i32, seq: i64, id: Uuid, kind: String, revision: i32, actor: Option<String>, task: Option<Uuid>,
        payload: String, evidence: Option<String>, salt: Vec<u8>, at: Time, hash: Vec<u8>, event_seq: Option<i64>,
        traceparent: Option<String>, command: Uuid,
    }
    Put { member: i32, id: Uuid, kind: String, instance: Uuid, due_at: Time, payload: String }
    Finished { member: i32, id: Uuid, cancels: Option<Uuid> }
    Signals { member: i32, signal: String, identity: Vec<u8>, content: Vec<u8>, entry: Option<Uuid> }
}

/// All rows of a batch.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) members: Members,
    pub(super) replies: Replies,
    pub(super) starts: Starts,
    pub(super) entered: Stays,
    pub(super) departed: Departed,
    pub(super) restayed: Stays,
    pub(super) created: Tasks,
    pub(super) changed: Tasks,
    pub(super) offered: Offered,
    pub(super) withdrawn: Withdrawn,
    pub(super) decided: Decided,
    pub(super) attributed: Attributed,
    pub(super) unattributed: Unattributed,
    pub(super) audited: Audited,
    pub(super) put: Put,
    pub(super) finished: Finished,
    pub(super) signals: Signals,
}

impl Rows {
    pub(super) fn of(changes: &[&Change]) -> Rows {
        let mut rows = Rows::default();
        for change in changes {
            rows.change(change);
        }
        rows
    }

    fn change(&mut self, change: &Change) {
        let member = self.number();
        let before = change.before.as_ref().map(|stored| &stored.instance);
        let known = before.map(stays::stays).unwrap_or_default();
        let mut ordinal = change.before.as_ref().map_or(0, |stored| stored.stays);
        for (state, standing) in stays::stays(&change.after) {
            match known.iter().find(|(stay, _)| stay.id == state.id) {
                None => {
                    self.enter(member, ordinal, state, standing);
                    ordinal += 1;
                    self.tasks(change, &[], state);
                }
                Some(known) => {
                    self.follow(member, *known, (state, standing));
                    self.tasks(change, &known.0.tasks, state);
                }
            }
        }
        self.jobs(change);
        for signal in &change.signals {
            self.signals.member.push(member);
            self.signals.signal.push(signal.key.id.clone());
            let identity = signal.key.identity(&signal.sender);
            self.signals.identity.push(identity.to_vec());
            self.signals.content.push(signal.content.to_vec());
            self.signals.entry.push(signal.entry);
        }
        self.attributes(member, before, &change.after);
        for entry in &change.entries {
            self.audit(entry);
        }
        for reply in &change.replies {
            self.reply(change, reply);
        }
        if before.is_none() {
            self.start(member, &change.after);
        }
        self.member(change, ordinal);
    }

    /// The number of the change whose rows are being made, from 1: its own row comes last.
    fn number(&self) -> i32 {
        i32::try_from(self.members.id.len() + 1).expect("no more than a batch")
    }

    fn member(&mut self, change: &Change, stays: u32) {
        let (rows, after) = (&mut self.members, &change.after);
        let (before, head) = (change.before.as_ref(), change.head());
        rows.tenant.push(change.tenant.0);
        rows.id.push(after.id.0);
        rows.command.push(change.command.0);
        rows.revision_from
            .push(before.map_or(0, |stored| stored.instance.revision.cast_signed()));
        rows.revision_to.push(after.revision.cast_signed());
        rows.lane.push(lane(after.id.0));
        rows.status.push(after.status.name().to_owned());
        let (outcome, reason, by) = match &after.status {
            Status::Running | Status::Suspended { .. } => (None, None, None),
            Status::Completed { outcome, .. } => (Some(outcome.clone()), None, None),
            Status::Cancelled { reason, by, .. } => (None, Some(reason.clone()), Some(by.clone())),
        };
        rows.outcome.push(outcome);
        rows.end_reason.push(reason);
        rows.ended_by.push(by);
        rows.ended_at.push(after.status.ended_at().map(Time));
        rows.data.push(after.data.to_string());
        rows.updated_at.push(Time(after.updated_at));
        rows.audit_seq.push(head.seq.cast_signed());
        rows.audit_head.push(head.hash.to_vec());
        rows.event_seq.push(head.event_seq.cast_signed());
        rows.stays.push(stays.cast_signed());
        let (suspended_at, suspended_by, suspend_reason) = match &after.status {
            Status::Suspended { reason, by, at } => {
                (Some(Time(*at)), Some(by.clone()), Some(reason.clone()))
            }
            _ => (None, None, None),
        };
        rows.suspended_at.push(suspended_at);
        rows.suspended_by.push(suspended_by);
        rows.suspend_reason.push(suspend_reason);
        rows.early_signals.push(filled(&after.early));
        rows.definition_version
            .push(after.definition.version.cast_signed());
        rows.standing.push(change.standing);
        let from = before.filter(|_| change.standing.is_some());
        rows.head_from
            .push(from.map(|stored| stored.head.hash.to_vec()));
    }

    fn reply(&mut self, change: &Change, keyed: &KeyedReply) {
        let member = self.number();
        let rows = &mut self.replies;
        rows.tenant.push(change.tenant.0);
        rows.member.push(member);
        rows.principal.push(keyed.principal.clone());
        rows.key.push(keyed.key.clone());
        rows.fingerprint.push(keyed.reply.fingerprint.clone());
        rows.status.push(keyed.reply.status.cast_signed());
        rows.body.push(keyed.reply.body.clone());
        rows.headers.push(keyed.reply.headers.clone());
    }

    fn start(&mut self, member: i32, after: &Instance) {
        let rows = &mut self.starts;
        rows.member.push(member);
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

    fn audit(&mut self, entry: &Entry) {
        let member = self.number();
        let (rows, draft) = (&mut self.audited, &entry.draft);
        rows.member.push(member);
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
        rows.command.push(draft.command.0);
    }
}

/// The lane of an instance: from the random end of its id, so that any host finds the same.
fn lane(id: Uuid) -> i16 {
    let (_, random) = id.as_u64_pair();
    i16::try_from(random % LANES).expect("fewer lanes than an i16 counts")
}

/// The canonical JSON of a list; none of an empty one.
fn filled<T: serde::Serialize>(items: &[T]) -> Option<String> {
    (!items.is_empty()).then(|| Json::of(&items).to_string())
}

/// An array inside an array does not travel; its text does.
pub(in crate::store) fn array(items: &[impl ToString]) -> String {
    let mut text = String::from("{");
    for (index, item) in items.iter().enumerate() {
        text.push_str(if index > 0 { ",\"" } else { "\"" });
        for letter in item.to_string().chars() {
            if matches!(letter, '"' | '\\') {
                text.push('\\');
            }
            text.push(letter);
        }
        text.push('"');
    }
    text.push('}');
    text
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
