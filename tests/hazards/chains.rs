//! What one command creates and ends again is written once, as it is in the end.

use serde_json::{Value, json};
use wrkflw::domain::command::Command;

use super::desk::{Desk, decision};

fn table<'a>(rows: &'a [(&'static str, Value)], name: &str) -> &'a Vec<Value> {
    let found = rows.iter().find(|(table, _)| *table == name);
    found
        .and_then(|(_, rows)| rows.as_array())
        .expect("a table")
}

/// Name, place and what each stay was left by, in the order of entering.
fn stays(rows: &[(&'static str, Value)]) -> Vec<(Value, Value, Value)> {
    let mut stays: Vec<_> = table(rows, "state_instance").iter().collect();
    stays.sort_by_key(|stay| stay["ordinal"].as_i64());
    stays
        .into_iter()
        .map(|stay| {
            (
                stay["ordinal"].clone(),
                stay["name"].clone(),
                stay["left_by"].clone(),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_chain_of_routers_leaves_net_rows() {
    let desk = Desk::new().await;
    let change = desk.decide(&desk.claimed("one").await, "GO");
    desk.apply(&[&change]).await;
    let expected = [
        (json!(0), json!("Work"), json!("GO")),
        (json!(1), json!("First"), json!("ON")),
        (json!(2), json!("Second"), json!("ON")),
        (json!(3), json!("Work"), Value::Null),
    ];
    assert_eq!(stays(&desk.rows(change.after.id).await), expected);
    let stored = desk.load(change.after.id).await;
    assert_eq!((stored.instance, stored.stays), (change.after, 4));
}

#[tokio::test]
async fn a_task_created_and_cancelled_at_once_is_offered_to_nobody() {
    let desk = Desk::new().await;
    let change = desk.decide(&desk.claimed("one").await, "SPLIT");
    desk.apply(&[&change]).await;
    let rows = desk.rows(change.after.id).await;
    let expected = [
        (json!(0), json!("Work"), json!("SPLIT")),
        (json!(1), json!("Work"), json!("END")),
        (json!(2), json!("Done"), json!("END")),
    ];
    assert_eq!(stays(&rows), expected);
    let mut statuses: Vec<_> = table(&rows, "task")
        .iter()
        .map(|task| task["status"].as_str())
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [Some("CANCELLED"), Some("COMPLETED")]);
    assert!(table(&rows, "task_candidate").is_empty());
    assert_eq!(desk.load(change.after.id).await.instance, change.after);
}

#[tokio::test]
async fn the_end_of_one_branch_ends_the_others() {
    let desk = Desk::new().await;
    let fork = desk.decide(&desk.claimed("one").await, "FORK");
    desk.apply(&[&fork]).await;
    let forked = desk.load(fork.after.id).await;
    assert_eq!(forked.instance, fork.after);
    let side = forked
        .instance
        .active
        .iter()
        .find(|stay| stay.name == "Side")
        .expect("a branch")
        .tasks[0]
        .id;
    desk.apply(&[&desk.change(Some(forked), "rob", &Command::Claim { task: side })])
        .await;
    let end = desk.change(
        Some(desk.load(fork.after.id).await),
        "rob",
        &decision(side, "END"),
    );
    desk.apply(&[&end]).await;
    // The younger branch was left first, and in the same instant as the older one.
    assert_eq!(desk.load(fork.after.id).await.instance, end.after);
    let names: Vec<_> = end
        .after
        .past
        .iter()
        .map(|past| past.state.name.as_str())
        .collect();
    assert_eq!(names, ["Work", "Work", "Side", "Done"]);
}
