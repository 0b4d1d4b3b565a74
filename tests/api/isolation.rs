//! A tenant whose notifications, webhooks or events cannot be made holds up no other tenant.

use std::time::Duration;

use super::notifications::{notifier, settings};
use super::webhooks::{subscribe, waiting};
use super::*;
use crate::events::consumer::Consumer;
use crate::faults::dead_letters;
use crate::support::app::neighbour::Neighbour;
use crate::support::receiver::Receiver;

/// Events of an instance that has just started.
const EVENTS_OF_A_START: usize = 3;
const TYPES: [&str; 3] = ["flow.*", "state.*", "task.*"];
/// As a later release may write a version.
const UNREADABLE: &str = "set session_replication_role = replica; update definition_version set graph = '{}' where tenant_id = 1";

/// A subscription of the neighbour to the events of instances.
async fn neighbours_hook(neighbour: &Neighbour) -> Receiver {
    let hook = Receiver::start().await;
    let body = json!({ "url": hook.url, "types": TYPES });
    let made = neighbour.send("POST", "/v1/subscriptions", body).await;
    made.expect(201);
    hook
}

/// Each instance that the neighbour starts reaches its receiver.
async fn neighbour_is_served(neighbour: &Neighbour, hook: &mut Receiver) {
    for entity in ["theirs-1", "theirs-2"] {
        let started = neighbour.start(entity).await;
        for _ in 0..EVENTS_OF_A_START {
            let received = hook.next().await;
            assert_eq!(received.body["subject"], started["instance"]["id"]);
        }
    }
}

/// As if the statement that writes many deliveries took too long.
#[tokio::test]
async fn a_batch_that_fails_is_made_smaller_while_other_tenants_go_on() {
    const INSTANCES: usize = 10;
    let app = TestApp::start().await;
    let neighbour = Neighbour::of(&app).await;
    let mut theirs = neighbours_hook(&neighbour).await;
    let mut hook = Receiver::start().await;
    subscribe(&app, &hook.url, &TYPES).await;
    let slow = "create function refuse_many() returns trigger language plpgsql as $$ begin
            if (select count(*) from added where tenant_id = 1) > 5 then
                raise exception 'canceling statement due to statement timeout' using errcode = '57014';
            end if;
            return null;
        end $$;
        create trigger refuse_many after insert on webhook_delivery referencing new table as added
            for each statement execute function refuse_many()";
    sql(&app, slow).await;
    for number in 0..INSTANCES {
        app.started(&format!("doc-{number}")).await;
    }
    let _working = notifier(&app, settings(&[]));
    neighbour_is_served(&neighbour, &mut theirs).await;
    for _ in 0..INSTANCES * EVENTS_OF_A_START {
        hook.next().await;
    }
}

#[tokio::test]
async fn webhooks_of_a_version_that_cannot_be_read_hold_up_no_other_tenant() {
    let app = TestApp::start().await;
    let neighbour = Neighbour::of(&app).await;
    let mut theirs = neighbours_hook(&neighbour).await;
    let mut hook = Receiver::start().await;
    let own = subscribe(&app, &hook.url, &TYPES).await;
    app.started("doc-1").await;
    sql(&app, UNREADABLE).await;
    let _working = notifier(&app, settings(&[]));
    waiting(&app, &own, "pending", EVENTS_OF_A_START).await;
    neighbour_is_served(&neighbour, &mut theirs).await;
    assert!(hook.rest().is_empty());
    waiting(&app, &own, "pending", EVENTS_OF_A_START).await;
}

#[tokio::test]
async fn events_of_a_version_that_cannot_be_read_hold_up_no_other_tenant() {
    let app = TestApp::start().await;
    let neighbour = Neighbour::of(&app).await;
    let started = app.started("doc-1").await;
    let id = started["id"].as_str().expect("an id");
    let graphs = "create table kept as select * from definition_version where tenant_id = 1;
        update outbox_event set partition = 0; update outbox_partition set retry_at = 'infinity' where partition <> 0";
    sql(&app, graphs).await;
    sql(&app, UNREADABLE).await;
    let theirs = neighbour.start("theirs").await;
    sql(&app, "update outbox_event set partition = 0").await;

    let settings = dead_letters::settings(&app);
    let _sending = dead_letters::send(&app, &settings);
    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    consumer.receive(EVENTS_OF_A_START).await;
    let keys = |consumer: &Consumer| {
        let received = consumer.received.iter().map(|event| event.key.clone());
        received.collect::<Vec<_>>()
    };
    let neighbours = theirs["instance"]["id"].as_str().expect("an id");
    assert_eq!(keys(&consumer), [neighbours; EVENTS_OF_A_START]);
    let told = "select last_error like 'this release cannot read version 1 of the definition document-approval: %'
        from outbox_partition where partition = 0";
    until(&app, told).await;

    let again = "set session_replication_role = replica;
        update definition_version v set graph = k.graph from kept k where v.tenant_id = 1 and v.key = k.key and v.version = k.version";
    sql(&app, again).await;
    consumer.receive(2 * EVENTS_OF_A_START).await;
    assert_eq!(
        keys(&consumer)[EVENTS_OF_A_START..],
        [id; EVENTS_OF_A_START]
    );
    consumer.assert_in_order();
}

/// Until the condition holds.
async fn until(app: &TestApp, condition: &'static str) {
    let looking = async {
        let query = || sqlx::query_scalar::<_, Option<bool>>(condition);
        while query()
            .fetch_one(app.database.admin_pool())
            .await
            .expect("an answer")
            != Some(true)
        {
            crate::support::pause().await;
        }
    };
    let looked = tokio::time::timeout(Duration::from_secs(20), looking).await;
    looked.expect(condition);
}
