-- Lists of tasks: those that are open, in the order of their making. Without it a page of few open ones would be read
-- past all that ever ended.
set local role wrkflw_owner;

create index task_open on task (tenant_id, id) where status in ('PENDING', 'CLAIMED');

reset role;
