-- Definitions, their versions, and the engine profiles of evaluations. The content of a version never changes. A component is
-- stored once for all tenants, under its digest.
set local role wrkflw_owner;

create table component (
    digest bytea primary key,
    bytes bytea not null,
    created_at timestamptz not null
);
alter table component alter column bytes set storage external;

create table definition (
    tenant_id int not null,
    key text not null,
    -- The id of the definition's audit stream.
    id uuid not null,
    active_version int,
    -- Counts the changes of versions' states, so that hosts notice them.
    revision int not null,
    created_at timestamptz not null,
    primary key (tenant_id, key)
);

create table definition_version (
    tenant_id int not null,
    key text not null,
    version int not null,
    digest bytea not null,
    config text not null,
    config_digest bytea not null,
    graph text not null,
    sdk text,
    wit text not null,
    published_at timestamptz not null,
    published_by text not null,
    retired_at timestamptz,
    retired_by text,
    -- An operator stops a harmful version: its instances execute no commands until it is resumed, except cancellations.
    stopped_at timestamptz,
    stopped_by text,
    stop_reason text,
    -- Whether not everybody of the tenant sees its instances.
    restricted boolean not null default false,
    -- Why it was published, if its author said so.
    note text,
    primary key (tenant_id, key, version),
    constraint definition_version_content_key unique (tenant_id, key, digest, config_digest)
);
create index definition_version_restricted on definition_version (tenant_id) where restricted;
-- Read with every command; mostly empty.
create index definition_version_stopped on definition_version (tenant_id, key, version) where stopped_at is not null;
-- The words of a text, for searches: in lower case, cut at ASCII punctuation and spaces. Some are empty.
create function words_in(said text) returns text[]
    language sql immutable parallel safe as $$
    select string_to_array(translate(
        lower(left(said, 2000)), e'\t\n\r!"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~', repeat(' ', 35)), ' ')
$$;
-- At most 64 words of a text, with at most 40 characters each. Each is with its tenant, so that the index of all tenants is one of each.
-- A restore makes the index without a search path.
create function words_of(in_tenant int, said text) returns tsvector
    language sql immutable parallel safe as $$
    select array_to_tsvector(array(
        select in_tenant::text || ' ' || left(word, 40) from unnest(public.words_in(said)) word where word <> '' limit 64
    ))
$$;
-- What finds the texts with all of these words, at most eight. The last one may be the beginning of a word: to look for the beginning
-- of a frequent word takes as long as there are texts with it. Null if there are no words.
create function words_query(in_tenant int, said text) returns tsquery
    language sql immutable parallel safe as $$
    select string_agg(quote_literal(in_tenant::text || ' ' || left(word, 40)) || case when is_last then ':*' else '' end, ' & ')::tsquery
    from (
        select word, place = max(place) over () as is_last
        from unnest(public.words_in(said)) with ordinality as one (word, place) where word <> '' order by place limit 8
    ) first
$$;
revoke execute on function words_in, words_of, words_query from public;
grant execute on function words_in, words_of, words_query to wrkflw_writer, wrkflw_reader;
-- The words by which people find a version: of its key, its title and its description. Of a graph that is not JSON, only those of the
-- key. PostgreSQL refuses a row if the expression of an index fails, and a graph that was changed by hand is for the verification to find.
create function version_words(in_tenant int, key text, graph text) returns tsvector
    language plpgsql immutable as $$
declare
    said json;
begin
    said := graph::json;
    return public.words_of(in_tenant, concat_ws(' ', key, said ->> 'title', said ->> 'description'));
exception when invalid_text_representation or untranslatable_character then
    return public.words_of(in_tenant, key);
end
$$;
revoke execute on function version_words from public;
grant execute on function version_words to wrkflw_writer, wrkflw_reader;
-- Versions are published rarely, so each is in the tree of the index at once.
create index definition_version_by_word on definition_version using gin (version_words(tenant_id, key, graph)) with (fastupdate = off);
-- The versions with all of these words. The function runs as the owner for the sake of the index, as the policies let no reader use it,
-- and reads the tenant from the reader's setting, which is also part of each word.
create function versions_with_words(said text) returns table (key text, version int) language sql stable security definer
    set search_path = public, pg_temp
    set enable_seqscan = off
as $$
    select one.key, one.version
    from (
        select v.tenant_id, v.key, v.version from definition_version v
        where version_words(v.tenant_id, v.key, v.graph)
            @@ words_query(nullif(current_setting('wrkflw.tenant', true), '')::int, said)
        offset 0
    ) one
    where one.tenant_id = nullif(current_setting('wrkflw.tenant', true), '')::int
$$;
revoke execute on function versions_with_words from public;
grant execute on function versions_with_words to wrkflw_reader;
-- Hosts cache the active and the stopped versions together with the permissions of people.
create trigger definition_changed after update on definition referencing new table as changed
    for each statement execute function mark_access_change();
create trigger definition_version_changed after update on definition_version referencing new table as changed
    for each statement execute function mark_access_change();

-- Engine profiles of evaluations. The evidence of commands refers to them by digest.
create table engine_profile (
    digest bytea primary key,
    profile text not null,
    recorded_at timestamptz not null
);

reset role;
