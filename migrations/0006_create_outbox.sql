-- The outbox: pointers to public audit entries that Kafka has not acknowledged yet. A relay holds a lane by its row
-- lock; an instance always hashes to the same lane.
set local role wrkflw_owner;

create table outbox_lane (
    lane smallint primary key,
    -- Everything at or below it has been published and deleted.
    floor bigint not null default 0,
    polled_at timestamptz not null default 'epoch',
    -- Not before this moment: the lane backs off after a failure.
    retry_at timestamptz not null default 'epoch',
    failures int not null default 0,
    last_error text
);
insert into outbox_lane (lane) select generate_series(0, 15);

create table outbox_event (
    lane smallint not null,
    pos bigint not null,
    tenant_id int not null,
    instance_id uuid not null,
    seq bigint not null,
    primary key (lane, pos)
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- Events that the broker refused for good, and everything later of the same instance: parked in order, never dropped.
create table dead_letter (
    tenant_id int not null,
    instance_id uuid not null,
    seq bigint not null,
    lane smallint not null,
    pos bigint not null,
    error text not null,
    attempts int not null,
    parked_at timestamptz not null,
    primary key (tenant_id, instance_id, seq)
);

reset role;
