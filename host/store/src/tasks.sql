-- $1 tenant, $2 view, $3 subject, $4 definition, $5 state, $6 open tasks, $7 limit, $8 absent people and $9 for which definitions,
-- $10 owner, $11 label, $12 lowest priority, $13 due before, $14 whether suspended, $15 entity type, $16 entity id, $17 status,
-- $18 outcome, $19 words, $20 the people between the actor and the absent people, in lines
select t.id, t.label, t.status, t.owner, t.candidates, t.created_at as "created_at: Time",
    t.claimed_at as "claimed_at: Time", t.ownership, t.suspended, s.name as state, t.state_id, s.priority, s.priority_name, coalesce(t.due_at, s.due_at) as "due_at: Time",
    t.instance_id, i.definition_key, i.definition_version, i.entity_type, i.entity_id, i.initiator,
    i.title as instance_title, i.summary as instance_summary, t.ended_at as "ended_at: Time",
    case when t.status = 'COMPLETED' then (
        select d.outcome from decision d where d.tenant_id = $1 and d.task_id = t.id
    ) end as outcome,
    i.requesters || s.exclude as "excluded_people!",
    decided.people as "deciders!"
from task t
join state_instance s on s.tenant_id = t.tenant_id and s.instance_id = t.instance_id and s.id = t.state_id
join instance i on i.tenant_id = t.tenant_id and i.id = t.instance_id
-- Who has decided in the state instance, where the view needs it. `offset 0`: planned once, not for each of its uses, and the
-- decisions are found by their tasks, however few the planner expects.
cross join lateral (
    select case when $2 in ('available', 'groups') or $2 = 'mine' and cardinality($8::text[]) > 0 then array(
        select p.person
        from task o
        cross join lateral (
            select d.actor, d.on_behalf_of from decision d where d.tenant_id = $1 and d.task_id = o.id
            offset 0
        ) d
        cross join lateral (values (d.actor), (d.on_behalf_of), (o.owner)) as p (person)
        where o.tenant_id = $1 and o.instance_id = t.instance_id and o.state_id = t.state_id and o.status = 'COMPLETED'
          and p.person is not null
    ) else '{}' end as people
    offset 0
) decided
where t.tenant_id = $1 and t.id = any($6)
  and case $2::text
      when 'mine' then t.status = 'CLAIMED' and t.owner = any($8::text[] || $3::text) and (
          t.owner = $3 or exists (
              select from unnest($8::text[], $9::text[], $20::text[]) as a (person, definition, via)
              where a.person = t.owner and coalesce(a.definition, i.definition_key) = i.definition_key
                and not ((array[$3, t.owner] || string_to_array(a.via, chr(10))) && (i.requesters || s.exclude))
                and not (array[$3, t.owner] && decided.people)
          )
      )
      -- A blind state hides from others what was decided in it, until it ends.
      when 'ended' then t.owner = $10 and (
          t.status <> 'COMPLETED' or not s.blind or s.left_at is not null or exists (
              select from decision d
              where d.tenant_id = $1 and d.task_id = t.id and $3 in (d.actor, coalesce(d.on_behalf_of, d.actor))
          )
      ) and ($18::text is null or exists (
          select from decision d where d.tenant_id = $1 and d.task_id = t.id and d.outcome = $18
      ))
      when 'groups' then t.status = 'PENDING' and i.status = 'RUNNING' and not ($3 = any(i.requesters || s.exclude))
        and not ($3 = any(decided.people)) and exists (
          select from task_candidate c
          join membership m on m.tenant_id = $1 and m.person_id = $3 and m.group_id = c.principal and m.valid_to is null
          where c.tenant_id = $1 and c.task_id = t.id and c.kind = 'group'
      )
      when 'available' then t.status = 'PENDING' and i.status = 'RUNNING' and not ($3 = any(s.exclude))
        and not ($3 = any(decided.people)) and exists (
          select from task_candidate c
          where c.tenant_id = $1 and c.task_id = t.id and (
              -- A requester claims only tasks of own work. These are offered to the initiator alone.
              c.kind = 'user' and c.principal = $3 and (not ($3 = any(i.requesters)) or $3 = i.initiator and not exists (
                  select from task_candidate o where o.tenant_id = $1 and o.task_id = t.id and o.principal <> $3
              ))
              or c.kind = 'group' and not ($3 = any(i.requesters)) and exists (
                  select from membership m
                  where m.tenant_id = $1 and m.person_id = $3 and m.group_id = c.principal and m.valid_to is null
              )
              or exists (
                  select from unnest($8::text[], $9::text[], $20::text[]) as a (person, definition, via)
                  where coalesce(a.definition, i.definition_key) = i.definition_key
                    and not ((array[$3, a.person] || string_to_array(a.via, chr(10))) && (i.requesters || s.exclude))
                    and not (a.person = any(decided.people))
                    and (c.kind = 'user' and c.principal = a.person or c.kind = 'group' and exists (
                        select from membership m
                        where m.tenant_id = $1 and m.person_id = a.person and m.group_id = c.principal and m.valid_to is null
                    ))
              )
          )
      )
      else t.status in ('PENDING', 'CLAIMED')
  end
  and ($4::text is null or i.definition_key = $4)
  and ($5::text is null or s.name = $5)
  and ($10::text is null or $2 = 'ended' or (t.status = 'CLAIMED' and t.owner = $10))
  and ($11::text is null or t.label = $11)
  and ($12::smallint is null or s.priority >= $12)
  and ($13::timestamptz is null or coalesce(t.due_at, s.due_at) < $13)
  and ($14::boolean is null or (t.suspended is not null) = $14)
  and ($17::text is null or t.status = $17)
  and ($19::text is null or has_words($1, i.id, i.title, i.summary, i.entity_id, words_query($1, $19)))
  and ($15::text is null or i.entity_type = $15)
  and ($16::text is null or i.entity_id = $16)
order by t.id
limit $7
