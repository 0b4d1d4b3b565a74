//! The OpenAPI document: headers of responses, and keys, values and numbers of bodies.

use super::openapi::document;
use super::*;

#[tokio::test]
async fn headers_of_command_responses_are_declared() {
    let app = TestApp::start().await;
    let document = document(&app).await;
    let host = app.host();
    let start = async || {
        let (key, body) = ([("idempotency-key", "k-1")], approval_start("doc-1"));
        let path = "/v1/instances";
        host.send("author", "POST", path, &key, Some(body)).await
    };
    start().await.expect(201);
    let replayed = start().await;
    let over =
        json!({ "definitionKey": "document-approval", "version": 1, "reason": "it is over" });
    let cancelled = app.post("admin", "/v1/cancellations", over).await;
    let of_start = ["Location", "Preference-Applied", "Idempotency-Replayed"];
    for (path, answer, names) in [
        ("/v1/instances", replayed, &of_start[..]),
        ("/v1/cancellations", cancelled, &of_start[..1]),
    ] {
        let status = answer.status.to_string();
        let operation = &document["paths"][path]["post"];
        let declared = &operation["responses"][&status]["headers"];
        for name in names {
            assert!(answer.headers.contains_key(*name), "{path}: {answer:?}");
            assert!(declared[name].is_object(), "{path}: {name} is not declared");
        }
    }
    let signal = &document["paths"]["/v1/signals/{signal}"]["post"]["responses"];
    assert!(signal["202"]["headers"]["Location"].is_object());
}

#[tokio::test]
async fn maps_and_optional_numbers_of_bodies_have_limits() {
    let app = TestApp::empty().await;
    let document = document(&app).await;
    let schemas = &document["components"]["schemas"];
    for body in ["MigrateBody", "Migrations"] {
        let states = &schemas[body]["properties"]["states"];
        for part in ["propertyNames", "additionalProperties"] {
            assert_eq!(states[part]["pattern"], "^[^\\u0000]*$", "{body}: {part}");
        }
    }
    let version = &schemas["PublishForm"]["properties"]["componentVersion"];
    assert_eq!(version["maximum"], u32::MAX, "{version}");
}
