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
    -- The event's time, by the clock of a host.
    created_at timestamptz not null,
    -- When a webhook's receiver first accepted it.
    sent_at timestamptz,
    read_at timestamptz,
    -- When it was made. By the database's clock, since what is kept for a time goes by that.
    made_at timestamptz not null default now(),
    primary key (tenant_id, id)
);
-- One index serves the unread notifications and all of them: each decision writes notifications, and an index costs each of them.
create index notification_by_recipient on notification (tenant_id, recipient_kind, recipient, (read_at is not null), id);
-- Notifications are kept for a time. Old ones lie together.
create index notification_age on notification using brin (made_at) with (autosummarize = on);

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
    -- What had been committed when it was made, and in which history: hosts' clocks differ, so they do not tell. Where these
    -- are null the time of the subscription decides.
    since_epoch int,
    since_snapshot pg_snapshot,
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
    -- That its event was of, since the instance may have moved on when it is sent. Null for the one that the instance has.
    definition_version int,
    primary key (tenant_id, subscription_id, message_id)
);
create index webhook_delivery_due on webhook_delivery (due_at) where state = 'pending';
-- Places for deliveries are shared by tenant and by subscription, so what is due is found by these.
create index webhook_delivery_line on webhook_delivery (tenant_id, subscription_id, due_at) where state = 'pending';
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

reset role;
