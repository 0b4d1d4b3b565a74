-- Commands on many instances at once, worked on in the background. An item is one ordinary command by whoever asked for
-- the whole, with the roles of that moment.
set local role wrkflw_owner;

create table bulk_operation (
    tenant_id int not null,
    id uuid not null,
    action text not null constraint bulk_operation_action_check check (action in ('migrate')),
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

-- Under which version an event happened: seldom has an instance had another one than it has now.
create index audit_entry_migrated on audit_entry (tenant_id, stream_id, seq)
    where stream_kind = 'instance' and type = 'FLOW_MIGRATED';

grant select, insert, update on bulk_operation, bulk_item to wrkflw_writer;
grant select on bulk_operation, bulk_item to wrkflw_reader;

do $$
declare
    name text;
begin
    foreach name in array array['bulk_operation', 'bulk_item'] loop
        execute format('alter table %I enable row level security', name);
        execute format('create policy writer on %I to wrkflw_writer using (true) with check (true)', name);
        execute format(
            'create policy reader on %I for select to wrkflw_reader using (tenant_id = nullif(current_setting(''wrkflw.tenant'', true), '''')::int)',
            name);
    end loop;
end $$;

reset role;
