//! A search by a body has the same result as the same search by a query.

use super::attributes::{filled, give};
use super::*;

async fn found(app: &TestApp, body: Value) -> Vec<Value> {
    let answer = app.post("author", "/v1/instances/search", body).await;
    let data = answer.expect(200)["data"].clone();
    data.as_array().expect("lines").clone()
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
async fn a_body_search_equals_the_query_search() {
    let app = filled(6).await;
    let amounts: Vec<_> = (1..=6).map(|n| (n, format!("{n}.50"))).collect();
    give(&app, "amount", "decimal", &amounts).await;
    let regions = ["in:doubt", "EU", "EU,APAC", "gt:1", "EU", "eq:x"];
    let regions: Vec<_> = (1..).zip(regions.map(str::to_owned)).collect();
    give(&app, "region", "text", &regions).await;
    let one =
        |name: &str, op: &str, value: Value| json!([{ "name": name, "op": op, "value": value }]);
    for (query, body) in [
        ("", json!({})),
        ("limit=2", json!({ "limit": 2 })),
        (
            "status=RUNNING&definitionKey=hostile",
            json!({ "status": "RUNNING", "definitionKey": "hostile" }),
        ),
        (
            "entityType=thing&entityId=3",
            json!({ "entityType": "thing", "entityId": "3" }),
        ),
        (
            "from=2020-01-01T00:00:00Z&until=2020-02-01T00:00:00Z",
            json!({ "from": "2020-01-01T00:00:00Z", "until": "2020-02-01T00:00:00Z" }),
        ),
        (
            "include=attributes&initiator=author",
            json!({ "include": "attributes", "initiator": "author" }),
        ),
        (
            "attribute.amount=gt:3.5",
            json!({ "attributes": one("amount", "gt", json!("3.5")) }),
        ),
        (
            "attribute.amount=gt:3.5",
            json!({ "attributes": one("amount", "gt", json!(3.5)) }),
        ),
        (
            "attribute.region=EU",
            json!({ "attributes": [{ "name": "region", "value": "EU" }] }),
        ),
        (
            "attribute.region=eq:in:doubt",
            json!({ "attributes": [{ "name": "region", "value": "in:doubt" }] }),
        ),
        (
            "attribute.region=eq:gt:1",
            json!({ "attributes": one("region", "eq", json!("gt:1")) }),
        ),
        (
            r"attribute.region=in:EU\,APAC,eq:x",
            json!({ "attributes": one("region", "in", json!(["EU,APAC", "eq:x"])) }),
        ),
        (
            "attribute.region=exists:false",
            json!({ "attributes": one("region", "exists", json!(false)) }),
        ),
        (
            "attribute.amount=decimal:gte:2&attribute.region=prefix:EU",
            json!({ "attributes": [
            { "name": "amount", "type": "decimal", "op": "gte", "value": 2 },
            { "name": "region", "op": "prefix", "value": "EU" },
        ] }),
        ),
    ] {
        let page = app.get("author", &format!("/v1/instances?{query}")).await;
        let page = page.expect(200);
        assert_eq!(json!(found(&app, body).await), page["data"], "{query}");
    }
    assert_eq!(
        found(
            &app,
            json!({ "attributes": one("region", "eq", json!("in:doubt")) })
        )
        .await
        .len(),
        1
    );
}

/// A number that was parsed as a float would have other digits.
#[tokio::test]
async fn a_number_in_a_body_keeps_its_digits() {
    let app = filled(4).await;
    let given = |values: [&str; 4]| -> Vec<_> {
        let values = values.map(str::to_owned);
        (1..).zip(values).collect()
    };
    let amounts = [
        "50000",
        "50000.000000000000000001",
        "50000.1",
        "12345678901234567890123",
    ];
    give(&app, "amount", "decimal", &given(amounts)).await;
    let regions = given(["1.10", "1.1", "1.100", "1"]);
    give(&app, "region", "text", &regions).await;
    for (query, condition, count) in [
        (
            "amount=50000.000000000000000001",
            r#"{"name":"amount","value":50000.000000000000000001}"#,
            1,
        ),
        (
            "amount=gt:50000.000000000000000001",
            r#"{"name":"amount","op":"gt","value":50000.000000000000000001}"#,
            2,
        ),
        (
            "amount=in:50000,12345678901234567890123",
            r#"{"name":"amount","op":"in","value":[50000,12345678901234567890123]}"#,
            2,
        ),
        ("region=1.10", r#"{"name":"region","value":1.10}"#, 1),
    ] {
        let list = format!("/v1/instances?attribute.{query}");
        let page = app.get("author", &list).await.expect(200);
        let host = app.host();
        let body = host
            .request("author", "POST", "/v1/instances/search")
            .header("content-type", "application/json")
            .body(Body::from(format!(r#"{{"attributes":[{condition}]}}"#)));
        let found = host.answer(body.expect("a request")).await.expect(200);
        assert_eq!(found["data"], page["data"], "{condition}");
        let lines = found["data"].as_array().expect("lines");
        assert_eq!(lines.len(), count, "{condition}");
    }
}

/// Base64 may be as long as a body, with or without padding.
#[tokio::test]
async fn long_bytes_are_read() {
    let app = filled(1).await;
    for (length, status) in [(69_998, 200), (69_999, 200), (70_000, 200), (70_001, 400)] {
        let mark = json!([{ "name": "mark", "value": "A".repeat(length) }]);
        let body = json!({ "attributes": mark });
        let answer = app.post("author", "/v1/instances/search", body).await;
        assert_eq!(answer.status, status, "{length}: {}", answer.text);
    }
}

#[tokio::test]
async fn pages_follow_one_another() {
    let app = filled(5).await;
    let (mut seen, mut after) = (Vec::new(), Value::Null);
    loop {
        let body = json!({ "definitionKey": "hostile", "limit": 2, "after": after });
        let page = app
            .post("author", "/v1/instances/search", body)
            .await
            .expect(200);
        seen.extend(page["data"].as_array().expect("lines").clone());
        after = page["page"]["next"].clone();
        if after.is_null() {
            break;
        }
    }
    assert_eq!(seen.len(), 5);
}

/// The search is refused because of this member of its body.
async fn refused(app: &TestApp, body: Value, (status, code): (u16, &str), pointer: &str) {
    let text = body.to_string();
    let problem = app.post("author", "/v1/instances/search", body).await;
    let problem = problem.problem(status, code);
    assert_eq!(
        problem["errors"][0]["pointer"], pointer,
        "{text}: {problem}"
    );
}

#[tokio::test]
async fn an_invalid_member_of_a_search_is_refused_with_its_pointer() {
    let app = filled(1).await;
    let one = |condition: Value| json!({ "attributes": [condition] });
    for (body, pointer) in [
        (json!({ "definition": "hostile" }), "/definition"),
        (json!({ "status": "running" }), "/status"),
        (one(json!({ "name": "amount" })), "/attributes/0/value"),
        (
            one(json!({ "name": "amount", "op": "like", "value": 1 })),
            "/attributes/0/op",
        ),
        (
            one(json!({ "name": "amount", "op": "in", "value": 1 })),
            "/attributes/0/value",
        ),
        (
            one(json!({ "name": "amount", "op": "gt", "value": [1] })),
            "/attributes/0/value",
        ),
        (
            one(json!({ "name": "amount", "value": null })),
            "/attributes/0/value",
        ),
        (
            one(json!({ "name": "amount", "value": { "a": 1 } })),
            "/attributes/0/value",
        ),
        (
            json!({ "attributes": vec![json!({ "name": "amount", "value": 1 }); 6] }),
            "/attributes",
        ),
        (
            one(json!({ "name": "a/b", "value": 1 })),
            "/attributes/0/name",
        ),
        (
            json!({ "attributes": [
                { "name": "amount", "value": 1 },
                { "name": "amount", "type": "text", "value": "1" },
            ] }),
            "/attributes/1/type",
        ),
    ] {
        refused(&app, body, (422, "invalid_request"), pointer).await;
    }
    let outside = app.post("", "/v1/instances/search", json!({})).await;
    assert_eq!(outside.status, 401);
}

#[tokio::test]
async fn a_value_of_the_wrong_type_is_refused_with_its_pointer() {
    let app = filled(1).await;
    let one = |condition: Value| json!({ "attributes": [condition] });
    for (body, pointer) in [
        (
            one(json!({ "name": "amount", "op": "in", "value": [] })),
            "/attributes/0/value",
        ),
        (
            one(json!({ "name": "amount", "op": "in", "value": vec![1; 21] })),
            "/attributes/0/value",
        ),
        (
            one(json!({ "name": "amount", "value": "many" })),
            "/attributes/0/value",
        ),
        (
            one(json!({ "name": "amount", "op": "prefix", "value": 1 })),
            "/attributes/0/op",
        ),
        (json!({ "limit": 101 }), "/limit"),
    ] {
        refused(&app, body, (400, "malformed_request"), pointer).await;
    }
}
