//! Hosts and servers crash and the network fails under load. Afterwards no effect may be lost, doubled or out of order.
//!
//! `fixture` is the environment, `load` and `actors` send commands, `checker` checks what must hold. The default run is short;
//! `make soak` runs the same for a long time. Each run prints its seed, and `WRKFLW_SEED` sets it. The actors then draw the same
//! numbers, and failures last as long, but their requests need not meet at the same moments.

mod actors;
mod checker;
mod client;
mod fixture;
mod load;
mod points;
mod random;
mod setting;
mod topic;

use std::time::Duration;

use crate::support::length::at_length;
use crate::support::proxy::{Condition, Proxy};
use crate::support::until;
use fixture::{Fixture, Kafka};
use load::Load;

/// Concurrent actors.
const ACTORS: usize = 8;
/// The delay that a slow network adds to each chunk.
const SLOW: Duration = Duration::from_millis(150);

/// Ends all instances, checks everything, and prints the counts.
async fn close(fixture: Fixture, load: Load, what: &str) -> checker::Counts {
    fixture.forget_leases().await;
    let failed = load.failed();
    let (client, journal) = load.close().await;
    let counts = checker::check(&fixture, &client, &journal).await;
    eprintln!("{what}, {failed} requests without an answer:\n{counts}");
    assert!(counts.accepted > 0, "nothing was tried");
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_killed() {
    let fixture = Fixture::open(2, Kafka::Shared).await;
    setting::make(&fixture).await;
    let mut load = Load::begin(&fixture, ACTORS);
    let kills = at_length(8, 100);
    for kill in 0..kills {
        load.moment().await;
        let host = kill % 2;
        fixture.kill(host);
        fixture.start(host).await;
    }
    let counts = close(fixture, load, &format!("hosts killed {kills} times")).await;
    assert!(
        counts.in_doubt > 0,
        "no command was in flight when a host died"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_crashes() {
    let fixture = Fixture::open(1, Kafka::Shared).await;
    setting::make(&fixture).await;
    let mut load = Load::begin(&fixture, ACTORS);
    let crashes = at_length(2, 20);
    for crash in 0..crashes {
        load.moment().await;
        // Crashes the whole server, or kills one session: then PostgreSQL ends all others and recovers.
        if crash % 2 == 0 {
            let failed = load.failed();
            fixture.postgres.kill().await;
            // Actors ask all the time, and without a server no query is answered. So this comes, at the latest after the time
            // limit of a request: each such crash has hit something. A killed session need not, if the server recovers fast.
            load.hit(failed).await;
            fixture.postgres.start_again().await;
        } else {
            fixture.postgres.kill_a_session().await;
        }
    }
    load.moment().await;
    close(
        fixture,
        load,
        &format!("PostgreSQL crashed {crashes} times"),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_broker_is_killed() {
    let fixture = Fixture::open(1, Kafka::Own).await;
    setting::make(&fixture).await;
    let mut load = Load::begin(&fixture, ACTORS);
    let broker = fixture.broker.as_ref().expect("a broker of our own");
    let kills = at_length(2, 20);
    for _ in 0..kills {
        load.moment().await;
        broker.kill().await;
        // Commands do not need the broker. Their events wait, because only its answer removes them.
        load.moment().await;
        let look = async || fixture.count("select count(*) from outbox_event").await;
        until("events wait", look, |events: &i64| *events > 0).await;
        broker.start_again().await;
    }
    close(fixture, load, &format!("broker killed {kills} times")).await;
}

/// A failure of the network.
#[derive(Debug, Clone, Copy)]
enum Failure {
    Cut,
    Slow,
    Stalled,
    Lost,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_network_fails() {
    let fixture = Fixture::open(2, Kafka::Own).await;
    setting::make(&fixture).await;
    let mut load = Load::begin(&fixture, ACTORS);
    let failures = at_length(4, 20);
    for round in 0..failures {
        load.moment().await;
        let failure = [Failure::Lost, Failure::Cut, Failure::Stalled, Failure::Slow][round % 4];
        let networks = [&fixture.to_postgres, &fixture.to_kafka];
        // Every failure first affects all connections, then some of them.
        let (hit, has_postgres) = match (round / 4) % 3 {
            0 => (&networks[..], true),
            1 => (&networks[..1], true),
            _ => (&networks[1..], false),
        };
        let pause = Duration::from_millis(load.random.below(2_000) as u64);
        let failed = load.failed();
        let before: Vec<u64> = hit.iter().map(|network| network.connections()).collect();
        begin(hit, failure);
        // This is the duration of the failure, not a wait for a condition.
        tokio::time::sleep(pause).await;
        let is_cut = matches!(failure, Failure::Cut);
        if is_cut && has_postgres {
            // Actors ask all the time, and without a connection no query is answered. So this comes, at the latest after the time
            // limit of a request. The other failures may only delay answers.
            load.hit(failed).await;
        }
        for network in hit {
            network.set(Condition::Up);
        }
        // Hosts recover by themselves, before the kernel resets the lost connections.
        load.moment().await;
        if is_cut {
            reconnected(hit, &before).await;
        }
        for network in hit {
            network.reset_lost();
        }
    }
    close(fixture, load, &format!("network failed {failures} times")).await;
}

/// Applies a failure until the networks are set to work again.
fn begin(hit: &[&Proxy], failure: Failure) {
    let set = |condition| hit.iter().for_each(|network| network.set(condition));
    match failure {
        Failure::Cut => set(Condition::Cut),
        Failure::Slow => set(Condition::Slow(SLOW)),
        Failure::Stalled => set(Condition::Stalled),
        Failure::Lost => hit.iter().for_each(|network| network.lose()),
    }
}

/// Waits until hosts have opened new connections in place of those that were cut. Commands go on, and need the database. Their
/// events need Kafka.
async fn reconnected(networks: &[&Proxy], before: &[u64]) {
    for (network, before) in networks.iter().zip(before) {
        let look = async || network.connections();
        until("hosts connect again", look, |now: &u64| now > before).await;
    }
}
