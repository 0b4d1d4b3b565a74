-- Notifications and webhooks. A notifier reads public entries with one cursor per tenant. It inserts notifications and
-- deliveries in the transaction that moves the cursor, so commits cost nothing more.
set local role wrkflw_owner;

create table notification (
    tenant_id int not null,
    -- Derived from the event and the recipient, so that a repetition inserts nothing. Sorts by the time of the event.
    id uuid not null,
    kind text not null constraint notification_kind_check check (kind in (
        'ASSIGNMENT_CREATED', 'STATUS_CHANGED', 'MENTION', 'TIMEOUT_WARNING', 'ESCALATION'
    )),
    recipient_kind text not null constraint notification_recipient_kind_check check (recipient_kind in ('user', 'group')),
    recipient text not null,
    instance_id uuid not null,
    state_id uuid,
    task_id uuid,
    -- The entry that caused it.
    event_id uuid not null,
    due_at timestamptz,
    -- The time of the event, by a host's clock.
    created_at timestamptz not null,
    -- When a webhook's receiver first accepted it.
    sent_at timestamptz,
    read_at timestamptz,
    -- The creation time, by the database's clock, which also determines when it is purged.
    made_at timestamptz not null default now(),
    primary key (tenant_id, id)
);
-- One index serves the unread notifications and all of them, of the kinds that the reader wants: each decision writes notifications, and an index costs each of them.
create index notification_by_recipient on notification (tenant_id, recipient_kind, recipient, kind, (read_at is not null), id);
-- For the purge. Old notifications lie together in the table.
create index notification_age on notification using brin (made_at) with (autosummarize = on);

-- Kinds of notifications that a person does not want. Whoever has no row wants all.
create table muted_notification (
    tenant_id int not null,
    person_id text not null,
    kind text not null constraint muted_notification_kind_check check (kind in (
        'ASSIGNMENT_CREATED', 'STATUS_CHANGED', 'MENTION', 'TIMEOUT_WARNING', 'ESCALATION'
    )),
    primary key (tenant_id, person_id, kind)
);

create table subscription (
    tenant_id int not null,
    id uuid not null,
    url text not null,
    -- Names of event types below the prefix, or families such as `task.*`.
    types text[] not null,
    -- Only events of instances of this definition; null for all.
    definition_key text,
    secret bytea not null,
    active boolean not null,
    created_at timestamptz not null,
    created_by text not null,
    -- Dead deliveries since the last one that was accepted.
    failures int not null default 0,
    disabled_reason text,
    -- The history, and the transactions that had been committed when it was created: clocks of hosts differ. If these are
    -- null, `created_at` decides.
    since_epoch int,
    since_snapshot pg_snapshot,
    -- The same of the last time that it was disabled, and of when it was enabled again; null if it was not. Of several times before a
    -- host reads the events, the last one counts.
    disabled_epoch int,
    disabled_snapshot pg_snapshot,
    enabled_epoch int,
    enabled_snapshot pg_snapshot,
    primary key (tenant_id, id)
);

-- Deliveries, which are kept for some time after their end. A row points to its event.
create table webhook_delivery (
    tenant_id int not null,
    subscription_id uuid not null,
    -- The id of the event or notification, by which the receiver recognises duplicates.
    message_id uuid not null,
    notifies boolean not null,
    -- The entry, in the stream of its instance; the nil UUID and 0 for a test.
    instance_id uuid not null,
    seq bigint not null,
    state text not null default 'pending' constraint webhook_delivery_state_check check (state in ('pending', 'delivered', 'dead', 'discarded')),
    created_at timestamptz not null,
    -- The earliest time of the next attempt, or when it ended.
    due_at timestamptz not null,
    lease_until timestamptz,
    attempts int not null default 0,
    last_status smallint,
    last_error text,
    -- The definition version at the event, because the instance may have migrated before the delivery is sent. If null, the
    -- current version.
    definition_version int,
    -- A message that somebody asked for to try the receiver. It has no event.
    test boolean not null default false,
    primary key (tenant_id, subscription_id, message_id)
);
-- For the purge. Deliveries that ended at about the same time lie together in the table.
create index webhook_delivery_age on webhook_delivery using brin (due_at) with (autosummarize = on);
create index webhook_delivery_due on webhook_delivery (due_at) where state = 'pending';
-- Workers share their slots by tenant and subscription, and find due deliveries by these indexes.
create index webhook_delivery_line on webhook_delivery (tenant_id, subscription_id, due_at) where state = 'pending';
-- For lists by state, the newest first.
create index webhook_delivery_pending on webhook_delivery (tenant_id, subscription_id, message_id) where state = 'pending';
create index webhook_delivery_dead on webhook_delivery (tenant_id, subscription_id, message_id) where state = 'dead';
create index webhook_delivery_discarded on webhook_delivery (tenant_id, subscription_id, message_id) where state = 'discarded';

-- Attempts to deliver, kept as long as the deliveries.
create table webhook_attempt (
    tenant_id int not null,
    subscription_id uuid not null,
    message_id uuid not null,
    -- When it ended, by the database's clock.
    at timestamptz not null default clock_timestamp(),
    -- The receiver's status; null if there was none.
    status smallint,
    duration_ms int not null,
    -- Why it failed; null if the receiver accepted.
    error text,
    primary key (tenant_id, subscription_id, message_id, at)
);
create index webhook_attempt_age on webhook_attempt using brin (at) with (autosummarize = on);

-- The position up to which the notifier has read a tenant's entries. Its row lock is the claim.
create table notifier_cursor (
    tenant_id int not null,
    epoch int not null,
    xid xid8 not null,
    pos bigint not null,
    moved_at timestamptz not null,
    primary key (tenant_id)
);

reset role;
