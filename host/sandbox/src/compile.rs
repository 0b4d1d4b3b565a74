//! Compiles a component to machine code, in a child process with limits of its own.
//!
//! A small component can keep a compiler busy for minutes and fill gigabytes. No limit of the engine prevents that. So the host
//! starts its own program again, writes the component to its standard input and reads the code from its standard output. The child
//! limits its own resources before it reads a byte; the host adds a timeout. Uploads, small published components and large ones have
//! separate queues. Each queue compiles one component at a time. So a costly upload delays other uploads, but no instance. An
//! interpreter, which takes a minute, delays no component that takes a second.

use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, nice, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, SemaphorePermit};
use wasmtime::Engine;

use super::artifacts::{ARTIFACT_BYTES_MAX, Artifact};
use super::engine;
use super::error::{Cause, of_component};
use super::settings::{COMPONENT_BYTES_CEILING, CompileLimits, Compiler, Settings};
use wrkflw_core::text::tame;

/// The hidden command under which this program only compiles a component.
pub const COMPILE_COMMAND: &str = "__compile";

/// The largest published component in the queue of small ones. Those of interpreters are larger.
const SMALL_BYTES_MAX: usize = 4 << 20;
/// Components that may wait for the compiler, in each queue. Each is held in memory.
const WAITING_MAX: usize = 8;
/// The child's exit code for an invalid component. Its standard error says why.
const EXIT_REJECTED: u8 = 3;
/// Signals from outside: the kernel sends them when the machine is short of memory, and an operator or supervisor when the host is to stop.
const FROM_OUTSIDE: [Signal; 4] = [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP];
const ERROR_BYTES_MAX: u64 = 64 << 10;
const MESSAGE_CHARS_MAX: usize = 600;

/// Why a component is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Untrusted, except that it passed the scan.
    Upload,
    /// It was compiled before, when it was published.
    Published,
}

/// Compiles components, one of each queue at a time.
#[derive(Debug)]
pub(super) struct Compilation {
    compiler: Compiler,
    limits: CompileLimits,
    uploads: Queue,
    small: Queue,
    large: Queue,
}

#[derive(Debug)]
struct Queue {
    places: Semaphore,
    turn: Semaphore,
}

impl Queue {
    fn new() -> Queue {
        Queue {
            places: Semaphore::new(1 + WAITING_MAX),
            turn: Semaphore::new(1),
        }
    }

    async fn turn(&self) -> Result<(SemaphorePermit<'_>, SemaphorePermit<'_>), Cause> {
        let place = self.places.try_acquire().map_err(|_| Cause::Unavailable {
            detail: format!("{WAITING_MAX} components wait for the compiler already"),
        })?;
        Ok((self.turn.acquire().await.map_err(failed)?, place))
    }
}

impl Compilation {
    pub(super) fn new(settings: &Settings) -> Compilation {
        Compilation {
            compiler: settings.compiler.clone(),
            limits: settings.compile,
            uploads: Queue::new(),
            small: Queue::new(),
            large: Queue::new(),
        }
    }

    /// Compiles a component that passed the scan.
    pub(super) async fn compile(
        &self,
        engine: &Engine,
        origin: Origin,
        component: Arc<[u8]>,
    ) -> Result<Artifact, Cause> {
        let queue = match origin {
            Origin::Upload => &self.uploads,
            Origin::Published if component.len() <= SMALL_BYTES_MAX => &self.small,
            Origin::Published => &self.large,
        };
        let _turn = queue.turn().await?;
        let code = match &self.compiler {
            Compiler::Child(program) => in_child(program, self.limits, &component).await?,
            Compiler::InProcess | Compiler::Incremental => {
                let engine = engine.clone();
                tokio::task::spawn_blocking(move || engine.precompile_component(&component))
                    .await
                    .map_err(failed)?
                    .map_err(|error| rejected(&format!("{error:#}")))?
            }
        };
        Ok(Artifact::compiled(code))
    }
}

async fn in_child(
    program: &Path,
    limits: CompileLimits,
    component: &[u8],
) -> Result<Vec<u8>, Cause> {
    let child = Command::new(program)
        .arg(COMPILE_COMMAND)
        .arg(limits.memory_bytes.to_string())
        .arg(limits.cpu_seconds.to_string())
        .arg(limits.niceness.to_string())
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Cause::Unavailable {
            detail: format!("the compiler {} cannot start: {error}", program.display()),
        })?;
    // Dropping the future drops the child, which kills it.
    let wall = Duration::from_secs(limits.wall_seconds);
    tokio::time::timeout(wall, converse(child, limits, component))
        .await
        .unwrap_or_else(|_| Err(starved(limits)))
}

async fn converse(
    mut child: Child,
    limits: CompileLimits,
    component: &[u8],
) -> Result<Vec<u8>, Cause> {
    let piped = "the child was started with pipes";
    let mut input = child.stdin.take().expect(piped);
    let output = child.stdout.take().expect(piped);
    let errors = child.stderr.take().expect(piped);
    let (mut code, mut message) = (Vec::new(), Vec::new());
    let ((), read, _) = tokio::join!(
        async move {
            // If the child died early, its exit status below says why, not the broken pipe.
            let _ = input.write_all(component).await;
            drop(input);
        },
        async {
            output
                .take(ARTIFACT_BYTES_MAX + 1)
                .read_to_end(&mut code)
                .await
        },
        async { errors.take(ERROR_BYTES_MAX).read_to_end(&mut message).await },
    );
    read.map_err(failed)?;
    if code.len() as u64 > ARTIFACT_BYTES_MAX {
        return Err(too_costly(&format!(
            "{ARTIFACT_BYTES_MAX} bytes of machine code"
        )));
    }
    let status = child.wait().await.map_err(failed)?;
    let message = String::from_utf8_lossy(&message);
    match status.code() {
        Some(0) => Ok(code),
        Some(exit) if exit == i32::from(EXIT_REJECTED) => Err(rejected(&message)),
        Some(exit) => Err(Cause::Unavailable {
            detail: format!(
                "the compiler ended with code {exit}: {}",
                tame(message.trim(), MESSAGE_CHARS_MAX)
            ),
        }),
        None if FROM_OUTSIDE
            .iter()
            .any(|signal| status.signal() == Some(signal.as_raw())) =>
        {
            Err(Cause::Unavailable {
                detail: "the compiler was killed".into(),
            })
        }
        // Another signal: the kernel sends it at the limit of processor time, the allocator at the limit of memory.
        None => Err(too_costly(&format!(
            "{} s of processor time or {} bytes of memory",
            limits.cpu_seconds, limits.memory_bytes
        ))),
    }
}

fn rejected(message: &str) -> Cause {
    let message = format!(
        "the component cannot be compiled: {}",
        tame(message.trim(), MESSAGE_CHARS_MAX)
    );
    Cause::Incompatible(vec![of_component("component_rejected", message)])
}

fn too_costly(limit: &str) -> Cause {
    let message = format!("compiling the component takes more than {limit}");
    Cause::Incompatible(vec![of_component("component_too_complex", message)])
}

/// The child timed out below its limit of processor time, so the machine is too busy.
fn starved(limits: CompileLimits) -> Cause {
    let CompileLimits {
        cpu_seconds,
        wall_seconds,
        ..
    } = limits;
    Cause::Unavailable {
        detail: format!(
            "the compiler had less than {cpu_seconds} s of processor time within {wall_seconds} s: the machine is busy"
        ),
    }
}

fn failed(error: impl std::fmt::Display) -> Cause {
    Cause::Unavailable {
        detail: format!("the compiler failed: {error}"),
    }
}

/// Runs [`COMPILE_COMMAND`]: reads a component, writes machine code. Three arguments may set the limits of memory and processor
/// time and the niceness; without them, the defaults apply.
pub fn compile_child_main() -> ExitCode {
    let outcome = named_limits(std::env::args().skip(2))
        .ok_or_else(|| io::Error::other("the limits are numbers"))
        .and_then(limit_self)
        .and_then(|()| {
            let mut component = Vec::new();
            let ceiling = COMPONENT_BYTES_CEILING as u64;
            io::stdin()
                .lock()
                .take(ceiling)
                .read_to_end(&mut component)?;
            Ok(component)
        })
        .map_err(|error| (ExitCode::FAILURE, error.to_string()))
        .and_then(|component| {
            Engine::new(&engine::base())
                .map_err(|error| (ExitCode::FAILURE, format!("{error:#}")))?
                .precompile_component(&component)
                .map_err(|error| (ExitCode::from(EXIT_REJECTED), format!("{error:#}")))
        })
        .and_then(|code| {
            io::stdout()
                .lock()
                .write_all(&code)
                .map_err(|error| (ExitCode::FAILURE, error.to_string()))
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => {
            // If the pipe to the parent is broken, the message has no reader.
            let _ = io::stderr().lock().write_all(message.as_bytes());
            code
        }
    }
}

/// The limits in the arguments. None if one of them is not a number.
fn named_limits(mut arguments: impl Iterator<Item = String>) -> Option<CompileLimits> {
    let mut limit = |default| {
        arguments
            .next()
            .map_or(Some(default), |named| named.parse().ok())
    };
    let default = CompileLimits::DEFAULT;
    Some(CompileLimits {
        memory_bytes: limit(default.memory_bytes)?,
        cpu_seconds: limit(default.cpu_seconds)?,
        niceness: limit(default.niceness.into())?.try_into().ok()?,
        ..default
    })
}

fn limit_self(limits: CompileLimits) -> io::Result<()> {
    let limit = |resource, current, maximum| {
        let both = Rlimit {
            current: Some(current),
            maximum: Some(maximum),
        };
        setrlimit(resource, both)
    };
    limit(Resource::As, limits.memory_bytes, limits.memory_bytes)?;
    // At the lower limit the kernel sends SIGXCPU, at the upper one SIGKILL, which it also sends when memory is short.
    limit(Resource::Cpu, limits.cpu_seconds, limits.cpu_seconds + 1)?;
    limit(Resource::Fsize, 0, 0)?;
    limit(Resource::Core, 0, 0)?;
    nice(limits.niceness.into())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn a_compiler_without_processor_time_does_not_blame_the_component() {
        let name = format!("wrkflw-idle-compiler-{}", std::process::id());
        let program = std::env::temp_dir().join(name);
        std::fs::write(&program, "#!/bin/sh\nexec sleep 600\n").expect("written");
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&program, mode).expect("executable");
        let limits = CompileLimits {
            wall_seconds: 1,
            ..CompileLimits::DEFAULT
        };
        let compiled = in_child(&program, limits, b"\0asm").await;
        std::fs::remove_file(&program).expect("removed");
        let cause = compiled.expect_err("it never ends");
        assert!(
            matches!(&cause, Cause::Unavailable { detail } if detail.contains("the machine is busy")),
            "{cause:?}"
        );
    }
}
