-- A page of the decisions and delegations about an entity, in the order of time: first its keys alone, then for each its entry, the hash
-- before it, the evidence of its command, and its seal.
with page as materialized (
    select i.id, i.definition_key, i.definition_version, i.initiator, i.requesters, a.seq, a.occurred_at
    from instance i
    join audit_entry a on a.tenant_id = i.tenant_id and a.stream_kind = 'instance' and a.stream_id = i.id
        and a.type in ('DECISION_RECORDED', 'TASK_DELEGATED', 'TASK_RESOLVED')
    where i.tenant_id = $1 and i.entity_type = $2 and i.entity_id = $3
      and ($4::uuid is null or i.id = $4)
      and ($5::text is null or i.definition_key = $5)
      and ($6::timestamptz is null or (a.occurred_at, i.id, a.seq) > ($6, $7::uuid, $8::bigint))
    order by a.occurred_at, i.id, a.seq
    limit $9
), told as (
    -- As many as there is room for, the first in any case.
    select p.*, c.seq as evidence_seq, count(*) over () as all_keys, coalesce(sum(
        octet_length(a.payload) + coalesce(octet_length(a.evidence), 0) + case when c.seq <> p.seq then c.bytes else 0 end
    ) over (
        order by p.occurred_at, p.id, p.seq rows between unbounded preceding and 1 preceding
    ), 0) as before
    from page p
    join audit_entry a on a.tenant_id = $1 and a.stream_kind = 'instance' and a.stream_id = p.id and a.seq = p.seq
    left join lateral (
        select e.seq, e.command_id, octet_length(e.evidence) as bytes from audit_entry e
        where e.tenant_id = $1 and e.stream_kind = 'instance' and e.stream_id = p.id and e.seq <= p.seq
          and e.evidence is not null
        order by e.seq desc
        limit 1
    ) c on c.command_id = a.command_id
)
select p.all_keys as "all!", p.id as instance, p.definition_key, p.definition_version, p.initiator, p.requesters,
    a.id, a.seq, a.type, a.revision, a.command_id, a.actor, a.task_id, a.payload, a.evidence as own_evidence, a.salt,
    a.occurred_at as "at: Time", a.event_seq, a.hash,
    b.hash as "previous_hash?", c.evidence as "evidence?",
    coalesce(d.key_id, s.key_id) as "key_id?", coalesce(d.mac_version, s.mac_version) as "mac_version?",
    coalesce(d.mac, s.mac) as "mac?"
from told p
join audit_entry a on a.tenant_id = $1 and a.stream_kind = 'instance' and a.stream_id = p.id and a.seq = p.seq
left join audit_entry b on b.tenant_id = $1 and b.stream_kind = 'instance' and b.stream_id = p.id and b.seq = p.seq - 1
left join audit_entry c on c.tenant_id = $1 and c.stream_kind = 'instance' and c.stream_id = p.id and c.seq = p.evidence_seq
left join decision d on a.type = 'DECISION_RECORDED' and d.tenant_id = $1 and d.task_id = a.task_id and d.instance_id = p.id
left join delegation_seal s on a.type <> 'DECISION_RECORDED' and s.tenant_id = $1 and s.instance_id = p.id and s.seq = p.seq
where p.before < $10
order by p.occurred_at, p.id, p.seq
