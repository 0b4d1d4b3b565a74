-- Places for deliveries are shared by tenant and by subscription, so what is due is found by these. A subscription keeps what
-- had been committed when it was made: hosts' clocks differ, so they do not tell. And a delivery keeps the version that its
-- event was of, since the instance may have moved on when it is sent.
set local role wrkflw_owner;

-- The release before finds what is due by `webhook_delivery_due`, which goes a release later.
create index webhook_delivery_line on webhook_delivery (tenant_id, subscription_id, due_at) where state = 'pending';

-- Null in rows from before: then the time of the subscription decides, and the version that the instance has now.
alter table subscription add column since_epoch int, add column since_snapshot pg_snapshot;
alter table webhook_delivery add column definition_version int;

reset role;
