-- Definitions and their immutable versions. A component is stored once for all tenants, under its digest.
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
    primary key (tenant_id, key, version),
    constraint definition_version_content_key unique (tenant_id, key, digest, config_digest)
);

-- What evaluations ran on: recorded once, referred to by digest from the evidence of commands.
create table engine_profile (
    digest bytea primary key,
    profile text not null,
    recorded_at timestamptz not null
);

reset role;
