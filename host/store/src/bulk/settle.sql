-- Stores the outcomes of items that have none. $1 tenant, $2 operation, $3 instances in order; for each instance: $4 result,
-- $5 code, $6 detail, $7 revision, $8 end.
--
-- A new operation has no statistics. Each row carries tenant and operation, so that the planner uses the whole primary key for any
-- estimate of the number of rows. `coalesce` keeps it from the partial index of open items, which does not contain the instance.
with settled as (
    update bulk_item i
    set result = e.result, code = e.code, detail = e.detail, revision = e.revision, ended_at = e.ended_at
    from unnest(
        array_fill($1::int, array[cardinality($3::uuid[])]), array_fill($2::uuid, array[cardinality($3::uuid[])]),
        $3::uuid[], $4::text[], $5::text[], $6::text[], $7::int[], $8::timestamptz[]
    ) as e (tenant_id, operation_id, instance_id, result, code, detail, revision, ended_at)
    where i.tenant_id = e.tenant_id and i.operation_id = e.operation_id and i.instance_id = e.instance_id
      and coalesce(i.result, '') = ''
    returning i.result
),
total as (
    select count(*) filter (where result = 'done') as done, count(*) filter (where result = 'refused') as refused,
        count(*) filter (where result = 'failed') as failed
    from settled
)
update bulk_operation o
set done = o.done + total.done, refused = o.refused + total.refused, failed = o.failed + total.failed
from total where o.tenant_id = $1 and o.id = $2
