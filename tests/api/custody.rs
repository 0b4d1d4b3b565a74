//! The history of an entity: its instances, and the chain of custody of every decision and delegation about it.

mod delegations;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use super::*;
use wrkflw_store::directory::tenants;

const ENTITY: &str = "/v1/entities/document/doc-1";

fn id(instance: &Value) -> String {
    instance["id"].as_str().expect("an id").to_owned()
}

fn data(page: &Value) -> Vec<Value> {
    page["data"].as_array().expect("data").clone()
}

/// Runs a statement without triggers.
async fn behind(app: &TestApp, statement: &str) {
    let all = format!(
        "set session_replication_role = replica; {statement}; reset session_replication_role"
    );
    sqlx::raw_sql(AssertSqlSafe(all))
        .execute(app.database.admin_pool())
        .await
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
}

async fn cancelled(app: &TestApp, instance: &Value) {
    let path = format!("/v1/instances/{}/cancel", id(instance));
    let body = json!({ "reason": "asked for too early" });
    app.post("admin", &path, body).await.expect(200);
}

/// All pages of a list, with this page size.
async fn pages(app: &TestApp, path: &str, limit: usize) -> Vec<Value> {
    let (mut items, mut after) = (Vec::new(), String::new());
    loop {
        let sign = if path.contains('?') { '&' } else { '?' };
        let page = app
            .get("admin", &format!("{path}{sign}limit={limit}{after}"))
            .await
            .expect(200);
        let found = data(&page);
        assert!(found.len() <= limit);
        items.extend(found);
        match page["page"]["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return items,
        }
    }
}

#[tokio::test]
async fn the_history_of_an_entity_covers_definitions_and_restarts() {
    let app = TestApp::start().await;
    with_hostile(&app).await;
    let first = app.started("doc-1").await;
    cancelled(&app, &first).await;
    let second = app.started("doc-1").await;
    let third = json!({ "definitionKey": "hostile", "entityType": "document", "entityId": "doc-1", "data": {} });
    let third = app.post("author", "/v1/instances", third).await.started();
    app.started("doc-2").await;
    let (first, second, third) = (id(&first), id(&second), id(&third));
    let link = format!("update instance set predecessor = '{first}' where id = '{second}'");
    behind(&app, &link).await;
    let link = format!("update instance set parent = '{second}' where id = '{third}'");
    behind(&app, &link).await;

    let all = pages(&app, &format!("{ENTITY}/history"), 1).await;
    assert_eq!(
        all.iter().map(id).collect::<Vec<_>>(),
        [&*first, &*second, &*third]
    );
    let of = |member: &str| {
        all.iter()
            .map(|one| one[member].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("status")[..2], ["CANCELLED", "RUNNING"]);
    assert_eq!(of("endReason")[0], "asked for too early");
    assert_eq!(of("endedBy")[..2], [json!("admin"), Value::Null]);
    assert_eq!(of("initiator"), ["author", "author", "author"]);
    assert_eq!(
        of("predecessorId"),
        [Value::Null, json!(first), Value::Null]
    );
    assert_eq!(of("successorIds"), [json!([second]), json!([]), json!([])]);
    assert_eq!(of("parentId"), [Value::Null, Value::Null, json!(second)]);
    assert!(
        all.iter()
            .all(|one| one["startedAt"].is_string() && one["requesters"] == json!(["author"]))
    );

    let hostile = pages(&app, &format!("{ENTITY}/history?definitionKey=hostile"), 5).await;
    assert_eq!(hostile.iter().map(id).collect::<Vec<_>>(), [third]);
    let none = pages(&app, "/v1/entities/document/nothing/history", 5).await;
    assert_eq!(none, [json!(null); 0]);
}

#[tokio::test]
async fn an_entity_may_have_any_name() {
    let app = TestApp::start().await;
    let instance = app.started("A/4 ü?.pdf").await;
    for what in ["history", "custody"] {
        let path = format!("/v1/entities/document/A%2F4%20%C3%BC%3F.pdf/{what}");
        let found = pages(&app, &path, 5).await;
        assert_eq!(
            found.len(),
            usize::from(what == "history"),
            "{what} of {instance}"
        );
    }
}

/// An instance that was rejected with this comment, then reworked and approved once.
async fn decided_thrice(app: &TestApp, entity: &str, comment: &str) -> Value {
    let instance = app.started(entity).await;
    let rejection = json!({ "outcome": "REJECT", "comment": comment, "input": { "pages": 2 } });
    let instance = app.decided("reviewer", &instance, rejection).await;
    let instance = app
        .decided("author", &instance, json!({ "outcome": "SUBMIT" }))
        .await;
    app.decided("reviewer2", &instance, json!({ "outcome": "APPROVE" }))
        .await
}

#[tokio::test]
async fn every_decision_is_exported_in_order_of_time() {
    let app = TestApp::start().await;
    let first = decided_thrice(&app, "doc-1", "too short").await;
    cancelled(&app, &first).await;
    let second = decided_thrice(&app, "doc-1", "too long").await;
    decided_thrice(&app, "doc-2", "of another entity").await;

    let all = pages(&app, &format!("{ENTITY}/custody"), 2).await;
    let of = |member: &str| {
        all.iter()
            .map(|one| one[member].clone())
            .collect::<Vec<_>>()
    };
    let instances = [vec![id(&first); 3], vec![id(&second); 3]].concat();
    assert_eq!(of("instanceId"), instances);
    assert_eq!(of("actor"), ["reviewer", "author", "reviewer2"].repeat(2));
    assert_eq!(of("outcome"), ["REJECT", "SUBMIT", "APPROVE"].repeat(2));
    assert_eq!(
        of("state"),
        ["Submitted", "ReworkRequested", "Submitted"].repeat(2)
    );
    assert_eq!(
        (&of("comment")[0], &of("comment")[3]),
        (&json!("too short"), &json!("too long"))
    );
    for one in &all {
        assert_eq!(
            (
                &one["definitionKey"],
                &one["definitionVersion"],
                &one["requesters"],
                &one["onBehalfOf"]
            ),
            (
                &json!("document-approval"),
                &json!(1),
                &json!(["author"]),
                &Value::Null
            )
        );
        assert_eq!(
            (&one["entityType"], &one["entityId"]),
            (&json!("document"), &json!("doc-1"))
        );
    }
    let path = format!("/v1/instances/{}/custody", id(&second));
    assert_eq!(pages(&app, &path, 100).await, all[3..]);
    let none = pages(&app, &format!("{ENTITY}/custody?definitionKey=hostile"), 5).await;
    assert_eq!(none.len(), 0);
    let path = format!("/v1/instances/{}/custody", uuid::Uuid::nil());
    app.get("admin", &path).await.problem(404, "not_found");
}

fn unhex(text: &Value) -> Vec<u8> {
    let digits = text.as_str().expect("hexadecimal");
    let pair = |index| u8::from_str_radix(&digits[index..index + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(pair).collect()
}

fn uuid(value: &Value) -> uuid::Uuid {
    value
        .as_str()
        .and_then(|id| id.parse().ok())
        .expect("an id")
}

fn field(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_be_bytes());
    hasher.update(bytes);
}

fn optional(hasher: &mut Sha256, bytes: Option<&[u8]>) {
    hasher.update([u8::from(bytes.is_some())]);
    field(hasher, bytes.unwrap_or_default());
}

fn milliseconds(time: &Value) -> i64 {
    let time: jiff::Timestamp = time
        .as_str()
        .and_then(|time| time.parse().ok())
        .expect("a time");
    time.as_millisecond()
}

/// Computes the hash of an exported entry from the export and the tenant's number alone.
fn hash_of(record: &Value, tenant: i32) -> Vec<u8> {
    let entry = &record["entry"];
    let number = |member: &str| entry[member].as_u64().unwrap_or(0);
    let mut hasher = Sha256::new();
    hasher.update(b"wrkflw audit entry 1");
    hasher.update(tenant.to_be_bytes());
    field(&mut hasher, b"instance");
    field(&mut hasher, uuid(&record["instanceId"]).as_bytes());
    hasher.update(number("seq").to_be_bytes());
    hasher.update(number("eventSeq").to_be_bytes());
    field(&mut hasher, uuid(&entry["id"]).as_bytes());
    field(
        &mut hasher,
        entry["type"].as_str().expect("a type").as_bytes(),
    );
    hasher.update(
        u32::try_from(number("revision"))
            .expect("a revision")
            .to_be_bytes(),
    );
    field(&mut hasher, uuid(&entry["commandId"]).as_bytes());
    optional(&mut hasher, entry["actor"].as_str().map(str::as_bytes));
    optional(&mut hasher, Some(uuid(&entry["taskId"]).as_bytes()));
    hasher.update(milliseconds(&entry["occurredAt"]).to_be_bytes());
    let payload = [
        &unhex(&entry["salt"]),
        entry["payload"].as_str().expect("text").as_bytes(),
    ]
    .concat();
    field(&mut hasher, &Sha256::digest(payload));
    let evidence = entry["evidenceDigest"]
        .is_string()
        .then(|| unhex(&entry["evidenceDigest"]));
    optional(&mut hasher, evidence.as_deref());
    field(&mut hasher, &unhex(&entry["previousHash"]));
    hasher.finalize().to_vec()
}

/// Computes the seal of an exported decision with the key.
fn mac_of(record: &Value, tenant: &str, key: &[u8]) -> Vec<u8> {
    let payload: Value =
        serde_json::from_str(record["entry"]["payload"].as_str().expect("text")).expect("JSON");
    let (input, decided_at) = (
        payload["input"].to_string(),
        milliseconds(&record["occurredAt"]).to_string(),
    );
    let fields = [
        Some("wrkflw decision 1"),
        Some(tenant),
        record["instanceId"].as_str(),
        record["taskId"].as_str(),
        record["outcome"].as_str(),
        record["actor"].as_str(),
        record["onBehalfOf"].as_str(),
        record["comment"].as_str(),
        Some(&input),
        Some(&decided_at),
    ];
    mac_over(&fields, key)
}

fn mac_over(fields: &[Option<&str>], key: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    for field in fields {
        mac.update(&[u8::from(field.is_some())]);
        mac.update(&(field.map_or(0, str::len) as u64).to_be_bytes());
        mac.update(field.unwrap_or_default().as_bytes());
    }
    mac.finalize().into_bytes().to_vec()
}

#[tokio::test]
async fn an_export_can_be_verified_without_the_host() {
    let app = TestApp::start().await;
    let instance = decided_thrice(&app, "doc-1", "too short").await;
    let tenant = tenants::find(app.store(), "default")
        .await
        .expect("a query")
        .expect("a tenant");
    let path = format!("{ENTITY}/custody");
    let all = pages(&app, &path, 100).await;
    let audit = pages(&app, &format!("/v1/instances/{}/audit", id(&instance)), 100).await;
    assert_eq!(all.len(), 3);
    for record in &all {
        let entry = &record["entry"];
        assert_eq!(hash_of(record, tenant.0), unhex(&entry["hash"]), "{record}");
        let place = usize::try_from(entry["seq"].as_u64().expect("a number")).expect("a place");
        assert_eq!(audit[place - 1]["hash"], entry["hash"]);
        assert_eq!(audit[place - 2]["hash"], entry["previousHash"]);
        assert_eq!(audit[place - 1]["id"], entry["id"]);
        let signature = &record["signature"];
        assert_eq!(
            (
                &signature["keyId"],
                &signature["macVersion"],
                &signature["status"]
            ),
            (&json!("test"), &json!(1), &json!("VALID"))
        );
        assert_eq!(
            mac_of(record, "default", &[7; 32]),
            unhex(&signature["mac"])
        );
    }

    // The export reports every later change, and does not break off.
    behind(&app, "update audit_entry set payload = replace(payload, 'too short', 'splendid!') where type = 'DECISION_RECORDED'").await;
    let all = pages(&app, &path, 100).await;
    let statuses: Vec<_> = all
        .iter()
        .map(|one| one["signature"]["status"].clone())
        .collect();
    assert_eq!(statuses, ["INVALID", "VALID", "VALID"]);
    assert_ne!(hash_of(&all[0], tenant.0), unhex(&all[0]["entry"]["hash"]));
    behind(&app, "delete from decision where outcome = 'REJECT'; update audit_entry set payload = '{' where payload like '%SUBMIT%' and type = 'DECISION_RECORDED'").await;
    let all = pages(&app, &path, 100).await;
    assert_eq!(all[0]["signature"], Value::Null);
    assert_eq!(
        (&all[1]["outcome"], &all[1]["signature"]["status"]),
        (&Value::Null, &json!("INVALID"))
    );
}

/// Parses CSV records strictly by RFC 4180.
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut rest = text.chars().peekable();
    while let Some(char) = rest.next() {
        match char {
            '"' => {
                assert!(cell.is_empty(), "a quote within a plain cell");
                loop {
                    match rest.next().expect("the quote is closed") {
                        '"' if rest.peek() == Some(&'"') => cell.extend(rest.next()),
                        '"' => break,
                        other => cell.push(other),
                    }
                }
                assert!(
                    matches!(rest.peek(), Some(',' | '\r')),
                    "text after a quote"
                );
            }
            ',' => record.push(std::mem::take(&mut cell)),
            '\r' => {
                assert_eq!(rest.next(), Some('\n'));
                record.push(std::mem::take(&mut cell));
                records.push(std::mem::take(&mut record));
            }
            '\n' => panic!("an end of line within a plain cell"),
            other => cell.push(other),
        }
    }
    assert!(cell.is_empty() && record.is_empty(), "the last line ends");
    records
}

/// Columns of the file, and the pointers of the same values in JSON.
const SHARED: [(&str, &str); 16] = [
    ("occurred_at", "/occurredAt"),
    ("instance_id", "/instanceId"),
    ("definition", "/definitionKey"),
    ("entity_id", "/entityId"),
    ("state", "/state"),
    ("task_id", "/taskId"),
    ("outcome", "/outcome"),
    ("actor", "/actor"),
    ("initiator", "/initiator"),
    ("requesters", "/requesters/0"),
    ("entry_id", "/entry/id"),
    ("hash", "/entry/hash"),
    ("previous_hash", "/entry/previousHash"),
    ("key_id", "/signature/keyId"),
    ("mac", "/signature/mac"),
    ("seal", "/signature/status"),
];

#[tokio::test]
async fn csv_escapes_everything_that_people_write() {
    let app = TestApp::start().await;
    let comments = [
        ("plain", "plain"),
        (
            "commas, \"quotes\" and 'apostrophes'",
            "commas, \"quotes\" and 'apostrophes'",
        ),
        ("two\nlines\r\nand more", "two\nlines\r\nand more"),
        (
            "=HYPERLINK(\"http://example.org\",\"click\")",
            "'=HYPERLINK(\"http://example.org\",\"click\")",
        ),
        ("+1", "'+1"),
        ("-1 page", "'-1 page"),
        ("@SUM(A1:A9)", "'@SUM(A1:A9)"),
        ("\ttabbed", "'\ttabbed"),
        ("\r=1+1", "'\r'=1+1"),
        ("fine;=1+1", "fine;'=1+1"),
        ("ünïcode 判断 🙂", "ünïcode 判断 🙂"),
        ("'quoted already", "'quoted already"),
    ];
    for (number, (comment, _)) in comments.iter().enumerate() {
        let instance = decided_thrice(&app, "doc-1", comment).await;
        if number + 1 < comments.len() {
            cancelled(&app, &instance).await;
        }
    }
    let answer = app
        .get("admin", &format!("{ENTITY}/custody?format=csv"))
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.headers["content-type"],
        "text/csv; charset=utf-8; header=present"
    );
    assert_eq!(
        answer.headers["content-disposition"],
        "attachment; filename=\"custody.csv\""
    );
    let records = parse_csv(&answer.text);
    let (head, lines) = records.split_first().expect("a head");
    let column = |name: &str| head.iter().position(|known| known == name).expect(name);
    let exported = pages(&app, &format!("{ENTITY}/custody"), 100).await;
    assert_eq!(lines.len(), exported.len());
    for (line, json) in lines.iter().zip(&exported) {
        assert_eq!(line.len(), head.len());
        for (name, pointer) in SHARED {
            assert_eq!(
                Some(&*line[column(name)]),
                json.pointer(pointer).and_then(Value::as_str),
                "{name}"
            );
        }
        assert_eq!(line[column("seq")], json["entry"]["seq"].to_string());
    }
    let written: Vec<&String> = lines
        .iter()
        .step_by(3)
        .map(|line| &line[column("comment")])
        .collect();
    let expected: Vec<&str> = comments.iter().map(|(_, written)| *written).collect();
    assert_eq!(written, expected);
}

/// Copies of one decision, far more than a page has.
#[tokio::test]
async fn csv_is_one_file_of_any_length() {
    let app = TestApp::start().await;
    decided_thrice(&app, "doc-1", "too short").await;
    let copies = "insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, task_id, payload,
            salt, occurred_at, hash)
        select tenant_id, stream_kind, stream_id, 1000 + n, gen_random_uuid(), type, revision, command_id, actor, task_id, payload, salt,
            occurred_at + n / 3 * interval '1 ms', hash
        from audit_entry, generate_series(1, 447) n where payload like '%REJECT%' and type = 'DECISION_RECORDED'";
    behind(&app, copies).await;
    let answer = app
        .get("admin", &format!("{ENTITY}/custody?format=csv"))
        .await;
    let records = parse_csv(&answer.text);
    assert_eq!(records.len(), 1 + 3 + 447);
    let mut seqs: Vec<&String> = records[1..].iter().map(|line| &line[19]).collect();
    seqs.sort_unstable();
    seqs.dedup();
    assert_eq!(seqs.len(), 450, "each of them once");
    assert_eq!(
        pages(&app, &format!("{ENTITY}/custody"), 100).await.len(),
        450
    );
    for parameter in ["limit=5", "after=abc"] {
        let path = format!("{ENTITY}/custody?format=csv&{parameter}");
        app.get("admin", &path)
            .await
            .problem(400, "malformed_request");
    }
    app.get("admin", &format!("{ENTITY}/custody?format=xml"))
        .await
        .problem(400, "malformed_request");
}
