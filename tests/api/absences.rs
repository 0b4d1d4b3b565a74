//! Absences: entered by the absent person or by a permitted one, within limits, and without cycles.

use futures_util::future::join;
use jiff::{SignedDuration, Timestamp};

use super::*;

fn path(person: &str) -> String {
    format!("/v1/people/{person}/absences")
}

/// Midnight in UTC, this number of days after the first of January 2100.
fn day(day: i64) -> Timestamp {
    let base: Timestamp = "2100-01-01T00:00:00Z".parse().expect("a time");
    base + SignedDuration::from_hours(24 * day)
}

/// The body of an absence.
fn away(substitute: &str, from: i64, until: i64) -> Value {
    json!({ "substitute": substitute, "from": day(from), "until": day(until) })
}

#[tokio::test]
async fn a_person_names_a_substitute_and_ends_the_absence() {
    let app = TestApp::empty().await;
    sql(&app, "delete from reassessment").await;
    let mut body = away("reviewer2", 1, 3);
    body["definitionKey"] = json!("document-approval");
    let added = app.post("reviewer", &path("reviewer"), body).await;
    let added = added.expect(201)["absence"].clone();
    let expected = json!({
        "id": added["id"], "person": "reviewer", "substitute": "reviewer2", "definitionKey": "document-approval",
        "from": "2100-01-02T00:00:00Z", "until": "2100-01-04T00:00:00Z",
        "createdAt": added["createdAt"], "createdBy": "reviewer", "endedAt": null,
    });
    assert_eq!(added, expected);
    let (kinds, payload) = directory_entries(&app, 1).await;
    assert_eq!(kinds, ["ABSENCE_ADDED"]);
    assert_eq!(payload["absence"], added["id"]);
    assert_eq!(payload["activeUntil"], "2100-01-04T00:00:00Z");
    let due = reassessments(&app).await;
    assert_eq!(due.len(), 2);
    assert!(due.iter().all(|(whose, _)| whose == "user reviewer"));
    assert_eq!(due[1].1 - due[0].1, 2 * 24 * 3600);
    // Both sides see it.
    for person in ["reviewer", "reviewer2"] {
        let listed = app.get(person, &path(person)).await.expect(200);
        assert_eq!(listed["data"], json!([added]), "{person}");
    }
    let listed = app.get("author", &path("author")).await.expect(200);
    assert_eq!(listed["data"], json!([]));
    let one = format!(
        "{}/{}",
        path("reviewer"),
        added["id"].as_str().expect("an id")
    );
    let ended = delete(&app, "reviewer", &one).await.expect(200);
    assert!(ended["absence"]["endedAt"].is_string());
    assert_eq!(ended["result"], "ended");
    let (kinds, _) = directory_entries(&app, 2).await;
    assert_eq!(kinds, ["ABSENCE_ADDED", "ABSENCE_ENDED"]);
    assert_eq!(reassessments(&app).await.len(), 3);
    // Ending the absence again changes nothing.
    let before = rows(&app).await;
    assert_eq!(delete(&app, "reviewer", &one).await.expect(200), ended);
    assert_eq!(rows(&app).await, before);
    let listed = app.get("reviewer", &path("reviewer")).await.expect(200);
    assert_eq!(listed["data"], json!([]));
}

#[tokio::test]
async fn other_people_need_the_permission_to_change_the_directory() {
    let app = TestApp::empty().await;
    let refused = app
        .post("reviewer2", &path("reviewer"), away("author", 1, 2))
        .await;
    let problem = refused.problem(403, "permission_missing");
    assert_eq!(problem["reason"], "directory:write");
    let added = app
        .post("admin", &path("reviewer"), away("author", 1, 2))
        .await;
    let added = added.expect(201)["absence"].clone();
    assert_eq!(added["createdBy"], "admin");
    let id = added["id"].as_str().expect("an id");
    let one = |person: &str| format!("{}/{id}", path(person));
    delete(&app, "reviewer2", &one("reviewer"))
        .await
        .problem(403, "permission_missing");
    // The substitute cannot end it, and it is not found under another person.
    delete(&app, "author", &one("reviewer"))
        .await
        .problem(403, "permission_missing");
    delete(&app, "author", &one("author"))
        .await
        .problem(404, "not_found");
    delete(&app, "reviewer", &one("reviewer")).await.expect(200);
    let host = app.host();
    let (name, token) = bearer(&host, "reviewer", "default", &["bare"]);
    grant(&app, "bare", &["task:read"]).await;
    for method in ["GET", "POST"] {
        let body = (method == "POST").then(|| away("author", 1, 2));
        let headers = [(name, token.as_str())];
        let refused = host
            .send("", method, &path("reviewer"), &headers, body)
            .await;
        let problem = refused.problem(403, "permission_missing");
        assert_eq!(problem["reason"], "absence:self", "{method}");
    }
}

/// The second query of permissions fails, and so do all later ones.
const FAILING: &str = "
    alter table role_permission rename to kept_permission;
    create sequence asked;
    create function answers() returns boolean language plpgsql security definer as $$
    begin
        if nextval('public.asked') > 1 then
            raise exception 'could not extend file: No space left on device' using errcode = '53100';
        end if;
        return true;
    end $$;
    create view role_permission as select * from kept_permission where (select answers());
    grant select on role_permission to wrkflw_writer";

/// If the database fails during a check of permissions, the answer is 503, not that a permission is missing.
#[tokio::test]
async fn a_failed_lookup_of_permissions_is_no_missing_permission() {
    let app = TestApp::empty().await;
    grant(&app, "registrar", &["directory:read"]).await;
    sql(&app, FAILING).await;
    // A second host, because prepared statements of the first one refer to the table.
    let host = app.beside().await;
    let (name, token) = bearer(&host, "reviewer", "default", &["registrar"]);
    let headers = [(name, token.as_str())];
    let path = path("reviewer");
    let listed = host.send("", "GET", &path, &headers, None).await;
    assert_eq!(listed.expect(200)["data"], json!([]));
    let failed = host.send("", "GET", &path, &headers, None).await;
    failed.problem(503, "unavailable");
}

#[tokio::test]
async fn invalid_absences_are_refused() {
    let app = TestApp::empty().await;
    let before = rows(&app).await;
    let past = json!({
        "substitute": "author", "from": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z",
    });
    for (body, pointer, code) in [
        (away("reviewer", 1, 2), "/substitute", "oneself"),
        (away("nobody", 1, 2), "/substitute", "unknown_person"),
        (away("", 1, 2), "/substitute", "malformed"),
        (away("author", 2, 2), "/from", "backwards"),
        (away("author", 1, 368), "/until", "too_long"),
        (past, "/until", "over"),
        (json!({ "substitute": "author" }), "/from", "required"),
    ] {
        let text = body.to_string();
        let refused = app.post("reviewer", &path("reviewer"), body).await;
        assert_eq!(fault(refused), (pointer.into(), code.into()), "{text}");
    }
    app.post("admin", &path("nobody"), away("author", 1, 2))
        .await
        .problem(404, "not_found");
    app.get("admin", &path("nobody"))
        .await
        .problem(404, "not_found");
    let stray = format!("{}?all=true", path("reviewer"));
    app.get("reviewer", &stray)
        .await
        .problem(400, "malformed_request");
    assert_eq!(rows(&app).await, before);
    // The longest absence has 366 days.
    app.post("reviewer", &path("reviewer"), away("author", 1, 367))
        .await
        .expect(201);
}

#[tokio::test]
async fn absences_do_not_overlap_and_form_no_cycle_and_no_long_chain() {
    let app = TestApp::empty().await;
    for person in ["p1", "p2", "p3", "p4", "p5"] {
        let put = app
            .put(
                "admin",
                &format!("/v1/people/{person}"),
                json!({ "name": person }),
            )
            .await;
        put.expect(200);
    }
    let add = async |person: &str, body: Value| app.post(person, &path(person), body).await;
    add("p1", away("p2", 0, 10)).await.expect(201);
    assert_eq!(fault(add("p1", away("p3", 9, 12)).await).1, "overlap");
    let mut one_definition = away("p3", 9, 12);
    one_definition["definitionKey"] = json!("document-approval");
    add("p1", one_definition).await.expect(201);
    assert_eq!(fault(add("p2", away("p1", 9, 12)).await).1, "circle");
    let second = add("p2", away("p3", 0, 5)).await.expect(201);
    add("p3", away("p4", 0, 5)).await.expect(201);
    let refused = add("p4", away("p1", 4, 8)).await;
    assert_eq!(
        refused.body["detail"],
        "a circle of substitutes: p1 -> p2 -> p3 -> p4 -> p1"
    );
    let refused = add("p4", away("p5", 4, 8)).await;
    assert_eq!(
        refused.body["detail"],
        "more than 3 absences in a row: p1 -> p2 -> p3 -> p4 -> p5"
    );
    assert_eq!(
        fault(refused),
        ("/substitute".into(), "chain_too_long".into())
    );
    // The same is accepted for a later time, or after one absence of the chain has ended.
    add("p4", away("p1", 5, 6)).await.expect(201);
    let link = format!(
        "{}/{}",
        path("p2"),
        second["absence"]["id"].as_str().expect("an id")
    );
    delete(&app, "p2", &link).await.expect(200);
    add("p4", away("p5", 0, 5)).await.expect(201);
    // Many may have one substitute.
    add("p5", away("p2", 20, 30)).await.expect(201);
    add("p1", away("p2", 20, 30)).await.expect(201);
}

#[tokio::test]
async fn of_two_absences_that_would_close_a_cycle_one_is_entered() {
    let app = TestApp::empty().await;
    let other = app.beside().await;
    for round in 0..10 {
        let (from, until) = (10 * round, 10 * round + 5);
        let others = path("reviewer2");
        let (first, second) = join(
            app.post(
                "reviewer",
                &path("reviewer"),
                away("reviewer2", from, until),
            ),
            other.send(
                "reviewer2",
                "POST",
                &others,
                &[],
                Some(away("reviewer", from, until)),
            ),
        )
        .await;
        let mut statuses = [first.status, second.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 422], "{} {}", first.text, second.text);
        let refused = if first.status == 422 { first } else { second };
        assert_eq!(fault(refused).1, "circle");
    }
    assert_eq!(rows(&app).await["absence"], 10);
}

/// Absences of one person, one after the other; of many people with one substitute; and of one person at one time.
const MANY: &str = "
    insert into absence (tenant_id, id, person_id, substitute_id, definition_key, active_from, active_until, created_at, created_by)
    select t.id, gen_random_uuid(), person, substitute, key, timestamptz '2100-01-01Z' + first * interval '1 day',
        timestamptz '2100-01-01Z' + (first + 1) * interval '1 day', now(), person
    from tenant t, (
        select 'reviewer' as person, 'reviewer2' as substitute, null as key, n as first from generate_series(1, 99) n
        union all select 'p' || n, 'approver', null, 1 from generate_series(1, 200) n
        union all select 'reviewer2', 'author', 'd' || n, 1 from generate_series(1, 20) n
    ) many where t.name = 'default'";

#[tokio::test]
async fn absences_are_limited_for_a_person_and_for_a_substitute() {
    let app = TestApp::empty().await;
    sql(&app, MANY).await;
    let add = async |person: &str, body: Value| app.post(person, &path(person), body).await;
    let of_substitute = add("author", away("approver", 5, 6)).await;
    assert_eq!(
        of_substitute.body["detail"],
        "at most 200 present and future absences name one substitute; end one of them first, or choose another substitute"
    );
    let at = |pointer: &str| (pointer.to_owned(), "too_many".to_owned());
    assert_eq!(fault(of_substitute), at("/substitute"));
    let mut one_more = away("author", 1, 2);
    one_more["definitionKey"] = json!("document-approval");
    let at_a_time = add("reviewer2", one_more).await;
    assert_eq!(
        at_a_time.body["detail"],
        "a person has at most 20 absences at a time; end one of them first"
    );
    assert_eq!(fault(at_a_time), at("/from"));
    add("reviewer2", away("author", 2, 3)).await.expect(201);

    let of_pair = add("reviewer", away("reviewer2", 200, 201)).await;
    assert_eq!(
        of_pair.body["detail"],
        "a person names one substitute in at most 50 present and future absences; end one of them first, or choose another substitute"
    );
    assert_eq!(fault(of_pair), at("/substitute"));

    // Of two requests for the last place, one gets it.
    let other = app.beside().await;
    let others = path("reviewer");
    let (first, second) = join(
        add("reviewer", away("author", 200, 201)),
        other.send(
            "reviewer",
            "POST",
            &others,
            &[],
            Some(away("author", 202, 203)),
        ),
    )
    .await;
    let (added, refused) = if first.status == 201 {
        (first, second)
    } else {
        (second, first)
    };
    assert_eq!(
        refused.body["detail"],
        "a person has at most 100 present and future absences; end one of them first"
    );
    assert_eq!(fault(refused), at("/from"));
    let added = added.expect(201);
    let one = added["absence"]["id"].as_str().expect("an id");
    let one = format!("{others}/{one}");
    delete(&app, "reviewer", &one).await.expect(200);
    add("reviewer", away("author", 204, 205)).await.expect(201);
}

#[tokio::test]
async fn a_dry_run_is_checked_and_writes_nothing() {
    let app = TestApp::empty().await;
    let added = app
        .post("reviewer", &path("reviewer"), away("author", 1, 2))
        .await;
    let added = added.expect(201)["absence"].clone();
    let before = rows(&app).await;
    let dry = format!("{}?dryRun=true", path("author"));
    let answer = app.post("author", &dry, away("reviewer2", 1, 2)).await;
    assert_eq!(
        answer.expect(200),
        json!({ "result": "created", "dryRun": true, "orphans": [], "more": false })
    );
    let refused = app.post("author", &dry, away("reviewer", 1, 2)).await;
    assert_eq!(fault(refused).1, "circle");
    let one = format!(
        "{}/{}?dryRun=true",
        path("reviewer"),
        added["id"].as_str().expect("an id")
    );
    delete(&app, "reviewer", &one).await.expect(200);
    assert_eq!(rows(&app).await, before);
    let listed = app.get("reviewer", &path("reviewer")).await.expect(200);
    assert_eq!(listed["data"], json!([added]));
}

#[tokio::test]
async fn a_repeat_adds_nothing() {
    let app = TestApp::empty().await;
    let host = app.host();
    let add = async |user: &str, key: &str, body: Value| {
        let headers = [("idempotency-key", key)];
        host.send(user, "POST", &path(user), &headers, Some(body))
            .await
    };
    let mut body = away("author", 1, 2);
    body["from"] = json!("2100-01-02T00:00:00.123456789Z");
    let first = add("reviewer", "k", body.clone()).await.expect(201);
    assert_eq!(first["absence"]["from"], "2100-01-02T00:00:00.123456Z");
    let before = rows(&app).await;
    assert_eq!(add("reviewer", "k", body.clone()).await.expect(201), first);
    let other = add("reviewer", "k", away("author", 5, 6)).await;
    other.problem(422, "idempotency_key_reused");
    assert_eq!(fault(add("reviewer", "j", body).await).1, "overlap");
    assert_eq!(rows(&app).await, before);
    // Each caller has idempotency keys of their own.
    let others = add("reviewer2", "k", away("author", 1, 2))
        .await
        .expect(201);
    assert_ne!(others["absence"]["id"], first["absence"]["id"]);
    // Moments are rounded to microseconds, so these are equal.
    let mut body = away("author", 8, 9);
    body["until"] = json!("2100-01-09T00:00:00.000000999Z");
    assert_eq!(fault(add("reviewer", "i", body).await).1, "backwards");
}
