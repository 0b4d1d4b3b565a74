//! Crashes under load: hosts and servers die, the network fails, and afterwards everything is as if they had not.
//!
//! `field` is what there is, `load` and `actors` are who acts, `checker` knows what must hold. The everyday run is short;
//! `make soak` runs the same for long.

mod actors;
mod checker;
mod client;
mod dice;
mod field;
mod load;
mod points;
mod setting;
mod topic;

use std::time::Duration;

use crate::support::length::at_length;
use crate::support::proxy::{Mood, Proxy};
use dice::Dice;
use field::{Field, Kafka};
use load::Load;

/// Who act at once.
const ACTORS: usize = 8;
/// By how much a slow network delays each piece of what it carries.
const SLOW: Duration = Duration::from_millis(150);

/// Brings everything to its end, checks all of it, and prints the counts.
async fn close(field: Field, load: Load, what: &str) -> checker::Counts {
    field.forget_leases().await;
    let (client, journal) = load.close().await;
    let counts = checker::check(&field, &client, &journal).await;
    eprintln!("{what}:\n{counts}");
    assert!(counts.accepted > 0, "nothing was tried");
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_killed() {
    let field = Field::open(2, Kafka::Shared).await;
    setting::make(&field).await;
    let mut load = Load::begin(&field, ACTORS);
    let kills = at_length(8, 100);
    for kill in 0..kills {
        load.moment().await;
        let host = kill % 2;
        field.kill(host);
        field.start(host).await;
    }
    let counts = close(field, load, &format!("hosts killed {kills} times")).await;
    assert!(
        counts.in_doubt > 0,
        "no command was under way when a host died"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_crashes() {
    let field = Field::open(1, Kafka::Shared).await;
    setting::make(&field).await;
    let mut load = Load::begin(&field, ACTORS);
    let crashes = at_length(2, 20);
    for crash in 0..crashes {
        load.moment().await;
        // The whole server, or one session, for which the server ends all others and recovers as well.
        if crash % 2 == 0 {
            field.postgres.crash().await;
        } else {
            field.postgres.kill_a_session().await;
        }
    }
    load.moment().await;
    close(field, load, &format!("PostgreSQL crashed {crashes} times")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_broker_is_killed() {
    let field = Field::open(1, Kafka::Own).await;
    setting::make(&field).await;
    let mut load = Load::begin(&field, ACTORS);
    let broker = field.broker.as_ref().expect("a broker of our own");
    let kills = at_length(2, 20);
    for _ in 0..kills {
        load.moment().await;
        broker.kill().await;
        // Nobody who acts needs it.
        load.moment().await;
        broker.start_again().await;
    }
    close(field, load, &format!("broker killed {kills} times")).await;
}

/// What happens to the network, and for how long at the most.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    Cut,
    Slow,
    Still,
    Lost,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_network_fails() {
    let field = Field::open(2, Kafka::Own).await;
    setting::make(&field).await;
    let mut load = Load::begin(&field, ACTORS);
    let mut dice = Dice::new(Dice::seed());
    let troubles = at_length(4, 20);
    for round in 0..troubles {
        load.moment().await;
        let trouble = [Trouble::Lost, Trouble::Cut, Trouble::Still, Trouble::Slow][round % 4];
        let networks = [&field.to_postgres, &field.to_kafka];
        // Every kind of trouble befalls all of it first, then parts of it.
        let hit: &[&Proxy] = match (round / 4) % 3 {
            0 => &networks,
            1 => &networks[..1],
            _ => &networks[1..],
        };
        let pause = Duration::from_millis(dice.below(2_000) as u64);
        weather(hit, trouble, pause).await;
        // Hosts get over it by themselves, before the kernel tells them what it lost.
        load.moment().await;
        for network in hit {
            network.tell();
        }
    }
    close(field, load, &format!("network failed {troubles} times")).await;
}

/// Lets trouble come, and pass.
async fn weather(hit: &[&Proxy], trouble: Trouble, pause: Duration) {
    let turn = |mood| hit.iter().for_each(|network| network.turn(mood));
    match trouble {
        Trouble::Cut => turn(Mood::Cut),
        Trouble::Slow => turn(Mood::Slow(SLOW)),
        Trouble::Still => turn(Mood::Still),
        Trouble::Lost => hit.iter().for_each(|network| network.lose()),
    }
    // It is the trouble itself that lasts, not a wait for something.
    tokio::time::sleep(pause).await;
    turn(Mood::Sound);
}
