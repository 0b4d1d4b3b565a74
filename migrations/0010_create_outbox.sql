-- How public entries leave the database: the histories that order them in the feed, and the outbox of entries that Kafka has
-- not acknowledged yet.
set local role wrkflw_owner;

-- Histories. Transaction numbers begin anew in a database that was loaded from a dump, and may repeat after a restore or a
-- fail-over. So a host begins a new history before it writes on another server or timeline, or in another copy. Every cursor of
-- the feed has the number of a history.
create table feed_epoch (
    epoch int not null,
    -- Entries of this history have greater positions; so have those of later histories.
    began_after bigint not null default 0,
    -- The server's identifier and its timeline, the database, and the table; null if unknown.
    server text,
    primary key (epoch)
);

-- A copy of a database is another database. A dump that is loaded into the same one makes its tables anew.
create function server_here() returns text language sql volatile
    set search_path = public, pg_temp
as $$
    select system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' || d.oid || '/' || 'feed_epoch'::regclass::oid
    from pg_control_system(), pg_database d
    where d.datname = current_database()
$$;

insert into feed_epoch (epoch, server) values (1, server_here());

-- Every writer connection calls this first, so that every row belongs to a history.
create function begin_history() returns void language plpgsql security definer
    set search_path = public, pg_temp
as $$
declare
    here text;
begin
    -- A standby has the history of its primary, and nothing is written here. If it is promoted, this connection must not write, because it
    -- has begun no history: it is replaced.
    if pg_is_in_recovery() then
        perform set_config('default_transaction_read_only', 'on', false);
        return;
    end if;
    if current_setting('transaction_read_only')::boolean then
        return;
    end if;
    here := server_here();
    if here = (select f.server from feed_epoch f order by f.epoch desc limit 1) then
        return;
    end if;
    lock table feed_epoch in exclusive mode;
    -- Transactions that draw positions have ended, or wait for this lock.
    lock table audit_entry in share mode;
    if here = (select f.server from feed_epoch f order by f.epoch desc limit 1) then
        return;
    end if;
    insert into feed_epoch (epoch, began_after, server)
    select max(f.epoch) + 1, nextval('event_pos'), here from feed_epoch f;
    -- Skips ids of tenants that a lost history may have assigned, because hosts may have cached them.
    perform setval(s, nextval(s) + 1000) from (select pg_get_serial_sequence('tenant', 'id')::regclass) as numbers (s);
end $$;
revoke execute on function begin_history from public;
grant execute on function begin_history to wrkflw_writer;

-- A relay claims a partition by its row lock. The hash of an instance's id determines its partition.
create table outbox_partition (
    partition smallint primary key,
    -- All events up to this position have been published and deleted.
    floor bigint not null default 0,
    polled_at timestamptz not null default 'epoch',
    -- The earliest time of the next claim. A partition pauses after a failure.
    retry_at timestamptz not null default 'epoch',
    failures int not null default 0,
    last_error text,
    -- The number of events that the broker acknowledged or an operator discarded. It shows whether a row was deleted by hand.
    settled bigint not null default 0
);
insert into outbox_partition (partition) select generate_series(0, 15);

-- Pointers to public audit entries and to checkpoints.
create table outbox_event (
    partition smallint not null,
    pos bigint not null,
    tenant_id int not null,
    instance_id uuid not null,
    seq bigint not null,
    -- Whether an operator sends it again, after it was published.
    replayed boolean not null default false,
    primary key (partition, pos)
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- Dead letters: events that the broker refused permanently, and all later events of the same instance, in order.
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

-- The number of public events of all tenants that are neither in the outbox, nor parked, nor settled. Replayed ones do not count. A
-- verifier gets only this number.
create function missing_events() returns bigint language sql stable security definer
    set search_path = public, pg_temp
as $$
    select (select count(*) from audit_entry where event_seq is not null) + (select count(*) from checkpoint)
        - (select count(*) from outbox_event where not replayed) - (select count(*) from dead_letter) - (select sum(settled) from outbox_partition)
$$;
revoke execute on function missing_events from public;
grant execute on function missing_events to wrkflw_reader;

reset role;
