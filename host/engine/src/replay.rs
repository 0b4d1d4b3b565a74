//! Evaluates recorded calls of flow logic again in this host's sandbox.

use futures_util::future::BoxFuture;

use wrkflw_audit::replay::{Answered, Fetch, Logic, ReplayError};
use wrkflw_core::ids::{Digest, VersionRef};
use wrkflw_core::question::{Facts, Question};
use wrkflw_sandbox::{Asking, Evaluation, Pinned, Sandbox};

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
            let asked = self.0.ask_prepared(&pinned, asking, fetch).await;
            let evaluated = asked.or_else(|error| {
                // Over a buffered signal, a failure is on record.
                let failure = Evaluation::of_failure(digest, question, &error.cause);
                let text = error.to_string();
                failure.ok_or(if error.cause.is_guests_fault() {
                    ReplayError::Differs(text)
                } else {
                    ReplayError::Unable(text)
                })
            })?;
            Ok(Answered {
                asked: evaluated.asked,
                answer: evaluated.answer,
                fuel: evaluated.fuel,
            })
        })
    }
}
