-- Definitions, their versions, and the engine profiles of evaluations. The content of a version never changes. A component is
-- stored once for all tenants, under its digest.
set local role wrkflw_owner;

create table component (
    digest bytea primary key,
    bytes bytea not null,
    created_at timestamptz not null
);
alter table component alter column bytes set storage external;

create table definition (
    tenant_id int not null,
    key text not null,
    -- The id of the definition's audit stream.
    id uuid not null,
    active_version int,
    -- Counts the changes of versions' states, so that hosts notice them.
    revision int not null,
    created_at timestamptz not null,
    primary key (tenant_id, key)
);

create table definition_version (
    tenant_id int not null,
    key text not null,
    version int not null,
    digest bytea not null,
    config text not null,
    config_digest bytea not null,
    graph text not null,
    sdk text,
    wit text not null,
    published_at timestamptz not null,
    published_by text not null,
    retired_at timestamptz,
    retired_by text,
    -- An operator stops a harmful version: its instances execute no commands until it is resumed, except cancellations.
    stopped_at timestamptz,
    stopped_by text,
    stop_reason text,
    -- Whether not everybody of the tenant sees its instances.
    restricted boolean not null default false,
    -- Why it was published, if its author said so.
    note text,
    primary key (tenant_id, key, version),
    constraint definition_version_content_key unique (tenant_id, key, digest, config_digest)
);
create index definition_version_restricted on definition_version (tenant_id) where restricted;
-- Read with every command; mostly empty.
create index definition_version_stopped on definition_version (tenant_id, key, version) where stopped_at is not null;
-- Hosts cache the active and the stopped versions together with the permissions of people.
create trigger definition_changed after update on definition referencing new table as changed
    for each statement execute function mark_access_change();
create trigger definition_version_changed after update on definition_version referencing new table as changed
    for each statement execute function mark_access_change();

-- Engine profiles of evaluations. The evidence of commands refers to them by digest.
create table engine_profile (
    digest bytea primary key,
    profile text not null,
    recorded_at timestamptz not null
);

reset role;
