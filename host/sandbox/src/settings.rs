//! The limits of guests, and where their machine code is made and stored.
//!
//! The defaults are safe for components of every toolchain that was tried. [`Settings::check`] refuses values beyond the hard
//! maxima, so that no configuration removes the limits by accident.

use std::path::PathBuf;

use wrkflw_core::shown::FACTS_BYTES_MAX;

/// Processor time of one call, in milliseconds, unless operators set another.
pub const DEADLINE_MS: u64 = 250;
/// Memory of one call, in bytes, unless operators set another.
pub const MEMORY_BYTES_MAX: usize = 64 << 20;
/// The most memory that any setting may grant one call.
pub const MEMORY_BYTES_CEILING: usize = 256 << 20;
/// The most fuel that any setting may grant one call.
pub(crate) const FUEL_CEILING: u64 = 5_000_000_000;
/// The most processor time that any setting may grant one call.
pub const DEADLINE_MS_CEILING: u64 = 2_000;
/// The largest component that any setting may admit.
pub(crate) const COMPONENT_BYTES_CEILING: usize = 64 << 20;
/// The largest input or output that any setting may allow.
pub(crate) const MESSAGE_BYTES_CEILING: usize = 4 << 20;
/// The longest time that any setting may let a call wait for its place.
pub(crate) const QUEUE_MS_CEILING: u64 = 60_000;
/// The most table entries that any setting may grant one call.
pub(crate) const TABLE_ELEMENTS_CEILING: usize = 1_000_000;
/// The lowest priority of the compiler, in nice values.
const NICENESS_MAX: u8 = 10;
/// The most concurrent calls. Each reserves address space in the pool.
pub(crate) const CONCURRENCY_CEILING: usize = 256;

/// Limits of the sandbox.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Fuel for one `start`: about one unit per WebAssembly operator, the same on every run.
    pub fuel_start: u64,
    /// Fuel for one `transition`.
    pub fuel_transition: u64,
    /// Fuel for one `enter`, however many states it is about.
    pub fuel_enter: u64,
    /// Fuel for one `describe`, asked only when a version is published.
    pub fuel_describe: u64,
    /// Limit of the processor time of a call that was moved to low priority. The fuel normally ends it earlier. Its wall time may
    /// be twenty times as long.
    pub deadline_ms: u64,
    /// How long a call may wait for its place before it is refused.
    pub queue_ms_max: u64,
    /// Linear memory of one call, all memories together.
    pub memory_bytes_max: usize,
    /// Table entries of one call, all tables together.
    pub table_elements_max: usize,
    /// Size of facts and question for a guest.
    pub input_bytes_max: usize,
    /// Size of an answer.
    pub output_bytes_max: usize,
    /// Size of an uploaded component.
    pub component_bytes_max: usize,
    /// Concurrent quick calls, and the same number of slow ones. A component may use at most half of them, and a tenant
    /// three quarters of the slow ones, so that others always get a place.
    pub concurrency: usize,
    /// Size of the machine code in memory.
    pub cache_bytes_max: u64,
    /// Size of the machine code on disk. The oldest files are removed first.
    pub artifact_bytes_max: u64,
    /// The folder of machine code on disk. None: nothing is stored.
    pub artifact_dir: Option<PathBuf>,
    /// Authenticates machine code on disk. Must be kept outside `artifact_dir`.
    pub artifact_key: [u8; 32],
    /// Where components are compiled.
    pub compiler: Compiler,
    /// Limits for compiling a component in a child process.
    pub compile: CompileLimits,
}

/// Limits for compiling one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// Address space of the child.
    pub memory_bytes: u64,
    /// Processor time of all its threads together.
    pub cpu_seconds: u64,
    /// Wall time, for a machine that gives the child little processor time. The component is not the cause if this limit ends the child.
    pub wall_seconds: u64,
    /// Added to the nice value of the child, so that the scheduler prefers the host to it. 0 if a person waits for the compiler
    /// and no other work needs the machine.
    pub niceness: u8,
}

impl CompileLimits {
    /// Enough for the largest toolchain tried (Python, 25 to 55 s of processor time) on a busy machine.
    pub const DEFAULT: CompileLimits = CompileLimits {
        memory_bytes: 2 << 30,
        cpu_seconds: 120,
        wall_seconds: 600,
        niceness: NICENESS_MAX,
    };
}

/// Where components are compiled.
#[derive(Debug, Clone)]
pub enum Compiler {
    /// In a child process with limits of its own: this program, started with [`COMPILE_COMMAND`](super::COMPILE_COMMAND). Use it
    /// wherever components come from others.
    Child(PathBuf),
    /// In this process. A hostile component can take minutes and gigabytes, so use it only for your own plugins.
    InProcess,
    /// In this process, which stores the machine code of each function in memory and compiles only functions that it has not seen.
    /// For one plugin that is built again and again.
    Incremental,
}

impl Settings {
    /// Default limits with the given compiler. Nothing is stored on disk. Operators set only `deadline_ms`, `memory_bytes_max` and
    /// the folder; the other limits are constants, and `concurrency` is four per core of the machine.
    pub fn new(compiler: Compiler) -> Settings {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Settings {
            fuel_start: 50_000_000,
            fuel_transition: 100_000_000,
            fuel_enter: 50_000_000,
            fuel_describe: 500_000_000,
            deadline_ms: DEADLINE_MS,
            queue_ms_max: 2_000,
            memory_bytes_max: MEMORY_BYTES_MAX,
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

    /// Stores machine code in `dir`, authenticated with `key`.
    #[must_use]
    pub fn keeping_artifacts(self, dir: impl Into<PathBuf>, key: [u8; 32]) -> Settings {
        Settings {
            artifact_dir: Some(dir.into()),
            artifact_key: key,
            ..self
        }
    }

    /// Refuses settings that are zero or beyond their hard maximum. The error names the first one.
    pub fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: u64, ceiling: u64| match value {
            0 => Err(format!("{name} must not be 0")),
            _ if value > ceiling => {
                Err(format!("{name} is {value}, but at most {ceiling} is safe"))
            }
            _ => Ok(()),
        };
        within("fuel_start", self.fuel_start, FUEL_CEILING)?;
        within("fuel_transition", self.fuel_transition, FUEL_CEILING)?;
        within("fuel_enter", self.fuel_enter, FUEL_CEILING)?;
        within("fuel_describe", self.fuel_describe, FUEL_CEILING)?;
        within("deadline_ms", self.deadline_ms, DEADLINE_MS_CEILING)?;
        within("queue_ms_max", self.queue_ms_max, QUEUE_MS_CEILING)?;
        let compile = &self.compile;
        within("compile.memory_bytes", compile.memory_bytes, 16 << 30)?;
        within("compile.cpu_seconds", compile.cpu_seconds, 600)?;
        within("compile.wall_seconds", compile.wall_seconds, 600)?;
        if compile.niceness > NICENESS_MAX {
            return Err(format!(
                "compile.niceness is {}, but the compiler needs some processor time: at most {NICENESS_MAX}",
                compile.niceness
            ));
        }
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
