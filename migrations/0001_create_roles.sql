-- The five roles of the database. The host never runs as the owner. It writes as the writer, whose grants allow no change of
-- audit entries and decisions. It answers queries as the reader, which sees one tenant at a time. For a caller
-- who may not see every instance, it answers as the viewer, a reader under further policies. It publishes events as the relay. Roles
-- belong to the whole server, so another database may have created them already. Then a login that may take them on needs no right to
-- create roles.
do $$
declare
    wanted text;
    -- From PostgreSQL 16 on, a member may lack the right to take the role on, as the one who created it.
    takes_on text := case when current_setting('server_version_num')::int >= 160000 then 'set' else 'member' end;
begin
    foreach wanted in array array['wrkflw_owner', 'wrkflw_writer', 'wrkflw_reader', 'wrkflw_viewer', 'wrkflw_relay'] loop
        begin
            if to_regrole(wanted) is null then
                execute format('create role %I nologin', wanted);
            end if;
        exception when duplicate_object or unique_violation then
            null;
        end;
        begin
            if not pg_has_role(current_user, wanted, takes_on) then
                execute format('grant %I to %I', wanted, current_user);
            end if;
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
