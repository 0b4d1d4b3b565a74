//! How long it takes at the most to hold a document against a schema, told from the schema and the document's size.
//!
//! A document of so many bytes has so many values, and no value's bytes are another's at the same depth. So each
//! subschema has a price per value that it judges and a price per byte below that value, and the prices of a schema
//! come from those of its parts. The figures are upper bounds, measured on a common machine: what counts is
//! that nothing costs a multiple of what it says here.

use std::time::Duration;

use serde_json::{Map, Value};

/// So much for each value that is judged, and so much for each byte of it. In picoseconds; what is beyond all numbers
/// stays there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Line {
    each: u64,
    byte: u64,
}

/// An upper bound, told in two ways, of which the lower counts. For a single object it costs little to judge all of
/// its members once; for thousands of small ones it counts that few of them have many members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Price {
    /// With all members that are named, whether they are there or not.
    named: Line,
    /// With as many members as there are bytes for.
    present: Line,
}

/// What a schema costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// To tell whether a document satisfies it.
    judge: Price,
    /// To tell which members and items it has looked at, as `unevaluatedProperties` asks.
    mark: Price,
    /// To list what a document violates.
    list: Price,
}

/// How a part belongs to the schema around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Judges the same value.
    Same,
    /// Judges the same value; when that fails, the branch tells why.
    Branch,
    /// Judges the same value, and tells nothing.
    Condition,
    /// Judges the same value in the place of this schema.
    Reference,
    /// Judges one member or item, another one than its siblings. It takes so many bytes besides its value.
    One(u64),
    /// Judges each item.
    Items,
    /// Judges each item in order to count it, or what nothing else has looked at.
    Sought,
    /// Judges each member, or its name.
    Members,
    /// Judges each member that nothing else has looked at.
    RestOfMembers,
    /// Judges nothing: it is there to be referred to.
    Definition,
}

/// A keyword, at its simplest.
const KEYWORD: u64 = 15_000;
/// A keyword that has to compute.
const ARITHMETIC: u64 = 2_000_000;
/// A violation that is told.
const VIOLATION: u64 = 600_000;
/// A name that is looked up.
const NAME: u64 = 100_000;
/// A value of `enum`: to tell that it is of another kind, and for each byte of the judged value otherwise.
const ENUM_VALUE: u64 = 1_500;
/// A byte of a value of `enum` that is an array or object.
const ENUM_BYTE: u64 = 6_000;
const ENUM_TEXT_BYTE: u64 = 100;
/// A byte that is counted, compared with all of its siblings, or held against a format.
const COUNTED: u64 = 500;
const COMPARED: u64 = 40_000;
const FORMATTED: u64 = 20_000;
const PARSED: u64 = 100_000;
/// A byte of a document that is read.
pub(super) const READ: u64 = 20_000;
/// The fewest bytes of an item, and of a member.
const ITEM_BYTES_MIN: u64 = 2;
const MEMBER_BYTES_MIN: u64 = 5;

impl Line {
    fn and(self, other: Line) -> Line {
        Line {
            each: self.each.saturating_add(other.each),
            byte: self.byte.saturating_add(other.byte),
        }
    }

    fn spread(self, bytes_min: u64) -> u64 {
        self.byte
            .saturating_add(self.each.div_ceil(bytes_min.max(1)))
    }

    fn over(self, bytes: usize) -> u64 {
        let below = self.byte.saturating_mul(bytes as u64);
        below.saturating_add(self.each)
    }
}

impl Price {
    /// Of what cannot be told.
    pub(super) const UNKNOWN: Price = Price::of(u64::MAX, u64::MAX);

    /// So many picoseconds for each value, and for each byte of it.
    pub(super) const fn of(each: u64, byte: u64) -> Price {
        let line = Line { each, byte };
        Price {
            named: line,
            present: line,
        }
    }

    /// Both, on the same value.
    #[must_use]
    pub(super) fn and(self, other: Price) -> Price {
        Price {
            named: self.named.and(other.named),
            present: self.present.and(other.present),
        }
    }

    /// And that of another child, whose value comes with so many bytes besides.
    #[must_use]
    fn beside(self, other: Price, bytes: u64) -> Price {
        let named = Line {
            each: self.named.each.saturating_add(other.named.each),
            byte: self.named.byte.max(other.named.byte),
        };
        let present = Line {
            each: self.present.each,
            byte: self.present.byte.max(other.present.spread(bytes)),
        };
        Price { named, present }
    }

    /// On each of the children of a value, none of which has fewer bytes.
    #[must_use]
    fn of_children(self, bytes_min: u64) -> Price {
        let least = self.named.spread(bytes_min);
        Price::of(0, least.min(self.present.spread(bytes_min)))
    }

    fn over(self, bytes: usize) -> Duration {
        let picos = self.named.over(bytes).min(self.present.over(bytes));
        Duration::from_nanos(picos / 1_000)
    }
}

impl Cost {
    /// Of a schema that is `true` or `false`.
    pub(super) const PLAIN: Cost = Cost {
        judge: Price::of(KEYWORD, 0),
        mark: Price::of(0, 0),
        list: Price::of(VIOLATION, 0),
    };

    /// To read a document of so many bytes and tell whether it satisfies the schema.
    pub(super) fn judging(&self, bytes: usize) -> Duration {
        self.judge.and(Price::of(0, READ)).over(bytes)
    }

    /// To list what such a document violates.
    pub(super) fn listing(&self, bytes: usize) -> Duration {
        self.list.over(bytes)
    }

    /// Of an object with these keywords, of which `patterns` have been priced, and these parts.
    pub(super) fn of(
        members: &Map<String, Value>,
        patterns: OfPatterns,
        parts: &[(Part, Cost)],
    ) -> Cost {
        let own = own(members, patterns);
        let told = Price::of(VIOLATION.saturating_mul(1 + members.len() as u64), 0);
        let mut cost = Cost {
            judge: own,
            mark: own,
            list: own.and(own).and(told),
        };
        // What only one child of the value costs, of all that are named.
        let (mut one, mut one_listed) = (Price::default(), Price::default());
        for (part, below) in parts {
            if let Part::One(bytes) = *part {
                one = one.beside(below.judge, bytes);
                one_listed = one_listed.beside(below.list, bytes);
            } else {
                cost.hold(*part, *below);
            }
        }
        cost.judge = cost.judge.and(one);
        cost.list = cost.list.and(one_listed);
        let rest = ["unevaluatedProperties", "unevaluatedItems"];
        if rest.iter().any(|keyword| members.contains_key(*keyword)) {
            // Once to judge, and once more to tell.
            cost.judge = cost.judge.and(cost.mark);
            cost.list = cost.list.and(cost.mark).and(cost.mark);
        }
        cost
    }

    fn hold(&mut self, part: Part, below: Cost) {
        let Cost { judge, mark, list } = below;
        let (mut marked, mut listed) = (Price::default(), list);
        let judged = match part {
            Part::Definition | Part::One(_) => return,
            Part::Same => {
                marked = judge.and(mark);
                judge
            }
            Part::Reference => {
                marked = mark;
                judge
            }
            Part::Branch => {
                marked = judge.and(mark);
                listed = judge.and(list);
                judge
            }
            Part::Condition => {
                marked = judge.and(mark);
                listed = judge;
                judge
            }
            Part::Items => {
                listed = list.of_children(ITEM_BYTES_MIN);
                judge.of_children(ITEM_BYTES_MIN)
            }
            Part::Members => {
                listed = list.of_children(MEMBER_BYTES_MIN);
                judge.of_children(MEMBER_BYTES_MIN)
            }
            Part::Sought => {
                marked = judge.of_children(ITEM_BYTES_MIN);
                listed = list.of_children(ITEM_BYTES_MIN);
                marked
            }
            Part::RestOfMembers => {
                marked = judge.of_children(MEMBER_BYTES_MIN);
                listed = list.of_children(MEMBER_BYTES_MIN);
                marked
            }
        };
        self.judge = self.judge.and(judged);
        self.mark = self.mark.and(marked);
        self.list = self.list.and(listed);
    }
}

/// What the patterns of one schema object cost.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OfPatterns {
    /// `pattern`, on a text.
    pub(super) text: Price,
    /// All of `patternProperties`, on a name.
    pub(super) names: Price,
}

/// What the keywords cost that have no schemas in them.
fn own(members: &Map<String, Value>, patterns: OfPatterns) -> Price {
    let each = KEYWORD.saturating_mul(1 + members.len() as u64);
    // Names are matched to judge them, and again to tell which are additional.
    let names = patterns.names.of_children(MEMBER_BYTES_MIN);
    let start = Price::of(each, 0).and(patterns.text).and(names).and(names);
    members.iter().fold(start, |price, (keyword, value)| {
        price.and(keyword_alone(keyword, value))
    })
}

fn keyword_alone(keyword: &str, value: &Value) -> Price {
    let count = |value: &Value| match value {
        Value::Array(items) => items.len() as u64,
        Value::Object(members) => members.len() as u64,
        _ => 0,
    };
    match keyword {
        "multipleOf" => Price::of(ARITHMETIC, 0),
        "minLength" | "maxLength" => Price::of(0, COUNTED),
        "format" if value == "regex" => Price::of(0, PARSED),
        "format" => Price::of(0, FORMATTED),
        "uniqueItems" => Price::of(0, COMPARED),
        "const" => values(std::slice::from_ref(value)),
        "enum" => values(value.as_array().map_or(&[], Vec::as_slice)),
        "properties" | "dependentSchemas" => Price::of(
            KEYWORD.saturating_mul(count(value)),
            NAME / MEMBER_BYTES_MIN,
        ),
        "required" => Price::of(NAME.saturating_mul(count(value)), 0),
        "dependentRequired" | "dependencies" => {
            let names = value
                .as_object()
                .map_or(0, |members| members.values().map(count).sum());
            Price::of(NAME.saturating_mul(count(value) + names), 0)
        }
        "unevaluatedProperties" | "additionalProperties" => Price::of(0, NAME / MEMBER_BYTES_MIN),
        _ => Price::default(),
    }
}

/// Comparing with each of these.
fn values(values: &[Value]) -> Price {
    let each = |value: &Value| {
        let (bytes, byte) = match value {
            Value::Array(_) | Value::Object(_) => (value.to_string().len(), ENUM_BYTE),
            Value::String(text) => (text.len(), ENUM_TEXT_BYTE),
            _ => (0, 0),
        };
        ENUM_VALUE.saturating_add(byte.saturating_mul(bytes as u64))
    };
    let all = values.iter().map(each).fold(0, u64::saturating_add);
    Price::of(all, ENUM_VALUE.saturating_mul(values.len() as u64))
}
