//! Why a change of the directory is refused: the invalid field, and a message that says how to fix it.

use jiff::Timestamp;

use super::absence::{
    AT_A_TIME_MAX, DAYS_MAX, LINKS_MAX, OF_PAIR_MAX, OF_PERSON_MAX, OF_SUBSTITUTE_MAX,
};

/// Why a manager or an absence is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("a person cannot be their own manager")]
    OwnManager,
    #[error("a person cannot be their own substitute")]
    OwnSubstitute,
    #[error("the directory does not know the manager {0}")]
    UnknownManager(String),
    #[error("the directory does not know the substitute {0}")]
    UnknownSubstitute(String),
    /// The chain of managers from the person back to the person.
    #[error("a circle of managers: {}", .0.join(" -> "))]
    ManagerCircle(Vec<String>),
    #[error("the chain of managers is longer than {0}")]
    TooHigh(usize),
    #[error("from must be before until")]
    Backwards,
    #[error("activeUntil has passed")]
    Over,
    #[error("an absence lasts at most {DAYS_MAX} days")]
    TooLong,
    #[error(
        "{substitute} stands in from {from} until {until} already; end that absence first, or choose another period"
    )]
    Overlap {
        substitute: String,
        from: Timestamp,
        until: Timestamp,
    },
    /// The chain of substitutes from one absent person back to the same person.
    #[error("a circle of substitutes: {}", .0.join(" -> "))]
    Circle(Vec<String>),
    #[error("more than {LINKS_MAX} absences in a row: {}", .0.join(" -> "))]
    Chain(Vec<String>),
    #[error("a person has at most {AT_A_TIME_MAX} absences at a time; end one of them first")]
    TooManyAtATime,
    #[error(
        "a person has at most {OF_PERSON_MAX} present and future absences; end one of them first"
    )]
    TooManyOfPerson,
    #[error(
        "a person names one substitute in at most {OF_PAIR_MAX} present and future absences; end one of them first, or choose another substitute"
    )]
    TooManyOfPair,
    #[error(
        "at most {OF_SUBSTITUTE_MAX} present and future absences name one substitute; end one of them first, or choose another substitute"
    )]
    TooManyOfSubstitute,
    #[error("no role would have the permission role:write, so nobody could change roles any more")]
    LastRoleWriter,
    #[error("a tenant has at most {0} roles; remove one first")]
    TooManyRoles(i64),
    #[error("more than {0} absences of that period are connected")]
    Crowded(usize),
}

impl Refusal {
    /// JSON Pointer to the invalid field.
    pub fn pointer(&self) -> &'static str {
        match self {
            Refusal::OwnManager
            | Refusal::UnknownManager(_)
            | Refusal::ManagerCircle(_)
            | Refusal::TooHigh(_) => "/manager",
            Refusal::OwnSubstitute
            | Refusal::UnknownSubstitute(_)
            | Refusal::Circle(_)
            | Refusal::Chain(_)
            | Refusal::TooManyOfPair
            | Refusal::TooManyOfSubstitute
            | Refusal::Crowded(_) => "/substitute",
            Refusal::Backwards
            | Refusal::Overlap { .. }
            | Refusal::TooManyAtATime
            | Refusal::TooManyOfPerson => "/from",
            Refusal::Over | Refusal::TooLong => "/until",
            Refusal::LastRoleWriter => "/permissions",
            Refusal::TooManyRoles(_) => "/id",
        }
    }

    /// The stable code of the field's error.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::OwnManager | Refusal::OwnSubstitute => "oneself",
            Refusal::UnknownManager(_) | Refusal::UnknownSubstitute(_) => "unknown_person",
            Refusal::ManagerCircle(_) | Refusal::Circle(_) => "circle",
            Refusal::TooHigh(_) | Refusal::Chain(_) => "chain_too_long",
            Refusal::Backwards => "backwards",
            Refusal::Over => "over",
            Refusal::TooLong => "too_long",
            Refusal::Overlap { .. } => "overlap",
            Refusal::Crowded(_) => "crowded",
            Refusal::LastRoleWriter => "last_role_writer",
            Refusal::TooManyAtATime
            | Refusal::TooManyOfPerson
            | Refusal::TooManyOfPair
            | Refusal::TooManyOfSubstitute
            | Refusal::TooManyRoles(_) => "too_many",
        }
    }
}
