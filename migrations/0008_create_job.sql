-- Background work of hosts: jobs, reassessments and bulk operations. Workers claim it by lease, and tenants take turns. Besides, the
-- hosts that run, and the figures that they count and measure.
set local role wrkflw_owner;

-- Deferred work. Each row becomes one command on `instance_id`, whose commit deletes the row. A claim is a lease, because a
-- row lock would block that commit.
create table job (
    tenant_id int not null,
    id uuid not null,
    -- `reassess_instance` reassesses an instance of a stopped version, one whose reassessment has failed, or one with a task that
    -- was given back to a delegator. It is a job, because jobs wait until the version is resumed, and are tried again each by itself.
    kind text not null constraint job_kind_check
        check (kind in (
            'deadline', 'start_child', 'cancel_child', 'child_ended', 'match_signals', 'deliver_signal', 'reassess_instance',
            'call_service'
        )),
    instance_id uuid not null,
    due_at timestamptz not null,
    -- Canonical JSON; its content depends on the kind.
    payload text not null,
    lease_until timestamptz,
    attempts int not null default 0,
    last_error text,
    -- The name of the service that a `call_service` calls. Such jobs have workers of their own, and no other job waits for them.
    service text constraint job_service_check check ((service is not null) = (kind = 'call_service')),
    -- The id of the last claim. A suspension deletes a job, and a resumption inserts it again with the same due time and no
    -- attempts, so these do not identify a claim.
    claim uuid,
    primary key (tenant_id, id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- When a row may be claimed: it is due, no worker has claimed it, and the pause after a failure is over. Rows that must wait
-- come after all that may be claimed.
create index job_ready on job (greatest(due_at, lease_until)) where service is null;
-- The jobs of a tenant in the order of claims. Starts of children come last.
create index job_share on job (tenant_id, (case when kind = 'start_child' then 1 else 0 end), greatest(due_at, lease_until))
    where service is null;
-- The jobs of an instance in order: only the first can be claimed.
create index job_by_instance on job (tenant_id, instance_id, due_at, id);
-- The calls of a service, in order and by tenant.
create index job_call on job (service, greatest(due_at, lease_until)) where service is not null;
create index job_call_share on job (service, tenant_id, greatest(due_at, lease_until)) where service is not null;
create index job_stuck on job (id) where attempts >= 10;
-- Failed jobs, for operators.
create index job_failing on job (tenant_id, id) where last_error is not null;

-- Changes of the directory, after which the open tasks that they concern are reassessed. Changes of one principal share a row that
-- no worker has claimed yet.
create table reassessment (
    tenant_id int not null,
    id uuid not null,
    kind text not null constraint reassessment_kind_check check (kind in ('user', 'group')),
    principal text not null,
    -- The time of the last change that the row serves, by the clock of the database.
    created_at timestamptz not null,
    -- The earliest time of the reassessment. For an absence that begins or ends later, it is that time.
    due_at timestamptz not null,
    -- How far the walk has come: the stage - tasks offered to the principal, tasks that it owns, tasks that substitutes claimed by
    -- its absence, unassignable states - and the last task or instance that is done.
    stage text not null default 'offered' constraint reassessment_stage_check
        check (stage in ('offered', 'owned', 'substituted', 'unassignable')),
    after uuid not null default '00000000-0000-0000-0000-000000000000',
    lease_until timestamptz,
    attempts int not null default 0,
    -- Whether the walk in progress is the last one, because it began after all commands had ended that did not know the
    -- change. It is stored because another claim may continue the walk.
    closing boolean not null default false,
    primary key (tenant_id, id)
);
-- When a row may be claimed: it is due, and no worker has claimed it.
create index reassessment_ready on reassessment (greatest(due_at, lease_until));
create index reassessment_share on reassessment (tenant_id, greatest(due_at, lease_until));
-- The rows that another change of the principal may share.
create index reassessment_unclaimed on reassessment (tenant_id, kind, principal) where lease_until is null;

-- Bulk operations: a command on many instances, run in the background.
create table bulk_operation (
    tenant_id int not null,
    id uuid not null,
    action text not null constraint bulk_operation_action_check check (action in ('migrate', 'cancel')),
    -- Canonical JSON of the request.
    settings text not null,
    requested_by text not null,
    -- JSON array of role names.
    roles text not null,
    created_at timestamptz not null,
    total int not null,
    -- More instances matched than one operation takes.
    more boolean not null,
    done int not null default 0,
    refused int not null default 0,
    failed int not null default 0,
    -- Operations take turns: the one whose last turn is longest ago comes next.
    taken_at timestamptz not null default 'epoch',
    stopped_by text,
    -- When it was done or stopped.
    ended_at timestamptz,
    primary key (tenant_id, id)
);
create index bulk_operation_open on bulk_operation (taken_at) where ended_at is null;
-- For lists, the newest first.
create index bulk_operation_by_age on bulk_operation (tenant_id, created_at, id);
create index bulk_operation_running on bulk_operation (tenant_id) where ended_at is null;

-- One command on one instance, by the actor of the operation with the roles of that time. Deleted some time after the
-- operation has ended.
create table bulk_item (
    tenant_id int not null,
    operation_id uuid not null,
    instance_id uuid not null,
    lease_until timestamptz not null default 'epoch',
    attempts int not null default 0,
    -- Null until it has an outcome.
    result text constraint bulk_item_result_check check (result in ('done', 'refused', 'failed')),
    code text,
    detail text,
    -- The instance's revision after the command.
    revision int,
    ended_at timestamptz,
    primary key (tenant_id, operation_id, instance_id)
);
create index bulk_item_open on bulk_item (tenant_id, operation_id, lease_until) where result is null;

-- The hosts that run. A host serves all tenants, so a row belongs to none. A host renews its row every few seconds and deletes it
-- when it stops; the row of a host that failed expires.
create table host (
    -- New with each start of a process.
    id uuid primary key,
    -- The name of the machine, and the port that the host listens on.
    name text not null,
    version text not null,
    roles text[] not null,
    started_at timestamptz not null,
    -- The last renewal, by the clock of the database.
    seen_at timestamptz not null
);

-- Figures of a tenant over time: counts of what was done, and the largest of what was measured. Minutes become hours after a
-- day, and hours are deleted after a week.
create table series_point (
    tenant_id int not null,
    series text not null constraint series_point_series_check check (series in (
        'decisions', 'starts', 'refusals', 'events_waiting', 'events_oldest_seconds', 'deliveries_waiting', 'deliveries_oldest_seconds',
        'jobs_failing'
    )),
    -- The beginning of the time that the value is of.
    at timestamptz not null,
    -- How long that time is.
    minutes smallint not null constraint series_point_minutes_check check (minutes in (1, 60)),
    -- The reason of refusals; empty in other series.
    label text not null,
    value bigint not null,
    primary key (tenant_id, series, at, minutes, label)
) with (fillfactor = 80);
-- For the sweep, which takes the oldest rows of all tenants.
create index series_point_age on series_point (minutes, at);

reset role;
