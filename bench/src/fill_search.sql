-- Inserts the given number of instances, with four attributes each, into the tenant of the development host. Amounts repeat after
-- a million instances, and all of the oldest tenth have the region `OLD`.
create temporary table place as select id as tenant from tenant where name = 'default';
insert into attribute_declaration (tenant_id, name, definition_key, type)
select tenant, name, definition, type from place, (values ('bench-orders'), ('bench-returns')) f (definition),
    (values ('amount', 'decimal'), ('region', 'text'), ('reference', 'text'), ('urgent', 'boolean')) d (name, type)
on conflict do nothing;
create temporary table filled as
select n, ('018f' || lpad(to_hex(n), 8, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid as id,
    timestamptz '2026-01-01' + n * interval '1 second' as at
from generate_series(1, INSTANCES) n;
insert into instance (tenant_id, id, definition_key, definition_version, revision, status, entity_type, entity_id, initiator,
    requesters, data, started_at, updated_at, audit_seq, audit_head, event_seq, state_instances)
select tenant, id, case when n % 10 = 0 then 'bench-returns' else 'bench-orders' end, 1, 1, 'RUNNING', 'bench-search', n::text,
    'author', '{author}', '{"title":"Bench"}', at, at, 1, sha256('bench'), 1, 1
from place, filled;
insert into state_instance (tenant_id, instance_id, id, ordinal, name, entered_at, predecessors, caller, needed, exclude, priority)
select tenant, id, id, 0, 'Submitted', at, '{}', 'author', 1, '{}', 0 from place, filled;
insert into attribute (tenant_id, instance_id, name, type, decimal_value)
select tenant, id, 'amount', 'decimal', (n::bigint * 7919 % 1000000)::numeric / 100 from place, filled;
insert into attribute (tenant_id, instance_id, name, type, text_value)
select tenant, id, 'region', 'text', case when n <= INSTANCES / 10 then 'OLD' else (array['EU', 'US', 'APAC'])[n % 3 + 1] end
from place, filled;
insert into attribute (tenant_id, instance_id, name, type, text_value)
select tenant, id, 'reference', 'text', 'REF-' || lpad(n::text, 9, '0') from place, filled;
insert into attribute (tenant_id, instance_id, name, type, boolean_value)
select tenant, id, 'urgent', 'boolean', n % 50 = 0 from place, filled;
vacuum analyze instance; vacuum analyze state_instance; vacuum analyze attribute;
