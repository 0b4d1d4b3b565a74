-- Every decision of a period, and which of them were made by a requester, or on behalf of one, outside of own work.
--
-- Version and state at the time of the decision stand in the audit, before any migration of the instance. Members of
-- canonical JSON are sorted, so the ends of the texts are the host's own, whatever people put into the input. A decision
-- whose instance is gone belongs to no definition and has no requesters to be compared with; `engine::verify` reports it.
with examined as materialized (
    select d.task_id, d.instance_id, d.outcome, d.actor, d.on_behalf_of, d.decided_at, i.definition_key,
        i.definition_version, i.requesters
    from decision d
    left join instance i on i.tenant_id = d.tenant_id and i.id = d.instance_id
    where d.tenant_id = $1 and d.decided_at >= $2 and d.decided_at < $3
      and ($4::text is null or i.definition_key = $4)
),
own as materialized (
    select e.*, coalesce(recorded.state, s.name) as state, coalesce(recorded.version, e.definition_version) as version
    from examined e
    left join task t on t.tenant_id = $1 and t.id = e.task_id and t.instance_id = e.instance_id
    left join state_instance s on s.tenant_id = $1 and s.instance_id = t.instance_id and s.id = t.state_id
    left join lateral (
        select substring(c.evidence from '"version":([0-9]{1,9})}$')::int as version, substring(
            a.payload from '"stateName":"([^"\\]+)","task":"[0-9a-f-]{36}","type":"DECISION_RECORDED"}$'
        ) as state
        from audit_entry a
        join lateral (
            select b.evidence, b.command_id from audit_entry b
            where b.tenant_id = $1 and b.stream_kind = 'instance' and b.stream_id = e.instance_id and b.seq <= a.seq
              and b.evidence is not null
            order by b.seq desc
            limit 1
        ) c on c.command_id = a.command_id
        where a.tenant_id = $1 and a.stream_kind = 'instance' and a.stream_id = e.instance_id
          and a.type = 'DECISION_RECORDED' and a.task_id = e.task_id
        limit 1
    ) recorded on true
    where e.actor = any(e.requesters) or e.on_behalf_of = any(e.requesters)
),
declared as materialized (
    select v.key, v.version, state ->> 'name' as state
    from definition_version v
    cross join lateral json_array_elements(v.graph::json -> 'states') state
    where v.tenant_id = $1 and (v.key, v.version) in (select definition_key, version from own)
      and state ->> 'ownWork' = 'true'
),
broken as materialized (
    select o.* from own o
    where not exists (
        select from declared g where g.key = o.definition_key and g.version = o.version and g.state = o.state
    )
)
select
    (select count(*) from examined) as "examined!", (select count(*) from own) as "own!",
    (select count(*) from broken) as "broken!",
    b.task_id as "task_id?", b.instance_id as "instance_id?", b.definition_key as "definition_key?",
    b.version as "version?", b.state as "state?", b.outcome as "outcome?", b.actor as "actor?",
    b.on_behalf_of as "on_behalf_of?", b.requesters as "requesters?", b.decided_at as "decided_at?: Time"
from (select) one
left join (select * from broken order by decided_at desc, task_id desc limit $5) b on true
order by b.decided_at desc, b.task_id desc
