//! The preview of a migration: the instance before and after it, and the caller's actions on both.

use std::sync::Mutex;

use super::request::{Done, Identity, Rendered, Request, Trace};
use super::{Action, Engine, Error};
use wrkflw_core::actor::Actor;
use wrkflw_core::audit::Entry;
use wrkflw_core::command::Command;
use wrkflw_core::instance::Instance;
use wrkflw_core::rejection::Rejection;

/// Attempts while other commands change the instance.
const MOVES_MAX: u32 = 5;

/// One side of a migration.
#[derive(Debug)]
pub struct Side {
    pub instance: Instance,
    /// The actions on it: which the caller may do, and why not the others.
    pub actions: Vec<Action>,
}

impl Side {
    /// The approximate size of its JSON.
    pub fn bytes(&self) -> usize {
        self.instance.weight() + self.actions.iter().map(Action::bytes).sum::<usize>()
    }
}

/// The result of the dry run of a migration.
#[derive(Debug)]
pub struct MigrationPreview {
    pub before: Side,
    pub after: Side,
    pub entries: Vec<Entry>,
    /// The caller, as the dry run read them.
    pub actor: Actor,
}

/// Runs a migration as a dry run. If other commands keep changing the instance, the result is `Busy`.
pub async fn preview(
    engine: &Engine,
    who: &Identity,
    command: &Command,
    if_match: Option<u32>,
    trace: &Trace,
) -> Result<MigrationPreview, Error> {
    let id = command.instance().expect("a migration is of an instance");
    for _ in 0..MOVES_MAX {
        let before = engine.read(who, id).await?.instance;
        let result = Mutex::new(None);
        let render = |done: &Done<'_>| {
            let (instance, actor) = (done.instance.clone(), done.actor.clone());
            let kept = (instance, done.entries.to_vec(), actor);
            *result.lock().expect("nobody panics with it") = Some(kept);
            Rendered {
                status: 200,
                body: String::new(),
                headers: String::new(),
            }
        };
        let tried = engine.execute(Request {
            who,
            command: command.clone(),
            if_match: Some(if_match.unwrap_or(before.revision)),
            idempotency: None,
            dry_run: true,
            trace: trace.clone(),
            job: None,
            render: &render,
        });
        match tried.await {
            Err(Error::Rejected(Rejection::Stale { .. })) if if_match.is_none() => continue,
            tried => tried?,
        };
        let result = result.into_inner().expect("nobody panics with it");
        let (after, entries, actor) = result.expect("what is carried out is rendered");
        return Ok(MigrationPreview {
            before: side(engine, who, before).await?,
            after: side(engine, who, after).await?,
            entries,
            actor,
        });
    }
    Err(Error::Busy)
}

async fn side(engine: &Engine, who: &Identity, instance: Instance) -> Result<Side, Error> {
    let actions = engine.actions().on_loaded(who, &instance).await?;
    Ok(Side { instance, actions })
}
