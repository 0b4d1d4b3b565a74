//! A recorded instance becomes a scenario, which passes with the same component and fails with another config.

use wrkflw_core::ids::InstanceId;
use wrkflw_core::json::Json;
use wrkflw_scenario::record::{Entry, Rules, record};

use super::purchase::{approve, company, follow, purchase, reject};
use super::*;
use crate::scenarios::played;
use crate::support::guests::purchase_approval;

/// The scenario of an instance, made from its audit in the API.
async fn scenario(app: &TestApp, instance: &Value, rules: &str) -> String {
    let path = format!("/v1/instances/{}/audit?limit=100", id(instance));
    let page = app.get("admin", &path).await.expect(200);
    assert!(page["page"]["next"].is_null(), "one page is enough: {page}");
    let entries: Vec<Entry> = serde_json::from_str(&page["data"].to_string()).expect("entries");
    let path = "/v1/definitions/purchase-approval/versions/1";
    let version = app.get("admin", path).await.expect(200);
    let config = Json::parse(&version["config"].to_string()).expect("JSON");
    let graph = serde_json::from_str(&version["graph"].to_string()).expect("a graph");
    let rules = Rules::read(rules).expect("rules");
    let of = InstanceId(id(instance).parse().expect("an id"));
    record(of, entries, (&config, &graph), &rules)
        .expect("a scenario")
        .yaml
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_purchase_passes_and_shows_what_another_config_changes() {
    const DAY: i64 = 24 * 60 * 60;
    let (app, time) = company().await;
    let _timers = app.timers();
    let engines = [&app.engine];
    let instance = purchase(&app, json!(50000.01), json!({})).await;
    time.work(&app, &engines, DAY).await;
    // It escalates to meg's manager, who is absent.
    time.work(&app, &engines, DAY).await;
    let from = app.engine.clock().now();
    let until = from + Duration::from_hours(24);
    let absence = json!({ "substitute": "mia", "from": from, "until": until });
    let path = "/v1/people/max/absences";
    app.post("admin", path, absence).await.expect(201);
    time.pass(60);
    let now = shown(&app, &instance).await;
    let open = tasks(&now).iter().find(|task| task["status"] == "PENDING");
    decide(&app, "mia", open.expect("an open task"), approve()).await;
    follow(&app, &instance, &[("finn", reject())]).await;
    time.work(&app, &engines, DAY + 1).await;
    follow(&app, &instance, &[("fay", approve()), ("fred", approve())]).await;
    // The only CFO leaves, and another one comes.
    leave(&app, "cfo", "cora").await;
    member(&app, "cfo", "dora").await;
    time.work(&app, &engines, 60).await;
    let at_cfo = shown(&app, &instance).await;
    let open = tasks(&at_cfo)
        .iter()
        .find(|task| task["status"] == "PENDING");
    let ended = decide(&app, "dora", open.expect("an open task"), approve()).await;
    assert_eq!(ended["outcome"], "APPROVED");

    let yaml = scenario(&app, &instance, "{}").await;
    for secret in ["ann", "meg", "mia", "dora", "Desks", "Too dear", "4711"] {
        assert!(!yaml.contains(secret), "{secret}: {yaml}");
    }
    let (passed, printed) = played(purchase_approval(), &yaml);
    assert!(passed, "{printed}{yaml}");
    // With another limit, the CFO is not needed any more.
    let other = yaml.replace("cfoAbove: 50000", "cfoAbove: 60000");
    assert_ne!(other, yaml);
    let (passed, printed) = played(purchase_approval(), &other);
    assert!(!passed, "{printed}");
    assert!(printed.contains("decide APPROVE by"), "{printed}");
    assert!(
        printed.contains(r#"states: expected "Cfo", got []"#),
        "{printed}"
    );
    // The same without the amount.
    let masked = scenario(&app, &instance, "mask: [/amount]").await;
    let (passed, printed) = played(purchase_approval(), &masked);
    assert!(
        !passed && printed.contains(r#"expected "Cfo""#),
        "{printed}"
    );
}
