//! State instances, tasks and decisions, and the rows that hold them.

use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::answer::{Due, Share, SignalSubscription};
use crate::column::{Column, Row};

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
        entered_trigger: Some("GO".into()),
        caller: Some("ann".into()),
        needed: 2,
        exclude: vec!["bob".into()],
        fallback: Some("crew".into()),
        priority: 3,
        priority_name: Some("normal".into()),
        forks: vec![ForkId(Uuid::from_u128(3))],
        choices: 1,
        deadlines: vec![OpenDeadline {
            id: DeadlineId(Uuid::from_u128(4)),
            due_at: Some(at),
            since_claim: Some(Due::After(60)),
            repeat: None,
            action: OverdueAction::Remind,
            count: 0,
        }],
        subscriptions: vec![SignalSubscription {
            trigger: "PAID".into(),
            correlation: Some("order 7".into()),
            buffered: true,
        }],
        children: vec![ChildInstance {
            id: InstanceId(Uuid::from_u128(5)),
            key: "check".into(),
            entity: Entity {
                kind: "order".into(),
                id: "7".into(),
            },
            data: Json::parse(r#"{"amount":1.50}"#).expect("JSON"),
            on_end: None,
            detached: false,
            outcome: None,
            version: None,
        }],
        unassignable_since: Some(at),
        key: Some("line 1".into()),
        data: Some(Json::parse(r#"{"amount":1.50}"#).expect("JSON")),
        share: Some(Share {
            numerator: 2,
            denominator: 3,
            exceeded: true,
        }),
        blind: true,
        call: Some(OpenCall {
            service: "scorer".into(),
            request: Json::parse(r#"{"amount":1.50}"#).expect("JSON"),
            timeout: 30,
            retries: vec![10, 60],
            on_reply: "SCORED".into(),
            on_failure: "UNSCORED".into(),
            result: Some(CallResult {
                attempts: 2,
                error: None,
                model: Some("scorer".into()),
                model_version: Some("3".into()),
            }),
        }),
        tasks: vec![],
    }
}

/// The row that a commit writes, as PostgreSQL's JSON functions write it.
fn row<'a>(columns: impl IntoIterator<Item = (&'static str, Column<'a>)>) -> String {
    let values = columns.into_iter().map(|(name, value)| {
        let value = match value {
            Column::Id(id) => json!(id),
            Column::Ids(ids) => json!(ids),
            Column::Text(text) => json!(text),
            Column::Texts(texts) => json!(texts),
            Column::Json(text) => json!(text),
            Column::Time(at) => {
                json!(at.map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.f+00:00").to_string()))
            }
            Column::Integer(number) => json!(number),
            Column::Small(number) => json!(number),
            Column::Boolean(is_set) => json!(is_set),
        };
        (name.to_owned(), value)
    });
    Value::Object(values.collect()).to_string()
}

fn columns<'a>(
    names: &'static [&'static str],
    values: Vec<Column<'a>>,
) -> impl Iterator<Item = (&'static str, Column<'a>)> {
    assert_eq!(names.len(), values.len());
    names.iter().copied().zip(values)
}

fn row_of(state_instance: &StateInstance) -> String {
    row(columns(StateInstance::COLUMNS, state_instance.columns()))
}

fn row_of_task(task: &Task) -> String {
    let status = columns(TaskStatus::COLUMNS, task.status.columns());
    row(columns(Task::COLUMNS, task.columns()).chain(status))
}

#[test]
fn a_row_gives_the_state_instance_that_it_was_written_from() {
    let bare = StateInstance::new(StateId(Uuid::from_u128(1)), "Review", Timestamp::UNIX_EPOCH);
    for written in [full(), bare] {
        let text = row_of(&written);
        let row = Row::parse(&text).expect("a row");
        let read = StateInstance::of_row(&row, Vec::new()).expect("a state instance");
        assert_eq!(read, written);
    }
}

#[test]
fn a_row_without_a_column_or_with_another_value_is_refused_by_the_name_of_the_column() {
    let whole = row_of(&full());
    for (broken, reason) in [
        (
            whole.replace("\"needed\":2,", ""),
            "there is no column `needed`",
        ),
        (
            whole.replace("\"needed\":2,", "\"needed\":null,"),
            "column `needed`: invalid type: null",
        ),
    ] {
        let row = Row::parse(&broken).expect("an object");
        let error = StateInstance::of_row(&row, Vec::new()).expect_err("no state instance");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

fn decision() -> Decision {
    Decision {
        outcome: "APPROVE".into(),
        actor: "bob".into(),
        on_behalf_of: Some("ann".into()),
        comment: Some("fine".into()),
        input: Json::parse(r#"{"amount":1.50}"#).expect("JSON"),
        decided_at: Timestamp::from_microsecond(2_500_000).expect("a time"),
    }
}

/// A task in each status, with and without the members that may be absent.
fn tasks() -> Vec<Task> {
    let at = Timestamp::from_microsecond(1_500_000).expect("a time");
    let owner = || "ann".to_owned();
    let held = Ownership {
        assigned: true,
        ..Ownership::default()
    };
    let claimed = |ownership| TaskStatus::Claimed {
        owner: owner(),
        claimed_at: at,
        ownership,
    };
    let statuses = [
        TaskStatus::Pending,
        claimed(held),
        claimed(Ownership::default()),
        TaskStatus::Completed {
            owner: owner(),
            claimed_at: at,
            decision: decision(),
        },
        TaskStatus::Cancelled {
            owner: None,
            cancelled_at: at,
            reason: None,
        },
        TaskStatus::Cancelled {
            owner: Some(owner()),
            cancelled_at: at,
            reason: Some("OVERDUE".into()),
        },
    ];
    let tasks = statuses.into_iter().enumerate().map(|(number, status)| {
        let has_all = number % 2 == 1;
        Task {
            id: TaskId(Uuid::from_u128(7)),
            label: "Review".into(),
            candidates: if has_all {
                vec![
                    Candidate::User("ann".into()),
                    Candidate::Group("crew".into()),
                ]
            } else {
                vec![]
            },
            created_at: at,
            due_at: has_all.then_some(at),
            deadlines: if has_all { full().deadlines } else { vec![] },
            suspended: has_all.then(|| Suspension {
                by: "ann".into(),
                at,
                reason: Some("a holiday".into()),
                until: Some(at),
            }),
            status,
        }
    });
    tasks.collect()
}

#[test]
fn rows_give_the_task_and_the_decision_that_they_were_written_from() {
    let text = row(columns(Decision::COLUMNS, decision().columns()));
    let stored = Decision::of_row(&Row::parse(&text).expect("a row")).expect("a decision");
    assert_eq!(stored, decision());
    for written in tasks() {
        let text = row_of_task(&written);
        let row = Row::parse(&text).expect("a row");
        let status = TaskStatus::of_row(&row, written.decision().cloned()).expect("a status");
        let read = Task::of_row(&row, status).expect("a task");
        assert_eq!(read, written);
    }
}

#[test]
fn a_status_without_what_it_needs_is_refused() {
    for (status, missing) in [
        ("CLAIMED", "CLAIMED without owner"),
        ("COMPLETED", "COMPLETED without owner"),
        ("CANCELLED", "CANCELLED without ended_at"),
        ("LOST", "status LOST"),
    ] {
        let text = row_of_task(&tasks()[0]).replace("PENDING", status);
        let row = Row::parse(&text).expect("a row");
        let error = TaskStatus::of_row(&row, None).expect_err("no status");
        assert_eq!(error.to_string(), missing);
    }
    let text = row_of_task(&tasks()[3]);
    let error = TaskStatus::of_row(&Row::parse(&text).expect("a row"), None);
    let error = error.expect_err("no status");
    assert_eq!(error.to_string(), "COMPLETED without a decision");
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
    let changed: Vec<&str> = before.changed_columns(&after).collect();
    assert_eq!(changed, StateInstance::CLEARED);
}
