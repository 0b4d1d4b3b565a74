-- Branches and joins, deadlines, signals, children and suspension; and the jobs that hosts do of themselves.
set local role wrkflw_owner;

alter table instance
    add column suspended_at timestamptz,
    add column suspended_by text,
    add column suspend_reason text,
    -- Canonical JSON of the signals that came before a state waited for them; null for none.
    add column early_signals text;
-- The children of an instance, and what an ended one was restarted as.
create index instance_by_parent on instance (tenant_id, parent, id) where parent is not null;
create index instance_by_predecessor on instance (tenant_id, predecessor) where predecessor is not null;

alter table state_instance
    -- The forks around it, from the outermost.
    add column forks uuid[] not null default '{}',
    -- Bit n: its branch was one chosen among several since the n-th fork around it was opened.
    add column choices int not null default 0,
    -- A join that some branches have not reached yet.
    add column waiting boolean not null default false,
    -- Canonical JSON of its open deadlines; null for none. Each has a job beside it.
    add column deadlines text,
    add column correlation text,
    add column keep_early boolean not null default false,
    -- Canonical JSON of the instances that it started; null for none.
    add column children text,
    -- Since when nobody is able to do its work.
    add column unassignable_since timestamptz;
create index state_instance_correlation on state_instance (tenant_id, correlation, instance_id)
    where correlation is not null and left_at is null;
create index state_instance_unassignable on state_instance (tenant_id, instance_id)
    where unassignable_since is not null and left_at is null;

alter table task
    -- Canonical JSON of how the owner came by it: assigned, as whose substitute, by which delegations; null for none.
    add column holding text,
    add column due_at timestamptz,
    -- Canonical JSON of its open deadlines; null for none. Each has a job beside it.
    add column deadlines text,
    -- Why it was cancelled, where the host did so of itself.
    add column cancel_reason text;

-- What a host has to do later or elsewhere: each row becomes one command on `instance_id`, whose commit deletes the
-- row. Claimed by lease, because a row lock held over a command would block the commit that deletes the row.
create table job (
    tenant_id int not null,
    id uuid not null,
    kind text not null constraint job_kind_check
        check (kind in ('deadline', 'start_child', 'cancel_child', 'child_ended', 'match_signals')),
    instance_id uuid not null,
    due_at timestamptz not null,
    -- Canonical JSON; what it says depends on the kind.
    payload text not null,
    lease_until timestamptz,
    attempts int not null default 0,
    last_error text,
    primary key (tenant_id, id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- From when on a row may be claimed: when it is due, nobody has it in hand, and the pause after a failure is over. What
-- cannot be claimed now is behind all that can, however much there is of it.
create index job_ready on job (greatest(due_at, lease_until));
-- The jobs of an instance in their order: only the first is handed out, and a suspension takes away all.
create index job_by_instance on job (tenant_id, instance_id, due_at, id);
create index job_stuck on job (id) where attempts >= 10;

-- Signals that count: each id once for an instance.
create table signal (
    tenant_id int not null,
    instance_id uuid not null,
    signal_id text not null,
    received_at timestamptz not null,
    primary key (tenant_id, instance_id, signal_id)
);

-- Signals sent by correlation, from their arrival until an instance has taken them.
create table signal_inbox (
    tenant_id int not null,
    correlation text not null,
    signal_id text not null,
    trigger text not null,
    -- For instances of this definition alone; null for any.
    definition_key text,
    -- Canonical JSON.
    input text not null,
    -- Canonical JSON of the sender: id and roles.
    sender text not null,
    received_at timestamptz not null,
    instance_id uuid,
    delivered_at timestamptz,
    primary key (tenant_id, correlation, signal_id)
);
create index signal_inbox_undelivered on signal_inbox (tenant_id, correlation, received_at, signal_id)
    where delivered_at is null;
create index signal_inbox_by_age on signal_inbox (received_at);

grant select, insert, update, delete on job to wrkflw_writer;
grant select, insert on signal to wrkflw_writer;
grant select, insert, update, delete on signal_inbox to wrkflw_writer;
grant select on job, signal, signal_inbox to wrkflw_reader;

do $$
declare
    name text;
begin
    foreach name in array array['job', 'signal', 'signal_inbox'] loop
        execute format('alter table %I enable row level security', name);
        execute format('create policy writer on %I to wrkflw_writer using (true) with check (true)', name);
        execute format(
            'create policy reader on %I for select to wrkflw_reader using (tenant_id = nullif(current_setting(''wrkflw.tenant'', true), '''')::int)',
            name);
    end loop;
end $$;

reset role;
