-- Tenants, their people and groups, what their roles permit, who manages whom, who stands in for whom, and when people
-- work. Memberships and managers are ended, never deleted, so that past standing can be answered.
set local role wrkflw_owner;

create table tenant (
    id int generated always as identity primary key,
    name text not null,
    created_at timestamptz not null,
    -- A host that judges a command by what it remembers of somebody names the mark that it remembers, and the commit takes
    -- place only if it still holds. Drawn anew with each change: a count would come again when the database loses a change
    -- and another one is made, by a fail-over that loses commits or by a restored backup.
    access_mark uuid not null default gen_random_uuid(),
    constraint tenant_name_key unique (name)
);

-- Marks what decides who may do what and what flows look up, whoever changes it and by which way.
create function mark_access_change() returns trigger language plpgsql as $$
begin
    -- One row of many statements is locked in the order of the tenants, so none of them wait for each other.
    perform from tenant t where t.id in (select c.tenant_id from changed c) order by t.id for no key update;
    update tenant t set access_mark = gen_random_uuid() where t.id in (select c.tenant_id from changed c);
    return null;
end $$;

create table role_permission (
    tenant_id int not null,
    role text not null,
    permission text not null,
    primary key (tenant_id, role, permission)
);

create table person (
    tenant_id int not null,
    id text not null,
    name text not null,
    created_at timestamptz not null,
    primary key (tenant_id, id)
);

create table "group" (
    tenant_id int not null,
    id text not null,
    name text not null,
    created_at timestamptz not null,
    primary key (tenant_id, id)
);

create table membership (
    tenant_id int not null,
    person_id text not null,
    group_id text not null,
    valid_from timestamptz not null,
    valid_to timestamptz,
    primary key (tenant_id, person_id, group_id, valid_from)
);
-- Not for look-ups by person: the condition keeps it from being planned where the primary key serves.
create unique index membership_current on membership (tenant_id, group_id, person_id)
    where valid_to is null and group_id is not null;

create table manager (
    tenant_id int not null,
    person_id text not null,
    manager_id text not null,
    valid_from timestamptz not null,
    valid_to timestamptz,
    primary key (tenant_id, person_id, valid_from)
);
create unique index manager_current on manager (tenant_id, person_id) where valid_to is null;

-- While an absence holds, both the person and the substitute may act.
create table absence (
    tenant_id int not null,
    id uuid not null,
    person_id text not null,
    substitute_id text not null,
    -- Holds for work of this definition alone; null for all.
    definition_key text,
    active_from timestamptz not null,
    active_until timestamptz not null,
    created_at timestamptz not null,
    created_by text not null,
    -- When it was called off before its end.
    ended_at timestamptz,
    primary key (tenant_id, id),
    constraint absence_period_check check (active_from < active_until)
);
create index absence_by_substitute on absence (tenant_id, substitute_id, active_until);
create index absence_by_person on absence (tenant_id, person_id, active_until);

-- Working time, by name. What a deadline was computed from stands in the evidence of its command.
create table calendar (
    tenant_id int not null,
    name text not null,
    -- Canonical JSON: time zone, hours of each weekday, holidays.
    settings text not null,
    updated_at timestamptz not null,
    primary key (tenant_id, name)
);

do $$
declare
    name text;
begin
    foreach name in array array['role_permission', 'membership', 'absence', 'person', 'manager', 'calendar'] loop
        execute format(
            'create trigger %I after insert on %I referencing new table as changed for each statement execute function mark_access_change()',
            name || '_added', name);
        execute format(
            'create trigger %I after update on %I referencing new table as changed for each statement execute function mark_access_change()',
            name || '_changed', name);
        execute format(
            'create trigger %I after delete on %I referencing old table as changed for each statement execute function mark_access_change()',
            name || '_removed', name);
    end loop;
end $$;

reset role;
