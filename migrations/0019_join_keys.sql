-- One change may carry several commands of an instance, each with an idempotency key. When only some of the keys are free,
-- none may stay taken: the statement that tried fails as a whole.
set local role wrkflw_owner;

create function keys_taken_in_part() returns boolean language plpgsql as $$
begin
    raise unique_violation using message = 'some of the idempotency keys of one change are another command''s';
end $$;
revoke execute on function keys_taken_in_part from public;
grant execute on function keys_taken_in_part to wrkflw_writer;

reset role;
