-- Counts what decides who may do what, whoever changes it and by which way. A host that judges a command by what it remembers
-- of somebody names the count that it remembers, and the commit takes place only if it still holds.
set local role wrkflw_owner;

alter table tenant add column standing_changes bigint not null default 0;

create function count_standing_change() returns trigger language plpgsql as $$
begin
    -- One row of many statements is locked in the order of the tenants, so none of them wait for each other.
    perform from tenant t where t.id in (select c.tenant_id from changed c) order by t.id for no key update;
    update tenant t set standing_changes = t.standing_changes + 1 where t.id in (select c.tenant_id from changed c);
    return null;
end $$;

do $$
declare
    name text;
begin
    foreach name in array array['role_permission', 'membership', 'absence'] loop
        execute format(
            'create trigger %I after insert on %I referencing new table as changed for each statement execute function count_standing_change()',
            name || '_added', name);
        execute format(
            'create trigger %I after update on %I referencing new table as changed for each statement execute function count_standing_change()',
            name || '_changed', name);
        execute format(
            'create trigger %I after delete on %I referencing old table as changed for each statement execute function count_standing_change()',
            name || '_removed', name);
    end loop;
end $$;

reset role;
