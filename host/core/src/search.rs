//! Search conditions on attributes, such as `attribute.amount=gt:1000`.
//!
//! A value has the form `[TYPE:][OPERATOR:]VALUE`. It is first parsed into an [`UntypedCondition`], because the type may be known
//! only from the definitions. With a type it becomes a [`Condition`] with checked bounds. Decimals keep their text; nothing here
//! converts a number.

use jiff::Timestamp;

use super::graph::AttributeType;
use super::moment;

/// How many conditions a search may have.
pub const CONDITIONS_MAX: usize = 5;
/// How many values `in` may have.
pub const VALUES_MAX: usize = 20;
/// Digits before and after the point of a decimal; plans have the same limit.
const DECIMAL_DIGITS_MAX: usize = 100;

const TYPES: [AttributeType; 6] = [
    AttributeType::Text,
    AttributeType::Boolean,
    AttributeType::Decimal,
    AttributeType::Float,
    AttributeType::Timestamp,
    AttributeType::Bytes,
];

impl AttributeType {
    /// The name in requests and rows.
    pub fn name(self) -> &'static str {
        match self {
            AttributeType::Text => "text",
            AttributeType::Boolean => "boolean",
            AttributeType::Decimal => "decimal",
            AttributeType::Float => "float",
            AttributeType::Timestamp => "timestamp",
            AttributeType::Bytes => "bytes",
        }
    }

    /// The type of this name.
    pub fn named(name: &str) -> Option<AttributeType> {
        TYPES.into_iter().find(|kind| kind.name() == name)
    }

    fn takes(self, operator: Operator) -> bool {
        match operator {
            Operator::Eq | Operator::Ne | Operator::In | Operator::Exists | Operator::Absent => {
                true
            }
            Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte => {
                !matches!(self, AttributeType::Boolean | AttributeType::Bytes)
            }
            Operator::Prefix => self == AttributeType::Text,
        }
    }
}

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Eq,
    /// The attribute exists and has another value.
    Ne,
    Gt,
    Gte,
    Lt,
    Lte,
    In,
    /// The value begins with this text; for texts only.
    Prefix,
    Exists,
    /// The attribute does not exist: `exists:false`.
    Absent,
}

const OPERATORS: [Operator; 9] = [
    Operator::Eq,
    Operator::Ne,
    Operator::Gt,
    Operator::Gte,
    Operator::Lt,
    Operator::Lte,
    Operator::In,
    Operator::Prefix,
    Operator::Exists,
];

impl Operator {
    /// The operator of this name.
    pub fn named(name: &str) -> Option<Operator> {
        OPERATORS.into_iter().find(|known| known.name() == name)
    }

    /// The name in requests. `absent` is internal.
    pub fn name(self) -> &'static str {
        match self {
            Operator::Eq => "eq",
            Operator::Ne => "ne",
            Operator::Gt => "gt",
            Operator::Gte => "gte",
            Operator::Lt => "lt",
            Operator::Lte => "lte",
            Operator::In => "in",
            Operator::Prefix => "prefix",
            Operator::Exists => "exists",
            Operator::Absent => "absent",
        }
    }
}

/// A condition on an attribute whose type is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntypedCondition {
    pub attribute: String,
    /// The type, if the caller names it.
    pub kind: Option<AttributeType>,
    operator: Operator,
    value: Given,
}

/// The value of a condition, as the caller gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// For `in`, a list with commas.
    Text(String),
    /// For `in` only.
    List(Vec<String>),
}

/// A condition on an attribute of a known type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub attribute: String,
    pub kind: AttributeType,
    pub operator: Operator,
    /// One value, or those of `in`; empty for `exists`. Timestamps have microseconds, as in the database.
    pub bounds: Vec<Bound>,
}

/// A value of the condition's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// A text, or the text of a number, a boolean or a timestamp.
    Plain(String),
    Bytes(Vec<u8>),
}

impl UntypedCondition {
    /// Splits a value. Without an operator, it means equality. So a value that begins like a type or an operator needs the prefix `eq:`.
    pub fn parse(attribute: &str, text: &str) -> UntypedCondition {
        let typed = text
            .split_once(':')
            .and_then(|(kind, rest)| Some((AttributeType::named(kind)?, rest)));
        let (kind, rest) = typed.map_or((None, text), |(kind, rest)| (Some(kind), rest));
        let compared = rest.split_once(':').and_then(|(name, value)| {
            let known = Operator::named(name)?;
            Some((known, value))
        });
        let (operator, value) = compared.unwrap_or((Operator::Eq, rest));
        UntypedCondition {
            attribute: attribute.to_owned(),
            kind,
            operator,
            value: Given::Text(value.to_owned()),
        }
    }

    /// A condition whose parts are given one by one.
    pub fn new(
        attribute: String,
        kind: Option<AttributeType>,
        operator: Operator,
        value: Given,
    ) -> UntypedCondition {
        UntypedCondition {
            attribute,
            kind,
            operator,
            value,
        }
    }

    /// Whether its operator is one for this type.
    pub fn compares(&self, kind: AttributeType) -> bool {
        kind.takes(self.operator)
    }

    /// The condition for an attribute of this type. The error says how to fix the value. `bytes` decodes base64.
    pub fn of(
        &self,
        kind: AttributeType,
        bytes: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Condition, String> {
        if !self.compares(kind) {
            let known = OPERATORS.into_iter().filter(|known| kind.takes(*known));
            let known: Vec<_> = known.map(Operator::name).collect();
            return Err(format!(
                "{} of type {} takes {}, not {}",
                self.attribute,
                kind.name(),
                known.join(", "),
                self.operator.name()
            ));
        }
        let bound = |value: &str| {
            read(kind, value, &bytes).ok_or_else(|| format!("{value:?} is not {}", expected(kind)))
        };
        let (operator, bounds) = match self.operator {
            Operator::Exists => (presence(self.single()?)?, vec![]),
            Operator::In => {
                let values = match &self.value {
                    Given::Text(list) => several(list)?,
                    Given::List(values) => values.clone(),
                };
                if values.is_empty() || values.len() > VALUES_MAX {
                    return Err(format!("in takes 1 to {VALUES_MAX} values"));
                }
                let bounds = values.iter().map(|value| bound(value));
                (Operator::In, bounds.collect::<Result<_, _>>()?)
            }
            other => (other, vec![bound(self.single()?)?]),
        };
        Ok(Condition {
            attribute: self.attribute.clone(),
            kind,
            operator,
            bounds,
        })
    }

    /// The value of an operator that takes only one.
    fn single(&self) -> Result<&str, String> {
        match &self.value {
            Given::Text(text) => Ok(text),
            Given::List(_) => Err(format!("{} takes one value", self.operator.name())),
        }
    }
}

fn presence(value: &str) -> Result<Operator, String> {
    match value {
        "true" => Ok(Operator::Exists),
        "false" => Ok(Operator::Absent),
        _ => Err("exists takes true or false".to_owned()),
    }
}

/// The values of a list. A backslash escapes a comma or a backslash in a value.
fn several(list: &str) -> Result<Vec<String>, String> {
    let mut values = vec![String::new()];
    let mut rest = list.chars();
    while let Some(next) = rest.next() {
        let taken = match next {
            ',' => {
                values.push(String::new());
                continue;
            }
            '\\' => rest
                .next()
                .filter(|escaped| matches!(escaped, ',' | '\\'))
                .ok_or("in a list, a backslash stands before a comma or a backslash")?,
            plain => plain,
        };
        if let Some(last) = values.last_mut() {
            last.push(taken);
        }
    }
    Ok(values)
}

fn read(
    kind: AttributeType,
    value: &str,
    bytes: impl Fn(&str) -> Option<Vec<u8>>,
) -> Option<Bound> {
    let plain = match kind {
        AttributeType::Bytes => return bytes(value).map(Bound::Bytes),
        AttributeType::Text => value.to_owned(),
        AttributeType::Boolean => matches!(value, "true" | "false").then(|| value.to_owned())?,
        AttributeType::Decimal => is_decimal(value).then(|| value.to_owned())?,
        AttributeType::Float => {
            let number: f64 = value.parse().ok()?;
            number.is_finite().then(|| format!("{number:e}"))?
        }
        AttributeType::Timestamp => timestamp(value)?,
    };
    Some(Bound::Plain(plain))
}

/// An optional sign, digits, and optionally a point and digits, at most 100 on each side.
pub fn is_decimal(text: &str) -> bool {
    let digits = |part: &str| {
        (1..=DECIMAL_DIGITS_MAX).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    match unsigned.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(unsigned),
    }
}

fn timestamp(text: &str) -> Option<String> {
    let moment = moment::parse(text)?;
    let kept = Timestamp::from_microsecond(moment.as_microsecond()).ok()?;
    Some(kept.to_string())
}

fn expected(kind: AttributeType) -> String {
    match kind {
        AttributeType::Text => "text".to_owned(),
        AttributeType::Boolean => "true or false".to_owned(),
        AttributeType::Decimal => format!(
            "a decimal such as 1000 or -0.25, with at most {DECIMAL_DIGITS_MAX} digits on each side of the point"
        ),
        AttributeType::Float => "a finite number".to_owned(),
        AttributeType::Timestamp => moment::expected(),
        AttributeType::Bytes => "base64".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(kind: AttributeType, text: &str) -> Result<(Operator, Vec<String>), String> {
        let condition = UntypedCondition::parse("a", text)
            .of(kind, |text| (text != "!").then(|| text.as_bytes().to_vec()))?;
        let bounds = condition.bounds.into_iter().map(|bound| match bound {
            Bound::Plain(text) => text,
            Bound::Bytes(bytes) => format!("{bytes:?}"),
        });
        Ok((condition.operator, bounds.collect()))
    }

    #[track_caller]
    fn check(kind: AttributeType, text: &str, operator: Operator, bounds: &[&str]) {
        let bounds = bounds.iter().map(ToString::to_string).collect();
        assert_eq!(condition(kind, text), Ok((operator, bounds)), "{text}");
    }

    #[test]
    fn a_value_is_read_by_its_type() {
        use AttributeType::{Boolean, Bytes, Decimal, Float, Text, Timestamp};
        check(Text, "EU", Operator::Eq, &["EU"]);
        check(Text, "a:b", Operator::Eq, &["a:b"]);
        check(Text, "eq:gt:5", Operator::Eq, &["gt:5"]);
        check(Text, "", Operator::Eq, &[""]);
        check(Text, "in:a\\,b,,c\\\\", Operator::In, &["a,b", "", "c\\"]);
        check(Text, "prefix:EU", Operator::Prefix, &["EU"]);
        check(Boolean, "ne:true", Operator::Ne, &["true"]);
        check(Decimal, "gt:-0.10", Operator::Gt, &["-0.10"]);
        check(Float, "lte:1.5", Operator::Lte, &["1.5e0"]);
        check(
            Timestamp,
            "lt:2026-01-01T01:00:00.123456789+01:00",
            Operator::Lt,
            &["2026-01-01T00:00:00.123456Z"],
        );
        check(Bytes, "ab", Operator::Eq, &["[97, 98]"]);
        check(Bytes, "exists:false", Operator::Absent, &[]);
    }

    #[test]
    fn a_type_may_be_named() {
        let untyped = UntypedCondition::parse("a", "decimal:gt:5");
        assert_eq!(untyped.kind, Some(AttributeType::Decimal));
        assert_eq!(untyped.operator, Operator::Gt);
        assert_eq!(UntypedCondition::parse("a", "colour:red").kind, None);
        assert_eq!(
            UntypedCondition::parse("a", "text:red").operator,
            Operator::Eq
        );
    }

    #[test]
    fn what_is_no_value_of_the_type_is_refused() {
        use AttributeType::{Boolean, Bytes, Decimal, Float, Text, Timestamp};
        let long = "9".repeat(101);
        for (kind, text) in [
            (Boolean, "yes"),
            (Boolean, "gt:true"),
            (Decimal, "1e9"),
            (Decimal, ""),
            (Decimal, ".5"),
            (Decimal, &long),
            (Decimal, "prefix:1"),
            (Decimal, "in:1,,2"),
            (Float, "NaN"),
            (Float, "inf"),
            (Timestamp, "2026-01-01"),
            (Timestamp, "-000001-01-01T00:00:00Z"),
            (Timestamp, "-009999-01-02T01:59:58,89Z"),
            (Bytes, "!"),
            (Bytes, "lt:ab"),
            (Text, "exists:yes"),
            (Text, "in:a\\b"),
            (Text, &format!("in:{}", ",".repeat(VALUES_MAX))),
        ] {
            assert!(condition(kind, text).is_err(), "{text}");
        }
    }
}
