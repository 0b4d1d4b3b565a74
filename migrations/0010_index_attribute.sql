-- Instances are searched by their attributes: an index for each type of value, and what definitions declare, so that
-- a search knows the type of a name without reading every graph.
set local role wrkflw_owner;

create table attribute_declaration (
    tenant_id int not null,
    name text not null,
    definition_key text not null,
    -- Versions of one definition may disagree; each type stands here once.
    type text not null,
    primary key (tenant_id, name, definition_key, type)
);
create index attribute_declaration_by_definition on attribute_declaration (tenant_id, definition_key, name);

insert into attribute_declaration (tenant_id, name, definition_key, type)
select distinct v.tenant_id, d.value ->> 'name', v.key, d.value ->> 'kind'
from definition_version v, jsonb_array_elements(v.graph::jsonb -> 'attributes') d;

grant select, insert on attribute_declaration to wrkflw_writer;
grant select on attribute_declaration to wrkflw_reader;
alter table attribute_declaration enable row level security;
create policy writer on attribute_declaration to wrkflw_writer using (true) with check (true);
create policy reader on attribute_declaration for select to wrkflw_reader
    using (tenant_id = nullif(current_setting('wrkflw.tenant', true), '')::int);

-- Long texts and bytes would not fit into a row of an index: the head of a text and the hash of bytes find more rows
-- than are meant, and whoever asks looks at the value itself.
create index attribute_by_text on attribute (tenant_id, name, (left(text_value, 200) collate "C"), instance_id)
    where text_value is not null;
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

-- The instances whose attribute may meet all of these conditions: all of them, or null when they are more than `most`;
-- or, where `before` is given, the newest `most` before it. It runs as the owner, because row-level security keeps
-- comparisons of numbers away from an index: so it takes the tenant from the reader's setting, as the policies do, and
-- answers with ids alone. A limit must be what ends a long scan, hence no plan that reads everything first.
create function attribute_holders(wanted text, kind text, operators text[], bounds text[], before uuid, most int)
    returns uuid[] language plpgsql stable security definer
    set search_path = public, pg_temp
    set enable_seqscan = off
    set enable_bitmapscan = off
as $$
declare
    -- What the index of this type has, and how a bound becomes one of it.
    filled text;
    value text;
    bound text;
    clauses text := '';
    matches text;
    found uuid[];
begin
    case kind
        when 'text' then
            filled := 'text_value'; value := 'left(text_value, 200) collate "C"'; bound := 'left(%L, 200)';
        when 'boolean' then filled := 'boolean_value'; value := filled; bound := '%L::boolean';
        when 'decimal' then filled := 'decimal_value'; value := filled; bound := '%L::numeric';
        when 'float' then filled := 'float_value'; value := filled; bound := '%L::float8';
        when 'timestamp' then filled := 'timestamp_value'; value := filled; bound := '%L::timestamptz';
        when 'bytes' then filled := 'bytes_value'; value := 'sha256(bytes_value)'; bound := 'sha256(%L::bytea)';
    end case;
    for n in 1 .. cardinality(operators) loop
        clauses := clauses || case operators[n]
            when 'eq' then format(' and %s = ' || bound, value, bounds[n])
            when 'in' then (
                select format(' and %s in (%s)', value, string_agg(format(bound, one), ', '))
                from unnest(bounds[n]::text[]) one
            )
            -- Of a text only the head is compared, so its very bound belongs to what is found.
            when 'gt' then format(' and %s %s ' || bound, value, case kind when 'text' then '>=' else '>' end, bounds[n])
            when 'lt' then format(' and %s %s ' || bound, value, case kind when 'text' then '<=' else '<' end, bounds[n])
            when 'gte' then format(' and %s >= ' || bound, value, bounds[n])
            when 'lte' then format(' and %s <= ' || bound, value, bounds[n])
            when 'prefix' then format(
                ' and %s like %L', value,
                regexp_replace(left(bounds[n], 200), '([\\%_])', '\\\1', 'g') || '%')
            -- Whatever else is asked is asked of instances that have the attribute.
            else ''
        end;
    end loop;
    matches := format(
        'select instance_id from attribute where tenant_id = $1 and name = $2 and %s is not null%s', filled, clauses);
    if before is null then
        matches := matches || ' limit $3 + 1';
    elsif operators = array['eq'] then
        -- Behind one value, the index has the instances in their order.
        matches := matches || ' and instance_id < $4 order by instance_id desc limit $3';
    else
        -- Elsewhere the whole range is read; the primary key has the order, too, but may lead past any number of
        -- instances without a match.
        matches := format(
            'select instance_id from (%s offset 0) m where instance_id < $4 order by instance_id desc limit $3', matches);
    end if;
    execute format('select coalesce(array_agg(m.instance_id), ''{}'') from (%s) m', matches)
        into found
        using nullif(current_setting('wrkflw.tenant', true), '')::int, wanted, most, before;
    return case when cardinality(found) <= most then found end;
end $$;
revoke execute on function attribute_holders from public;
grant execute on function attribute_holders to wrkflw_reader;

reset role;
