//! The system account under which the server runs.
//!
//! PostgreSQL refuses to run as root. So root runs it as the owner of the data folder. If root owns that folder or it is new, root
//! runs it as `postgres` or else `nobody`.
//! Every other user runs it under their own account.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use tokio::process::Command;

/// The accounts that root uses, in order of preference.
const SERVER_ACCOUNTS: [&str; 2] = ["postgres", "nobody"];
/// The whole environment of the server's programs: a `PGDATA` or `PGPORT` of the user's would misdirect them.
const ENVIRONMENT: [(&str, &str); 2] = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C")];

/// The account of the server's process and files.
#[derive(Debug, Clone, Copy)]
pub(super) enum Account {
    /// The account of this process.
    Ours,
    /// Another account, because this process runs as root.
    Other { uid: u32, gid: u32 },
}

impl Account {
    /// The account for a server on the folder `data`, which may not exist yet.
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

    /// Whether the account can enter `dir`, which also needs access to all folders above it.
    pub(super) async fn can_enter(self, dir: &Path) -> Result<bool> {
        let status = self
            .command(Path::new("test"))
            .arg("-x")
            .arg(dir)
            .status()
            .await;
        Ok(status.context("cannot run `test`")?.success())
    }

    /// Makes this account the owner of `path`.
    pub(super) fn take_ownership(self, path: &Path) -> Result<()> {
        if let Self::Other { uid, gid } = self {
            chown(path, Some(uid), Some(gid))
                .with_context(|| format!("cannot give {} to the server", path.display()))?;
        }
        Ok(())
    }

    /// Makes the folder if it is missing. Only this account may enter it from then on, also if it existed.
    pub(super) fn own_folder(self, path: &Path) -> Result<()> {
        fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
        self.take_ownership(path)?;
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

/// Calls `id` instead of reading `/etc/passwd`, because a directory service may define more accounts.
async fn id_of(flag: &str, name: &str) -> Option<u32> {
    let output = Command::new("id").args([flag, name]).output().await.ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
