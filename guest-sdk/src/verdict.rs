//! Verdicts: the answers of a guard, and the reasons and violations they carry.
//!
//! `deny` is about the person (403), `invalid` about the data or the input (422): an interface
//! hides a button for the first and marks a field for the second.

use crate::{Reason, Verdict, Violation};

/// It may happen.
pub fn allow() -> Verdict {
    Verdict::Allow
}

/// This actor may not, now or ever.
pub fn deny(code: &str, message: impl Into<String>) -> Verdict {
    Verdict::Deny(Reason::new(code, message))
}

/// The data or the input does not permit it yet. `field` is a JSON Pointer into it, such as
/// `/amount`; a decision's comment is `/comment`.
pub fn invalid(field: &str, code: &str, message: impl Into<String>) -> Verdict {
    Verdict::Invalid(vec![Violation::new(field, code, message)])
}

impl Verdict {
    /// Both must hold. A denial wins over anything invalid, violations add up.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Allow, other) => other,
            (this, Self::Allow) => this,
            (Self::Deny(reason), _) | (_, Self::Deny(reason)) => Self::Deny(reason),
            (Self::Invalid(mut all), Self::Invalid(more)) => {
                all.extend(more);
                Self::Invalid(all)
            }
        }
    }

    /// This verdict if the condition holds, else allowed.
    pub fn when(self, condition: bool) -> Self {
        if condition { self } else { Self::Allow }
    }
}

impl Reason {
    /// A stable code for programs, a sentence for people.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}

impl Violation {
    /// What is wrong with the field that the JSON Pointer names.
    pub fn new(field: &str, code: &str, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            code: code.into(),
            message: message.into(),
        }
    }

    /// This violation if the condition holds, else none: what [`Flow::check`](crate::Flow::check) says.
    pub fn when(self, condition: bool) -> Vec<Self> {
        Vec::from_iter(condition.then_some(self))
    }
}

/// What was asked for is there, or what is wrong with it.
impl<T> From<Result<T, Vec<Violation>>> for Verdict {
    fn from(read: Result<T, Vec<Violation>>) -> Self {
        read.map_or_else(Self::from, |_| Self::Allow)
    }
}

impl From<Vec<Violation>> for Verdict {
    fn from(violations: Vec<Violation>) -> Self {
        match violations[..] {
            [] => Self::Allow,
            [..] => Self::Invalid(violations),
        }
    }
}

/// For a refusal of `transition`, which has room for one reason only.
impl From<Vec<Violation>> for Reason {
    fn from(violations: Vec<Violation>) -> Self {
        let sentences: Vec<_> = violations
            .iter()
            .map(|one| format!("{}: {}", one.field, one.message))
            .collect();
        let code = violations.first().map_or("invalid", |first| &first.code);
        Self::new(code, sentences.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_add_up_and_a_denial_wins() {
        let (title, sum) = (
            invalid("/title", "required", "Give a title."),
            invalid("/sum", "range", "Too high."),
        );
        let Verdict::Invalid(both) = title.clone().and(allow()).and(sum) else {
            panic!("not invalid")
        };
        assert_eq!(
            both.iter()
                .map(|one| one.field.as_str())
                .collect::<Vec<_>>(),
            ["/title", "/sum"]
        );
        assert_eq!(title.and(deny("no", "No.")), deny("no", "No."));
        assert_eq!(deny("no", "No.").when(false), allow());
    }
}
