-- Shares what hosts do of themselves: jobs are claimed in turns by tenant, starts behind all else, and what the instances
-- below one root may start is counted.
set local role wrkflw_owner;

-- The jobs of a tenant in the order in which they are claimed: starts of children last, however long they have waited.
create index job_turn on job (tenant_id, (case when kind = 'start_child' then 1 else 0 end), greatest(due_at, lease_until));
-- What an operator looks at first.
create index job_failing on job (tenant_id, id) where last_error is not null;

-- The child that it starts has its place among the descendants of the root: tried again, it takes no second one.
alter table job add column counted boolean not null default false;

-- How many places below a root are taken. Never given back, so that a flow that starts and ends children in a circle
-- comes to an end as well.
create table descendant_count (
    tenant_id int not null,
    root_id uuid not null,
    started int not null,
    primary key (tenant_id, root_id)
) with (fillfactor = 80);

grant select, insert, update on descendant_count to wrkflw_writer;
grant select on descendant_count to wrkflw_reader;
alter table descendant_count enable row level security;
create policy writer on descendant_count to wrkflw_writer using (true) with check (true);
create policy reader on descendant_count for select to wrkflw_reader
    using (tenant_id = nullif(current_setting('wrkflw.tenant', true), '')::int);

reset role;
