//! What a guest may use, and where its machine code is made and kept.
//!
//! The defaults are safe for components of every toolchain that was tried; [`Settings::check`] refuses
//! values beyond the hard maxima, so that no configuration opens the sandbox by accident.

use std::path::PathBuf;

use crate::domain::shown::FACTS_BYTES_MAX;

/// The most memory that any setting may grant one call.
pub const MEMORY_BYTES_CEILING: usize = 256 << 20;
/// The most fuel that any setting may grant one call.
pub const FUEL_CEILING: u64 = 5_000_000_000;
/// The most processor time that any setting may grant one call.
pub const DEADLINE_MS_CEILING: u64 = 2_000;
/// The largest component that any setting may admit.
pub const COMPONENT_BYTES_CEILING: usize = 64 << 20;
/// The largest input or output that any setting may allow.
pub const MESSAGE_BYTES_CEILING: usize = 4 << 20;
/// The longest that any setting may let a call wait for its turn.
pub const QUEUE_MS_CEILING: u64 = 60_000;
/// The most table entries that any setting may grant one call.
pub const TABLE_ELEMENTS_CEILING: usize = 1_000_000;
/// The most calls at once: each reserves address space in the pool.
pub const CONCURRENCY_CEILING: usize = 256;

/// Limits of the sandbox.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Fuel for one `guard`: about one unit per WebAssembly operator, the same on every run.
    pub fuel_guard: u64,
    /// Fuel for one `transition`.
    pub fuel_transition: u64,
    /// Fuel for one `assign`.
    pub fuel_assign: u64,
    /// Fuel for one `describe`, asked only when a version is published.
    pub fuel_describe: u64,
    /// Processor time of one call that goes on at low priority, a backstop behind the fuel. By the clock it may take
    /// twenty times as long.
    pub deadline_ms: u64,
    /// How long a call may wait for its turn before it is refused.
    pub queue_ms_max: u64,
    /// Linear memory of one call, all memories together.
    pub memory_bytes_max: usize,
    /// Table entries of one call, all tables together.
    pub table_elements_max: usize,
    /// Facts and question as handed to a guest.
    pub input_bytes_max: usize,
    /// An answer as handed back.
    pub output_bytes_max: usize,
    /// A component as uploaded.
    pub component_bytes_max: usize,
    /// Quick calls at once, and as many slow ones beside them; half of them at most for one component, so that
    /// others always get a turn.
    pub concurrency: usize,
    /// Machine code kept in memory.
    pub cache_bytes_max: u64,
    /// Machine code kept on disk; the oldest goes first.
    pub artifact_bytes_max: u64,
    /// Where machine code is kept between runs; none keeps nothing.
    pub artifact_dir: Option<PathBuf>,
    /// Authenticates machine code on disk. Must be kept outside `artifact_dir`.
    pub artifact_key: [u8; 32],
    /// Where components are compiled.
    pub compiler: Compiler,
    /// What compiling one may take, in a child process.
    pub compile: CompileLimits,
}

/// What compiling one component may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// Address space of the child.
    pub memory_bytes: u64,
    /// Processor time, of all its threads together.
    pub cpu_seconds: u64,
    pub wall_seconds: u64,
}

impl CompileLimits {
    /// Enough for the largest toolchain tried on a busy machine.
    pub const DEFAULT: CompileLimits = CompileLimits {
        memory_bytes: 2 << 30,
        cpu_seconds: 60,
        wall_seconds: 120,
    };
}

/// Where components are compiled.
#[derive(Debug, Clone)]
pub enum Compiler {
    /// In a child process under limits of its own: this program, started with
    /// [`COMPILE_COMMAND`](super::COMPILE_COMMAND). Use it wherever components come from others.
    Child(PathBuf),
    /// In this process. A hostile component can take minutes and gigabytes: for one's own plugins only.
    InProcess,
}

impl Settings {
    /// Default limits with the given compiler, nothing kept on disk.
    pub fn new(compiler: Compiler) -> Settings {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Settings {
            fuel_guard: 50_000_000,
            fuel_transition: 100_000_000,
            fuel_assign: 50_000_000,
            fuel_describe: 500_000_000,
            deadline_ms: 250,
            queue_ms_max: 2_000,
            memory_bytes_max: 64 << 20,
            table_elements_max: 20_000,
            input_bytes_max: FACTS_BYTES_MAX,
            output_bytes_max: 256 << 10,
            component_bytes_max: 24 << 20,
            concurrency: (4 * cores).min(CONCURRENCY_CEILING),
            cache_bytes_max: 512 << 20,
            artifact_bytes_max: 4 << 30,
            artifact_dir: None,
            artifact_key: [0; 32],
            compiler,
            compile: CompileLimits::DEFAULT,
        }
    }

    /// Keeps machine code in `dir`, authenticated with `key`.
    #[must_use]
    pub fn keeping_artifacts(self, dir: impl Into<PathBuf>, key: [u8; 32]) -> Settings {
        Settings {
            artifact_dir: Some(dir.into()),
            artifact_key: key,
            ..self
        }
    }

    /// Names the first setting that is zero or beyond its hard maximum.
    pub fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: u64, ceiling: u64| match value {
            0 => Err(format!("{name} must not be 0")),
            _ if value > ceiling => {
                Err(format!("{name} is {value}, but at most {ceiling} is safe"))
            }
            _ => Ok(()),
        };
        within("fuel_guard", self.fuel_guard, FUEL_CEILING)?;
        within("fuel_transition", self.fuel_transition, FUEL_CEILING)?;
        within("fuel_assign", self.fuel_assign, FUEL_CEILING)?;
        within("fuel_describe", self.fuel_describe, FUEL_CEILING)?;
        within("deadline_ms", self.deadline_ms, DEADLINE_MS_CEILING)?;
        within("queue_ms_max", self.queue_ms_max, QUEUE_MS_CEILING)?;
        let compile = &self.compile;
        within("compile.memory_bytes", compile.memory_bytes, 16 << 30)?;
        within("compile.cpu_seconds", compile.cpu_seconds, 600)?;
        within("compile.wall_seconds", compile.wall_seconds, 600)?;
        let sizes = [
            (
                "memory_bytes_max",
                self.memory_bytes_max,
                MEMORY_BYTES_CEILING,
            ),
            (
                "table_elements_max",
                self.table_elements_max,
                TABLE_ELEMENTS_CEILING,
            ),
            (
                "input_bytes_max",
                self.input_bytes_max,
                MESSAGE_BYTES_CEILING,
            ),
            (
                "output_bytes_max",
                self.output_bytes_max,
                MESSAGE_BYTES_CEILING,
            ),
            (
                "component_bytes_max",
                self.component_bytes_max,
                COMPONENT_BYTES_CEILING,
            ),
            ("concurrency", self.concurrency, CONCURRENCY_CEILING),
        ];
        for (name, value, ceiling) in sizes {
            within(name, value as u64, ceiling as u64)?;
        }
        if self.input_bytes_max < FACTS_BYTES_MAX {
            return Err(format!(
                "input_bytes_max is {}, but an instance may grow until its logic is told {FACTS_BYTES_MAX} bytes",
                self.input_bytes_max
            ));
        }
        if self.artifact_dir.is_some() && self.artifact_key == [0; 32] {
            return Err("artifact_key must be a secret when artifact_dir is set".into());
        }
        Ok(())
    }
}
