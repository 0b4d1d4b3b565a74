-- How public entries leave the database: the histories by which readers of the feed tell them apart, and the outbox, which
-- has those that Kafka has not acknowledged yet.
set local role wrkflw_owner;

-- PostgreSQL counts transactions anew in a database that was loaded from a dump, and gives numbers out again after one was
-- set back or failed over. So entries are told apart by their history as well: a host begins a new one when it finds itself
-- on another server, or on another timeline of it, before it writes there. A row for each history; part of every cursor of
-- the feed.
create table feed_epoch (
    epoch int not null,
    -- Entries with greater positions are of this history, or of a later one.
    began_after bigint not null default 0,
    -- The server's identifier and its timeline; null where nobody looked.
    server text,
    primary key (epoch)
);

create function server_here() returns text language sql volatile
    set search_path = public, pg_temp
as $$
    select system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) from pg_control_system()
$$;

insert into feed_epoch (epoch, server) values (1, server_here());

-- Every connection that writes asks for it first, so nothing is written that belongs to no history.
create function begin_history() returns void language plpgsql security definer
    set search_path = public, pg_temp
as $$
declare
    here text;
begin
    -- Nothing is written here, as on a standby, which has the history of its primary.
    if pg_is_in_recovery() or current_setting('transaction_read_only')::boolean then
        return;
    end if;
    here := server_here();
    if here = (select f.server from feed_epoch f order by f.epoch desc limit 1) then
        return;
    end if;
    lock table feed_epoch in exclusive mode;
    -- Whoever draws positions has ended, or draws them later.
    lock table audit_entry in share mode;
    if here = (select f.server from feed_epoch f order by f.epoch desc limit 1) then
        return;
    end if;
    insert into feed_epoch (epoch, began_after, server)
    select max(f.epoch) + 1, nextval('event_pos'), here from feed_epoch f;
    -- Numbers of tenants that a lost history may have given out are not given out again: hosts may remember them.
    perform setval(s, nextval(s) + 1000) from (select pg_get_serial_sequence('tenant', 'id')::regclass) as numbers (s);
end $$;
revoke execute on function begin_history from public;
grant execute on function begin_history to wrkflw_writer;

-- A relay holds a partition by its row lock; an instance always hashes to the same partition.
create table outbox_partition (
    partition smallint primary key,
    -- Everything at or below it has been published and deleted.
    floor bigint not null default 0,
    polled_at timestamptz not null default 'epoch',
    -- Not before this moment: the partition backs off after a failure.
    retry_at timestamptz not null default 'epoch',
    failures int not null default 0,
    last_error text,
    -- Events that the broker acknowledged, or that somebody gave up. Counted, so that one whose row was taken away by hand is
    -- missed.
    settled bigint not null default 0
);
insert into outbox_partition (partition) select generate_series(0, 15);

-- Pointers to public audit entries.
create table outbox_event (
    partition smallint not null,
    pos bigint not null,
    tenant_id int not null,
    instance_id uuid not null,
    seq bigint not null,
    primary key (partition, pos)
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- Events that the broker refused for good, and everything later of the same instance: parked in order, never dropped.
create table dead_letter (
    tenant_id int not null,
    instance_id uuid not null,
    seq bigint not null,
    partition smallint not null,
    pos bigint not null,
    error text not null,
    attempts int not null,
    parked_at timestamptz not null,
    primary key (tenant_id, instance_id, seq)
);

-- Public events, of all tenants, that neither wait, nor are parked, nor were settled. Whoever verifies learns the number
-- alone.
create function missing_events() returns bigint language sql stable security definer
    set search_path = public, pg_temp
as $$
    select (select count(*) from audit_entry where event_seq is not null) + (select count(*) from checkpoint)
        - (select count(*) from outbox_event) - (select count(*) from dead_letter) - (select sum(settled) from outbox_partition)
$$;
revoke execute on function missing_events from public;
grant execute on function missing_events to wrkflw_reader;

reset role;
