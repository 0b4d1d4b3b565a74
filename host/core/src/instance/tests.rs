//! A state instance and the row that holds it.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::*;
use crate::column::Column;

/// A state instance with a value in every member but its tasks.
fn full() -> StateInstance {
    let id = StateId(Uuid::from_u128(1));
    let at = Timestamp::from_microsecond(1_500_000).expect("a time");
    StateInstance {
        id,
        name: "Review".into(),
        entered_at: at,
        due_at: Some(at),
        predecessors: vec![StateId(Uuid::from_u128(2))],
        entered_by: Some("GO".into()),
        caller: Some("ann".into()),
        needed: 2,
        exclude: vec!["bob".into()],
        fallback: Some("crew".into()),
        priority: 3,
        forks: vec![ForkId(Uuid::from_u128(3))],
        choices: 1,
        deadlines: vec![OpenDeadline {
            id: DeadlineId(Uuid::from_u128(4)),
            due_at: at,
            repeat: None,
            action: OverdueAction::Remind,
            count: 0,
        }],
        correlation: Some("order 7".into()),
        buffer_signals: true,
        children: vec![ChildInstance {
            id: InstanceId(Uuid::from_u128(5)),
            key: "check".into(),
            entity: Entity {
                kind: "order".into(),
                id: "7".into(),
            },
            data: Json::parse(r#"{"amount":1.50}"#).expect("JSON"),
            on_end: None,
            outcome: None,
            version: None,
        }],
        unassignable_since: Some(at),
        tasks: vec![],
    }
}

/// The row that a commit writes, as PostgreSQL's JSON functions write it.
fn row(state_instance: &StateInstance) -> String {
    let values = state_instance
        .columns()
        .into_iter()
        .map(|value| match value {
            Column::Id(id) => json!(id),
            Column::Ids(ids) => json!(ids),
            Column::Text(text) => json!(text),
            Column::Texts(texts) => json!(texts),
            Column::List(list) => json!(list),
            Column::Time(at) => {
                json!(at.map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.f+00:00").to_string()))
            }
            Column::Integer(number) => json!(number),
            Column::Small(number) => json!(number),
            Column::Boolean(is_set) => json!(is_set),
        });
    let names = StateInstance::COLUMNS.iter().map(|name| (*name).to_owned());
    let row: Map<String, Value> = names.zip(values).collect();
    Value::Object(row).to_string()
}

#[test]
fn a_row_gives_the_state_instance_that_it_was_written_from() {
    let bare = StateInstance::new(StateId(Uuid::from_u128(1)), "Review", Timestamp::UNIX_EPOCH);
    for written in [full(), bare] {
        let read = StateInstance::of_row(&row(&written), Vec::new()).expect("a row");
        assert_eq!(read, written);
    }
}

#[test]
fn a_row_without_a_column_is_refused_by_the_name_of_the_column() {
    let short = row(&full()).replace("\"needed\":2,", "");
    let error = StateInstance::of_row(&short, Vec::new()).expect_err("no row");
    assert!(
        error.to_string().contains("missing field `needed`"),
        "{error}"
    );
}

#[test]
fn clearing_changes_the_columns_that_are_listed_and_no_other() {
    let (before, mut after) = (full(), full());
    after.clear();
    let values = before.columns().into_iter().zip(after.columns());
    let changed: Vec<&str> = StateInstance::COLUMNS
        .iter()
        .zip(values)
        .filter(|(_, (before, after))| before != after)
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(changed, StateInstance::CLEARED);
}
