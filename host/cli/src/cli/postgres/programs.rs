//! Finds PostgreSQL's server programs on the system.
//!
//! Distributions leave them out of `PATH`, because several versions can be installed. A cluster runs only with its own major
//! version.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use tokio::process::Command;

/// Folders with one folder per version, and the path from there to the programs.
const VERSIONED: [(&str, &str, &str); 4] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/opt/homebrew/opt", "postgresql", "bin"),
    ("/usr/local/opt", "postgresql", "bin"),
];
const NEEDED: [&str; 3] = ["initdb", "pg_ctl", "postgres"];
const INSTALL: &str = "install PostgreSQL (Debian and Ubuntu: `apt-get install postgresql`, Fedora: `dnf install \
     postgresql-server`, macOS: `brew install postgresql`), or name a running server with --database-url";

/// A folder with all programs that are needed.
#[derive(Debug)]
pub(super) struct Programs(PathBuf);

impl Programs {
    /// Finds the programs of the major version of the data in a folder, or of the first version found.
    pub(super) async fn find(data: Option<(&str, &Path)>) -> Result<Self> {
        let major = data.map(|(major, _)| major);
        let complete = candidates()
            .await
            .into_iter()
            .filter(|dir| NEEDED.iter().all(|name| dir.join(name).is_file()));
        let mut others = Vec::new();
        for dir in complete {
            let version = major_version(&dir.join("postgres")).await;
            if major.is_none() || version.as_deref() == major {
                return Ok(Self(dir));
            }
            others.extend(version);
        }
        match data {
            Some((major, folder)) if !others.is_empty() => bail!(
                "the data was made by PostgreSQL {major}, but only {} is installed: install postgresql-{major}, \
                 or remove {} to begin with a new database and lose what this one has",
                others.join(", "),
                folder.display()
            ),
            _ => bail!("no PostgreSQL server found in PATH or in the usual folders: {INSTALL}"),
        }
    }

    pub(super) fn initdb(&self) -> PathBuf {
        self.0.join("initdb")
    }

    pub(super) fn pg_ctl(&self) -> PathBuf {
        self.0.join("pg_ctl")
    }
}

async fn candidates() -> Vec<PathBuf> {
    let mut dirs = path_folders();
    dirs.extend(configured_folder().await);
    for (parent, prefix, bin) in VERSIONED {
        dirs.extend(
            newest_first(Path::new(parent), prefix)
                .into_iter()
                .map(|dir| dir.join(bin)),
        );
    }
    dirs
}

#[expect(
    clippy::disallowed_methods,
    reason = "PATH is how the system says where programs are, not a setting of this program"
)]
fn path_folders() -> Vec<PathBuf> {
    std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default()
}

async fn configured_folder() -> Option<PathBuf> {
    let output = Command::new("pg_config")
        .arg("--bindir")
        .output()
        .await
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(text.trim())).filter(|_| output.status.success())
}

/// The folders in `parent` whose names are `prefix` and a version, or `prefix` alone.
fn newest_first(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix(prefix)?.trim_start_matches('@');
            // Homebrew's folder without a version links to the newest one.
            let version = if version.is_empty() {
                u32::MAX
            } else {
                version.split('.').next()?.parse().ok()?
            };
            Some((version, entry.path()))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, dir)| dir).collect()
}

/// `postgres (PostgreSQL) 15.18 (Debian ...)` gives `15`.
async fn major_version(postgres: &Path) -> Option<String> {
    let output = Command::new(postgres)
        .arg("--version")
        .output()
        .await
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let version = text.split_whitespace().nth(2)?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    Some(digits).filter(|digits| !digits.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_versions_come_first() {
        let parent = std::env::temp_dir().join(format!("wrkflw-programs-{}", std::process::id()));
        for name in ["9", "16", "15", "README", "postgresql@17", "postgresql"] {
            fs::create_dir_all(parent.join(name)).unwrap();
        }
        let names = |prefix| {
            let found = newest_first(&parent, prefix);
            found
                .iter()
                .map(|dir| dir.file_name().unwrap().to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(""), ["16", "15", "9"]);
        assert_eq!(names("postgresql"), ["postgresql", "postgresql@17"]);
        fs::remove_dir_all(&parent).unwrap();
    }

    #[tokio::test]
    async fn what_is_found_runs() {
        let programs = Programs::find(None).await.unwrap();
        assert!(major_version(&programs.0.join("postgres")).await.is_some());
    }
}
