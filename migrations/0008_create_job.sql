-- What hosts do of themselves: jobs, the tasks of those about whom something changed, and commands on many instances. Work
-- is claimed by lease, and shared out by tenant.
set local role wrkflw_owner;

-- What a host has to do later or elsewhere: each row becomes one command on `instance_id`, whose commit deletes the
-- row. Claimed by lease, because a row lock held over a command would block the commit that deletes the row.
create table job (
    tenant_id int not null,
    id uuid not null,
    -- `reassess_instance` lets an instance of a stopped version wait to be looked at again: as a job, since jobs rest until
    -- the version is resumed.
    kind text not null constraint job_kind_check
        check (kind in ('deadline', 'start_child', 'cancel_child', 'child_ended', 'match_signals', 'reassess_instance')),
    instance_id uuid not null,
    due_at timestamptz not null,
    -- Canonical JSON; what it says depends on the kind.
    payload text not null,
    lease_until timestamptz,
    attempts int not null default 0,
    last_error text,
    -- Who has the job in hand: drawn anew with each claim. A suspension takes a job away, and what goes on puts it again with
    -- its due time and no attempts, so neither tells one claim from another.
    claim uuid,
    primary key (tenant_id, id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- From when on a row may be claimed: when it is due, nobody has it in hand, and the pause after a failure is over. What
-- cannot be claimed now is behind all that can, however much there is of it.
create index job_ready on job (greatest(due_at, lease_until));
-- The jobs of a tenant in the order in which they are claimed: starts of children last, however long they have waited.
create index job_share on job (tenant_id, (case when kind = 'start_child' then 1 else 0 end), greatest(due_at, lease_until));
-- The jobs of an instance in their order: only the first is handed out, and a suspension takes away all.
create index job_by_instance on job (tenant_id, instance_id, due_at, id);
create index job_stuck on job (id) where attempts >= 10;
-- What an operator looks at first.
create index job_failing on job (tenant_id, id) where last_error is not null;

-- What changed about somebody, so that the open tasks concerned are looked at again. One row a change.
create table reassessment (
    tenant_id int not null,
    id uuid not null,
    kind text not null constraint reassessment_kind_check check (kind in ('user', 'group')),
    principal text not null,
    created_at timestamptz not null,
    -- Not before this moment: an absence that begins or ends later is looked at then.
    due_at timestamptz not null,
    -- Where work goes on: among the tasks offered to the principal, those it owns, the states that nobody is able to
    -- work on; behind this task or instance.
    stage text not null default 'offered' constraint reassessment_stage_check
        check (stage in ('offered', 'owned', 'unassignable')),
    after uuid not null default '00000000-0000-0000-0000-000000000000',
    lease_until timestamptz,
    attempts int not null default 0,
    -- The walk under way began when all commands had ended that did not know of the change: it is the last one. Kept, because
    -- a walk may be gone on with by another claim.
    closing boolean not null default false,
    primary key (tenant_id, id)
);
-- From when on a row may be claimed: when it is due, and nobody has it in hand.
create index reassessment_ready on reassessment (greatest(due_at, lease_until));
create index reassessment_share on reassessment (tenant_id, greatest(due_at, lease_until));

-- A command on many instances at once, worked on in the background.
create table bulk_operation (
    tenant_id int not null,
    id uuid not null,
    action text not null constraint bulk_operation_action_check check (action in ('migrate', 'cancel')),
    -- Canonical JSON: what was asked for.
    settings text not null,
    requested_by text not null,
    -- JSON array of role names.
    roles text not null,
    created_at timestamptz not null,
    total int not null,
    -- There were more instances than one operation takes.
    more boolean not null,
    done int not null default 0,
    refused int not null default 0,
    failed int not null default 0,
    -- Operations take turns: the one whose last turn is longest ago comes next.
    taken_at timestamptz not null default 'epoch',
    stopped_by text,
    -- When nothing was left to do, or somebody stopped it.
    ended_at timestamptz,
    primary key (tenant_id, id)
);
create index bulk_operation_open on bulk_operation (taken_at) where ended_at is null;
create index bulk_operation_running on bulk_operation (tenant_id) where ended_at is null;

-- One ordinary command by whoever asked for the whole, with the roles of that moment. Kept for a time after the
-- operation has ended.
create table bulk_item (
    tenant_id int not null,
    operation_id uuid not null,
    instance_id uuid not null,
    lease_until timestamptz not null default 'epoch',
    attempts int not null default 0,
    -- None until it is tried to its end.
    result text constraint bulk_item_result_check check (result in ('done', 'refused', 'failed')),
    code text,
    detail text,
    -- The instance's revision afterwards.
    revision int,
    ended_at timestamptz,
    primary key (tenant_id, operation_id, instance_id)
);
create index bulk_item_open on bulk_item (tenant_id, operation_id, lease_until) where result is null;

reset role;
