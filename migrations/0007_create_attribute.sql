-- Search attributes of instances, with an index for each type of value, and their declarations, from which a search knows the
-- type of a name without reading graphs.
set local role wrkflw_owner;

-- One value column is filled per row. Attributes outlive their instance.
create table attribute (
    tenant_id int not null,
    instance_id uuid not null,
    name text not null,
    type text not null,
    text_value text,
    boolean_value boolean,
    decimal_value numeric,
    float_value double precision,
    timestamp_value timestamptz,
    bytes_value bytea,
    -- A column of its own, because PostgreSQL reads the table for every match of an index on an expression.
    text_head text collate "C" generated always as (left(text_value, 200)) stored,
    primary key (tenant_id, instance_id, name)
);
-- Long texts and bytes do not fit into an index row. The head of a text and the hash of bytes find more rows than match, so
-- the caller compares the value itself.
create index attribute_by_text on attribute (tenant_id, name, text_head, instance_id) where text_head is not null;
create index attribute_by_boolean on attribute (tenant_id, name, boolean_value, instance_id)
    where boolean_value is not null;
create index attribute_by_decimal on attribute (tenant_id, name, decimal_value, instance_id)
    where decimal_value is not null;
create index attribute_by_float on attribute (tenant_id, name, float_value, instance_id)
    where float_value is not null;
create index attribute_by_timestamp on attribute (tenant_id, name, timestamp_value, instance_id)
    where timestamp_value is not null;
create index attribute_by_bytes on attribute (tenant_id, name, sha256(bytes_value), instance_id)
    where bytes_value is not null;
create index attribute_by_word on attribute using gin (words_of(tenant_id, text_value)) with (gin_pending_list_limit = 512)
    where text_value is not null;

create table attribute_declaration (
    tenant_id int not null,
    name text not null,
    definition_key text not null,
    -- Versions of one definition may declare different types. Each type has one row.
    type text not null,
    primary key (tenant_id, name, definition_key, type)
);
create index attribute_declaration_by_definition on attribute_declaration (tenant_id, definition_key, name);

-- The instances whose attribute may meet all of these conditions: all of them, or null if they are more than `most`. With
-- `before`, the newest `most` instances before that id. The function runs as the owner, because row-level security prevents
-- the use of an index for comparisons of numbers. Therefore it reads the tenant from the reader's setting, as the policies
-- do, and returns only ids. Plans that read everything before the limit applies are disabled. For the newest of many, it
-- reads values from the upper end: if values grow with time, such as order numbers, the newest instances come first.
create function attribute_holders(wanted text, kind text, operators text[], bounds text[], before uuid, most int)
    returns uuid[] language plpgsql stable security definer
    set search_path = public, pg_temp
    set enable_seqscan = off
    set enable_bitmapscan = off
as $$
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
end $$;
revoke execute on function attribute_holders from public;
grant execute on function attribute_holders to wrkflw_reader;

-- The instances with all of these words in what people are shown of them, or in one text attribute: all, or null if they are more
-- than `most`. As above: the function runs as the owner and reads the tenant from the reader's setting, which is also part of each
-- word.
create function word_holders(said text, most int) returns uuid[] language plpgsql stable security definer
    set search_path = public, pg_temp
    set enable_seqscan = off
as $$
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
revoke execute on function word_holders from public;
grant execute on function word_holders to wrkflw_reader;
-- Whether an instance has all of these words, as above.
create function has_words(in_tenant int, instance uuid, title text, summary text, entity text, wanted tsquery) returns boolean
    language sql stable as $$
    select words_of(in_tenant, entity || ' ' || coalesce(title, '') || ' ' || coalesce(summary, '')) @@ wanted or exists (
        select from attribute a
        where a.tenant_id = in_tenant and a.instance_id = instance and a.text_value is not null
          and words_of(a.tenant_id, a.text_value) @@ wanted
    )
$$;
revoke execute on function has_words from public;
grant execute on function has_words to wrkflw_reader;

reset role;
