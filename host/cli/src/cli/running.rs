//! The processes of `wrkflw dev` that run on this machine. Each writes a note in its folder, and a note under its name in the
//! user's state folder. Other commands choose a process by name, or by the folder in which they run.
//!
//! A process locks its notes. The system removes the locks when the process ends, even if it is killed. So a note without a lock
//! is out of date. The number of a process would not show that, because another process may get the number later.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::failure::{Exit, Failure};
use super::home::{self, make};

/// The note in the folder of a `wrkflw dev`.
const NOTE: &str = "dev.json";
/// The folder in the user's state folder with a note of each `wrkflw dev`.
const NOTES: &str = "dev";
/// The file in that folder that a process locks to add or remove notes.
const LOCK: &str = "lock";
/// How many notes are shown, and how many numbers are tried for a name.
const NOTES_MAX: usize = 100;
/// The longest name.
const NAME_BYTES_MAX: usize = 64;

/// The message if several run and none can be chosen.
pub(super) const SEVERAL: &str =
    "several `wrkflw dev` run, and this folder does not tell which one is meant";

/// A running `wrkflw dev`, for other commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Note {
    pub(super) name: String,
    pub(super) url: String,
    /// The folder in which it was started.
    pub(super) folder: PathBuf,
    /// The folder of its secrets.
    pub(super) home: PathBuf,
    pub(super) pid: i32,
    /// Milliseconds of the Unix epoch.
    pub(super) started_at: i64,
}

/// The `wrkflw dev` that a command talks to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) note: Note,
    /// Whether it was chosen only because no other one runs: it was not named, and does not run in this folder or above it.
    pub(super) is_only_one: bool,
}

/// The notes of this process. Dropping it removes them.
pub(super) struct Announcement {
    note: Note,
    /// The notes, locked.
    kept: Vec<(PathBuf, File)>,
}

impl Announcement {
    /// Writes the note at `path`. With `replaces` it replaces a note that is there; otherwise it fails if there is one.
    fn write_note(&mut self, path: PathBuf, replaces: bool) -> io::Result<()> {
        // Written and locked under another name first, so that every command that finds the note finds it complete and locked.
        let text = serde_json::to_vec_pretty(&self.note)?;
        let aside = path.with_extension(format!("{}.new", std::process::id()));
        // A killed process with the same id may have left this file.
        drop(fs::remove_file(&aside));
        let mut file = File::create_new(&aside)?;
        let written = file
            .write_all(&text)
            .and_then(|()| file.try_lock().map_err(Into::into))
            .and_then(|()| {
                if replaces {
                    fs::rename(&aside, &path)
                } else {
                    fs::hard_link(&aside, &path)
                }
            });
        // After a rename there is nothing to remove.
        drop(fs::remove_file(&aside));
        written?;
        self.kept.push((path, file));
        Ok(())
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        for (path, _) in &self.kept {
            // Another server may have overwritten this note.
            if read(path).is_some_and(|note| note == self.note) {
                drop(fs::remove_file(path));
            }
        }
    }
}

impl Note {
    /// Reads a secret of this name.
    pub(super) fn secret(&self, name: &str) -> Result<String> {
        let path = self.home.join(name);
        let text = fs::read_to_string(&path).with_context(|| {
            let path = path.display();
            format!("cannot read the secret of `wrkflw dev` in {path}")
        })?;
        Ok(text.trim().to_owned())
    }

    fn described(&self) -> String {
        format!("{}  {}  {}", self.name, self.url, self.folder.display())
    }
}

/// The given name, or else the name of the folder. A given name must be free. If the name of the folder is not free, it gets a number.
pub(super) fn name(given: Option<&str>, folder: &Path, state: Option<&Path>) -> Result<String> {
    let taken = |name: &str| state.and_then(|state| live_note(&note_path(state, name)));
    let Some(given) = given else {
        let of_folder = folder.file_name().map(|name| name.to_string_lossy());
        let of_folder: String = of_folder
            .unwrap_or_default()
            .chars()
            .filter(|char| char.is_ascii_alphanumeric() || "-_.".contains(*char))
            .skip_while(|char| *char == '.')
            .take(NAME_BYTES_MAX / 2)
            .collect();
        let base = if of_folder.is_empty() {
            "dev".to_owned()
        } else {
            of_folder
        };
        let numbered = (2..=NOTES_MAX).map(|number| format!("{base}-{number}"));
        let free = std::iter::once(base.clone())
            .chain(numbered)
            .find(|name| taken(name).is_none());
        return free.context("too many `wrkflw dev` run: stop one, or choose a --name");
    };
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if given.is_empty()
        || given.len() > NAME_BYTES_MAX
        || !given.bytes().all(is_word)
        || given.starts_with('.')
    {
        let rule = format!(
            "a name has up to {NAME_BYTES_MAX} letters, digits, `-`, `_` and `.`, and does not begin with `.`"
        );
        return Err(Failure::new(Exit::Usage, rule).into());
    }
    match taken(given) {
        None => Ok(given.to_owned()),
        Some(other) => {
            let message = format!(
                "a `wrkflw dev` named {given} runs already, in {} (process {})",
                other.folder.display(),
                other.pid
            );
            let failure = Failure::new(Exit::Conflict, message);
            Err(failure
                .next("choose another --name, or stop that one")
                .into())
        }
    }
}

/// Writes the notes. They are removed when the result is dropped. `own` is the folder that only this process uses.
pub(super) fn announce(
    note: &Note,
    own: Option<&Path>,
    state: Option<&Path>,
) -> Result<Announcement> {
    // If a note cannot be written, this is dropped, which removes the earlier ones.
    let mut announced = Announcement {
        note: note.clone(),
        kept: Vec::new(),
    };
    if let Some(own) = own {
        let path = own.join(NOTE);
        let written = announced.write_note(path.clone(), true);
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(state) = state {
        let folder = state.join(NOTES);
        make(&folder)?;
        // Held until the note is written, so that processes that start at the same time do not remove each other's notes.
        let _starting = File::create(folder.join(LOCK))
            .and_then(|lock| lock.lock().map(|()| lock))
            .with_context(|| format!("cannot lock {}", folder.display()))?;
        forget_ended(state);
        let path = note_path(state, &note.name);
        match announced.write_note(path.clone(), false) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let message = format!("another `wrkflw dev` has taken the name {}", note.name);
                return Err(Failure::new(Exit::Conflict, message)
                    .next("start again")
                    .into());
            }
            written => written.with_context(|| format!("cannot write {}", path.display()))?,
        }
    }
    Ok(announced)
}

/// Removes the notes of processes that were killed.
fn forget_ended(state: &Path) {
    for path in notes(state) {
        if File::open(&path).is_ok_and(|note| !is_held(&note)) {
            drop(fs::remove_file(path));
        }
    }
}

/// Whether the process of a note is alive.
fn is_held(note: &File) -> bool {
    // A shared lock, because several commands may look at the same time.
    matches!(note.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// The note of a process that is alive.
fn live_note(path: &Path) -> Option<Note> {
    let file = File::open(path).ok()?;
    let note = serde_json::from_str(&io::read_to_string(&file).ok()?).ok()?;
    is_held(&file).then_some(note)
}

fn note_path(state: &Path, name: &str) -> PathBuf {
    state.join(NOTES).join(format!("{name}.json"))
}

fn notes(state: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(state.join(NOTES)).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    paths.sort();
    paths
}

/// At most [`NOTES_MAX`] running processes: the nearest to `from` first, and of equally near ones the newest first.
pub(super) fn all(from: &Path, state: Option<&Path>) -> Vec<Note> {
    let above = from
        .ancestors()
        .map(|folder| folder.join(home::NAME).join(NOTE));
    let shared = state.map(notes).unwrap_or_default();
    let mut found: Vec<Note> = Vec::new();
    let live = above.chain(shared).filter_map(|path| live_note(&path));
    for note in live.take(NOTES_MAX) {
        // A process in this folder has two notes.
        if !found.contains(&note) {
            found.push(note);
        }
    }
    found.sort_by_key(|note| std::cmp::Reverse((nearness(note, from), note.started_at)));
    found
}

/// The depth of the note's folder, if `from` is that folder or below it; else 0.
fn nearness(note: &Note, from: &Path) -> usize {
    if from.starts_with(&note.folder) {
        note.folder.components().count()
    } else {
        0
    }
}

/// The process with this name, or without a name the nearest. None if no name is given and none runs. Fails if no process has the
/// name, or if several are equally near.
pub(super) fn choose(
    named: Option<&str>,
    from: &Path,
    state: Option<&Path>,
) -> Result<Option<Choice>> {
    let all = all(from, state);
    if let Some(named) = named {
        let found = all.iter().find(|note| note.name == named).cloned();
        let note = found.ok_or_else(|| {
            let failure = Failure::new(
                Exit::Unreachable,
                format!("no `wrkflw dev` named {named} runs on this machine"),
            );
            failure
                .details(all.iter().map(Note::described))
                .next("`wrkflw dev --list` shows those that run")
        })?;
        let is_only_one = false;
        return Ok(Some(Choice { note, is_only_one }));
    }
    let Some(note) = all.first().cloned() else {
        return Ok(None);
    };
    let near = nearness(&note, from);
    if all[1..].iter().any(|other| nearness(other, from) == near) {
        return Err(several(&all).into());
    }
    let is_only_one = near == 0;
    Ok(Some(Choice { note, is_only_one }))
}

fn several(all: &[Note]) -> Failure {
    Failure::new(Exit::Usage, SEVERAL)
        .details(all.iter().map(Note::described))
        .next("name one with --dev NAME or WRKFLW_DEV, or go into the folder of one")
}

/// The process that serves this URL.
pub(super) fn with_url(url: &str, from: &Path, state: Option<&Path>) -> Option<Note> {
    all(from, state).into_iter().find(|note| note.url == url)
}

fn read(path: &Path) -> Option<Note> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::home::Home;

    fn note(name: &str, folder: &Path, started_at: i64) -> Note {
        Note {
            name: name.into(),
            url: "http://127.0.0.1:1".into(),
            folder: folder.into(),
            home: folder.into(),
            pid: std::process::id().cast_signed(),
            started_at,
        }
    }

    fn chosen(from: &Path, state: Option<&Path>) -> Option<(String, bool)> {
        let choice = choose(None, from, state).expect("no name is asked for");
        choice.map(|choice| (choice.note.name, choice.is_only_one))
    }

    #[test]
    fn a_server_is_found_from_below_its_folder_and_by_the_user_elsewhere_only_while_it_lives() {
        let temporary = Home::ephemeral().expect("a folder");
        let temporary = temporary.folder();
        let (state, project) = (temporary.join("state"), temporary.join("project"));
        let below = project.join("plugin");
        fs::create_dir_all(&below).expect("folders");
        let home = Home::persistent(&project).expect("a home");
        let one = note("one", &project, 1);
        let announced = announce(&one, Some(home.folder()), Some(&state)).expect("announced");
        assert_eq!(chosen(&below, None), Some(("one".into(), false)));
        assert_eq!(
            chosen(Path::new("/"), Some(&state)),
            Some(("one".into(), true))
        );
        drop(announced);
        assert_eq!(chosen(&below, Some(&state)), None);
        // The note of a killed process is not locked, although a process with its number lives: this one.
        let left = serde_json::to_vec(&note("gone", &project, 1)).expect("JSON");
        let gone = note_path(&state, "gone");
        for path in [&home.folder().join(NOTE), &gone] {
            fs::write(path, &left).expect("our own folder");
        }
        assert_eq!(chosen(&below, Some(&state)), None);
        assert_eq!(
            name(Some("gone"), &project, Some(&state)).expect("free"),
            "gone"
        );
        let next = note("next", &project, 2);
        let next = announce(&next, Some(home.folder()), Some(&state)).expect("announced");
        assert!(!gone.exists());
        assert_eq!(chosen(&below, Some(&state)), Some(("next".into(), false)));
        drop(next);
        let notes = fs::read_dir(state.join(NOTES)).expect("a folder");
        let names: Vec<_> = notes.map(|entry| entry.expect("an entry").path()).collect();
        assert_eq!(names, [state.join(NOTES).join(LOCK)]);
    }

    #[test]
    fn all_that_ended_are_forgotten_and_a_note_that_cannot_be_written_leaves_none() {
        let temporary = Home::ephemeral().expect("a folder");
        let state = temporary.folder().join("state");
        fs::create_dir_all(state.join(NOTES)).expect("our own folder");
        for number in 0..=NOTES_MAX {
            fs::write(note_path(&state, &number.to_string()), "{").expect("our own folder");
        }
        let one = note("one", temporary.folder(), 1);
        let _one = announce(&one, None, Some(&state)).expect("announced");
        assert_eq!(notes(&state), [note_path(&state, "one")]);
        let again = note("one", temporary.folder(), 2);
        let again = announce(&again, Some(temporary.folder()), Some(&state));
        let refused = again.err().expect("the name is taken").to_string();
        assert!(refused.contains("has taken the name one"), "{refused}");
        assert!(!temporary.folder().join(NOTE).exists());
        let path = note_path(&state, "one");
        assert_eq!(live_note(&path), Some(one));
    }

    #[test]
    fn of_several_the_folder_chooses_or_the_name_and_else_none() {
        let place = Home::ephemeral().expect("a folder");
        let (state, folder) = (place.folder().join("state"), place.folder());
        let (a, b) = (folder.join("a"), folder.join("b"));
        fs::create_dir_all(a.join("deeper")).expect("folders");
        let _first = announce(&note("a", &a, 1), None, Some(&state)).expect("announced");
        let _second = announce(&note("b", &b, 2), None, Some(&state)).expect("announced");
        assert_eq!(
            chosen(&a.join("deeper"), Some(&state)),
            Some(("a".into(), false))
        );
        assert_eq!(chosen(&b, Some(&state)), Some(("b".into(), false)));
        let refused = choose(None, Path::new("/"), Some(&state)).expect_err("none is meant");
        let refused = refused.downcast_ref::<Failure>().expect("a failure");
        assert_eq!(refused.exit, Exit::Usage);
        let message = refused.to_string();
        for part in ["\n  a  http", "\n  b  http", "--dev NAME"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        let named = |name| choose(Some(name), Path::new("/"), Some(&state));
        let found = named("a").expect("it runs").expect("a choice");
        assert_eq!((found.note.name.as_str(), found.is_only_one), ("a", false));
        let missing = named("c").expect_err("none").to_string();
        assert!(
            missing.contains("\n  b  http") && missing.contains("--list"),
            "{missing}"
        );

        assert!(name(Some("a"), &b, Some(&state)).is_err());
        assert_eq!(name(None, &a, Some(&state)).expect("free"), "a-2");
        assert_eq!(
            name(None, Path::new("/"), Some(&state)).expect("free"),
            "dev"
        );
        for wrong in ["", "../x", ".x", "a b"] {
            let refused = name(Some(wrong), &a, None).expect_err(wrong).to_string();
            assert!(
                refused.ends_with("does not begin with `.`"),
                "{wrong}: {refused}"
            );
        }
        let hidden = name(None, Path::new("/home/..my.flow"), None).expect("a name");
        assert_eq!(hidden, "my.flow");
        assert_eq!(name(Some(&hidden), &a, None).expect("free"), "my.flow");
    }
}
