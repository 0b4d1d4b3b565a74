-- Who manages whom, who stands in for whom, and when people work.
set local role wrkflw_owner;

create table manager (
    tenant_id int not null,
    person_id text not null,
    manager_id text not null,
    valid_from timestamptz not null,
    valid_to timestamptz,
    primary key (tenant_id, person_id, valid_from)
);
create unique index manager_current on manager (tenant_id, person_id) where valid_to is null;

-- While an absence holds, both the person and the substitute may act.
create table absence (
    tenant_id int not null,
    id uuid not null,
    person_id text not null,
    substitute_id text not null,
    -- Holds for work of this definition alone; null for all.
    definition_key text,
    active_from timestamptz not null,
    active_until timestamptz not null,
    created_at timestamptz not null,
    created_by text not null,
    -- When it was called off before its end.
    ended_at timestamptz,
    primary key (tenant_id, id),
    constraint absence_period_check check (active_from < active_until)
);
create index absence_by_substitute on absence (tenant_id, substitute_id, active_until);
create index absence_by_person on absence (tenant_id, person_id, active_until);

-- Working time, by name. What a deadline was computed from stands in the evidence of its command.
create table calendar (
    tenant_id int not null,
    name text not null,
    -- Canonical JSON: time zone, hours of each weekday, holidays.
    settings text not null,
    updated_at timestamptz not null,
    primary key (tenant_id, name)
);

-- What changed about somebody, so that the open tasks concerned are looked at again. One row a change.
create table recheck (
    tenant_id int not null,
    id uuid not null,
    kind text not null constraint recheck_kind_check check (kind in ('user', 'group')),
    principal text not null,
    created_at timestamptz not null,
    -- Not before this moment: an absence that begins or ends later is looked at then.
    due_at timestamptz not null,
    -- Where work goes on: among the tasks offered to the principal, those it owns, the states that nobody is able to
    -- work on; behind this task or instance.
    stage text not null default 'offered' constraint recheck_stage_check
        check (stage in ('offered', 'owned', 'unassignable')),
    after uuid not null default '00000000-0000-0000-0000-000000000000',
    lease_until timestamptz,
    attempts int not null default 0,
    primary key (tenant_id, id)
);
-- From when on a row may be claimed: when it is due, and nobody has it in hand.
create index recheck_ready on recheck (greatest(due_at, lease_until));

grant select, insert, update on manager, absence, calendar, recheck to wrkflw_writer;
grant delete on calendar, recheck to wrkflw_writer;
grant select on manager, absence, calendar, recheck to wrkflw_reader;

do $$
declare
    name text;
begin
    foreach name in array array['manager', 'absence', 'calendar', 'recheck'] loop
        execute format('alter table %I enable row level security', name);
        execute format('create policy writer on %I to wrkflw_writer using (true) with check (true)', name);
        execute format(
            'create policy reader on %I for select to wrkflw_reader using (tenant_id = nullif(current_setting(''wrkflw.tenant'', true), '''')::int)',
            name);
    end loop;
end $$;

reset role;
