//! Rows with which every statement of the reader finds something.

use serde_json::json;
use wrkflw::sample::DOCUMENT_APPROVAL;

use crate::api::access::World;
use crate::support::app::TestApp;

/// Another instance with many open tasks, so that searches by state use the index.
const CROWD: &str = "
    insert into instance
    select (jsonb_populate_record(i, jsonb_build_object('id', lpad('1', 32, '0'), 'entity_id', 'crowd'))).*
    from instance i order by id limit 1;
    insert into state_instance
    select (jsonb_populate_record(s, jsonb_build_object('id', i.id, 'instance_id', i.id, 'name', 'Elsewhere'))).*
    from state_instance s, instance i where left_at is null and entity_id = 'crowd' order by s.id limit 1;
    insert into task
    select (jsonb_populate_record(t, jsonb_build_object(
        'id', lpad(n::text, 32, '0'), 'instance_id', i.id, 'state_id', i.id, 'status', 'PENDING', 'owner', null
    ))).*
    from task t, instance i, generate_series(1, 200) n
    where entity_id = 'crowd' and t.id = (select id from task where status = 'PENDING' order by id limit 1)";

/// A row for every list: a lasting absence, an attribute, a second version, a refused attempt.
pub(super) async fn furnish(world: &World) {
    const ROWS: &str = "insert into absence
        (tenant_id, id, person_id, substitute_id, active_from, active_until, created_at, created_by)
        select tenant_id, gen_random_uuid(), 'author', 'reviewer', now() - interval '1 hour', now() + interval '1 hour',
            now() - interval '1 hour', 'author' from person where id = 'author';
        insert into manager (tenant_id, person_id, manager_id, valid_from)
        select tenant_id, id, 'approver', now() - interval '1 hour' from person where id = 'reviewer';
        insert into attribute (tenant_id, instance_id, name, type, text_value)
        select tenant_id, id, 'title', 'text', 'A plan' from instance;
        insert into muted_notification select tenant_id, p, 'MENTION' from subscription, unnest('{admin,author,reviewer}'::text[]) p;
        insert into saved_view select tenant_id, p, id, 'Mine', 'view=mine', false from subscription, unnest('{admin,author,reviewer}'::text[]) p;
        insert into series_point select id, 'starts', date_bin('1 minute', now(), 'epoch'), 1, '', 1 from tenant where name = 'default';
        insert into preference select tenant_id, p, 'de', null, null from subscription, unnest('{admin,author,reviewer}'::text[]) p;
        update instance set revision = revision + 1;
        update task set due_at = '2099-01-01' where ended_at is null;
        insert into attribute_declaration
        select distinct tenant_id, 'title', definition_key, 'text' from instance;
        insert into webhook_delivery
        (tenant_id, subscription_id, message_id, notifies, instance_id, seq, created_at, due_at)
        select s.tenant_id, s.id, i.id, false, i.id, 1, started_at, started_at
        from instance i join subscription s on s.tenant_id = i.tenant_id;
        insert into webhook_delivery
        (tenant_id, subscription_id, message_id, notifies, instance_id, seq, created_at, due_at)
        select s.tenant_id, s.id, e.id, false, e.stream_id, e.seq, e.occurred_at, e.occurred_at
        from audit_entry e join subscription s on s.tenant_id = e.tenant_id where e.event_seq = 1;
        insert into job (tenant_id, id, kind, instance_id, due_at, payload, last_error)
        select tenant_id, id, 'deadline', id, now() + interval '1 day', '{}', 'no' from instance;
        insert into signal (tenant_id, instance_id, signal_id, received_at, entry_id)
        select tenant_id, id, '1', now(), id from instance;
        insert into signal_inbox (tenant_id, id, correlation, signal_id, trigger, input, sender, received_at)
        select tenant_id, id, 'order 7', id, 'PAID', '{}', '{\"id\":\"author\",\"roles\":[]}', now() from instance;
        insert into audit_leaf (tenant_id, leaf, stream_kind, stream_id, seq, digests)
        select tenant_id, row_number() over (order by pos) - 1, stream_kind, stream_id, seq, hash from audit_entry;
        insert into checkpoint (tenant_id, number, size, root, previous_root, signed_at, key_id, signature, frontier)
        select id, 1, 1, '', '', '2025-01-01', 'k1', '', '' from tenant where name = 'default';
        insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
        select tenant_id, stream_id, seq, 0, pos, 'too large', 1, now() from audit_entry where stream_kind = 'instance'";
    let app = &world.app;
    let comment = format!("/v1/instances/{}/comment", world.instance);
    let body = json!({ "comment": "Why so long?" });
    app.post("reviewer", &comment, body).await.expect(200);
    for rows in [ROWS, CROWD] {
        sqlx::raw_sql(rows)
            .execute(app.database.admin_pool())
            .await
            .expect("furniture");
    }
    let own = format!("/v1/tasks/{}/claim", world.task);
    let refused = app.post("author", &own, json!({})).await;
    assert_eq!(refused.problem(403, "forbidden")["reason"], "own_request");
    let config = json!({ "reviewers": "approvers" });
    let second = app.publish("document-approval", DOCUMENT_APPROVAL, &config);
    second.await.expect(201);
}

/// Rows that a host would not read again: a forged seal, and a forged signal with its entry.
pub(super) async fn record(app: &TestApp) {
    const ROWS: &str = "
        insert into delegation_seal select tenant_id, id, 1000, 'k', 1, '' from instance;
        insert into signal_subscription (tenant_id, correlation, trigger, entered_at, state_id, instance_id)
        select tenant_id, id, 'PAID', now(), id, id from instance;
        insert into audit_entry
        select (jsonb_populate_record(e, jsonb_build_object('seq', 1000, 'id', gen_random_uuid(), 'type', 'SIGNAL_RECEIVED', 'event_seq', null))).*
        from audit_entry e where stream_kind = 'instance' and seq = 1";
    sqlx::raw_sql(ROWS)
        .execute(app.database.admin_pool())
        .await
        .expect("furniture");
}
