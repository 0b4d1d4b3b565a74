//! How receivers and readers of one tenant delay another one: the same waits, measured with and without them.
//!
//! The machine may be busy, so only ratios within one run are checked, with a tolerance.

use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::events::Stream;
use super::hostile::neighbours::percentile;
use super::notifications::{notifier, settings};
use super::*;
use crate::support::app::neighbour::Neighbour;
use crate::support::receiver::Receiver;

/// How many times as long the median and the slowest waits may take during the attack.
const RATIO_MAX: f64 = 3.0;
/// Differences below this do not count: the polling interval of the loops.
const NOISE: Duration = Duration::from_millis(750);
const TIMEOUT: Duration = Duration::from_mins(1);
const TRIALS: usize = 3;

/// The unfair measurements, if any.
fn unfair(what: &str, quiet: &[Duration], attacked: &[Duration]) -> Option<String> {
    let found = [50, 99].map(|percent| {
        let (quiet, attacked) = (percentile(quiet, percent), percentile(attacked, percent));
        let fair = attacked <= quiet.mul_f64(RATIO_MAX) + NOISE;
        let figures =
            format!("{what}, p{percent}: {quiet:?} without the others, {attacked:?} beside them");
        (!fair).then_some(figures)
    });
    found.into_iter().flatten().next()
}

/// One of a few trials must be fair. Transactions of other tests on the same server delay all events for a moment. Such a delay
/// affects some trials, while the attack slows every one.
async fn assert_fair(mut trial: impl AsyncFnMut(usize) -> Option<String>) {
    let mut figures = Vec::new();
    for number in 0..TRIALS {
        match trial(number).await {
            None => return,
            Some(unfair) => figures.push(unfair),
        }
    }
    panic!("{figures:#?}");
}

/// Accepts and counts connections, and sends nothing.
async fn hanging() -> (String, watch::Receiver<usize>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let (sender, count) = watch::channel(0);
    let mut accepting = JoinSet::new();
    accepting.spawn(async move {
        let mut held = Vec::new();
        while let Ok((socket, _)) = listener.accept().await {
            held.push(socket);
            sender.send_replace(held.len());
        }
    });
    (url, count, accepting)
}

/// How long each of several deliveries takes, from the command to the receiver.
async fn delivered(neighbour: &Neighbour, hook: &mut Receiver, name: &str) -> Vec<Duration> {
    let mut took = Vec::new();
    for number in 0..6 {
        let begun = Instant::now();
        neighbour.start(&format!("{name}-{number}")).await;
        hook.next().await;
        took.push(begun.elapsed());
    }
    took
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_receivers_delay_no_other_tenant() {
    const HANGING: usize = 8;
    let app = TestApp::start().await;
    let neighbour = Neighbour::of(&app).await;
    let mut hook = Receiver::start().await;
    let body = json!({ "url": hook.url, "types": ["task.created"] });
    neighbour
        .send("POST", "/v1/subscriptions", body)
        .await
        .expect(201);
    let _working = notifier(&app, settings(&[Duration::ZERO; 20]));
    let quiet = delivered(&neighbour, &mut hook, "quiet").await;

    let (url, mut count, _accepting) = hanging().await;
    for _ in 0..HANGING {
        let body = json!({ "url": url, "types": ["*"] });
        app.post("admin", "/v1/subscriptions", body)
            .await
            .expect(201);
    }
    let mut own = Receiver::start().await;
    let body = json!({ "url": own.url, "types": ["task.created"] });
    app.post("admin", "/v1/subscriptions", body)
        .await
        .expect(201);
    for number in 0..30 {
        app.started(&format!("doc-{number}")).await;
    }
    let all_hang = count.wait_for(|count| *count >= HANGING);
    let all_hang = tokio::time::timeout(TIMEOUT, all_hang).await;
    drop(all_hang.expect("an attack").expect("a listener"));
    assert_fair(async |trial| {
        let attacked = delivered(&neighbour, &mut hook, &format!("attacked-{trial}")).await;
        unfair("webhooks", &quiet, &attacked)
    })
    .await;
    // They delay no other receivers of the same tenant either.
    for _ in 0..30 {
        own.next().await;
    }
}

/// The neighbour's waits during the attack: for an event in its stream, and for a list.
async fn served(
    app: &TestApp,
    neighbour: &Neighbour,
    stream: &mut Stream,
    name: &str,
) -> (Vec<Duration>, Vec<Duration>) {
    let (mut figures, mut listed) = (Vec::new(), Vec::new());
    for number in 0..12 {
        app.started(&format!("{name}-{number}")).await;
        let begun = Instant::now();
        let started = neighbour.start(&format!("{name}-{number}")).await;
        for event in started["events"].as_array().expect("events") {
            assert_eq!(&stream.next().await.1, event);
        }
        figures.push(begun.elapsed());
        let begun = Instant::now();
        let list = neighbour.send("GET", "/v1/instances", Value::Null).await;
        list.expect(200);
        listed.push(begun.elapsed());
    }
    (figures, listed)
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_without_readers_delay_no_other_tenant() {
    const STREAMS: usize = 200;
    let app = TestApp::start().await;
    app.started("doc").await;
    let neighbour = Neighbour::of(&app).await;
    let mut stream = Stream::of(&neighbour.host, &neighbour.admin, None).await;
    served(&app, &neighbour, &mut stream, "warm").await;
    let quiet = served(&app, &neighbour, &mut stream, "quiet").await;
    let host = app.host();
    let mut unread = Vec::new();
    for number in 0..STREAMS {
        let (_, person) = bearer(&host, &format!("p-{}", number / 20), "default", &["user"]);
        unread.push(Stream::of(&host, &person, None).await);
    }
    assert_fair(async |trial| {
        let name = format!("attacked-{trial}");
        let attacked = served(&app, &neighbour, &mut stream, &name).await;
        unfair("streams", &quiet.0, &attacked.0).or_else(|| unfair("lists", &quiet.1, &attacked.1))
    })
    .await;
    for mut one in unread {
        one.next().await;
    }
}
