-- Inserts the given number of ended instances, with two entries each, into the tenant of the development host; the first has a
-- hundred thousand entries more. One entry in a thousand is of a rare person, one in ten of a second type. The host's own
-- checkpointer makes the leaves by which a tenant's history is read.
create temporary table place as select id as tenant from tenant where name = 'default';
create temporary table filled as
select n, ('018f' || lpad(to_hex(n), 8, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid as id,
    timestamptz '2026-01-01' + n * interval '1 second' as at
from generate_series(1, INSTANCES) n;
insert into instance (tenant_id, id, definition_key, definition_version, revision, status, outcome, ended_at, entity_type, entity_id,
    initiator, requesters, data, started_at, updated_at, audit_seq, audit_head, event_seq, state_instances)
select tenant, id, 'bench-orders', 1, 1, 'COMPLETED', 'APPROVED', at, 'bench-history', n::text, 'author', '{author}', '{}', at, at,
    case n when 1 then 100002 else 2 end, '\x00', 1, 1
from place, filled;
insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, payload, salt, occurred_at, hash)
select tenant, 'instance', f.id, e.seq, gen_random_uuid(),
    case when (f.n + e.seq) % 10 = 0 then 'SECOND' else 'FIRST' end, 1, gen_random_uuid(),
    case when (f.n + e.seq) % 1000 = 7 then 'rare' else 'often' end,
    '{"comment":"' || repeat('fine ', 50) || '"}', '\x00', f.at, sha256(int8send(f.n) || int8send(e.seq))
from place, filled f, generate_series(1, case f.n when 1 then 100002 else 2 end) e (seq);
vacuum analyze instance; vacuum analyze audit_entry;
