//! Series: figures of a tenant over time, for operators. Hosts add their counts and measurements to the current minute. After
//! [`MINUTES_KEPT`] the minutes of an hour become one point. After [`HOURS_KEPT`] that point is deleted.
//!
//! Figures are no record: a failing host loses its unwritten counts. No command writes figures or waits for them.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::hosts::HOST_EXPIRY;
use super::pool::transacted;
use super::purge::{self, BEGIN, SWEEP_MAX};
use super::time::Time;
use super::{Reader, Store, StoreError};
use wrkflw_core::ids::TenantId;

/// How long points of a minute are kept.
pub const MINUTES_KEPT: Duration = Duration::from_hours(24);
/// How long points of an hour are kept.
pub const HOURS_KEPT: Duration = Duration::from_hours(7 * 24);
/// The line of all labels that have none of their own.
pub const OTHER: &str = "other";
/// Lines of one answer besides [`OTHER`].
pub const LINES_MAX: i64 = 20;
/// The approximate limit of the labels of one series in a minute or an hour: hosts may add labels at the same time. Further
/// labels are counted in [`OTHER`].
const LABELS_MAX: i64 = 32;
/// Rows of one table that a measurement reads.
const MEASURED_MAX: i64 = 100_000;

/// The kind of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Series {
    /// Decisions that were recorded.
    Decisions,
    /// Instances that were started.
    Starts,
    /// Commands that were refused, by reason.
    Refusals,
    /// Events that wait for Kafka.
    EventsWaiting,
    /// The age of the oldest of these.
    EventsOldestSeconds,
    /// Deliveries that wait for their receiver.
    DeliveriesWaiting,
    /// The age of the oldest of these.
    DeliveriesOldestSeconds,
    /// Jobs that failed and wait to be tried again.
    JobsFailing,
}

impl Series {
    pub const ALL: [Series; 8] = [
        Series::Decisions,
        Series::Starts,
        Series::Refusals,
        Series::EventsWaiting,
        Series::EventsOldestSeconds,
        Series::DeliveriesWaiting,
        Series::DeliveriesOldestSeconds,
        Series::JobsFailing,
    ];

    /// Its name in the table and in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Series::Decisions => "decisions",
            Series::Starts => "starts",
            Series::Refusals => "refusals",
            Series::EventsWaiting => "events_waiting",
            Series::EventsOldestSeconds => "events_oldest_seconds",
            Series::DeliveriesWaiting => "deliveries_waiting",
            Series::DeliveriesOldestSeconds => "deliveries_oldest_seconds",
            Series::JobsFailing => "jobs_failing",
        }
    }

    /// Whether its values are counts, which are added. For the others, the largest value is kept.
    pub const fn is_counted(self) -> bool {
        matches!(self, Series::Decisions | Series::Starts | Series::Refusals)
    }
}

/// The names of the series whose values are added.
fn counted_names() -> Vec<String> {
    let counted = Series::ALL.into_iter().filter(|one| one.is_counted());
    counted.map(|one| one.name().to_owned()).collect()
}

/// What one host counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    pub tenant: TenantId,
    pub series: Series,
    /// Empty for a series without labels.
    pub label: String,
    pub count: i64,
}

/// The part of a series to read.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub from: Timestamp,
    pub until: Timestamp,
    /// The length of a point in seconds.
    pub step: i64,
}

/// The value of one line in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesValue {
    /// The name of the series.
    pub series: String,
    pub label: String,
    /// The number of the step, from 0.
    pub step: i32,
    pub value: i64,
}

/// The values of these series that are not zero, in order. The [`LINES_MAX`] largest labels have lines of their own; the others
/// are in [`OTHER`].
pub async fn list(
    reader: &Reader,
    tenant: TenantId,
    wanted: &[Series],
    span: Span,
) -> Result<Vec<SeriesValue>, StoreError> {
    let wanted: Vec<_> = wanted.iter().map(|one| one.name().to_owned()).collect();
    let values = sqlx::query_as!(
        SeriesValue,
        r#"with ranked as materialized (
            select series, label, row_number() over (partition by series order by sum(value) desc, label) as rank
            from series_point where tenant_id = $1 and series = any($2) and at >= $3 and at < $4
            group by series, label
        )
        select p.series, case when r.rank <= $6 then p.label else $7 end as "label!",
            (extract(epoch from p.at - $3)::bigint / $5)::int as "step!",
            (case when p.series = any($8) then sum(p.value) else max(p.value) end)::bigint as "value!"
        from series_point p join ranked r on r.series = p.series and r.label = p.label
        where p.tenant_id = $1 and p.series = any($2) and p.at >= $3 and p.at < $4
        group by 1, 2, 3 order by 1, 2, 3"#,
        tenant.0,
        &wanted,
        Time(span.from) as _,
        Time(span.until) as _,
        span.step,
        LINES_MAX,
        OTHER,
        &counted_names()
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    Ok(values)
}

/// Adds to the points of the current minute, by the clock of the database: all, or none after an error.
pub async fn count(store: &Store, counted: &[Counted]) -> Result<(), StoreError> {
    let tenants: Vec<_> = counted.iter().map(|one| one.tenant.0).collect();
    let series: Vec<_> = counted
        .iter()
        .map(|one| one.series.name().to_owned())
        .collect();
    let labels: Vec<_> = counted.iter().map(|one| one.label.clone()).collect();
    let counts: Vec<_> = counted.iter().map(|one| one.count).collect();
    // Rows are locked in the order of their key, so that hosts cannot deadlock.
    sqlx::query!(
        "insert into series_point (tenant_id, series, at, minutes, label, value)
         select c.tenant_id, c.series, date_bin('1 minute', now(), 'epoch'), 1,
             case when c.label = '' or exists (
                 select from series_point p where p.tenant_id = c.tenant_id and p.series = c.series
                     and p.at = date_bin('1 minute', now(), 'epoch') and p.minutes = 1 and p.label = c.label
             ) or (
                 select count(*) from series_point p where p.tenant_id = c.tenant_id and p.series = c.series
                     and p.at = date_bin('1 minute', now(), 'epoch') and p.minutes = 1
             ) < $5 then c.label else $6 end,
             sum(c.value)::bigint
         from unnest($1::int[], $2::text[], $3::text[], $4::bigint[]) c (tenant_id, series, label, value)
         group by 1, 2, 5 order by 1, 2, 5
         on conflict (tenant_id, series, at, minutes, label) do update set value = series_point.value + excluded.value",
        &tenants,
        &series,
        &labels,
        &counts,
        LABELS_MAX,
        OTHER
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Measures the backlogs, if this host is the first of the running hosts.
pub async fn measure(store: &Store, host: Uuid) -> Result<(), StoreError> {
    sqlx::query_file!(
        "src/series/measure.sql",
        host,
        HOST_EXPIRY.as_secs_f64(),
        MEASURED_MAX
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Rolls up points of minutes that are older than [`MINUTES_KEPT`] to points of hours. True if there may be more.
pub async fn roll_up(store: &Store) -> Result<bool, StoreError> {
    let rolled = sqlx::query!(
        "with old as (
             delete from series_point where ctid = any(array(
                 select ctid from series_point
                 where minutes = 1 and at < date_bin('1 hour', now(), 'epoch') - make_interval(secs => $1)
                 order by at limit $2 for update skip locked
             ))
             returning tenant_id, series, at, label, value
         ),
         hourly as (
             select tenant_id, series, date_bin('1 hour', at, 'epoch') as hour, label,
                 (case when series = any($3::text[]) then sum(value) else max(value) end)::bigint as value
             from old group by 1, 2, 3, 4
         ),
         ranked as (
             select tenant_id, series, hour, label, value,
                 row_number() over (partition by tenant_id, series, hour order by value desc, label) as rank
             from hourly
         )
         insert into series_point (tenant_id, series, at, minutes, label, value)
         select tenant_id, series, hour, 60, case when rank <= $4 then label else $5 end,
             (case when series = any($3::text[]) then sum(value) else max(value) end)::bigint
         from ranked group by 1, 2, 3, 5 order by 1, 2, 3, 5
         on conflict (tenant_id, series, at, minutes, label) do update set value = case
             when series_point.series = any($3::text[]) then series_point.value + excluded.value
             else greatest(series_point.value, excluded.value) end",
        MINUTES_KEPT.as_secs_f64(),
        SWEEP_MAX,
        &counted_names(),
        LABELS_MAX,
        OTHER
    );
    transacted(Box::pin(async {
        let mut transaction = store.writer.begin_with(BEGIN).await?;
        let done = rolled.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(done.rows_affected() > 0)
    }))
    .await
}

/// Deletes points of hours that are older than [`HOURS_KEPT`]. True if there may be more.
pub async fn purge_points(store: &Store) -> Result<bool, StoreError> {
    let old = sqlx::query!(
        "delete from series_point where ctid = any(array(
             select ctid from series_point where minutes = 60 and at < now() - make_interval(secs => $1) limit $2
             for update skip locked
         ))",
        HOURS_KEPT.as_secs_f64(),
        SWEEP_MAX
    );
    purge::sweep(store, old).await
}

/// Deletes the rows of hosts that failed. True if there may be more.
pub async fn purge_hosts(store: &Store) -> Result<bool, StoreError> {
    let expired = sqlx::query!(
        "delete from host where ctid = any(array(
             select ctid from host where seen_at < now() - make_interval(secs => $1) limit $2 for update skip locked
         ))",
        HOST_EXPIRY.as_secs_f64(),
        SWEEP_MAX
    );
    purge::sweep(store, expired).await
}
