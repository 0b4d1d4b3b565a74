-- Definitions, their versions, and what evaluations of them ran on. What a version consists of never changes; a component is
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
    -- Names the audit stream of the definition.
    id uuid not null,
    active_version int,
    -- Counts activations and retirements, so that hosts see that something changed.
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
    -- An operator stops a version that does harm: nothing of it runs until it is resumed, but its instances may be cancelled.
    stopped_at timestamptz,
    stopped_by text,
    stop_reason text,
    primary key (tenant_id, key, version),
    constraint definition_version_content_key unique (tenant_id, key, digest, config_digest)
);
-- Read with every command; mostly empty.
create index definition_version_stopped on definition_version (tenant_id, key, version) where stopped_at is not null;
-- Hosts cache which version is active and which are stopped, together with what a person may do.
create trigger definition_changed after update on definition referencing new table as changed
    for each statement execute function mark_access_change();
create trigger definition_version_changed after update on definition_version referencing new table as changed
    for each statement execute function mark_access_change();

-- What evaluations ran on: recorded once, referred to by digest from the evidence of commands.
create table engine_profile (
    digest bytea primary key,
    profile text not null,
    recorded_at timestamptz not null
);

reset role;
