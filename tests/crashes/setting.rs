//! The people, groups and flows of the actors.

use serde_json::json;
use wrkflw::sample::DOCUMENT_APPROVAL;

use super::actors::GROUPS;
use super::client::{Client, PEOPLE, Reply};
use super::fixture::Fixture;
use crate::support::guests::{committee, subflows};

const BOUNDARY: &str = "----boundary";

/// Creates everything through the first host.
pub(super) async fn make(fixture: &Fixture) {
    let client = fixture.client();
    tokio::task::spawn_blocking(move || {
        for person in PEOPLE {
            put(
                &client,
                &format!("people/{person}"),
                &json!({ "name": person }),
            );
        }
        for (group, members) in GROUPS {
            put(
                &client,
                &format!("groups/{group}"),
                &json!({ "name": group }),
            );
            for member in members {
                put(
                    &client,
                    &format!("groups/{group}/members/{member}"),
                    &json!({}),
                );
            }
        }
        for (key, component) in [
            ("document-approval", DOCUMENT_APPROVAL),
            ("committee", committee()),
            ("subflows", subflows()),
        ] {
            let published = publish(&client, key, component);
            assert_eq!(published.status, 201, "{}", published.text);
            let activated = activate(&client, key);
            assert_eq!(activated.status, 200, "{}", activated.text);
        }
    })
    .await
    .expect("no panic");
}

fn put(client: &Client, what: &str, body: &serde_json::Value) {
    let path = format!("/v1/{what}");
    let reply = send(
        client,
        "PUT",
        &path,
        "application/json",
        body.to_string().as_bytes(),
    );
    assert_eq!(reply.status, 200, "{path}: {}", reply.text);
}

/// Publishes a component without a config.
fn publish(client: &Client, key: &str, component: &[u8]) -> Reply {
    let (kind, body) = upload(component);
    send(
        client,
        "POST",
        &format!("/v1/definitions/{key}/versions"),
        &kind,
        &body,
    )
}

/// The content type and the body that publish a component without a config.
pub(super) fn upload(component: &[u8]) -> (String, Vec<u8>) {
    let mut body = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"config\"\r\n\r\n{{}}\r\n--{BOUNDARY}\r\n\
         Content-Disposition: form-data; name=\"component\"; filename=\"c.wasm\"\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(component);
    body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={BOUNDARY}"), body)
}

/// Subscribes a URL to every event.
pub(super) async fn subscribe(fixture: &Fixture, url: &str) {
    let (client, body) = (fixture.client(), json!({ "url": url, "types": ["*"] }));
    let sending = tokio::task::spawn_blocking(move || {
        send(
            &client,
            "POST",
            "/v1/subscriptions",
            "application/json",
            body.to_string().as_bytes(),
        )
    });
    let reply = sending.await.expect("no panic");
    assert_eq!(reply.status, 201, "{}", reply.text);
}

fn activate(client: &Client, key: &str) -> Reply {
    let path = format!("/v1/definitions/{key}/versions/1/activate");
    send(client, "POST", &path, "application/json", b"{}")
}

fn send(client: &Client, method: &str, path: &str, kind: &str, body: &[u8]) -> Reply {
    let answered = client.send(0, ("admin", method, path), &[("content-type", kind)], body);
    answered.unwrap_or_else(|error| panic!("{path}: {error}"))
}
