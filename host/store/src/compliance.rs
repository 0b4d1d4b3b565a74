//! Self-approvals: decisions by a requester of the instance, or on behalf of one, outside of own work.
//!
//! They are computed from the stored rows alone. A decision that was not written by the host counts like any other.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::pool::transacted;
use super::time::Time;
use super::{Reader, StoreError};
use wrkflw_audit::record::Record as _;
use wrkflw_core::ids::TenantId;

/// How long the examination of a period may take.
const EXAMINATION_MAX: Duration = Duration::from_secs(20);
/// Limit of the listed findings, and of the listed refused attempts, newest first. All are counted.
pub const LISTED_MAX: i64 = 100;

/// The decisions to examine.
#[derive(Debug, Clone)]
pub struct Period {
    /// Decided at or after.
    pub from: Timestamp,
    /// Decided before.
    pub to: Timestamp,
    /// Only instances of this definition.
    pub definition: Option<String>,
}

/// The result for a period.
#[derive(Debug, Clone)]
pub struct SelfApprovals {
    pub decisions_examined: u64,
    pub own_work: u64,
    pub self_approvals: u64,
    pub findings: Vec<SelfApproval>,
    pub refused_attempts: u64,
    pub refused: Vec<RefusedAttempt>,
}

/// A decision by a requester, or on behalf of one, outside of own work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfApproval {
    pub task_id: Uuid,
    pub instance_id: Uuid,
    pub definition_key: Option<String>,
    pub definition_version: Option<u32>,
    pub state: Option<String>,
    pub outcome: String,
    pub actor: String,
    pub on_behalf_of: Option<String>,
    pub requesters: Vec<String>,
    pub decided_at: Timestamp,
}

/// An attempt that the host refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedAttempt {
    pub id: Uuid,
    pub occurred_at: Timestamp,
    pub actor: String,
    pub action: String,
    pub instance_id: Option<Uuid>,
    pub task_id: Option<Uuid>,
    pub detail: String,
}

/// Examines every decision of the period.
pub async fn self_approvals(
    reader: &Reader,
    tenant: TenantId,
    period: &Period,
) -> Result<SelfApprovals, StoreError> {
    transacted(Box::pin(examined(reader, tenant, period))).await
}

async fn examined(
    reader: &Reader,
    tenant: TenantId,
    period: &Period,
) -> Result<SelfApprovals, StoreError> {
    let reader = reader.limiting_snapshots(EXAMINATION_MAX);
    let mut transaction = reader.snapshot(tenant).await?.transaction;
    let rows = sqlx::query_file!(
        "src/compliance.sql",
        tenant.0,
        Time(period.from) as _,
        Time(period.to) as _,
        period.definition,
        LISTED_MAX
    )
    .fetch_all(&mut *transaction)
    .await?;
    let counts = rows
        .first()
        .map(|row| (row.examined, row.own, row.broken))
        .expect("the outer join has a row at least");
    let findings = rows.into_iter().filter_map(|row| {
        Some(SelfApproval {
            task_id: row.task_id?,
            instance_id: row.instance_id?,
            definition_key: row.definition_key,
            definition_version: row.version.map(i32::cast_unsigned),
            state: row.state,
            outcome: row.outcome?,
            actor: row.actor?,
            on_behalf_of: row.on_behalf_of,
            requesters: row.requesters?,
            decided_at: row.decided_at?.0,
        })
    });
    let refused = refused(&mut transaction, tenant, period).await?;
    Ok(SelfApprovals {
        decisions_examined: counts.0.cast_unsigned(),
        own_work: (counts.1 - counts.2).cast_unsigned(),
        self_approvals: counts.2.cast_unsigned(),
        findings: findings.collect(),
        refused_attempts: refused.0,
        refused: refused.1,
    })
}

/// The number of attempts in the period that were refused because the request was the actor's own, and the newest of them.
async fn refused(
    connection: &mut PgConnection,
    tenant: TenantId,
    period: &Period,
) -> Result<(u64, Vec<RefusedAttempt>), StoreError> {
    let refused = sqlx::query!(
            r#"select r.id, r.occurred_at as "at: Time", r.actor, r.action, r.instance_id, r.task_id, r.detail,
                count(*) over () as "count!"
            from refused_attempt r
            left join task t on t.tenant_id = r.tenant_id and t.id = r.task_id
            left join instance i on i.tenant_id = r.tenant_id and i.id = coalesce(r.instance_id, t.instance_id)
            where r.tenant_id = $1 and r.occurred_at >= $2 and r.occurred_at < $3 and r.code = 'own_request'
              and ($4::text is null or i.definition_key = $4)
            order by r.occurred_at desc, r.id desc
            limit $5"#,
            tenant.0,
            Time(period.from) as _,
            Time(period.to) as _,
            period.definition,
            LISTED_MAX
        )
        .fetch_all(connection)
        .await?;
    let count = refused.first().map_or(0, |row| row.count.cast_unsigned());
    let listed = refused.into_iter().map(|row| RefusedAttempt {
        id: row.id,
        occurred_at: row.at.0,
        actor: row.actor,
        action: row.action,
        instance_id: row.instance_id,
        task_id: row.task_id,
        detail: row.detail,
    });
    Ok((count, listed.collect()))
}
