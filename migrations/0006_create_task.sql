-- Tasks, their candidates, decisions, and the seals of delegations.
set local role wrkflw_owner;

create table task (
    tenant_id int not null,
    id uuid not null,
    instance_id uuid not null,
    state_id uuid not null,
    -- Its number among the tasks of its state instance, from 0.
    ordinal int not null,
    label text not null,
    status text not null constraint task_status_check check (status in ('PENDING', 'CLAIMED', 'COMPLETED', 'CANCELLED')),
    owner text,
    -- Canonical JSON of all candidates, as offered.
    candidates text not null,
    created_at timestamptz not null,
    claimed_at timestamptz,
    ended_at timestamptz,
    -- Canonical JSON of the ownership: assignment, substitution, delegations; null for none.
    ownership text,
    due_at timestamptz,
    -- Canonical JSON of its open deadlines; null for none. Each has a job.
    deadlines text,
    -- Canonical JSON of its suspension; null for none.
    suspended text,
    -- Why the host cancelled it, if the host did so itself.
    cancel_reason text,
    -- Whether not everybody of the tenant sees its instance.
    restricted boolean not null default false,
    primary key (tenant_id, id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- With the state instance: an inbox reads who has decided in it, and must not read the tasks of all other visits of the instance.
create index task_by_instance on task (tenant_id, instance_id, state_id);
create index task_by_owner on task (tenant_id, owner, id) where status = 'CLAIMED';
-- What substitutes have claimed, by the absent person. If a substitute owns a task by a claim, its ownership has no other member.
create index task_substituted on task (tenant_id, (ownership::jsonb ->> 'onBehalfOf'), id)
    where status = 'CLAIMED' and ownership like '{"onBehalfOf":%';
-- For lists of open tasks, in the order of creation. Without it, a page of few open tasks would read past all ended ones.
-- A list of what everybody of the tenant sees reads past none that is restricted.
create index task_open on task (tenant_id, restricted, id) where status in ('PENDING', 'CLAIMED');
-- Open tasks by their own deadlines. A task without one has no entry.
create index task_due on task (tenant_id, due_at, id) where status in ('PENDING', 'CLAIMED') and due_at is not null;
-- What somebody has ended.
create index task_ended on task (tenant_id, owner, ended_at, id) where owner is not null and ended_at is not null;

-- The candidates of open tasks, for inboxes. Rows are deleted when the task ends; the audit keeps them.
create table task_candidate (
    tenant_id int not null,
    kind text not null constraint task_candidate_kind_check check (kind in ('user', 'group')),
    principal text not null,
    task_id uuid not null,
    primary key (tenant_id, kind, principal, task_id)
);
create index task_candidate_by_task on task_candidate (tenant_id, task_id);

-- The comment that somebody has begun to write for the decision of a task. It is shown while the task is open, and swept afterwards.
create table draft (
    tenant_id int not null,
    person text not null,
    task_id uuid not null,
    comment text not null,
    updated_at timestamptz not null,
    primary key (tenant_id, person, task_id)
);

-- When somebody was last given a task of a state by round robin or as the least loaded. It grows with people and states, not with
-- tasks.
create table allocation (
    tenant_id int not null,
    definition_key text not null,
    state text not null,
    person_id text not null,
    given_at timestamptz not null,
    primary key (tenant_id, definition_key, state, person_id)
) with (fillfactor = 50);

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
-- For compliance reports, as for refused attempts.
create index decision_period on decision using brin (decided_at) with (pages_per_range = 32, autosummarize = on);
create trigger decision_append_only before update or delete or truncate on decision
    for each statement execute function refuse_change();
-- These texts are long enough to be compressed. lz4 is faster, if the server has it.
do $$
begin
    alter table decision alter column input set compression lz4;
exception when feature_not_supported or invalid_parameter_value then
    raise notice 'decision is compressed with pglz: this server was built without lz4';
end $$;

-- The seals of delegations and of their returns. The content is that of the entry.
create table delegation_seal (
    tenant_id int not null,
    instance_id uuid not null,
    -- The number of the entry in the stream of the instance.
    seq bigint not null,
    key_id text not null,
    mac_version smallint not null,
    mac bytea not null,
    primary key (tenant_id, instance_id, seq)
);
create trigger delegation_seal_append_only before update or delete or truncate on delegation_seal
    for each statement execute function refuse_change();

reset role;
