//! A tenant whose notifications, webhooks or events fail delays no other tenant.

use std::collections::BTreeMap;

use wrkflw_store::outbox::{ClaimStart, Waiting};

use super::notifications::{notifier, settings};
use super::webhooks::{subscribe, waiting};
use super::*;
use crate::events::consumer::Consumer;
use crate::faults::dead_letters::{self, Sending};
use crate::support::app::neighbour::Neighbour;
use crate::support::receiver::Receiver;
use crate::support::until_so;

/// The events of an instance that has just started.
const EVENTS_OF_A_START: usize = 3;
const TYPES: [&str; 3] = ["flow.*", "state.*", "task.*"];
/// A version in a format that a later release may write.
const UNREADABLE: &str = "set session_replication_role = replica; update definition_version set graph = '{}' where tenant_id = 1";

/// Moves all events to one partition, and lets the relay send only that one.
const IN_ONE_PARTITION: &str = "update outbox_event set partition = 0; update outbox_partition set retry_at = 'infinity' where partition <> 0";

/// A subscription of the neighbour to the events of instances.
async fn neighbours_hook(neighbour: &Neighbour) -> Receiver {
    let hook = Receiver::start().await;
    let body = json!({ "url": hook.url, "types": TYPES });
    let made = neighbour.send("POST", "/v1/subscriptions", body).await;
    made.expect(201);
    hook
}

/// Checks that each instance that the neighbour starts reaches its receiver.
async fn neighbour_is_served(neighbour: &Neighbour, hook: &mut Receiver) {
    for entity in ["theirs-1", "theirs-2"] {
        let started = neighbour.start(entity).await;
        for _ in 0..EVENTS_OF_A_START {
            let received = hook.next().await;
            assert_eq!(received.body["subject"], started["instance"]["id"]);
        }
    }
}

/// The statements that write many notifications or many deliveries time out. Of a batch, the notifications are written first. While it is
/// split, first their statement fails, and later that of the deliveries.
#[tokio::test]
async fn a_batch_that_fails_is_split_while_other_tenants_go_on() {
    const INSTANCES: usize = 10;
    let app = TestApp::start().await;
    let neighbour = Neighbour::of(&app).await;
    let mut others = neighbours_hook(&neighbour).await;
    let mut hook = Receiver::start().await;
    subscribe(&app, &hook.url, &TYPES).await;
    let slow = "create function refuse_many() returns trigger language plpgsql as $$ begin
            if (select count(*) from added where tenant_id = 1) > 5 then
                raise exception 'canceling statement due to statement timeout' using errcode = '57014';
            end if;
            return null;
        end $$;
        create trigger refuse_many after insert on notification referencing new table as added
            for each statement execute function refuse_many();
        create trigger refuse_many after insert on webhook_delivery referencing new table as added
            for each statement execute function refuse_many()";
    sql(&app, slow).await;
    for number in 0..INSTANCES {
        app.started(&format!("doc-{number}")).await;
    }
    let _working = notifier(&app, settings(&[]));
    neighbour_is_served(&neighbour, &mut others).await;
    for _ in 0..INSTANCES * EVENTS_OF_A_START {
        hook.next().await;
    }
    // One for each task: ten of this tenant, two of the neighbour.
    let query = "select count(*) filter (where tenant_id = 1) = 10 and count(*) filter (where tenant_id <> 1) = 2
        from notification";
    until(&app, query).await;
}

#[tokio::test]
async fn webhooks_of_an_unreadable_version_delay_no_other_tenant() {
    let app = TestApp::start().await;
    let neighbour = Neighbour::of(&app).await;
    let mut others = neighbours_hook(&neighbour).await;
    let mut hook = Receiver::start().await;
    let own = subscribe(&app, &hook.url, &TYPES).await;
    app.started("doc-1").await;
    sql(&app, UNREADABLE).await;
    let _working = notifier(&app, settings(&[]));
    waiting(&app, &own, "pending", EVENTS_OF_A_START).await;
    neighbour_is_served(&neighbour, &mut others).await;
    assert!(hook.rest().is_empty());
    waiting(&app, &own, "pending", EVENTS_OF_A_START).await;
}

/// The leases of the first ones end before all are claimed. So the first ones would always be claimed again.
#[tokio::test]
async fn many_unreadable_webhooks_delay_no_others_of_their_subscription() {
    let app = TestApp::start().await;
    let mut hook = Receiver::start().await;
    let own = subscribe(&app, &hook.url, &TYPES).await;
    app.started("doc-1").await;
    let many = "insert into webhook_delivery (tenant_id, subscription_id, message_id, notifies, instance_id, seq, created_at, due_at)
        select s.tenant_id, s.id, gen_random_uuid(), false, o.instance_id, o.seq, now(), now() - interval '1 hour'
        from subscription s, outbox_event o, generate_series(1, 200)";
    sql(&app, many).await;
    sql(&app, UNREADABLE).await;
    let _working = notifier(&app, settings(&[]));
    let test = format!(
        "/v1/subscriptions/{}/test",
        own["id"].as_str().expect("an id")
    );
    app.post("admin", &test, json!({})).await.expect(202);
    let received = hook.next().await;
    let kind = received.body["type"].as_str().expect("a type");
    assert!(kind.ends_with("webhook.test"), "{kind}");
}

#[tokio::test]
async fn events_of_an_unreadable_version_delay_no_other_tenant() {
    let app = TestApp::start().await;
    let neighbour = Neighbour::of(&app).await;
    let started = app.started("doc-1").await;
    let id = started["id"].as_str().expect("an id");
    let graphs = "create table kept as select * from definition_version where tenant_id = 1";
    sql(&app, graphs).await;
    sql(&app, UNREADABLE).await;
    let others = neighbour.start("theirs").await;
    sql(&app, IN_ONE_PARTITION).await;

    let (_sending, mut consumer) = sent_first(&app, &others).await;
    let query = "select last_error like 'this release cannot read version 1 of the definition document-approval: %'
        from outbox_partition where partition = 0";
    until(&app, query).await;

    let again = "set session_replication_role = replica;
        update definition_version v set graph = k.graph from kept k where v.tenant_id = 1 and v.key = k.key and v.version = k.version";
    sql(&app, again).await;
    consumer.receive(2 * EVENTS_OF_A_START).await;
    let later = &keys(&consumer)[EVENTS_OF_A_START..];
    assert_eq!(later, [id; EVENTS_OF_A_START]);
    consumer.assert_in_order();
}

/// Replays refer to the same entries, so they are unreadable, too.
#[tokio::test]
async fn more_unreadable_events_than_one_claim_reads_delay_no_others() {
    let app = TestApp::start().await;
    let neighbour = Neighbour::of(&app).await;
    app.started("doc-1").await;
    let many = "insert into outbox_event (partition, pos, tenant_id, instance_id, seq, replayed)
        select e.partition, nextval('event_pos'), e.tenant_id, e.instance_id, e.seq, true from outbox_event e, generate_series(1, 400)";
    sql(&app, many).await;
    sql(&app, UNREADABLE).await;
    let others = neighbour.start("theirs").await;
    sql(&app, IN_ONE_PARTITION).await;

    sent_first(&app, &others).await;
}

/// Sends events. Those of the neighbour's instance come first.
async fn sent_first(app: &TestApp, others: &Value) -> (Sending, Consumer) {
    let settings = dead_letters::settings(app);
    let sending = dead_letters::send(app, &settings);
    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    consumer.receive(EVENTS_OF_A_START).await;
    let neighbours = others["instance"]["id"].as_str().expect("an id");
    assert_eq!(keys(&consumer), [neighbours; EVENTS_OF_A_START]);
    (sending, consumer)
}

fn keys(consumer: &Consumer) -> Vec<String> {
    let received = consumer.received.iter();
    received.map(|event| event.key.clone()).collect()
}

#[tokio::test]
async fn an_event_after_skipped_ones_waits_for_the_one_before_it() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    sql(&app, IN_ONE_PARTITION).await;
    let outbox = app.store().outbox();
    let claim = async |reach, passed: &BTreeMap<i16, i64>| {
        let claimed = outbox.claim(reach, passed).await;
        let claim = claimed.expect("an answer").expect("a claim");
        let follows = |event: &Waiting| (event.pos, event.follows_waiting);
        let events: Vec<_> = claim.events.iter().map(follows).collect();
        let passed = claim.passed;
        claim.release().await.expect("a release");
        (passed, events)
    };
    let (_, events) = claim(ClaimStart::AboveFloor, &BTreeMap::new()).await;
    assert_eq!(events.len(), EVENTS_OF_A_START);
    assert!(events.iter().all(|(_, follows)| !follows));
    let positions: Vec<_> = events.iter().map(|(pos, _)| *pos).collect();
    let passed = BTreeMap::from([(0, positions[0])]);
    let behind = vec![(positions[1], true), (positions[2], false)];
    let read = claim(ClaimStart::AboveFloor, &passed).await;
    assert_eq!(read, (Some(positions[0]), behind));
    let read = claim(ClaimStart::Everything, &passed).await;
    assert_eq!(read, (None, events));
}

/// Waits until the condition holds.
async fn until(app: &TestApp, condition: &'static str) {
    let look = async || {
        let query = sqlx::query_scalar::<_, Option<bool>>(condition);
        let holds = query.fetch_one(app.database.admin_pool()).await;
        (condition, holds.expect("an answer"))
    };
    until_so(look, |(_, holds): &(&'static str, Option<bool>)| {
        *holds == Some(true)
    })
    .await;
}
