//! Refusals: why something may not happen, or why a flow cannot answer.
//!
//! `deny` concerns the person (403), `not_now` the moment (409), `invalid` the data or the input (422), and `fault` is a mistake
//! of the flow (424). A user interface hides a button for the first, disables it for the second and marks a field for the third.
//! Each function returns a `Result`, so that every function of a flow can return it.

use crate::{Reason, Refusal, Violation};

/// Whether something may happen: `Ok(())`, or why it may not.
pub type Verdict = Result<(), Refusal>;

/// It may happen.
pub fn allow() -> Verdict {
    Ok(())
}

/// This actor may not, now or ever.
pub fn deny<T>(code: &str, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Denied(Reason::new(code, message)))
}

/// It is not possible at the moment; a later attempt may succeed.
pub fn not_now<T>(code: &str, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::NotNow(Reason::new(code, message)))
}

/// The data or the input does not permit it. `field` is a JSON Pointer into the body of the request: `/data/title` of a start,
/// `/input/amount` of a decision or a signal, `/comment` of a decision.
pub fn invalid<T>(field: &str, code: &str, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Invalid(vec![Violation::new(field, code, message)]))
}

/// The flow cannot answer, by a mistake of its author.
pub fn fault<T>(code: &str, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Fault(Reason::new(code, message)))
}

/// `Ok` if all of these hold. If several do not, the most severe is returned: a fault, then a denial, then "not now", then
/// invalid. The violations of all are reported together.
pub fn all(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    let mut violations = Vec::new();
    let mut first: Option<Refusal> = None;
    for refusal in verdicts.into_iter().filter_map(Result::err) {
        match refusal {
            Refusal::Invalid(more) => violations.extend(more),
            other
                if first
                    .as_ref()
                    .is_none_or(|first| rank(&other) < rank(first)) =>
            {
                first = Some(other);
            }
            _ => {}
        }
    }
    match first {
        Some(refusal) => Err(refusal),
        None if violations.is_empty() => Ok(()),
        None => Err(Refusal::Invalid(violations)),
    }
}

fn rank(refusal: &Refusal) -> u8 {
    match refusal {
        Refusal::Fault(_) => 0,
        Refusal::Denied(_) => 1,
        Refusal::NotNow(_) => 2,
        Refusal::Invalid(_) => 3,
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

    /// This violation if the condition holds, otherwise none. For [`Flow::check`](crate::Flow::check).
    pub fn only_if(self, condition: bool) -> Vec<Self> {
        Vec::from_iter(condition.then_some(self))
    }
}

/// Lets `?` refuse data that cannot be read.
impl From<Vec<Violation>> for Refusal {
    fn from(violations: Vec<Violation>) -> Self {
        Self::Invalid(violations)
    }
}

/// A fault about unreadable data that does not come from the caller.
pub(crate) fn unreadable(violations: &[Violation]) -> Refusal {
    let sentences: Vec<_> = violations
        .iter()
        .map(|one| format!("{}: {}", one.field, one.message))
        .collect();
    let message = format!("The flow cannot read {}", sentences.join("; "));
    Refusal::Fault(Reason::new("unreadable", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_are_collected_and_a_denial_comes_first() {
        let title = || invalid("/data/title", "required", "Give a title.");
        let sum = || invalid("/data/sum", "range", "Too high.");
        let Err(Refusal::Invalid(both)) = all([title(), allow(), sum()]) else {
            panic!("not invalid")
        };
        let fields: Vec<_> = both.iter().map(|one| one.field.as_str()).collect();
        assert_eq!(fields, ["/data/title", "/data/sum"]);
        let (late, no) = (
            || not_now("late", "Too late."),
            || deny("no", "You may not."),
        );
        assert_eq!(all([title(), late(), no()]), no());
        assert_eq!(all([title(), late()]), late());
        assert_eq!(
            all([no(), fault("broken", "It is broken.")]),
            fault("broken", "It is broken.")
        );
        assert_eq!(all([allow(), allow()]), allow());
    }
}
