-- The audit: streams of entries that only grow, each entry hashed onto the one before. The writer may insert and
-- read; a trigger stops everybody else who could change a row by mistake.
set local role wrkflw_owner;

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
    primary key (tenant_id, id)
);

-- Part of every feed cursor: whoever restores this database from a dump raises it, because transaction
-- numbers begin anew there.
create table feed_epoch (epoch int not null);
insert into feed_epoch values (1);

create function refuse_change() returns trigger language plpgsql as $$
begin
    raise exception '% rows are never changed or deleted', tg_table_name using errcode = 'restrict_violation';
end $$;

create trigger audit_entry_append_only before update or delete or truncate on audit_entry
    for each statement execute function refuse_change();
create trigger decision_append_only before update or delete or truncate on decision
    for each statement execute function refuse_change();
create trigger refused_attempt_append_only before update or delete or truncate on refused_attempt
    for each statement execute function refuse_change();

reset role;
