//! Why a request comes to nothing. The HTTP layer maps each case to one problem.

use super::combine::Full;
use crate::domain::ids::{Digest, VersionRef};
use crate::domain::rejection::Rejection;
use crate::store::StoreError;

/// What [`super::Engine`] answers instead of a result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// No role of the actor grants the permission.
    #[error("this needs the permission {0}")]
    Permission(&'static str),
    #[error("there is no {what} {id}")]
    NotFound { what: &'static str, id: String },
    /// The definition exists, but new instances have no version to take.
    #[error("no version of {0} is active")]
    NoActiveVersion(String),
    #[error(transparent)]
    Logic(#[from] LogicError),
    /// The idempotency key stands for another request.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// Flow logic could not be asked, and it is not its fault.
    #[error("flow logic cannot be asked now: {0}")]
    Unavailable(String),
    /// Others kept changing the instance until the request's time was over, or too many commands wait already.
    #[error("too much is asked at once; try again")]
    Busy,
    /// What is to be published has these problems.
    #[error("the version has {} problems", .0.len())]
    Unpublishable(Vec<crate::domain::check::Problem>),
    #[error("version {version} of {key} is retired")]
    Retired { key: String, version: u32 },
    /// An operator has stopped the version: nothing of it runs until it is resumed.
    #[error(
        "version {version} of {key} is stopped; until it is resumed, its instances can be cancelled or migrated, and nothing else"
    )]
    Stopped { key: String, version: u32 },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    pub(super) fn stopped(VersionRef { key, version }: VersionRef) -> Error {
        Error::Stopped { key, version }
    }
}

impl From<Full> for Error {
    fn from(_: Full) -> Error {
        Error::Busy
    }
}

/// Flow logic misbehaved: its author must mend it, the caller can do nothing.
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
    /// The class that logs and metrics count it under.
    pub fn outcome(&self) -> &'static str {
        match self {
            Error::Rejected(Rejection::Forbidden(_) | Rejection::NotOwner { .. })
            | Error::Permission(_) => "forbidden",
            Error::Rejected(
                Rejection::Invalid(_) | Rejection::Refused(_) | Rejection::NobodyLeft { .. },
            )
            | Error::NotFound { .. }
            | Error::KeyReused
            | Error::Unpublishable(_) => "validation_error",
            Error::Rejected(
                Rejection::Taken(_)
                | Rejection::Ended { .. }
                | Rejection::Suspended { .. }
                | Rejection::NotNow { .. }
                | Rejection::Stale { .. }
                | Rejection::AlreadyRunning { .. }
                | Rejection::SignalIdReused { .. },
            )
            | Error::NoActiveVersion(_)
            | Error::Retired { .. }
            | Error::Stopped { .. }
            | Error::Busy => "conflict",
            Error::Logic(_) => "logic_error",
            Error::Unavailable(_) | Error::Store(_) => "system_error",
        }
    }
}
