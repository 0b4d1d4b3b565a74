//! `wrkflw subscription`: a local receiver of webhooks, a test event, and the attempts of a delivery.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::TestFolder;

/// The time limit of an attempt on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A subscription with the address of a free port, and the port.
fn subscribed(place: &TestFolder) -> (u16, Value) {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = free.local_addr().expect("its address").port();
    drop(free);
    let url = format!("http://127.0.0.1:{port}/");
    let created = place.data(&format!("subscription create {url} --type flow.started"));
    (port, created)
}

#[test]
fn a_local_receiver_prints_the_messages_of_a_subscription() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    let (port, created) = subscribed(&place);
    let secret = created["secret"].as_str().expect("a secret");
    fs::write(place.folder.join("hook.secret"), secret).expect("our own folder");
    let line = format!(
        "subscription listen --port {port} --secret-file hook.secret --limit 1 --output json"
    );
    let mut listening = place.command(&line);
    let listening = listening
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    place.data(
        r#"instance start document-approval --entity document/1 --data {"title":"Budget"} --as author"#,
    );
    // A message that was sent before it listens is sent again.
    let ended = listening.wait_with_output().expect("it ends by itself");
    assert!(ended.status.success(), "{ended:?}");
    let event: Value = serde_json::from_slice(&ended.stdout).expect("one event");
    assert_eq!(event["type"], "dev.wrkflw.flow.started");
    assert_eq!(event["data"]["entityId"], "1");
    let wrong = place.run("subscription listen --port 0 --secret-file missing.secret");
    assert!(
        wrong.code == 1 && wrong.stderr.contains("missing.secret"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn a_test_event_is_listed_with_its_attempts_retried_and_discarded() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    // Nothing listens there, so no attempt succeeds.
    let (_, created) = subscribed(&place);
    let id = created["id"].as_str().expect("an id");
    let sent = place.data(&format!("subscription test {id}"));
    let delivery = sent["id"].as_str().expect("an id");
    let attempts = || {
        let listed = place.data(&format!("subscription attempts {id} {delivery}"));
        listed["data"].as_array().expect("a list").clone()
    };
    let until = |count: usize| {
        let begun = Instant::now();
        while attempts().len() < count {
            assert!(begun.elapsed() < TIMEOUT, "{:?}", attempts());
        }
    };
    until(1);
    assert!(attempts()[0]["error"].is_string(), "{:?}", attempts());
    let again = place.data(&format!("subscription retry {id} {delivery}"));
    assert_eq!(again["delivery"], delivery);
    until(2);
    let discarded = place.data(&format!(
        "subscription discard {id} {delivery} --reason gone"
    ));
    assert_eq!(discarded["delivery"], delivery);
    let states = |options: &str| {
        let listed = place.data(&format!("subscription deliveries {id}{options}"));
        let deliveries = listed["data"].as_array().expect("a list").iter();
        let states = deliveries.map(|one| one["state"].as_str().expect("a state").to_owned());
        states.collect::<Vec<_>>()
    };
    assert_eq!(states(""), ["discarded"]);
    assert_eq!(states(" --state discarded"), ["discarded"]);
    assert_eq!(states(" --state delivered"), [""; 0]);

    // By a part of its id that no other id has.
    let shown = |named: &str| place.data(&format!("subscription show {named}"))["id"].clone();
    for named in [&id[..30], &id[..23].replace('-', "").to_uppercase()] {
        assert_eq!(shown(named), id, "{named}");
    }
    let (_, second) = subscribed(&place);
    let both = place.run(&format!("subscription show {}", &id[..4]));
    assert_eq!(both.code, 2, "{}", both.stderr);
    for part in [id, second["id"].as_str().expect("an id"), "is ambiguous"] {
        assert!(both.stderr.contains(part), "{part}: {}", both.stderr);
    }
    for (named, code, words) in [
        ("zz", 2, "is no id of a subscription"),
        ("ffffffff", 4, "the beginning of no id of a subscription"),
    ] {
        let ran = place.run(&format!("subscription show {named}"));
        assert_eq!(ran.code, code, "{named}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{named}: {}", ran.stderr);
    }
    place.data(&format!("subscription delete {}", &id[..35]));
    assert_eq!(place.run(&format!("subscription show {id}")).code, 4);
}
