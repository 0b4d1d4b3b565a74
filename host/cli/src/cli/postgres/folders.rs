//! The folders of one server: its cluster, its log, its socket, and the lock on them.
//!
//! Two rules of the system determine the folders. The path of a socket must be short, so a deep project gets its socket in the
//! temporary folder. The server's account must reach its data, so root's data is in `/var/lib` if the project is in a folder that
//! is closed to other accounts.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use sha2::{Digest as _, Sha256};

use super::account::Account;
use wrkflw_core::ids::hex;

/// The folder of the cluster.
pub(super) const DATA: &str = "data";
/// The folder of a cluster that is being made.
pub(super) const FRESH: &str = "data.new";
/// The name that PostgreSQL gives its socket.
pub(super) const SOCKET_NAME: &str = ".s.PGSQL.5432";
/// The file that is locked while a place is used.
const LOCK: &str = "lock";
/// The beginning of the name of a place in the temporary folder. Sixteen hex digits follow.
const EPHEMERAL: &str = "wrkflw-";
/// The longest path of a socket that both Linux and macOS accept, without the terminating zero byte.
const SOCKET_PATH_BYTES_MAX: usize = 103;
/// The folder for data that the server's account could not reach in the project.
const OUTSIDE: &str = "/var/lib/wrkflw-dev";

/// Folders that only this process uses while this value lives.
#[derive(Debug)]
pub(super) struct ServerFolders {
    home: PathBuf,
    sockets: PathBuf,
    ephemeral: bool,
    /// Never read. The lock ends with the process, even if that is killed.
    _lock: File,
}

impl ServerFolders {
    /// The place for persistent data: `dir`, if the server can reach it.
    pub(super) async fn persistent(dir: &Path, account: &Account) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let dir = dir
            .canonicalize()
            .with_context(|| format!("cannot resolve {}", dir.display()))?;
        let lock = locked(&dir)?;
        // `dir` itself may be closed, because the server becomes its owner. The folders above it must be open.
        let parent = dir.parent().unwrap_or(&dir);
        let home = if account.can_enter(parent).await? {
            dir
        } else {
            let home = Path::new(OUTSIDE).join(name_for(&dir));
            fs::create_dir_all(OUTSIDE).with_context(|| format!("cannot create {OUTSIDE}"))?;
            ensure!(
                account.can_enter(Path::new(OUTSIDE)).await?,
                "the server's account can enter neither {} nor {OUTSIDE}: open one of them with `chmod a+x`",
                parent.display()
            );
            note_outside(&dir, &home)?;
            home
        };
        Self::prepare(home, *account, lock, Keep::Always)
    }

    /// A new place in the temporary folder.
    pub(super) fn ephemeral(account: &Account) -> Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| anyhow!("no randomness: {error}"))?;
        let home = std::env::temp_dir().join(format!("{EPHEMERAL}{}", hex(&random)));
        fs::create_dir(&home).with_context(|| format!("cannot create {}", home.display()))?;
        let lock = locked(&home)?;
        Self::prepare(home, *account, lock, Keep::WhileRunning)
    }

    /// Places in the temporary folder whose process ended without removing them. They are locked for the caller.
    pub(super) fn abandoned(account: &Account) -> Vec<Self> {
        let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten();
        let homes = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| is_ephemeral(path, account));
        homes
            .filter_map(|home| {
                let lock = File::options().append(true).open(home.join(LOCK)).ok()?;
                lock.try_lock().ok()?;
                Self::prepare(home, *account, lock, Keep::WhileRunning).ok()
            })
            .collect()
    }

    /// Gives the folders to the account. The caller has locked `home`.
    fn prepare(home: PathBuf, account: Account, lock: File, keep: Keep) -> Result<Self> {
        account.own_folder(&home)?;
        let inside = home.join("socket");
        let sockets = if inside.join(SOCKET_NAME).as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
            inside
        } else {
            std::env::temp_dir().join(format!("wrkflw-{}", name_for(&home)))
        };
        make_own_folder(&sockets, account)?;
        Ok(Self {
            home,
            sockets,
            ephemeral: matches!(keep, Keep::WhileRunning),
            _lock: lock,
        })
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    pub(super) fn data(&self) -> PathBuf {
        self.home.join(DATA)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.home.join("postgres.log")
    }

    pub(super) fn sockets(&self) -> &Path {
        &self.sockets
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.sockets.join(SOCKET_NAME)
    }

    pub(super) fn is_ephemeral(&self) -> bool {
        self.ephemeral
    }

    /// Removes the socket's folder, if it is outside the place, and the whole place, if it is temporary.
    pub(super) fn clear(&self) -> Result<()> {
        if !self.sockets.starts_with(&self.home) {
            remove_folder(&self.sockets)?;
        }
        if self.ephemeral {
            remove_folder(&self.home)?;
        }
        Ok(())
    }
}

/// Removes a folder, if it is there: a removal that failed half-way is repeated.
fn remove_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

enum Keep {
    Always,
    WhileRunning,
}

/// How long to wait for a lock. A child process that is just starting may still hold an inherited lock that its parent has released.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

fn locked(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK);
    let file = File::options().create(true).append(true).open(&path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    let tries = LOCK_TIMEOUT.as_millis() / LOCK_PAUSE.as_millis();
    let mut lock = file.try_lock();
    for _ in 0..tries {
        if !matches!(lock, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
        lock = file.try_lock();
    }
    match lock {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "another `wrkflw dev` uses {}: stop it first, or start this one with --ephemeral or in another folder",
            dir.display()
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// Writes a note in the project that says where the data is.
fn note_outside(dir: &Path, home: &Path) -> Result<()> {
    let note = dir.join("DATA-IS-ELSEWHERE");
    let text = format!(
        "{}\n\nThe server runs under an account that cannot enter the folders above this one.\n",
        home.display()
    );
    fs::write(&note, text).with_context(|| format!("cannot write {}", note.display()))
}

/// Fails if another account has made a folder or link of this name, which is possible in the temporary folder.
fn make_own_folder(path: &Path, account: Account) -> Result<()> {
    match fs::create_dir(path) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(path)
                .with_context(|| format!("cannot look at {}", path.display()))?;
            let ours = found.is_dir() && found.uid() == account.uid();
            ensure!(
                ours,
                "{} belongs to somebody else: delete it, or set TMPDIR to another folder",
                path.display()
            );
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot create {}", path.display()));
        }
    }
    account.own_folder(path)
}

/// Whether this is a place in the temporary folder with a cluster in it. A place that is just being made has no cluster yet.
fn is_ephemeral(path: &Path, account: &Account) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let is_named = name
        .and_then(|name| name.strip_prefix(EPHEMERAL))
        .is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|c| c.is_ascii_hexdigit()));
    let has_cluster = [DATA, FRESH].iter().any(|name| path.join(name).is_dir());
    is_named
        && has_cluster
        && fs::symlink_metadata(path)
            .is_ok_and(|found| found.is_dir() && found.uid() == account.uid())
}

fn name_for(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_bytes());
    hex(&digest[..8])
}
