//! Stored replies for repeated requests. The reader role gets only digests of their bodies, because it must not see the answers.

use super::Snapshot;
use crate::StoreError;
use wrkflw_audit::record::Replies;
use wrkflw_audit::record::rows::ReplyRow;

impl Replies for Snapshot {
    async fn replies(
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
