//! Integers as JSON Schema defines them: `3.0` is one.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};

/// The largest value up to which every integer is exact as a float.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

struct Whole;

impl Visitor<'_> for Whole {
    type Value = u64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number that is not negative")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole, not negative, and small enough"
    )]
    fn visit_f64<E: Error>(self, number: f64) -> Result<u64, E> {
        if number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number) {
            return Ok(number as u64);
        }
        Err(E::invalid_type(serde::de::Unexpected::Float(number), &self))
    }
}

/// Reads one, for `deserialize_with`.
pub fn whole<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let number = deserializer.deserialize_u64(Whole)?;
    T::try_from(number).map_err(|_| D::Error::custom(format!("{number} is too large a number")))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize)]
    struct WholeNumber(#[serde(deserialize_with = "super::whole")] u32);

    #[test]
    fn a_whole_number_may_be_written_with_a_fraction_of_nothing() {
        for (text, number) in [
            ("3", Some(3)),
            ("3.0", Some(3)),
            ("30e-1", Some(3)),
            ("0", Some(0)),
        ]
        .into_iter()
        .chain(["3.5", "-1", "-1.0", "4294967296", "1e300", "\"3\""].map(|text| (text, None)))
        {
            let read = serde_json::from_str::<WholeNumber>(text).ok();
            assert_eq!(read, number.map(WholeNumber), "{text}");
        }
    }
}
