-- Instances with the stays in their states, tasks, decisions and attributes. No foreign keys, no triggers with
-- work, and no index on what a transition updates: each was measured to cost a fifth of the throughput.
set local role wrkflw_owner;

create table instance (
    tenant_id int not null,
    id uuid not null,
    definition_key text not null,
    definition_version int not null,
    revision int not null,
    status text not null constraint instance_status_check
        check (status in ('RUNNING', 'SUSPENDED', 'COMPLETED', 'CANCELLED')),
    outcome text,
    end_reason text,
    ended_by text,
    ended_at timestamptz,
    entity_type text not null,
    entity_id text not null,
    initiator text not null,
    requesters text[] not null,
    predecessor uuid,
    parent uuid,
    -- Canonical JSON text: jsonb would rewrite it, and flow logic must see the same bytes at replay.
    data text not null,
    started_at timestamptz not null,
    updated_at timestamptz not null,
    -- Of the instance's audit stream: its last sequence number, its last hash, its last public number.
    audit_seq bigint not null,
    audit_head bytea not null,
    event_seq bigint not null,
    -- How many state instances it has had.
    stays int not null,
    -- The idempotency key of the start: part of the row, so that one insert settles both races.
    start_principal text,
    start_key text,
    primary key (tenant_id, id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create unique index instance_running_key on instance (tenant_id, definition_key, entity_type, entity_id)
    where status in ('RUNNING', 'SUSPENDED');
create unique index instance_start_key on instance (tenant_id, start_principal, start_key) where start_key is not null;
create index instance_by_definition on instance (tenant_id, definition_key, id);
create index instance_by_entity on instance (tenant_id, entity_type, entity_id, id);
create index instance_by_initiator on instance (tenant_id, initiator, id);

create table state_instance (
    tenant_id int not null,
    instance_id uuid not null,
    id uuid not null,
    -- The how-manieth stay of its instance, from 0.
    ordinal int not null,
    name text not null,
    entered_at timestamptz not null,
    due_at timestamptz,
    -- The stays it was entered from, in order.
    predecessors uuid[] not null,
    entered_by text,
    caller text,
    needed int not null,
    exclude text[] not null,
    fallback text,
    priority smallint not null,
    left_at timestamptz,
    left_by text,
    left_actor text,
    primary key (tenant_id, instance_id, id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index state_instance_active on state_instance (tenant_id, name, instance_id) where left_at is null;

create table task (
    tenant_id int not null,
    id uuid not null,
    instance_id uuid not null,
    state_id uuid not null,
    -- Its place among the tasks of its stay, from 0.
    ordinal int not null,
    label text not null,
    status text not null constraint task_status_check check (status in ('PENDING', 'CLAIMED', 'COMPLETED', 'CANCELLED')),
    owner text,
    -- Canonical JSON of all candidates, as offered.
    candidates text not null,
    form text,
    created_at timestamptz not null,
    claimed_at timestamptz,
    ended_at timestamptz,
    primary key (tenant_id, id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index task_by_instance on task (tenant_id, instance_id);
create index task_by_owner on task (tenant_id, owner, id) where status = 'CLAIMED';

-- Who may claim which open task: an index for inboxes. Rows go when the task ends; the audit keeps them.
create table task_candidate (
    tenant_id int not null,
    kind text not null constraint task_candidate_kind_check check (kind in ('user', 'group')),
    principal text not null,
    task_id uuid not null,
    primary key (tenant_id, kind, principal, task_id)
);
create index task_candidate_by_task on task_candidate (tenant_id, task_id);

create table decision (
    tenant_id int not null,
    task_id uuid not null,
    instance_id uuid not null,
    outcome text not null,
    actor text not null,
    on_behalf_of text,
    comment text,
    input text not null,
    decided_at timestamptz not null,
    key_id text not null,
    mac_version smallint not null,
    mac bytea not null,
    primary key (tenant_id, task_id)
);

-- One value column is filled per row. Attributes outlive their instance.
create table attribute (
    tenant_id int not null,
    instance_id uuid not null,
    name text not null,
    type text not null,
    text_value text,
    boolean_value boolean,
    decimal_value numeric,
    float_value double precision,
    timestamp_value timestamptz,
    bytes_value bytea,
    primary key (tenant_id, instance_id, name)
);

-- Replies to requests that carried an idempotency key, kept for a day.
create table idempotency_key (
    tenant_id int not null,
    principal text not null,
    key text not null,
    fingerprint bytea not null,
    status smallint not null,
    body text not null,
    -- Opaque to the store: the headers that a replay repeats.
    headers text not null,
    -- Tells two requests with the same key apart that travel in one batch.
    command_id uuid not null,
    created_at timestamptz not null,
    primary key (tenant_id, principal, key)
);
create index idempotency_key_age on idempotency_key using brin (created_at);

reset role;
