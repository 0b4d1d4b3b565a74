//! Machine code on disk, so that a version loads in milliseconds after a restart.
//!
//! `wasmtime` does not check the integrity of the code that it loads: a flipped byte would run. So a file is `magic ‖ HMAC-SHA-256
//! ‖ code`. The host reads the file once, and verifies and loads the bytes in memory. It quarantines a file that fails the check
//! and compiles the component again; callers only wait longer. Engines of different configuration use different file names.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::settings::Settings;
use wrkflw_core::ids::Digest;

const MAGIC: &[u8; 8] = b"wrkflwA1";
const MAC_BYTES: usize = 32;
const HEADER_BYTES: usize = MAGIC.len() + MAC_BYTES;
/// The largest machine code that is stored or loaded. Of the toolchains that were tried, the largest machine code has 43 MB.
pub(super) const ARTIFACT_BYTES_MAX: u64 = 512 << 20;
const QUARANTINE: &str = "quarantined";

/// Trusted machine code: fresh from the compiler, or verified by its MAC.
pub(super) struct Artifact {
    bytes: Vec<u8>,
    code_at: usize,
}

impl Artifact {
    /// The compiler's output.
    pub(super) fn compiled(code: Vec<u8>) -> Artifact {
        Artifact {
            bytes: code,
            code_at: 0,
        }
    }

    pub(super) fn code(&self) -> &[u8] {
        &self.bytes[self.code_at..]
    }

    #[expect(
        unsafe_code,
        reason = "loading machine code is beyond what the compiler can check"
    )]
    pub(super) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: `deserialize` requires bytes that `wasmtime` serialised and nobody changed. An `Artifact` is made in two places
        // only: from the output of our own compiler, and by `Artifacts::open` after the MAC over exactly these bytes was
        // verified. They do not change in memory in between.
        unsafe { Component::deserialize(engine, self.code()) }
    }
}

/// The folder of compiled components.
#[derive(Debug)]
pub(super) struct Artifacts {
    dir: PathBuf,
    key: [u8; 32],
    compatibility: [u8; 32],
    bytes_max: u64,
    next_temporary: AtomicU64,
}

impl Artifacts {
    /// Opens the folder in the settings, and makes it if it is missing.
    pub(super) fn new(settings: &Settings, engine: &Engine) -> io::Result<Option<Artifacts>> {
        let Some(dir) = settings.artifact_dir.clone() else {
            return Ok(None);
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)?;
        Ok(Some(Artifacts {
            dir,
            key: settings.artifact_key,
            compatibility: compatibility(engine),
            bytes_max: settings.artifact_bytes_max,
            next_temporary: AtomicU64::new(0),
        }))
    }

    /// The stored code of this component. None if there is none, if it cannot be read, or if its MAC is wrong, which quarantines it.
    pub(super) fn open(&self, digest: Digest) -> Option<Artifact> {
        let path = self.path(digest);
        let bytes = match read_bounded(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "compiled component cannot be read");
                return None;
            }
        };
        if self.is_ours(digest, &bytes) {
            return Some(Artifact {
                bytes,
                code_at: HEADER_BYTES,
            });
        }
        self.quarantine(digest);
        None
    }

    /// Renames the file of this component, so that it is not loaded but kept for an investigation.
    pub(super) fn quarantine(&self, digest: Digest) {
        let path = self.path(digest);
        metrics::counter!("wrkflw_artifacts_quarantined_total").increment(1);
        tracing::warn!(path = %path.display(), "compiled component was altered or damaged: quarantined, compiling again");
        if let Err(error) = fs::rename(&path, path.with_extension(QUARANTINE)) {
            tracing::warn!(path = %path.display(), %error, "compiled component cannot be quarantined");
        }
    }

    /// Stores the code of this component. A failure is only logged: the component is then compiled again next time.
    pub(super) fn keep(&self, digest: Digest, artifact: &Artifact) {
        if let Err(error) = self
            .write(digest, artifact.code())
            .and_then(|()| self.trim())
        {
            tracing::warn!(dir = %self.dir.display(), %error, "compiled component cannot be stored");
        }
    }

    fn write(&self, digest: Digest, code: &[u8]) -> io::Result<()> {
        let number = self.next_temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = self
            .dir
            .join(format!("{digest}.{}.{number}.tmp", std::process::id()));
        let written = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| {
                file.write_all(MAGIC)?;
                file.write_all(&self.mac(digest, code).finalize().into_bytes())?;
                file.write_all(code)?;
                file.sync_all()
            })
            .inspect(|()| wrkflw_fault::point("artifact.written"))
            .and_then(|()| fs::rename(&temporary, self.path(digest)));
        wrkflw_fault::point("artifact.kept");
        if written.is_err() {
            // Best effort: a file that stays behind is removed by `trim` when it is among the oldest.
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// Removes the oldest files until the folder is within its limit.
    fn trim(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_file() {
                files.push((metadata.modified()?, metadata.len(), entry.path()));
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if total <= self.bytes_max {
                break;
            }
            fs::remove_file(path)?;
            total -= bytes;
        }
        Ok(())
    }

    fn is_ours(&self, digest: Digest, bytes: &[u8]) -> bool {
        let Some((magic, rest)) = bytes.split_first_chunk::<{ MAGIC.len() }>() else {
            return false;
        };
        let Some((mac, code)) = rest.split_first_chunk::<MAC_BYTES>() else {
            return false;
        };
        magic == MAGIC && self.mac(digest, code).verify_slice(mac).is_ok()
    }

    /// The MAC includes the digest, so that one component's code is not accepted as another's.
    fn mac(&self, digest: Digest, code: &[u8]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes keys of any length");
        mac.update(MAGIC);
        mac.update(&digest.0);
        mac.update(&self.compatibility);
        mac.update(code);
        mac
    }

    fn path(&self, digest: Digest) -> PathBuf {
        let engine = Digest(self.compatibility).to_string();
        self.dir.join(format!("{digest}-{}.cwasm", &engine[..16]))
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = fs::metadata(path)?.len();
    if bytes > ARTIFACT_BYTES_MAX {
        let message = format!("it has {bytes} bytes, more than {ARTIFACT_BYTES_MAX}");
        return Err(io::Error::other(message));
    }
    fs::read(path)
}

/// A digest of the `wasmtime` version, target and settings. It is equal for engines whose machine code is interchangeable.
pub(super) fn compatibility(engine: &Engine) -> [u8; 32] {
    struct Sha(Sha256);
    impl Hasher for Sha {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            // Never used: the whole digest is taken below.
            0
        }
    }
    let mut hasher = Sha(Sha256::new());
    hasher.write(super::engine::WASMTIME_VERSION.as_bytes());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.finalize().into()
}
