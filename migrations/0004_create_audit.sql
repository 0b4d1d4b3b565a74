-- The audit: append-only streams of entries, each of which has a hash that covers the one before, and signed checkpoints over
-- all entries of a tenant. The writer may only insert and read. Triggers prevent accidental changes by other roles.
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
    -- Canonical JSON. The chain covers a salted digest of it, so that it can be erased later.
    payload text not null,
    -- The evidence, on the first entry of a command: all that is needed to evaluate the command again.
    evidence text,
    salt bytea not null,
    occurred_at timestamptz not null,
    hash bytea not null,
    -- The number of a public event within its instance, without gaps; null for private entries.
    event_seq bigint,
    traceparent text,
    -- The feed reads public entries in the order of (xid, pos), up to the oldest unfinished transaction.
    xid xid8 not null default pg_current_xact_id(),
    pos bigint not null default nextval('event_pos'),
    primary key (tenant_id, stream_kind, stream_id, seq)
);
create index audit_entry_feed on audit_entry (tenant_id, xid, pos) where event_seq is not null;
-- Finds the version at the time of an event. Few instances have migrated.
create index audit_entry_migrated on audit_entry (tenant_id, stream_id, seq)
    where stream_kind = 'instance' and type = 'FLOW_MIGRATED';
-- Finds the title at the time of an event. An entry of another type costs nothing.
create index audit_entry_retitled on audit_entry (tenant_id, stream_id, seq)
    where stream_kind = 'instance' and type = 'FLOW_RETITLED';
-- Finds the comments on an instance, and the signals that it received.
create index audit_entry_messages on audit_entry (tenant_id, stream_id, type, seq)
    where stream_kind = 'instance' and type in ('FLOW_COMMENTED', 'SIGNAL_RECEIVED');
-- Finds the events that operators discarded.
create index audit_entry_discarded on audit_entry (tenant_id, seq)
    where stream_kind = 'operation' and type = 'DEAD_LETTER_DISCARDED';
-- Finds new entries. A BRIN index would cost a command less, but a look for new entries would read all that autovacuum has not
-- summarised yet. The sum keeps the index out of the plans of other queries: readers of the feed compare positions, too, but in the
-- order of the index above.
create index audit_entry_pos on audit_entry ((pos + 0));
create trigger audit_entry_append_only before update or delete or truncate on audit_entry
    for each statement execute function refuse_change();
-- These texts are long enough to be compressed. lz4 is faster, if the server has it.
do $$
begin
    alter table audit_entry alter column evidence set compression lz4, alter column payload set compression lz4;
exception when feature_not_supported or invalid_parameter_value then
    raise notice 'audit_entry is compressed with pglz: this server was built without lz4';
end $$;

-- Heads of the streams other than those of instances. An instance's row has the head of its own stream.
create table audit_stream (
    tenant_id int not null,
    stream_kind text not null,
    stream_id uuid not null,
    seq bigint not null,
    head bytea not null,
    primary key (tenant_id, stream_kind, stream_id)
);

-- Refused attempts. They do not change instances: otherwise outsiders could cause conflicts.
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
    -- Refused attempts are leaves of the tree, too, so they have positions. The transaction number is drawn before the
    -- position. So every transaction with a position has a number, which tells when no smaller position can appear.
    xid xid8 not null default pg_current_xact_id(),
    pos bigint not null default nextval('event_pos'),
    primary key (tenant_id, id)
);
-- For auditors, who read the attempts of a person or of a kind in the order of time.
create index refused_attempt_by_time on refused_attempt (tenant_id, occurred_at, id);
-- For lists of the attempts that were refused for one reason.
create index refused_attempt_by_code on refused_attempt (tenant_id, code, occurred_at, id);
-- For compliance reports, which read a period of time. The table grows in about the order of time, so a BRIN index is enough,
-- and costs an insert almost nothing.
create index refused_attempt_period on refused_attempt using brin (occurred_at) with (pages_per_range = 32, autosummarize = on);
create index refused_attempt_pos on refused_attempt (pos);
create trigger refused_attempt_append_only before update or delete or truncate on refused_attempt
    for each statement execute function refuse_change();

-- The leaves of the Merkle tree of each tenant's audit, over which checkpoints are signed. One host at a time adds them;
-- commands do not write them. A row has a run of leaves whose entries follow each other in one stream, as those of a command do.
-- A leaf has the entry and the digest that the entry had when it became a leaf.
create table audit_leaf (
    tenant_id int not null,
    -- The number of the first leaf of the run. Leaves are numbered from 0, without gaps.
    leaf bigint not null,
    -- The kind of the entries' stream, or `refused` for a refused attempt.
    stream_kind text not null,
    stream_id uuid not null,
    -- The number of the first entry.
    seq bigint not null,
    -- SHA-256, 32 bytes for each leaf.
    digests bytea not null,
    primary key (tenant_id, leaf)
);
create unique index audit_leaf_by_entry on audit_leaf (tenant_id, stream_kind, stream_id, seq);
-- The number of leaves of a run. Hosts write runs of 1 to 60 leaves. A run without a whole digest has one, too, and a longer run has
-- 61, so that both fail verification.
create function leaves_in(digests bytea) returns bigint language sql immutable parallel safe
as $$ select least(greatest((octet_length($1) + 31) / 32, 1), 61) $$;
-- The number behind a run that begins with `first`. Numbers near the largest stand still.
create function run_end(first bigint, digests bytea) returns bigint language sql immutable parallel safe
as $$ select case when $1 > 9223372036854775000 then $1 else $1 + leaves_in($2) end $$;
create function leaves_of_run(leaf bigint, seq bigint, digests bytea) returns table (leaf bigint, seq bigint, digest bytea)
    language sql immutable parallel safe
as $$
    select case when $1 > 9223372036854775000 then $1 else $1 + n end, case when $2 > 9223372036854775000 then $2 else $2 + n end,
        substring($3 from 32 * n::int + 1 for 32)
    from generate_series(0, leaves_in($3) - 1) n
$$;
revoke execute on function leaves_in, run_end, leaves_of_run from public;
grant execute on function leaves_in, run_end, leaves_of_run to wrkflw_writer, wrkflw_reader;
create trigger audit_leaf_append_only before update or delete or truncate on audit_leaf
    for each statement execute function refuse_change();

create table checkpoint (
    tenant_id int not null,
    -- From 1, without gaps.
    number bigint not null,
    -- The number of leaves of the tree.
    size bigint not null,
    root bytea not null,
    -- The root of the checkpoint before; for the first one, the root of an empty tree.
    previous_root bytea not null,
    signed_at timestamptz not null,
    key_id text not null,
    -- Ed25519.
    signature bytea not null,
    -- The roots of the perfect subtrees, from the largest. They are enough to continue the tree.
    frontier bytea not null,
    primary key (tenant_id, number)
);
-- For pages of the audit from a moment on.
create index checkpoint_signed_at on checkpoint (tenant_id, signed_at);
create trigger checkpoint_append_only before update or delete or truncate on checkpoint
    for each statement execute function refuse_change();

-- The position up to which entries of all tenants are leaves, but for those with a `tenant.checkpoint_pos`. The host that locks the row
-- signs.
create table checkpoint_cursor (
    one boolean primary key default true constraint checkpoint_cursor_one_check check (one),
    pos bigint not null default 0,
    -- A position that was drawn, and the number of a transaction that began after that; see `Store::turn_to_sign`.
    mark_pos bigint not null default 0,
    mark_xid bigint not null default 0
);
insert into checkpoint_cursor default values;

reset role;
