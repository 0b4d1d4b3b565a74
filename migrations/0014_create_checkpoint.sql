-- Signed checkpoints: of each tenant's audit a Merkle tree, grown behind the writers' back by one host at a time. Nothing
-- here is written by a command.
set local role wrkflw_owner;

-- What the tree is made of, in its order: which entry is its n-th leaf, and the digest that it had when it was taken in.
create table audit_leaf (
    tenant_id int not null,
    -- From 0, without gaps.
    leaf bigint not null,
    -- That of the entry's stream, or `refused` for a refused attempt.
    stream_kind text not null,
    stream_id uuid not null,
    seq bigint not null,
    digest bytea not null,
    primary key (tenant_id, leaf)
);
create unique index audit_leaf_by_entry on audit_leaf (tenant_id, stream_kind, stream_id, seq);

create table checkpoint (
    tenant_id int not null,
    -- From 1, without gaps.
    number bigint not null,
    -- Leaves that the tree had.
    size bigint not null,
    root bytea not null,
    -- Of the checkpoint before; the root of no leaves for the first.
    previous_root bytea not null,
    signed_at timestamptz not null,
    key_id text not null,
    -- Ed25519.
    signature bytea not null,
    -- The roots of the perfect subtrees that the tree is made of, from the largest: all that it takes to go on.
    frontier bytea not null,
    primary key (tenant_id, number)
);

-- How far entries have been taken in, of all tenants. Whoever locks the row is the one who signs.
create table checkpoint_cursor (
    one boolean primary key default true constraint checkpoint_cursor_one_check check (one),
    pos bigint not null default 0,
    -- A position that was drawn, and a transaction that began after that: see where it is read.
    mark_pos bigint not null default 0,
    mark_xid bigint not null default 0
);
insert into checkpoint_cursor default values;

-- Refused attempts are leaves, too, so they get their place in the order. The transaction's number comes first: whoever
-- has a position has a number by then, which is what tells when no smaller position can appear.
alter table refused_attempt add column xid xid8 not null default pg_current_xact_id();
alter table refused_attempt add column pos bigint not null default nextval('event_pos');

-- New entries are found by summaries of blocks. Unlike an index by key they cost a command nothing to speak of: positions grow with
-- the table.
create index audit_entry_pos on audit_entry using brin (pos) with (pages_per_range = 16, autosummarize = on);
create index refused_attempt_pos on refused_attempt using brin (pos) with (pages_per_range = 16, autosummarize = on);
-- Auditors look for what somebody did, and for what was done, in the order of time.
create index refused_attempt_by_time on refused_attempt (tenant_id, occurred_at, id);

grant select, insert on audit_leaf, checkpoint to wrkflw_writer;
grant select, update on checkpoint_cursor to wrkflw_writer;
grant select on event_pos to wrkflw_writer;
grant select on audit_leaf, checkpoint, checkpoint_cursor to wrkflw_reader;
grant select on checkpoint to wrkflw_relay;

create trigger audit_leaf_append_only before update or delete or truncate on audit_leaf
    for each statement execute function refuse_change();
create trigger checkpoint_append_only before update or delete or truncate on checkpoint
    for each statement execute function refuse_change();

do $$
declare
    name text;
begin
    foreach name in array array['audit_leaf', 'checkpoint'] loop
        execute format('alter table %I enable row level security', name);
        execute format('create policy writer on %I to wrkflw_writer using (true) with check (true)', name);
        execute format(
            'create policy reader on %I for select to wrkflw_reader using (tenant_id = nullif(current_setting(''wrkflw.tenant'', true), '''')::int)',
            name);
    end loop;
    create policy relay on checkpoint to wrkflw_relay using (true) with check (true);
end $$;

reset role;
