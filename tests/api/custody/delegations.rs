//! Delegations and their returns in the chain of custody.

use super::*;
use wrkflw_store::directory::tenants;

#[tokio::test]
async fn a_delegation_and_its_return_are_sealed_like_a_decision() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let task = claimed(&app, "reviewer", &instance).await;
    let on_task = |what: &str| format!("/v1/tasks/{task}/{what}");
    let to = |person: &str| json!({ "to": person, "reason": "on a journey" });
    for (user, what, body) in [
        ("reviewer", "delegate", to("reviewer2")),
        ("reviewer2", "resolve", json!({})),
        ("reviewer", "delegate", to("approver")),
        ("approver", "decide", json!({ "outcome": "APPROVE" })),
    ] {
        app.post(user, &on_task(what), body).await.expect(200);
    }
    let path = format!("{ENTITY}/custody");
    let all = pages(&app, &path, 2).await;
    let of = |member: &str| -> Vec<Value> { all.iter().map(|one| one[member].clone()).collect() };
    assert_eq!(of("action"), ["delegate", "resolve", "delegate", "decide"]);
    assert_eq!(
        of("actor"),
        ["reviewer", "reviewer2", "reviewer", "approver"]
    );
    let (reviewer, reviewer2) = (json!("reviewer"), json!("reviewer2"));
    let none = Value::Null;
    assert_eq!(
        of("owner"),
        [&reviewer2, &reviewer, &json!("approver"), &none].map(Value::clone)
    );
    assert_eq!(
        of("previousOwner"),
        [&reviewer, &reviewer2, &reviewer, &none].map(Value::clone)
    );
    let reason = json!("on a journey");
    assert_eq!(
        of("reason"),
        [&reason, &none, &reason, &none].map(Value::clone)
    );
    let tenant = tenants::find(app.store(), "default")
        .await
        .expect("a query");
    let tenant = tenant.expect("a tenant");
    for record in &all[..3] {
        let entry = &record["entry"];
        assert_eq!(hash_of(record, tenant.0), unhex(&entry["hash"]), "{record}");
        assert_eq!(record["signature"]["status"], "VALID", "{record}");
        let fields = [
            Some("wrkflw delegation 1"),
            Some("default"),
            record["instanceId"].as_str(),
            record["taskId"].as_str(),
            entry["type"].as_str(),
            record["actor"].as_str(),
            record["previousOwner"].as_str(),
            record["owner"].as_str(),
            record["reason"].as_str(),
            Some(&milliseconds(&record["occurredAt"]).to_string()),
        ];
        let mac = mac_over(&fields, &[7; 32]);
        assert_eq!(mac, unhex(&record["signature"]["mac"]), "{record}");
    }

    // A changed reason and a removed seal are found.
    behind(&app, "update audit_entry set payload = replace(payload, 'journey', 'holiday') where type = 'TASK_DELEGATED'").await;
    behind(
        &app,
        "delete from delegation_seal where seq = (select min(seq) from delegation_seal)",
    )
    .await;
    let all = pages(&app, &path, 100).await;
    assert_eq!(all[0]["signature"], Value::Null);
    assert_eq!(all[1]["signature"]["status"], "VALID");
    assert_eq!(all[2]["signature"]["status"], "INVALID");
}
