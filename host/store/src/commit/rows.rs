//! The rows of a change, with one struct for each kind. They are sent as arrays of composite types.
//!
//! A state instance or task that one change creates and ends is one row with its final values, because a statement cannot
//! update a row that it inserts. Each row has the number of its member in the batch.

pub(super) mod jobs;
mod parts;

use std::collections::BTreeMap;

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::PgRecordEncoder;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo};
use sqlx::types::Uuid;
use sqlx::{Encode, Postgres, Type};

use super::{Change, KeyedReply};
use crate::time::Time;
use wrkflw_core::audit::Entry;
use wrkflw_core::column::Column;
use wrkflw_core::instance::{Decision, Instance, StateInstance, Status, Task, TaskStatus};
use wrkflw_core::json::Json;

/// Partitions of the outbox. An instance always hashes to the same one.
pub const PARTITIONS: u64 = 16;

/// Declares the structs of the rows and the list of their composite types, which have the same columns in the same order. After a
/// semicolon, a row may have the columns of a record.
/// `#[derive(sqlx::Type)]` does not support lifetimes, so every text would have to be copied.
macro_rules! rows {
    ($(
        $name:ident$(<$life:lifetime>)? as $sql:literal {
            $($column:ident: $type:ty),+ $(,)? $(; $($record:ident),+: $values:ty)?
        }
    )+) => {
        $(
            pub(super) struct $name$(<$life>)? {
                $(pub(super) $column: $type,)+
                $(
                    #[doc = concat!("The columns of `", stringify!($($record),+), "`.")]
                    pub(super) record: $values,
                )?
            }

            impl$(<$life>)? Type<Postgres> for $name$(<$life>)? {
                fn type_info() -> PgTypeInfo {
                    PgTypeInfo::with_name($sql)
                }
            }

            impl$(<$life>)? PgHasArrayType for $name$(<$life>)? {
                fn array_type_info() -> PgTypeInfo {
                    PgTypeInfo::array_of($sql)
                }
            }

            impl$(<$life>)? Encode<'_, Postgres> for $name$(<$life>)? {
                fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
                    let mut record = PgRecordEncoder::new(buffer);
                    $(record.encode(&self.$column)?;)+
                    $(
                        let columns: &$values = &self.record;
                        for column in columns {
                            encode(column, &mut record)?;
                        }
                    )?
                    record.finish();
                    Ok(IsNull::No)
                }
            }
        )+

        /// The composite types of a commit with their columns, in the order in which they are sent.
        pub fn row_types() -> Vec<(&'static str, Vec<&'static str>)> {
            vec![$(($sql, [&[$(stringify!($column)),+][..] $($(, $record::COLUMNS)+)?].concat())),+]
        }
    };
}

rows! {
    Member<'a> as "commit_member" {
        member: i32, tenant_id: i32, instance_id: Uuid, command_id: Uuid, revision_from: i32, revision_to: i32, partition: i16,
        status: &'static str, outcome: Option<&'a str>, end_reason: Option<&'a str>, ended_by: Option<&'a str>,
        ended_at: Option<Time>, data: &'a str, updated_at: Time, audit_seq: i64, audit_head: [u8; 32], event_seq: i64,
        state_instances: i32, suspended_at: Option<Time>, suspended_by: Option<&'a str>, suspend_reason: Option<&'a str>,
        buffered_signals: Option<String>, definition_version: i32, access_mark: Option<Uuid>, head_from: Option<&'a [u8]>,
        vacates: bool, title: Option<&'a str>, summary: Option<&'a str>, sole: bool,
        observers: Option<&'a [String]>,
    }
    Reply<'a> as "commit_reply" {
        member: i32, tenant_id: i32, command_id: Uuid, principal: &'a str, key: &'a str, fingerprint: &'a [u8], status: i16,
        body: &'a str, headers: &'a str,
    }
    Start<'a> as "commit_start" {
        member: i32, definition_key: &'a str, definition_version: i32, entity_type: &'a str, entity_id: &'a str,
        initiator: &'a str, requesters: &'a [String], predecessor: Option<Uuid>, parent: Option<Uuid>, started_at: Time,
    }
    State<'a> as "commit_state" {
        member: i32, tenant_id: i32, instance_id: Uuid, ordinal: i32, waiting: bool, left_at: Option<Time>,
        left_trigger: Option<&'a str>, left_actor: Option<&'a str>; StateInstance: Vec<Column<'a>>
    }
    Departure<'a> as "commit_departure" {
        member: i32, tenant_id: i32, instance_id: Uuid, id: Uuid, left_at: Time, left_trigger: &'a str, left_actor: Option<&'a str>,
    }
    TaskRow<'a> as "commit_task" {
        member: i32, tenant_id: i32, instance_id: Uuid, state_id: Uuid, ordinal: i32, restricted: bool; Task, TaskStatus: Vec<Column<'a>>
    }
    CandidateRow<'a> as "commit_candidate" {
        member: i32, tenant_id: i32, task_id: Uuid, kind: Option<&'static str>, principal: Option<&'a str>,
    }
    ParticipantRow<'a> as "commit_participant" {
        member: i32, tenant_id: i32, instance_id: Uuid, kind: &'static str, principal: &'a str,
    }
    AllocationRow<'a> as "commit_allocation" {
        member: i32, tenant_id: i32, definition_key: &'a str, state: &'a str, person_id: &'a str, given_at: Time,
    }
    Decided<'a> as "commit_decision" {
        member: i32, tenant_id: i32, instance_id: Uuid, task_id: Uuid, key_id: &'a str, mac_version: i16, mac: &'a [u8];
        Decision: Vec<Column<'a>>
    }
    DelegationSealRow<'a> as "commit_delegation_seal" {
        member: i32, tenant_id: i32, instance_id: Uuid, seq: i64, key_id: &'a str, mac_version: i16, mac: &'a [u8],
    }
    Attribute<'a> as "commit_attribute" {
        member: i32, tenant_id: i32, instance_id: Uuid, name: &'a str, r#type: Option<&'static str>, text_value: Option<&'a str>,
        boolean_value: Option<bool>, decimal_value: Option<&'a str>, float_value: Option<f64>, timestamp_value: Option<Time>,
        bytes_value: Option<&'a [u8]>,
    }
    EntryRow<'a> as "commit_entry" {
        member: i32, tenant_id: i32, stream_id: Uuid, seq: i64, id: Uuid, r#type: &'a str, revision: i32, command_id: Uuid,
        actor: Option<&'a str>, task_id: Option<Uuid>, payload: &'a str, evidence: Option<&'a str>, salt: &'a [u8],
        occurred_at: Time, hash: &'a [u8], event_seq: Option<i64>, traceparent: Option<&'a str>,
    }
    Job as "commit_job" {
        member: i32, tenant_id: i32, id: Uuid, kind: &'static str, instance_id: Uuid, due_at: Time, payload: String,
        service: Option<String>,
    }
    FinishedJob as "commit_finished_job" { member: i32, tenant_id: i32, id: Uuid, cancels: Option<Uuid>, keeps_report: bool }
    SubscriptionRow<'a> as "commit_subscription" {
        member: i32, tenant_id: i32, correlation: &'a str, trigger: &'a str, entered_at: Time, state_id: Uuid, instance_id: Uuid,
    }
    Signal<'a> as "commit_signal" {
        member: i32, tenant_id: i32, instance_id: Uuid, signal_id: &'a str, identity: [u8; 32], content: &'a [u8],
        entry_id: Option<Uuid>,
    }
}

fn encode(column: &Column<'_>, record: &mut PgRecordEncoder<'_>) -> Result<(), BoxDynError> {
    match column {
        Column::Id(id) => record.encode(id),
        Column::Ids(ids) => record.encode(ids),
        Column::Text(text) => record.encode(text),
        Column::Texts(texts) => record.encode(texts),
        Column::Json(json) => record.encode(json),
        Column::Time(at) => record.encode(at.map(Time)),
        Column::Integer(number) => record.encode(number),
        Column::Small(number) => record.encode(number),
        Column::Boolean(is_set) => record.encode(is_set),
    }?;
    Ok(())
}

/// All rows of a batch.
#[derive(Default)]
pub(super) struct Rows<'a> {
    pub(super) members: Vec<Member<'a>>,
    pub(super) replies: Vec<Reply<'a>>,
    pub(super) starts: Vec<Start<'a>>,
    pub(super) entered: Vec<State<'a>>,
    pub(super) departed: Vec<Departure<'a>>,
    pub(super) changed_states: Vec<State<'a>>,
    pub(super) created: Vec<TaskRow<'a>>,
    pub(super) changed: Vec<TaskRow<'a>>,
    /// Candidates of new tasks.
    pub(super) offered: Vec<CandidateRow<'a>>,
    /// Further candidates of tasks that were open before.
    pub(super) reoffered: Vec<CandidateRow<'a>>,
    pub(super) withdrawn: Vec<CandidateRow<'a>>,
    pub(super) decided: Vec<Decided<'a>>,
    pub(super) delegation_seals: Vec<DelegationSealRow<'a>>,
    pub(super) attributes: Vec<Attribute<'a>>,
    pub(super) entries: Vec<EntryRow<'a>>,
    pub(super) finished: Vec<FinishedJob>,
    pub(super) jobs: Vec<Job>,
    pub(super) signals: Vec<Signal<'a>>,
    pub(super) allocations: Vec<AllocationRow<'a>>,
    pub(super) subscribed: Vec<SubscriptionRow<'a>>,
    pub(super) unsubscribed: Vec<SubscriptionRow<'a>>,
    pub(super) participants: Vec<ParticipantRow<'a>>,
    /// Whether an instance is migrated to a version that is sole about its entity.
    pub(super) becomes_sole: bool,
}

/// The columns that all rows of one member of a batch have in common.
#[derive(Clone, Copy)]
struct Of {
    member: i32,
    tenant: i32,
    instance: Uuid,
}

impl<'a> Rows<'a> {
    /// Whether there are rows that the shorter statement does not write. The list has every kind, so that the compiler reports a new one.
    pub(super) fn has_rare(&self) -> bool {
        let Rows {
            members,
            starts,
            changed_states,
            delegation_seals,
            attributes,
            finished,
            jobs,
            signals,
            allocations,
            subscribed,
            unsubscribed,
            reoffered,
            participants,
            becomes_sole,
            replies: _,
            entered: _,
            departed: _,
            created: _,
            changed: _,
            offered: _,
            withdrawn: _,
            decided: _,
            entries: _,
        } = self;
        !(starts.is_empty()
            && changed_states.is_empty()
            && delegation_seals.is_empty()
            && attributes.is_empty()
            && finished.is_empty()
            && jobs.is_empty()
            && signals.is_empty()
            && allocations.is_empty()
            && subscribed.is_empty()
            && unsubscribed.is_empty()
            && reoffered.is_empty()
            && participants.is_empty())
            || *becomes_sole
            || members.iter().any(|member| member.vacates)
    }

    pub(super) fn of(changes: &[&'a Change]) -> Rows<'a> {
        let mut rows = Rows::default();
        for (number, change) in (1..).zip(changes) {
            rows.change(number, change);
        }
        rows
    }

    fn change(&mut self, number: i32, change: &'a Change) {
        let of = Of {
            member: number,
            tenant: change.tenant.0,
            instance: change.after.id.0,
        };
        let before = change.before.as_ref().map(|stored| &stored.instance);
        let known = before.map(parts::state_instances).unwrap_or_default();
        let known: BTreeMap<_, _> = known.into_iter().map(|known| (known.0.id, known)).collect();
        let mut ordinal = change
            .before
            .as_ref()
            .map_or(0, |stored| stored.state_instances);
        for (state, phase) in parts::state_instances(&change.after) {
            match known.get(&state.id) {
                None => {
                    self.entered.push(State::of(of, ordinal, state, phase));
                    ordinal += 1;
                    self.tasks(of, change, &[], state);
                }
                // It was left before this change, so its row does not change. Its tasks may become visible to others.
                Some((known, parts::Phase::Left(_))) => {
                    if change.is_resighted() {
                        self.tasks(of, change, &known.tasks, state);
                    }
                }
                Some(known) => {
                    self.follow(of, *known, (state, phase));
                    self.tasks(of, change, &known.0.tasks, state);
                }
            }
        }
        self.subscriptions(of, change);
        let vacates = jobs::add(self, of, change);
        self.signals
            .extend(change.signals.iter().map(|signal| Signal {
                member: of.member,
                tenant_id: of.tenant,
                instance_id: of.instance,
                signal_id: &signal.key.id,
                identity: signal.key.identity(&signal.sender),
                content: &signal.content,
                entry_id: signal.entry,
            }));
        self.people(of, change);
        self.delegations(of, change);
        self.attributes(of, before, &change.after);
        let entries = change.entries.iter();
        self.entries
            .extend(entries.map(|entry| EntryRow::of(of, entry)));
        let replies = change.replies.iter();
        self.replies
            .extend(replies.map(|keyed| Reply::of(of, change, keyed)));
        self.becomes_sole |= change.after.sole && before.is_some_and(|before| !before.sole);
        if before.is_none() {
            self.starts.push(Start::of(of, &change.after));
        }
        self.members.push(Member::of(of, change, ordinal, vacates));
    }

    fn delegations(&mut self, of: Of, change: &'a Change) {
        let seals = change.delegation_seals.iter();
        self.delegation_seals
            .extend(seals.map(|seal| DelegationSealRow {
                member: of.member,
                tenant_id: of.tenant,
                instance_id: of.instance,
                seq: seal.seq.cast_signed(),
                key_id: &seal.key_id,
                mac_version: seal.version,
                mac: &seal.mac,
            }));
    }

    /// Adds the new participants, and the people to whom the host gave tasks.
    fn people(&mut self, of: Of, change: &'a Change) {
        let participants = change.participants.iter();
        self.participants
            .extend(participants.map(|one| ParticipantRow {
                member: of.member,
                tenant_id: of.tenant,
                instance_id: of.instance,
                kind: one.kind.name(),
                principal: &one.id,
            }));
        let allocations = change.allocations.iter();
        self.allocations
            .extend(allocations.map(|given| AllocationRow {
                member: of.member,
                tenant_id: of.tenant,
                definition_key: &given.definition,
                state: &given.state,
                person_id: &given.person,
                given_at: Time(given.at),
            }));
    }
}

impl<'a> Member<'a> {
    fn of(of: Of, change: &'a Change, state_instances: u32, vacates: bool) -> Member<'a> {
        let after = &change.after;
        let (before, head) = (change.before.as_ref(), change.head());
        let (outcome, end_reason, ended_by) = match &after.status {
            Status::Running | Status::Suspended { .. } => (None, None, None),
            Status::Completed { outcome, .. } => (Some(outcome.as_str()), None, None),
            Status::Cancelled { reason, by, .. } => {
                (None, Some(reason.as_str()), Some(by.as_str()))
            }
        };
        let (suspended_at, suspended_by, suspend_reason) = match &after.status {
            Status::Suspended { reason, by, at } => {
                (Some(Time(*at)), Some(by.as_str()), Some(reason.as_str()))
            }
            _ => (None, None, None),
        };
        Member {
            member: of.member,
            tenant_id: of.tenant,
            instance_id: of.instance,
            command_id: change.command.0,
            revision_from: before.map_or(0, |stored| stored.instance.revision.cast_signed()),
            revision_to: after.revision.cast_signed(),
            partition: partition(of.instance),
            status: after.status.name(),
            outcome,
            end_reason,
            ended_by,
            ended_at: after.status.ended_at().map(Time),
            data: after.data.as_str(),
            updated_at: Time(after.updated_at),
            audit_seq: head.seq.cast_signed(),
            audit_head: head.hash,
            event_seq: head.event_seq.cast_signed(),
            state_instances: state_instances.cast_signed(),
            suspended_at,
            suspended_by,
            suspend_reason,
            buffered_signals: filled(&after.buffered),
            definition_version: after.definition.version.cast_signed(),
            access_mark: change.access_mark,
            head_from: before
                .filter(|_| change.access_mark.is_some())
                .map(|stored| &stored.head.hash[..]),
            vacates,
            title: after.labels.title.as_deref(),
            summary: after.labels.summary.as_deref(),
            sole: after.sole,
            observers: after.observers.as_deref(),
        }
    }
}

impl<'a> Reply<'a> {
    fn of(of: Of, change: &Change, keyed: &'a KeyedReply) -> Reply<'a> {
        Reply {
            member: of.member,
            tenant_id: of.tenant,
            command_id: change.command.0,
            principal: &keyed.principal,
            key: &keyed.key,
            fingerprint: &keyed.reply.fingerprint,
            status: keyed.reply.status.cast_signed(),
            body: &keyed.reply.body,
            headers: &keyed.reply.headers,
        }
    }
}

impl<'a> Start<'a> {
    fn of(of: Of, after: &'a Instance) -> Start<'a> {
        Start {
            member: of.member,
            definition_key: &after.definition.key,
            definition_version: after.definition.version.cast_signed(),
            entity_type: &after.entity.kind,
            entity_id: &after.entity.id,
            initiator: &after.initiator,
            requesters: &after.requesters,
            predecessor: after.predecessor.map(|id| id.0),
            parent: after.parent.map(|id| id.0),
            started_at: Time(after.started_at),
        }
    }
}

impl<'a> EntryRow<'a> {
    fn of(of: Of, entry: &'a Entry) -> EntryRow<'a> {
        let draft = &entry.draft;
        EntryRow {
            member: of.member,
            tenant_id: of.tenant,
            stream_id: of.instance,
            seq: entry.seq.cast_signed(),
            id: draft.id,
            r#type: &draft.kind,
            revision: draft.revision.cast_signed(),
            command_id: draft.command.0,
            actor: draft.actor.as_deref(),
            task_id: draft.task.map(|task| task.0),
            payload: draft.payload.as_str(),
            evidence: draft.evidence.as_ref().map(Json::as_str),
            salt: &draft.salt,
            occurred_at: Time(draft.at),
            hash: &entry.hash,
            event_seq: entry.event_seq.map(u64::cast_signed),
            traceparent: draft.traceparent.as_deref(),
        }
    }
}

/// The partition of an instance. It depends only on the random end of the id, so every host computes the same.
pub(crate) fn partition(id: Uuid) -> i16 {
    let (_, random) = id.as_u64_pair();
    i16::try_from(random % PARTITIONS).expect("fewer partitions than an i16 counts")
}

/// The canonical JSON of a list; none for an empty one.
fn filled<T: serde::Serialize>(items: &[T]) -> Option<String> {
    (!items.is_empty()).then(|| Json::of(&items).to_string())
}
