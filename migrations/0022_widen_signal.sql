-- A signal counts per sender and trigger, so that nobody's swallows another's; its sender may ask what became of it; and
-- what instances counted is forgotten in time.
set local role wrkflw_owner;

alter table signal
    -- SHA-256 over sender, trigger and correlation. Empty in rows of hosts that told signals apart by their id alone.
    add column identity bytea not null default '',
    -- SHA-256 over the input. Empty in those rows.
    add column content bytea not null default '',
    -- The audit entry that says what it came to; null in those rows.
    add column entry_id uuid;
alter table signal drop constraint signal_pkey, add primary key (tenant_id, instance_id, signal_id, identity);
create index signal_by_age on signal using brin (received_at);
grant delete on signal to wrkflw_writer;

alter table signal_inbox
    -- The host's id of the signal; its job has the same.
    add column id uuid not null default gen_random_uuid(),
    add column sender_id text not null generated always as (coalesce(sender::jsonb ->> 'id', '')) stored,
    -- Whose it is and what it fires, in a few bytes: names may be too long for an index over all of them. Against clumsy
    -- equal ids, not against forgery: whoever finds two texts of one hash has signals of their own to lose.
    add column identity uuid not null
        generated always as (md5(trigger || chr(10) || coalesce(sender::jsonb ->> 'id', ''))::uuid) stored,
    -- Canonical JSON of why the instance refused it for good, `code` and `message`; null where it did not.
    add column refusal text;
alter table signal_inbox drop constraint signal_inbox_pkey, add primary key (tenant_id, id);
create unique index signal_inbox_identity on signal_inbox (tenant_id, correlation, signal_id, identity);
-- Counted with each signal that its sender sends.
create index signal_inbox_by_sender on signal_inbox (tenant_id, sender_id, correlation) include (received_at)
    where delivered_at is null;

reset role;
