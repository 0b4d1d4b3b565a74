-- Reads due jobs of a tenant, claims those that can run, and postpones those that must wait. $1 tenant, $2 now, $3 end of the
-- lease, $4 limit of the jobs read, $5 limit of the jobs claimed; $6, $7 and $8: until when a job is postponed that waits for a
-- claimed job, for a stopped version, or for a job that failed or is at rest.
--
-- The expression `greatest(...)` is that of the index `job_share`; it ignores nulls. Calls of services are excluded by `service` where
-- that index is meant, and by their kind where `job_by_instance` is. If another worker claims a row between the
-- read and the lock, the condition is evaluated again on the new row, which has a lease. The statement skips locked rows, so two
-- claims never wait for each other. A job that has failed ten times, `STUCK_ATTEMPTS`, holds up no other: what is due later may need
-- nothing of what it fails for.
with looked as materialized (
    (select j.tenant_id, j.id, 0 as late from job j
     where j.tenant_id = $1 and j.service is null and case when j.kind = 'start_child' then 1 else 0 end = 0
       and greatest(j.due_at, j.lease_until) <= $2
     order by greatest(j.due_at, j.lease_until) limit $4)
    union all
    (select j.tenant_id, j.id, 1 from job j
     where j.tenant_id = $1 and j.service is null and case when j.kind = 'start_child' then 1 else 0 end = 1
       and greatest(j.due_at, j.lease_until) <= $2
     order by greatest(j.due_at, j.lease_until) limit $4)
    limit $4
),
held as materialized (
    select j.tenant_id, j.id, l.late, greatest(j.due_at, j.lease_until) as ready_at, case j.kind
        when 'cancel_child' then null
        when 'start_child' then (
            select least(greatest(e.due_at, e.lease_until, $2), case when e.claim is not null and e.last_error is null then $6::timestamptz else $8::timestamptz end) from job e
            where e.tenant_id = $1 and e.instance_id = j.instance_id
              and (e.due_at, e.id) < (j.due_at, j.id) and e.kind not in ('cancel_child', 'call_service')
              and not (e.attempts >= 10 and e.last_error is not null)
            order by e.due_at, e.id limit 1
        )
        else (
            select least(greatest(e.due_at, e.lease_until, $2), case when e.claim is not null and e.last_error is null then $6::timestamptz else $8::timestamptz end) from job e
            where e.tenant_id = $1 and e.instance_id = j.instance_id
              and (e.due_at, e.id) < (j.due_at, j.id) and e.kind not in ('cancel_child', 'start_child', 'call_service')
              and not (e.attempts >= 10 and e.last_error is not null)
              -- Another instance may take a signal that was assigned to a suspended one, whose jobs are at rest.
              and not (j.kind = 'deliver_signal' and exists (
                  select from job r
                  where r.tenant_id = $1 and r.instance_id = j.instance_id
                    and r.attempts > 0 and r.claim is null and r.last_error is null and r.lease_until > $2
              ))
            order by e.due_at, e.id limit 1
        )
    end as waits_until,
    (select exists (select from definition_version v where v.tenant_id = $1 and v.stopped_at is not null))
    and j.kind <> 'cancel_child' and exists (
        -- By its key: `offset` keeps its status from leading to the index of running instances.
        select from (
            select * from instance where tenant_id = j.tenant_id and id = j.instance_id offset 0
        ) i
        join definition_version v on v.tenant_id = i.tenant_id and v.key = i.definition_key and v.version = i.definition_version
        where i.status in ('RUNNING', 'SUSPENDED') and v.stopped_at is not null
    ) as is_stopped
    from looked l join job j on j.tenant_id = l.tenant_id and j.id = l.id
    where greatest(j.due_at, j.lease_until) <= $2
    for update of j skip locked
),
postponed as (
    update job j set lease_until = case when h.is_stopped then $7 else h.waits_until end
    from held h
    where j.tenant_id = h.tenant_id and j.id = h.id and (h.is_stopped or h.waits_until is not null)
    returning j.id
),
mine as (
    select h.tenant_id, h.id from held h where not h.is_stopped and h.waits_until is null order by h.late, h.ready_at limit $5
),
claimed as (
    update job j set lease_until = $3, attempts = j.attempts + 1, claim = gen_random_uuid() from mine
    where j.tenant_id = mine.tenant_id and j.id = mine.id
    returning j.id, j.kind, j.instance_id, j.due_at, j.payload, j.attempts, j.claim
)
select (select count(*) from postponed) as "postponed!", c.id as "id?", c.kind as "kind?", c.instance_id as "instance?",
    c.due_at as "due_at?: Time", c.payload as "payload?", c.attempts as "attempts?", c.claim as "claim?"
from (values (1)) as one left join claimed c on true
