-- A row for each of several commands. $1 tenants, $2 instances, $3 subjects, $4 roles as the text of arrays, $5 idempotency
-- keys, $6 moments, $7 ids of signals, $8 what tells these apart, $9 definitions of which an instance is to be started
select
    q.number as "number!",
    array(
        select group_id from membership
        where tenant_id = q.tenant_id and person_id = q.subject and valid_to is null order by group_id
    ) as "groups!",
    array(
        select distinct permission from role_permission
        where tenant_id = q.tenant_id and role = any(q.roles::text[]) order by permission
    ) as "permissions!",
    -- Substitutes of substitutes, up to the third.
    coalesce((
        with recursive stand_in (person, definition, via) as (
            select a.person_id, a.definition_key, array[]::text[] from absence a
            where a.tenant_id = q.tenant_id and a.substitute_id = q.subject and a.active_until > q.now
              and a.active_from <= q.now and a.ended_at is null
            union all
            select a.person_id, coalesce(s.definition, a.definition_key), s.via || s.person
            from stand_in s
            -- Its offset keeps the absences of others out of the join, whatever the planner knows of the table.
            cross join lateral (
                select a.person_id, a.definition_key from absence a
                where a.tenant_id = q.tenant_id and a.substitute_id = s.person and a.active_until > q.now
                  and a.active_from <= q.now and a.ended_at is null
                  and (s.definition is null or a.definition_key is null or a.definition_key = s.definition)
                offset 0
            ) a
            where cardinality(s.via) < 2
        )
        select json_agg(json_build_object('person', s.person, 'definition', s.definition, 'via', s.via, 'groups', array(
            select m.group_id from membership m
            where m.tenant_id = q.tenant_id and m.person_id = s.person and m.valid_to is null order by m.group_id
        )) order by cardinality(s.via), s.person, s.definition) from stand_in s
    ), '[]') as "stands_in_for!: Column<Vec<StandIn>>",
    -- Another one after every change of the directory, and of what anybody may do, whichever way it came about.
    coalesce((
        select t.access_mark from tenant t where t.id = q.tenant_id
    ), '00000000-0000-0000-0000-000000000000') as "access_mark!",
    -- What the version is made of that the instance runs under, or would.
    (
        select v.digest || v.config_digest from definition_version v
        where v.tenant_id = q.tenant_id and v.key = coalesce(i.definition_key, d.key)
          and v.version = coalesce(i.definition_version, d.active_version)
    ) as "content",
    d.key as "definition?",
    d.active_version as "active_version?",
    -- Nobody is, or will be, absent in whose place the subject stands: all above holds until that mark changes.
    (
        select true from absence a
        where a.tenant_id = q.tenant_id and a.substitute_id = q.subject and a.active_until > q.now and a.ended_at is null
        limit 1
    ) is null as "lasting!",
    g.received_at as "signalled_at?: Time",
    g.content as "signalled_content?",
    g.entry_id as "signalled_entry?",
    -- What an operator has stopped; a change counts among those of what anybody may do.
    array(
        select v.key || ' ' || v.version from definition_version v where v.tenant_id = q.tenant_id and v.stopped_at is not null
    ) as "stopped!",
    k.fingerprint as "reply_fingerprint?",
    k.status as "reply_status?",
    k.body as "reply_body?",
    k.headers as "reply_headers?",
    -- The parts of the instance as text: they may be large, and are read elsewhere.
    case when i.id is not null then to_json(i)::text end as "instance?",
    coalesce((
        select json_agg(s order by s.ordinal) from state_instance s
        where s.tenant_id = q.tenant_id and s.instance_id = q.instance_id
    )::text, '[]') as "state_instances!",
    coalesce((
        select json_agg(json_build_object(
            'id', t.id, 'state_id', t.state_id, 'label', t.label, 'status', t.status, 'owner', t.owner,
            'candidates', t.candidates, 'created_at', t.created_at, 'claimed_at', t.claimed_at,
            'ended_at', t.ended_at, 'due_at', t.due_at, 'deadlines', t.deadlines, 'suspended', t.suspended, 'ownership', t.ownership,
            'cancel_reason', t.cancel_reason,
            -- Not a join: planned on an empty table, it would go through all decisions of the tenant.
            'decision', (select to_json(d) from decision d where d.tenant_id = t.tenant_id and d.task_id = t.id)
        ) order by t.ordinal)
        from task t
        where t.tenant_id = q.tenant_id and t.instance_id = q.instance_id
    )::text, '[]') as "tasks!",
    coalesce((
        select json_agg(json_build_object(
            'name', a.name, 'type', a.type, 'text_value', a.text_value, 'boolean_value', a.boolean_value,
            'decimal_value', a.decimal_value::text, 'float_value', a.float_value,
            'timestamp_value', a.timestamp_value, 'bytes_value', a.bytes_value
        )) from attribute a
        where a.tenant_id = q.tenant_id and a.instance_id = q.instance_id
    )::text, '[]') as "attributes!"
from unnest($1::int[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::text[], $8::bytea[], $9::text[]) with ordinality
    as q (tenant_id, instance_id, subject, roles, key, now, signal, identity, definition, number)
-- Each by its key, whatever the planner knows of the table: if it was analysed while it was empty, a plain join reads all of it.
left join lateral (
    select * from instance where tenant_id = q.tenant_id and id = q.instance_id offset 0
) i on true
left join lateral (
    select * from definition where tenant_id = q.tenant_id and key = q.definition offset 0
) d on true
left join lateral (
    select * from idempotency_key where tenant_id = q.tenant_id and principal = q.subject and key = q.key offset 0
) k on true
-- One of an earlier release has no identity: its id alone tells it apart.
left join lateral (
    select g.received_at, g.content, g.entry_id from signal g
    where g.tenant_id = q.tenant_id and g.instance_id = q.instance_id and g.signal_id = q.signal
      and g.identity in (q.identity, '')
    order by g.identity desc limit 1
) g on true
