//! How asking a guest can fail.
//!
//! A [`Cause`] says what went wrong, a [`GuestError`] also in whose code: definition, version, digest
//! and function. Text of the guest's own choosing is escaped and cut before it gets in here.

use std::fmt;

use crate::domain::check::Problem;
use crate::domain::ids::{Digest, VersionRef};

/// What runs: a definition version and the component it is pinned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    pub reference: VersionRef,
    pub digest: Digest,
}

/// A question that got no answer.
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
    /// The answer came, but is not of the contract's form.
    #[error("gave a malformed answer: {detail}")]
    Malformed { detail: String },
    #[error("gave an answer of more than {bytes_max} bytes")]
    OutputTooLarge { bytes_max: usize },
    #[error(
        "was not asked: the facts take {bytes} bytes, more than the {bytes_max} that a guest is given"
    )]
    InputTooLarge { bytes: usize, bytes_max: usize },
    /// All turns stayed taken for as long as a call may wait.
    #[error("was not asked: no turn became free within {queue_ms_max} ms")]
    Busy { queue_ms_max: u64 },
    /// The component cannot run here: [`Problem`]s say why.
    #[error("cannot run here: {}", list(.0))]
    Incompatible(Vec<Problem>),
    /// Not the guest's doing: its bytes could not be had, or the machine failed.
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
            // What callers may add to the facts is bounded well below: the rest is the flow's own making.
            Cause::Trapped(_) | Cause::Malformed { .. } | Cause::InputTooLarge { .. } => {
                "logic_fault"
            }
            Cause::OutputTooLarge { .. } => "logic_output_too_large",
            Cause::Busy { .. } => "logic_busy",
            Cause::Incompatible(_) => "logic_incompatible",
            Cause::Unavailable { .. } => "logic_unavailable",
        }
    }

    /// Whether the flow's author, not the operator, has something to mend.
    pub fn is_guests_fault(&self) -> bool {
        match self {
            Cause::FuelExhausted { .. }
            | Cause::DeadlinePassed { .. }
            | Cause::MemoryExhausted { .. }
            | Cause::Trapped(_)
            | Cause::Malformed { .. }
            | Cause::OutputTooLarge { .. }
            | Cause::InputTooLarge { .. } => true,
            Cause::Busy { .. } | Cause::Incompatible(_) | Cause::Unavailable { .. } => false,
        }
    }

    /// Where the guest failed, innermost function first; empty unless it trapped.
    pub fn backtrace(&self) -> &[String] {
        match self {
            Cause::Trapped(trap) | Cause::MemoryExhausted { trap, .. } => &trap.frames,
            Cause::FuelExhausted { .. }
            | Cause::DeadlinePassed { .. }
            | Cause::Malformed { .. }
            | Cause::OutputTooLarge { .. }
            | Cause::InputTooLarge { .. }
            | Cause::Busy { .. }
            | Cause::Incompatible(_)
            | Cause::Unavailable { .. } => &[],
        }
    }
}

/// How a guest came to a stop, for its author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trap {
    pub message: String,
    /// Names of functions, innermost first.
    pub frames: Vec<String>,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.frames.first() {
            Some(frame) => write!(f, " in {frame}"),
            None => Ok(()),
        }
    }
}

/// A problem of the component as a whole.
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
