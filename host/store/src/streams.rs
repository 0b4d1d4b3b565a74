//! The audit streams of definitions, directories and operations. They are seldom written, so the head of each stream is a
//! separate row, which is locked while an entry is appended.

use jiff::Timestamp;
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::StoreError;
use super::time::Time;
use wrkflw_core::audit::{Draft, Head, Stream};
use wrkflw_core::ids::CommandId;
use wrkflw_core::json::Json;

/// The ids, actor and time of an entry in such a stream.
#[derive(Debug, Clone, Copy)]
pub struct Note<'a> {
    /// The id of the entry.
    pub id: Uuid,
    pub command: CommandId,
    pub actor: &'a str,
    pub at: Timestamp,
    pub salt: [u8; 16],
}

impl Note<'_> {
    pub(super) fn draft(&self, kind: &str, revision: u32, payload: &impl Serialize) -> Draft {
        Draft {
            id: self.id,
            kind: kind.to_owned(),
            revision,
            command: self.command,
            actor: Some(self.actor.to_owned()),
            task: None,
            payload: Json::of(payload),
            evidence: None,
            salt: self.salt,
            at: self.at,
            public: false,
            traceparent: None,
        }
    }
}

/// Locks the stream until the caller's transaction ends, and returns its head.
pub(super) async fn lock(
    connection: &mut PgConnection,
    stream: Stream,
) -> Result<Head, StoreError> {
    let genesis = Head::genesis(stream);
    let (tenant, kind) = (stream.tenant.0, stream.kind.name());
    sqlx::query!(
        "insert into audit_stream (tenant_id, stream_kind, stream_id, seq, head) values ($1, $2, $3, 0, $4)
         on conflict do nothing",
        tenant,
        kind,
        stream.id,
        genesis.hash.as_slice()
    )
    .execute(&mut *connection)
    .await?;
    let row = sqlx::query!(
        "select seq, head from audit_stream where tenant_id = $1 and stream_kind = $2 and stream_id = $3 for update",
        tenant,
        kind,
        stream.id
    )
    .fetch_one(&mut *connection)
    .await?;
    let hash = row
        .head
        .try_into()
        .map_err(|_| StoreError::inconsistent("audit_stream", stream.id, "a malformed head"))?;
    Ok(Head {
        seq: row.seq.cast_unsigned(),
        hash,
        event_seq: 0,
    })
}

/// Appends one entry within the caller's transaction.
pub(super) async fn append(
    connection: &mut PgConnection,
    stream: Stream,
    draft: Draft,
) -> Result<(), StoreError> {
    let mut head = lock(connection, stream).await?;
    let (tenant, kind) = (stream.tenant.0, stream.kind.name());
    let entry = head.append(stream, draft);
    let draft = &entry.draft;
    sqlx::query!(
        "insert into audit_entry (
             tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, payload, evidence, salt, occurred_at, hash
         ) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        tenant,
        kind,
        stream.id,
        entry.seq.cast_signed(),
        draft.id,
        draft.kind,
        draft.revision.cast_signed(),
        draft.command.0,
        draft.actor,
        draft.payload.as_str(),
        draft.evidence.as_ref().map(ToString::to_string),
        draft.salt.as_slice(),
        Time(draft.at) as _,
        entry.hash.as_slice()
    )
    .execute(&mut *connection)
    .await?;
    let updated = sqlx::query!(
        "update audit_stream set seq = $4, head = $5 where tenant_id = $1 and stream_kind = $2 and stream_id = $3",
        tenant,
        kind,
        stream.id,
        head.seq.cast_signed(),
        head.hash.as_slice()
    )
    .execute(connection)
    .await?;
    assert_eq!(updated.rows_affected(), 1);
    Ok(())
}
