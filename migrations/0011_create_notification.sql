-- Who was told what, and the webhooks that are told too. A notifier follows the public entries with a cursor per
-- tenant and writes both in the transaction that moves the cursor, so commits cost nothing more.
set local role wrkflw_owner;

create table notification (
    tenant_id int not null,
    -- Made of the event and the recipient, so that telling twice is telling once. Sorts by the event's time.
    id uuid not null,
    kind text not null constraint notification_kind_check check (kind in ('assigned', 'reminder', 'escalated', 'decided')),
    recipient_kind text not null constraint notification_recipient_kind_check check (recipient_kind in ('user', 'group')),
    recipient text not null,
    instance_id uuid not null,
    state_id uuid,
    task_id uuid,
    -- The entry that it tells of.
    event_id uuid not null,
    due_at timestamptz,
    created_at timestamptz not null,
    -- When a webhook's receiver first accepted it.
    sent_at timestamptz,
    read_at timestamptz,
    primary key (tenant_id, id)
);
create index notification_by_recipient on notification (tenant_id, recipient_kind, recipient, id);
create index notification_unread on notification (tenant_id, recipient_kind, recipient, id) where read_at is null;

create table subscription (
    tenant_id int not null,
    id uuid not null,
    url text not null,
    -- Names of event types below the prefix, or families such as `task.*`.
    types text[] not null,
    -- Of instances of this definition alone; null for all.
    definition_key text,
    secret bytea not null,
    active boolean not null,
    created_at timestamptz not null,
    created_by text not null,
    -- Deliveries given up since the last that was accepted.
    failures int not null default 0,
    disabled_reason text,
    primary key (tenant_id, id)
);

-- What a receiver has not accepted yet. A row points at its event, and goes when it is delivered.
create table webhook_delivery (
    tenant_id int not null,
    subscription_id uuid not null,
    -- Of the event or of the notification: what the receiver recognises duplicates by.
    message_id uuid not null,
    notifies boolean not null,
    -- The entry, in the stream of its instance.
    instance_id uuid not null,
    seq bigint not null,
    state text not null default 'pending' constraint webhook_delivery_state_check check (state in ('pending', 'dead')),
    created_at timestamptz not null,
    -- Not before this moment.
    due_at timestamptz not null,
    lease_until timestamptz,
    attempts int not null default 0,
    last_status smallint,
    last_error text,
    primary key (tenant_id, subscription_id, message_id)
);
create index webhook_delivery_due on webhook_delivery (due_at) where state = 'pending';
create index webhook_delivery_dead on webhook_delivery (tenant_id, subscription_id, message_id) where state = 'dead';

-- How far the notifier has read in a tenant's entries; held by its row lock.
create table notifier_cursor (
    tenant_id int not null,
    epoch int not null,
    xid xid8 not null,
    pos bigint not null,
    moved_at timestamptz not null,
    primary key (tenant_id)
);
-- What happened before this migration is told to nobody.
insert into notifier_cursor
select id, epoch, pg_snapshot_xmin(pg_current_snapshot()), 0, 'epoch' from tenant, feed_epoch;

grant select, insert, update on notification, subscription, webhook_delivery, notifier_cursor to wrkflw_writer;
grant delete on subscription, webhook_delivery to wrkflw_writer;
grant select on notification, webhook_delivery to wrkflw_reader;
-- All but the secret.
grant select (tenant_id, id, url, types, definition_key, active, created_at, created_by, failures, disabled_reason)
    on subscription to wrkflw_reader;

do $$
declare
    name text;
begin
    foreach name in array array['notification', 'subscription', 'webhook_delivery', 'notifier_cursor'] loop
        execute format('alter table %I enable row level security', name);
        execute format('create policy writer on %I to wrkflw_writer using (true) with check (true)', name);
        execute format(
            'create policy reader on %I for select to wrkflw_reader using (tenant_id = nullif(current_setting(''wrkflw.tenant'', true), '''')::int)',
            name);
    end loop;
end $$;

reset role;
