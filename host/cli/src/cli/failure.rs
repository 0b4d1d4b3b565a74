//! The failure of a command: its message, its class, and the next step to try. The class is the exit code.

mod next;

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use next::next_step;
pub(super) use next::{listing, quoted};

/// Shown at the end of `--help`.
pub(super) const AFTER_HELP: &str = "\
Options of every command that asks a server, before the command or behind it:
  --dev NAME, --server URL, --token TOKEN, --as USER

Exit codes:
  0  done
  1  failed
  2  wrong usage, or an unknown or invalid setting
  3  refused: you are not known, or may not do this (401, 403)
  4  there is no such thing (404)
  5  a conflict, or not possible now (409, 412, 429)
  6  the input is not valid (400, 422)
  7  the server cannot be reached
  8  the flow's logic failed (424)
  141  the reader of the output closed it before the end";

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Failed = 1,
    Usage = 2,
    Refused = 3,
    NotFound = 4,
    Conflict = 5,
    Invalid = 6,
    Unreachable = 7,
    Logic = 8,
}

impl Exit {
    fn of_status(status: u16) -> Exit {
        match status {
            401 | 403 => Exit::Refused,
            404 => Exit::NotFound,
            409 | 412 | 429 => Exit::Conflict,
            400 | 413 | 415 | 422 => Exit::Invalid,
            424 => Exit::Logic,
            _ => Exit::Failed,
        }
    }
}

/// A failure with its next step.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    message: String,
    details: Vec<String>,
    next: Option<String>,
    /// The server's problem document, for `--output json`.
    pub(super) problem: Option<Value>,
    /// After which time the same request may succeed.
    pub(super) passes: Option<Duration>,
}

impl Failure {
    pub(super) fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure {
            exit,
            message: message.into(),
            details: Vec::new(),
            next: None,
            problem: None,
            passes: None,
        }
    }

    /// A failure that passes by itself in about this time.
    pub(super) fn passing(mut self, after: Duration) -> Failure {
        self.passes = Some(after);
        self
    }

    pub(super) fn details(mut self, details: impl IntoIterator<Item = String>) -> Failure {
        self.details.extend(details);
        self
    }

    /// Adds what was done before the failure, and how to go on once the cause is fixed.
    pub(super) fn after(mut self, done: &str, then: &str) -> Failure {
        self.message = format!("{done}: {}", self.message);
        self.next = Some(match self.next {
            Some(next) => format!("{next}; then {then}"),
            None => then.to_owned(),
        });
        self
    }

    pub(super) fn next(mut self, next: impl Into<String>) -> Failure {
        self.next = Some(next.into());
        self
    }

    /// Puts the name of a file before the details with this code of the problem document.
    pub(super) fn with_file(mut self, code: &str, file: &str) -> Failure {
        let problem = self.problem.as_ref();
        let errors = problem.and_then(|problem| problem["errors"].as_array());
        for (error, detail) in errors.into_iter().flatten().zip(&mut self.details) {
            if error["code"] == code {
                *detail = format!("{file}: {detail}");
            }
        }
        self
    }

    /// The failure that a problem document of the API describes.
    pub(super) fn of_problem(status: u16, problem: Value) -> Failure {
        let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
        let (title, detail, code) = (text("title"), text("detail"), text("code"));
        let fields = problem["errors"].as_array().into_iter().flatten();
        let details: Vec<String> = fields
            .map(|field| format!("{}: {}", plain(&field["pointer"]), plain(&field["detail"])))
            .collect();
        // A detail that repeats the first field error is not shown twice.
        let first = problem["errors"][0]["detail"].as_str();
        let message = if detail.is_empty() || first.is_some_and(|first| detail.contains(first)) {
            title
        } else {
            format!("{title}: {detail}")
        };
        let failure =
            Failure::new(Exit::of_status(status), format!("{message} [{code}]")).details(details);
        let failure = match next_step(&code, &problem) {
            Some(next) => failure.next(next),
            None => failure,
        };
        Failure {
            problem: Some(problem),
            ..failure
        }
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.details
            .iter()
            .try_for_each(|detail| write!(f, "\n  {detail}"))?;
        match &self.next {
            Some(next) => write!(f, "\nnext: {next}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;
    use wrkflw_server::http::problem::CODES;

    #[test]
    fn every_code_of_the_api_has_a_class_and_every_hint_a_code() {
        for (code, status, _) in CODES {
            let classified = !matches!(Exit::of_status(*status), Exit::Failed);
            let ours = matches!(status, 405 | 408 | 410 | 431 | 500 | 503);
            assert!(classified || ours, "{code} has no exit code of its own");
        }
        for code in [
            "token_missing",
            "permission_missing",
            "no_active_version",
            "task_taken",
            "stale_revision",
            "unpublishable",
        ] {
            assert!(
                CODES.iter().any(|(known, ..)| *known == code),
                "{code} is no code of the API"
            );
            let problem = serde_json::json!({ "instance": "/v1/tasks/1/claim" });
            assert!(next_step(code, &problem).is_some(), "{code}");
        }
    }

    #[test]
    fn a_problem_shows_its_fields_and_the_next_step() {
        let problem = serde_json::json!({
            "title": "The input is not accepted", "detail": "look at the fields", "code": "invalid_input",
            "errors": [{ "pointer": "/comment", "code": "required", "detail": "Say what has to change." }],
        });
        let failure = Failure::of_problem(422, problem);
        assert_eq!(failure.exit, Exit::Invalid);
        assert_eq!(
            failure.to_string(),
            "The input is not accepted: look at the fields [invalid_input]\n  /comment: Say what has to change.\nnext: fix these and repeat"
        );
        let told_twice = serde_json::json!({
            "title": "The input is not accepted", "detail": "/comment: Say what has to change.", "code": "invalid_input",
            "errors": [{ "pointer": "/comment", "code": "required", "detail": "Say what has to change." }],
        });
        assert_eq!(
            Failure::of_problem(422, told_twice).to_string(),
            "The input is not accepted [invalid_input]\n  /comment: Say what has to change.\nnext: fix these and repeat"
        );
    }
}
