//! Deadlines with a clock that jumps: each acts once, and the times of entries never decrease.

use super::*;

const DAY: i64 = 24 * 3600;

#[tokio::test]
async fn a_deadline_acts_once_if_the_clock_jumps() {
    let (app, time) = chambers_at().await;
    let offer =
        json!({ "groups": ["reviewers"], "deadlines": [{ "after": 3600, "do": "remind" }] });
    let data = json!({
        "assign": { "offers": [offer] }, "overdue": { "offers": [{ "groups": ["approvers"] }] },
    });
    let instance = vote(&app, "jumps", data).await;
    let timers = app.timers();
    // The clock goes back before the deadline is due. Nothing happens, and nothing is lost.
    time.work(&app, &[&app.engine], -DAY).await;
    assert_eq!(audited(&app, &instance, "DEADLINE_PASSED").await.len(), 0);
    time.work(&app, &[&app.engine], 2 * DAY).await;
    assert_eq!(audited(&app, &instance, "DEADLINE_PASSED").await.len(), 1);
    // The clock goes back before the deadline, and past it again.
    time.work(&app, &[&app.engine], -2 * DAY).await;
    let task = tasks(&instance)[0].clone();
    claim(&app, "reviewer", &task).await;
    time.work(&app, &[&app.engine], 3 * DAY).await;
    timers.stop().await;
    assert_eq!(audited(&app, &instance, "DEADLINE_PASSED").await.len(), 1);
    let fell: i64 = sqlx::query_scalar(
        "select count(*) from (
             select occurred_at < lag(occurred_at) over (partition by stream_id order by seq) as fell from audit_entry
             where stream_kind = 'instance') steps where fell",
    )
    .fetch_one(app.database.admin_pool())
    .await
    .expect("a count");
    assert_eq!(fell, 0, "time in the audit never goes back");
    prove_all(&app).await;
}
