-- Instances with their state instances, and the limits of the instances below one root. There are no foreign keys, no
-- triggers that do work, and no index on a column of `instance` that each transition updates: each was measured to cost a
-- fifth of the throughput.
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
    -- The head of the instance's audit stream: its last sequence number, hash, and number of a public event.
    audit_seq bigint not null,
    audit_head bytea not null,
    event_seq bigint not null,
    -- The number of state instances so far.
    state_instances int not null,
    suspended_at timestamptz,
    suspended_by text,
    suspend_reason text,
    -- Canonical JSON of the buffered signals; null for none.
    buffered_signals text,
    -- What people are shown of it, by the templates of its definition.
    title text,
    summary text,
    -- Whether no other instance may run about its entity.
    sole boolean not null default false,
    -- The groups that see it besides its participants; null: everybody of the tenant sees it.
    observers text[],
    primary key (tenant_id, id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create unique index instance_running_key on instance (tenant_id, definition_key, entity_type, entity_id)
    where status in ('RUNNING', 'SUSPENDED');
create unique index instance_sole_key on instance (tenant_id, entity_type, entity_id)
    where sole and status in ('RUNNING', 'SUSPENDED');
-- Whether an instance may start about an entity, as the sole one or beside others that are not sole. No index can check it, because
-- instances that are not sole do not exclude each other. The lock lasts until the transaction ends, so it waits for concurrent starts
-- that it may exclude. Each query of a volatile function sees what was committed before it, also after the beginning of the statement
-- that calls the function. So it sees those that it has waited for.
create function entity_is_free(in_tenant int, kind text, entity text, as_sole boolean, besides uuid) returns boolean
    language plpgsql volatile as $$
declare
    place bigint := hashtextextended(entity, hashtextextended(kind, in_tenant));
begin
    if as_sole then
        perform pg_advisory_xact_lock(place);
        return not exists (
            select from instance i
            where i.tenant_id = in_tenant and i.entity_type = kind and i.entity_id = entity and i.id <> besides
              and i.status in ('RUNNING', 'SUSPENDED')
        );
    end if;
    perform pg_advisory_xact_lock_shared(place);
    return not exists (
        select from instance i
        where i.tenant_id = in_tenant and i.entity_type = kind and i.entity_id = entity and i.id <> besides
          and i.sole and i.status in ('RUNNING', 'SUSPENDED')
    );
end $$;
revoke execute on function entity_is_free from public;
grant execute on function entity_is_free to wrkflw_writer;
-- An index entry is written when an instance starts or ends, and when its title or summary changes. The entity comes first: `words_of`
-- reads the first words only, and a summary may be long.
create index instance_by_word on instance using gin (
    words_of(tenant_id, entity_id || ' ' || coalesce(title, '') || ' ' || coalesce(summary, ''))
) with (gin_pending_list_limit = 512);
-- The planner must not use these indexes for a look-up by key. Without statistics, an index that begins with the tenant looks
-- as good as the primary key, and would be read completely. Each index has a condition that only queries on its column imply.
create index instance_by_definition on instance (tenant_id, definition_key, id) where definition_key is not null;
-- What everybody of the tenant sees: a list reads past no restricted instance.
create index instance_unrestricted on instance (tenant_id, definition_key, id) where definition_key is not null and observers is null;
create index instance_by_entity on instance (tenant_id, entity_type, entity_id, id)
    where entity_type is not null and entity_id is not null;
-- The status changes only when an instance ends, is suspended or resumed.
create index instance_by_status on instance (tenant_id, status, id) where status is not null;
create index instance_by_initiator on instance (tenant_id, initiator, id) where initiator is not null;
-- The children of an instance, and its restart.
create index instance_by_parent on instance (tenant_id, parent, id) where parent is not null;
create index instance_by_predecessor on instance (tenant_id, predecessor) where predecessor is not null;
-- These texts are long enough to be compressed. lz4 is faster, if the server has it.
do $$
begin
    alter table instance alter column data set compression lz4;
exception when feature_not_supported or invalid_parameter_value then
    raise notice 'instance is compressed with pglz: this server was built without lz4';
end $$;

-- Who takes part in an instance that not everybody of the tenant sees. A row is added with the change that makes somebody a
-- participant, and stays as long as the instance. A group that the version names has one, too, for lists; `instance.observers` says
-- whether it still sees the instance.
create table participant (
    tenant_id int not null,
    instance_id uuid not null,
    kind text not null constraint participant_kind_check check (kind in ('user', 'group', 'observer')),
    principal text not null,
    primary key (tenant_id, instance_id, kind, principal)
);
-- For lists of what somebody sees, newest first.
create index participant_by_principal on participant (tenant_id, kind, principal, instance_id);

create table state_instance (
    tenant_id int not null,
    instance_id uuid not null,
    id uuid not null,
    -- The number of the state instance within its instance, from 0.
    ordinal int not null,
    name text not null,
    entered_at timestamptz not null,
    due_at timestamptz,
    -- The state instances from which it was entered, in order.
    predecessors uuid[] not null,
    entered_trigger text,
    caller text,
    needed int not null,
    exclude text[] not null,
    fallback text,
    priority smallint not null,
    left_at timestamptz,
    left_trigger text,
    left_actor text,
    -- The forks around it, from the outermost.
    forks uuid[] not null default '{}',
    -- Bit n: inside its n-th fork (0: outside any), a plan chose one of several targets for its branch.
    choices int not null default 0,
    -- Whether it is a join that some branches have not reached yet.
    waiting boolean not null default false,
    -- Canonical JSON of its open deadlines; null for none. Each has a job.
    deadlines text,
    -- Canonical JSON of its signal subscriptions; null for none. Those with a correlation key are in `signal_subscription`.
    subscriptions text,
    -- Canonical JSON of the instances that it started; null for none.
    children text,
    -- Since when it is unassignable.
    unassignable_since timestamptz,
    -- The key of its item, and canonical JSON of the item's data.
    key text,
    data text,
    -- The name of its priority, if the definition has one.
    priority_name text,
    -- Canonical JSON of the part of its tasks that it needs; null if it needs a number of them.
    share text,
    -- Whether its decisions are hidden from other people until it ends.
    blind boolean not null default false,
    -- The service call of a service state: canonical JSON.
    call text,
    primary key (tenant_id, instance_id, id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index state_instance_active on state_instance (tenant_id, name, instance_id) where left_at is null;
-- Active states by their own deadlines, and by how long they last. A state without a deadline has no entry in the first.
create index state_instance_due on state_instance (tenant_id, due_at, instance_id) where left_at is null and due_at is not null;
create index state_instance_since on state_instance (tenant_id, entered_at, instance_id) where left_at is null;
create index state_instance_unassignable on state_instance (tenant_id, instance_id)
    where unassignable_since is not null and left_at is null;

-- The number of instances that were ever started below a root. It never decreases, so that a flow that starts and ends
-- children endlessly is stopped.
create table descendant_count (
    tenant_id int not null,
    root_id uuid not null,
    started int not null,
    primary key (tenant_id, root_id)
) with (fillfactor = 80);

-- The places of the instances below a root that run or will start. They are limited separately: an instance frees its place
-- when it ends, so a flow may start children for years if few of them run at a time.
create table descendant_place (
    tenant_id int not null,
    instance_id uuid not null,
    root_id uuid not null,
    primary key (tenant_id, instance_id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index descendant_place_root on descendant_place (tenant_id, root_id);

reset role;
