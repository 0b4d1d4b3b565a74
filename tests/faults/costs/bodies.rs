//! Bodies of the largest size, at every endpoint that takes JSON.

use super::*;
use crate::api::with_hostile;

/// The largest body.
const BODY_BYTES: usize = 256 * 1024;
/// Nearly the largest upload.
const UPLOAD_BYTES: usize = 24 << 20;

/// An object of nearly so many bytes, with as many members as fit, in random order.
fn members(bytes: usize) -> String {
    const MEMBER: usize = r#""00000000":[0],"#.len();
    let members: Vec<_> = (0..bytes / MEMBER)
        .rev()
        .map(|number| format!(r#""{number:08}":[0]"#))
        .collect();
    format!("{{{}}}", members.join(","))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_the_largest_size_delay_nobody() {
    const BOUNDARY: &str = "----boundary";
    let fixture = Fixture::open().await;
    with_hostile(&fixture.app).await;
    let around = r#"{"definitionKey":"hostile","entityType":"thing","entityId":"t","data":}"#;
    let body = around.replace(
        '}',
        &format!("{}}}", members(BODY_BYTES - around.len() - 100)),
    );
    let start = CostlyRequest {
        body: body.into_bytes(),
        ..CostlyRequest::send(
            "a body",
            "author",
            ("POST", "/v1/instances?dryRun=true"),
            &json!({}),
        )
    };
    // The whole body is read, and then refused as data of the instance.
    fixture.delays_nobody(start.answered(422)).await;
    let config = members(UPLOAD_BYTES);
    let form = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"config\"\r\n\r\n{config}\r\n--{BOUNDARY}\r\n\
         Content-Disposition: form-data; name=\"component\"; filename=\"c.wasm\"\r\n\r\n\0asm\r\n--{BOUNDARY}--\r\n"
    );
    let publish = CostlyRequest {
        body: form.into_bytes(),
        content_type: format!("multipart/form-data; boundary={BOUNDARY}"),
        ..CostlyRequest::send(
            "a config",
            "admin",
            ("POST", "/v1/definitions/large/versions"),
            &json!({}),
        )
    };
    fixture.delays_nobody(publish.answered(413)).await;
}
