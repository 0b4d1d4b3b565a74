//! The settings of a running `wrkflw dev`, for commands that read its database without its server.

use anyhow::Result;

use super::Environment;
use super::connection::{DevChoiceArgs, dev_hint};
use super::home::{self, CHECKPOINT, SEAL, database_of};
use super::output::Output;
use super::running::Note;
use crate::config::{CheckpointArgs, DatabaseArgs, Hidden, SealArgs};

/// The `wrkflw dev` whose settings are used: the named one, or, if no database is set, the nearest one.
fn chosen_dev(
    choice: &DevChoiceArgs,
    is_set: bool,
    output: Output,
    environment: &Environment,
) -> Result<Option<Note>> {
    if is_set && choice.dev.is_none() {
        return Ok(None);
    }
    let note = choice.choose(environment)?.map(|choice| choice.note);
    if let Some(note) = &note {
        output.hint(&dev_hint(note));
    }
    Ok(note)
}

/// Fills in the database of `wrkflw dev`, and its keys if none are set.
pub(super) fn database(
    choice: &DevChoiceArgs,
    database: &mut DatabaseArgs,
    keys: Option<(&mut SealArgs, &mut CheckpointArgs)>,
    (output, environment): (Output, &Environment),
) -> Result<()> {
    let is_set = database.database_url.is_some();
    let Some(note) = chosen_dev(choice, is_set, output, environment)? else {
        return Ok(());
    };
    database.database_url = Some(note.secret(&database_of(&note.name))?.into());
    let Some((seal, checkpoint)) = keys else {
        return Ok(());
    };
    if seal.seal_keys.is_empty() {
        seal.seal_keys = vec![key(&note, SEAL)?];
    }
    if checkpoint.checkpoint_keys.is_empty() {
        checkpoint.checkpoint_keys = vec![key(&note, CHECKPOINT)?];
    }
    Ok(())
}

/// Fills in the keys of checkpoints of `wrkflw dev`, if none are set.
pub(super) fn checkpoints(
    choice: &DevChoiceArgs,
    checkpoint: &mut CheckpointArgs,
    (output, environment): (Output, &Environment),
) -> Result<()> {
    let is_set = !checkpoint.checkpoint_keys.is_empty();
    if let Some(note) = chosen_dev(choice, is_set, output, environment)? {
        checkpoint.checkpoint_keys = vec![key(&note, CHECKPOINT)?];
    }
    Ok(())
}

fn key(note: &Note, name: &str) -> Result<Hidden> {
    Ok(home::key(&note.secret(name)?).into())
}
