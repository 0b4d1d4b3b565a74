//! The errors of calls to a guest.
//!
//! A [`Cause`] says what went wrong. A [`GuestError`] also says where: definition, version, digest and function. Text that
//! the guest chose is escaped and cut before it is put in an error.

use super::trap::Trap;
use wrkflw_core::answer::{Reason, Refusal};
use wrkflw_core::check::Problem;
use wrkflw_core::ids::{Digest, VersionRef};

/// What runs: a definition version and the component it is pinned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    pub reference: VersionRef,
    pub digest: Digest,
}

/// A failed call of a function of a component.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{function}` of {} (component {}): {cause}", pinned.reference, pinned.digest)]
pub struct GuestError {
    pub pinned: Box<Pinned>,
    pub function: &'static str,
    pub cause: Cause,
}

impl GuestError {
    /// See [`Cause::code`].
    pub fn code(&self) -> &'static str {
        self.cause.code()
    }
}

/// Why a call gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    #[error("used up its {budget} units of fuel")]
    FuelExhausted { budget: u64 },
    #[error("did not answer within {deadline_ms} ms")]
    DeadlinePassed { deadline_ms: u64 },
    #[error("failed after it was refused more than {bytes_max} bytes of memory: {trap}")]
    MemoryExhausted { bytes_max: usize, trap: Trap },
    #[error("failed: {0}")]
    Trapped(Trap),
    /// The answer does not have the form that the contract demands.
    #[error("gave a malformed answer: {detail}")]
    Malformed { detail: String },
    #[error("gave an answer of more than {bytes_max} bytes")]
    OutputTooLarge { bytes_max: usize },
    #[error(
        "was not called: its arguments take {bytes} bytes, and at most {bytes_max} are passed to flow logic"
    )]
    InputTooLarge { bytes: usize, bytes_max: usize },
    /// No place for the call became free in time.
    #[error("was not called: no place became free within {queue_ms_max} ms")]
    Busy { queue_ms_max: u64 },
    /// The machine was too busy: the call exceeded its wall time, but not its processor time.
    #[error("was given too little processor time to answer within {wall_ms} ms")]
    Starved { wall_ms: u64 },
    /// Its compilation goes on.
    #[error("was not called: its component is still being loaded; try again soon")]
    Loading,
    /// The component cannot run on this host, for the reasons in the [`Problem`]s.
    #[error("cannot run here: {}", list(.0))]
    Incompatible(Vec<Problem>),
    /// The thread of the call ended without an answer.
    #[error("was interrupted by a failure of this host")]
    Interrupted,
    /// Not caused by the guest: its bytes could not be read, or the machine failed.
    #[error("cannot be loaded: {detail}")]
    Unavailable { detail: String },
}

impl Cause {
    /// The stable code that callers see.
    pub fn code(&self) -> &'static str {
        match self {
            Cause::FuelExhausted { .. }
            | Cause::DeadlinePassed { .. }
            | Cause::MemoryExhausted { .. } => "logic_budget_exceeded",
            // `InputTooLarge` has this code for a config. For a command, the engine answers that the instance has reached a limit.
            Cause::Trapped(_) | Cause::Malformed { .. } | Cause::InputTooLarge { .. } => {
                "logic_fault"
            }
            Cause::OutputTooLarge { .. } => "logic_output_too_large",
            Cause::Busy { .. } | Cause::Starved { .. } => "logic_busy",
            Cause::Incompatible(_) => "logic_incompatible",
            Cause::Unavailable { .. } | Cause::Loading | Cause::Interrupted => "logic_unavailable",
        }
    }

    /// Whether the flow's author must act, not the operator.
    pub fn is_guests_fault(&self) -> bool {
        match self {
            Cause::FuelExhausted { .. }
            | Cause::DeadlinePassed { .. }
            | Cause::MemoryExhausted { .. }
            | Cause::Trapped(_)
            | Cause::Malformed { .. }
            | Cause::OutputTooLarge { .. }
            | Cause::InputTooLarge { .. } => true,
            Cause::Busy { .. }
            | Cause::Starved { .. }
            | Cause::Loading
            | Cause::Incompatible(_)
            | Cause::Unavailable { .. }
            | Cause::Interrupted => false,
        }
    }

    /// Whether the same question always fails in the same way, because the load of this machine is not the cause.
    fn is_repeatable(&self) -> bool {
        self.is_guests_fault() && !matches!(self, Cause::DeadlinePassed { .. })
    }

    /// The refusal that a record has for a failed call. None if the same question may succeed later. It has only the code,
    /// so that a release with other messages records the same refusal.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        Some(match self {
            // The flow's author made no error: the instance's facts exceed the limit.
            Cause::InputTooLarge { .. } => Refusal::NotNow(Reason {
                code: "limit_reached".to_owned(),
                message: "what flow logic would be passed is too large".to_owned(),
            }),
            cause if cause.is_repeatable() => Refusal::Fault(Reason {
                code: cause.code().to_owned(),
                message: "flow logic gave no answer".to_owned(),
            }),
            _ => return None,
        })
    }
}

/// A problem of the whole component.
pub(super) fn of_component(code: &'static str, message: impl Into<String>) -> Problem {
    Problem {
        code,
        at: String::new(),
        message: message.into(),
    }
}

fn list(problems: &[Problem]) -> String {
    let texts: Vec<&str> = problems.iter().map(|one| one.message.as_str()).collect();
    texts.join("; ")
}
