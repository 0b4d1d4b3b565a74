//! The limits of flow logic that operators set. `wrkflw_sandbox::Settings` explains them, and has the limits that are constants.

use std::path::PathBuf;

use clap::Args;

use super::between;
use super::secrets::{self, Hidden};
use wrkflw_sandbox::settings::{
    DEADLINE_MS, DEADLINE_MS_CEILING, MEMORY_BYTES_CEILING, MEMORY_BYTES_MAX,
};
use wrkflw_sandbox::{CompileLimits, Compiler, Settings};

/// Limits of the sandbox. The defaults are safe.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct SandboxArgs {
    /// Processor time of one call of flow logic, in milliseconds
    #[arg(long, env = "WRKFLW_GUEST_DEADLINE_MS", default_value_t = DEADLINE_MS, value_parser = between::<u64>(10, DEADLINE_MS_CEILING))]
    pub guest_deadline_ms: u64,
    /// Memory of one call, in bytes
    #[arg(long, env = "WRKFLW_GUEST_MEMORY_BYTES_MAX", default_value_t = MEMORY_BYTES_MAX, value_parser = between::<usize>(2 << 20, MEMORY_BYTES_CEILING as u64))]
    pub guest_memory_bytes_max: usize,
    /// Folder of machine code on disk; without it, each start compiles again. Needs `artifact_key`
    #[arg(long, env = "WRKFLW_ARTIFACT_DIR", value_name = "FOLDER")]
    pub artifact_dir: Option<PathBuf>,
    /// Authenticates machine code on disk: 64 hex digits. A secret; store it outside `artifact_dir`
    #[arg(long, env = "WRKFLW_ARTIFACT_KEY", hide_env_values = true)]
    pub artifact_key: Option<Hidden>,
    /// The priority of the compiler. Operators cannot set it; `wrkflw dev` does.
    #[arg(skip = CompileLimits::DEFAULT.niceness)]
    pub(crate) compile_niceness: u8,
}

impl SandboxArgs {
    /// The settings of the sandbox. Components are compiled in a child process that runs `program`.
    pub(crate) fn settings(&self, program: PathBuf) -> Result<Settings, String> {
        let settings = Settings {
            deadline_ms: self.guest_deadline_ms,
            memory_bytes_max: self.guest_memory_bytes_max,
            compile: CompileLimits {
                niceness: self.compile_niceness,
                ..CompileLimits::DEFAULT
            },
            ..Settings::new(Compiler::Child(program))
        };
        match (&self.artifact_dir, &self.artifact_key) {
            (None, _) => Ok(settings),
            (Some(dir), Some(key)) => Ok(settings.keeping_artifacts(dir, secrets::artifact_key(key.reveal())?)),
            (Some(_), None) => Err("artifact_dir needs artifact_key: machine code from disk is run only if it is authentic".into()),
        }
    }
}
