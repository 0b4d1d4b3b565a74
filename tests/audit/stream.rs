//! An instance's entries, read from the rows alone.

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::postgres::{PgExecutor, PgRow};
use uuid::Uuid;
use wrkflw_core::apply::{Stamp, apply};
use wrkflw_core::audit::{Draft, Entry, Head, Stream, StreamKind};
use wrkflw_core::event::Event;
use wrkflw_core::ids::{CommandId, InstanceId, TaskId, TenantId};
use wrkflw_core::instance::Instance;
use wrkflw_core::json::Json;

const ENTRIES: &str = "select tenant_id, stream_id, seq, id, type, revision, command_id, actor, task_id, payload, evidence,
     salt, (extract(epoch from occurred_at) * 1000)::bigint as at_ms, hash, event_seq
     from audit_entry where stream_kind = 'instance' and stream_id = $1 order by seq";

/// All entries of an instance, in their order.
pub(super) async fn entries(database: impl PgExecutor<'_>, instance: InstanceId) -> Vec<Entry> {
    let rows = sqlx::query(ENTRIES)
        .bind(instance.0)
        .fetch_all(database)
        .await
        .expect("entries");
    rows.iter().map(entry).collect()
}

fn entry(row: &PgRow) -> Entry {
    let number = |column: &str| row.get::<i64, _>(column).cast_unsigned();
    let json = |text: String| Json::parse(&text).expect("stored JSON");
    let stream = Stream {
        tenant: TenantId(row.get("tenant_id")),
        kind: StreamKind::Instance,
        id: row.get("stream_id"),
    };
    let draft = Draft {
        id: row.get("id"),
        kind: row.get("type"),
        revision: row.get::<i32, _>("revision").cast_unsigned(),
        command: CommandId(row.get("command_id")),
        actor: row.get("actor"),
        task: row.get::<Option<Uuid>, _>("task_id").map(TaskId),
        payload: json(row.get("payload")),
        evidence: row.get::<Option<String>, _>("evidence").map(json),
        salt: row.get::<Vec<u8>, _>("salt").try_into().expect("16 bytes"),
        at: Timestamp::from_millisecond(row.get("at_ms")).expect("a time"),
        public: row.get::<Option<i64>, _>("event_seq").is_some(),
        traceparent: None,
    };
    let hash = row.get::<Vec<u8>, _>("hash").try_into().expect("32 bytes");
    Entry {
        stream,
        seq: number("seq"),
        event_seq: row
            .get::<Option<i64>, _>("event_seq")
            .map(i64::cast_unsigned),
        draft,
        hash,
    }
}

/// The first entry whose hash does not follow from the entries before it.
pub(super) fn broken_at(entries: &[Entry]) -> Option<u64> {
    let mut previous = Head::genesis(entries.first()?.stream).hash;
    for entry in entries {
        if entry.digest(&previous) != entry.hash {
            return Some(entry.seq);
        }
        previous = entry.hash;
    }
    None
}

pub(super) fn event(entry: &Entry) -> Event {
    let payload = entry.draft.payload.as_str();
    let event: Event =
        serde_json::from_str(payload).unwrap_or_else(|error| panic!("{payload}: {error}"));
    assert_eq!(event.kind(), entry.draft.kind);
    event
}

/// The instance that results from these entries.
pub(super) fn fold(before: Option<Instance>, entries: &[Entry]) -> Option<Instance> {
    entries.iter().fold(before, |instance, entry| {
        let draft = &entry.draft;
        let stamp = Stamp {
            instance: InstanceId(entry.stream.id),
            revision: draft.revision,
            at: draft.at,
            actor: draft.actor.as_deref(),
        };
        Some(apply(instance, &event(entry), stamp).expect("an entry that can follow"))
    })
}

/// The entries, grouped by command.
pub(super) fn commands(entries: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    entries.chunk_by(|one, next| one.draft.command == next.draft.command)
}
