-- $1 tenant, $2 and $3 kinds and ids of principals, $4 actor, $5 and $6 place before the first task, $7 moment before which it is due, $8 states and
-- tasks that are read. The times are sub-selects: where there are policies, an index is not searched by an expression like `coalesce`.
with place as materialized (
    select array(
        select kind || E'\n' || principal from unnest($2::text[], $3::text[]) as place (kind, principal)
        union
        select E'user\n' || person_id from manager where tenant_id = $1 and manager_id = $4 and valid_to is null
    ) as names, exists (
        select from task where tenant_id = $1 and status in ('PENDING', 'CLAIMED') and not restricted
    ) as is_mixed
), state as materialized (
    select s.due_at as at, s.instance_id from state_instance s
    where s.tenant_id = $1 and s.left_at is null and s.due_at >= (select coalesce($5::timestamptz, '-infinity'))
      and s.due_at < (select coalesce($7::timestamptz, 'infinity'))
    order by s.due_at, s.instance_id limit $8
), own as materialized (
    select t.due_at as at, t.id, t.instance_id, t.restricted from task t
    where t.tenant_id = $1 and t.status in ('PENDING', 'CLAIMED') and t.due_at is not null
      and (t.due_at, t.id) > ((select coalesce($5::timestamptz, '-infinity')), $6)
      and t.due_at < (select coalesce($7::timestamptz, 'infinity'))
    order by t.due_at, t.id limit $8
), reached as materialized (
    select least(
        (select max(at) from state having count(*) = $8), (select max(at) from own having count(*) = $8)
    ) as at
), looked as materialized (
    select array(select s.instance_id from state s, reached r where r.at is null or s.at < r.at) as of_states,
        array(select o.instance_id from own o, reached r where (r.at is null or o.at < r.at) and o.restricted) as of_tasks
), seen as materialized (
    -- One scan for all of them takes half the time of a look-up of each.
    select p.instance_id from participant p
    where p.tenant_id = $1 and p.instance_id = any((select of_states || of_tasks from looked)::uuid[])
      and (p.kind || E'\n' || p.principal) = any((select names from place)::text[])
    union
    select t.instance_id from task t
    where (select is_mixed from place) and t.tenant_id = $1 and t.instance_id = any((select of_states from looked)::uuid[])
      and not t.restricted
)
select r.at as "reached?: Time", d.id as "id?", d.at as "at?: Time"
from reached r left join (
    select t.id, l.at from (
        select distinct s.at, s.instance_id from state s join seen on seen.instance_id = s.instance_id, reached r
        where r.at is null or s.at < r.at
    ) l cross join lateral (
        select t.id from state_instance s
        join task t on t.tenant_id = $1 and t.instance_id = s.instance_id and t.state_id = s.id
        where s.tenant_id = $1 and s.instance_id = l.instance_id and s.left_at is null and s.due_at = l.at
          and t.status in ('PENDING', 'CLAIMED') and t.due_at is null
          and (l.at, t.id) > ((select coalesce($5::timestamptz, '-infinity')), $6)
        offset 0
    ) t
    union all
    select o.id, o.at from own o, reached r
    where (r.at is null or o.at < r.at) and (not o.restricted or o.instance_id in (select instance_id from seen))
) d on true
order by d.at, d.id
