//! Replies that are kept for repeated requests: digests of them, since the reader is not to see what was answered.

use uuid::Uuid;

use super::Snapshot;
use crate::store::StoreError;

/// A reply under its key.
#[derive(Debug)]
pub struct ReplyRow {
    pub principal: String,
    pub key: String,
    pub command: Uuid,
    pub fingerprint: Vec<u8>,
    pub status: u16,
    /// SHA-256 of the body.
    pub body: Vec<u8>,
    /// With the seal.
    pub headers: String,
}

impl Snapshot {
    /// Replies after (`principal`, `key`).
    pub async fn replies(
        &mut self,
        after: (&str, &str),
        limit: i64,
    ) -> Result<Vec<ReplyRow>, StoreError> {
        let rows = sqlx::query!(
            r#"select principal as "principal!", key as "key!", command_id as "command!", fingerprint as "fingerprint!",
                status as "status!", body_digest as "body!", headers as "headers!"
            from kept_replies($1, $2, $3)"#,
            after.0,
            after.1,
            limit
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| ReplyRow {
                principal: row.principal,
                key: row.key,
                command: row.command,
                fingerprint: row.fingerprint,
                status: row.status.cast_unsigned(),
                body: row.body,
                headers: row.headers,
            })
            .collect())
    }
}
