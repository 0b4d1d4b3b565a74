-- The audit: streams of entries that only grow, each entry hashed onto the one before, and signed checkpoints over all of a
-- tenant's. The writer may insert and read; a trigger stops everybody else who could change a row by mistake.
set local role wrkflw_owner;

create function refuse_change() returns trigger language plpgsql as $$
begin
    raise exception '% rows are never changed or deleted', tg_table_name using errcode = 'restrict_violation';
end $$;

create sequence event_pos as bigint cache 1;

create table audit_entry (
    tenant_id int not null,
    stream_kind text not null constraint audit_entry_stream_kind_check
        check (stream_kind in ('instance', 'definition', 'directory', 'operation')),
    stream_id uuid not null,
    seq bigint not null,
    -- Also the id of the public event.
    id uuid not null,
    type text not null,
    -- The stream's revision after the command that wrote the entry.
    revision int not null,
    command_id uuid not null,
    actor text,
    task_id uuid,
    -- Canonical JSON. The chain covers a salted digest of it, so that it can be erased one day.
    payload text not null,
    -- On the first entry of a command: all that is needed to evaluate the command again.
    evidence text,
    salt bytea not null,
    occurred_at timestamptz not null,
    hash bytea not null,
    -- The instance's own numbering of its public events, without gaps; none for private entries.
    event_seq bigint,
    traceparent text,
    -- The feed reads public entries in the order of (xid, pos), behind the oldest unfinished transaction.
    xid xid8 not null default pg_current_xact_id(),
    pos bigint not null default nextval('event_pos'),
    primary key (tenant_id, stream_kind, stream_id, seq)
);
create index audit_entry_feed on audit_entry (tenant_id, xid, pos) where event_seq is not null;
-- Under which version an event happened: seldom has an instance had another one than it has now.
create index audit_entry_migrated on audit_entry (tenant_id, stream_id, seq)
    where stream_kind = 'instance' and type = 'FLOW_MIGRATED';
-- New entries are found by summaries of blocks. Unlike an index by key they cost a command nothing to speak of: positions grow with
-- the table.
create index audit_entry_pos on audit_entry using brin (pos) with (pages_per_range = 16, autosummarize = on);
create trigger audit_entry_append_only before update or delete or truncate on audit_entry
    for each statement execute function refuse_change();
-- Long enough to be compressed, and lz4 is the faster way where the server knows it.
do $$
begin
    alter table audit_entry alter column evidence set compression lz4, alter column payload set compression lz4;
exception when feature_not_supported or invalid_parameter_value then
    raise notice 'audit_entry is compressed with pglz: this server was built without lz4';
end $$;

-- Heads of the streams that have no row of their own to keep them; an instance keeps its own.
create table audit_stream (
    tenant_id int not null,
    stream_kind text not null,
    stream_id uuid not null,
    seq bigint not null,
    head bytea not null,
    primary key (tenant_id, stream_kind, stream_id)
);

-- Attempts that were refused to the actor. They touch no instance, or an outsider could cause conflicts.
create table refused_attempt (
    tenant_id int not null,
    id uuid not null,
    occurred_at timestamptz not null,
    actor text not null,
    action text not null,
    instance_id uuid,
    task_id uuid,
    code text not null,
    detail text not null,
    request_id text,
    -- Refused attempts are leaves, too, so they get their place in the order. The transaction's number comes first: whoever
    -- has a position has a number by then, which is what tells when no smaller position can appear.
    xid xid8 not null default pg_current_xact_id(),
    pos bigint not null default nextval('event_pos'),
    primary key (tenant_id, id)
);
-- Auditors look for what somebody did, and for what was done, in the order of time.
create index refused_attempt_by_time on refused_attempt (tenant_id, occurred_at, id);
-- For proofs of compliance, which ask by time alone. The table only grows, in about the order of time, so a summary of page
-- ranges is enough and costs its inserts next to nothing.
create index refused_attempt_period on refused_attempt using brin (occurred_at) with (pages_per_range = 32, autosummarize = on);
create index refused_attempt_pos on refused_attempt using brin (pos) with (pages_per_range = 16, autosummarize = on);
create trigger refused_attempt_append_only before update or delete or truncate on refused_attempt
    for each statement execute function refuse_change();

-- Checkpoints are signed over a Merkle tree of each tenant's audit, grown behind the writers' back by one host at a time:
-- nothing of it is written by a command. Here is what the tree is made of, in its order: which entry is its n-th leaf, and
-- the digest that it had when it was taken in.
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
create trigger audit_leaf_append_only before update or delete or truncate on audit_leaf
    for each statement execute function refuse_change();

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
create trigger checkpoint_append_only before update or delete or truncate on checkpoint
    for each statement execute function refuse_change();

-- How far entries have been taken in, of all tenants. Whoever locks the row is the one who signs.
create table checkpoint_cursor (
    one boolean primary key default true constraint checkpoint_cursor_one_check check (one),
    pos bigint not null default 0,
    -- A position that was drawn, and a transaction that began after that: see where it is read.
    mark_pos bigint not null default 0,
    mark_xid bigint not null default 0
);
insert into checkpoint_cursor default values;

reset role;
