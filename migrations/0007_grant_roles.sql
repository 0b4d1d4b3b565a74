-- What each role may do, and which rows it sees. The writer's policy is open and its statements name the tenant: a
-- setting made inside a batched statement would be read too late and hide rows, a false conflict.
set local role wrkflw_owner;

grant select, insert, update on
    tenant, role_permission, person, "group", membership, definition, definition_version, instance, state_instance, task,
    audit_stream, idempotency_key, attribute
    to wrkflw_writer;
grant delete on role_permission, task_candidate, attribute, idempotency_key to wrkflw_writer;
grant select, insert on
    component, engine_profile, task_candidate, decision, audit_entry, refused_attempt, outbox_event
    to wrkflw_writer;
grant usage on sequence event_pos to wrkflw_writer;
grant select on feed_epoch, outbox_lane, dead_letter to wrkflw_writer;

grant select on
    tenant, role_permission, person, "group", membership, component, definition, definition_version, engine_profile, instance,
    state_instance, task, task_candidate, decision, attribute, audit_entry, audit_stream, refused_attempt, feed_epoch
    to wrkflw_reader;

grant select, update on outbox_lane to wrkflw_relay;
grant select, delete on outbox_event to wrkflw_relay;
grant select, insert on dead_letter to wrkflw_relay;
grant select on audit_entry, instance, tenant, event_pos to wrkflw_relay;

do $$
declare
    name text;
begin
    foreach name in array array[
        'role_permission', 'person', 'group', 'membership', 'definition', 'definition_version', 'instance', 'state_instance',
        'task', 'task_candidate', 'decision', 'attribute', 'audit_entry', 'audit_stream', 'refused_attempt', 'idempotency_key',
        'outbox_event', 'dead_letter'
    ] loop
        execute format('alter table %I enable row level security', name);
        execute format('create policy writer on %I to wrkflw_writer using (true) with check (true)', name);
        execute format(
            'create policy reader on %I for select to wrkflw_reader using (tenant_id = nullif(current_setting(''wrkflw.tenant'', true), '''')::int)',
            name);
    end loop;
    foreach name in array array['audit_entry', 'instance', 'outbox_event', 'dead_letter'] loop
        execute format('create policy relay on %I to wrkflw_relay using (true) with check (true)', name);
    end loop;
end $$;

reset role;

-- So that a host can tell whether it finds the schema that it was built for. The migrator's table is the login's.
do $$
begin
    if to_regclass('_sqlx_migrations') is not null then
        grant select on _sqlx_migrations to wrkflw_writer;
    end if;
end $$;
