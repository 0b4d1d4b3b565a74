-- Stored replies carry a seal, and whoever verifies the database as the reader holds them against it. The reader does not see
-- what was answered: a digest of it is enough.
set local role wrkflw_owner;

-- The tenant is the reader's setting, as in the policies.
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
