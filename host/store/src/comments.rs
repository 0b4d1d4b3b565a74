//! The comments on an instance, as its audit entries have them.

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, StoreError};
use wrkflw_core::event::Event;
use wrkflw_core::ids::InstanceId;

/// A comment on an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// The id of the event that recorded it.
    pub id: Uuid,
    /// The number of its audit entry.
    pub seq: u64,
    pub actor: Option<String>,
    /// None if the stored payload cannot be read, for example because somebody emptied it in the database. Then `mentions` is empty, too.
    pub comment: Option<String>,
    /// The people whom it mentions.
    pub mentions: Vec<String>,
    pub created_at: Timestamp,
}

/// A page of comments that the viewer sees, newest first: those before the entry with this number.
pub async fn list(
    reader: &Reader,
    viewer: &Viewer,
    instance: InstanceId,
    before: Option<u64>,
    limit: u32,
) -> Result<Vec<Comment>, StoreError> {
    let rows = sqlx::query!(
        r#"select id, seq, actor, payload, occurred_at as "at: Time" from audit_entry
        where tenant_id = $1 and stream_kind = 'instance' and stream_id = $2 and type = 'FLOW_COMMENTED' and seq < $3
        order by seq desc limit $4"#,
        viewer.tenant.0,
        instance.0,
        before.map_or(i64::MAX, u64::cast_signed),
        i64::from(limit)
    )
    .fetch_all(&mut reader.reading(viewer).await?)
    .await?;
    let comments = rows.into_iter().map(|row| {
        let (comment, mentions) = match serde_json::from_str(&row.payload) {
            Ok(Event::FlowCommented { comment, mentions }) => (Some(comment), mentions),
            _ => (None, Vec::new()),
        };
        Comment {
            id: row.id,
            seq: row.seq.cast_unsigned(),
            actor: row.actor,
            comment,
            mentions,
            created_at: row.at.0,
        }
    });
    Ok(comments.collect())
}
