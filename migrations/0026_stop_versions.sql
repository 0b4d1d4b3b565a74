-- Lets an operator stop a version that does harm: nothing of it runs until it is resumed, but its instances may be cancelled,
-- many at once.
set local role wrkflw_owner;

alter table definition_version
    add column stopped_at timestamptz,
    add column stopped_by text,
    add column stop_reason text;
-- Read with every command; mostly empty.
create index definition_version_stopped on definition_version (tenant_id, key, version) where stopped_at is not null;

-- Hosts remember what is stopped together with what somebody may do.
create trigger definition_version_changed after update on definition_version referencing new table as changed
    for each statement execute function mark_standing_change();

alter table bulk_operation drop constraint bulk_operation_action_check;
alter table bulk_operation add constraint bulk_operation_action_check check (action in ('migrate', 'cancel'));

-- The walk under way began when all commands had ended that did not know of the change: it is the last one. Kept, because
-- a walk may be gone on with by another claim.
alter table recheck add column closing boolean not null default false;
create index recheck_turn on recheck (tenant_id, greatest(due_at, lease_until));

reset role;
