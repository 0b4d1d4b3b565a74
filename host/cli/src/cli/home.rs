//! The folder `.wrkflw`, in which `wrkflw dev` stores its data and secrets.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use wrkflw_core::audit::sha256;
use wrkflw_core::ids::Digest;
use wrkflw_runtime::clock;

/// The folder's name.
pub(super) const NAME: &str = ".wrkflw";
/// The prefix of the name of a temporary folder, and the file in it that its process locks while it lives.
const EPHEMERAL: &str = "wrkflw-dev-";
const LOCK: &str = "lock";
/// The name of the secret that signs tokens.
pub(super) const JWT: &str = "jwt.secret";
/// The name of the secret that seals decisions.
pub(super) const SEAL: &str = "seal.secret";
/// The name of the secret that signs checkpoints.
pub(super) const CHECKPOINT: &str = "checkpoint.secret";
/// The name of the secret that authenticates stored machine code.
const ARTIFACT: &str = "artifact.secret";

/// The name of the file with the URL of the database of a `wrkflw dev`. The URL may have a password. Other processes in the same
/// folder may have other databases.
pub(super) fn database_of(name: &str) -> String {
    format!("database.{name}.url")
}

/// The folder of a `wrkflw dev`.
pub(super) struct Home {
    folder: PathBuf,
    /// Locked while a temporary folder is in use. The lock ends with the process, even if that is killed.
    ephemeral: Option<File>,
}

impl Home {
    /// The folder below `parent`. Makes it if there is none.
    pub(super) fn persistent(parent: &Path) -> Result<Home> {
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
        // Written under another name and then linked. So a crash leaves no incomplete secret, and two processes that make it at
        // the same time both use the first one.
        let aside = self.write_aside(name, &text)?;
        let linked = fs::hard_link(&aside, &path);
        let removed = fs::remove_file(&aside);
        match linked {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.secret(name),
            linked => {
                linked
                    .and(removed)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Ok(text)
            }
        }
    }

    /// Writes a secret, readable only by this account, and replaces an existing one.
    pub(super) fn keep(&self, name: &str, text: &str) -> Result<()> {
        let path = self.secret_path(name);
        // Written under another name and renamed, so that a crash leaves no incomplete secret.
        fs::rename(self.write_aside(name, text)?, &path)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Writes a secret under a name of this process. Returns its path.
    fn write_aside(&self, name: &str, text: &str) -> Result<PathBuf> {
        let aside = self.secret_path(&format!("{name}.{}.new", std::process::id()));
        let file = File::options()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&aside);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("cannot write {}", aside.display()))?;
        Ok(aside)
    }

    /// The folder of stored machine code, and the secret that authenticates it.
    pub(super) fn machine_code(&self) -> Result<(PathBuf, String)> {
        Ok((self.folder.join("artifacts"), self.secret(ARTIFACT)?))
    }

    /// The folder, if it outlives the process.
    pub(super) fn persistent_folder(&self) -> Option<&Path> {
        self.ephemeral.is_none().then_some(self.folder.as_path())
    }

    pub(super) fn secret_path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
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

/// A key of seals or checkpoints, in the form of settings. Its name is derived from its secret, so that after a loss of the
/// secret, the database does not look as if somebody had changed it.
pub(super) fn key(secret: &str) -> String {
    let digest = Digest(sha256(secret.as_bytes())).to_string();
    format!("dev-{}:{secret}", &digest[..8])
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
    // A folder that another process is just making is not locked for a moment, but it has no secret yet.
    folders
        .filter(|folder| folder.join(JWT).exists())
        .filter(|folder| File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok()))
        .collect()
}

/// Removes a file, if there is one.
pub(super) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes a folder and those above it.
pub(super) fn make(folder: &Path) -> Result<()> {
    // Other accounts may traverse the folder, because the database's folder below it may belong to another account. Only this
    // account may read its files.
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

    #[test]
    fn another_secret_is_a_key_of_another_name() {
        assert_eq!(key("abc"), "dev-ba7816bf:abc");
        let (one, other) = (key("1"), key("2"));
        assert_ne!(one[..12], other[..12]);
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
}
