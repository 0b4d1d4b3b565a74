//! `wrkflw subscription listen`: a receiver of webhooks on this machine.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Stdio;

use serde_json::Value;

use crate::program::Place;

#[test]
fn a_local_receiver_prints_what_a_subscription_sends() {
    let place = Place::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = free.local_addr().expect("its address").port();
    drop(free);
    let url = format!("http://127.0.0.1:{port}/");
    let created = place.data(&format!("subscription create {url} --type flow.started"));
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
    // What is sent before it listens is sent again.
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
