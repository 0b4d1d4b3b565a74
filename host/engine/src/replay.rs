//! Evaluates recorded calls of flow logic again in this host's sandbox.

use futures_util::future::BoxFuture;

use wrkflw_audit::replay::{Answered, Fetch, Logic, ReplayError};
use wrkflw_core::ids::{Digest, VersionRef};
use wrkflw_core::question::{Facts, Question};
use wrkflw_sandbox::{Pinned, Sandbox};

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
            let asked = self.0.ask(&pinned, facts, question, fetch).await;
            let evaluated = asked.map_err(|error| {
                let text = error.to_string();
                if error.cause.is_guests_fault() {
                    ReplayError::Differs(text)
                } else {
                    ReplayError::Unable(text)
                }
            })?;
            Ok(Answered {
                asked: evaluated.asked,
                answer: evaluated.answer,
                fuel: evaluated.fuel,
            })
        })
    }
}
