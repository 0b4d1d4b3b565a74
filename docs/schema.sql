-- What the migrations make, as pg_dump tells it. All belongs to wrkflw_owner where nothing else is said.
CREATE TYPE public.commit_allocation AS (
	member integer,
	tenant_id integer,
	definition_key text,
	state text,
	person_id text,
	given_at timestamp with time zone
);
CREATE TYPE public.commit_attribute AS (
	member integer,
	tenant_id integer,
	instance_id uuid,
	name text,
	type text,
	text_value text,
	boolean_value boolean,
	decimal_value text,
	float_value double precision,
	timestamp_value timestamp with time zone,
	bytes_value bytea
);
CREATE TYPE public.commit_candidate AS (
	member integer,
	tenant_id integer,
	task_id uuid,
	kind text,
	principal text
);
CREATE TYPE public.commit_decision AS (
	member integer,
	tenant_id integer,
	instance_id uuid,
	task_id uuid,
	key_id text,
	mac_version smallint,
	mac bytea,
	outcome text,
	actor text,
	on_behalf_of text,
	comment text,
	input text,
	decided_at timestamp with time zone
);
CREATE TYPE public.commit_delegation_seal AS (
	member integer,
	tenant_id integer,
	instance_id uuid,
	seq bigint,
	key_id text,
	mac_version smallint,
	mac bytea
);
CREATE TYPE public.commit_departure AS (
	member integer,
	tenant_id integer,
	instance_id uuid,
	id uuid,
	left_at timestamp with time zone,
	left_trigger text,
	left_actor text
);
CREATE TYPE public.commit_entry AS (
	member integer,
	tenant_id integer,
	stream_id uuid,
	seq bigint,
	id uuid,
	type text,
	revision integer,
	command_id uuid,
	actor text,
	task_id uuid,
	payload text,
	evidence text,
	salt bytea,
	occurred_at timestamp with time zone,
	hash bytea,
	event_seq bigint,
	traceparent text
);
CREATE TYPE public.commit_finished_job AS (
	member integer,
	tenant_id integer,
	id uuid,
	cancels uuid,
	keeps_report boolean
);
CREATE TYPE public.commit_job AS (
	member integer,
	tenant_id integer,
	id uuid,
	kind text,
	instance_id uuid,
	due_at timestamp with time zone,
	payload text,
	service text
);
CREATE TYPE public.commit_member AS (
	member integer,
	tenant_id integer,
	instance_id uuid,
	command_id uuid,
	revision_from integer,
	revision_to integer,
	partition smallint,
	status text,
	outcome text,
	end_reason text,
	ended_by text,
	ended_at timestamp with time zone,
	data text,
	updated_at timestamp with time zone,
	audit_seq bigint,
	audit_head bytea,
	event_seq bigint,
	state_instances integer,
	suspended_at timestamp with time zone,
	suspended_by text,
	suspend_reason text,
	buffered_signals text,
	definition_version integer,
	access_mark uuid,
	head_from bytea,
	vacates boolean,
	title text,
	summary text,
	sole boolean,
	observers text[]
);
CREATE TYPE public.commit_participant AS (
	member integer,
	tenant_id integer,
	instance_id uuid,
	kind text,
	principal text
);
CREATE TYPE public.commit_reply AS (
	member integer,
	tenant_id integer,
	command_id uuid,
	principal text,
	key text,
	fingerprint bytea,
	status smallint,
	body text,
	headers text
);
CREATE TYPE public.commit_signal AS (
	member integer,
	tenant_id integer,
	instance_id uuid,
	signal_id text,
	identity bytea,
	content bytea,
	entry_id uuid
);
CREATE TYPE public.commit_start AS (
	member integer,
	definition_key text,
	definition_version integer,
	entity_type text,
	entity_id text,
	initiator text,
	requesters text[],
	predecessor uuid,
	parent uuid,
	started_at timestamp with time zone
);
CREATE TYPE public.commit_state AS (
	member integer,
	tenant_id integer,
	instance_id uuid,
	ordinal integer,
	waiting boolean,
	left_at timestamp with time zone,
	left_trigger text,
	left_actor text,
	id uuid,
	name text,
	entered_at timestamp with time zone,
	due_at timestamp with time zone,
	predecessors uuid[],
	entered_trigger text,
	caller text,
	needed integer,
	exclude text[],
	fallback text,
	priority smallint,
	forks uuid[],
	choices integer,
	deadlines text,
	subscriptions text,
	children text,
	unassignable_since timestamp with time zone,
	key text,
	data text,
	priority_name text,
	share text,
	blind boolean,
	call text
);
CREATE TYPE public.commit_subscription AS (
	member integer,
	tenant_id integer,
	correlation text,
	trigger text,
	entered_at timestamp with time zone,
	state_id uuid,
	instance_id uuid
);
CREATE TYPE public.commit_task AS (
	member integer,
	tenant_id integer,
	instance_id uuid,
	state_id uuid,
	ordinal integer,
	restricted boolean,
	id uuid,
	label text,
	candidates text,
	created_at timestamp with time zone,
	due_at timestamp with time zone,
	deadlines text,
	suspended text,
	status text,
	owner text,
	claimed_at timestamp with time zone,
	ended_at timestamp with time zone,
	ownership text,
	cancel_reason text
);

CREATE FUNCTION public.attribute_holders(wanted text, kind text, operators text[], bounds text[], before uuid, most integer) RETURNS uuid[]
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $_$
declare
    -- The indexed expression of this type, and the conversion of a bound.
    value text;
    bound text;
    clauses text := '';
    matches text;
    found uuid[];
begin
    case kind
        when 'text' then value := 'text_head'; bound := 'left(%L, 200)';
        when 'boolean' then value := 'boolean_value'; bound := '%L::boolean';
        when 'decimal' then value := 'decimal_value'; bound := '%L::numeric';
        when 'float' then value := 'float_value'; bound := '%L::float8';
        when 'timestamp' then value := 'timestamp_value'; bound := '%L::timestamptz';
        when 'bytes' then value := 'sha256(bytes_value)'; bound := 'sha256(%L::bytea)';
    end case;
    for n in 1 .. cardinality(operators) loop
        clauses := clauses || case operators[n]
            when 'eq' then format(' and %s = ' || bound, value, bounds[n])
            when 'in' then (
                select format(' and %s in (%s)', value, string_agg(format(bound, one), ', '))
                from unnest(bounds[n]::text[]) one
            )
            -- Only the head of a text is compared, so the bound itself is included.
            when 'gt' then format(' and %s %s ' || bound, value, case kind when 'text' then '>=' else '>' end, bounds[n])
            when 'lt' then format(' and %s %s ' || bound, value, case kind when 'text' then '<=' else '<' end, bounds[n])
            when 'gte' then format(' and %s >= ' || bound, value, bounds[n])
            when 'lte' then format(' and %s <= ' || bound, value, bounds[n])
            -- The upper bound is the prefix, filled with the last of all characters.
            when 'prefix' then (
                select format(' and %s between %L and %L', value, head, head || repeat(chr(1114111), 200 - length(head)))
                from left(bounds[n], 200) head
            )
            -- Other conditions are only checked on instances that have the attribute.
            else ''
        end;
    end loop;
    matches := format(
        'select instance_id from attribute where tenant_id = $1 and name = $2 and %s is not null',
        case kind when 'bytes' then 'bytes_value' else value end);
    if before is null then
        matches := matches || clauses || ' limit $3 + 1';
    elsif operators = array['eq'] or operators = array['in'] then
        -- For one value, the index is in the order of instances, so the newest of each value are enough.
        select format('select instance_id from (%s) m order by instance_id desc limit $3', string_agg(
            format('(%s and %s = %s and instance_id < $4 order by instance_id desc limit $3)',
                matches, value, format(bound, one)), ' union '))
        into matches
        from unnest(case operators[1] when 'in' then bounds[1]::text[] else bounds end) one;
    else
        -- Otherwise the whole range is read. The primary key is also in that order, but may read any number of instances
        -- without a match.
        matches := format(
            'select instance_id from (%s%s order by %s desc offset 0) m
            where instance_id < $4 order by instance_id desc limit $3', matches, clauses, value);
    end if;
    execute format('select coalesce(array_agg(m.instance_id), ''{}'') from (%s) m', matches)
        into found
        using nullif(current_setting('wrkflw.tenant', true), '')::int, wanted, most, before;
    return case when cardinality(found) <= most then found end;
end $_$;

CREATE FUNCTION public.begin_history() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.entity_is_free(in_tenant integer, kind text, entity text, as_sole boolean, besides uuid) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
declare
    place bigint := hashtextextended(entity, hashtextextended(kind, in_tenant));
begin
    if as_sole then
        perform pg_advisory_xact_lock(place);
        return not exists (
            select from instance i
            where i.tenant_id = in_tenant and i.entity_type = kind and i.entity_id = entity and i.id <> besides
              and i.status in ('RUNNING', 'SUSPENDED')
        );
    end if;
    perform pg_advisory_xact_lock_shared(place);
    return not exists (
        select from instance i
        where i.tenant_id = in_tenant and i.entity_type = kind and i.entity_id = entity and i.id <> besides
          and i.sole and i.status in ('RUNNING', 'SUSPENDED')
    );
end $$;

CREATE FUNCTION public.has_words(in_tenant integer, instance uuid, title text, summary text, entity text, wanted tsquery) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    select words_of(in_tenant, entity || ' ' || coalesce(title, '') || ' ' || coalesce(summary, '')) @@ wanted or exists (
        select from attribute a
        where a.tenant_id = in_tenant and a.instance_id = instance and a.text_value is not null
          and words_of(a.tenant_id, a.text_value) @@ wanted
    )
$$;

CREATE FUNCTION public.kept_replies(after_principal text, after_key text, most bigint) RETURNS TABLE(principal text, key text, command_id uuid, fingerprint bytea, status smallint, body_digest bytea, headers text)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
    select k.principal, k.key, k.command_id, k.fingerprint, k.status, sha256(convert_to(k.body, 'UTF8')), k.headers
    from idempotency_key k
    where k.tenant_id = nullif(current_setting('wrkflw.tenant', true), '')::int
      and (k.principal, k.key) > (after_principal, after_key)
    order by k.principal, k.key
    limit most
$$;

CREATE FUNCTION public.keys_taken_in_part() RETURNS boolean
    LANGUAGE plpgsql
    AS $$
begin
    raise unique_violation using message = 'some of the idempotency keys of one change are another command''s';
end $$;

CREATE FUNCTION public.leaves_in(digests bytea) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$ select least(greatest((octet_length($1) + 31) / 32, 1), 61) $_$;

CREATE FUNCTION public.leaves_of_run(leaf bigint, seq bigint, digests bytea) RETURNS TABLE(leaf bigint, seq bigint, digest bytea)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$
    select case when $1 > 9223372036854775000 then $1 else $1 + n end, case when $2 > 9223372036854775000 then $2 else $2 + n end,
        substring($3 from 32 * n::int + 1 for 32)
    from generate_series(0, leaves_in($3) - 1) n
$_$;

CREATE FUNCTION public.mark_access_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    -- Rows are locked in the order of tenants, so that statements of several tenants cannot deadlock.
    perform from tenant t where t.id in (select c.tenant_id from changed c) order by t.id for no key update;
    update tenant t set access_mark = gen_random_uuid() where t.id in (select c.tenant_id from changed c);
    return null;
end $$;

CREATE FUNCTION public.missing_events() RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
    select (select count(*) from audit_entry where event_seq is not null) + (select count(*) from checkpoint)
        - (select count(*) from outbox_event where not replayed) - (select count(*) from dead_letter) - (select sum(settled) from outbox_partition)
$$;

CREATE FUNCTION public.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    raise exception '% rows are never changed or deleted', tg_table_name using errcode = 'restrict_violation';
end $$;

CREATE FUNCTION public.run_end(first bigint, digests bytea) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$ select case when $1 > 9223372036854775000 then $1 else $1 + leaves_in($2) end $_$;

CREATE FUNCTION public.server_here() RETURNS text
    LANGUAGE sql
    SET search_path TO 'public', 'pg_temp'
    AS $$
    select system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' || d.oid || '/' || 'feed_epoch'::regclass::oid
    from pg_control_system(), pg_database d
    where d.datname = current_database()
$$;

CREATE FUNCTION public.version_words(in_tenant integer, key text, graph text) RETURNS tsvector
    LANGUAGE plpgsql IMMUTABLE
    AS $$
declare
    said json;
begin
    said := graph::json;
    return public.words_of(in_tenant, concat_ws(' ', key, said ->> 'title', said ->> 'description'));
exception when invalid_text_representation or untranslatable_character then
    return public.words_of(in_tenant, key);
end
$$;

CREATE FUNCTION public.versions_with_words(said text) RETURNS TABLE(key text, version integer)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
    select one.key, one.version
    from (
        select v.tenant_id, v.key, v.version from definition_version v
        where version_words(v.tenant_id, v.key, v.graph)
            @@ words_query(nullif(current_setting('wrkflw.tenant', true), '')::int, said)
        offset 0
    ) one
    where one.tenant_id = nullif(current_setting('wrkflw.tenant', true), '')::int
$$;

CREATE FUNCTION public.word_holders(said text, most integer) RETURNS uuid[]
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
declare
    tenant int := nullif(current_setting('wrkflw.tenant', true), '')::int;
    wanted tsquery := words_query(tenant, said);
    found uuid[];
    holds_all boolean;
begin
    with of_instance as materialized (
        select i.id, i.tenant_id from instance i
        where words_of(i.tenant_id, i.entity_id || ' ' || coalesce(i.title, '') || ' ' || coalesce(i.summary, '')) @@ wanted
        limit most + 1
    ), of_attribute as materialized (
        -- An instance may be here several times.
        select a.instance_id as id, a.tenant_id from attribute a
        where a.text_value is not null and words_of(a.tenant_id, a.text_value) @@ wanted
        limit most + 1
    )
    select array_agg(distinct one.id), (select count(*) from of_instance) <= most and (select count(*) from of_attribute) <= most
    into found, holds_all
    from (select * from of_instance union all select * from of_attribute) one where one.tenant_id = tenant;
    return case when holds_all and coalesce(cardinality(found), 0) <= most then coalesce(found, '{}') end;
end $$;

CREATE FUNCTION public.words_in(said text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$
    select string_to_array(translate(
        lower(left(said, 2000)), e'\t\n\r!"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~', repeat(' ', 35)), ' ')
$_$;

CREATE FUNCTION public.words_of(in_tenant integer, said text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    select array_to_tsvector(array(
        select in_tenant::text || ' ' || left(word, 40) from unnest(public.words_in(said)) word where word <> '' limit 64
    ))
$$;

CREATE FUNCTION public.words_query(in_tenant integer, said text) RETURNS tsquery
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    select string_agg(quote_literal(in_tenant::text || ' ' || left(word, 40)) || case when is_last then ':*' else '' end, ' & ')::tsquery
    from (
        select word, place = max(place) over () as is_last
        from unnest(public.words_in(said)) with ordinality as one (word, place) where word <> '' order by place limit 8
    ) first
$$;

CREATE TABLE public.absence (
    tenant_id integer NOT NULL,
    id uuid NOT NULL,
    person_id text NOT NULL,
    substitute_id text NOT NULL,
    definition_key text,
    active_from timestamp with time zone NOT NULL,
    active_until timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT absence_period_check CHECK ((active_from < active_until))
);

CREATE TABLE public.allocation (
    tenant_id integer NOT NULL,
    definition_key text NOT NULL,
    state text NOT NULL,
    person_id text NOT NULL,
    given_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE public.attribute (
    tenant_id integer NOT NULL,
    instance_id uuid NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    text_value text,
    boolean_value boolean,
    decimal_value numeric,
    float_value double precision,
    timestamp_value timestamp with time zone,
    bytes_value bytea,
    text_head text GENERATED ALWAYS AS ("left"(text_value, 200)) STORED COLLATE pg_catalog."C"
);

CREATE TABLE public.attribute_declaration (
    tenant_id integer NOT NULL,
    name text NOT NULL,
    definition_key text NOT NULL,
    type text NOT NULL
);
CREATE SEQUENCE public.event_pos
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.audit_entry (
    tenant_id integer NOT NULL,
    stream_kind text NOT NULL,
    stream_id uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    type text NOT NULL,
    revision integer NOT NULL,
    command_id uuid NOT NULL,
    actor text,
    task_id uuid,
    payload text NOT NULL,
    evidence text,
    salt bytea NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    hash bytea NOT NULL,
    event_seq bigint,
    traceparent text,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    pos bigint DEFAULT nextval('public.event_pos'::regclass) NOT NULL,
    CONSTRAINT audit_entry_stream_kind_check CHECK ((stream_kind = ANY (ARRAY['instance'::text, 'definition'::text, 'directory'::text, 'operation'::text])))
);
ALTER TABLE ONLY public.audit_entry ALTER COLUMN payload SET COMPRESSION lz4;
ALTER TABLE ONLY public.audit_entry ALTER COLUMN evidence SET COMPRESSION lz4;

CREATE TABLE public.audit_leaf (
    tenant_id integer NOT NULL,
    leaf bigint NOT NULL,
    stream_kind text NOT NULL,
    stream_id uuid NOT NULL,
    seq bigint NOT NULL,
    digests bytea NOT NULL
);

CREATE TABLE public.audit_stream (
    tenant_id integer NOT NULL,
    stream_kind text NOT NULL,
    stream_id uuid NOT NULL,
    seq bigint NOT NULL,
    head bytea NOT NULL
);

CREATE TABLE public.bulk_item (
    tenant_id integer NOT NULL,
    operation_id uuid NOT NULL,
    instance_id uuid NOT NULL,
    lease_until timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    result text,
    code text,
    detail text,
    revision integer,
    ended_at timestamp with time zone,
    CONSTRAINT bulk_item_result_check CHECK ((result = ANY (ARRAY['done'::text, 'refused'::text, 'failed'::text])))
);

CREATE TABLE public.bulk_operation (
    tenant_id integer NOT NULL,
    id uuid NOT NULL,
    action text NOT NULL,
    settings text NOT NULL,
    requested_by text NOT NULL,
    roles text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    total integer NOT NULL,
    more boolean NOT NULL,
    done integer DEFAULT 0 NOT NULL,
    refused integer DEFAULT 0 NOT NULL,
    failed integer DEFAULT 0 NOT NULL,
    taken_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    stopped_by text,
    ended_at timestamp with time zone,
    CONSTRAINT bulk_operation_action_check CHECK ((action = ANY (ARRAY['migrate'::text, 'cancel'::text])))
);

CREATE TABLE public.calendar (
    tenant_id integer NOT NULL,
    name text NOT NULL,
    settings text NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

CREATE TABLE public.checkpoint (
    tenant_id integer NOT NULL,
    number bigint NOT NULL,
    size bigint NOT NULL,
    root bytea NOT NULL,
    previous_root bytea NOT NULL,
    signed_at timestamp with time zone NOT NULL,
    key_id text NOT NULL,
    signature bytea NOT NULL,
    frontier bytea NOT NULL
);

CREATE TABLE public.checkpoint_cursor (
    one boolean DEFAULT true NOT NULL,
    pos bigint DEFAULT 0 NOT NULL,
    mark_pos bigint DEFAULT 0 NOT NULL,
    mark_xid bigint DEFAULT 0 NOT NULL,
    CONSTRAINT checkpoint_cursor_one_check CHECK (one)
);

CREATE TABLE public.component (
    digest bytea NOT NULL,
    bytes bytea NOT NULL,
    created_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.component ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE public.dead_letter (
    tenant_id integer NOT NULL,
    instance_id uuid NOT NULL,
    seq bigint NOT NULL,
    partition smallint NOT NULL,
    pos bigint NOT NULL,
    error text NOT NULL,
    attempts integer NOT NULL,
    parked_at timestamp with time zone NOT NULL
);

CREATE TABLE public.decision (
    tenant_id integer NOT NULL,
    task_id uuid NOT NULL,
    instance_id uuid NOT NULL,
    outcome text NOT NULL,
    actor text NOT NULL,
    on_behalf_of text,
    comment text,
    input text NOT NULL,
    decided_at timestamp with time zone NOT NULL,
    key_id text NOT NULL,
    mac_version smallint NOT NULL,
    mac bytea NOT NULL
);
ALTER TABLE ONLY public.decision ALTER COLUMN input SET COMPRESSION lz4;

CREATE TABLE public.definition (
    tenant_id integer NOT NULL,
    key text NOT NULL,
    id uuid NOT NULL,
    active_version integer,
    revision integer NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.definition_version (
    tenant_id integer NOT NULL,
    key text NOT NULL,
    version integer NOT NULL,
    digest bytea NOT NULL,
    config text NOT NULL,
    config_digest bytea NOT NULL,
    graph text NOT NULL,
    sdk text,
    wit text NOT NULL,
    published_at timestamp with time zone NOT NULL,
    published_by text NOT NULL,
    retired_at timestamp with time zone,
    retired_by text,
    stopped_at timestamp with time zone,
    stopped_by text,
    stop_reason text,
    restricted boolean DEFAULT false NOT NULL,
    note text
);

CREATE TABLE public.delegation_seal (
    tenant_id integer NOT NULL,
    instance_id uuid NOT NULL,
    seq bigint NOT NULL,
    key_id text NOT NULL,
    mac_version smallint NOT NULL,
    mac bytea NOT NULL
);

CREATE TABLE public.descendant_count (
    tenant_id integer NOT NULL,
    root_id uuid NOT NULL,
    started integer NOT NULL
)
WITH (fillfactor='80');

CREATE TABLE public.descendant_place (
    tenant_id integer NOT NULL,
    instance_id uuid NOT NULL,
    root_id uuid NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_cost_delay='0');

CREATE TABLE public.draft (
    tenant_id integer NOT NULL,
    person text NOT NULL,
    task_id uuid NOT NULL,
    comment text NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

CREATE TABLE public.engine_profile (
    digest bytea NOT NULL,
    profile text NOT NULL,
    recorded_at timestamp with time zone NOT NULL
);

CREATE TABLE public.feed_epoch (
    epoch integer NOT NULL,
    began_after bigint DEFAULT 0 NOT NULL,
    server text
);

CREATE TABLE public."group" (
    tenant_id integer NOT NULL,
    id text NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.host (
    id uuid NOT NULL,
    name text NOT NULL,
    version text NOT NULL,
    roles text[] NOT NULL,
    started_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL
);

CREATE TABLE public.idempotency_key (
    tenant_id integer NOT NULL,
    principal text NOT NULL,
    key text NOT NULL,
    fingerprint bytea NOT NULL,
    status smallint NOT NULL,
    body text NOT NULL,
    headers text NOT NULL,
    command_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.idempotency_key ALTER COLUMN body SET COMPRESSION lz4;

CREATE TABLE public.instance (
    tenant_id integer NOT NULL,
    id uuid NOT NULL,
    definition_key text NOT NULL,
    definition_version integer NOT NULL,
    revision integer NOT NULL,
    status text NOT NULL,
    outcome text,
    end_reason text,
    ended_by text,
    ended_at timestamp with time zone,
    entity_type text NOT NULL,
    entity_id text NOT NULL,
    initiator text NOT NULL,
    requesters text[] NOT NULL,
    predecessor uuid,
    parent uuid,
    data text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    audit_seq bigint NOT NULL,
    audit_head bytea NOT NULL,
    event_seq bigint NOT NULL,
    state_instances integer NOT NULL,
    suspended_at timestamp with time zone,
    suspended_by text,
    suspend_reason text,
    buffered_signals text,
    title text,
    summary text,
    sole boolean DEFAULT false NOT NULL,
    observers text[],
    CONSTRAINT instance_status_check CHECK ((status = ANY (ARRAY['RUNNING'::text, 'SUSPENDED'::text, 'COMPLETED'::text, 'CANCELLED'::text])))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_cost_delay='0');
ALTER TABLE ONLY public.instance ALTER COLUMN data SET COMPRESSION lz4;

CREATE TABLE public.job (
    tenant_id integer NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    instance_id uuid NOT NULL,
    due_at timestamp with time zone NOT NULL,
    payload text NOT NULL,
    lease_until timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    last_error text,
    service text,
    claim uuid,
    CONSTRAINT job_kind_check CHECK ((kind = ANY (ARRAY['deadline'::text, 'start_child'::text, 'cancel_child'::text, 'child_ended'::text, 'match_signals'::text, 'deliver_signal'::text, 'reassess_instance'::text, 'call_service'::text]))),
    CONSTRAINT job_service_check CHECK (((service IS NOT NULL) = (kind = 'call_service'::text)))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_cost_delay='0');

CREATE TABLE public.manager (
    tenant_id integer NOT NULL,
    person_id text NOT NULL,
    manager_id text NOT NULL,
    valid_from timestamp with time zone NOT NULL,
    valid_to timestamp with time zone
);

CREATE TABLE public.membership (
    tenant_id integer NOT NULL,
    person_id text NOT NULL,
    group_id text NOT NULL,
    valid_from timestamp with time zone NOT NULL,
    valid_to timestamp with time zone
);

CREATE TABLE public.muted_notification (
    tenant_id integer NOT NULL,
    person_id text NOT NULL,
    kind text NOT NULL,
    CONSTRAINT muted_notification_kind_check CHECK ((kind = ANY (ARRAY['ASSIGNMENT_CREATED'::text, 'STATUS_CHANGED'::text, 'MENTION'::text, 'TIMEOUT_WARNING'::text, 'ESCALATION'::text])))
);

CREATE TABLE public.notification (
    tenant_id integer NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    recipient_kind text NOT NULL,
    recipient text NOT NULL,
    instance_id uuid NOT NULL,
    state_id uuid,
    task_id uuid,
    event_id uuid NOT NULL,
    due_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    sent_at timestamp with time zone,
    read_at timestamp with time zone,
    made_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT notification_kind_check CHECK ((kind = ANY (ARRAY['ASSIGNMENT_CREATED'::text, 'STATUS_CHANGED'::text, 'MENTION'::text, 'TIMEOUT_WARNING'::text, 'ESCALATION'::text]))),
    CONSTRAINT notification_recipient_kind_check CHECK ((recipient_kind = ANY (ARRAY['user'::text, 'group'::text])))
);

CREATE TABLE public.notifier_cursor (
    tenant_id integer NOT NULL,
    epoch integer NOT NULL,
    xid xid8 NOT NULL,
    pos bigint NOT NULL,
    moved_at timestamp with time zone NOT NULL
);

CREATE TABLE public.outbox_event (
    partition smallint NOT NULL,
    pos bigint NOT NULL,
    tenant_id integer NOT NULL,
    instance_id uuid NOT NULL,
    seq bigint NOT NULL,
    replayed boolean DEFAULT false NOT NULL
)
WITH (autovacuum_vacuum_threshold='1000', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_cost_delay='0');

CREATE TABLE public.outbox_partition (
    partition smallint NOT NULL,
    floor bigint DEFAULT 0 NOT NULL,
    polled_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    retry_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    last_error text,
    settled bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.participant (
    tenant_id integer NOT NULL,
    instance_id uuid NOT NULL,
    kind text NOT NULL,
    principal text NOT NULL,
    CONSTRAINT participant_kind_check CHECK ((kind = ANY (ARRAY['user'::text, 'group'::text, 'observer'::text])))
);

CREATE TABLE public.person (
    tenant_id integer NOT NULL,
    id text NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.preference (
    tenant_id integer NOT NULL,
    person text NOT NULL,
    language text,
    time_zone text,
    theme text,
    CONSTRAINT preference_theme_check CHECK ((theme = ANY (ARRAY['light'::text, 'dark'::text])))
);

CREATE TABLE public.reassessment (
    tenant_id integer NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    principal text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    stage text DEFAULT 'offered'::text NOT NULL,
    after uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    lease_until timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    closing boolean DEFAULT false NOT NULL,
    CONSTRAINT reassessment_kind_check CHECK ((kind = ANY (ARRAY['user'::text, 'group'::text]))),
    CONSTRAINT reassessment_stage_check CHECK ((stage = ANY (ARRAY['offered'::text, 'owned'::text, 'substituted'::text, 'unassignable'::text])))
);

CREATE TABLE public.refused_attempt (
    tenant_id integer NOT NULL,
    id uuid NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    instance_id uuid,
    task_id uuid,
    code text NOT NULL,
    detail text NOT NULL,
    request_id text,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    pos bigint DEFAULT nextval('public.event_pos'::regclass) NOT NULL
);

CREATE TABLE public.role_permission (
    tenant_id integer NOT NULL,
    role text NOT NULL,
    permission text NOT NULL
);

CREATE TABLE public.saved_view (
    tenant_id integer NOT NULL,
    person text NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    query text NOT NULL,
    is_default boolean NOT NULL
);

CREATE TABLE public.series_point (
    tenant_id integer NOT NULL,
    series text NOT NULL,
    at timestamp with time zone NOT NULL,
    minutes smallint NOT NULL,
    label text NOT NULL,
    value bigint NOT NULL,
    CONSTRAINT series_point_minutes_check CHECK ((minutes = ANY (ARRAY[1, 60]))),
    CONSTRAINT series_point_series_check CHECK ((series = ANY (ARRAY['decisions'::text, 'starts'::text, 'refusals'::text, 'events_waiting'::text, 'events_oldest_seconds'::text, 'deliveries_waiting'::text, 'deliveries_oldest_seconds'::text, 'jobs_failing'::text])))
)
WITH (fillfactor='80');

CREATE TABLE public.session (
    tenant_id integer NOT NULL,
    id uuid NOT NULL,
    secret_digest bytea NOT NULL,
    person text NOT NULL,
    roles text[] NOT NULL,
    client text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    provider_session text,
    id_token text
);

CREATE TABLE public.signal (
    tenant_id integer NOT NULL,
    instance_id uuid NOT NULL,
    signal_id text NOT NULL,
    received_at timestamp with time zone NOT NULL,
    identity bytea DEFAULT '\x'::bytea NOT NULL,
    content bytea DEFAULT '\x'::bytea NOT NULL,
    entry_id uuid
);

CREATE TABLE public.signal_inbox (
    tenant_id integer NOT NULL,
    correlation text NOT NULL,
    signal_id text NOT NULL,
    trigger text NOT NULL,
    definition_key text,
    input text NOT NULL,
    sender text NOT NULL,
    received_at timestamp with time zone NOT NULL,
    instance_id uuid,
    delivered_at timestamp with time zone,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    sender_id text GENERATED ALWAYS AS (COALESCE(((sender)::jsonb ->> 'id'::text), ''::text)) STORED NOT NULL,
    identity uuid GENERATED ALWAYS AS ((md5(((trigger || chr(10)) || COALESCE(((sender)::jsonb ->> 'id'::text), ''::text))))::uuid) STORED NOT NULL,
    refusal text,
    to_all boolean DEFAULT false NOT NULL,
    after_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    after_state uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    taken integer DEFAULT 0 NOT NULL,
    refused integer DEFAULT 0 NOT NULL,
    acknowledged boolean DEFAULT false NOT NULL
);

CREATE TABLE public.signal_subscription (
    tenant_id integer NOT NULL,
    correlation text NOT NULL,
    trigger text NOT NULL,
    entered_at timestamp with time zone NOT NULL,
    state_id uuid NOT NULL,
    instance_id uuid NOT NULL,
    subscribed_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.state_instance (
    tenant_id integer NOT NULL,
    instance_id uuid NOT NULL,
    id uuid NOT NULL,
    ordinal integer NOT NULL,
    name text NOT NULL,
    entered_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    predecessors uuid[] NOT NULL,
    entered_trigger text,
    caller text,
    needed integer NOT NULL,
    exclude text[] NOT NULL,
    fallback text,
    priority smallint NOT NULL,
    left_at timestamp with time zone,
    left_trigger text,
    left_actor text,
    forks uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    choices integer DEFAULT 0 NOT NULL,
    waiting boolean DEFAULT false NOT NULL,
    deadlines text,
    subscriptions text,
    children text,
    unassignable_since timestamp with time zone,
    key text,
    data text,
    priority_name text,
    share text,
    blind boolean DEFAULT false NOT NULL,
    call text
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_cost_delay='0');

CREATE TABLE public.subscription (
    tenant_id integer NOT NULL,
    id uuid NOT NULL,
    url text NOT NULL,
    types text[] NOT NULL,
    definition_key text,
    secret bytea NOT NULL,
    active boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    disabled_reason text,
    since_epoch integer,
    since_snapshot pg_snapshot,
    disabled_epoch integer,
    disabled_snapshot pg_snapshot,
    enabled_epoch integer,
    enabled_snapshot pg_snapshot
);

CREATE TABLE public.task (
    tenant_id integer NOT NULL,
    id uuid NOT NULL,
    instance_id uuid NOT NULL,
    state_id uuid NOT NULL,
    ordinal integer NOT NULL,
    label text NOT NULL,
    status text NOT NULL,
    owner text,
    candidates text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    claimed_at timestamp with time zone,
    ended_at timestamp with time zone,
    ownership text,
    due_at timestamp with time zone,
    deadlines text,
    suspended text,
    cancel_reason text,
    restricted boolean DEFAULT false NOT NULL,
    CONSTRAINT task_status_check CHECK ((status = ANY (ARRAY['PENDING'::text, 'CLAIMED'::text, 'COMPLETED'::text, 'CANCELLED'::text])))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_cost_delay='0');

CREATE TABLE public.task_candidate (
    tenant_id integer NOT NULL,
    kind text NOT NULL,
    principal text NOT NULL,
    task_id uuid NOT NULL,
    CONSTRAINT task_candidate_kind_check CHECK ((kind = ANY (ARRAY['user'::text, 'group'::text])))
);

CREATE TABLE public.tenant (
    id integer NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    access_mark uuid DEFAULT gen_random_uuid() NOT NULL,
    checkpoint_pos bigint
);
ALTER TABLE public.tenant ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.tenant_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.webhook_attempt (
    tenant_id integer NOT NULL,
    subscription_id uuid NOT NULL,
    message_id uuid NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    status smallint,
    duration_ms integer NOT NULL,
    error text
);

CREATE TABLE public.webhook_delivery (
    tenant_id integer NOT NULL,
    subscription_id uuid NOT NULL,
    message_id uuid NOT NULL,
    notifies boolean NOT NULL,
    instance_id uuid NOT NULL,
    seq bigint NOT NULL,
    state text DEFAULT 'pending'::text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    lease_until timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    last_status smallint,
    last_error text,
    definition_version integer,
    test boolean DEFAULT false NOT NULL,
    CONSTRAINT webhook_delivery_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'dead'::text, 'discarded'::text])))
);
ALTER TABLE ONLY public.absence
    ADD CONSTRAINT absence_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.allocation
    ADD CONSTRAINT allocation_pkey PRIMARY KEY (tenant_id, definition_key, state, person_id);
ALTER TABLE ONLY public.attribute_declaration
    ADD CONSTRAINT attribute_declaration_pkey PRIMARY KEY (tenant_id, name, definition_key, type);
ALTER TABLE ONLY public.attribute
    ADD CONSTRAINT attribute_pkey PRIMARY KEY (tenant_id, instance_id, name);
ALTER TABLE ONLY public.audit_entry
    ADD CONSTRAINT audit_entry_pkey PRIMARY KEY (tenant_id, stream_kind, stream_id, seq);
ALTER TABLE ONLY public.audit_leaf
    ADD CONSTRAINT audit_leaf_pkey PRIMARY KEY (tenant_id, leaf);
ALTER TABLE ONLY public.audit_stream
    ADD CONSTRAINT audit_stream_pkey PRIMARY KEY (tenant_id, stream_kind, stream_id);
ALTER TABLE ONLY public.bulk_item
    ADD CONSTRAINT bulk_item_pkey PRIMARY KEY (tenant_id, operation_id, instance_id);
ALTER TABLE ONLY public.bulk_operation
    ADD CONSTRAINT bulk_operation_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.calendar
    ADD CONSTRAINT calendar_pkey PRIMARY KEY (tenant_id, name);
ALTER TABLE ONLY public.checkpoint_cursor
    ADD CONSTRAINT checkpoint_cursor_pkey PRIMARY KEY (one);
ALTER TABLE ONLY public.checkpoint
    ADD CONSTRAINT checkpoint_pkey PRIMARY KEY (tenant_id, number);
ALTER TABLE ONLY public.component
    ADD CONSTRAINT component_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.dead_letter
    ADD CONSTRAINT dead_letter_pkey PRIMARY KEY (tenant_id, instance_id, seq);
ALTER TABLE ONLY public.decision
    ADD CONSTRAINT decision_pkey PRIMARY KEY (tenant_id, task_id);
ALTER TABLE ONLY public.definition
    ADD CONSTRAINT definition_pkey PRIMARY KEY (tenant_id, key);
ALTER TABLE ONLY public.definition_version
    ADD CONSTRAINT definition_version_content_key UNIQUE (tenant_id, key, digest, config_digest);
ALTER TABLE ONLY public.definition_version
    ADD CONSTRAINT definition_version_pkey PRIMARY KEY (tenant_id, key, version);
ALTER TABLE ONLY public.delegation_seal
    ADD CONSTRAINT delegation_seal_pkey PRIMARY KEY (tenant_id, instance_id, seq);
ALTER TABLE ONLY public.descendant_count
    ADD CONSTRAINT descendant_count_pkey PRIMARY KEY (tenant_id, root_id);
ALTER TABLE ONLY public.descendant_place
    ADD CONSTRAINT descendant_place_pkey PRIMARY KEY (tenant_id, instance_id);
ALTER TABLE ONLY public.draft
    ADD CONSTRAINT draft_pkey PRIMARY KEY (tenant_id, person, task_id);
ALTER TABLE ONLY public.engine_profile
    ADD CONSTRAINT engine_profile_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.feed_epoch
    ADD CONSTRAINT feed_epoch_pkey PRIMARY KEY (epoch);
ALTER TABLE ONLY public."group"
    ADD CONSTRAINT group_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.host
    ADD CONSTRAINT host_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.idempotency_key
    ADD CONSTRAINT idempotency_key_pkey PRIMARY KEY (tenant_id, principal, key);
ALTER TABLE ONLY public.instance
    ADD CONSTRAINT instance_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.manager
    ADD CONSTRAINT manager_pkey PRIMARY KEY (tenant_id, person_id, valid_from);
ALTER TABLE ONLY public.membership
    ADD CONSTRAINT membership_pkey PRIMARY KEY (tenant_id, person_id, group_id, valid_from);
ALTER TABLE ONLY public.muted_notification
    ADD CONSTRAINT muted_notification_pkey PRIMARY KEY (tenant_id, person_id, kind);
ALTER TABLE ONLY public.notification
    ADD CONSTRAINT notification_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.notifier_cursor
    ADD CONSTRAINT notifier_cursor_pkey PRIMARY KEY (tenant_id);
ALTER TABLE ONLY public.outbox_event
    ADD CONSTRAINT outbox_event_pkey PRIMARY KEY (partition, pos);
ALTER TABLE ONLY public.outbox_partition
    ADD CONSTRAINT outbox_partition_pkey PRIMARY KEY (partition);
ALTER TABLE ONLY public.participant
    ADD CONSTRAINT participant_pkey PRIMARY KEY (tenant_id, instance_id, kind, principal);
ALTER TABLE ONLY public.person
    ADD CONSTRAINT person_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.preference
    ADD CONSTRAINT preference_pkey PRIMARY KEY (tenant_id, person);
ALTER TABLE ONLY public.reassessment
    ADD CONSTRAINT reassessment_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.refused_attempt
    ADD CONSTRAINT refused_attempt_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.role_permission
    ADD CONSTRAINT role_permission_pkey PRIMARY KEY (tenant_id, role, permission);
ALTER TABLE ONLY public.saved_view
    ADD CONSTRAINT saved_view_pkey PRIMARY KEY (tenant_id, person, id);
ALTER TABLE ONLY public.series_point
    ADD CONSTRAINT series_point_pkey PRIMARY KEY (tenant_id, series, at, minutes, label);
ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_secret_digest_key UNIQUE (tenant_id, secret_digest);
ALTER TABLE ONLY public.signal_inbox
    ADD CONSTRAINT signal_inbox_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.signal
    ADD CONSTRAINT signal_pkey PRIMARY KEY (tenant_id, instance_id, signal_id, identity);
ALTER TABLE ONLY public.signal_subscription
    ADD CONSTRAINT signal_subscription_pkey PRIMARY KEY (tenant_id, correlation, trigger, entered_at, state_id);
ALTER TABLE ONLY public.state_instance
    ADD CONSTRAINT state_instance_pkey PRIMARY KEY (tenant_id, instance_id, id);
ALTER TABLE ONLY public.subscription
    ADD CONSTRAINT subscription_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.task_candidate
    ADD CONSTRAINT task_candidate_pkey PRIMARY KEY (tenant_id, kind, principal, task_id);
ALTER TABLE ONLY public.task
    ADD CONSTRAINT task_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.tenant
    ADD CONSTRAINT tenant_name_key UNIQUE (name);
ALTER TABLE ONLY public.tenant
    ADD CONSTRAINT tenant_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_attempt
    ADD CONSTRAINT webhook_attempt_pkey PRIMARY KEY (tenant_id, subscription_id, message_id, at);
ALTER TABLE ONLY public.webhook_delivery
    ADD CONSTRAINT webhook_delivery_pkey PRIMARY KEY (tenant_id, subscription_id, message_id);
CREATE INDEX absence_by_person ON public.absence USING btree (tenant_id, person_id, active_until);
CREATE INDEX absence_by_substitute ON public.absence USING btree (tenant_id, substitute_id, active_until);
CREATE INDEX attribute_by_boolean ON public.attribute USING btree (tenant_id, name, boolean_value, instance_id) WHERE (boolean_value IS NOT NULL);
CREATE INDEX attribute_by_bytes ON public.attribute USING btree (tenant_id, name, sha256(bytes_value), instance_id) WHERE (bytes_value IS NOT NULL);
CREATE INDEX attribute_by_decimal ON public.attribute USING btree (tenant_id, name, decimal_value, instance_id) WHERE (decimal_value IS NOT NULL);
CREATE INDEX attribute_by_float ON public.attribute USING btree (tenant_id, name, float_value, instance_id) WHERE (float_value IS NOT NULL);
CREATE INDEX attribute_by_text ON public.attribute USING btree (tenant_id, name, text_head, instance_id) WHERE (text_head IS NOT NULL);
CREATE INDEX attribute_by_timestamp ON public.attribute USING btree (tenant_id, name, timestamp_value, instance_id) WHERE (timestamp_value IS NOT NULL);
CREATE INDEX attribute_by_word ON public.attribute USING gin (public.words_of(tenant_id, text_value)) WITH (gin_pending_list_limit='512') WHERE (text_value IS NOT NULL);
CREATE INDEX attribute_declaration_by_definition ON public.attribute_declaration USING btree (tenant_id, definition_key, name);
CREATE INDEX audit_entry_discarded ON public.audit_entry USING btree (tenant_id, seq) WHERE ((stream_kind = 'operation'::text) AND (type = 'DEAD_LETTER_DISCARDED'::text));
CREATE INDEX audit_entry_feed ON public.audit_entry USING btree (tenant_id, xid, pos) WHERE (event_seq IS NOT NULL);
CREATE INDEX audit_entry_messages ON public.audit_entry USING btree (tenant_id, stream_id, type, seq) WHERE ((stream_kind = 'instance'::text) AND (type = ANY (ARRAY['FLOW_COMMENTED'::text, 'SIGNAL_RECEIVED'::text])));
CREATE INDEX audit_entry_migrated ON public.audit_entry USING btree (tenant_id, stream_id, seq) WHERE ((stream_kind = 'instance'::text) AND (type = 'FLOW_MIGRATED'::text));
CREATE INDEX audit_entry_pos ON public.audit_entry USING btree (((pos + 0)));
CREATE INDEX audit_entry_retitled ON public.audit_entry USING btree (tenant_id, stream_id, seq) WHERE ((stream_kind = 'instance'::text) AND (type = 'FLOW_RETITLED'::text));
CREATE UNIQUE INDEX audit_leaf_by_entry ON public.audit_leaf USING btree (tenant_id, stream_kind, stream_id, seq);
CREATE INDEX bulk_item_open ON public.bulk_item USING btree (tenant_id, operation_id, lease_until) WHERE (result IS NULL);
CREATE INDEX bulk_operation_by_age ON public.bulk_operation USING btree (tenant_id, created_at, id);
CREATE INDEX bulk_operation_open ON public.bulk_operation USING btree (taken_at) WHERE (ended_at IS NULL);
CREATE INDEX bulk_operation_running ON public.bulk_operation USING btree (tenant_id) WHERE (ended_at IS NULL);
CREATE INDEX checkpoint_signed_at ON public.checkpoint USING btree (tenant_id, signed_at);
CREATE INDEX decision_period ON public.decision USING brin (decided_at) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX definition_version_by_word ON public.definition_version USING gin (public.version_words(tenant_id, key, graph)) WITH (fastupdate=off);
CREATE INDEX definition_version_restricted ON public.definition_version USING btree (tenant_id) WHERE restricted;
CREATE INDEX definition_version_stopped ON public.definition_version USING btree (tenant_id, key, version) WHERE (stopped_at IS NOT NULL);
CREATE INDEX descendant_place_root ON public.descendant_place USING btree (tenant_id, root_id);
CREATE INDEX group_by_id ON public."group" USING btree (tenant_id, id COLLATE "C");
CREATE INDEX group_by_name ON public."group" USING btree (tenant_id, lower(name) COLLATE "C", id COLLATE "C") WHERE (name IS NOT NULL);
CREATE INDEX idempotency_key_age ON public.idempotency_key USING brin (created_at);
CREATE INDEX instance_by_definition ON public.instance USING btree (tenant_id, definition_key, id) WHERE (definition_key IS NOT NULL);
CREATE INDEX instance_by_entity ON public.instance USING btree (tenant_id, entity_type, entity_id, id) WHERE ((entity_type IS NOT NULL) AND (entity_id IS NOT NULL));
CREATE INDEX instance_by_initiator ON public.instance USING btree (tenant_id, initiator, id) WHERE (initiator IS NOT NULL);
CREATE INDEX instance_by_parent ON public.instance USING btree (tenant_id, parent, id) WHERE (parent IS NOT NULL);
CREATE INDEX instance_by_predecessor ON public.instance USING btree (tenant_id, predecessor) WHERE (predecessor IS NOT NULL);
CREATE INDEX instance_by_status ON public.instance USING btree (tenant_id, status, id) WHERE (status IS NOT NULL);
CREATE INDEX instance_by_word ON public.instance USING gin (public.words_of(tenant_id, ((((entity_id || ' '::text) || COALESCE(title, ''::text)) || ' '::text) || COALESCE(summary, ''::text)))) WITH (gin_pending_list_limit='512');
CREATE UNIQUE INDEX instance_running_key ON public.instance USING btree (tenant_id, definition_key, entity_type, entity_id) WHERE (status = ANY (ARRAY['RUNNING'::text, 'SUSPENDED'::text]));
CREATE UNIQUE INDEX instance_sole_key ON public.instance USING btree (tenant_id, entity_type, entity_id) WHERE (sole AND (status = ANY (ARRAY['RUNNING'::text, 'SUSPENDED'::text])));
CREATE INDEX instance_unrestricted ON public.instance USING btree (tenant_id, definition_key, id) WHERE ((definition_key IS NOT NULL) AND (observers IS NULL));
CREATE INDEX job_by_instance ON public.job USING btree (tenant_id, instance_id, due_at, id);
CREATE INDEX job_call ON public.job USING btree (service, GREATEST(due_at, lease_until)) WHERE (service IS NOT NULL);
CREATE INDEX job_call_share ON public.job USING btree (service, tenant_id, GREATEST(due_at, lease_until)) WHERE (service IS NOT NULL);
CREATE INDEX job_failing ON public.job USING btree (tenant_id, id) WHERE (last_error IS NOT NULL);
CREATE INDEX job_ready ON public.job USING btree (GREATEST(due_at, lease_until)) WHERE (service IS NULL);
CREATE INDEX job_share ON public.job USING btree (tenant_id, (
CASE
    WHEN (kind = 'start_child'::text) THEN 1
    ELSE 0
END), GREATEST(due_at, lease_until)) WHERE (service IS NULL);
CREATE INDEX job_stuck ON public.job USING btree (id) WHERE (attempts >= 10);
CREATE UNIQUE INDEX manager_current ON public.manager USING btree (tenant_id, person_id) WHERE (valid_to IS NULL);
CREATE INDEX manager_reports ON public.manager USING btree (tenant_id, manager_id, person_id) WHERE (valid_to IS NULL);
CREATE UNIQUE INDEX membership_current ON public.membership USING btree (tenant_id, group_id, person_id) WHERE ((valid_to IS NULL) AND (group_id IS NOT NULL));
CREATE INDEX notification_age ON public.notification USING brin (made_at) WITH (autosummarize='on');
CREATE INDEX notification_by_recipient ON public.notification USING btree (tenant_id, recipient_kind, recipient, kind, ((read_at IS NOT NULL)), id);
CREATE INDEX participant_by_principal ON public.participant USING btree (tenant_id, kind, principal, instance_id);
CREATE INDEX person_by_id ON public.person USING btree (tenant_id, id COLLATE "C");
CREATE INDEX person_by_name ON public.person USING btree (tenant_id, lower(name) COLLATE "C", id COLLATE "C") WHERE (name IS NOT NULL);
CREATE INDEX reassessment_ready ON public.reassessment USING btree (GREATEST(due_at, lease_until));
CREATE INDEX reassessment_share ON public.reassessment USING btree (tenant_id, GREATEST(due_at, lease_until));
CREATE INDEX reassessment_unclaimed ON public.reassessment USING btree (tenant_id, kind, principal) WHERE (lease_until IS NULL);
CREATE INDEX refused_attempt_by_code ON public.refused_attempt USING btree (tenant_id, code, occurred_at, id);
CREATE INDEX refused_attempt_by_time ON public.refused_attempt USING btree (tenant_id, occurred_at, id);
CREATE INDEX refused_attempt_period ON public.refused_attempt USING brin (occurred_at) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX refused_attempt_pos ON public.refused_attempt USING btree (pos);
CREATE INDEX series_point_age ON public.series_point USING btree (minutes, at);
CREATE INDEX session_by_expiry ON public.session USING btree (expires_at);
CREATE INDEX session_by_person ON public.session USING btree (person, tenant_id, id);
CREATE INDEX session_by_provider_session ON public.session USING btree (provider_session) WHERE (provider_session IS NOT NULL);
CREATE INDEX signal_by_age ON public.signal USING brin (received_at);
CREATE INDEX signal_inbox_by_age ON public.signal_inbox USING btree (received_at);
CREATE INDEX signal_inbox_by_sender ON public.signal_inbox USING btree (tenant_id, sender_id, correlation) INCLUDE (received_at, to_all) WHERE (delivered_at IS NULL);
CREATE UNIQUE INDEX signal_inbox_identity ON public.signal_inbox USING btree (tenant_id, correlation, signal_id, identity);
CREATE INDEX signal_inbox_undelivered ON public.signal_inbox USING btree (tenant_id, correlation, received_at, signal_id) WHERE (delivered_at IS NULL);
CREATE INDEX signal_subscription_by_instance ON public.signal_subscription USING btree (tenant_id, instance_id);
CREATE INDEX state_instance_active ON public.state_instance USING btree (tenant_id, name, instance_id) WHERE (left_at IS NULL);
CREATE INDEX state_instance_due ON public.state_instance USING btree (tenant_id, due_at, instance_id) WHERE ((left_at IS NULL) AND (due_at IS NOT NULL));
CREATE INDEX state_instance_since ON public.state_instance USING btree (tenant_id, entered_at, instance_id) WHERE (left_at IS NULL);
CREATE INDEX state_instance_unassignable ON public.state_instance USING btree (tenant_id, instance_id) WHERE ((unassignable_since IS NOT NULL) AND (left_at IS NULL));
CREATE INDEX task_by_instance ON public.task USING btree (tenant_id, instance_id, state_id);
CREATE INDEX task_by_owner ON public.task USING btree (tenant_id, owner, id) WHERE (status = 'CLAIMED'::text);
CREATE INDEX task_candidate_by_task ON public.task_candidate USING btree (tenant_id, task_id);
CREATE INDEX task_due ON public.task USING btree (tenant_id, due_at, id) WHERE ((status = ANY (ARRAY['PENDING'::text, 'CLAIMED'::text])) AND (due_at IS NOT NULL));
CREATE INDEX task_ended ON public.task USING btree (tenant_id, owner, ended_at, id) WHERE ((owner IS NOT NULL) AND (ended_at IS NOT NULL));
CREATE INDEX task_open ON public.task USING btree (tenant_id, restricted, id) WHERE (status = ANY (ARRAY['PENDING'::text, 'CLAIMED'::text]));
CREATE INDEX task_substituted ON public.task USING btree (tenant_id, (((ownership)::jsonb ->> 'onBehalfOf'::text)), id) WHERE ((status = 'CLAIMED'::text) AND (ownership ~~ '{"onBehalfOf":%'::text));
CREATE INDEX webhook_attempt_age ON public.webhook_attempt USING brin (at) WITH (autosummarize='on');
CREATE INDEX webhook_delivery_age ON public.webhook_delivery USING brin (due_at) WITH (autosummarize='on');
CREATE INDEX webhook_delivery_dead ON public.webhook_delivery USING btree (tenant_id, subscription_id, message_id) WHERE (state = 'dead'::text);
CREATE INDEX webhook_delivery_discarded ON public.webhook_delivery USING btree (tenant_id, subscription_id, message_id) WHERE (state = 'discarded'::text);
CREATE INDEX webhook_delivery_due ON public.webhook_delivery USING btree (due_at) WHERE (state = 'pending'::text);
CREATE INDEX webhook_delivery_line ON public.webhook_delivery USING btree (tenant_id, subscription_id, due_at) WHERE (state = 'pending'::text);
CREATE INDEX webhook_delivery_pending ON public.webhook_delivery USING btree (tenant_id, subscription_id, message_id) WHERE (state = 'pending'::text);
CREATE TRIGGER absence_added AFTER INSERT ON public.absence REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER absence_changed AFTER UPDATE ON public.absence REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER absence_removed AFTER DELETE ON public.absence REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER audit_entry_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.audit_entry FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER audit_leaf_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.audit_leaf FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER calendar_added AFTER INSERT ON public.calendar REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER calendar_changed AFTER UPDATE ON public.calendar REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER calendar_removed AFTER DELETE ON public.calendar REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER checkpoint_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.checkpoint FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER decision_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.decision FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER definition_changed AFTER UPDATE ON public.definition REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER definition_version_changed AFTER UPDATE ON public.definition_version REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER delegation_seal_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.delegation_seal FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER manager_added AFTER INSERT ON public.manager REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER manager_changed AFTER UPDATE ON public.manager REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER manager_removed AFTER DELETE ON public.manager REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER membership_added AFTER INSERT ON public.membership REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER membership_changed AFTER UPDATE ON public.membership REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER membership_removed AFTER DELETE ON public.membership REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER person_added AFTER INSERT ON public.person REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER person_changed AFTER UPDATE ON public.person REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER person_removed AFTER DELETE ON public.person REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER refused_attempt_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.refused_attempt FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER role_permission_added AFTER INSERT ON public.role_permission REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER role_permission_changed AFTER UPDATE ON public.role_permission REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
CREATE TRIGGER role_permission_removed AFTER DELETE ON public.role_permission REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.mark_access_change();
ALTER TABLE public.absence ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.allocation ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.attribute ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.attribute_declaration ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.audit_entry ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.audit_leaf ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.audit_stream ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.bulk_item ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.bulk_operation ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.calendar ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.checkpoint ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.dead_letter ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.decision ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.definition ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.definition_version ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.delegation_seal ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.descendant_count ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.descendant_place ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.draft ENABLE ROW LEVEL SECURITY;
ALTER TABLE public."group" ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.idempotency_key ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.instance ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.job ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.manager ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.membership ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.muted_notification ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.notification ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.notifier_cursor ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.outbox_event ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.participant ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.person ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.preference ENABLE ROW LEVEL SECURITY;
CREATE POLICY reader ON public.absence FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.allocation FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.attribute FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.attribute_declaration FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.audit_entry FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.audit_leaf FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.audit_stream FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.bulk_item FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.bulk_operation FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.calendar FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.checkpoint FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.dead_letter FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.decision FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.definition FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.definition_version FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.delegation_seal FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.descendant_count FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.descendant_place FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.draft FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public."group" FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.idempotency_key FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.instance FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.job FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.manager FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.membership FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.muted_notification FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.notification FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.notifier_cursor FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.outbox_event FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.participant FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.person FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.preference FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.reassessment FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.refused_attempt FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.role_permission FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.saved_view FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.series_point FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.session FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.signal FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.signal_inbox FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.signal_subscription FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.state_instance FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.subscription FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.task FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.task_candidate FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.webhook_attempt FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
CREATE POLICY reader ON public.webhook_delivery FOR SELECT TO wrkflw_reader USING ((tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer));
ALTER TABLE public.reassessment ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.refused_attempt ENABLE ROW LEVEL SECURITY;
CREATE POLICY relay ON public.audit_entry TO wrkflw_relay USING (true) WITH CHECK (true);
CREATE POLICY relay ON public.checkpoint TO wrkflw_relay USING (true) WITH CHECK (true);
CREATE POLICY relay ON public.dead_letter TO wrkflw_relay USING (true) WITH CHECK (true);
CREATE POLICY relay ON public.definition_version TO wrkflw_relay USING (true) WITH CHECK (true);
CREATE POLICY relay ON public.instance TO wrkflw_relay USING (true) WITH CHECK (true);
CREATE POLICY relay ON public.outbox_event TO wrkflw_relay USING (true) WITH CHECK (true);
CREATE POLICY relay ON public.state_instance TO wrkflw_relay USING (true) WITH CHECK (true);
CREATE POLICY relay ON public.task TO wrkflw_relay USING (true) WITH CHECK (true);
ALTER TABLE public.role_permission ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.saved_view ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.series_point ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.session ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.signal ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.signal_inbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.signal_subscription ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.state_instance ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.subscription ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.task ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.task_candidate ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON public.attribute AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = attribute.tenant_id) AND (i.id = attribute.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.audit_entry AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((stream_kind <> 'instance'::text) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = audit_entry.tenant_id) AND (i.id = audit_entry.stream_id))
 LIMIT 1)));
CREATE POLICY visible ON public.bulk_item AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = bulk_item.tenant_id) AND (i.id = bulk_item.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.dead_letter AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = dead_letter.tenant_id) AND (i.id = dead_letter.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.decision AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = decision.tenant_id) AND (i.id = decision.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.delegation_seal AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = delegation_seal.tenant_id) AND (i.id = delegation_seal.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.descendant_place AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = descendant_place.tenant_id) AND (i.id = descendant_place.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.instance AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((observers IS NULL) OR (observers && ( SELECT (COALESCE(NULLIF(current_setting('wrkflw.groups'::text, true), ''::text), '{}'::text))::text[] AS "coalesce")) OR ( SELECT true
   FROM public.participant p
  WHERE ((p.tenant_id = instance.tenant_id) AND (p.instance_id = instance.id) AND (p.kind <> 'observer'::text) AND ((((p.kind || '
'::text) || p.principal) = ANY (( SELECT (COALESCE(NULLIF(current_setting('wrkflw.principals'::text, true), ''::text), '{}'::text))::text[] AS "coalesce")::text[])) OR (((((instance.definition_key || '
'::text) || p.kind) || '
'::text) || p.principal) = ANY (( SELECT (COALESCE(NULLIF(current_setting('wrkflw.principals'::text, true), ''::text), '{}'::text))::text[] AS "coalesce")::text[])) OR ((p.kind = 'user'::text) AND (( SELECT m.manager_id
           FROM public.manager m
          WHERE ((m.tenant_id = p.tenant_id) AND (m.person_id = p.principal) AND (m.valid_to IS NULL))) = ( SELECT current_setting('wrkflw.viewer'::text, true) AS current_setting)))))
 LIMIT 1)));
CREATE POLICY visible ON public.job AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = job.tenant_id) AND (i.id = job.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.notification AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = notification.tenant_id) AND (i.id = notification.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.outbox_event AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = outbox_event.tenant_id) AND (i.id = outbox_event.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.refused_attempt AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = refused_attempt.tenant_id) AND (i.id = refused_attempt.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.signal AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = signal.tenant_id) AND (i.id = signal.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.signal_inbox AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = signal_inbox.tenant_id) AND (i.id = signal_inbox.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.signal_subscription AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = signal_subscription.tenant_id) AND (i.id = signal_subscription.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.state_instance AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = state_instance.tenant_id) AND (i.id = state_instance.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.task AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((NOT restricted) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = task.tenant_id) AND (i.id = task.instance_id))
 LIMIT 1)));
CREATE POLICY visible ON public.webhook_delivery AS RESTRICTIVE FOR SELECT TO wrkflw_viewer USING (((instance_id IS NULL) OR ( SELECT true
   FROM public.instance i
  WHERE ((i.tenant_id = webhook_delivery.tenant_id) AND (i.id = webhook_delivery.instance_id))
 LIMIT 1)));
ALTER TABLE public.webhook_attempt ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.webhook_delivery ENABLE ROW LEVEL SECURITY;
CREATE POLICY writer ON public.absence TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.allocation TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.attribute TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.attribute_declaration TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.audit_entry TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.audit_leaf TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.audit_stream TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.bulk_item TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.bulk_operation TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.calendar TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.checkpoint TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.dead_letter TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.decision TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.definition TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.definition_version TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.delegation_seal TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.descendant_count TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.descendant_place TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.draft TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public."group" TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.idempotency_key TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.instance TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.job TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.manager TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.membership TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.muted_notification TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.notification TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.notifier_cursor TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.outbox_event TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.participant TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.person TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.preference TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.reassessment TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.refused_attempt TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.role_permission TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.saved_view TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.series_point TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.session TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.signal TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.signal_inbox TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.signal_subscription TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.state_instance TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.subscription TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.task TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.task_candidate TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.webhook_attempt TO wrkflw_writer USING (true) WITH CHECK (true);
CREATE POLICY writer ON public.webhook_delivery TO wrkflw_writer USING (true) WITH CHECK (true);
GRANT ALL ON SCHEMA public TO wrkflw_owner;
GRANT USAGE ON SCHEMA public TO wrkflw_writer;
GRANT USAGE ON SCHEMA public TO wrkflw_reader;
GRANT USAGE ON SCHEMA public TO wrkflw_relay;
REVOKE ALL ON FUNCTION public.attribute_holders(wanted text, kind text, operators text[], bounds text[], before uuid, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.attribute_holders(wanted text, kind text, operators text[], bounds text[], before uuid, most integer) TO wrkflw_reader;
REVOKE ALL ON FUNCTION public.begin_history() FROM PUBLIC;
GRANT ALL ON FUNCTION public.begin_history() TO wrkflw_writer;
REVOKE ALL ON FUNCTION public.entity_is_free(in_tenant integer, kind text, entity text, as_sole boolean, besides uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION public.entity_is_free(in_tenant integer, kind text, entity text, as_sole boolean, besides uuid) TO wrkflw_writer;
REVOKE ALL ON FUNCTION public.has_words(in_tenant integer, instance uuid, title text, summary text, entity text, wanted tsquery) FROM PUBLIC;
GRANT ALL ON FUNCTION public.has_words(in_tenant integer, instance uuid, title text, summary text, entity text, wanted tsquery) TO wrkflw_reader;
REVOKE ALL ON FUNCTION public.kept_replies(after_principal text, after_key text, most bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION public.kept_replies(after_principal text, after_key text, most bigint) TO wrkflw_reader;
REVOKE ALL ON FUNCTION public.keys_taken_in_part() FROM PUBLIC;
GRANT ALL ON FUNCTION public.keys_taken_in_part() TO wrkflw_writer;
REVOKE ALL ON FUNCTION public.leaves_in(digests bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION public.leaves_in(digests bytea) TO wrkflw_writer;
GRANT ALL ON FUNCTION public.leaves_in(digests bytea) TO wrkflw_reader;
REVOKE ALL ON FUNCTION public.leaves_of_run(leaf bigint, seq bigint, digests bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION public.leaves_of_run(leaf bigint, seq bigint, digests bytea) TO wrkflw_writer;
GRANT ALL ON FUNCTION public.leaves_of_run(leaf bigint, seq bigint, digests bytea) TO wrkflw_reader;
REVOKE ALL ON FUNCTION public.missing_events() FROM PUBLIC;
GRANT ALL ON FUNCTION public.missing_events() TO wrkflw_reader;
REVOKE ALL ON FUNCTION public.run_end(first bigint, digests bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION public.run_end(first bigint, digests bytea) TO wrkflw_writer;
GRANT ALL ON FUNCTION public.run_end(first bigint, digests bytea) TO wrkflw_reader;
REVOKE ALL ON FUNCTION public.version_words(in_tenant integer, key text, graph text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.version_words(in_tenant integer, key text, graph text) TO wrkflw_writer;
GRANT ALL ON FUNCTION public.version_words(in_tenant integer, key text, graph text) TO wrkflw_reader;
REVOKE ALL ON FUNCTION public.versions_with_words(said text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.versions_with_words(said text) TO wrkflw_reader;
REVOKE ALL ON FUNCTION public.word_holders(said text, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.word_holders(said text, most integer) TO wrkflw_reader;
REVOKE ALL ON FUNCTION public.words_in(said text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.words_in(said text) TO wrkflw_writer;
GRANT ALL ON FUNCTION public.words_in(said text) TO wrkflw_reader;
REVOKE ALL ON FUNCTION public.words_of(in_tenant integer, said text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.words_of(in_tenant integer, said text) TO wrkflw_writer;
GRANT ALL ON FUNCTION public.words_of(in_tenant integer, said text) TO wrkflw_reader;
REVOKE ALL ON FUNCTION public.words_query(in_tenant integer, said text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.words_query(in_tenant integer, said text) TO wrkflw_writer;
GRANT ALL ON FUNCTION public.words_query(in_tenant integer, said text) TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.absence TO wrkflw_writer;
GRANT SELECT ON TABLE public.absence TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.allocation TO wrkflw_writer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.attribute TO wrkflw_writer;
GRANT SELECT ON TABLE public.attribute TO wrkflw_reader;
GRANT SELECT,INSERT ON TABLE public.attribute_declaration TO wrkflw_writer;
GRANT SELECT ON TABLE public.attribute_declaration TO wrkflw_reader;
GRANT SELECT,USAGE ON SEQUENCE public.event_pos TO wrkflw_writer;
GRANT SELECT ON SEQUENCE public.event_pos TO wrkflw_relay;
GRANT SELECT,INSERT ON TABLE public.audit_entry TO wrkflw_writer;
GRANT SELECT ON TABLE public.audit_entry TO wrkflw_reader;
GRANT SELECT ON TABLE public.audit_entry TO wrkflw_relay;
GRANT SELECT,INSERT ON TABLE public.audit_leaf TO wrkflw_writer;
GRANT SELECT ON TABLE public.audit_leaf TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.audit_stream TO wrkflw_writer;
GRANT SELECT ON TABLE public.audit_stream TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.bulk_item TO wrkflw_writer;
GRANT SELECT ON TABLE public.bulk_item TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.bulk_operation TO wrkflw_writer;
GRANT SELECT ON TABLE public.bulk_operation TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.calendar TO wrkflw_writer;
GRANT SELECT ON TABLE public.calendar TO wrkflw_reader;
GRANT SELECT,INSERT ON TABLE public.checkpoint TO wrkflw_writer;
GRANT SELECT ON TABLE public.checkpoint TO wrkflw_reader;
GRANT SELECT ON TABLE public.checkpoint TO wrkflw_relay;
GRANT SELECT,UPDATE ON TABLE public.checkpoint_cursor TO wrkflw_writer;
GRANT SELECT ON TABLE public.checkpoint_cursor TO wrkflw_reader;
GRANT SELECT,INSERT ON TABLE public.component TO wrkflw_writer;
GRANT SELECT ON TABLE public.component TO wrkflw_reader;
GRANT SELECT,DELETE ON TABLE public.dead_letter TO wrkflw_writer;
GRANT SELECT ON TABLE public.dead_letter TO wrkflw_reader;
GRANT SELECT,INSERT ON TABLE public.dead_letter TO wrkflw_relay;
GRANT SELECT,INSERT ON TABLE public.decision TO wrkflw_writer;
GRANT SELECT ON TABLE public.decision TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.definition TO wrkflw_writer;
GRANT SELECT ON TABLE public.definition TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.definition_version TO wrkflw_writer;
GRANT SELECT ON TABLE public.definition_version TO wrkflw_reader;
GRANT SELECT ON TABLE public.definition_version TO wrkflw_relay;
GRANT SELECT,INSERT ON TABLE public.delegation_seal TO wrkflw_writer;
GRANT SELECT ON TABLE public.delegation_seal TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.descendant_count TO wrkflw_writer;
GRANT SELECT ON TABLE public.descendant_count TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE ON TABLE public.descendant_place TO wrkflw_writer;
GRANT SELECT ON TABLE public.descendant_place TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.draft TO wrkflw_writer;
GRANT SELECT ON TABLE public.draft TO wrkflw_reader;
GRANT SELECT,INSERT ON TABLE public.engine_profile TO wrkflw_writer;
GRANT SELECT ON TABLE public.engine_profile TO wrkflw_reader;
GRANT SELECT ON TABLE public.feed_epoch TO wrkflw_writer;
GRANT SELECT ON TABLE public.feed_epoch TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public."group" TO wrkflw_writer;
GRANT SELECT ON TABLE public."group" TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.host TO wrkflw_writer;
GRANT SELECT ON TABLE public.host TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.idempotency_key TO wrkflw_writer;
GRANT SELECT,INSERT,UPDATE ON TABLE public.instance TO wrkflw_writer;
GRANT SELECT ON TABLE public.instance TO wrkflw_reader;
GRANT SELECT ON TABLE public.instance TO wrkflw_relay;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.job TO wrkflw_writer;
GRANT SELECT ON TABLE public.job TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.manager TO wrkflw_writer;
GRANT SELECT ON TABLE public.manager TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.membership TO wrkflw_writer;
GRANT SELECT ON TABLE public.membership TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.muted_notification TO wrkflw_writer;
GRANT SELECT ON TABLE public.muted_notification TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.notification TO wrkflw_writer;
GRANT SELECT ON TABLE public.notification TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.notifier_cursor TO wrkflw_writer;
GRANT SELECT,INSERT ON TABLE public.outbox_event TO wrkflw_writer;
GRANT SELECT ON TABLE public.outbox_event TO wrkflw_reader;
GRANT SELECT,DELETE ON TABLE public.outbox_event TO wrkflw_relay;
GRANT SELECT ON TABLE public.outbox_partition TO wrkflw_writer;
GRANT SELECT,UPDATE ON TABLE public.outbox_partition TO wrkflw_relay;
GRANT UPDATE(floor) ON TABLE public.outbox_partition TO wrkflw_writer;
GRANT UPDATE(settled) ON TABLE public.outbox_partition TO wrkflw_writer;
GRANT SELECT,INSERT ON TABLE public.participant TO wrkflw_writer;
GRANT SELECT ON TABLE public.participant TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.person TO wrkflw_writer;
GRANT SELECT ON TABLE public.person TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.preference TO wrkflw_writer;
GRANT SELECT ON TABLE public.preference TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.reassessment TO wrkflw_writer;
GRANT SELECT ON TABLE public.reassessment TO wrkflw_reader;
GRANT SELECT,INSERT ON TABLE public.refused_attempt TO wrkflw_writer;
GRANT SELECT ON TABLE public.refused_attempt TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.role_permission TO wrkflw_writer;
GRANT SELECT ON TABLE public.role_permission TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.saved_view TO wrkflw_writer;
GRANT SELECT ON TABLE public.saved_view TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.series_point TO wrkflw_writer;
GRANT SELECT ON TABLE public.series_point TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.session TO wrkflw_writer;
GRANT SELECT ON TABLE public.session TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE ON TABLE public.signal TO wrkflw_writer;
GRANT SELECT ON TABLE public.signal TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.signal_inbox TO wrkflw_writer;
GRANT SELECT ON TABLE public.signal_inbox TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE ON TABLE public.signal_subscription TO wrkflw_writer;
GRANT SELECT ON TABLE public.signal_subscription TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.state_instance TO wrkflw_writer;
GRANT SELECT ON TABLE public.state_instance TO wrkflw_reader;
GRANT SELECT ON TABLE public.state_instance TO wrkflw_relay;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.subscription TO wrkflw_writer;
GRANT SELECT(tenant_id) ON TABLE public.subscription TO wrkflw_reader;
GRANT SELECT(id) ON TABLE public.subscription TO wrkflw_reader;
GRANT SELECT(url) ON TABLE public.subscription TO wrkflw_reader;
GRANT SELECT(types) ON TABLE public.subscription TO wrkflw_reader;
GRANT SELECT(definition_key) ON TABLE public.subscription TO wrkflw_reader;
GRANT SELECT(active) ON TABLE public.subscription TO wrkflw_reader;
GRANT SELECT(created_at) ON TABLE public.subscription TO wrkflw_reader;
GRANT SELECT(created_by) ON TABLE public.subscription TO wrkflw_reader;
GRANT SELECT(failures) ON TABLE public.subscription TO wrkflw_reader;
GRANT SELECT(disabled_reason) ON TABLE public.subscription TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.task TO wrkflw_writer;
GRANT SELECT ON TABLE public.task TO wrkflw_reader;
GRANT SELECT ON TABLE public.task TO wrkflw_relay;
GRANT SELECT,INSERT,DELETE ON TABLE public.task_candidate TO wrkflw_writer;
GRANT SELECT ON TABLE public.task_candidate TO wrkflw_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE public.tenant TO wrkflw_writer;
GRANT SELECT ON TABLE public.tenant TO wrkflw_reader;
GRANT SELECT ON TABLE public.tenant TO wrkflw_relay;
GRANT SELECT,INSERT,DELETE ON TABLE public.webhook_attempt TO wrkflw_writer;
GRANT SELECT ON TABLE public.webhook_attempt TO wrkflw_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.webhook_delivery TO wrkflw_writer;
GRANT SELECT ON TABLE public.webhook_delivery TO wrkflw_reader;
