//! The schema without the feature `schema`: every document satisfies it.

use std::time::Duration;

use super::{SchemaError, forms};
use crate::answer::Violation;
use crate::json::Json;

/// A schema that checks no document.
#[derive(Debug, Clone)]
pub struct Schema;

#[expect(
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "the same surface as with the feature"
)]
impl Schema {
    pub fn compile(_document: &Json) -> Result<Schema, SchemaError> {
        Ok(Schema)
    }

    pub fn admit(document: &Json) -> Result<Schema, SchemaError> {
        forms::check(document)?;
        Ok(Schema)
    }

    pub fn weight(&self) -> usize {
        0
    }

    pub fn judging(&self, _bytes: usize) -> Duration {
        Duration::ZERO
    }

    pub fn effort(&self, _data: &Json) -> Duration {
        Duration::ZERO
    }

    pub fn violations(&self, _data: &Json) -> Vec<Violation> {
        Vec::new()
    }

    pub(crate) fn first_violation(&self, _data: &Json) -> Option<Violation> {
        None
    }
}
