-- Claims due calls of one service, at most one of each tenant, and tells whose turn was last. $1 service, $2 the tenant whose turn was
-- last, $3 limit of the tenants read, $4 now, $5 end of the lease, $6 limit of the calls claimed, $7 tenants that may have no more, $8
-- limit of the calls read in the order of their due times.
--
-- The expression `greatest(...)` is that of the indexes `job_call` and `job_call_share`; it ignores nulls.
with recursive circle (tenant_id, turned, turn) as (
    select $2::int, false, 0
    union all
    select n.tenant_id, n.turned, c.turn + 1
    from circle c cross join lateral (
        (select j.tenant_id, c.turned as turned from job j where j.service = $1 and j.tenant_id > c.tenant_id
         order by j.tenant_id limit 1)
        union all
        (select j.tenant_id, true from job j where j.service = $1 and not c.turned order by j.tenant_id limit 1)
        limit 1
    ) n
    where c.turn < $3 and not (n.turned and n.tenant_id > $2)
),
tenants as (
    select f.tenant_id, min(f.turn) as turn from (
        select tenant_id, turn from circle where turn > 0
        union all
        (select j.tenant_id, null from job j where j.service = $1 and greatest(j.due_at, j.lease_until) <= $4
         order by greatest(j.due_at, j.lease_until) limit $8)
    ) f
    where f.tenant_id <> all ($7::int[])
    group by f.tenant_id
),
first as (
    select t.tenant_id, t.turn, d.id from tenants t cross join lateral (
        select j.id from job j
        where j.service = $1 and j.tenant_id = t.tenant_id and greatest(j.due_at, j.lease_until) <= $4
        order by greatest(j.due_at, j.lease_until) limit 1
    ) d
    order by t.turn nulls last limit $6
),
-- The turns of the tenants of `circle` are over, unless the limit of calls ended them earlier.
turned as (
    select c.tenant_id from circle c
    where c.turn <= (select max(f.turn) from first f having count(f.turn) >= $6)
       or not exists (select from first f having count(f.turn) >= $6)
    order by c.turn desc limit 1
),
mine as materialized (
    select j.tenant_id, j.id, f.turn from first f join job j on j.tenant_id = f.tenant_id and j.id = f.id
    where greatest(j.due_at, j.lease_until) <= $4
    for update of j skip locked
),
claimed as (
    update job j set lease_until = $5, attempts = j.attempts + 1, claim = gen_random_uuid() from mine
    where j.tenant_id = mine.tenant_id and j.id = mine.id
    returning j.tenant_id, mine.turn, j.id, j.kind, j.instance_id, j.due_at, j.payload, j.attempts, j.claim
)
select t.tenant_id as "after!", c.tenant_id as "tenant_id?", c.id as "id?", c.kind as "kind?", c.instance_id as "instance_id?",
    c.due_at as "due_at?: Time", c.payload as "payload?", c.attempts as "attempts?", c.claim as "claim?"
from turned t left join claimed c on true
order by c.turn nulls first
