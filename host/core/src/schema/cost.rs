//! Upper bounds on the time to check a document against a schema, computed from the schema and the document's size.
//!
//! A document of n bytes has at most n values. Two values at the same depth have no bytes in common. So each subschema has a
//! price per value that it checks and a price per byte of that value. The price of a schema follows from the prices of its parts.
//! The figures were measured on a common machine. They need not be exact, but no operation may cost a multiple of its figure.

use std::time::Duration;

use serde_json::{Map, Value};

/// A price per checked value and per byte of it, in picoseconds. It saturates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LinearPrice {
    each: u64,
    byte: u64,
}

/// Two upper bounds, of which the lower applies. `named` is the lower one for a single object: each of its members is checked
/// once. `present` is the lower one for thousands of small objects, few of which can have many members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Price {
    /// Assumes that every member that the schema names is present.
    named: LinearPrice,
    /// Assumes as many members as the bytes allow.
    present: LinearPrice,
}

/// The cost of a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// To check whether a document satisfies it.
    judge: Price,
    /// The cost to find the members and items that the schema evaluates. `unevaluatedProperties` and `unevaluatedItems` need them.
    mark: Price,
    /// To list the violations of a document.
    list: Price,
    /// To build the tables of patterns for a document.
    build: Price,
    /// To build all of these tables, in picoseconds. It is done once.
    tables: u64,
}

/// The role of a subschema in the schema around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Checks the same value.
    Same,
    /// Checks the same value; its violations are listed if the check fails.
    Branch,
    /// Checks the same value; its violations are not listed.
    Condition,
    /// Checks the same value in place of this schema.
    Reference,
    /// Checks one member or item, a different one from its siblings. The number is the bytes that it has besides its value.
    One(u64),
    /// Checks each item.
    Items,
    /// Checks each item for `contains`, or each item that no other keyword has evaluated.
    Sought,
    /// Checks each member, or its name.
    Members,
    /// Checks each member that no other keyword has evaluated.
    RestOfMembers,
    /// Checks nothing by itself; references use it.
    Definition,
}

/// A simple keyword.
const KEYWORD: u64 = 15_000;
/// A keyword with arithmetic.
const ARITHMETIC: u64 = 2_000_000;
/// A listed violation.
const VIOLATION: u64 = 600_000;
/// The lookup of a name.
const NAME: u64 = 100_000;
/// A value of `enum`: once if it is of another kind, otherwise for each byte of the checked value.
const ENUM_VALUE: u64 = 1_500;
/// A byte of a value of `enum` that is an array or object.
const ENUM_BYTE: u64 = 6_000;
const ENUM_TEXT_BYTE: u64 = 100;
/// A byte that is counted, compared with all of its siblings, or checked against a format.
const COUNTED: u64 = 500;
const COMPARED: u64 = 40_000;
const FORMATTED: u64 = 20_000;
const PARSED: u64 = 100_000;
/// The price to parse one byte of a document.
pub(super) const READ: u64 = 20_000;
/// The minimum size of an item, and of a member.
const ITEM_BYTES_MIN: u64 = 2;
const MEMBER_BYTES_MIN: u64 = 5;

impl LinearPrice {
    fn and(self, other: LinearPrice) -> LinearPrice {
        LinearPrice {
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
    /// The price of something without a known bound.
    pub(super) const UNKNOWN: Price = Price::of(u64::MAX, u64::MAX);

    /// A price of `each` picoseconds per value and `byte` picoseconds per byte of it.
    pub(super) const fn of(each: u64, byte: u64) -> Price {
        let line = LinearPrice { each, byte };
        Price {
            named: line,
            present: line,
        }
    }

    /// The sum of both prices: both are applied to the same value.
    #[must_use]
    pub(super) fn and(self, other: Price) -> Price {
        Price {
            named: self.named.and(other.named),
            present: self.present.and(other.present),
        }
    }

    /// Adds the price of another child. The child has `bytes` bytes in addition to its value.
    #[must_use]
    fn beside(self, other: Price, bytes: u64) -> Price {
        let named = LinearPrice {
            each: self.named.each.saturating_add(other.named.each),
            byte: self.named.byte.max(other.named.byte),
        };
        let present = LinearPrice {
            each: self.present.each,
            byte: self.present.byte.max(other.present.spread(bytes)),
        };
        Price { named, present }
    }

    /// The price on all children of a value, each of which has at least `bytes_min` bytes.
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
    /// The cost of the schema `true` or `false`.
    pub(super) const PLAIN: Cost = Cost {
        judge: Price::of(KEYWORD, 0),
        mark: Price::of(0, 0),
        list: Price::of(VIOLATION, 0),
        build: Price::of(0, 0),
        tables: 0,
    };

    /// The cost of a whole schema, given the time in picoseconds to build all tables of its patterns.
    #[must_use]
    pub(super) fn with_tables(self, tables: u64) -> Cost {
        Cost { tables, ..self }
    }

    /// The time to parse a document of `bytes` bytes and check whether it satisfies the schema.
    pub(super) fn judging(&self, bytes: usize) -> Duration {
        let tables = Duration::from_nanos(self.tables / 1_000);
        let building = self.build.over(bytes).min(tables);
        self.judge.and(Price::of(0, READ)).over(bytes) + building
    }

    /// The time to list the violations of such a document.
    pub(super) fn listing(&self, bytes: usize) -> Duration {
        self.list.over(bytes)
    }

    /// The cost of a schema object with these keywords, patterns and parts.
    pub(super) fn of(
        members: &Map<String, Value>,
        patterns: OfPatterns,
        parts: &[(Part, Cost)],
    ) -> Cost {
        let own = own(members, patterns);
        let listed = Price::of(VIOLATION.saturating_mul(1 + members.len() as u64), 0);
        let mut cost = Cost {
            judge: own,
            mark: own,
            list: own.and(own).and(listed),
            build: patterns.building(),
            tables: 0,
        };
        // The price of the named children, each of which is checked by only one part.
        let (mut one, mut one_listed) = (Price::default(), Price::default());
        let mut one_built = Price::default();
        for (part, below) in parts {
            if let Part::One(bytes) = *part {
                one = one.beside(below.judge, bytes);
                one_listed = one_listed.beside(below.list, bytes);
                one_built = one_built.beside(below.build, bytes);
            } else {
                cost.hold(*part, *below);
            }
        }
        cost.judge = cost.judge.and(one);
        cost.list = cost.list.and(one_listed);
        cost.build = cost.build.and(one_built);
        let rest = ["unevaluatedProperties", "unevaluatedItems"];
        if rest.iter().any(|keyword| members.contains_key(*keyword)) {
            // Once to check, and once more to list.
            cost.judge = cost.judge.and(cost.mark);
            cost.list = cost.list.and(cost.mark).and(cost.mark);
        }
        cost
    }

    fn hold(&mut self, part: Part, below: Cost) {
        let applied = |price: Price| match part {
            Part::Items | Part::Sought => price.of_children(ITEM_BYTES_MIN),
            Part::Members | Part::RestOfMembers => price.of_children(MEMBER_BYTES_MIN),
            _ => price,
        };
        let Cost { judge, mark, .. } = below;
        let judged = applied(judge);
        let (mut marked, mut listed) = (Price::default(), applied(below.list));
        match part {
            Part::Definition | Part::One(_) => return,
            Part::Items | Part::Members => {}
            Part::Same => marked = judge.and(mark),
            Part::Reference => marked = mark,
            Part::Branch => {
                marked = judge.and(mark);
                listed = judge.and(listed);
            }
            Part::Condition => {
                marked = judge.and(mark);
                listed = judge;
            }
            Part::Sought | Part::RestOfMembers => marked = judged,
        }
        self.judge = self.judge.and(judged);
        self.mark = self.mark.and(marked);
        self.list = self.list.and(listed);
        self.build = self.build.and(applied(below.build));
    }
}

/// The prices of the patterns of one schema object.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OfPatterns {
    /// `pattern` on a text.
    pub(super) text: Matching,
    /// All of `patternProperties` on a name.
    pub(super) names: Matching,
}

impl OfPatterns {
    fn building(self) -> Price {
        let names = self.names.build.of_children(MEMBER_BYTES_MIN);
        self.text.build.and(names)
    }
}

/// The price of matching patterns.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Matching {
    /// With tables that are built.
    pub(super) run: Price,
    /// To build them.
    pub(super) build: Price,
}

impl Matching {
    #[must_use]
    pub(super) fn and(self, other: Matching) -> Matching {
        Matching {
            run: self.run.and(other.run),
            build: self.build.and(other.build),
        }
    }
}

/// The price of the keywords that contain no subschemas.
fn own(members: &Map<String, Value>, patterns: OfPatterns) -> Price {
    let each = KEYWORD.saturating_mul(1 + members.len() as u64);
    // The patterns are matched twice: for `patternProperties`, and to find additional members.
    let names = patterns.names.run.of_children(MEMBER_BYTES_MIN);
    let text = patterns.text.run;
    let start = Price::of(each, 0).and(text).and(names).and(names);
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

/// The price to compare a document's value with each of `values`.
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
