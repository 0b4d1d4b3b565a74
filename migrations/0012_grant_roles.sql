-- The grants and row policies of each role. The writer's policy allows all rows, and its statements name the tenant: a
-- setting made inside a batched statement would take effect too late, hide rows, and cause a false conflict. Functions have
-- their grants where they are created.
set local role wrkflw_owner;

-- Tables that the writer inserts into and updates.
grant select, insert, update on
    tenant, role_permission, person, "group", membership, manager, absence, calendar, definition, definition_version,
    audit_stream, instance, state_instance, descendant_count, task, allocation, attribute, job, reassessment, bulk_operation, bulk_item,
    signal_inbox, idempotency_key, notification, muted_notification, subscription, webhook_delivery, notifier_cursor, session, preference, host,
    series_point
    to wrkflw_writer;
-- Tables that the writer only inserts into.
grant select, insert on
    component, engine_profile, audit_entry, refused_attempt, audit_leaf, checkpoint, descendant_place, task_candidate,
    decision, delegation_seal, attribute_declaration, signal, signal_subscription, outbox_event, participant, webhook_attempt
    to wrkflw_writer;
grant select, update on checkpoint_cursor to wrkflw_writer;
grant usage, select on sequence event_pos to wrkflw_writer;
-- Tables from which the writer deletes: settings, work that is done, and rows with a retention time. None of them is a
-- record.
grant delete on
    role_permission, calendar, descendant_place, task_candidate, attribute, job, reassessment, bulk_item, signal,
    signal_subscription, signal_inbox, idempotency_key, notification, muted_notification, subscription, webhook_delivery, webhook_attempt, session, host,
    series_point
    to wrkflw_writer;
grant select on feed_epoch, outbox_partition, dead_letter to wrkflw_writer;
-- Operators read dead letters, send them again, or discard the refused event so that those behind it continue. A release
-- locks the partition and lowers its floor below the released events; a discarded event is counted.
grant delete on dead_letter to wrkflw_writer;
grant update (floor, settled) on outbox_partition to wrkflw_writer;

grant select on
    tenant, role_permission, person, "group", membership, manager, absence, calendar, component, definition,
    definition_version, engine_profile, audit_entry, audit_stream, refused_attempt, audit_leaf, checkpoint,
    checkpoint_cursor, instance, participant, state_instance, descendant_count, descendant_place, task, task_candidate, decision,
    delegation_seal, attribute, attribute_declaration, job, reassessment, bulk_operation, bulk_item, signal, signal_subscription, signal_inbox,
    feed_epoch, outbox_event, dead_letter, notification, muted_notification, webhook_delivery, webhook_attempt, session, preference,
    host, series_point
    to wrkflw_reader;
-- All columns but the secret.
grant select (tenant_id, id, url, types, definition_key, active, created_at, created_by, failures, disabled_reason)
    on subscription to wrkflw_reader;

grant select, update on outbox_partition to wrkflw_relay;
grant select, delete on outbox_event to wrkflw_relay;
grant select, insert on dead_letter to wrkflw_relay;
grant select on audit_entry, checkpoint, instance, state_instance, task, definition_version, tenant, event_pos to wrkflw_relay;

do $$
declare
    name text;
begin
    foreach name in array array[
        'role_permission', 'person', 'group', 'membership', 'manager', 'absence', 'calendar', 'definition',
        'definition_version', 'audit_entry', 'audit_stream', 'refused_attempt', 'audit_leaf', 'checkpoint', 'instance',
        'participant', 'state_instance', 'descendant_count', 'descendant_place', 'task', 'task_candidate', 'allocation', 'decision', 'delegation_seal', 'attribute',
        'attribute_declaration', 'job', 'reassessment', 'bulk_operation', 'bulk_item', 'signal', 'signal_subscription',
        'signal_inbox', 'idempotency_key', 'outbox_event', 'dead_letter', 'notification', 'muted_notification', 'subscription', 'webhook_delivery', 'webhook_attempt',
        'notifier_cursor', 'session', 'preference', 'series_point'
    ] loop
        execute format('alter table %I enable row level security', name);
        execute format('create policy writer on %I to wrkflw_writer using (true) with check (true)', name);
        execute format(
            'create policy reader on %I for select to wrkflw_reader using (tenant_id = nullif(current_setting(''wrkflw.tenant'', true), '''')::int)',
            name);
    end loop;
    foreach name in array array[
        'audit_entry', 'checkpoint', 'instance', 'state_instance', 'task', 'definition_version', 'outbox_event', 'dead_letter'
    ] loop
        execute format('create policy relay on %I to wrkflw_relay using (true) with check (true)', name);
    end loop;
end $$;

-- What a person keeps for themselves: saved views, and drafts of comments.
grant select, insert, update, delete on saved_view, draft to wrkflw_writer;
grant select on saved_view, draft to wrkflw_reader;
do $$
declare
    name text;
begin
    foreach name in array array['saved_view', 'draft'] loop
        execute format('alter table %I enable row level security', name);
        execute format('create policy writer on %I to wrkflw_writer using (true) with check (true)', name);
        execute format(
            'create policy reader on %I for select to wrkflw_reader using (tenant_id = nullif(current_setting(''wrkflw.tenant'', true), '''')::int)',
            name);
    end loop;
end $$;

-- What a viewer sees of a tenant. Each query of the role has these conditions by itself, so none can forget them. The host sets for
-- each connection who reads:
--   wrkflw.viewer      the person
--   wrkflw.groups      their groups, for observers
--   wrkflw.principals  `kind, line feed, id` of the person, their groups, and the people for whom they stand in; before it the key
--                      of the definition and a line feed, if they stand in for its work only
-- These are sub-selects without `exists`, which the planner might answer by reading a whole table. Functions would be planned once, but
-- cost several times as much for each row.
create policy visible on instance as restrictive for select to wrkflw_viewer using (
    observers is null
    or observers && (select coalesce(nullif(current_setting('wrkflw.groups', true), ''), '{}')::text[])
    or (
        select true from participant p
        where p.tenant_id = instance.tenant_id and p.instance_id = instance.id and p.kind <> 'observer' and (
            (p.kind || E'\n' || p.principal)
                = any((select coalesce(nullif(current_setting('wrkflw.principals', true), ''), '{}')::text[])::text[])
            or (instance.definition_key || E'\n' || p.kind || E'\n' || p.principal)
                = any((select coalesce(nullif(current_setting('wrkflw.principals', true), ''), '{}')::text[])::text[])
            or p.kind = 'user' and (
                select m.manager_id from manager m
                where m.tenant_id = p.tenant_id and m.person_id = p.principal and m.valid_to is null
            ) = (select current_setting('wrkflw.viewer', true))
        )
        limit 1
    )
);
create policy visible on task as restrictive for select to wrkflw_viewer using (
    not restricted
    or (select true from instance i where i.tenant_id = task.tenant_id and i.id = task.instance_id limit 1)
);
create policy visible on audit_entry as restrictive for select to wrkflw_viewer using (
    stream_kind <> 'instance'
    or (select true from instance i where i.tenant_id = audit_entry.tenant_id and i.id = audit_entry.stream_id limit 1)
);
do $$
declare
    name text;
begin
    -- Tables whose rows are about an instance, or about none.
    foreach name in array array[
        'state_instance', 'decision', 'delegation_seal', 'attribute', 'notification', 'bulk_item', 'job', 'outbox_event', 'dead_letter', 'refused_attempt', 'signal',
        'signal_subscription', 'signal_inbox', 'descendant_place', 'webhook_delivery'
    ] loop
        execute format(
            'create policy visible on %1$I as restrictive for select to wrkflw_viewer using (
                instance_id is null
                or (select true from instance i where i.tenant_id = %1$I.tenant_id and i.id = %1$I.instance_id limit 1)
            )',
            name);
    end loop;
end $$;

reset role;

-- Lets a host, and an auditor who only reads, check whether the schema is the one that they were built for. The migrator's table belongs to the login.
do $$
begin
    if to_regclass('_sqlx_migrations') is not null then
        grant select on _sqlx_migrations to wrkflw_writer, wrkflw_reader;
    end if;
end $$;
