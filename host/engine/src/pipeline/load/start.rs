//! The load of a start: the caller, and the definition with its active version. No instance exists yet.

use std::sync::Arc;

use super::{CachedMark, LoadResult, LoadedCommand, NO_INSTANCE, loaded_together};
use crate::Engine;
use crate::error::Error;
use crate::pipeline::{Mode, Run, reply};
use crate::request::Request;
use wrkflw_core::actor::Actor;
use wrkflw_core::command::Command;
use wrkflw_core::ids::VersionRef;
use wrkflw_store::load::{Loaded, Wanted};

/// Reads the caller and the definition of a start from the database.
pub(super) async fn read_start(engine: &Engine, request: &Request<'_>) -> Result<Loaded, Error> {
    let definition = definition_key(request);
    let who = request.who.caller();
    let wanted = Wanted {
        key: request.key().map(|key| key.key.clone()),
        definition: Some(definition.to_owned()),
        ..Wanted::of(who, NO_INSTANCE, engine.0.clock.now())
    };
    let who = wanted.who.clone();
    let loaded = loaded_together(engine, wanted).await?;
    let cache = &engine.0.post_commit.cache;
    cache.note_load(&who, NO_INSTANCE, &loaded);
    cache.note_definition(who.tenant, definition, &loaded);
    Ok(loaded)
}

/// Loads what a start needs. `loaded`: the rows that a load for several commands has read already.
pub(super) async fn load_start(
    engine: &Engine,
    run: Run<'_>,
    mode: Mode,
    loaded: Option<Box<Loaded>>,
) -> Result<LoadResult, Error> {
    let request = run.request;
    let definition = definition_key(request);
    let cached = match &loaded {
        None if mode.cache && !request.dry_run => {
            let who = request.who.caller();
            let cache = &engine.0.post_commit.cache;
            cache.get_start(&who, definition)
        }
        _ => None,
    };
    let mark = cached.as_ref().map(|rows| CachedMark::of(rows, None));
    let loaded = match (loaded, cached) {
        (Some(loaded), _) => *loaded,
        (None, Some(cached)) => cached,
        (None, None) => read_start(engine, request).await?,
    };
    if let (Some(reply), Some(key)) = (loaded.reply, request.key()) {
        return reply::repeat(&engine.0.seals, request.who, reply, key).map(LoadResult::Replied);
    }
    let Some(found) = loaded.definition else {
        let error = Error::NotFound {
            what: "definition",
            id: definition.to_owned(),
        };
        return Ok(LoadResult::Refused(error, mark));
    };
    let Some((version, content)) = found.active_version.zip(loaded.content) else {
        let error = Error::NoActiveVersion(definition.to_owned());
        return Ok(LoadResult::Refused(error, mark));
    };
    let reference = VersionRef {
        key: definition.to_owned(),
        version,
    };
    let is_stopped = loaded.stopped.contains(&reference);
    let content = Some(content.as_slice());
    let version = engine
        .versions()
        .with_content(request.who.tenant, &reference, content);
    let version = match version.await {
        Ok(version) => version,
        Err(error) => return Ok(LoadResult::Refused(error, mark)),
    };
    Ok(LoadResult::Command(Box::new(LoadedCommand {
        stopped: is_stopped.then_some(reference),
        // A substitute cannot start instances for an absent person.
        actor: if loaded.actor.stands_in_for.is_empty() {
            loaded.actor
        } else {
            Arc::new(Actor {
                stands_in_for: Vec::new(),
                ..Arc::unwrap_or_clone(loaded.actor)
            })
        },
        version,
        previous: None,
        stored: None,
        access_mark: loaded.access_mark,
        signalled: None,
        is_seen: true,
        cached: mark,
    })))
}

/// The key of the definition to start.
fn definition_key<'a>(request: &'a Request<'_>) -> &'a str {
    match &request.command {
        Command::Start { definition, .. } => definition,
        _ => unreachable!("only a start has no instance"),
    }
}
