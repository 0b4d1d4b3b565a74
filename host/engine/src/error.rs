//! The errors of requests. The HTTP layer maps each case to one problem.

use uuid::Uuid;

use super::pipeline::batch::Full;
use wrkflw_core::answer::Violation;
use wrkflw_core::ids::{Digest, VersionRef};
use wrkflw_core::rejection::Rejection;
use wrkflw_store::StoreError;
use wrkflw_store::calendars::USERS_MAX;

/// Why [`super::Engine`] did not fulfil a request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The request has values that are invalid in every state of the instance.
    #[error("{detail}")]
    Invalid {
        detail: String,
        violations: Vec<Violation>,
    },
    /// No role of the actor grants the permission.
    #[error("this needs the permission {0}")]
    Permission(&'static str),
    #[error("there is no {what} {id}")]
    NotFound { what: &'static str, id: String },
    /// The definition exists, but has no active version.
    #[error("no version of {0} is active")]
    NoActiveVersion(String),
    #[error(transparent)]
    Logic(#[from] LogicError),
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// Flow logic could not be called, or this host cannot read a stored value. The flow is not the cause.
    #[error("flow logic cannot be called now: {0}")]
    Unavailable(String),
    /// Other commands kept changing the instance until the request's time was over, or a queue is full.
    #[error("too much is asked at once; try again")]
    Busy,
    #[error("the version has {}", counted(.0.len()))]
    Unpublishable(Vec<wrkflw_core::check::Problem>),
    /// The version uses names that the tenant does not have.
    #[error("{}; or activate it by force", unknown(.0.len()))]
    UnknownNames(Vec<wrkflw_core::graph::NameUse>),
    /// Versions use the calendar that are active or have running instances: these, or the first of them.
    #[error(
        "versions that are active or have running instances use the calendar{}; replace it instead, or delete it by force",
        if_cut(.0.len())
    )]
    CalendarUsed(Vec<VersionRef>),
    #[error("version {version} of {key} is retired")]
    Retired { key: String, version: u32 },
    /// An operator has stopped the version: nothing of it runs until it is resumed.
    #[error(
        "version {version} of {key} is stopped; until it is resumed, its instances can only be commented on, suspended, cancelled or migrated"
    )]
    Stopped { key: String, version: u32 },
    /// A webhook delivery that the receiver has accepted, or that was discarded before.
    #[error("the delivery {0} was delivered, or discarded before")]
    DeliveryEnded(Uuid),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// The value at the pointer does not have the form that `detail` describes.
    pub fn malformed(pointer: &str, detail: impl Into<String>) -> Error {
        Error::invalid(pointer, "malformed", detail)
    }

    /// The value at the pointer is invalid, for this reason.
    pub fn invalid(pointer: &str, code: &str, detail: impl Into<String>) -> Error {
        let detail = detail.into();
        Error::Invalid {
            violations: vec![violation(pointer, code, detail.clone())],
            detail: format!("{pointer}: {detail}"),
        }
    }

    /// The same, with a message that does not name the pointer.
    pub(super) fn invalid_as_a_whole(
        detail: impl Into<String>,
        pointer: &str,
        code: &str,
    ) -> Error {
        let detail = detail.into();
        Error::Invalid {
            violations: vec![violation(pointer, code, detail.clone())],
            detail,
        }
    }

    pub(super) fn missing(what: &'static str, id: impl ToString) -> Error {
        let id = id.to_string();
        Error::NotFound { what, id }
    }

    /// For a version that is not there.
    pub fn no_version(VersionRef { key, version }: &VersionRef) -> Error {
        let what = "definition version";
        Error::missing(what, format!("{version} of {key}"))
    }

    pub(super) fn stopped(VersionRef { key, version }: VersionRef) -> Error {
        Error::Stopped { key, version }
    }
}

fn unknown(count: usize) -> String {
    match count {
        1 => "1 name that the version uses does not exist; add it".to_owned(),
        many => format!("{many} names that the version uses do not exist; add them"),
    }
}

/// That there may be more users of a calendar than these.
fn if_cut(users: usize) -> String {
    match usize::try_from(USERS_MAX) {
        Ok(max) if users >= max => format!(" (at most {max} are listed)"),
        _ => String::new(),
    }
}

fn violation(pointer: &str, code: &str, message: String) -> Violation {
    Violation {
        expected: None,
        field: pointer.to_owned(),
        code: code.to_owned(),
        message,
    }
}

impl From<Full> for Error {
    fn from(_: Full) -> Error {
        Error::Busy
    }
}

/// A fault of flow logic. Its author must fix it; the caller can do nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reference} ({digest}), {function}: {message}")]
pub struct LogicError {
    pub reference: VersionRef,
    pub digest: Digest,
    pub function: &'static str,
    /// `logic_budget_exceeded`, `logic_fault` or `logic_output_too_large`.
    pub code: &'static str,
    pub message: String,
}

impl Error {
    /// The stable code of the problem; none for a failure of the database, whose code depends on its kind.
    pub fn code(&self) -> Option<&str> {
        Some(match self {
            Error::Rejected(rejection) => rejection.code(),
            Error::Invalid { .. } => "invalid_request",
            Error::Permission(_) => "permission_missing",
            Error::NotFound { .. } => "not_found",
            Error::NoActiveVersion(_) => "no_active_version",
            Error::UnknownNames(_) => "unknown_names",
            Error::CalendarUsed(_) => "calendar_used",
            Error::Retired { .. } => "version_retired",
            Error::Stopped { .. } => "version_stopped",
            Error::DeliveryEnded(_) => "delivery_ended",
            Error::Logic(error) => error.code,
            Error::KeyReused => "idempotency_key_reused",
            Error::Unpublishable(_) => "unpublishable",
            Error::Busy => "busy",
            Error::Unavailable(_) => "unavailable",
            Error::Store(_) => return None,
        })
    }

    /// Why the host or flow logic refused: the code of the reason, or else that of the problem. None for a failure of the host.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Error::Rejected(Rejection::RefusedNow(reason)) => Some(&reason.code),
            Error::Rejected(rejection) => rejection.forbids().or_else(|| self.code()),
            Error::Unavailable(_) => None,
            _ => self.code(),
        }
    }

    /// The label `outcome` of logs and metrics.
    pub fn outcome(&self) -> &'static str {
        match self {
            Error::Rejected(Rejection::Forbidden(_) | Rejection::NotOwner { .. })
            | Error::Permission(_) => "forbidden",
            Error::Rejected(Rejection::Invalid(_) | Rejection::NobodyLeft { .. })
            | Error::Invalid { .. }
            | Error::NotFound { .. }
            | Error::KeyReused
            | Error::Unpublishable(_) => "validation_error",
            Error::Rejected(
                Rejection::Taken(_)
                | Rejection::Ended { .. }
                | Rejection::Suspended { .. }
                | Rejection::TaskSuspended { .. }
                | Rejection::NotNow { .. }
                | Rejection::RefusedNow(_)
                | Rejection::Stale { .. }
                | Rejection::AlreadyRunning { .. }
                | Rejection::SignalIdReused { .. },
            )
            | Error::NoActiveVersion(_)
            | Error::Retired { .. }
            | Error::UnknownNames(_)
            | Error::CalendarUsed(_)
            | Error::Stopped { .. }
            | Error::DeliveryEnded(_)
            | Error::Busy => "conflict",
            Error::Logic(_) => "logic_error",
            Error::Unavailable(_) | Error::Store(_) => "system_error",
        }
    }
}

fn counted(problems: usize) -> String {
    match problems {
        1 => "a problem".to_owned(),
        more => format!("{more} problems"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_users_says_whether_it_may_be_cut() {
        let message = |users: usize| {
            let user = VersionRef {
                key: "vote".to_owned(),
                version: 1,
            };
            Error::CalendarUsed(vec![user; users]).to_string()
        };
        let max = usize::try_from(USERS_MAX).expect("a small number");
        assert!(!message(max - 1).contains("listed"));
        let advice = format!("use the calendar (at most {max} are listed); replace it");
        assert!(message(max).contains(&advice), "{}", message(max));
    }
}
