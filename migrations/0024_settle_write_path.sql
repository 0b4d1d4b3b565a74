-- What the write path rests on, made so that it holds after the database was set back, beside purges, and between two hosts
-- that have the same job in hand.
set local role wrkflw_owner;

-- Whose an idempotency key is, the key's own row settles, for starts as for other commands. So no instance is written once
-- more a day after its start, and what forgets keys holds no instance.
drop index instance_start_key;
alter table instance drop column start_principal, drop column start_key;

-- A count comes again when the database loses a change and another one is made: by a fail-over that loses commits, or a
-- restored backup. A mark that is drawn anew with each change never does, so what a host remembers beside one cannot be
-- taken for what another history made of it.
alter table tenant drop column standing_changes, add column standing_mark uuid not null default gen_random_uuid();
alter function count_standing_change() rename to mark_standing_change;
create or replace function mark_standing_change() returns trigger language plpgsql as $$
begin
    -- One row of many statements is locked in the order of the tenants, so none of them wait for each other.
    perform from tenant t where t.id in (select c.tenant_id from changed c) order by t.id for no key update;
    update tenant t set standing_mark = gen_random_uuid() where t.id in (select c.tenant_id from changed c);
    return null;
end $$;
-- The other tables that a turn looks things up in: who changes them by hand is seen at once, as with memberships.
do $$
declare
    name text;
begin
    foreach name in array array['person', 'manager', 'calendar'] loop
        execute format(
            'create trigger %I after insert on %I referencing new table as changed for each statement execute function mark_standing_change()',
            name || '_added', name);
        execute format(
            'create trigger %I after update on %I referencing new table as changed for each statement execute function mark_standing_change()',
            name || '_changed', name);
        execute format(
            'create trigger %I after delete on %I referencing old table as changed for each statement execute function mark_standing_change()',
            name || '_removed', name);
    end loop;
end $$;

-- Who has the job in hand: drawn anew with each claim. A suspension takes a job away, and what goes on puts it again with its
-- due time and no attempts, so neither tells one claim from another.
alter table job add column claim uuid;

-- Notifications, and what became of each instance in an operation on many, are kept for a time. Old ones lie together.
create index notification_age on notification using brin (created_at) with (autosummarize = on);
grant delete on notification, bulk_item to wrkflw_writer;

reset role;
