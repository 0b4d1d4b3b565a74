//! The last stage for a command that changes nothing: a dry run, a refusal, or a command without an effect. The answer to a change is the
//! result of its group commit.

use super::load::{self, CachedMark, NO_INSTANCE};
use super::queue::Queued;
use super::{AttemptResult, Carried, CommitMode, Run, group_commit, reply};
use crate::Engine;
use crate::error::Error;
use crate::request::{Idempotency, Rendered, Reply, Request};
use wrkflw_store::commit::CommitResult;

/// Answers the command once nothing that the answer depends on can change: the cached rows are those of the database, and the
/// pending commits of its instance are stored. The reply to a request with a key is stored under the key.
pub(super) async fn answer(
    engine: &Engine,
    run: Run<'_>,
    queued: &mut Queued<'_>,
    carried: &mut Carried,
    cached: Option<CachedMark>,
    rendered: Result<Rendered, Error>,
) -> Result<AttemptResult, Error> {
    // A commit would compare the cached state with the database. Without a commit, the database is read.
    if let Some(cached) = cached
        && let Some(newer) = load::newer_than(engine, run, cached).await?
    {
        carried.loaded = Some(newer);
        return Ok(AttemptResult::Again);
    }
    let reply = rendered.map(Reply::fresh);
    let end = after_pending(engine, run.request, queued, carried, reply);
    match (end.await?, run.request.key()) {
        // The reply is not part of a commit, so it is stored by itself. It depends on no pending commit any more.
        (AttemptResult::Answered(reply), Some(key)) if !reply.replayed => {
            let (store, seals) = (&engine.0.store, &engine.0.seals);
            let kept = reply::keep(store, seals, run.request.who, key, reply.rendered);
            kept.await.map(AttemptResult::Answered)
        }
        (end, _) => Ok(end),
    }
}

/// Answers once the pending commits that the answer depends on are stored.
async fn after_pending(
    engine: &Engine,
    request: &Request<'_>,
    queued: &mut Queued<'_>,
    carried: &mut Carried,
    answer: Result<Reply, Error>,
) -> Result<AttemptResult, Error> {
    if let Err(Error::Store(_) | Error::Unavailable(_)) = answer {
        return answer.map(AttemptResult::Answered);
    }
    let Some(slot) = queued.take_pending() else {
        return answer.map(AttemptResult::Answered);
    };
    match group_commit::await_commit(&engine.0.writer, slot).await {
        Ok(CommitResult::Applied) => {
            let answer = match (answer, request.key()) {
                (Err(refusal), Some(key)) => replied_since(engine, request, key, refusal).await,
                (answer, _) => answer,
            };
            answer.map(AttemptResult::Answered)
        }
        result => {
            carried.mode.commit = carried.mode.commit.max(CommitMode::after(&result, true));
            Ok(AttemptResult::Again)
        }
    }
}

/// The reply to the first request with the key, else the refusal. The key was looked up while the command waited for its slot.
/// The first request may have been committed since, and may be the reason for the refusal.
async fn replied_since(
    engine: &Engine,
    request: &Request<'_>,
    key: &Idempotency,
    refusal: Error,
) -> Result<Reply, Error> {
    let loaded = load::read_rows(engine, request, NO_INSTANCE).await?;
    loaded.reply.map_or(Err(refusal), |reply| {
        reply::repeat(&engine.0.seals, request.who, reply, key)
    })
}
