-- Tenants, their people and groups, and what their roles permit. Memberships are ended, never
-- deleted, so that past standing can be answered.
set local role wrkflw_owner;

create table tenant (
    id int generated always as identity primary key,
    name text not null,
    created_at timestamptz not null,
    constraint tenant_name_key unique (name)
);

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
create unique index membership_current on membership (tenant_id, group_id, person_id) where valid_to is null;

reset role;
