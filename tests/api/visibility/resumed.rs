//! A stream that begins at an earlier position than the events that the host has cached for its streams.

use super::*;
use crate::api::events::{Stream, repeat_first};

/// More events than the host reads before a stream begins, and fewer than it caches.
const MANY: usize = 120;

/// The host caches each event with the people who saw its instance then. Since then somebody was mentioned in one instance, and
/// another instance was migrated to a version that they do not see.
#[tokio::test]
async fn a_stream_from_an_earlier_position_has_what_its_caller_sees_now() {
    let app = chambers().await;
    app.with_approval().await;
    let host = app.host();
    let (_, admin) = super::bearer(&host, "admin", "default", &["admin"]);
    let mut kept = Stream::at(&host, &admin, "/v1/events/stream", None).await;
    app.started("doc-1").await;
    // From here on the host caches new events.
    kept.next().await;
    repeat_first(&app, MANY).await;
    let open = "/v1/definitions/committee/versions/2/activate";
    app.post("admin", open, json!({})).await.expect(200);
    let hidden = vote(&app, "m-1").await;
    let restricted = "/v1/definitions/committee/versions/1/activate";
    app.post("admin", restricted, json!({})).await.expect(200);
    let shown = vote(&app, "m-2").await;
    let first = loop {
        let event = kept.next().await.1;
        if event["subject"] == shown["id"] {
            break event;
        }
    };
    let migrate = format!("/v1/instances/{}/migrate", id(&hidden));
    let to = json!({ "version": 3 });
    app.post("admin", &migrate, to).await.expect(200);
    let comment = format!("/v1/instances/{}/comment", id(&shown));
    let mention = json!({ "comment": "What do you say?", "mentions": ["stranger"] });
    app.post("author", &comment, mention).await.expect(200);

    let (_, stranger) = super::bearer(&host, "stranger", "default", &["user"]);
    let mut resumed = Stream::of(&host, &stranger, None).await;
    let mut events = Vec::new();
    loop {
        let event = resumed.next().await.1;
        assert_ne!(event["subject"], hidden["id"], "{event}");
        if event["subject"] == shown["id"] {
            events.push(event);
        }
        if events
            .last()
            .is_some_and(|event| event["type"] == "dev.wrkflw.flow.commented")
        {
            break;
        }
    }
    assert_eq!(events[0], first);
}
