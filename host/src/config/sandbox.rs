//! The limits of flow logic, as operators set them. What each means stands with `wasm::Settings`.

use std::path::PathBuf;

use clap::Args;

use super::between;
use super::secrets::{self, Hidden};
use crate::domain::shown::FACTS_BYTES_MAX;
use crate::wasm::settings::{
    COMPONENT_BYTES_CEILING, CONCURRENCY_CEILING, DEADLINE_MS_CEILING, FUEL_CEILING,
    MEMORY_BYTES_CEILING, MESSAGE_BYTES_CEILING, QUEUE_MS_CEILING, TABLE_ELEMENTS_CEILING,
};
use crate::wasm::{Compiler, Settings};

/// Less fuel than this suffices for no component of any toolchain.
const FUEL_LEAST: u64 = 1_000_000;
/// Less than the answer about a small flow takes.
const MESSAGE_BYTES_LEAST: u64 = 16 << 10;
/// Less than the code of a few components: each call would compile its component anew.
const CACHE_BYTES_LEAST: u64 = 16 << 20;

/// Limits of the sandbox; the defaults are safe.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct SandboxArgs {
    /// Fuel for one guard
    #[arg(long, env = "WRKFLW_FUEL_GUARD", value_parser = between::<u64>(FUEL_LEAST, FUEL_CEILING))]
    pub fuel_guard: Option<u64>,
    /// Fuel for one transition
    #[arg(long, env = "WRKFLW_FUEL_TRANSITION", value_parser = between::<u64>(FUEL_LEAST, FUEL_CEILING))]
    pub fuel_transition: Option<u64>,
    /// Fuel for one assignment
    #[arg(long, env = "WRKFLW_FUEL_ASSIGN", value_parser = between::<u64>(FUEL_LEAST, FUEL_CEILING))]
    pub fuel_assign: Option<u64>,
    /// Fuel for describing a graph, when a version is published
    #[arg(long, env = "WRKFLW_FUEL_DESCRIBE", value_parser = between::<u64>(FUEL_LEAST, FUEL_CEILING))]
    pub fuel_describe: Option<u64>,
    /// Processor time of one call of flow logic, in milliseconds
    #[arg(long, env = "WRKFLW_GUEST_DEADLINE_MS", value_parser = between::<u64>(10, DEADLINE_MS_CEILING))]
    pub guest_deadline_ms: Option<u64>,
    /// How long a call may wait for its turn, in milliseconds
    #[arg(long, env = "WRKFLW_GUEST_QUEUE_MS_MAX", value_parser = between::<u64>(10, QUEUE_MS_CEILING))]
    pub guest_queue_ms_max: Option<u64>,
    /// Memory of one call, in bytes
    #[arg(long, env = "WRKFLW_GUEST_MEMORY_BYTES_MAX", value_parser = between::<usize>(2 << 20, MEMORY_BYTES_CEILING as u64))]
    pub guest_memory_bytes_max: Option<usize>,
    /// Table entries of one call
    #[arg(long, env = "WRKFLW_GUEST_TABLE_ELEMENTS_MAX", value_parser = between::<usize>(100, TABLE_ELEMENTS_CEILING as u64))]
    pub guest_table_elements_max: Option<usize>,
    /// Facts and question as handed to flow logic, in bytes
    #[arg(long, env = "WRKFLW_GUEST_INPUT_BYTES_MAX", value_parser = between::<usize>(FACTS_BYTES_MAX as u64, MESSAGE_BYTES_CEILING as u64))]
    pub guest_input_bytes_max: Option<usize>,
    /// An answer of flow logic, in bytes
    #[arg(long, env = "WRKFLW_GUEST_OUTPUT_BYTES_MAX", value_parser = between::<usize>(MESSAGE_BYTES_LEAST, MESSAGE_BYTES_CEILING as u64))]
    pub guest_output_bytes_max: Option<usize>,
    /// A component as uploaded, in bytes
    #[arg(long, env = "WRKFLW_COMPONENT_BYTES_MAX", value_parser = between::<usize>(64 << 10, COMPONENT_BYTES_CEILING as u64))]
    pub component_bytes_max: Option<usize>,
    /// Calls of flow logic at once. Default: four per core
    #[arg(long, env = "WRKFLW_GUEST_CONCURRENCY", value_parser = between::<usize>(1, CONCURRENCY_CEILING as u64))]
    pub guest_concurrency: Option<usize>,
    /// Machine code kept in memory, in bytes
    #[arg(long, env = "WRKFLW_CODE_CACHE_BYTES_MAX", value_parser = between::<u64>(CACHE_BYTES_LEAST, 1 << 40))]
    pub code_cache_bytes_max: Option<u64>,
    /// Machine code kept on disk, in bytes
    #[arg(long, env = "WRKFLW_ARTIFACT_BYTES_MAX", value_parser = between::<u64>(CACHE_BYTES_LEAST, 1 << 50))]
    pub artifact_bytes_max: Option<u64>,
    /// Where machine code is kept between runs; without it, each start compiles anew. Needs `artifact_key`
    #[arg(long, env = "WRKFLW_ARTIFACT_DIR", value_name = "FOLDER")]
    pub artifact_dir: Option<PathBuf>,
    /// Authenticates machine code on disk: 64 hex digits. A secret; keep it out of `artifact_dir`
    #[arg(long, env = "WRKFLW_ARTIFACT_KEY", hide_env_values = true)]
    pub artifact_key: Option<Hidden>,
}

impl SandboxArgs {
    /// The sandbox's settings; components are compiled in a child that runs `program`.
    pub(crate) fn settings(&self, program: PathBuf) -> Result<Settings, String> {
        let defaults = Settings::new(Compiler::Child(program));
        let settings = Settings {
            fuel_guard: self.fuel_guard.unwrap_or(defaults.fuel_guard),
            fuel_transition: self.fuel_transition.unwrap_or(defaults.fuel_transition),
            fuel_assign: self.fuel_assign.unwrap_or(defaults.fuel_assign),
            fuel_describe: self.fuel_describe.unwrap_or(defaults.fuel_describe),
            deadline_ms: self.guest_deadline_ms.unwrap_or(defaults.deadline_ms),
            queue_ms_max: self.guest_queue_ms_max.unwrap_or(defaults.queue_ms_max),
            memory_bytes_max: self
                .guest_memory_bytes_max
                .unwrap_or(defaults.memory_bytes_max),
            table_elements_max: self
                .guest_table_elements_max
                .unwrap_or(defaults.table_elements_max),
            input_bytes_max: self
                .guest_input_bytes_max
                .unwrap_or(defaults.input_bytes_max),
            output_bytes_max: self
                .guest_output_bytes_max
                .unwrap_or(defaults.output_bytes_max),
            component_bytes_max: self
                .component_bytes_max
                .unwrap_or(defaults.component_bytes_max),
            concurrency: self.guest_concurrency.unwrap_or(defaults.concurrency),
            cache_bytes_max: self
                .code_cache_bytes_max
                .unwrap_or(defaults.cache_bytes_max),
            artifact_bytes_max: self
                .artifact_bytes_max
                .unwrap_or(defaults.artifact_bytes_max),
            artifact_dir: None,
            ..defaults
        };
        match (&self.artifact_dir, &self.artifact_key) {
            (None, _) => Ok(settings),
            (Some(dir), Some(key)) => Ok(settings.keeping_artifacts(dir, secrets::artifact_key(key.reveal())?)),
            (Some(_), None) => Err("artifact_dir needs artifact_key: machine code from disk is run only if it is authentic".into()),
        }
    }
}
