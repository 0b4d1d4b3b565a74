-- The one statement that changes instances: one command or many, each applied whole or not at all. The parts below
-- `gate` read the members that passed; nothing is written for the others.
--
-- Each parameter is an array of the rows of one kind, as the types `commit_*` of the migrations have them.
-- `common` in `commit.rs` leaves out what is between `{rare` and `}rare`, for a batch without such rows.
with member as materialized (
    -- A change that rests on cached rows names the tenant's access mark as it was then. It is current while the mark is the same.
    select m.*, m.access_mark is null or m.access_mark = coalesce((
        select t.access_mark from tenant t where t.id = m.tenant_id
    ), '00000000-0000-0000-0000-000000000000') as is_current
    from unnest($1::commit_member[]) as m
),
keyed as materialized (
    select * from unnest($2::commit_reply[])
),
-- {rare
starting as materialized (
    select * from unnest($3::commit_start[])
),
-- }rare
-- {rare
-- Migrations to a version that is sole about its entity, while another instance runs about it.
occupied as materialized (
    select m.member from member m join instance i on i.tenant_id = m.tenant_id and i.id = m.instance_id
    where m.sole and m.revision_from > 0 and not i.sole
      and not entity_is_free(i.tenant_id, i.entity_type, i.entity_id, true, i.id)
),
-- }rare
-- Every host locks instances in this order, so no two batches wait for each other.
locked as materialized (
    select m.* from instance i join member m on m.tenant_id = i.tenant_id and m.instance_id = i.id
    where m.revision_from > 0 and i.revision = m.revision_from
      -- A cached instance is current if its last entry is the same. The revision is not enough: after a lost commit another
      -- change may have it.
      and m.is_current and (m.access_mark is null or i.audit_head = m.head_from)
      -- {rare
      and m.member not in (select o.member from occupied o)
      -- }rare
    order by i.tenant_id, i.id
    for update of i
),
-- Only members with the expected revision take keys, so no refused command keeps a reply. The order drains `locked` first. Times are
-- of the database's clock, by which keys also expire.
claimed as (
    insert into idempotency_key (tenant_id, principal, key, fingerprint, status, body, headers, created_at, command_id)
    select k.tenant_id, k.principal, k.key, k.fingerprint, k.status, k.body, k.headers, now(), l.command_id
    from keyed k join locked l on l.member = k.member
    order by k.tenant_id, k.principal, k.key
    on conflict do nothing
    returning command_id
),
updated as (
    update instance i
    set revision = m.revision_to, status = m.status, outcome = m.outcome, end_reason = m.end_reason, ended_by = m.ended_by,
        ended_at = m.ended_at, data = m.data, updated_at = m.updated_at, audit_seq = m.audit_seq, audit_head = m.audit_head,
        event_seq = m.event_seq, state_instances = m.state_instances, suspended_at = m.suspended_at, suspended_by = m.suspended_by,
        suspend_reason = m.suspend_reason, buffered_signals = m.buffered_signals, definition_version = m.definition_version,
        title = m.title, summary = m.summary, sole = m.sole, observers = m.observers
    from locked m
    where i.tenant_id = m.tenant_id and i.id = m.instance_id
      -- Others may have taken none of its keys, or all. If they took a part, the statement fails.
      and case (select count(*) from keyed k where k.member = m.member)
              - (select count(*) from claimed c where c.command_id = m.command_id)
          when 0 then true
          when (select count(*) from keyed k where k.member = m.member) then false
          else keys_taken_in_part()
      end
    returning m.member
),
-- {rare
-- Whether the entity of a start is free for it, by a look that waits for starts under way about it. Locks are taken in this order by
-- every host, before anything is inserted. Of several starts in this batch about an entity, only the first may pass if one is sole.
free as materialized (
    select o.member, entity_is_free(o.tenant_id, o.entity_type, o.entity_id, o.sole, o.instance_id) as is_free
    from (
        select m.member, m.tenant_id, m.instance_id, m.sole, s.entity_type, s.entity_id
        from member m join starting s on s.member = m.member
        where not exists (
            select from member n join starting p on p.member = n.member
            where n.member < m.member and n.tenant_id = m.tenant_id and p.entity_type = s.entity_type
              and p.entity_id = s.entity_id and (m.sole or n.sole)
        )
        order by m.tenant_id, s.entity_type, s.entity_id
        offset 0
    ) o
),
-- A start has no row to lock. This insert decides which start gets the entity, and `start_replies` which one gets the key.
started as (
    insert into instance (
        tenant_id, id, definition_key, definition_version, revision, status, outcome, end_reason, ended_by, ended_at,
        entity_type, entity_id, initiator, requesters, predecessor, parent, data, started_at, updated_at,
        audit_seq, audit_head, event_seq, state_instances, title, summary, sole, observers
    )
    select
        m.tenant_id, m.instance_id, s.definition_key, s.definition_version, m.revision_to, m.status, m.outcome, m.end_reason,
        m.ended_by, m.ended_at, s.entity_type, s.entity_id, s.initiator, s.requesters, s.predecessor, s.parent, m.data,
        s.started_at, m.updated_at, m.audit_seq, m.audit_head, m.event_seq, m.state_instances, m.title, m.summary, m.sole,
        m.observers
    from member m
    join starting s on s.member = m.member
    join free f on f.member = m.member and f.is_free
    left join keyed k on k.member = m.member
    -- The key may be that of a command, here or earlier, or of a start before this one in the batch.
    -- No `exists`: planned on an empty table, it would read all keys there are.
    where m.is_current and (k.key is null or (
        select true from idempotency_key o where o.tenant_id = k.tenant_id and o.principal = k.principal and o.key = k.key
    ) is null and not exists (
        select from keyed o join member n on n.member = o.member join claimed c on c.command_id = n.command_id
        where o.tenant_id = k.tenant_id and o.principal = k.principal and o.key = k.key
    ) and not exists (
        select from keyed o join starting p on p.member = o.member
        where o.member < k.member and o.tenant_id = k.tenant_id and o.principal = k.principal and o.key = k.key
    ))
    order by m.tenant_id, s.definition_key, s.entity_type, s.entity_id, m.instance_id
    on conflict do nothing
    returning tenant_id, id
),
-- }rare
-- By the number of each member: whether it passed, and what its events need. The rows below have that number and read the
-- element at this place. A join with the members would compare each row with each member.
gate as materialized (
    select
        array(
            select m.member in (select u.member from updated u)
                -- {rare
                or (m.tenant_id, m.instance_id) in (select tenant_id, id from started)
                -- }rare
            from member m order by m.member
        ) as passed,
        array(select m.instance_id from member m order by m.member) as instances,
        array(select m.partition from member m order by m.member) as partitions
),
-- {rare
-- A key that another statement took meanwhile is a conflict that fails this one as a whole: the instance of the start is there
-- by now, and cannot be undone in here.
start_replies as (
    insert into idempotency_key (tenant_id, principal, key, fingerprint, status, body, headers, created_at, command_id)
    select k.tenant_id, k.principal, k.key, k.fingerprint, k.status, k.body, k.headers, now(), k.command_id
    from keyed k join starting s on s.member = k.member
    where (select passed from gate)[k.member]
    order by k.tenant_id, k.principal, k.key
),
-- }rare
entered as (
    insert into state_instance (
        tenant_id, instance_id, id, ordinal, name, entered_at, due_at, predecessors, entered_trigger, caller,
        needed, exclude, fallback, priority, forks, choices, waiting, deadlines, subscriptions,
        children, unassignable_since, key, data, priority_name, share, blind, call, left_at, left_trigger, left_actor
    )
    select
        r.tenant_id, r.instance_id, r.id, r.ordinal, r.name, r.entered_at, r.due_at, r.predecessors, r.entered_trigger, r.caller,
        r.needed, r.exclude, r.fallback, r.priority, r.forks, r.choices, r.waiting, r.deadlines, r.subscriptions,
        r.children, r.unassignable_since, r.key, r.data, r.priority_name, r.share, r.blind, r.call, r.left_at, r.left_trigger, r.left_actor
    from unnest($4::commit_state[]) as r
    where (select passed from gate)[r.member]
),
departed as (
    update state_instance s
    set left_at = r.left_at, left_trigger = r.left_trigger, left_actor = r.left_actor
    from unnest($5::commit_departure[]) as r
    where (select passed from gate)[r.member]
      and s.tenant_id = r.tenant_id and s.instance_id = r.instance_id and s.id = r.id
),
-- {rare
-- State instances that go on otherwise than before: joins that begin, work assigned anew, deadlines that passed. Their keys and data
-- never change.
changed_states as (
    update state_instance s
    set name = r.name, entered_at = r.entered_at, due_at = r.due_at, predecessors = r.predecessors, entered_trigger = r.entered_trigger,
        caller = r.caller, needed = r.needed, exclude = r.exclude, fallback = r.fallback, priority = r.priority, forks = r.forks,
        choices = r.choices, waiting = r.waiting, deadlines = r.deadlines,
        subscriptions = r.subscriptions, children = r.children, unassignable_since = r.unassignable_since,
        priority_name = r.priority_name, share = r.share, blind = r.blind, call = r.call, left_at = r.left_at, left_trigger = r.left_trigger,
        left_actor = r.left_actor
    from unnest($6::commit_state[]) as r
    where (select passed from gate)[r.member]
      and s.tenant_id = r.tenant_id and s.instance_id = r.instance_id and s.id = r.id
),
-- }rare
created as (
    insert into task (
        tenant_id, id, instance_id, state_id, ordinal, label, status, owner, candidates, created_at,
        claimed_at, ended_at, due_at, deadlines, suspended, ownership, cancel_reason, restricted
    )
    select
        r.tenant_id, r.id, r.instance_id, r.state_id, r.ordinal, r.label, r.status, r.owner, r.candidates, r.created_at,
        r.claimed_at, r.ended_at, r.due_at, r.deadlines, r.suspended, r.ownership, r.cancel_reason,
        r.restricted
    from unnest($7::commit_task[]) as r
    where (select passed from gate)[r.member]
),
changed as (
    update task t
    set status = r.status, owner = r.owner, candidates = r.candidates, claimed_at = r.claimed_at, ended_at = r.ended_at,
        due_at = r.due_at, deadlines = r.deadlines, suspended = r.suspended, ownership = r.ownership,
        cancel_reason = r.cancel_reason, restricted = r.restricted
    from unnest($8::commit_task[]) as r
    where (select passed from gate)[r.member]
      and t.tenant_id = r.tenant_id and t.instance_id = r.instance_id and t.id = r.id
),
-- Candidates of new tasks: no other row can have the id of such a task. Without a conflict to look for, an insert is a third cheaper.
offered as (
    insert into task_candidate (tenant_id, kind, principal, task_id)
    select r.tenant_id, r.kind, r.principal, r.task_id
    from unnest($9::commit_candidate[]) as r
    where (select passed from gate)[r.member]
),
-- {rare
-- Further candidates of tasks that were open before.
reoffered as (
    insert into task_candidate (tenant_id, kind, principal, task_id)
    select r.tenant_id, r.kind, r.principal, r.task_id
    from unnest($20::commit_candidate[]) as r
    where (select passed from gate)[r.member]
    on conflict do nothing
),
-- }rare
-- All candidates of a task, or one.
withdrawn as (
    delete from task_candidate c
    using unnest($10::commit_candidate[]) as r
    where (select passed from gate)[r.member] and c.tenant_id = r.tenant_id and c.task_id = r.task_id
      and (r.kind is null or c.kind = r.kind and c.principal = r.principal)
),
decided as (
    insert into decision (
        tenant_id, task_id, instance_id, outcome, actor, on_behalf_of, comment, input, decided_at, key_id, mac_version, mac
    )
    select
        r.tenant_id, r.task_id, r.instance_id, r.outcome, r.actor, r.on_behalf_of, r.comment, r.input, r.decided_at, r.key_id,
        r.mac_version, r.mac
    from unnest($11::commit_decision[]) as r
    where (select passed from gate)[r.member]
),
-- {rare
-- Delegations and their returns: their content is in their entries.
delegated as (
    insert into delegation_seal (tenant_id, instance_id, seq, key_id, mac_version, mac)
    select r.tenant_id, r.instance_id, r.seq, r.key_id, r.mac_version, r.mac
    from unnest($21::commit_delegation_seal[]) as r
    where (select passed from gate)[r.member]
),
attributed as (
    insert into attribute (
        tenant_id, instance_id, name, type, text_value, boolean_value, decimal_value, float_value, timestamp_value, bytes_value
    )
    select
        r.tenant_id, r.instance_id, r.name, r.type, r.text_value, r.boolean_value, r.decimal_value::numeric, r.float_value,
        r.timestamp_value, r.bytes_value
    from unnest($12::commit_attribute[]) as r
    where (select passed from gate)[r.member] and r.type is not null
    on conflict (tenant_id, instance_id, name) do update
    set type = excluded.type, text_value = excluded.text_value, boolean_value = excluded.boolean_value,
        decimal_value = excluded.decimal_value, float_value = excluded.float_value,
        timestamp_value = excluded.timestamp_value, bytes_value = excluded.bytes_value
),
-- Deletes the attributes without a type.
unattributed as (
    delete from attribute a
    using unnest($12::commit_attribute[]) as r
    where (select passed from gate)[r.member] and r.type is null
      and a.tenant_id = r.tenant_id and a.instance_id = r.instance_id and a.name = r.name
),
-- }rare
audited as (
    insert into audit_entry (
        tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, task_id, payload, evidence, salt,
        occurred_at, hash, event_seq, traceparent
    )
    select
        r.tenant_id, 'instance', r.stream_id, r.seq, r.id, r.type, r.revision, r.command_id, r.actor, r.task_id, r.payload,
        r.evidence, r.salt, r.occurred_at, r.hash, r.event_seq, r.traceparent
    from unnest($13::commit_entry[]) as r
    where (select passed from gate)[r.member]
    order by r.member, r.seq
    returning tenant_id, stream_id, seq, pos, event_seq
),
-- {rare
-- Deletes the job that starts a child of a state that was left, unless a worker has begun it. Then the job that is put below cancels
-- the child; otherwise that job is not put. Deletes the job of a service call of a state that was left, unless it has a report, such as
-- a reply that came during a suspension: its next run records that the reply is too late.
finished as (
    delete from job j
    using unnest($14::commit_finished_job[]) as r
    where (select passed from gate)[r.member] and j.tenant_id = r.tenant_id and j.id = r.id
      and (r.cancels is null or j.attempts = 0)
      and (not r.keeps_report or j.payload::json -> 'report' is null)
    returning r.cancels
),
-- An ended instance frees its place below its root.
vacated as (
    delete from descendant_place p
    using member m
    where m.vacates and (select passed from gate)[m.member] and p.tenant_id = m.tenant_id and p.instance_id = m.instance_id
),
-- A job that is put again loses its lease and its attempts. All but deadlines are due at once, even if the host's clock is ahead.
put as (
    insert into job (tenant_id, id, kind, instance_id, due_at, payload, service)
    select r.tenant_id, r.id, r.kind, r.instance_id, case when r.kind = 'deadline' then r.due_at else least(r.due_at, now()) end,
        r.payload, r.service
    from unnest($15::commit_job[]) as r
    where (select passed from gate)[r.member] and not exists (select from finished f where f.cancels = r.id)
    on conflict (tenant_id, id) do update
    set kind = excluded.kind, instance_id = excluded.instance_id, due_at = excluded.due_at, payload = excluded.payload,
        service = excluded.service, lease_until = null, attempts = 0, last_error = null, claim = null
    returning kind
),
subscribed as (
    insert into signal_subscription (tenant_id, correlation, trigger, entered_at, state_id, instance_id)
    select r.tenant_id, r.correlation, r.trigger, r.entered_at, r.state_id, r.instance_id
    from unnest($18::commit_subscription[]) as r
    where (select passed from gate)[r.member]
),
unsubscribed as (
    delete from signal_subscription s
    using unnest($19::commit_subscription[]) as r
    where (select passed from gate)[r.member] and s.tenant_id = r.tenant_id and s.correlation = r.correlation
      and s.trigger = r.trigger and s.entered_at = r.entered_at and s.state_id = r.state_id
),
signalled as (
    -- The database's clock also expires signals. A host's clock may differ by more than that.
    insert into signal (tenant_id, instance_id, signal_id, identity, content, entry_id, received_at)
    select r.tenant_id, r.instance_id, r.signal_id, r.identity, r.content, r.entry_id, now()
    from unnest($16::commit_signal[]) as r
    where (select passed from gate)[r.member]
),
joined as (
    insert into participant (tenant_id, instance_id, kind, principal)
    select r.tenant_id, r.instance_id, r.kind, r.principal
    from unnest($22::commit_participant[]) as r
    where (select passed from gate)[r.member]
    on conflict do nothing
),
-- To whom the host gave tasks. Every host locks these rows in this order.
allocated as (
    insert into allocation (tenant_id, definition_key, state, person_id, given_at)
    select r.tenant_id, r.definition_key, r.state, r.person_id, max(r.given_at)
    from unnest($17::commit_allocation[]) as r
    where (select passed from gate)[r.member]
    group by r.tenant_id, r.definition_key, r.state, r.person_id
    order by r.tenant_id, r.definition_key, r.state, r.person_id
    on conflict (tenant_id, definition_key, state, person_id) do update
    set given_at = greatest(allocation.given_at, excluded.given_at)
),
-- }rare
announced as (
    insert into outbox_event (partition, pos, tenant_id, instance_id, seq)
    select
        (select partitions from gate)[array_position((select instances from gate), a.stream_id)], a.pos, a.tenant_id, a.stream_id,
        a.seq
    from audited a
    where a.event_seq is not null
)
select
    -- {rare
    exists (select from put p where p.kind <> 'deadline') as "leaves_work!",
    -- }rare
    (m.revision_from = 0 and m.is_current or m.member in (select member from locked)
        -- {rare
        or m.member in (select o.member from occupied o)
        -- }rare
    ) as "revision_ok!",
    (select passed from gate)[m.member] as "applied!"
from member m
order by m.member
