-- The order depends on $25 alone: the planner knows its value, and takes the other key for the constant that it is.
select
    n.id as "id!", n.definition_key as "definition_key!", n.definition_version as "definition_version!",
    n.status as "status!", n.outcome, n.revision as "revision!", n.entity_type as "entity_type!",
    n.entity_id as "entity_id!", n.initiator as "initiator!", n.started_at as "started_at!: Time",
    n.updated_at as "updated_at!: Time", n.title, n.summary, n.fits as "fits!", n.place as "place!",
    coalesce(s.states, '{}') as "states!", s.priority, s.priority_name,
    -- The jobs of an instance come in the order of their time. The one that resumes a task has the id of the task.
    (
        select j.due_at from job j
        where j.tenant_id = $1 and j.instance_id = n.id and j.kind = 'deadline'
          and not exists (select from task t where t.tenant_id = $1 and t.id = j.id)
        order by j.due_at, j.id limit 1
    ) as "next_due_at: Time"
from (
    select n.*
    from (
        -- One line after the other, until enough fit: each costs a look at its attributes.
        select i.*, row_number() over (order by case when $25::boolean then i.id end, case when not $25 then i.id end desc) as place,
            ($11::text is null or exists (
                select from task t
                where t.tenant_id = $1 and t.instance_id = i.id and t.owner = $11 and t.status = 'CLAIMED'
            ))
            and ($21::timestamptz is null or i.updated_at < $21)
            and ($22::timestamptz is null or exists (
                select from state_instance s
                where s.tenant_id = $1 and s.instance_id = i.id and s.left_at is null and s.due_at < $22
            ) or exists (
                select from task t
                where t.tenant_id = $1 and t.instance_id = i.id and t.status in ('PENDING', 'CLAIMED') and t.due_at < $22
            ))
            and ($24::text is null or has_words($1, i.id, i.title, i.summary, i.entity_id, words_query($1, $24)))
            and ($23::text is null or exists (
                select from task t
                join state_instance s on s.tenant_id = $1 and s.instance_id = t.instance_id and s.id = t.state_id
                where t.tenant_id = $1 and t.instance_id = i.id and t.owner = $23
                  -- A blind state hides from others what was decided in it, until it ends.
                  and (t.status <> 'COMPLETED' or not s.blind or s.left_at is not null or $26::boolean)
            ))
            -- Without conditions, the planner leaves this out.
            and (cardinality($12::text[]) = 0 or not exists (
                select from unnest($12::text[], $13::text[], $14::text[], $15::text[]) as c (name, kind, operator, bound)
                -- One key look-up each: `limit` keeps the planner from reading all attributes of an instance.
                left join lateral (
                    select * from attribute
                    where tenant_id = $1 and instance_id = i.id and name = c.name and type = c.kind limit 1
                ) a on true
                where not coalesce(case c.operator
                    when 'exists' then a.name is not null
                    when 'absent' then a.name is null
                    when 'prefix' then starts_with(a.text_value, c.bound)
                    when 'in' then case c.kind
                        when 'text' then a.text_value = any(c.bound::text[])
                        when 'boolean' then a.boolean_value = any(c.bound::boolean[])
                        when 'decimal' then a.decimal_value = any(c.bound::numeric[])
                        when 'float' then a.float_value = any(c.bound::float8[])
                        when 'timestamp' then a.timestamp_value = any(c.bound::timestamptz[])
                        when 'bytes' then a.bytes_value = any(c.bound::bytea[])
                    end
                    else case case c.kind
                            when 'text' then case
                                when a.text_value collate "C" < c.bound then -1
                                when a.text_value collate "C" > c.bound then 1
                                when a.text_value = c.bound then 0
                            end
                            when 'boolean' then (a.boolean_value <> c.bound::boolean)::int
                            when 'decimal' then sign(a.decimal_value - c.bound::numeric)::int
                            when 'float' then case
                                when a.float_value < c.bound::float8 then -1
                                when a.float_value > c.bound::float8 then 1
                                when a.float_value = c.bound::float8 then 0
                            end
                            when 'timestamp' then case
                                when a.timestamp_value < c.bound::timestamptz then -1
                                when a.timestamp_value > c.bound::timestamptz then 1
                                when a.timestamp_value = c.bound::timestamptz then 0
                            end
                            when 'bytes' then (a.bytes_value <> c.bound::bytea)::int
                        end
                        when 0 then c.operator in ('eq', 'gte', 'lte')
                        when 1 then c.operator in ('ne', 'gt', 'gte')
                        when -1 then c.operator in ('ne', 'lt', 'lte')
                    end
                end, false)
            )) as fits
        from (
            select i.id, i.definition_key, i.definition_version, i.status, i.outcome, i.revision, i.entity_type, i.entity_id,
                i.initiator, i.started_at, i.updated_at, i.title, i.summary
            from instance i
            where i.tenant_id = $1
              and ($2::text is null or i.definition_key = $2)
              and ($3::text is null or i.status = $3)
              and ($4::text is null or exists (
                  select from state_instance s
                  where s.tenant_id = i.tenant_id and s.name = $4 and s.instance_id = i.id and s.left_at is null
              ))
              and ($5::text is null or i.entity_type = $5)
              and ($6::text is null or i.entity_id = $6)
              and ($7::text is null or i.initiator = $7)
              and ($8::timestamptz is null or i.started_at >= $8)
              and ($9::timestamptz is null or i.started_at < $9)
              and ($10::uuid is null or case when $25 then i.id > $10 else i.id < $10 end)
              and ($19::boolean is not true or i.id in (
                  select s.instance_id from state_instance s
                  where s.tenant_id = $1 and s.unassignable_since is not null and s.left_at is null
              ))
              and ($19::boolean is not false or i.id not in (
                  select s.instance_id from state_instance s
                  where s.tenant_id = $1 and s.unassignable_since is not null and s.left_at is null
              ))
              and ($20::uuid is null or i.parent = $20)
              and ($16::uuid[] is null or i.id = any($16))
            order by case when $25 then i.id end, case when not $25 then i.id end desc
            limit $17
        ) i
        order by case when $25 then i.id end, case when not $25 then i.id end desc
        offset 0
    ) n
    -- The last line that was looked at comes back in any case: it says where to go on.
    where n.fits or n.place = $17
    order by n.place
    limit $18
) n
-- What lines have besides is read for those of the page alone.
left join lateral (
    select array_agg(s.name order by s.ordinal) filter (where not s.waiting) as states, max(s.priority) filter (where not s.waiting) as priority,
        (array_agg(s.priority_name order by s.priority desc, s.ordinal) filter (where not s.waiting))[1] as priority_name
    from state_instance s
    where s.tenant_id = $1 and s.instance_id = n.id and s.left_at is null
) s on true
order by n.place
