-- The rows of a commit as hosts send them: one composite type for each kind, and one array of it for each parameter. An array
-- for each column would make the start of the statement two to four times as expensive. A released type never changes,
-- because hosts of two releases commit at the same time: a new column needs a new type.

set local role wrkflw_owner;

create type commit_member as (
    member int, tenant_id int, instance_id uuid, command_id uuid, revision_from int, revision_to int, partition smallint,
    status text, outcome text, end_reason text, ended_by text, ended_at timestamptz, data text, updated_at timestamptz,
    audit_seq bigint, audit_head bytea, event_seq bigint, state_instances int, suspended_at timestamptz, suspended_by text,
    suspend_reason text, buffered_signals text, definition_version int, access_mark uuid, head_from bytea, vacates boolean,
    title text, summary text, sole boolean, observers text[]
);

create type commit_reply as (
    member int, tenant_id int, command_id uuid, principal text, key text, fingerprint bytea, status smallint, body text,
    headers text
);

create type commit_start as (
    member int, definition_key text, definition_version int, entity_type text, entity_id text, initiator text, requesters text[],
    predecessor uuid, parent uuid, started_at timestamptz
);

create type commit_state as (
    member int, tenant_id int, instance_id uuid, ordinal int, waiting boolean, left_at timestamptz, left_trigger text,
    left_actor text, id uuid, name text, entered_at timestamptz, due_at timestamptz, predecessors uuid[], entered_trigger text,
    caller text, needed int, exclude text[], fallback text, priority smallint, forks uuid[], choices int, deadlines text,
    subscriptions text, children text, unassignable_since timestamptz,
    key text, data text, priority_name text, share text, blind boolean, call text
);

create type commit_departure as (
    member int, tenant_id int, instance_id uuid, id uuid, left_at timestamptz, left_trigger text, left_actor text
);

create type commit_task as (
    member int, tenant_id int, instance_id uuid, state_id uuid, ordinal int, restricted boolean, id uuid, label text, candidates text,
    created_at timestamptz, due_at timestamptz, deadlines text, suspended text, status text, owner text, claimed_at timestamptz,
    ended_at timestamptz, ownership text, cancel_reason text
);

create type commit_candidate as (
    member int, tenant_id int, task_id uuid, kind text, principal text
);

create type commit_participant as (
    member int, tenant_id int, instance_id uuid, kind text, principal text
);

create type commit_allocation as (
    member int, tenant_id int, definition_key text, state text, person_id text, given_at timestamptz
);

create type commit_decision as (
    member int, tenant_id int, instance_id uuid, task_id uuid, key_id text, mac_version smallint, mac bytea, outcome text,
    actor text, on_behalf_of text, comment text, input text, decided_at timestamptz
);

create type commit_delegation_seal as (
    member int, tenant_id int, instance_id uuid, seq bigint, key_id text, mac_version smallint, mac bytea
);

create type commit_attribute as (
    member int, tenant_id int, instance_id uuid, name text, type text, text_value text, boolean_value boolean,
    decimal_value text, float_value float8, timestamp_value timestamptz, bytes_value bytea
);

create type commit_entry as (
    member int, tenant_id int, stream_id uuid, seq bigint, id uuid, type text, revision int, command_id uuid, actor text,
    task_id uuid, payload text, evidence text, salt bytea, occurred_at timestamptz, hash bytea, event_seq bigint,
    traceparent text
);

create type commit_job as (
    member int, tenant_id int, id uuid, kind text, instance_id uuid, due_at timestamptz, payload text, service text
);

create type commit_finished_job as (
    member int, tenant_id int, id uuid, cancels uuid, keeps_report boolean
);

create type commit_subscription as (
    member int, tenant_id int, correlation text, trigger text, entered_at timestamptz, state_id uuid, instance_id uuid
);

create type commit_signal as (
    member int, tenant_id int, instance_id uuid, signal_id text, identity bytea, content bytea, entry_id uuid
);

reset role;
