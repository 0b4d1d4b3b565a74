//! From a component to machine code, in a child process under limits of its own.
//!
//! A small component can keep a compiler busy for minutes and fill gigabytes; no limit of the engine
//! covers that. So the host starts its own program again, hands the component over on standard input
//! and takes the code from standard output. What that child may use is decided by the child itself
//! before it reads a byte, and by a deadline here. One component is compiled at a time.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, nice, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use wasmtime::Engine;

use super::artifacts::{ARTIFACT_BYTES_MAX, Artifact};
use super::engine;
use super::error::{Cause, of_component};
use super::settings::{COMPONENT_BYTES_CEILING, Compiler};
use super::text::tame;

/// The hidden command under which this program compiles a component and does nothing else.
pub const COMPILE_COMMAND: &str = "__compile";

const CHILD_MEMORY_BYTES_MAX: u64 = 2 << 30;
const CHILD_CPU_SECONDS_MAX: u64 = 60;
const CHILD_WALL: Duration = Duration::from_mins(2);
const CHILD_NICENESS: i32 = 10;
/// The child's exit code for "the component is at fault"; its standard error says why.
const EXIT_REJECTED: u8 = 3;
const ERROR_BYTES_MAX: u64 = 64 << 10;
const MESSAGE_CHARS_MAX: usize = 600;

/// Compiles components, one at a time.
#[derive(Debug)]
pub(super) struct Compilation {
    compiler: Compiler,
    turn: Semaphore,
}

impl Compilation {
    pub(super) fn new(compiler: Compiler) -> Compilation {
        Compilation {
            compiler,
            turn: Semaphore::new(1),
        }
    }

    /// The machine code of a component that was scanned before.
    pub(super) async fn compile(
        &self,
        engine: &Engine,
        component: Arc<[u8]>,
    ) -> Result<Artifact, Cause> {
        let _turn = self.turn.acquire().await.map_err(failed)?;
        let code = match &self.compiler {
            Compiler::Child(program) => in_child(program, &component).await?,
            Compiler::InProcess => {
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

async fn in_child(program: &Path, component: &[u8]) -> Result<Vec<u8>, Cause> {
    let child = Command::new(program)
        .arg(COMPILE_COMMAND)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Cause::Unavailable {
            detail: format!("the compiler {} cannot start: {error}", program.display()),
        })?;
    // Dropping the conversation drops the child, which kills it.
    tokio::time::timeout(CHILD_WALL, converse(child, component))
        .await
        .unwrap_or_else(|_| Err(too_costly(&format!("{CHILD_WALL:?}"))))
}

async fn converse(mut child: Child, component: &[u8]) -> Result<Vec<u8>, Cause> {
    let piped = "the child was started with pipes";
    let mut input = child.stdin.take().expect(piped);
    let output = child.stdout.take().expect(piped);
    let errors = child.stderr.take().expect(piped);
    let (mut code, mut message) = (Vec::new(), Vec::new());
    let ((), read, _) = tokio::join!(
        async move {
            // A child that died early is judged by its exit status below, not by the broken pipe.
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
        // A signal: the kernel at the limit of processor time, or the allocator at that of memory.
        None => Err(too_costly(&format!(
            "{CHILD_CPU_SECONDS_MAX} s of processor time or {CHILD_MEMORY_BYTES_MAX} bytes of memory"
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

fn failed(error: impl std::fmt::Display) -> Cause {
    Cause::Unavailable {
        detail: format!("the compiler failed: {error}"),
    }
}

/// What the program does under [`COMPILE_COMMAND`]: component in, machine code out.
pub fn compile_child_main() -> ExitCode {
    let outcome = limit_self()
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
            // Nobody is left to tell when the pipe to the parent is broken.
            let _ = io::stderr().lock().write_all(message.as_bytes());
            code
        }
    }
}

fn limit_self() -> io::Result<()> {
    let limit = |resource, max| {
        let both = Rlimit {
            current: Some(max),
            maximum: Some(max),
        };
        setrlimit(resource, both)
    };
    limit(Resource::As, CHILD_MEMORY_BYTES_MAX)?;
    limit(Resource::Cpu, CHILD_CPU_SECONDS_MAX)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Core, 0)?;
    nice(CHILD_NICENESS)?;
    Ok(())
}
