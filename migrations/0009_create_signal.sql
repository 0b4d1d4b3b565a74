-- Signals and idempotency keys, by which repeated requests count once until the rows are purged.
set local role wrkflw_owner;

-- Signals that an instance has counted, each once for its sender and trigger, so that equal ids of different senders do not
-- collide. The sender may read what became of a signal.
create table signal (
    tenant_id int not null,
    instance_id uuid not null,
    signal_id text not null,
    received_at timestamptz not null,
    -- SHA-256 over sender, trigger and correlation, and the state instance if it was sent to all.
    identity bytea not null default '',
    -- SHA-256 over the input.
    content bytea not null default '',
    -- The audit entry by which the instance received it.
    entry_id uuid,
    primary key (tenant_id, instance_id, signal_id, identity)
);
create index signal_by_age on signal using brin (received_at);

-- Active state instances by the correlation keys under which they subscribe to signals. The key has the order in which they get
-- them: the oldest first.
create table signal_subscription (
    tenant_id int not null,
    correlation text not null,
    trigger text not null,
    entered_at timestamptz not null,
    state_id uuid not null,
    instance_id uuid not null,
    -- By the database's clock, as that of a signal: a signal to all is for those that subscribed before it came.
    subscribed_at timestamptz not null default now(),
    primary key (tenant_id, correlation, trigger, entered_at, state_id)
);
-- Used by the audit.
create index signal_subscription_by_instance on signal_subscription (tenant_id, instance_id);

-- Signals by correlation key, from their arrival until they are purged.
create table signal_inbox (
    tenant_id int not null,
    correlation text not null,
    signal_id text not null,
    trigger text not null,
    -- Only for instances of this definition; null for any.
    definition_key text,
    -- Canonical JSON.
    input text not null,
    -- Canonical JSON of the sender: id and roles.
    sender text not null,
    received_at timestamptz not null,
    instance_id uuid,
    delivered_at timestamptz,
    -- The host's id of the signal; its job has the same.
    id uuid not null default gen_random_uuid(),
    sender_id text not null generated always as (coalesce(sender::jsonb ->> 'id', '')) stored,
    -- A short hash of sender and trigger, because names may be too long for an index. MD5 protects against accidental
    -- collisions, not forgery: a sender who constructs a collision only loses own signals.
    identity uuid not null
        generated always as (md5(trigger || chr(10) || coalesce(sender::jsonb ->> 'id', ''))::uuid) stored,
    -- Canonical JSON of the permanent refusal by the instance, `code` and `message`; null for none.
    refusal text,
    -- Whether it is for all state instances that subscribe to it, and not for one. Then these are the last one that is done, in
    -- the order of `signal_subscription`, and how many state instances have taken and refused it.
    to_all boolean not null default false,
    after_at timestamptz not null default 'epoch',
    after_state uuid not null default '00000000-0000-0000-0000-000000000000',
    taken int not null default 0,
    refused int not null default 0,
    -- Whether a request that did not store it was answered that it is kept. The request that stored it then cannot withdraw it.
    acknowledged boolean not null default false,
    primary key (tenant_id, id)
);
create unique index signal_inbox_identity on signal_inbox (tenant_id, correlation, signal_id, identity);
create index signal_inbox_undelivered on signal_inbox (tenant_id, correlation, received_at, signal_id)
    where delivered_at is null;
-- Used by the count of a sender's waiting signals, with each new signal.
create index signal_inbox_by_sender on signal_inbox (tenant_id, sender_id, correlation) include (received_at, to_all)
    where delivered_at is null;
create index signal_inbox_by_age on signal_inbox (received_at);

-- Replies to requests with an idempotency key, kept for a day. For starts as for other commands, the row alone decides to
-- whom a key belongs, so keys can be purged without locking instances.
create table idempotency_key (
    tenant_id int not null,
    principal text not null,
    key text not null,
    fingerprint bytea not null,
    status smallint not null,
    body text not null,
    -- The headers of the reply, with its seal. Opaque to the store.
    headers text not null,
    -- Distinguishes two requests with the same key in one batch.
    command_id uuid not null,
    created_at timestamptz not null,
    primary key (tenant_id, principal, key)
);
create index idempotency_key_age on idempotency_key using brin (created_at);
-- These texts are long enough to be compressed. lz4 is faster, if the server has it.
do $$
begin
    alter table idempotency_key alter column body set compression lz4;
exception when feature_not_supported or invalid_parameter_value then
    raise notice 'idempotency_key is compressed with pglz: this server was built without lz4';
end $$;

-- One change may have several commands of an instance, each with an idempotency key. If only some of the keys are free, none
-- may be taken, so the whole statement fails.
create function keys_taken_in_part() returns boolean language plpgsql as $$
begin
    raise unique_violation using message = 'some of the idempotency keys of one change are another command''s';
end $$;
revoke execute on function keys_taken_in_part from public;
grant execute on function keys_taken_in_part to wrkflw_writer;

-- Stored replies have seals, which a verifier checks as the reader. The reader must not see bodies, so it gets their digests.
-- The tenant is the reader's setting, as in the policies.
create function kept_replies(after_principal text, after_key text, most bigint)
    returns table (
        principal text, key text, command_id uuid, fingerprint bytea, status smallint, body_digest bytea, headers text
    )
    language sql stable security definer
    set search_path = public, pg_temp
as $$
    select k.principal, k.key, k.command_id, k.fingerprint, k.status, sha256(convert_to(k.body, 'UTF8')), k.headers
    from idempotency_key k
    where k.tenant_id = nullif(current_setting('wrkflw.tenant', true), '')::int
      and (k.principal, k.key) > (after_principal, after_key)
    order by k.principal, k.key
    limit most
$$;
revoke execute on function kept_replies from public;
grant execute on function kept_replies to wrkflw_reader;

reset role;
