//! Replies that wait in their jobs, and are too late when the instance takes them.

use super::*;

/// A reply that came during a suspension waits. A person leads on before the instance takes it.
#[tokio::test]
async fn a_reply_that_waited_is_recorded_although_its_state_was_left() {
    let mut setting = Setting::new().await;
    let gated = Says::Gated(json!({ "output": { "score": 1 } }));
    setting.machine.says([gated]);
    let instance = setting.ask("1", json!({ "timeout": 60 })).await;
    setting.machine.next().await;
    let why = json!({ "reason": "for a while" });
    act(&setting.app, &instance, "suspend", why).await;
    setting.machine.open(1);
    until_kept(&setting.app).await;
    run(
        &setting.app,
        "update job set lease_until = now() + interval '1 hour' where service is not null",
    )
    .await;
    act(&setting.app, &instance, "resume", json!({})).await;
    signal(&setting.app, &instance, "LEAVE", json!({}))
        .await
        .expect(200);
    shown_in(&setting.app, &instance, "Work").await;
    run(
        &setting.app,
        "update job set lease_until = now() where service is not null",
    )
    .await;
    settled(&setting.app).await;
    let refused = audited(&setting.app, &instance, "TRIGGER_REFUSED").await;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(
        (&refused[0]["code"], &refused[0]["trigger"]),
        (&json!("too_late"), &json!("ANSWERED"))
    );
    setting.ends(&[&instance]).await;
}

/// Returns once the job of a call has stored the reply.
async fn until_kept(app: &TestApp) {
    let kept = "select count(*) from job where payload::jsonb ? 'report' and claim is null";
    until_so(async || counted(app, kept).await, |kept: &i64| *kept > 0).await;
}

async fn run(app: &TestApp, statement: &'static str) {
    let done = sqlx::raw_sql(statement)
        .execute(app.database.admin_pool())
        .await;
    done.expect("a change");
}
