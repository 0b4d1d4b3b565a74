//! Branches that arrive at one join at the same time, through two hosts. The join begins once, with all branches or with the
//! declared count.

use tokio::task::JoinSet;

use super::*;
use crate::support::guests::branches;

const ROUNDS: usize = 12;
const BRANCHES: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn a_join_begins_once_whichever_branch_is_last() {
    let app = TestApp::start().await;
    let published = app.publish("branches", branches(), &json!({})).await;
    published.expect(201);
    let path = "/v1/definitions/branches/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    let hosts = [app.host(), app.beside().await];
    for round in 0..ROUNDS {
        let body = json!({
            "definitionKey": "branches", "entityType": "walk", "entityId": round.to_string(), "data": {},
        });
        let instance = app.post("admin", "/v1/instances", body).await.started();
        let states = instance["states"].as_array().expect("states");
        let tasks: Vec<_> = states
            .iter()
            .map(|state| &state["tasks"][0]["id"])
            .collect();
        assert_eq!(tasks.len(), BRANCHES);
        let path =
            |task: &Value, action| format!("/v1/tasks/{}/{action}", task.as_str().expect("an id"));
        for task in &tasks {
            let claimed = app.post("reviewer", &path(task, "claim"), json!({})).await;
            claimed.expect(200);
        }
        // In each round other branches end, and in one round all but the last.
        let ends = round % BRANCHES;
        let mut callers = JoinSet::new();
        for (number, task) in tasks.iter().enumerate() {
            let outcome = if number < ends { "END" } else { "GO" };
            let (host, path) = (hosts[number % 2].clone(), path(task, "decide"));
            let body = json!({ "outcome": outcome });
            callers
                .spawn(async move { host.send("reviewer", "POST", &path, &[], Some(body)).await });
        }
        for answer in callers.join_all().await {
            answer.expect(200);
        }
        let shown = shown(&app, &instance).await;
        let here = shown["states"].as_array().expect("states");
        assert_eq!(here.len(), 1, "{shown}");
        assert_eq!(here[0]["name"], "Meet");
        let arrivals = audited(&app, &instance, "BRANCH_ARRIVED").await;
        let came = BRANCHES - ends;
        assert_eq!(arrivals.len(), came);
        let order = &arrivals[came - 1]["state"]["predecessors"];
        assert_eq!(order.as_array().map(Vec::len), Some(came));
        assert_eq!(&here[0]["predecessorIds"], order, "in the order of arrival");
        for (number, arrival) in arrivals.iter().enumerate() {
            assert_eq!(arrival["state"]["predecessors"][number], order[number]);
        }
        let entered = audited(&app, &instance, "STATE_ENTERED").await;
        let meets = entered
            .iter()
            .filter(|entry| entry["state"]["name"] == "Meet");
        assert_eq!(meets.count(), 1);
    }
}

/// Eight branches race to a join that waits for three. Three arrive, the others are refused because their work is cancelled, and
/// every decision can be proven.
#[tokio::test(flavor = "multi_thread")]
async fn a_counted_join_takes_its_count_of_branches() {
    let app = TestApp::start().await;
    offer(&app, "branches", branches(), json!({ "count": 3 })).await;
    let hosts = [app.host(), app.beside().await];
    for round in 0..4 {
        let body = json!({
            "definitionKey": "branches", "entityType": "walk", "entityId": round.to_string(), "data": {},
        });
        let instance = app.post("admin", "/v1/instances", body).await.started();
        let states = instance["states"].as_array().expect("states");
        let mut callers = JoinSet::new();
        for (number, state) in states.iter().enumerate() {
            let task = state["tasks"][0]["id"].as_str().expect("an id");
            let (host, path) = (
                hosts[number % 2].clone(),
                format!("/v1/tasks/{task}/decide"),
            );
            let body = json!({ "outcome": "GO" });
            callers
                .spawn(async move { host.send("reviewer", "POST", &path, &[], Some(body)).await });
        }
        let mut arrived = 0;
        for answer in callers.join_all().await {
            if answer.status == 200 {
                arrived += 1;
            } else {
                answer.problem(409, "task_taken");
            }
        }
        assert_eq!(arrived, 3);
        let shown = shown(&app, &instance).await;
        let here = shown["states"].as_array().expect("states");
        assert_eq!((here.len(), &here[0]["name"]), (1, &json!("Meet")));
        assert_eq!(here[0]["predecessorIds"].as_array().map(Vec::len), Some(3));
        assert_eq!(shown["waiting"], json!([]));
        assert_eq!(audited(&app, &instance, "STATE_CANCELLED").await.len(), 5);
    }
    prove_all(&app).await;
}
