-- Inserts the given number of running instances, with one open task each, into the tenant of the development host. Nine tenths of
-- the tasks are offered to the reviewers, one in a thousand is offered to a second reviewer by name, one in a hundred is claimed
-- by somebody, and one in ten thousand by the reviewer. The same number of instances has ended. One in ten thousand is late, another
-- one stale and another one suspended, and a third has a deadline far ahead. If RESTRICTED, only participants see an instance: the group
-- or person to whom its task is offered, and in one of a hundred its initiator.
create temporary table place as select id as tenant from tenant where name = 'default';
create temporary table filled as
select n, ('018f' || lpad(to_hex(n), 8, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid as id,
    timestamptz '2026-01-01' + n * interval '1 second' as at, n % 2 = 0 as ended, n / 2 as m,
    case when n % 2 = 1 and n / 2 % 10000 = 7 then timestamptz '2026-01-01' + n * interval '1 second' end as at_suspension
from generate_series(1, 2 * INSTANCES) n;
insert into instance (tenant_id, id, definition_key, definition_version, revision, status, outcome, ended_at, entity_type, entity_id,
    initiator, requesters, data, started_at, updated_at, audit_seq, audit_head, event_seq, state_instances, title,
    suspended_at, suspended_by, suspend_reason, observers)
select tenant, id, case when m % 10 = 0 then 'bench-returns' else 'bench-orders' end, 1, 1,
    case when ended then 'COMPLETED' when at_suspension is not null then 'SUSPENDED' else 'RUNNING' end, case when ended then 'APPROVED' end, case when ended then at end,
    'bench-lists', n::text, 'author', '{author}', '{"title":"Bench"}', at, case when m % 10000 = 5 then timestamptz '2024-01-01' else at end, 1, sha256('bench'), 1, 1, 'Order of customer-' || m,
    at_suspension, case when at_suspension is not null then 'admin' end, case when at_suspension is not null then 'Bench' end, case when RESTRICTED then '{}'::text[] end
from place, filled;
insert into state_instance (tenant_id, instance_id, id, ordinal, name, entered_at, predecessors, caller, needed, exclude, priority,
    left_at, due_at)
select tenant, id, id, 0, case when m % 1000 = 7 then 'FinalReview' else 'Submitted' end,
    case when m % 10000 = 5 then timestamptz '2024-01-01' else at end, '{}', 'author', 1, '{}', m % 5,
    case when ended then at end,
    case when m % 10000 = 9 then timestamptz '2024-01-01' when m % 3 = 0 then at + interval '30 days' end
from place, filled;
insert into task (tenant_id, id, instance_id, state_id, ordinal, label, status, owner, candidates, created_at, claimed_at, ended_at, restricted)
select tenant, id, id, id, 0, '',
    case when ended then 'COMPLETED' when m % 100 = 1 then 'CLAIMED' else 'PENDING' end,
    case when ended or m % 100 = 1 then case when m % 10000 = 1 then 'reviewer' else 'somebody' end end,
    case when m % 1000 = 3 then '[{"id":"reviewer2","type":"user"}]' when m % 10 = 9 then '[{"id":"approvers","type":"group"}]'
        else '[{"id":"reviewers","type":"group"}]' end,
    at, case when ended or m % 100 = 1 then at end, case when ended then at end, RESTRICTED
from place, filled;
insert into task_candidate (tenant_id, kind, principal, task_id)
select tenant, case when m % 1000 = 3 then 'user' else 'group' end,
    case when m % 1000 = 3 then 'reviewer2' when m % 10 = 9 then 'approvers' else 'reviewers' end, id
from place, filled where not ended;
update definition_version set restricted = RESTRICTED where key like 'bench-%';
insert into participant (tenant_id, instance_id, kind, principal)
select tenant, id, case when m % 1000 = 3 then 'user' else 'group' end,
    case when m % 1000 = 3 then 'reviewer2' when m % 10 = 9 then 'approvers' else 'reviewers' end
from place, filled where RESTRICTED
union all select tenant, id, 'user', 'author' from place, filled where RESTRICTED and m % 100 = 0;
vacuum analyze participant; vacuum analyze instance; vacuum analyze state_instance; vacuum analyze task; vacuum analyze task_candidate;
