//! Who decided on what they had asked for themselves: told by decisions, instances and graphs alone.
//!
//! Nothing here asks how a decision came about. A row that was written behind the host's back counts like any other.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use crate::domain::ids::TenantId;

/// How long the examination of a period may take, in milliseconds.
const EXAMINATION_MS: &str = "20000";
/// Findings and refused attempts that are listed, newest first. All are counted.
pub const LISTED_MAX: usize = 100;

/// What is examined.
#[derive(Debug, Clone)]
pub struct Period {
    /// Decided at or after.
    pub from: Timestamp,
    /// Decided before.
    pub to: Timestamp,
    /// Only instances of this definition.
    pub definition: Option<String>,
}

/// What the record says of a period.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelfApprovals {
    /// All decisions that were examined.
    pub decisions_examined: u64,
    /// Those of them by a requester, or on behalf of one, in a state that its version declares as own work.
    pub own_work: u64,
    /// Those of them by a requester, or on behalf of one, in any other state. None, unless a rule was broken.
    pub self_approvals: u64,
    /// The newest 100 of these.
    pub findings: Vec<SelfApproval>,
    /// Attempts that were refused because the request was the actor's own.
    pub refused_attempts: u64,
    /// The newest 100 of these.
    pub refused: Vec<RefusedAttempt>,
}

/// A decision that nobody should have been able to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelfApproval {
    pub task_id: Uuid,
    pub instance_id: Uuid,
    /// None where the decision names an instance that does not exist.
    pub definition_key: Option<String>,
    /// The version that was in force when it was made, by the audit; without an entry, that of the instance.
    pub definition_version: Option<u32>,
    /// None where the decision names a task that its instance never had.
    pub state: Option<String>,
    pub outcome: String,
    pub actor: String,
    pub on_behalf_of: Option<String>,
    pub requesters: Vec<String>,
    #[schema(value_type = String, format = DateTime)]
    pub decided_at: Timestamp,
}

/// An attempt that the host refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedAttempt {
    pub id: Uuid,
    #[schema(value_type = String, format = DateTime)]
    pub occurred_at: Timestamp,
    pub actor: String,
    pub action: String,
    pub instance_id: Option<Uuid>,
    pub task_id: Option<Uuid>,
    pub detail: String,
}

impl Store {
    /// Examines every decision of the period.
    pub async fn self_approvals(
        &self,
        tenant: TenantId,
        period: &Period,
    ) -> Result<SelfApprovals, StoreError> {
        let mut transaction = self.snapshot(tenant).await?.transaction;
        sqlx::query_scalar!(
            "select set_config('statement_timeout', $1, true)",
            EXAMINATION_MS
        )
        .fetch_one(&mut *transaction)
        .await?;
        // Version and state at the time of the decision stand in the audit, before any migration of the instance. Members
        // of canonical JSON are sorted, so the ends of the texts are the host's own, whatever people put into the input.
        // A decision whose instance is gone belongs to no definition; it is examined whatever is asked for, and has no
        // requesters to be compared with. `engine::verify` reports it.
        let rows = sqlx::query!(
            r#"with examined as materialized (
                select d.task_id, d.instance_id, d.outcome, d.actor, d.on_behalf_of, d.decided_at, i.definition_key,
                    i.definition_version, i.requesters
                from decision d
                left join instance i on i.tenant_id = d.tenant_id and i.id = d.instance_id
                where d.tenant_id = $1 and d.decided_at >= $2 and d.decided_at < $3
                  and ($4::text is null or i.definition_key = $4)
            ),
            own as materialized (
                select e.*, coalesce(recorded.state, s.name) as state, coalesce(recorded.version, e.definition_version) as version
                from examined e
                left join task t on t.tenant_id = $1 and t.id = e.task_id and t.instance_id = e.instance_id
                left join state_instance s on s.tenant_id = $1 and s.instance_id = t.instance_id and s.id = t.state_id
                left join lateral (
                    select substring(c.evidence from '"version":([0-9]{1,9})}$')::int as version, substring(
                        a.payload from '"stateName":"([^"\\]+)","task":"[0-9a-f-]{36}","type":"DECISION_RECORDED"}$'
                    ) as state
                    from audit_entry a
                    join lateral (
                        select b.evidence, b.command_id from audit_entry b
                        where b.tenant_id = $1 and b.stream_kind = 'instance' and b.stream_id = e.instance_id and b.seq <= a.seq
                          and b.evidence is not null
                        order by b.seq desc
                        limit 1
                    ) c on c.command_id = a.command_id
                    where a.tenant_id = $1 and a.stream_kind = 'instance' and a.stream_id = e.instance_id
                      and a.type = 'DECISION_RECORDED' and a.task_id = e.task_id
                    limit 1
                ) recorded on true
                where e.actor = any(e.requesters) or e.on_behalf_of = any(e.requesters)
            ),
            declared as materialized (
                select v.key, v.version, state ->> 'name' as state
                from definition_version v
                cross join lateral json_array_elements(v.graph::json -> 'states') state
                where v.tenant_id = $1 and (v.key, v.version) in (select definition_key, version from own)
                  and state ->> 'ownWork' = 'true'
            ),
            broken as materialized (
                select o.* from own o
                where not exists (
                    select from declared g where g.key = o.definition_key and g.version = o.version and g.state = o.state
                )
            )
            select
                (select count(*) from examined) as "examined!", (select count(*) from own) as "own!",
                (select count(*) from broken) as "broken!",
                b.task_id as "task_id?", b.instance_id as "instance_id?", b.definition_key as "definition_key?",
                b.version as "version?", b.state as "state?", b.outcome as "outcome?", b.actor as "actor?",
                b.on_behalf_of as "on_behalf_of?", b.requesters as "requesters?", b.decided_at as "decided_at?: Time"
            from (select) one
            left join (select * from broken order by decided_at desc, task_id desc limit $5) b on true
            order by b.decided_at desc, b.task_id desc"#,
            tenant.0,
            Time(period.from) as _,
            Time(period.to) as _,
            period.definition,
            LISTED_MAX as i64
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
        let mut found = SelfApprovals {
            decisions_examined: counts.0.cast_unsigned(),
            own_work: (counts.1 - counts.2).cast_unsigned(),
            self_approvals: counts.2.cast_unsigned(),
            findings: findings.collect(),
            refused_attempts: 0,
            refused: Vec::new(),
        };
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
            LISTED_MAX as i64
        )
        .fetch_all(&mut *transaction)
        .await?;
        found.refused_attempts = refused.first().map_or(0, |row| row.count.cast_unsigned());
        found.refused = refused
            .into_iter()
            .map(|row| RefusedAttempt {
                id: row.id,
                occurred_at: row.at.0,
                actor: row.actor,
                action: row.action,
                instance_id: row.instance_id,
                task_id: row.task_id,
                detail: row.detail,
            })
            .collect();
        Ok(found)
    }
}
