-- The five roles of the database. The host never runs as the owner. It writes as the writer, whose grants allow no change of
-- audit entries and decisions. It answers queries as the reader, which sees one tenant at a time. For a caller
-- who may not see every instance, it answers as the viewer, a reader under further policies. It publishes events as the relay. Roles
-- belong to the whole server, so another database may have created them already.
do $$
declare
    wanted text;
begin
    foreach wanted in array array['wrkflw_owner', 'wrkflw_writer', 'wrkflw_reader', 'wrkflw_viewer', 'wrkflw_relay'] loop
        begin
            execute format('create role %I nologin', wanted);
        exception when duplicate_object or unique_violation then
            null;
        end;
        begin
            execute format('grant %I to %I', wanted, current_user);
        exception when unique_violation or invalid_grant_operation then
            null;
        end;
    end loop;
    begin
        if not pg_has_role('wrkflw_viewer', 'wrkflw_reader', 'member') then
            grant wrkflw_reader to wrkflw_viewer;
        end if;
    exception when unique_violation or invalid_grant_operation then
        null;
    end;
    execute 'grant create, usage on schema public to wrkflw_owner';
    execute 'grant usage on schema public to wrkflw_writer, wrkflw_reader, wrkflw_relay';
end $$;
