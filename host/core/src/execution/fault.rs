//! Invalid answers of flow logic, and the bounds on the texts in answers.

use crate::actor::is_reserved;
use crate::answer::{Reason, Refusal, Violation};
use crate::ids::{NOT_NORMAL, is_normal};
use crate::rejection::Rejection;

/// The code of a fault of flow logic.
pub const LOGIC_FAULT: &str = "logic_fault";
/// The longest message of flow logic to people, in bytes.
pub(super) const MESSAGE_BYTES_MAX: usize = 2_000;
/// The longest name, code, label or id in an answer, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 200;
/// How many field errors one answer may carry.
const VIOLATIONS_MAX: usize = 100;
/// The parts of a request to which a violation may point: the data of a start, and the input and comment of what follows.
const REFUSED_PARTS: [&str; 3] = ["/data", "/input", "/comment"];

/// An answer of flow logic that violates its own graph, its schema or the host's rules. It is a mistake of the flow's author,
/// not of the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{function}: {message}")]
pub struct Fault {
    /// The function that gave the answer.
    pub function: &'static str,
    pub message: String,
}

impl Fault {
    pub(super) fn new(function: &'static str, message: impl Into<String>) -> Fault {
        Fault {
            function,
            message: message.into(),
        }
    }
}

/// Why an execution failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ExecutionError {
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Refuses text that contains NUL or is longer than `bytes_max`.
pub(super) fn text(
    function: &'static str,
    what: &str,
    text: &str,
    bytes_max: usize,
) -> Result<(), Fault> {
    if text.len() > bytes_max {
        return Err(Fault::new(
            function,
            format!("{what} is longer than {bytes_max} bytes"),
        ));
    }
    if text.contains('\0') {
        return Err(Fault::new(
            function,
            format!("{what} contains the character NUL"),
        ));
    }
    Ok(())
}

/// Like [`text`]. Also refuses an empty name.
pub(super) fn name(function: &'static str, what: &str, name: &str) -> Result<(), Fault> {
    if name.is_empty() {
        return Err(Fault::new(function, format!("{what} is empty")));
    }
    text(function, what, name, NAME_BYTES_MAX)
}

/// Like [`name`]. Also refuses an id that is not in Unicode's normal form C.
pub(super) fn id(function: &'static str, what: &str, id: &str) -> Result<(), Fault> {
    name(function, what, id)?;
    if is_normal(id) {
        return Ok(());
    }
    Err(Fault::new(
        function,
        format!("{what} is not {NOT_NORMAL}: {}", id.escape_unicode()),
    ))
}

/// Like [`id`], for a person or group. Also refuses an id that is reserved for the host.
pub(super) fn principal(function: &'static str, what: &str, id: &str) -> Result<(), Fault> {
    self::id(function, what, id)?;
    if is_reserved(id) {
        let message = format!(
            "{what} is {}, a name reserved for the host",
            id.escape_debug()
        );
        return Err(Fault::new(function, message));
    }
    Ok(())
}

pub(super) fn reason(function: &'static str, reason: Reason) -> Result<Reason, Fault> {
    name(function, "the code of a reason", &reason.code)?;
    text(
        function,
        "the message of a reason",
        &reason.message,
        MESSAGE_BYTES_MAX,
    )?;
    Ok(reason)
}

pub(super) fn violations(
    function: &'static str,
    violations: Vec<Violation>,
) -> Result<Vec<Violation>, Fault> {
    if violations.is_empty() || violations.len() > VIOLATIONS_MAX {
        return Err(Fault::new(
            function,
            format!(
                "a refusal as invalid names 1 to {VIOLATIONS_MAX} fields, not {}",
                violations.len()
            ),
        ));
    }
    for violation in &violations {
        text(
            function,
            "the field of a violation",
            &violation.field,
            NAME_BYTES_MAX,
        )?;
        points_into_a_request(function, &violation.field)?;
        name(function, "the code of a violation", &violation.code)?;
        text(
            function,
            "the message of a violation",
            &violation.message,
            MESSAGE_BYTES_MAX,
        )?;
    }
    Ok(violations)
}

/// A form finds its field by the pointer. A violation with another base would not be shown.
fn points_into_a_request(function: &'static str, field: &str) -> Result<(), Fault> {
    let is_in = |part: &str| {
        let rest = field.strip_prefix(part);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if field.is_empty() || REFUSED_PARTS.iter().any(|part| is_in(part)) {
        return Ok(());
    }
    let known = REFUSED_PARTS.join(", ");
    let message = format!(
        "the field of a violation is a JSON Pointer into the request, which begins with one of {known}; `{field}` does not"
    );
    Err(Fault::new(function, bounded(message)))
}

/// The rejection for a refusal of flow logic. A refusal as `fault` is a [`Fault`] instead.
pub(super) fn rejection(function: &'static str, refusal: Refusal) -> Result<Rejection, Fault> {
    Ok(match refusal {
        Refusal::Denied(because) => Rejection::Forbidden(reason(function, because)?),
        Refusal::NotNow(because) => Rejection::RefusedNow(reason(function, because)?),
        Refusal::Invalid(wrong) => Rejection::Invalid(violations(function, wrong)?),
        Refusal::Fault(because) => {
            let Reason { code, message } = reason(function, because)?;
            return Err(Fault::new(function, format!("{message} ({code})")));
        }
    })
}

/// Shortens a message, which may quote long texts of flow logic.
pub(super) fn bounded(mut message: String) -> String {
    let end = (0..=MESSAGE_BYTES_MAX.min(message.len()))
        .rev()
        .find(|end| message.is_char_boundary(*end))
        .unwrap_or(0);
    message.truncate(end);
    message
}
