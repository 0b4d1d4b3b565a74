//! The system account under which the server runs.
//!
//! PostgreSQL refuses to run as root, so root steps down to `postgres` or, where there is
//! none, to `nobody`. Anybody else runs it as themselves.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use tokio::process::Command;

/// The accounts that root steps down to, the better one first.
const SERVER_ACCOUNTS: [&str; 2] = ["postgres", "nobody"];
/// All that the server's programs see of our environment: a `PGDATA` or `PGPORT` of the user's would lead them astray.
const ENVIRONMENT: [(&str, &str); 2] = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C")];

/// Whose the server's process and files are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Account {
    /// The account that runs us.
    Ours,
    /// Another one, because we are root.
    Other { uid: u32, gid: u32 },
}

impl Account {
    /// The account for a server on `data`: its owner, if it exists already.
    pub(super) async fn of_server(data: &Path) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Ours);
        }
        if let Ok(owner) = fs::metadata(data)
            && owner.uid() != 0
        {
            return Ok(Self::Other {
                uid: owner.uid(),
                gid: owner.gid(),
            });
        }
        for name in SERVER_ACCOUNTS {
            if let (Some(uid), Some(gid)) = (id_of("-u", name).await, id_of("-g", name).await) {
                return Ok(Self::Other { uid, gid });
            }
        }
        bail!(
            "PostgreSQL does not run as root, and there is neither a user `postgres` nor `nobody` to run it as"
        )
    }

    /// A command that runs as this account, in a folder that every account may enter.
    pub(super) fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(ENVIRONMENT)
            .current_dir("/")
            .stdin(Stdio::null());
        if let Self::Other { uid, gid } = self {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Whether the account can reach `dir` through all the folders above it.
    pub(super) async fn can_enter(self, dir: &Path) -> Result<bool> {
        let status = self
            .command(Path::new("test"))
            .arg("-x")
            .arg(dir)
            .status()
            .await;
        Ok(status.context("cannot run `test`")?.success())
    }

    /// Makes `path` this account's own.
    pub(super) fn own(self, path: &Path) -> Result<()> {
        if let Self::Other { uid, gid } = self {
            chown(path, Some(uid), Some(gid))
                .with_context(|| format!("cannot give {} to the server", path.display()))?;
        }
        Ok(())
    }

    /// Makes a folder, unless it exists, that this account alone may enter.
    pub(super) fn own_folder(self, path: &Path) -> Result<()> {
        fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
        self.own(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))
            .with_context(|| format!("cannot close {} to others", path.display()))
    }

    pub(super) fn uid(self) -> u32 {
        match self {
            Self::Ours => rustix::process::geteuid().as_raw(),
            Self::Other { uid, .. } => uid,
        }
    }
}

/// Asks the system rather than reading `/etc/passwd`, which a directory service may extend.
async fn id_of(flag: &str, name: &str) -> Option<u32> {
    let output = Command::new("id").args([flag, name]).output().await.ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
