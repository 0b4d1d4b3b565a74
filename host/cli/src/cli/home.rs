//! The folder `.wrkflw`, in which `wrkflw dev` stores its data and secrets. Other commands find a running `wrkflw dev` by a note
//! in this folder, or by a copy in the user's state folder.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use wrkflw_core::ids::Digest;
use wrkflw_runtime::clock;

/// The folder's name.
pub(super) const NAME: &str = ".wrkflw";
const NOTE: &str = "dev.json";
/// The beginning of the name of a temporary folder, and the file in it that is locked while its process lives.
const EPHEMERAL: &str = "wrkflw-dev-";
const LOCK: &str = "lock";
/// The name of the secret that signs tokens.
pub(super) const JWT: &str = "jwt.secret";
/// The name of the secret that authenticates stored machine code.
const ARTIFACT: &str = "artifact.secret";

/// The address of a running `wrkflw dev`, for other commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Note {
    pub(super) url: String,
    /// The file with the secret that signs tokens.
    pub(super) secret: PathBuf,
    pub(super) pid: i32,
}

/// The folder of a `wrkflw dev`.
pub(super) struct Home {
    folder: PathBuf,
    /// Locked while a temporary folder is in use. The lock ends with the process, even if that is killed.
    ephemeral: Option<File>,
}

impl Home {
    /// The folder below `parent`. Makes it if there is none.
    pub(super) fn kept(parent: &Path) -> Result<Home> {
        let folder = parent.join(NAME);
        make(&folder)?;
        let ignore = folder.join(".gitignore");
        if !ignore.exists() {
            fs::write(&ignore, "*\n")
                .with_context(|| format!("cannot write {}", ignore.display()))?;
        }
        Ok(Home {
            folder: folder.canonicalize()?,
            ephemeral: None,
        })
    }

    /// A temporary folder, removed when this value is dropped. First removes the folders of killed processes.
    pub(super) fn ephemeral() -> Result<Home> {
        let temporary = std::env::temp_dir();
        for folder in abandoned(&temporary) {
            if let Err(error) = fs::remove_dir_all(&folder) {
                tracing::warn!(%error, folder = %folder.display(), "a temporary folder could not be removed");
            }
        }
        let folder = temporary.join(format!("{EPHEMERAL}{}", clock::new_id().simple()));
        make(&folder)?;
        let lock = File::create(folder.join(LOCK))
            .and_then(|lock| lock.try_lock().map(|()| lock).map_err(Into::into))
            .with_context(|| format!("cannot lock {}", folder.display()))?;
        Ok(Home {
            folder,
            ephemeral: Some(lock),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The secret of this name: 64 hex digits. Made on the first call, readable only by this account.
    pub(super) fn secret(&self, name: &str) -> Result<String> {
        let path = self.secret_path(name);
        match fs::read_to_string(&path) {
            Ok(text) => return Ok(text.trim().to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        }
        let text = Digest(clock::random()).to_string();
        // Written under another name and linked, so that a crash leaves no incomplete secret, and of two processes that make it
        // at the same time both use the first one's.
        let aside = path.with_extension(format!("{}.new", std::process::id()));
        let file = File::options()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&aside);
        let made = file
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::hard_link(&aside, &path));
        let removed = fs::remove_file(&aside);
        match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.secret(name),
            made => {
                made.and(removed)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Ok(text)
            }
        }
    }

    /// The folder of stored machine code, and the secret that authenticates it.
    pub(super) fn machine_code(&self) -> Result<(PathBuf, String)> {
        Ok((self.folder.join("artifacts"), self.secret(ARTIFACT)?))
    }

    pub(super) fn secret_path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes the notes with the address of this server. They are removed when the result is dropped.
    pub(super) fn announce(&self, note: &Note, state: Option<&Path>) -> Result<Announcement> {
        let own = self.ephemeral.is_none().then(|| self.folder.join(NOTE));
        let shared = state.map(|state| state.join(NOTE));
        if let Some(state) = state {
            make(state)?;
        }
        let paths: Vec<PathBuf> = own.into_iter().chain(shared).collect();
        for path in &paths {
            fs::write(path, serde_json::to_vec_pretty(note)?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(Announcement {
            note: note.clone(),
            paths,
        })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.ephemeral.is_some()
            && let Err(error) = fs::remove_dir_all(&self.folder)
        {
            tracing::warn!(%error, folder = %self.folder.display(), "a temporary folder could not be removed");
        }
    }
}

/// Notes that are removed when this is dropped.
pub(super) struct Announcement {
    note: Note,
    paths: Vec<PathBuf>,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        for path in &self.paths {
            // Another server may have overwritten this note.
            if read(path).is_some_and(|note| note == self.note) {
                drop(fs::remove_file(path));
            }
        }
    }
}

/// The nearest running server: of this folder, of one above it, or the one that this user started last.
pub(super) fn find(from: &Path, state: Option<&Path>) -> Option<Note> {
    let above = from.ancestors().map(|folder| folder.join(NAME).join(NOTE));
    above
        .chain(state.map(|state| state.join(NOTE)))
        .filter_map(|path| read(&path))
        .find(Note::is_alive)
}

impl Note {
    fn is_alive(&self) -> bool {
        let pid = Pid::from_raw(self.pid);
        // A process of another account refuses the signal, but is alive.
        pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
    }
}

/// Temporary folders whose process has ended.
fn abandoned(temporary: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(temporary).into_iter().flatten();
    let folders = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(EPHEMERAL))
        });
    // A folder that is just being made is not locked for a moment, but it has no secret yet.
    folders
        .filter(|folder| folder.join(JWT).exists())
        .filter(|folder| File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok()))
        .collect()
}

fn read(path: &Path) -> Option<Note> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn make(folder: &Path) -> Result<()> {
    // The folder may be traversed by others: the database's folder below it may belong to another account. Files are readable
    // only by this account.
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o711)
        .create(folder)
        .with_context(|| format!("cannot create {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn note(pid: i32) -> Note {
        Note {
            url: "http://127.0.0.1:1".into(),
            secret: "/nowhere".into(),
            pid,
        }
    }

    #[test]
    fn secrets_are_made_once_and_for_us_alone() {
        let home = Home::ephemeral().expect("a folder");
        let first = home.secret("jwt").expect("a secret");
        assert_eq!(first.len(), 64);
        assert_eq!(home.secret("jwt").expect("again"), first);
        let mode = fs::metadata(home.secret_path("jwt"))
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_server_is_found_from_below_its_folder_and_by_the_user_elsewhere_only_while_it_lives() {
        let place = Home::ephemeral().expect("a folder");
        let (state, below) = (
            place.folder().join("state"),
            place.folder().join("project/plugin"),
        );
        fs::create_dir_all(&below).expect("folders");
        let home = Home::kept(&place.folder().join("project")).expect("a home");
        let own = i32::try_from(std::process::id()).expect("a pid");

        let announcement = home.announce(&note(own), Some(&state)).expect("announced");
        assert_eq!(find(&below, None), Some(note(own)));
        assert_eq!(find(Path::new("/"), Some(&state)), Some(note(own)));
        drop(announcement);
        assert_eq!(find(&below, Some(&state)), None);

        let gone = home
            .announce(&note(i32::MAX), Some(&state))
            .expect("announced");
        assert_eq!(find(&below, Some(&state)), None);
        drop(gone);
    }
}
