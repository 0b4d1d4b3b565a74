//! Refused attempts as leaves. A leaf covers all their columns, because no hash chain does.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::StoreError;
use crate::time::Time;
use wrkflw_audit::record::rows::RefusedAttemptColumns;
use wrkflw_core::ids::TenantId;

struct RefusedRow {
    tenant_id: i32,
    id: Uuid,
    at: Time,
    actor: String,
    action: String,
    instance_id: Option<Uuid>,
    task_id: Option<Uuid>,
    code: String,
    detail: String,
    request_id: Option<String>,
    xid: String,
    pos: i64,
}

impl From<RefusedRow> for RefusedAttemptColumns {
    fn from(row: RefusedRow) -> RefusedAttemptColumns {
        RefusedAttemptColumns {
            tenant: TenantId(row.tenant_id),
            id: row.id,
            pos: row.pos,
            occurred_at: row.at.0,
            columns: [
                Some(row.actor),
                Some(row.action),
                row.instance_id.map(|id| id.to_string()),
                row.task_id.map(|id| id.to_string()),
                Some(row.code),
                Some(row.detail),
                row.request_id,
                Some(row.xid),
            ],
        }
    }
}

pub(super) async fn refused_between(
    connection: &mut PgConnection,
    from: i64,
    to: i64,
) -> Result<Vec<RefusedAttemptColumns>, StoreError> {
    let rows = sqlx::query_as!(
        RefusedRow,
        r#"select tenant_id, id, occurred_at as "at: Time", actor, action, instance_id, task_id, code, detail, request_id,
            xid::text as "xid!", pos
        from refused_attempt where pos > $1 and pos <= $2"#,
        from,
        to
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().map(RefusedAttemptColumns::from).collect())
}

/// The refused attempts with these ids. Ids of none are skipped.
pub(crate) async fn refused_columns(
    connection: &mut PgConnection,
    tenant: TenantId,
    ids: &[Uuid],
) -> Result<Vec<RefusedAttemptColumns>, StoreError> {
    let rows = sqlx::query_as!(
        RefusedRow,
        r#"select tenant_id, id, occurred_at as "at: Time", actor, action, instance_id, task_id, code, detail, request_id,
            xid::text as "xid!", pos
        from refused_attempt where tenant_id = $1 and id = any($2)"#,
        tenant.0,
        ids
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().map(RefusedAttemptColumns::from).collect())
}

/// Refused attempts from the id `first` on, in the order of ids.
pub(crate) async fn refused_from(
    connection: &mut PgConnection,
    tenant: TenantId,
    first: Uuid,
    limit: i64,
) -> Result<Vec<RefusedAttemptColumns>, StoreError> {
    let rows = sqlx::query_as!(
        RefusedRow,
        r#"select tenant_id, id, occurred_at as "at: Time", actor, action, instance_id, task_id, code, detail, request_id,
            xid::text as "xid!", pos
        from refused_attempt where tenant_id = $1 and id >= $2 order by id limit $3"#,
        tenant.0,
        first,
        limit
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().map(RefusedAttemptColumns::from).collect())
}
