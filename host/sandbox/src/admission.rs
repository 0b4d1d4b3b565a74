//! The admission of a component: whether it may be published with a config, and the graph that it declares.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::call::{Call, RawAnswer};
use super::error::Cause;
use super::library::Ready;
use super::sandbox::Sandbox;
use super::scan;
use super::v0_1::{self, graph};
use wrkflw_core::check::Problem;
use wrkflw_core::graph::Graph;
use wrkflw_core::ids::Digest;
use wrkflw_core::json::Json;
use wrkflw_core::shown::CONFIG_BYTES_MAX;
use wrkflw_core::text::tame;

const MESSAGE_CHARS_MAX: usize = 600;

/// A component that may be published with the given config.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    pub digest: Digest,
    /// The graph as declared. The core checks its rules.
    pub graph: Graph,
    /// The SDK that built it, if it is recorded in the component.
    pub sdk: Option<String>,
    /// The version of the contract that it was built for.
    pub wit: String,
}

/// Why a component was not admitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdmitError {
    /// The component or its config is invalid.
    #[error("the component is refused")]
    Rejected(Vec<Problem>),
    /// The host failed. The same component may be admitted later.
    #[error(transparent)]
    Unavailable(Cause),
}

impl Sandbox {
    /// Scans and compiles a component and calls its `describe` for `config` twice.
    pub async fn admit(&self, bytes: &[u8], config: &Json) -> Result<Admission, AdmitError> {
        if config.as_str().len() > CONFIG_BYTES_MAX {
            let message = format!("the config is longer than {CONFIG_BYTES_MAX} bytes");
            return Err(rejected("config_too_large", "", &message));
        }
        let bytes: Arc<[u8]> = bytes.into();
        let bytes_max = self.0.settings.component_bytes_max;
        let (digest, scanned) = tokio::task::spawn_blocking({
            let bytes = Arc::clone(&bytes);
            move || {
                let scanned = scan::scan(&bytes, bytes_max)?;
                Ok((Digest(Sha256::digest(&bytes).into()), scanned))
            }
        })
        .await
        .map_err(|error| {
            AdmitError::Unavailable(Cause::Unavailable {
                detail: format!("the scan failed: {error}"),
            })
        })?
        .map_err(AdmitError::Rejected)?;
        let ready = self.0.library.upload(digest, bytes).await;
        let ready = ready.map_err(refused)?;
        let graph = self.describe(&ready, config).await?;
        Ok(Admission {
            digest,
            graph,
            sdk: scanned.sdk,
            wit: v0_1::PACKAGE.to_owned(),
        })
    }

    async fn describe(&self, ready: &Arc<Ready>, config: &Json) -> Result<Graph, AdmitError> {
        let call = Arc::new(Call::Describe(config.to_string()));
        let first = self.0.caller.run(ready, &call).await;
        let first = first.answer.map_err(refused)?;
        let second = self.0.caller.run(ready, &call).await;
        if first != second.answer.map_err(refused)? {
            let message = "two fresh calls of `describe` with the same config gave two graphs";
            return Err(rejected("describe_unstable", "", message));
        }
        match first {
            RawAnswer::Described(Ok(definition)) => graph::graph(*definition)
                .map_err(|detail| rejected("describe_malformed", "", &detail)),
            RawAnswer::Described(Err(violations)) => Err(AdmitError::Rejected(
                violations.into_iter().map(config_problem).collect(),
            )),
            RawAnswer::Start(_) | RawAnswer::Transition(_) | RawAnswer::Enter(_) => {
                unreachable!("`describe` was called")
            }
        }
    }
}

fn refused(cause: Cause) -> AdmitError {
    match cause {
        Cause::Incompatible(problems) => AdmitError::Rejected(problems),
        Cause::InputTooLarge { .. } => rejected("config_too_large", "", &cause.to_string()),
        _ if cause.is_guests_fault() => {
            rejected("describe_failed", "", &format!("`describe` {cause}"))
        }
        _ => AdmitError::Unavailable(cause),
    }
}

fn rejected(code: &'static str, at: &str, message: &str) -> AdmitError {
    AdmitError::Rejected(vec![Problem {
        code,
        at: at.to_owned(),
        message: message.to_owned(),
    }])
}

fn config_problem(violation: v0_1::types::Violation) -> Problem {
    let text = |text: &str| tame(text, MESSAGE_CHARS_MAX);
    Problem::of_config(
        &text(&violation.field),
        &text(&violation.message),
        &text(&violation.code),
    )
}
