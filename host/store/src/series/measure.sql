-- What waits now, by tenant. Of several hosts the first in the list measures, and a second measurement of a minute keeps the
-- larger values. Nothing is read beyond $3 rows of a table. A replayed event waits like any other, but has the age of the first
-- publication, so it is never the oldest.
with waiting as materialized (
    select e.tenant_id, e.instance_id, e.seq, e.pos, e.replayed from outbox_event e limit $3
),
oldest as materialized (
    select distinct on (w.tenant_id) w.tenant_id, w.instance_id, w.seq from waiting w where not w.replayed
    order by w.tenant_id, w.pos
),
deliveries as materialized (
    select d.tenant_id, d.created_at from webhook_delivery d where d.state = 'pending' limit $3
),
measured (tenant_id, series, value) as (
    select w.tenant_id, 'events_waiting', count(*) from waiting w group by w.tenant_id
    union all
    select o.tenant_id, 'events_oldest_seconds', extract(epoch from now() - coalesce(
        (select a.occurred_at from audit_entry a
            where a.tenant_id = o.tenant_id and a.stream_kind = 'instance' and a.stream_id = o.instance_id and a.seq = o.seq),
        (select c.signed_at from checkpoint c
            where c.tenant_id = o.tenant_id and c.number = o.seq and o.instance_id = '00000000-0000-0000-0000-000000000000')
    ))::bigint from oldest o
    union all
    select d.tenant_id, 'deliveries_waiting', count(*) from deliveries d group by d.tenant_id
    union all
    select d.tenant_id, 'deliveries_oldest_seconds', extract(epoch from now() - min(d.created_at))::bigint
    from deliveries d group by d.tenant_id
    union all
    select f.tenant_id, 'jobs_failing', count(*)
    from (select j.tenant_id from job j where j.last_error is not null limit $3) f group by f.tenant_id
)
insert into series_point (tenant_id, series, at, minutes, label, value)
select m.tenant_id, m.series, date_bin('1 minute', now(), 'epoch'), 1, '', m.value
from measured m
where m.value > 0
    and $1 = (select h.id from host h where h.seen_at > now() - make_interval(secs => $2) order by h.started_at, h.id limit 1)
order by m.tenant_id, m.series
on conflict (tenant_id, series, at, minutes, label) do update set value = greatest(series_point.value, excluded.value)
