-- The directory: tenants, people, groups, permissions of roles, managers, absences and calendars. Memberships and managers
-- are ended, never deleted, so that the directory of an earlier time can be read.
set local role wrkflw_owner;

create table tenant (
    id int generated always as identity primary key,
    name text not null,
    created_at timestamptz not null,
    -- An id that changes with every change of the directory, of roles and of stopped versions. If a host evaluates a command
    -- with cached data, its commit names the mark of that data and is refused if the mark has changed. The id is random: a
    -- counter could repeat after a fail-over that loses commits, or after a restore.
    access_mark uuid not null default gen_random_uuid(),
    -- The position up to which entries of the tenant are leaves, if that is behind `checkpoint_cursor.pos`: its last checkpoint was not
    -- the one that was signed. Null for all others.
    checkpoint_pos bigint,
    constraint tenant_name_key unique (name)
);

-- Changes the access mark with every change of data that decides who may act or that flows look up.
create function mark_access_change() returns trigger language plpgsql as $$
begin
    -- Rows are locked in the order of tenants, so that statements of several tenants cannot deadlock.
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
-- For lists, and for searches by the beginning of an id or a name.
create index person_by_id on person (tenant_id, id collate "C");
create index person_by_name on person (tenant_id, (lower(name) collate "C"), id collate "C") where name is not null;

create table "group" (
    tenant_id int not null,
    id text not null,
    name text not null,
    created_at timestamptz not null,
    primary key (tenant_id, id)
);
create index group_by_id on "group" (tenant_id, id collate "C");
create index group_by_name on "group" (tenant_id, (lower(name) collate "C"), id collate "C") where name is not null;

create table membership (
    tenant_id int not null,
    person_id text not null,
    group_id text not null,
    valid_from timestamptz not null,
    valid_to timestamptz,
    primary key (tenant_id, person_id, group_id, valid_from)
);
-- Not for look-ups by person: the additional condition keeps the planner from using it instead of the primary key.
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
-- For lists of the instances that a manager sees.
create index manager_reports on manager (tenant_id, manager_id, person_id) where valid_to is null;

-- While an absence holds, both the person and the substitute may act.
create table absence (
    tenant_id int not null,
    id uuid not null,
    person_id text not null,
    substitute_id text not null,
    -- Holds only for work of this definition; null for all.
    definition_key text,
    active_from timestamptz not null,
    active_until timestamptz not null,
    created_at timestamptz not null,
    created_by text not null,
    -- When it was ended early.
    ended_at timestamptz,
    primary key (tenant_id, id),
    constraint absence_period_check check (active_from < active_until)
);
create index absence_by_substitute on absence (tenant_id, substitute_id, active_until);
create index absence_by_person on absence (tenant_id, person_id, active_until);

-- Working time, by name. The evidence of a command has the calendar by which a deadline was computed.
create table calendar (
    tenant_id int not null,
    name text not null,
    -- Canonical JSON: time zone, hours of each weekday, holidays.
    settings text not null,
    updated_at timestamptz not null,
    primary key (tenant_id, name)
);

-- Sign-ins of browsers. A session is found by the digest of the secret in its cookie; the secret itself is not stored.
create table session (
    tenant_id int not null,
    id uuid not null,
    secret_digest bytea not null,
    person text not null,
    -- Those that the identity provider named at the sign-in.
    roles text[] not null,
    -- What the browser calls itself.
    client text not null,
    created_at timestamptz not null,
    used_at timestamptz not null,
    expires_at timestamptz not null,
    -- How the identity provider calls the session there. A sign-out there ends this one, too.
    provider_session text,
    -- Named to the provider when one signs out here. Removed with the session.
    id_token text,
    primary key (tenant_id, id),
    constraint session_secret_digest_key unique (tenant_id, secret_digest)
);
-- The person first: a sign-out at the identity provider names a person and no tenant.
create index session_by_person on session (person, tenant_id, id);
create index session_by_expiry on session (expires_at);
-- The provider names no tenant.
create index session_by_provider_session on session (provider_session) where provider_session is not null;

-- How a person wants pages to be. Whoever chose nothing has no row.
create table preference (
    tenant_id int not null,
    person text not null,
    language text,
    time_zone text,
    theme text constraint preference_theme_check check (theme in ('light', 'dark')),
    primary key (tenant_id, person)
);

-- What a person looks at often in the list of tasks: a name and the query of the list.
create table saved_view (
    tenant_id int not null,
    person text not null,
    id uuid not null,
    name text not null,
    query text not null,
    is_default boolean not null,
    primary key (tenant_id, person, id)
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
