//! Notifications of deadlines: reminders to people who have the work, and escalations to people who lost it.

use super::*;
use crate::api::notifications::{notifier, settings};

/// The kinds and recipients of a person's notifications, oldest first, once there are this many.
async fn notified(app: &TestApp, person: &str, count: usize) -> Vec<(String, String)> {
    let reading = async {
        loop {
            let page = app.get(person, "/v1/notifications?limit=100").await;
            let page = page.expect(200);
            let data = page["data"].as_array().expect("data");
            assert!(data.len() <= count, "{data:?}");
            if data.len() == count {
                let text = |one: &Value, name: &str| one[name].as_str().expect("text").to_owned();
                let mut listed: Vec<_> = data
                    .iter()
                    .map(|one| (text(one, "kind"), text(one, "recipient")))
                    .collect();
                listed.reverse();
                return listed;
            }
            crate::support::pause().await;
        }
    };
    let read = tokio::time::timeout(TIMEOUT, reading).await;
    read.unwrap_or_else(|_| panic!("{person} is not told {count} times"))
}

fn lines(notices: &[(String, String)]) -> Vec<(&str, &str)> {
    notices
        .iter()
        .map(|(kind, to)| (kind.as_str(), to.as_str()))
        .collect()
}

#[tokio::test]
async fn a_reminder_notifies_the_owner_and_an_escalation_the_former_owner() {
    let (app, time) = chambers_at().await;
    let _working = notifier(&app, settings(&[]));
    let offer = json!({ "groups": ["reviewers"], "deadlines": [
        { "after": 60, "do": "remind" }, { "after": 120, "do": "escalate" },
    ] });
    let data = json!({
        "assign": { "offers": [offer] },
        "overdue": { "offers": [{ "groups": ["approvers"] }] },
    });
    let instance = vote(&app, "late", data).await;
    claim(&app, "reviewer", &tasks(&instance)[0]).await;
    assert_eq!(
        lines(&notified(&app, "reviewer", 1).await),
        [("ASSIGNMENT_CREATED", "reviewers")]
    );
    let timers = app.timers();
    time.work(&app, &[&app.engine], 60).await;
    let reminded = [
        ("ASSIGNMENT_CREATED", "reviewers"),
        ("TIMEOUT_WARNING", "reviewer"),
    ];
    assert_eq!(lines(&notified(&app, "reviewer", 2).await), reminded);
    time.work(&app, &[&app.engine], 60).await;
    timers.stop().await;
    let lost = [reminded[0], reminded[1], ("ESCALATION", "reviewer")];
    assert_eq!(lines(&notified(&app, "reviewer", 3).await), lost);
    assert_eq!(
        lines(&notified(&app, "approver", 1).await),
        [("ASSIGNMENT_CREATED", "approvers")]
    );
    assert_eq!(
        lines(&notified(&app, "reviewer2", 1).await),
        [("ASSIGNMENT_CREATED", "reviewers")]
    );
    prove_all(&app).await;
}
