-- Adds the copies :first to :last of each instance in bench_base, with all of its rows.
--
-- Copies have their own ids, made from those of the original and the number of the copy, and are older than everything that
-- relay, notifier and checkpoints still have to read. Their hash chains are not valid: the copies only enlarge the tables.
\set ON_ERROR_STOP on
create or replace function pg_temp.copy_of(id uuid, copy int) returns uuid
language sql immutable as $$ select md5(id::text || copy)::uuid $$;

create or replace procedure pg_temp.copy_rows(name text, instance text, first int, last int) language plpgsql as $$
declare
  made text;
  columns text;
begin
  select string_agg(quote_ident(column_name), ', ' order by ordinal_position),
         string_agg(case
             when udt_name = 'uuid' then format('pg_temp.copy_of(%I, copy)', column_name)
             when udt_name = '_uuid' then format('(select coalesce(array_agg(pg_temp.copy_of(one, copy)), ''{}'') from unnest(%I) one)', column_name)
             when column_name = 'entity_id' then format('%I || ''/'' || copy', column_name)
             when column_name = 'pos' then '-pos - 1000000 * copy'
             when column_name = 'xid' then '''3''::xid8'
             else quote_ident(column_name)
           end, ', ' order by ordinal_position)
    into columns, made
    from information_schema.columns where table_schema = 'public' and table_name = name and is_generated = 'NEVER';
  execute format('insert into %I (%s) select %s from %I, generate_series(%s, %s) copy where %I in (select id from bench_base)',
    name, columns, made, name, first, last, instance);
end $$;

call pg_temp.copy_rows('instance', 'id', :first, :last);
call pg_temp.copy_rows('state_instance', 'instance_id', :first, :last);
call pg_temp.copy_rows('task', 'instance_id', :first, :last);
call pg_temp.copy_rows('decision', 'instance_id', :first, :last);
call pg_temp.copy_rows('attribute', 'instance_id', :first, :last);
call pg_temp.copy_rows('audit_entry', 'stream_id', :first, :last);
