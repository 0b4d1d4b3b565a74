//! A reviewer adds other reviewers while some of them work.

use super::*;

#[tokio::test]
async fn reviewers_are_added_while_others_work() {
    let app = chambers().await;
    let offer = |label: &str, group: &str| json!({ "label": label, "groups": [group] });
    let first = [
        offer("chair", "reviewers"),
        offer("legal", "reviewers"),
        offer("tax", "reviewers"),
    ];
    let second = [offer("legal", "reviewers"), offer("board", "approvers")];
    let data = json!({
        "assign": { "offers": first, "needed": 2 },
        "reoffer": { "offers": second, "needed": 1 },
    });
    let instance = vote(&app, "growing", data).await;
    let labels = |instance: &Value| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let tasks = tasks(instance).iter();
        tasks
            .map(|task| (text(&task["label"]), text(&task["status"])))
            .collect()
    };
    claim(&app, "reviewer2", &tasks(&instance)[1]).await;
    decide(
        &app,
        "reviewer",
        &tasks(&instance)[0],
        json!({ "outcome": "MORE" }),
    )
    .await;
    let shown = shown(&app, &instance).await;
    let expected = [
        ("chair", "COMPLETED"),
        ("legal", "CLAIMED"),
        ("tax", "CANCELLED"),
        ("board", "PENDING"),
    ];
    assert_eq!(
        labels(&shown),
        expected.map(|(label, status)| (label.to_owned(), status.to_owned()))
    );
    assert_eq!(shown["states"][0]["id"], instance["states"][0]["id"]);
    let cancelled = audited(&app, &instance, "TASK_CANCELLED").await;
    assert_eq!(cancelled[0]["reason"], "reoffered", "{cancelled:?}");
    let board = tasks(&shown)[3].clone();
    let ended = decide(&app, "approver", &board, json!({ "outcome": "YES" })).await;
    assert_eq!(ended["outcome"], "APPROVED");
    prove_all(&app).await;
}
