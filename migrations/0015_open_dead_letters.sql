-- What operators do about events that the broker refused for good: look at them, put them back into the outbox, or
-- give the refused one up so that those behind it go on.
set local role wrkflw_owner;

grant select on dead_letter to wrkflw_reader;
grant delete on dead_letter to wrkflw_writer;
-- Whoever puts events back holds their lane, and lowers its floor below them.
grant update (floor) on outbox_lane to wrkflw_writer;

reset role;
