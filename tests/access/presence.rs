//! Two hosts of one database are in the list of hosts. A host that stops leaves it at once. A killed one leaves it when its row
//! has expired.

use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::host::Host;
use crate::support::app::{SECRET, TestApp};
use crate::support::until_so;

async fn hosts(app: &TestApp) -> Vec<Value> {
    let answer = app.get("admin", "/v1/hosts").await.expect(200);
    answer["data"].as_array().expect("data").clone()
}

/// Waits until this many hosts are listed.
async fn until(app: &TestApp, count: usize) -> Vec<Value> {
    let look = async || hosts(app).await;
    until_so(look, |listed: &Vec<Value>| listed.len() == count).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_host_leaves_the_list_at_once_and_a_killed_one_expires() {
    let app = TestApp::start().await;
    let url = app.database.url();
    let secret = String::from_utf8(SECRET.to_vec()).expect("text");
    let secret = ("jwt_secret", secret.as_str());
    let stopped = Host::start(url, &[secret]).await;
    let killed = Host::start(url, &[secret, ("roles", "api,timers")]).await;
    let listed = hosts(&app).await;
    assert_eq!(
        listed.len(),
        2,
        "each host is listed when it serves: {listed:?}"
    );
    let (name, roles) = (&listed[1]["name"], &listed[1]["roles"]);
    let port = format!(":{}", killed.address.port());
    assert!(
        name.as_str().is_some_and(|name| name.ends_with(&port)),
        "{name}"
    );
    assert_eq!(*roles, json!(["api", "timers"]));
    assert_eq!(listed[0]["version"], env!("CARGO_PKG_VERSION"));

    let pid = stopped.pid().to_string();
    let status = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(status.expect("a program of the system").success());
    let begun = Instant::now();
    until(&app, 1).await;
    let took = begun.elapsed().as_secs();
    assert!(
        took < 20,
        "a stopping host deletes its row, which would expire after 30 s: {took} s"
    );

    drop(killed);
    assert_eq!(hosts(&app).await.len(), 1, "its row is still there");
    until(&app, 0).await;
}
