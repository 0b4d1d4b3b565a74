//! The common statement and its parameters.

use super::*;

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
