//! Fifty equal commands at the same time.

use super::*;
use crate::audit::commands::prove_all;
use crate::support::app::task_of;

const CALLERS: usize = 50;

fn fifty(users: &[&str], path: &str, body: &Value) -> Vec<HostRequest> {
    let users = users.iter().cycle().take(CALLERS);
    users
        .map(|user| HostRequest::new(user, path, body.clone()))
        .collect()
}

/// Each of the other responses names the winner, and the revision that the winner made.
#[track_caller]
fn assert_refused(others: Vec<Answer>, by: &Value, action: &str, revision: &Value) {
    for lost in others {
        let problem = lost.problem(409, "task_taken");
        let conflict = &problem["conflict"];
        let named = (&conflict["by"], &conflict["action"], &conflict["revision"]);
        assert_eq!(named, (by, &json!(action), revision));
        assert!(conflict["at"].is_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_claim_and_one_wins() {
    let (app, hosts) = three_hosts().await;
    for count in HOSTS {
        let instance = app.started(&format!("claimed through {count}")).await;
        let path = format!("/v1/tasks/{}/claim", task_of(&instance));
        let requests = fifty(&["reviewer", "reviewer2"], &path, &json!({}));
        let answers = at_once(&hosts[..count], requests).await.into_iter();
        // The owner claims it again without effect.
        let is_again = |answer: &Answer| answer.body["result"] == "unchanged";
        let (again, answers): (Vec<_>, Vec<_>) = answers.partition(is_again);
        let (won, others) = winner(answers, 200);
        let (owner, revision) = (&won["task"]["owner"], &won["instance"]["revision"]);
        assert_eq!(again.len(), CALLERS / 2 - 1);
        for answer in again {
            let answer = answer.expect(200);
            let named = (&answer["task"]["owner"], &answer["instance"]["revision"]);
            assert_eq!(named, (owner, revision));
        }
        assert_eq!(others.len(), CALLERS / 2);
        assert_refused(others, owner, "claimed", revision);
        assert_eq!(recorded(&app, &instance, "TASK_CLAIMED").await, 1);
        assert_eq!(shown(&app, &instance).await["revision"], *revision);
    }
    prove_all(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_decide_and_one_wins() {
    let (app, hosts) = three_hosts().await;
    for count in HOSTS {
        let instance = app.started(&format!("decided through {count}")).await;
        let task = task_of(&instance);
        let claim = format!("/v1/tasks/{task}/claim");
        app.post("reviewer", &claim, json!({})).await.expect(200);
        let path = format!("/v1/tasks/{task}/decide");
        let requests = fifty(&["reviewer"], &path, &json!({ "outcome": "APPROVE" }));
        let (won, others) = winner(at_once(&hosts[..count], requests).await, 200);
        assert_eq!(others.len(), CALLERS - 1);
        for lost in &others {
            let conflict = &lost.body["conflict"];
            let named = (&conflict["outcome"], &conflict["taskId"]);
            assert_eq!(named, (&json!("APPROVE"), &json!(task)));
        }
        assert_refused(
            others,
            &json!("reviewer"),
            "decided",
            &won["instance"]["revision"],
        );
        for kind in ["DECISION_RECORDED", "STATE_TRANSITIONED"] {
            assert_eq!(recorded(&app, &instance, kind).await, 1);
        }
    }
    prove_all(&app).await;
}

/// Each vote is cast twice, through two hosts. It counts once, the repetition is refused, and the state ends once.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_vote_twice_and_every_vote_counts_once() {
    const NEEDED: usize = 26;
    let (app, hosts) = three_hosts().await;
    vote_on(&app, &[json!({})]).await;
    for count in HOSTS {
        let voter = |number: usize| format!("voter-{number}");
        let offers: Vec<_> = (0..CALLERS)
            .map(|number| json!({ "owner": voter(number) }))
            .collect();
        let data = json!({ "assign": { "offers": offers, "needed": NEEDED } });
        let instance = vote(&app, &format!("votes through {count}"), data).await;
        let tasks = instance["states"][0]["tasks"].as_array().expect("tasks");
        // Neighbours in the list use different hosts.
        let requests = tasks.iter().flat_map(|task| {
            let (user, path) = (&task["owner"], format!("/v1/tasks/{}/decide", id(task)));
            let user = user.as_str().expect("an owner");
            let request = move || HostRequest::new(user, path.clone(), json!({ "outcome": "YES" }));
            [request(), request()]
        });
        let answers = at_once(&hosts[..count], requests.collect()).await;
        let last = shown(&app, &instance).await["revision"].clone();
        let mut counted = 0;
        for (twins, task) in answers.chunks(2).zip(tasks) {
            let won = twins.iter().filter(|answer| answer.status == 200).count();
            assert!(won <= 1, "{} counts twice", task["owner"]);
            counted += won;
            for lost in twins.iter().filter(|answer| answer.status != 200) {
                assert_eq!(lost.body["code"], "task_taken", "{}", lost.text);
                let conflict = &lost.body["conflict"];
                let by = if won == 1 {
                    &task["owner"]
                } else {
                    &Value::Null
                };
                let action = if won == 1 { "decided" } else { "cancelled" };
                assert_eq!((&conflict["by"], &conflict["action"]), (by, &json!(action)));
                assert!(won == 1 || conflict["revision"] == last, "{conflict}");
            }
        }
        assert_eq!(counted, NEEDED);
        for (kind, expected) in [
            ("DECISION_RECORDED", NEEDED),
            ("TASK_CANCELLED", CALLERS - NEEDED),
            ("STATE_TRANSITIONED", 1),
            ("FLOW_COMPLETED", 1),
        ] {
            let sql = "select count(*) from audit_entry where stream_id = $1::uuid and type = $2";
            let count: i64 = sqlx::query_scalar(sql)
                .bind(id(&instance).parse::<uuid::Uuid>().expect("an id"))
                .bind(kind)
                .fetch_one(app.database.admin_pool())
                .await
                .expect("a count");
            assert_eq!(usize::try_from(count), Ok(expected), "{kind}");
        }
    }
    prove_all(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_starts_about_one_entity_make_one_instance() {
    let (app, hosts) = three_hosts().await;
    for count in HOSTS {
        let body = json!({
            "definitionKey": "document-approval", "entityType": "document",
            "entityId": format!("started through {count}"), "data": { "title": "A plan" },
        });
        let requests = fifty(&["author"], "/v1/instances", &body);
        let (won, others) = winner(at_once(&hosts[..count], requests).await, 201);
        already_running(others, &won["instance"]);
    }
    let sql = "select count(*) from instance";
    let instances: i64 = sqlx::query_scalar(sql)
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    assert_eq!(instances, 2);
    prove_all(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_restarts_make_one_successor() {
    let (app, hosts) = three_hosts().await;
    for count in HOSTS {
        let first = app.started(&format!("restarted through {count}")).await;
        let path = |what: &str| format!("/v1/instances/{}/{what}", id(&first));
        let reason = json!({ "reason": "withdrawn" });
        let cancelled = app.post("admin", &path("cancel"), reason).await;
        cancelled.expect(200);
        let requests = fifty(&["author"], &path("restart"), &json!({}));
        let (won, others) = winner(at_once(&hosts[..count], requests).await, 201);
        assert_eq!(won["instance"]["predecessorId"], first["id"]);
        already_running(others, &won["instance"]);
    }
    prove_all(&app).await;
}

#[track_caller]
fn already_running(others: Vec<Answer>, won: &Value) {
    for lost in others {
        let problem = lost.problem(409, "already_running");
        let conflict = &problem["conflict"];
        let named = (&conflict["instanceId"], &conflict["by"], &conflict["at"]);
        assert_eq!(named, (&won["id"], &won["initiator"], &won["startedAt"]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_cancel_and_one_wins() {
    let (app, hosts) = three_hosts().await;
    for count in HOSTS {
        let instance = app.started(&format!("cancelled through {count}")).await;
        let path = format!("/v1/instances/{}/cancel", id(&instance));
        let requests = fifty(&["admin"], &path, &json!({ "reason": "withdrawn" }));
        let (won, others) = winner(at_once(&hosts[..count], requests).await, 200);
        let revision = &won["instance"]["revision"];
        assert_eq!(others.len(), CALLERS - 1);
        for lost in others {
            let problem = lost.problem(409, "instance_ended");
            let conflict = &problem["conflict"];
            let named = (&conflict["status"], &conflict["by"], &conflict["revision"]);
            assert_eq!(named, (&json!("CANCELLED"), &json!("admin"), revision));
        }
    }
    prove_all(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_on_different_instances_do_not_conflict() {
    let (app, hosts) = three_hosts().await;
    let mut requests = Vec::new();
    for number in 0..CALLERS {
        let instance = app.started(&format!("apart {number}")).await;
        let path = format!("/v1/tasks/{}/claim", task_of(&instance));
        requests.push(HostRequest::new("reviewer", path, json!({})));
    }
    for answer in at_once(&hosts, requests).await {
        assert_eq!(answer.expect(200)["instance"]["revision"], 2);
    }
}
