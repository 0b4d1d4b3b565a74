-- What the host's rules about open tasks need of each instance. $1 tenant, $2 state instances of the tasks, $3 their instances,
-- $4 names of states that are separate from those of the tasks
select
    (select to_json(one) from (
        select i.id, i.definition_key, i.definition_version, i.revision, i.status, i.outcome, i.end_reason, i.ended_by, i.ended_at,
            i.entity_type, i.entity_id, i.initiator, i.requesters, i.predecessor, i.parent, '{}' as data, i.started_at, i.updated_at,
            i.audit_seq, i.audit_head, i.event_seq, i.state_instances, i.suspended_at, i.suspended_by, i.suspend_reason,
            null as buffered_signals, i.title, i.summary, i.sole
    ) one)::text as "instance!",
    coalesce((
        select json_agg(s order by s.ordinal) from state_instance s
        where s.tenant_id = $1 and s.instance_id = i.id and (s.id = any($2) or s.name = any($4))
    )::text, '[]') as "state_instances!",
    coalesce((
        select json_agg(json_build_object(
            'id', t.id, 'state_id', t.state_id, 'label', t.label, 'status', t.status, 'owner', t.owner,
            'candidates', t.candidates, 'created_at', t.created_at, 'claimed_at', t.claimed_at,
            'ended_at', t.ended_at, 'due_at', t.due_at, 'deadlines', t.deadlines, 'suspended', t.suspended, 'ownership', t.ownership,
            'cancel_reason', t.cancel_reason,
            'decision', (
                select json_build_object('outcome', d.outcome, 'actor', d.actor, 'on_behalf_of', d.on_behalf_of, 'comment', null,
                    'input', '{}', 'decided_at', d.decided_at)
                from decision d where d.tenant_id = t.tenant_id and d.task_id = t.id
            )
        ) order by t.ordinal)
        from task t
        where t.tenant_id = $1 and t.instance_id = i.id and t.state_id in (
            select s.id from state_instance s
            where s.tenant_id = $1 and s.instance_id = i.id and (s.id = any($2) or s.name = any($4))
        )
    )::text, '[]') as "tasks!"
from instance i
where i.tenant_id = $1 and i.id = any($3)
