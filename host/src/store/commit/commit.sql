-- The one statement that changes instances: one command or many, each applied whole or not at all. The parts below
-- `gate` read the members that passed; nothing is written for the others.
with member as materialized (
    select * from unnest(
        $1::int[], $2::uuid[], $3::uuid[], $4::int[], $5::int[], $6::smallint[], $7::text[], $8::text[], $9::text[],
        $10::text[], $11::timestamptz[], $12::text[], $13::timestamptz[], $14::bigint[], $15::bytea[], $16::bigint[], $17::int[],
        $18::timestamptz[], $19::text[], $20::text[], $21::text[], $22::int[], $175::uuid[], $31::bytea[]
    ) with ordinality as m (
        tenant_id, id, command_id, revision_from, revision_to, lane, status, outcome, end_reason,
        ended_by, ended_at, data, updated_at, audit_seq, audit_head, event_seq, stays, suspended_at, suspended_by,
        suspend_reason, early_signals, definition_version, standing, head_from, member
    )
),
keyed as materialized (
    select * from unnest(
        $23::int[], $24::int[], $25::text[], $26::text[], $27::bytea[], $28::smallint[], $29::text[], $30::text[]
    ) as k (tenant_id, member, principal, key, fingerprint, status, body, headers)
),
starting as materialized (
    select * from unnest(
        $32::int[], $33::text[], $34::int[], $35::text[], $36::text[], $37::text[], $38::text[], $39::uuid[], $40::uuid[], $41::timestamptz[]
    ) as s (
        member, definition_key, definition_version, entity_type, entity_id, initiator, requesters, predecessor, parent, started_at
    )
),
-- Every host locks instances in this order, so no two batches wait for each other.
locked as materialized (
    select m.* from instance i join member m on m.tenant_id = i.tenant_id and m.id = i.id
    where m.revision_from > 0 and i.revision = m.revision_from
      -- What was remembered still holds: of the instance, whose head tells apart what a lost commit and another one left; of
      -- the caller, the mark as the load has it.
      and (m.standing is null or i.audit_head = m.head_from and m.standing = coalesce((
          select t.standing_mark from tenant t where t.id = m.tenant_id
      ), '00000000-0000-0000-0000-000000000000'))
    order by i.tenant_id, i.id
    for update of i
),
-- Behind the gate of the revision, so that no reply is kept for a command that lost. Its order drains `locked` first. Its age is
-- told by the clock that it is forgotten by: that of the database.
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
        event_seq = m.event_seq, stays = m.stays, suspended_at = m.suspended_at, suspended_by = m.suspended_by,
        suspend_reason = m.suspend_reason, early_signals = m.early_signals, definition_version = m.definition_version
    from locked m
    where i.tenant_id = m.tenant_id and i.id = m.id
      -- How many of its keys were taken: none, or all. A part cannot be undone in here, so the statement fails.
      and case (select count(*) from keyed k where k.member = m.member)
              - (select count(*) from claimed c where c.command_id = m.command_id)
          when 0 then true
          when (select count(*) from keyed k where k.member = m.member) then false
          else keys_taken_in_part()
      end
    returning m.member
),
-- A start has no row to lock: this insert settles the race for the entity, and that of `start_replies` the one for the key.
started as (
    insert into instance (
        tenant_id, id, definition_key, definition_version, revision, status, outcome, end_reason, ended_by, ended_at,
        entity_type, entity_id, initiator, requesters, predecessor, parent, data, started_at, updated_at,
        audit_seq, audit_head, event_seq, stays
    )
    select
        m.tenant_id, m.id, s.definition_key, s.definition_version, m.revision_to, m.status, m.outcome, m.end_reason, m.ended_by,
        m.ended_at, s.entity_type, s.entity_id, s.initiator, s.requesters::text[], s.predecessor, s.parent, m.data, s.started_at,
        m.updated_at, m.audit_seq, m.audit_head, m.event_seq, m.stays
    from member m
    join starting s on s.member = m.member
    left join keyed k on k.member = m.member
    -- The key may be that of a command, here or earlier, or of a start before this one in the batch.
    -- No `exists`: planned on an empty table, it would read all keys there are.
    where k.key is null or (
        select true from idempotency_key o where o.tenant_id = k.tenant_id and o.principal = k.principal and o.key = k.key
    ) is null and not exists (
        select from keyed o join member n on n.member = o.member join claimed c on c.command_id = n.command_id
        where o.tenant_id = k.tenant_id and o.principal = k.principal and o.key = k.key
    ) and not exists (
        select from keyed o join starting p on p.member = o.member
        where o.member < k.member and o.tenant_id = k.tenant_id and o.principal = k.principal and o.key = k.key
    )
    order by m.tenant_id, s.definition_key, s.entity_type, s.entity_id, m.id
    on conflict do nothing
    returning tenant_id, id
),
-- Whether each member passed, by its number. The rows below carry that number, and find what they share with their member
-- - tenant, instance, command - in the very parameters: to join them with the members would compare each with each.
gate as materialized (
    select array(
        select m.member in (select u.member from updated u) or (m.tenant_id, m.id) in (select tenant_id, id from started)
        from member m order by m.member
    ) as passed
),
-- A key that another statement took meanwhile is a conflict that fails this one as a whole: the instance of the start is there
-- by now, and cannot be undone in here.
start_replies as (
    insert into idempotency_key (tenant_id, principal, key, fingerprint, status, body, headers, created_at, command_id)
    select k.tenant_id, k.principal, k.key, k.fingerprint, k.status, k.body, k.headers, now(), ($3::uuid[])[k.member]
    from keyed k join starting s on s.member = k.member
    where (select passed from gate)[k.member]
    order by k.tenant_id, k.principal, k.key
),
entered as (
    insert into state_instance (
        tenant_id, instance_id, id, ordinal, name, entered_at, due_at, predecessors, entered_by, caller,
        needed, exclude, fallback, priority, forks, choices, waiting, deadlines, correlation, keep_early,
        children, unassignable_since, left_at, left_by, left_actor
    )
    select
        ($1::int[])[r.member], ($2::uuid[])[r.member], r.id, r.ordinal, r.name, r.entered_at, r.due_at, r.predecessors::uuid[],
        r.entered_by, r.caller, r.needed, r.exclude::text[], r.fallback, r.priority, r.forks::uuid[], r.choices,
        r.waiting, r.deadlines, r.correlation, r.keep_early, r.children, r.unassignable_since, r.left_at, r.left_by,
        r.left_actor
    from unnest(
        $42::int[], $43::uuid[], $44::int[], $45::text[], $46::timestamptz[], $47::timestamptz[],
        $48::text[], $49::text[], $50::text[], $51::int[], $52::text[], $53::text[], $54::smallint[], $55::text[],
        $56::int[], $57::boolean[], $58::text[], $59::text[], $60::boolean[], $61::text[], $62::timestamptz[],
        $63::timestamptz[], $64::text[], $65::text[]
    ) as r (
        member, id, ordinal, name, entered_at, due_at, predecessors, entered_by, caller, needed, exclude,
        fallback, priority, forks, choices, waiting, deadlines, correlation, keep_early, children,
        unassignable_since, left_at, left_by, left_actor
    )
    where (select passed from gate)[r.member]
),
departed as (
    update state_instance s
    set left_at = r.left_at, left_by = r.left_by, left_actor = r.left_actor
    from unnest($66::int[], $67::uuid[], $68::timestamptz[], $69::text[], $70::text[])
        as r (member, id, left_at, left_by, left_actor)
    where (select passed from gate)[r.member]
      and s.tenant_id = ($1::int[])[r.member] and s.instance_id = ($2::uuid[])[r.member] and s.id = r.id
),
-- Stays that go on otherwise than before: joins that begin, work assigned anew, deadlines that passed.
restayed as (
    update state_instance s
    set name = r.name, entered_at = r.entered_at, due_at = r.due_at, predecessors = r.predecessors::uuid[],
        entered_by = r.entered_by, caller = r.caller, needed = r.needed, exclude = r.exclude::text[], fallback = r.fallback, priority = r.priority, forks = r.forks::uuid[], choices = r.choices, waiting = r.waiting,
        deadlines = r.deadlines, correlation = r.correlation, keep_early = r.keep_early, children = r.children,
        unassignable_since = r.unassignable_since, left_at = r.left_at, left_by = r.left_by, left_actor = r.left_actor
    from unnest(
        $71::int[], $72::uuid[], $73::text[], $74::timestamptz[], $75::timestamptz[], $76::text[],
        $77::text[], $78::text[], $79::int[], $80::text[], $81::text[], $82::smallint[], $83::text[], $84::int[],
        $85::boolean[], $86::text[], $87::text[], $88::boolean[], $89::text[], $90::timestamptz[], $91::timestamptz[],
        $92::text[], $93::text[]
    ) as r (
        member, id, name, entered_at, due_at, predecessors, entered_by, caller, needed, exclude, fallback,
        priority, forks, choices, waiting, deadlines, correlation, keep_early, children, unassignable_since,
        left_at, left_by, left_actor
    )
    where (select passed from gate)[r.member]
      and s.tenant_id = ($1::int[])[r.member] and s.instance_id = ($2::uuid[])[r.member] and s.id = r.id
),
created as (
    insert into task (
        tenant_id, id, instance_id, state_id, ordinal, label, status, owner, candidates, form, created_at,
        claimed_at, ended_at, due_at, deadlines, holding, cancel_reason
    )
    select
        ($1::int[])[r.member], r.id, ($2::uuid[])[r.member], r.state_id, r.ordinal, r.label, r.status, r.owner, r.candidates,
        r.form, r.created_at, r.claimed_at, r.ended_at, r.due_at, r.deadlines, r.holding, r.cancel_reason
    from unnest(
        $94::int[], $95::uuid[], $96::uuid[], $97::int[], $98::text[], $99::text[], $100::text[],
        $101::text[], $102::text[], $103::timestamptz[], $104::timestamptz[], $105::timestamptz[],
        $106::timestamptz[], $107::text[], $108::text[], $173::text[]
    ) as r (
        member, id, state_id, ordinal, label, status, owner, candidates, form, created_at, claimed_at,
        ended_at, due_at, deadlines, holding, cancel_reason
    )
    where (select passed from gate)[r.member]
),
changed as (
    update task t
    set status = r.status, owner = r.owner, candidates = r.candidates, claimed_at = r.claimed_at, ended_at = r.ended_at, due_at = r.due_at, deadlines = r.deadlines, holding = r.holding, cancel_reason = r.cancel_reason
    from unnest(
        $109::int[], $110::uuid[], $111::text[], $112::text[], $113::text[], $114::timestamptz[],
        $115::timestamptz[], $116::timestamptz[], $117::text[], $118::text[], $119::text[]
    ) as r (
        member, id, status, owner, candidates, claimed_at, ended_at, due_at, deadlines, holding, cancel_reason
    )
    where (select passed from gate)[r.member]
      and t.tenant_id = ($1::int[])[r.member] and t.instance_id = ($2::uuid[])[r.member] and t.id = r.id
),
offered as (
    insert into task_candidate (tenant_id, kind, principal, task_id)
    select ($1::int[])[r.member], r.kind, r.principal, r.task_id
    from unnest($120::int[], $121::uuid[], $122::text[], $123::text[]) as r (member, task_id, kind, principal)
    where (select passed from gate)[r.member]
    on conflict do nothing
),
-- All candidates of a task, or one.
withdrawn as (
    delete from task_candidate c
    using unnest($124::int[], $125::uuid[], $176::text[], $179::text[]) as r (member, task_id, kind, principal)
    where (select passed from gate)[r.member] and c.tenant_id = ($1::int[])[r.member] and c.task_id = r.task_id
      and (r.kind is null or c.kind = r.kind and c.principal = r.principal)
),
decided as (
    insert into decision (
        tenant_id, task_id, instance_id, outcome, actor, on_behalf_of, comment, input, decided_at, key_id, mac_version, mac
    )
    select
        ($1::int[])[r.member], r.task_id, ($2::uuid[])[r.member], r.outcome, r.actor, r.on_behalf_of, r.comment, r.input,
        r.decided_at, r.key_id, r.mac_version, r.mac
    from unnest(
        $126::int[], $127::uuid[], $128::text[], $129::text[], $130::text[], $131::text[], $132::text[], $133::timestamptz[], $134::text[],
        $135::smallint[], $136::bytea[]
    ) as r (
        member, task_id, outcome, actor, on_behalf_of, comment, input, decided_at, key_id, mac_version, mac
    )
    where (select passed from gate)[r.member]
),
attributed as (
    insert into attribute (
        tenant_id, instance_id, name, type, text_value, boolean_value, decimal_value, float_value, timestamp_value, bytes_value
    )
    select
        ($1::int[])[r.member], ($2::uuid[])[r.member], r.name, r.type, r.text_value, r.boolean_value, r.decimal_value::numeric, r.float_value,
        r.timestamp_value, r.bytes_value
    from unnest(
        $137::int[], $138::text[], $139::text[], $140::text[], $141::boolean[], $142::text[], $143::float8[], $144::timestamptz[],
        $145::bytea[]
    ) as r (
        member, name, type, text_value, boolean_value, decimal_value, float_value, timestamp_value, bytes_value
    )
    where (select passed from gate)[r.member]
    on conflict (tenant_id, instance_id, name) do update
    set type = excluded.type, text_value = excluded.text_value, boolean_value = excluded.boolean_value,
        decimal_value = excluded.decimal_value, float_value = excluded.float_value,
        timestamp_value = excluded.timestamp_value, bytes_value = excluded.bytes_value
),
unattributed as (
    delete from attribute a
    using unnest($146::int[], $147::text[]) as r (member, name)
    where (select passed from gate)[r.member]
      and a.tenant_id = ($1::int[])[r.member] and a.instance_id = ($2::uuid[])[r.member] and a.name = r.name
),
audited as (
    insert into audit_entry (
        tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, task_id, payload, evidence, salt,
        occurred_at, hash, event_seq, traceparent
    )
    select
        ($1::int[])[r.member], 'instance', ($2::uuid[])[r.member], r.seq, r.id, r.type, r.revision,
        r.command_id, r.actor, r.task_id, r.payload, r.evidence, r.salt, r.occurred_at, r.hash, r.event_seq, r.traceparent
    from unnest(
        $148::int[], $149::bigint[], $150::uuid[], $151::text[], $152::int[], $153::text[], $154::uuid[], $155::text[],
        $156::text[], $157::bytea[], $158::timestamptz[], $159::bytea[], $160::bigint[], $161::text[], $174::uuid[]
    ) as r (
        member, seq, id, type, revision, actor, task_id, payload, evidence, salt, occurred_at, hash, event_seq, traceparent,
        command_id
    )
    where (select passed from gate)[r.member]
    order by r.member, r.seq
    returning tenant_id, stream_id, seq, pos, event_seq
),
-- Starts of children go with the stay that asked for them, unless somebody has begun one. Then the child is cancelled by the
-- job that is put below; else there is nothing to cancel.
finished as (
    delete from job j
    using unnest($168::int[], $169::uuid[], $180::uuid[]) as r (member, id, cancels)
    where (select passed from gate)[r.member] and j.tenant_id = ($1::int[])[r.member] and j.id = r.id
      and (r.cancels is null or j.attempts = 0)
    returning r.cancels
),
-- A job that is put again is due anew, whoever had it in hand.
put as (
    insert into job (tenant_id, id, kind, instance_id, due_at, payload)
    select ($1::int[])[r.member], r.id, r.kind, r.instance_id, r.due_at, r.payload
    from unnest($162::int[], $163::uuid[], $164::text[], $165::uuid[], $166::timestamptz[], $167::text[])
        as r (member, id, kind, instance_id, due_at, payload)
    where (select passed from gate)[r.member] and not exists (select from finished f where f.cancels = r.id)
    on conflict (tenant_id, id) do update
    set kind = excluded.kind, instance_id = excluded.instance_id, due_at = excluded.due_at, payload = excluded.payload,
        lease_until = null, attempts = 0, last_error = null, claim = null
),
signalled as (
    -- By the database's clock, as it is forgotten: a host's may be off by more than it is kept.
    insert into signal (tenant_id, instance_id, signal_id, identity, content, entry_id, received_at)
    select ($1::int[])[r.member], ($2::uuid[])[r.member], r.signal_id, r.identity, r.content, r.entry_id, now()
    from unnest($170::int[], $171::text[], $172::bytea[], $177::bytea[], $178::uuid[])
        as r (member, signal_id, identity, content, entry_id)
    where (select passed from gate)[r.member]
),
announced as (
    insert into outbox_event (lane, pos, tenant_id, instance_id, seq)
    select ($6::smallint[])[array_position($2::uuid[], a.stream_id)], a.pos, a.tenant_id, a.stream_id, a.seq
    from audited a
    where a.event_seq is not null
)
select
    m.member as "member!",
    (m.revision_from = 0 or m.member in (select member from locked)) as "revision_ok!",
    (select passed from gate)[m.member] as "applied!"
from member m
order by m.member
