//! The backlog of the outbox.

use super::{Outbox, OutboxError};

/// Events beyond this number are not counted when the backlog is measured.
pub(crate) const BACKLOG_COUNTED_MAX: i64 = 100_000;

/// The size of the backlog.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Backlog {
    /// Counted up to [`BACKLOG_COUNTED_MAX`].
    pub events: i64,
    pub oldest_seconds: f64,
    pub dead_letters: i64,
}

impl Outbox {
    /// Measures the events that wait and those that are parked. A replayed event waits, too, but has the age of its first publication,
    /// so it is never the oldest.
    pub async fn backlog(&self) -> Result<Backlog, OutboxError> {
        let backlog = sqlx::query_as!(
            Backlog,
            r#"
            select
                (select count(*) from (select from outbox_event limit $1) counted) as "events!",
                (select count(*) from (select from dead_letter limit $1) counted) as "dead_letters!",
                coalesce((
                    select extract(epoch from now() - min(coalesce(a.occurred_at, c.signed_at)))::float8
                    from outbox_partition l
                    cross join lateral (
                        select w.tenant_id, w.instance_id, w.seq from (
                            select e.tenant_id, e.instance_id, e.seq, e.pos, e.replayed from outbox_event e
                            where e.partition = l.partition and e.pos > l.floor order by e.pos limit $1
                        ) w where not w.replayed order by w.pos limit 1) first
                    left join audit_entry a on a.tenant_id = first.tenant_id and a.stream_kind = 'instance'
                        and a.stream_id = first.instance_id and a.seq = first.seq
                    left join checkpoint c on c.tenant_id = first.tenant_id and c.number = first.seq
                        and first.instance_id = '00000000-0000-0000-0000-000000000000'
                ), 0) as "oldest_seconds!"
            "#,
            BACKLOG_COUNTED_MAX,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(backlog)
    }
}
