//! Converts Rust values to values of typed attributes.
//!
//! A whole number becomes a decimal, which is exact. Only an `f64` becomes a float. The graph declares the type of each
//! attribute, and the host refuses a plan that sets a value of another type.

use crate::{AttributeValue, Decimal, Moment};

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<&String> for AttributeValue {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for AttributeValue {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<&Decimal> for AttributeValue {
    fn from(number: &Decimal) -> Self {
        Self::Decimal(number.to_string())
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        Self::from(&Decimal::from(number))
    }
}

impl From<i32> for AttributeValue {
    fn from(number: i32) -> Self {
        Self::from(i64::from(number))
    }
}

impl From<u32> for AttributeValue {
    fn from(number: u32) -> Self {
        Self::from(i64::from(number))
    }
}

impl From<f64> for AttributeValue {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<Moment> for AttributeValue {
    fn from(moment: Moment) -> Self {
        Self::Timestamp(moment.to_string())
    }
}

impl<const LENGTH: usize> From<[u8; LENGTH]> for AttributeValue {
    fn from(bytes: [u8; LENGTH]) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<Vec<u8>> for AttributeValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}
