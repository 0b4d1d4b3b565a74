//! Evaluates recorded calls of flow logic again in this host's sandbox.

use futures_util::future::BoxFuture;

use wrkflw_audit::replay::{Answered, Fetch, Logic, ReplayError};
use wrkflw_core::ids::{Digest, VersionRef};
use wrkflw_core::question::{Facts, Question};
use wrkflw_sandbox::{Asking, Cause, Evaluation, Pinned, Sandbox};

/// A sandbox for replays.
pub struct Sandboxed(pub Sandbox);

impl Logic for Sandboxed {
    fn profile(&self) -> String {
        self.0.profile().digest.to_string()
    }

    fn ask<'a, 'f: 'a>(
        &'a self,
        (reference, digest): (&'a VersionRef, Digest),
        facts: Facts<'a>,
        question: &'a Question,
        fetch: &'a Fetch<'f>,
    ) -> BoxFuture<'a, Result<Answered, ReplayError>> {
        Box::pin(async move {
            let reference = reference.clone();
            let pinned = Pinned { reference, digest };
            let asking = Asking::of(&facts, question);
            let digest = asking.digest();
            // The result of a replay must not depend on how long the compiler takes.
            let loaded = self.0.warm(&pinned, fetch).await;
            loaded.map_err(|error| ReplayError::Unable(error.to_string()))?;
            let (evaluated, failure) = match self.0.ask_prepared(&pinned, asking, fetch).await {
                Ok(evaluated) => (evaluated, None),
                // For a buffered signal, the audit records a failure. It never records a transient failure, such as a missed deadline.
                Err(error) => match Evaluation::of_failure(digest, question, &error.cause) {
                    Some(evaluated) => (evaluated, Some(exceeded(&error.cause))),
                    None => return Err(ReplayError::Unable(error.to_string())),
                },
            };
            Ok(Answered {
                asked: evaluated.asked,
                answer: evaluated.answer,
                fuel: evaluated.fuel,
                failure,
            })
        })
    }
}

/// The cause of a failure, without text that the guest chose: it may be confidential.
fn exceeded(cause: &Cause) -> String {
    match cause {
        Cause::MemoryExhausted { bytes_max, .. } => {
            format!("it needs more than {bytes_max} bytes of memory")
        }
        Cause::Trapped(_) | Cause::Malformed { .. } => cause.code().to_owned(),
        cause => format!("it {cause}"),
    }
}
