-- Indexes that a look-up by key cannot be planned with. As long as nothing is known of a table, an index that begins with
-- the tenant looks as good to the planner as the primary key, and would be read through. A condition that only a query
-- naming the column implies takes such an index out of the choice. And a faster compression.
set local role wrkflw_owner;

drop index instance_by_definition, instance_by_entity, instance_by_initiator, membership_current;
create index instance_by_definition on instance (tenant_id, definition_key, id) where definition_key is not null;
create index instance_by_entity on instance (tenant_id, entity_type, entity_id, id)
    where entity_type is not null and entity_id is not null;
create index instance_by_initiator on instance (tenant_id, initiator, id) where initiator is not null;
create unique index membership_current on membership (tenant_id, group_id, person_id)
    where valid_to is null and group_id is not null;

-- What a command may write that is long enough to be compressed. Where the server knows a faster way, it takes it for what
-- comes from now on; what is there stays as it is.
do $$
declare
    place text[];
begin
    foreach place slice 1 in array array[
        ['audit_entry', 'evidence'], ['audit_entry', 'payload'], ['instance', 'data'], ['decision', 'input'],
        ['idempotency_key', 'body']
    ] loop
        execute format('alter table %I alter column %I set compression lz4', place[1], place[2]);
    end loop;
exception when feature_not_supported or invalid_parameter_value then
    raise notice 'columns are compressed with pglz: this server was built without lz4';
end $$;

reset role;
