//! Searches by typed attributes: every type and operator, exact numbers, pages, and refusals.

use std::fmt::Write as _;

use sqlx::AssertSqlSafe;

use super::*;

/// The id of an instance that a test inserts.
fn id(number: i64) -> String {
    format!("00000000-0000-7000-8000-{number:012x}")
}

/// A host with the hostile flow, which declares an attribute of each type, and this many running instances.
pub(super) async fn filled(instances: i64) -> TestApp {
    let app = TestApp::empty().await;
    with_hostile(&app).await;
    let insert = "insert into instance (tenant_id, id, definition_key, definition_version, revision, status, entity_type,
            entity_id, initiator, requesters, data, started_at, updated_at, audit_seq, audit_head, event_seq, state_instances)
        select t.id, ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'hostile', 1, 1,
            case when n % 2 = 0 then 'RUNNING' else 'COMPLETED' end, 'thing', n::text, 'author', '{author}', '{}', now(), now(), 1,
            '\\x00', 1, 1
        from tenant t, generate_series(1, $1) n where t.name = 'default'";
    let insert = sqlx::query(insert).bind(instances);
    let pool = app.database.admin_pool();
    insert.execute(pool).await.expect("instances");
    app
}

/// Inserts an attribute of instances: the number of each instance, and the value as text.
pub(super) async fn give(app: &TestApp, name: &str, kind: &str, values: &[(i64, String)]) {
    let cast = match kind {
        "decimal" => "numeric",
        "float" => "float8",
        "timestamp" => "timestamptz",
        "bytes" => "bytea",
        plain => plain,
    };
    let insert = format!(
        "insert into attribute (tenant_id, instance_id, name, type, {kind}_value)
        select t.id, v.id, $1, $2, v.value::{cast} from tenant t, unnest($3::uuid[], $4::text[]) v (id, value)
        where t.name = 'default'"
    );
    let ids: Vec<uuid::Uuid> = values
        .iter()
        .map(|(number, _)| id(*number).parse().expect("an id"))
        .collect();
    let values: Vec<_> = values.iter().map(|(_, value)| value.clone()).collect();
    sqlx::query(AssertSqlSafe(insert))
        .bind(name)
        .bind(kind)
        .bind(ids)
        .bind(values)
        .execute(app.database.admin_pool())
        .await
        .expect("attributes");
}

/// The numbers of the instances of a page, and its next cursor.
async fn page(app: &TestApp, query: &str) -> (Vec<i64>, Option<String>) {
    let answer = app.get("author", &format!("/v1/instances?{query}")).await;
    let answer = answer.expect(200);
    let number = |line: &Value| {
        let digits = line["id"].as_str().expect("an id").rsplit('-').next();
        i64::from_str_radix(digits.expect("digits"), 16).expect("a number")
    };
    let lines = answer["data"].as_array().expect("lines");
    let next = answer["page"]["next"].as_str().map(str::to_owned);
    (lines.iter().map(number).collect(), next)
}

/// Reads all pages. None may exceed the limit, and the instances must be in order, each once.
pub(super) async fn all(app: &TestApp, query: &str, limit: usize) -> Vec<i64> {
    let (mut found, mut after) = (Vec::new(), String::new());
    for round in 0.. {
        assert!(round < 500, "the pages of {query} do not end");
        let (lines, next) = page(app, &format!("{query}&limit={limit}{after}")).await;
        assert!(lines.len() <= limit, "{query}");
        found.extend(lines);
        let Some(next) = next else { break };
        after = format!("&after={next}");
    }
    assert!(found.windows(2).all(|two| two[0] > two[1]), "{query}");
    found
}

/// The first instances of a list, in pages of half the size. A page may be short if its search has taken long.
async fn newest(app: &TestApp, query: &str, count: usize) -> Vec<i64> {
    let (mut found, mut after) = (Vec::new(), String::new());
    for round in 0.. {
        assert!(round < 500, "the pages of {query} do not fill");
        let (lines, next) = page(app, &format!("{query}&limit={}{after}", count / 2)).await;
        found.extend(lines);
        if found.len() >= count {
            break;
        }
        let next = next.unwrap_or_else(|| panic!("{query} ends after {}", found.len()));
        after = format!("&after={next}");
    }
    found.truncate(count);
    found
}

/// A decision whose plan writes an attribute of each type.
async fn written(app: &TestApp, entity: &str) -> Value {
    let body = hostile_start(entity, json!({}));
    let instance = app.post("author", "/v1/instances", body).await.started();
    let decision = json!({ "outcome": "GO", "input": { "behaviour": "attributes" } });
    app.decided("reviewer", &instance, decision).await
}

#[tokio::test]
async fn attributes_of_a_plan_are_found_and_shown() {
    let app = TestApp::empty().await;
    with_hostile(&app).await;
    let instance = written(&app, "t-1").await;
    let other = hostile_start("t-2", json!({}));
    let other = app.post("author", "/v1/instances", other).await.started();
    for (query, found) in [
        ("attribute.amount=1000.000000000000000000000000000001", true),
        (
            "attribute.amount=1000.0000000000000000000000000000010",
            true,
        ),
        ("attribute.amount=gt:1000", true),
        ("attribute.amount=1000", false),
        (
            "attribute.amount=lt:1000.000000000000000000000000000001",
            false,
        ),
        (
            "attribute.region=EU&attribute.urgent=true&definitionKey=hostile",
            true,
        ),
        ("attribute.region=EU&attribute.urgent=false", false),
        ("attribute.score=in:0.25,5e-1&status=COMPLETED", true),
        ("attribute.score=0.5&status=RUNNING", false),
        ("attribute.ordered=2026-01-31T13:00:00%2B01:00", true),
        ("attribute.mark=AP8=", true),
        ("attribute.mark=AP8", true),
        ("attribute.mark=AAAA", false),
    ] {
        let answer = app.get("author", &format!("/v1/instances?{query}")).await;
        let lines = answer.expect(200)["data"].clone();
        let ids: Vec<_> = lines
            .as_array()
            .expect("lines")
            .iter()
            .map(|line| &line["id"])
            .collect();
        let expected = if found { vec![&instance["id"]] } else { vec![] };
        assert_eq!(ids, expected, "{query}");
    }
    let lines = app
        .get("author", "/v1/instances?include=attributes")
        .await
        .expect(200);
    let path = format!("/v1/instances/{}", instance["id"].as_str().expect("an id"));
    let shown = app.get("author", &path).await.expect(200);
    assert_eq!(lines["data"][0]["id"], other["id"]);
    assert_eq!(lines["data"][0]["attributes"], json!({}));
    assert_eq!(lines["data"][1]["attributes"], shown["attributes"]);
    assert_eq!(
        shown["attributes"]["amount"],
        json!({ "type": "decimal", "value": "1000.000000000000000000000000000001" })
    );
    assert_eq!(
        shown["attributes"].as_object().map(serde_json::Map::len),
        Some(6)
    );
    let plain = app.get("author", "/v1/instances").await.expect(200);
    assert_eq!(plain["data"][1].get("attributes"), None);
}

#[tokio::test]
async fn attributes_are_kept_after_the_end_of_their_instance() {
    let app = TestApp::empty().await;
    with_hostile(&app).await;
    written(&app, "t-1").await;
    sql(&app, "delete from instance").await;
    let rows = rows(&app).await;
    assert_eq!((rows["instance"], rows["attribute"]), (0, 6));
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table")]
async fn every_type_is_compared_by_its_own_rules() {
    let app = filled(7).await;
    let give = async |name: &str, kind: &str, values: &[&str]| {
        let numbered = (1..).zip(values.iter().map(ToString::to_string));
        give(&app, name, kind, &numbered.collect::<Vec<_>>()).await;
    };
    let (nearly, long) = (
        format!("0.1{}1", "0".repeat(28)),
        format!("{}.{}", "9".repeat(100), "9".repeat(100)),
    );
    let minus = format!("-{long}");
    give(
        "amount",
        "decimal",
        &["0.1", "0.10", &nearly, "-5", &long, &minus],
    )
    .await;
    let (head, tail) = ("ä".repeat(4000), format!("{}b", "ä".repeat(4000)));
    give(
        "region",
        "text",
        &["EU", "EU-west", "a,b\"\\", "", &head, &tail],
    )
    .await;
    give("urgent", "boolean", &["true", "false", "true"]).await;
    give(
        "score",
        "float",
        &["0.1", "0.30000000000000004", "-1e300", "0"],
    )
    .await;
    let times = [
        "2026-01-31T12:00:00.000001Z",
        "2026-01-31T12:00:00Z",
        "0001-01-01T00:00:00Z",
    ];
    give("ordered", "timestamp", &times).await;
    let (empty, big) = ("\\x", format!("\\x{}", "ab".repeat(4000)));
    give("mark", "bytes", &[empty, "\\x00ff", &big]).await;

    let questions = [
        ("amount=0.10", vec![2, 1]),
        ("amount=in:0.1,-5.000", vec![4, 2, 1]),
        ("amount=gt:0.1", vec![5, 3]),
        ("amount=lte:0.1", vec![6, 4, 2, 1]),
        ("amount=ne:0.1", vec![6, 5, 4, 3]),
        ("amount=gte:0&attribute.amount=lt:0.11", vec![3, 2, 1]),
        ("amount=exists:false", vec![7]),
        ("amount=decimal:exists:true", vec![6, 5, 4, 3, 2, 1]),
        ("region=EU", vec![1]),
        ("region=prefix:EU", vec![2, 1]),
        ("region=prefix:%25", vec![]),
        ("region=prefix:E_", vec![]),
        ("region=in:EU,a%5C,b%22%5C%5C", vec![3, 1]),
        ("region=", vec![4]),
        ("region=gt:EU", vec![6, 5, 3, 2]),
        ("region=lt:a", vec![4, 2, 1]),
        ("region=ne:EU&attribute.region=prefix:E", vec![2]),
        ("urgent=true", vec![3, 1]),
        ("urgent=ne:true", vec![2]),
        ("urgent=in:true,false", vec![3, 2, 1]),
        ("urgent=exists:false", vec![7, 6, 5, 4]),
        ("score=0.1", vec![1]),
        ("score=0.30000000000000004", vec![2]),
        ("score=0.3", vec![]),
        ("score=-0", vec![4]),
        ("score=lt:0", vec![3]),
        ("ordered=gt:2026-01-31T12:00:00Z", vec![1]),
        ("ordered=2026-01-31T12:00:00.0000009Z", vec![2]),
        ("ordered=lte:2026-01-31T12:00:00Z", vec![3, 2]),
        ("ordered=in:0001-01-01T00:00:00Z", vec![3]),
        ("mark=", vec![1]),
        ("mark=ne:AP8=", vec![3, 1]),
        ("mark=in:AP8=,AAA=", vec![2]),
        ("mark=exists:true", vec![3, 2, 1]),
        ("mark=exists:true&status=RUNNING", vec![2]),
        ("mark=exists:true&entityId=3&attribute.amount=gt:0", vec![3]),
    ];
    for (query, expected) in questions {
        let query = format!("attribute.{query}");
        assert_eq!(all(&app, &query, 2).await, expected, "{query}");
    }
    // Texts longer than an index row may be, which are equal in the part that the index has.
    let long = urlencoded(&tail);
    assert_eq!(all(&app, &format!("attribute.region={long}"), 2).await, [6]);
    let head = urlencoded(&head);
    let query = format!("attribute.region=gt:{head}");
    assert_eq!(all(&app, &query, 2).await, [6]);
    let query = format!("attribute.region=prefix:{head}");
    assert_eq!(all(&app, &query, 2).await, [6, 5]);
}

fn urlencoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        write!(encoded, "%{byte:02X}").expect("a string takes everything");
        encoded
    })
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table")]
async fn invalid_searches_are_refused_with_the_reason() {
    let app = filled(1).await;
    // Another definition that declares the same name with another type.
    sql(
        &app,
        "insert into attribute_declaration (tenant_id, name, definition_key, type)
        select id, 'region', 'other', 'decimal' from tenant where name = 'default'",
    )
    .await;
    for (query, says) in [
        (
            "attribute.amount=gt:much",
            "attribute.amount: \"much\" is not a decimal",
        ),
        ("attribute.amount=1e3", "attribute.amount"),
        (
            "attribute.amount=prefix:1",
            "takes eq, ne, gt, gte, lt, lte, in, exists, not prefix",
        ),
        (
            "attribute.urgent=gt:true",
            "takes eq, ne, in, exists, not gt",
        ),
        ("attribute.urgent=yes", "true or false"),
        ("attribute.score=inf", "a finite number"),
        ("attribute.ordered=2026-01-31", "a time such as"),
        ("attribute.mark=*", "base64"),
        ("attribute.mark=lt:AAAA", "not lt"),
        ("attribute.amount=exists:maybe", "true or false"),
        ("attribute.amount=in:1,", "attribute.amount"),
        ("include=everything", "include"),
    ] {
        let problem = app.get("author", &format!("/v1/instances?{query}")).await;
        let problem = problem.problem(400, "malformed_request");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.contains(says), "{query}: {detail}");
    }
    let many = ["attribute.amount=1"; 6].join("&");
    let list = format!("attribute.amount=in:{}", ["1"; 21].join(","));
    for query in [
        &many,
        &list,
        "attribute.region=text:a%00b",
        "attribute=1",
        "Attribute.amount=1",
    ] {
        let answer = app.get("author", &format!("/v1/instances?{query}")).await;
        answer.problem(400, "malformed_request");
    }
    let path = format!("/v1/instances?{}", vec!["a"; 5_000].join("&"));
    let answer = app.get("author", &path).await;
    let problem = answer.problem(400, "malformed_request");
    assert_eq!(problem["detail"], "a search has at most 50 parameters");
    for (query, says) in [
        (
            "attribute.colour=red",
            "declared: amount, mark, ordered, region, score, urgent",
        ),
        ("attribute.=red", "declared: amount"),
        (
            "attribute.amount=1&definitionKey=other",
            "of the definition other; declared: region",
        ),
        ("attribute.amount=1&definitionKey=none", "declared: none"),
        (
            "attribute.region=EU",
            "declared as decimal and text: give the definition",
        ),
        (
            "attribute.region=boolean:true",
            "declared as decimal and text, not as boolean",
        ),
        (
            "attribute.amount=text:a",
            "declared as decimal, not as text",
        ),
    ] {
        let problem = app.get("author", &format!("/v1/instances?{query}")).await;
        let problem = problem.problem(422, "invalid_request");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.contains(says), "{query}: {detail}");
    }
    for query in [
        "attribute.region=EU&definitionKey=hostile",
        "attribute.region=text:EU",
        "attribute.region=decimal:gt:5",
        "attribute.region=5&definitionKey=other",
    ] {
        let (found, next) = page(&app, query).await;
        assert_eq!((found, next), (vec![], None), "{query}");
    }
}

#[tokio::test]
async fn attributes_of_another_tenant_are_not_found() {
    let app = filled(2).await;
    give(
        &app,
        "region",
        "text",
        &[(1, "EU".into()), (2, "EU".into())],
    )
    .await;
    sql(
        &app,
        "update attribute set tenant_id = 99 where instance_id::text like '%1'",
    )
    .await;
    assert_eq!(all(&app, "attribute.region=EU", 5).await, [2]);
    assert_eq!(all(&app, "attribute.region=exists:false", 5).await, [1]);
}

/// So many instances that no attribute is selective. Half of them are old, so that a scan from the newest would reach them late.
#[tokio::test]
async fn conditions_that_most_instances_meet_miss_none() {
    const MANY: i64 = 45_000;
    const OLD: i64 = 24_000;
    let app = filled(MANY).await;
    sql(
        &app,
        "insert into attribute (tenant_id, instance_id, name, type, decimal_value)
        select tenant_id, id, 'amount', 'decimal', entity_id::numeric from instance;
        insert into attribute (tenant_id, instance_id, name, type, text_value)
        select tenant_id, id, 'region', 'text', case when entity_id::int <= 24000 then 'OLD' else 'NEW' end from instance;
        insert into attribute (tenant_id, instance_id, name, type, boolean_value)
        select tenant_id, id, 'urgent', 'boolean', entity_id::int % 100 = 0 from instance;
        analyze",
    )
    .await;
    let newest_old = |from: i64| (0..100).map(|back| from - back).collect::<Vec<_>>();
    for query in [
        "attribute.region=OLD",
        "attribute.region=ne:NEW",
        "attribute.region=in:OLD,ELSEWHERE",
        "attribute.region=prefix:O",
        "attribute.amount=lte:24000",
        "attribute.amount=lt:24000.5&attribute.region=exists:true",
    ] {
        assert_eq!(newest(&app, query, 100).await, newest_old(OLD), "{query}");
    }
    let broad = "attribute.amount=gt:0&attribute.region=in:OLD,NEW&attribute.mark=exists:false";
    assert_eq!(newest(&app, broad, 100).await, newest_old(MANY));
    let rare = all(
        &app,
        "attribute.urgent=true&attribute.region=OLD&status=RUNNING",
        100,
    )
    .await;
    assert_eq!(
        rare,
        (1..=OLD / 100).rev().map(|n| n * 100).collect::<Vec<_>>()
    );
    // Each condition matches more than half of the instances. Both match every hundredth of those that the index returns.
    let sparse = "attribute.urgent=ne:false&attribute.amount=gte:1&attribute.region=NEW";
    let expected: Vec<_> = (OLD / 100 + 1..=MANY / 100)
        .rev()
        .map(|n| n * 100)
        .collect();
    assert_eq!(all(&app, sparse, 100).await, expected);
    // Conditions that match nothing: the search ends page by page, each after a bounded scan.
    for nothing in [
        "attribute.region=OLD&attribute.amount=gt:24000",
        "attribute.region=ne:OLD&attribute.amount=lt:24001",
        "attribute.mark=exists:false&attribute.region=ne:OLD&attribute.region=ne:NEW",
    ] {
        assert_eq!(all(&app, nothing, 100).await, [0; 0], "{nothing}");
    }
}
