//! What a search asks of an attribute: refused with words, or a condition that means what it says.

use wrkflw_core::graph::AttributeType;
use wrkflw_core::search::{Bound, Condition, Operator, UntypedCondition, VALUES_MAX};

const TYPES: [AttributeType; 6] = [
    AttributeType::Text,
    AttributeType::Boolean,
    AttributeType::Decimal,
    AttributeType::Float,
    AttributeType::Timestamp,
    AttributeType::Bytes,
];
/// The longest text that a number or a moment becomes: two hundred digits, a sign and a point.
const PLAIN_BYTES_MAX: usize = 202;

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let condition = UntypedCondition::parse("amount", text);
    let kinds = condition.kind.map_or(TYPES.to_vec(), |kind| vec![kind]);
    for kind in kinds {
        match condition.of(kind, as_bytes) {
            Ok(condition) => check(&condition),
            Err(detail) => assert!(!detail.is_empty()),
        }
    }
}

/// Stands for base64, which is not on trial here.
fn as_bytes(text: &str) -> Option<Vec<u8>> {
    (!text.contains('!')).then(|| text.as_bytes().to_vec())
}

fn check(condition: &Condition) {
    let count = condition.bounds.len();
    match condition.operator {
        Operator::Exists | Operator::Absent => assert_eq!(count, 0),
        Operator::In => assert!((1..=VALUES_MAX).contains(&count)),
        _ => assert_eq!(count, 1),
    }
    for bound in &condition.bounds {
        match (condition.kind, bound) {
            (AttributeType::Bytes, Bound::Bytes(_)) => {}
            (AttributeType::Text, Bound::Plain(text)) => {
                reads_as_itself(condition.kind, text, text);
            }
            (kind, Bound::Plain(text)) => {
                assert!(text.len() <= PLAIN_BYTES_MAX && text.is_ascii(), "{text}");
                reads_as_itself(kind, text, text);
            }
            (kind, bound) => panic!("{bound:?} is no {}", kind.name()),
        }
    }
}

/// What a condition compares with can be asked for again, and is the same then.
fn reads_as_itself(kind: AttributeType, text: &str, expected: &str) {
    let untyped = UntypedCondition::parse("amount", &format!("{}:eq:{text}", kind.name()));
    let condition = untyped.of(kind, as_bytes).expect("it was taken before");
    assert_eq!(condition.operator, Operator::Eq);
    assert_eq!(condition.bounds, [Bound::Plain(expected.to_owned())]);
}
