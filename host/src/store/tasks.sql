select t.id, t.label, t.status, t.owner, t.candidates, t.form, t.created_at as "created_at: Time",
    t.claimed_at as "claimed_at: Time", s.name as state, s.priority, coalesce(t.due_at, s.due_at) as "due_at: Time",
    t.instance_id, i.definition_key, i.definition_version, i.entity_type, i.entity_id, i.initiator
from task t
join state_instance s on s.tenant_id = t.tenant_id and s.instance_id = t.instance_id and s.id = t.state_id
join instance i on i.tenant_id = t.tenant_id and i.id = t.instance_id
where t.tenant_id = $1
  and case $2::text
      when 'mine' then t.status = 'CLAIMED' and t.owner = $3
      when 'available' then t.status = 'PENDING' and not ($3 = any(s.exclude))
          and t.id in (
              select c.task_id from task_candidate c
              where c.tenant_id = $1 and c.kind = 'user' and c.principal = $3
              union all
              select c.task_id from membership m
              join task_candidate c on c.tenant_id = m.tenant_id and c.kind = 'group' and c.principal = m.group_id
              where m.tenant_id = $1 and m.person_id = $3 and m.valid_to is null and not ($3 = any(i.requesters))
          )
      else t.status in ('PENDING', 'CLAIMED')
  end
  and ($4::text is null or i.definition_key = $4)
  and ($5::text is null or s.name = $5)
  and ($6::uuid is null or t.id > $6)
  and ($8::text is null or (t.status = 'CLAIMED' and t.owner = $8))
  and ($9::text is null or t.label = $9)
  and ($10::smallint is null or s.priority >= $10)
  and ($11::timestamptz is null or coalesce(t.due_at, s.due_at) < $11)
order by t.id
limit $7
