//! The common statement and its parameters.

use super::*;
use wrkflw_core::instance::{StateInstance, Task, TaskStatus};

#[test]
fn the_common_statement_has_no_rare_part_and_takes_its_parameters_in_order() {
    let numbers: Vec<_> = COMMON.split('$').skip(1).collect();
    assert_eq!(numbers.len(), 10, "as many as are bound");
    for (number, rest) in (1..).zip(numbers) {
        assert!(rest.starts_with(&format!("{number}::commit_")), "{rest}");
    }
    for table in [
        "into job",
        "from job",
        "into signal",
        "signal_subscription",
        "attribute",
        "descendant_place",
        "into allocation",
        "into delegation_seal",
        "reoffered",
        "into participant",
        "entity_is_free",
    ] {
        assert!(!COMMON.contains(table), "{table}");
    }
    for table in [
        "into decision",
        "into task",
        "into audit_entry",
        "into outbox_event",
    ] {
        assert!(COMMON.contains(table), "{table}");
    }
}

/// The part of the statement with this name, up to the next part.
fn part(name: &str) -> &'static str {
    let statement = include_str!("commit.sql");
    let begin = format!("\n{name} as (\n");
    let from = statement.find(&begin).expect(name) + begin.len();
    let part = &statement[from..];
    &part[..part.find("\n)").expect("an end")]
}

/// An insert or update that lacks a column would store a default, or keep the former value.
#[test]
fn the_statement_writes_each_column_of_states_and_tasks() {
    let words = |part: &str| -> Vec<String> {
        let words = part.split(|one: char| !one.is_ascii_alphanumeric() && !"_.".contains(one));
        words.map(str::to_owned).collect()
    };
    let states = StateInstance::COLUMNS;
    let tasks = [Task::COLUMNS, TaskStatus::COLUMNS].concat();
    for (name, columns, fixed) in [
        ("entered", states, &[][..]),
        ("changed_states", states, &["id", "key", "data"]),
        ("created", &tasks, &[]),
        ("changed", &tasks, &["id", "label", "created_at"]),
    ] {
        let written = words(part(name));
        for column in columns.iter().filter(|column| !fixed.contains(column)) {
            let given = format!("r.{column}");
            assert!(written.contains(&given), "{name} lacks {given}");
            assert!(
                written.iter().any(|word| word == column),
                "{name} lacks {column}"
            );
        }
    }
}
