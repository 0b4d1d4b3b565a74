//! Who could have acted, now and at past moments: computed from the audit, independent of the present directory.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_runtime::clock::Clock;
use wrkflw_store::viewer::Viewer;

use super::*;
use wrkflw_store::past;

/// A host whose clock the test moves.
struct Timeline {
    app: TestApp,
    host: Host,
    now: Arc<AtomicI64>,
}

impl Timeline {
    async fn new() -> Timeline {
        let app = TestApp::start().await;
        // Later than anything that the other host has written.
        let start = app.engine.clock().now().as_millisecond() + 3_600_000;
        let now = Arc::new(AtomicI64::new(start));
        let host = app.beside_with_clock(Clock::Manual(now.clone())).await;
        Timeline { app, host, now }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.now.load(Ordering::SeqCst)).expect("a time")
    }

    /// Moves the time by an hour, and returns the moment after it.
    fn pass(&self) -> Timestamp {
        self.now.fetch_add(3_600_000, Ordering::SeqCst);
        self.now()
    }

    async fn send(&self, user: &str, method: &str, path: &str, body: Value) -> Answer {
        let body = (method != "DELETE").then_some(body);
        self.host.send(user, method, path, &[], body).await
    }

    async fn started(&self) -> Value {
        let body = approval_start("doc-1");
        let started = self.send("author", "POST", "/v1/instances", body).await;
        started.started()
    }

    async fn eligibility(&self, instance: &Value, at: Timestamp) -> Value {
        let id = instance["id"].as_str().expect("an id");
        let path = format!("/v1/instances/{id}/eligibility?at={at}");
        let answer = self.host.send("author", "GET", &path, &[], None).await;
        answer.expect(200)
    }

    /// `person how` of everybody eligible for the only open task, and `person why` of the excluded.
    async fn people(&self, instance: &Value, at: Timestamp) -> (Vec<String>, Vec<String>) {
        let answer = self.eligibility(instance, at).await;
        let task = &answer["tasks"][0];
        let list = |which: &str, member: &str, word: &str| -> Vec<String> {
            let people = task[which].as_array().unwrap_or_else(|| panic!("{answer}"));
            let listed = people.iter().map(|one| {
                let words = one[member].as_array().expect("a list").iter();
                let words: Vec<_> = words
                    .map(|way| way[word].as_str().expect("a word"))
                    .collect();
                format!(
                    "{} {}",
                    one["person"].as_str().expect("a name"),
                    words.join("+")
                )
            });
            listed.collect()
        };
        (
            list("eligible", "ways", "how"),
            list("excluded", "exclusions", "why"),
        )
    }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn the_response_names_who_could_act_and_how() {
    let line = Timeline::new().await;
    let instance = line.started().await;
    let answer = line.eligibility(&instance, line.now()).await;
    let task = &instance["states"][0]["tasks"][0];
    let group = json!([{ "how": "group", "group": "reviewers" }]);
    let expected = json!({
        "instanceId": instance["id"], "at": line.now(), "revision": instance["revision"], "status": "RUNNING", "more": false,
        "tasks": [{
            "taskId": task["id"], "state": instance["states"][0]["name"], "label": task["label"], "status": "PENDING",
            "owner": null, "more": false, "unknown": [],
            "eligible": [{ "person": "reviewer", "ways": group }, { "person": "reviewer2", "ways": group }],
            "excluded": [{ "person": "author", "exclusions": [{ "why": "requester" }] }],
        }],
    });
    assert_eq!(answer, expected);
    let id = instance["id"].as_str().expect("an id");
    let path = format!("/v1/instances/{id}/eligibility");
    let now = line.host.send("author", "GET", &path, &[], None).await;
    assert_eq!(now.expect(200), expected);
    let before = rows(&line.app).await;
    line.eligibility(&instance, line.now()).await;
    assert_eq!(rows(&line.app).await, before);
}

#[tokio::test]
async fn a_membership_counts_in_its_period() {
    let line = Timeline::new().await;
    let instance = line.started().await;
    let begun = line.now();
    let left = line.pass();
    let member = "/v1/groups/reviewers/members/reviewer";
    line.send("admin", "DELETE", member, json!({}))
        .await
        .expect(200);
    let back = line.pass();
    line.send("admin", "PUT", member, json!({}))
        .await
        .expect(200);
    line.pass();
    let both = strings(&["reviewer group", "reviewer2 group"]);
    let one = strings(&["reviewer2 group"]);
    let instant = jiff::SignedDuration::from_millis(1);
    for (at, expected) in [
        (begun, &both),
        (left - instant, &both),
        (left, &one),
        (back - instant, &one),
        (back, &both),
        (line.now(), &both),
    ] {
        assert_eq!(line.people(&instance, at).await.0, *expected, "{at}");
    }
}

#[tokio::test]
async fn the_past_state_of_the_instance_counts() {
    let line = Timeline::new().await;
    let instance = line.started().await;
    let begun = line.now();
    let claimed = line.pass();
    let task = format!("/v1/tasks/{}", task_of(&instance));
    let claim = format!("{task}/claim");
    line.send("reviewer", "POST", &claim, json!({}))
        .await
        .expect(200);
    let decided = line.pass();
    let decide = format!("{task}/decide");
    let approve = json!({ "outcome": "APPROVE" });
    line.send("reviewer", "POST", &decide, approve)
        .await
        .expect(200);
    line.pass();
    let (eligible, excluded) = line.people(&instance, begun).await;
    assert_eq!(eligible, ["reviewer group", "reviewer2 group"]);
    assert_eq!(excluded, ["author requester"]);
    let (eligible, excluded) = line.people(&instance, claimed).await;
    assert_eq!(eligible, ["reviewer owner"]);
    assert_eq!(excluded, ["author requester", "reviewer2 owned"]);
    // The next state belongs to the approvers.
    let (eligible, _) = line.people(&instance, decided).await;
    assert_eq!(eligible, ["approver group"]);
    let revisions = [begun, claimed, decided].map(|at| line.eligibility(&instance, at));
    let revisions = futures_util::future::join_all(revisions).await;
    let revisions: Vec<_> = revisions
        .iter()
        .map(|one| one["revision"].as_u64())
        .collect();
    assert_eq!(revisions, [Some(1), Some(2), Some(3)]);
    let cancel = format!(
        "/v1/instances/{}/cancel",
        instance["id"].as_str().expect("an id")
    );
    let reason = json!({ "reason": "withdrawn" });
    line.send("admin", "POST", &cancel, reason)
        .await
        .expect(200);
    let ended = line.eligibility(&instance, line.now()).await;
    assert_eq!(
        (&ended["status"], &ended["tasks"]),
        (&json!("CANCELLED"), &json!([]))
    );
}

#[tokio::test]
async fn an_absence_counts_from_its_entry_until_it_is_ended() {
    let line = Timeline::new().await;
    line.send("admin", "PUT", "/v1/people/sub", json!({ "name": "Sub" }))
        .await
        .expect(200);
    let instance = line.started().await;
    let begun = line.now();
    let entered_at = line.pass();
    let hours = |hours: i64| entered_at + jiff::SignedDuration::from_hours(hours);
    // Its period begins before it was entered. Past moments before the entry do not know it.
    let body = json!({ "substitute": "sub", "from": begun, "until": hours(5) });
    let path = "/v1/people/reviewer/absences";
    let added = line.send("reviewer", "POST", path, body).await.expect(201);
    // An absence for other work, which does not count here.
    let body = json!({
        "substitute": "approver", "from": begun, "until": hours(5), "definitionKey": "another",
    });
    line.send("reviewer2", "POST", "/v1/people/reviewer2/absences", body)
        .await
        .expect(201);
    line.pass();
    let off = line.pass();
    let one = format!("{path}/{}", added["absence"]["id"].as_str().expect("an id"));
    line.send("reviewer", "DELETE", &one, json!({}))
        .await
        .expect(200);
    line.pass();
    let instant = jiff::SignedDuration::from_millis(1);
    let without = strings(&["reviewer group", "reviewer2 group"]);
    let with = strings(&["reviewer group", "reviewer2 group", "sub substitute"]);
    for (at, expected) in [
        (begun, &without),
        (entered_at - instant, &without),
        (entered_at, &with),
        (off - instant, &with),
        (off, &without),
        (line.now(), &without),
    ] {
        assert_eq!(line.people(&instance, at).await.0, *expected, "{at}");
    }
    let answer = line.eligibility(&instance, entered_at).await;
    assert_eq!(
        answer["tasks"][0]["eligible"][2]["ways"],
        json!([{ "how": "substitute", "of": "reviewer" }])
    );
}

#[tokio::test]
async fn moments_before_the_start_and_in_the_future_are_refused() {
    let line = Timeline::new().await;
    let before = line.now();
    line.pass();
    let instance = line.started().await;
    let id = instance["id"].as_str().expect("an id");
    let get = async |id: &str, query: &str| {
        let path = format!("/v1/instances/{id}/eligibility{query}");
        line.host.send("author", "GET", &path, &[], None).await
    };
    let early = get(id, &format!("?at={before}")).await;
    let detail = early.problem(404, "not_found")["detail"].clone();
    let detail = detail.as_str().expect("text");
    assert!(detail.contains("had begun by then"), "{detail}");
    let later = line.now() + jiff::SignedDuration::from_secs(1);
    let future = get(id, &format!("?at={later}")).await;
    future.problem(400, "malformed_request");
    get(id, "?at=noon").await.problem(400, "malformed_request");
    get(id, "?when=now").await.problem(400, "malformed_request");
    let unknown = "00000000-0000-7000-8000-000000000000";
    get(unknown, "").await.problem(404, "not_found");
}

/// A custom event, and a comment: the type of the entry, and its payload before and after a text.
const OWN: [&str; 3] = [
    "CUSTOM",
    r#"{"data":{"text":""#,
    r#""},"name":"thing","type":"CUSTOM"}"#,
];
const SAID: [&str; 3] = [
    "FLOW_COMMENTED",
    r#"{"comment":""#,
    r#"","mentions":[],"type":"FLOW_COMMENTED"}"#,
];

/// Adds this many entries of this size to an instance.
async fn lengthened(
    app: &TestApp,
    instance: &Value,
    [kind, before, behind]: [&str; 3],
    (entries, bytes): (usize, usize),
) {
    let id = instance["id"].as_str().expect("an id");
    let insert = format!(
        "insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, payload,
            salt, occurred_at, hash)
         select e.tenant_id, e.stream_kind, e.stream_id, e.seq + n, gen_random_uuid(), '{kind}', e.revision,
            gen_random_uuid(), e.actor, '{before}' || repeat('x', {bytes}) || '{behind}', e.salt, e.occurred_at, e.hash
         from (select * from audit_entry where stream_id = '{id}' order by seq desc limit 1) e, generate_series(1, {entries}) n"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(insert))
        .execute(app.database.admin_pool())
        .await
        .expect("entries");
}

#[tokio::test]
async fn a_history_that_is_too_long_is_refused() {
    let app = TestApp::start().await;
    for (entity, entries, bytes, status) in [
        ("long", 19_900, 10, 200),
        ("longer", 20_100, 10, 422),
        ("large", 10, 1 << 20, 200),
        ("larger", 65, 1 << 20, 422),
    ] {
        let instance = app.started(entity).await;
        lengthened(&app, &instance, OWN, (entries, bytes)).await;
        let path = format!(
            "/v1/instances/{}/eligibility",
            instance["id"].as_str().expect("an id")
        );
        let answer = app.get("author", &path).await;
        assert_eq!(answer.status, status, "{entity}: {}", answer.text);
        if status == 200 {
            assert_eq!(answer.body["tasks"][0]["eligible"][0]["person"], "reviewer");
        } else {
            assert_eq!(
                answer.body["errors"][0]["code"], "too_long",
                "{}",
                answer.text
            );
        }
    }
}

/// Everybody who sees an instance may comment on it without limit.
#[tokio::test]
async fn comments_do_not_make_a_history_too_long() {
    let app = TestApp::start().await;
    let instance = app.started("said").await;
    let decision = json!({ "outcome": "APPROVE" });
    app.decided("reviewer", &instance, decision).await;
    let of_instance = format!("/v1/instances/{}", instance["id"].as_str().expect("an id"));
    let comment = format!("{of_instance}/comment");
    app.post("author", &comment, json!({ "comment": "Well." }))
        .await
        .expect(200);
    for size in [(20_100, 10), (65, 1 << 20)] {
        lengthened(&app, &instance, SAID, size).await;
    }
    let shown = app.get("author", &of_instance).await.expect(200);
    let path = format!("{of_instance}/eligibility");
    let answer = app.get("author", &path).await.expect(200);
    assert_eq!(answer["revision"], shown["revision"], "the comment counts");
    let path = format!("{of_instance}/changes");
    let answer = app.get("author", &path).await.expect(200);
    assert_eq!(answer["data"][0]["actor"], "author", "{answer}");

    let last = "select max(seq) from audit_entry where stream_id = $1::text::uuid";
    let last: i64 = sqlx::query_scalar(last)
        .bind(instance["id"].as_str())
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a number");
    let id = instance["id"].as_str().expect("an id").parse();
    let id = InstanceId(id.expect("an id"));
    let all = Viewer::all(TenantId(1));
    let moves = past::moves(app.store(), &all, id, last.cast_unsigned()).await;
    let moves = moves.expect("moves");
    assert!(!moves.newest.is_empty() && !moves.omitted, "{moves:?}");
}
