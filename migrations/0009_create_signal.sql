-- Signals and idempotency keys: what somebody sends twice counts once, until it is forgotten in time.
set local role wrkflw_owner;

-- Signals that count: each once for an instance, by its sender and trigger, so that nobody's swallows another's. Its sender
-- may ask what became of it.
create table signal (
    tenant_id int not null,
    instance_id uuid not null,
    signal_id text not null,
    received_at timestamptz not null,
    -- SHA-256 over sender, trigger and correlation.
    identity bytea not null default '',
    -- SHA-256 over the input.
    content bytea not null default '',
    -- The audit entry that says what it came to.
    entry_id uuid,
    primary key (tenant_id, instance_id, signal_id, identity)
);
create index signal_by_age on signal using brin (received_at);

-- Signals sent by correlation, from their arrival until an instance has taken them.
create table signal_inbox (
    tenant_id int not null,
    correlation text not null,
    signal_id text not null,
    trigger text not null,
    -- For instances of this definition alone; null for any.
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
    -- Whose it is and what it fires, in a few bytes: names may be too long for an index over all of them. Against clumsy
    -- equal ids, not against forgery: whoever finds two texts of one hash has signals of their own to lose.
    identity uuid not null
        generated always as (md5(trigger || chr(10) || coalesce(sender::jsonb ->> 'id', ''))::uuid) stored,
    -- Canonical JSON of why the instance refused it for good, `code` and `message`; null where it did not.
    refusal text,
    primary key (tenant_id, id)
);
create unique index signal_inbox_identity on signal_inbox (tenant_id, correlation, signal_id, identity);
create index signal_inbox_undelivered on signal_inbox (tenant_id, correlation, received_at, signal_id)
    where delivered_at is null;
-- Counted with each signal that its sender sends.
create index signal_inbox_by_sender on signal_inbox (tenant_id, sender_id, correlation) include (received_at)
    where delivered_at is null;
create index signal_inbox_by_age on signal_inbox (received_at);

-- Replies to requests that carried an idempotency key, kept for a day. Whose a key is, its row here settles, for starts as
-- for other commands: so what forgets keys holds no instance.
create table idempotency_key (
    tenant_id int not null,
    principal text not null,
    key text not null,
    fingerprint bytea not null,
    status smallint not null,
    body text not null,
    -- Opaque to the store: the headers that a replay repeats.
    headers text not null,
    -- Tells two requests with the same key apart that travel in one batch.
    command_id uuid not null,
    created_at timestamptz not null,
    primary key (tenant_id, principal, key)
);
create index idempotency_key_age on idempotency_key using brin (created_at);
-- Long enough to be compressed, and lz4 is the faster way where the server knows it.
do $$
begin
    alter table idempotency_key alter column body set compression lz4;
exception when feature_not_supported or invalid_parameter_value then
    raise notice 'idempotency_key is compressed with pglz: this server was built without lz4';
end $$;

-- One change may carry several commands of an instance, each with an idempotency key. When only some of the keys are free,
-- none may stay taken: the statement that tried fails as a whole.
create function keys_taken_in_part() returns boolean language plpgsql as $$
begin
    raise unique_violation using message = 'some of the idempotency keys of one change are another command''s';
end $$;
revoke execute on function keys_taken_in_part from public;
grant execute on function keys_taken_in_part to wrkflw_writer;

-- Stored replies carry a seal, and whoever verifies the database as the reader holds them against it. The reader does not see
-- what was answered: a digest of it is enough. The tenant is the reader's setting, as in the policies.
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
