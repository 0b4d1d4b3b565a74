//! Rows that one command creates and changes again are written once, in their final form.

use serde_json::{Value, json};
use wrkflw_core::command::Command;

use super::fixture::{Fixture, decision};

fn table<'a>(rows: &'a [(&'static str, Value)], name: &str) -> &'a Vec<Value> {
    let found = rows.iter().find(|(table, _)| *table == name);
    found
        .and_then(|(_, rows)| rows.as_array())
        .expect("a table")
}

/// Name, position and leaving cause of each state instance, in the order of entering.
fn state_instances(rows: &[(&'static str, Value)]) -> Vec<(Value, Value, Value)> {
    let mut state_instances: Vec<_> = table(rows, "state_instance").iter().collect();
    state_instances.sort_by_key(|state_instance| state_instance["ordinal"].as_i64());
    state_instances
        .into_iter()
        .map(|state_instance| {
            (
                state_instance["ordinal"].clone(),
                state_instance["name"].clone(),
                state_instance["left_trigger"].clone(),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_chain_of_routers_leaves_net_rows() {
    let fixture = Fixture::new().await;
    let change = fixture.decide(&fixture.claimed("one").await, "GO");
    fixture.apply(&[&change]).await;
    let expected = [
        (json!(0), json!("Work"), json!("GO")),
        (json!(1), json!("First"), json!("ON")),
        (json!(2), json!("Second"), json!("ON")),
        (json!(3), json!("Work"), Value::Null),
    ];
    assert_eq!(
        state_instances(&fixture.rows(change.after.id).await),
        expected
    );
    let stored = fixture.load(change.after.id).await;
    assert_eq!((stored.instance, stored.state_instances), (change.after, 4));
}

#[tokio::test]
async fn a_task_created_and_cancelled_at_once_is_offered_to_nobody() {
    let fixture = Fixture::new().await;
    let change = fixture.decide(&fixture.claimed("one").await, "SPLIT");
    fixture.apply(&[&change]).await;
    let rows = fixture.rows(change.after.id).await;
    let expected = [
        (json!(0), json!("Work"), json!("SPLIT")),
        (json!(1), json!("Work"), json!("END")),
        (json!(2), json!("Last"), json!("ON")),
        (json!(3), json!("Done"), json!("END")),
    ];
    assert_eq!(state_instances(&rows), expected);
    let mut statuses: Vec<_> = table(&rows, "task")
        .iter()
        .map(|task| task["status"].as_str())
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [Some("CANCELLED"), Some("COMPLETED")]);
    assert!(table(&rows, "task_candidate").is_empty());
    assert_eq!(fixture.load(change.after.id).await.instance, change.after);
}

#[tokio::test]
async fn the_end_of_one_branch_ends_the_others() {
    let fixture = Fixture::new().await;
    let fork = fixture.decide(&fixture.claimed("one").await, "FORK");
    fixture.apply(&[&fork]).await;
    let forked = fixture.load(fork.after.id).await;
    assert_eq!(forked.instance, fork.after);
    let side = forked
        .instance
        .active
        .iter()
        .find(|state_instance| state_instance.name == "Side")
        .expect("a branch")
        .tasks[0]
        .id;
    fixture
        .apply(&[&fixture.change(Some(forked), "rob", &Command::Claim { task: side })])
        .await;
    let end = fixture.change(
        Some(fixture.load(fork.after.id).await),
        "rob",
        &decision(side, "END"),
    );
    fixture.apply(&[&end]).await;
    // The younger branch was left first, at the same time as the older one.
    assert_eq!(fixture.load(fork.after.id).await.instance, end.after);
    let names: Vec<_> = end
        .after
        .past
        .iter()
        .map(|past| past.state.name.as_str())
        .collect();
    assert_eq!(names, ["Work", "Work", "Side", "Done"]);
}
