//! Events that Kafka refuses permanently are parked, with the later ones of their instance. Others are not delayed.

use super::*;
use crate::support::proxy::{Condition, Proxy, Server};

/// The setting of a topic that refuses larger records.
const LIMIT: (&str, &str) = ("max.message.bytes", "20000");

#[tokio::test]
async fn an_event_too_large_for_the_client_is_parked_with_its_followers() {
    let database = Database::create().await;
    let mut settings = settings(&database);
    create_topic(&settings.brokers, &settings.topic, 1, &[]).await;
    let limit = ("message.max.bytes".to_owned(), "20000".to_owned());
    settings.properties.extend([limit]);
    refuses_only_the_poisoned_instance(database, settings).await;
}

#[tokio::test]
async fn an_event_too_large_for_the_broker_is_parked_with_its_followers() {
    let database = Database::create().await;
    let mut settings = settings(&database);
    create_topic(&settings.brokers, &settings.topic, 1, &[LIMIT]).await;
    // Several requests are in flight when one is refused. Those after it must not arrive.
    let small_requests = ("batch.num.messages".to_owned(), "4".to_owned());
    settings.properties.extend([small_requests]);
    refuses_only_the_poisoned_instance(database, settings).await;
}

/// The payload of an event that is larger than [`LIMIT`].
fn huge() -> String {
    format!(
        r#"{{"data":"{}","name":"huge","type":"CUSTOM"}}"#,
        "x".repeat(30_000)
    )
}

/// The refused event is between events of its own instance and of a neighbour in the same partition.
async fn refuses_only_the_poisoned_instance(database: Database, settings: KafkaSettings) {
    let (poisoned, neighbour) = (database.instance().await, database.instance().await);
    let huge = huge();
    for round in 0..40 {
        database.record(0, neighbour, CLAIMED).await;
        database
            .record(0, poisoned, if round == 20 { &huge } else { CLAIMED })
            .await;
    }
    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    let relay = Running::start(database.outbox(), &settings);
    database.drained().await;
    database.record(0, poisoned, CLAIMED).await;
    database.record(0, neighbour, CLAIMED).await;
    database.drained().await;
    consumer.receive(61).await;
    relay.stop().await;

    let sequences = consumer.sequences();
    assert_eq!(
        sequences[&neighbour.to_string()],
        (1..=41).collect::<Vec<_>>()
    );
    assert_eq!(
        sequences[&poisoned.to_string()],
        (1..=20).collect::<Vec<_>>()
    );
    let parked = database.dead_letters(poisoned).await;
    assert_eq!(
        parked.iter().map(|(seq, ..)| *seq).collect::<Vec<_>>(),
        (21..=41).collect::<Vec<_>>()
    );
    let (_, attempts, error) = &parked[0];
    assert_eq!(*attempts, 3);
    assert!(error.contains("Message size too large"), "{error}");
    assert!(
        parked[1..]
            .iter()
            .all(|(_, attempts, error)| *attempts == 0 && error.contains("earlier event"))
    );
    assert_eq!(
        database
            .outbox()
            .backlog()
            .await
            .expect("a measure")
            .dead_letters,
        21
    );
}

/// The broker is so slow that a claim has no time to send all of its events one by one.
#[tokio::test]
async fn an_event_too_large_for_a_slow_broker_is_parked() {
    let (proxy, database) = (Proxy::open().await, Database::create().await);
    let broker = OwnBroker::start_behind(Some(proxy.port())).await;
    let address = broker.address().parse().expect("an address");
    proxy.lead_to(Server::Address(address));
    let settings = KafkaSettings {
        brokers: format!("127.0.0.1:{}", proxy.port()),
        ..settings(&database)
    };
    create_topic(&settings.brokers, &settings.topic, 1, &[LIMIT]).await;
    create_topic(&settings.brokers, &settings.checkpoint_topic, 1, &[]).await;
    let poisoned = database.instance().await;
    database.record(0, poisoned, &huge()).await;
    for _ in 0..400 {
        let neighbour = database.instance().await;
        database.record(0, neighbour, CLAIMED).await;
    }
    proxy.set(Condition::Slow(Duration::from_millis(125)));
    let relay = Running::start(database.outbox(), &settings);
    database
        .eventually("select exists (select from dead_letter)")
        .await;
    assert_eq!(database.dead_letters(poisoned).await.len(), 1);
    proxy.set(Condition::Up);
    database.drained().await;
    relay.stop().await;
    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    consumer.receive(400).await;
    consumer.assert_in_order();
}
