//! Compilation in a child process, started with the hidden command of the program.

use std::fs::{File, OpenOptions};
use std::future::{Ready, ready};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use wrkflw::sample::DOCUMENT_APPROVAL;
use wrkflw_engine::Engine;
use wrkflw_runtime::clock::Clock;
use wrkflw_sandbox::COMPILE_COMMAND;

use super::artifacts::Folder;
use super::*;
use crate::support::app::TestApp;

const PROGRAM: &str = env!("CARGO_BIN_EXE_compiler-under-test");

#[tokio::test]
async fn a_child_compiles_what_this_process_runs() {
    let sandbox = Sandbox::new(Settings {
        compiler: Compiler::Child(PROGRAM.into()),
        ..settings()
    });
    let sandbox = sandbox.expect("sandbox");
    let evaluation = transition(&sandbox, "ok").await.expect("answers");
    assert_eq!(
        plan(evaluation).next,
        Next::Enter(vec![Target::new("Done")])
    );
}

#[tokio::test]
async fn a_missing_compiler_is_a_problem_for_the_operator() {
    let sandbox = Sandbox::new(Settings {
        compiler: Compiler::Child("/nowhere/wrkflw".into()),
        ..settings()
    });
    let cause = cause(&sandbox.expect("sandbox"), "ok").await;
    assert_eq!(cause.code(), "logic_unavailable");
    assert!(cause.to_string().contains("/nowhere/wrkflw"), "{cause}");
}

/// Sends bytes directly to the child. The scan would refuse them.
#[test]
fn the_child_distinguishes_a_bad_component_from_its_own_failure() {
    let mut child = Command::new(PROGRAM)
        .arg(COMPILE_COMMAND)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(b"no component").expect("written");
    drop(input);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty());
    assert!(!output.stderr.is_empty());
}

/// One of the limits that the child sets for itself, and the easiest to test: it cannot write files.
#[test]
fn the_child_runs_under_limits() {
    let path = std::env::temp_dir().join(format!("wrkflw-child-{}", std::process::id()));
    let file = File::create(&path).expect("file");
    let mut child = Command::new(PROGRAM)
        .arg(COMPILE_COMMAND)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(file)
        .spawn()
        .expect("starts");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(guests::hostile()).expect("written");
    drop(input);
    let status = child.wait().expect("ends");
    let written = std::fs::metadata(&path).expect("file").len();
    std::fs::remove_file(&path).expect("removed");
    assert_eq!((written, status.code()), (0, None), "{status}");
}

/// A sandbox whose compiler is this script, in a folder with the named pipe `gate`. Another process writes the script, because a
/// file that this process has open for writing cannot be executed.
fn scripted(folder: &Folder, script: &str, queue_ms_max: u64) -> Sandbox {
    const MADE: &str = r#"mkdir "$0" && mkfifo "$0/gate" && printf '%s\n' "$1" > "$0/compiler" && chmod 700 "$0/compiler""#;
    let script = format!("#!/bin/sh\ncd {}\n{script}", folder.path().display());
    let status = Command::new("sh")
        .args(["-c", MADE])
        .arg(folder.path())
        .arg(script)
        .status()
        .expect("a shell");
    assert!(status.success(), "{status}");
    let sandbox = Sandbox::new(Settings {
        compiler: Compiler::Child(folder.path().join("compiler")),
        queue_ms_max,
        ..settings()
    });
    sandbox.expect("sandbox")
}

/// Compiles after the gate was opened and closed.
fn gated() -> String {
    format!("read line < gate\nexec {PROGRAM} \"$@\"")
}

/// Opens the gate once the compiler waits at it.
async fn reached(folder: &Folder) -> File {
    let gate = folder.path().join("gate");
    let open = move || OpenOptions::new().write(true).open(gate);
    let opened = tokio::task::spawn_blocking(open).await;
    opened.expect("joined").expect("a pipe")
}

/// For a component that is being compiled: its bytes are not read again.
fn no_bytes() -> Ready<Result<Vec<u8>, &'static str>> {
    ready(Err("its bytes are read again"))
}

#[tokio::test]
async fn a_compilation_continues_after_its_callers_disconnect() {
    let folder = Folder::new("gone");
    let sandbox = scripted(&folder, &gated(), 60_000);
    let pinned = pinned(guests::hostile());
    let fetch = async || Ok::<_, Infallible>(guests::hostile().to_vec());
    let gate = tokio::select! {
        loaded = sandbox.warm(&pinned, fetch) => panic!("it is not compiled yet: {loaded:?}"),
        gate = reached(&folder) => gate,
    };
    drop(gate);
    sandbox.warm(&pinned, no_bytes).await.expect("loaded");
}

#[tokio::test]
async fn a_slow_compilation_has_a_limited_number_of_waiting_calls() {
    let folder = Folder::new("long");
    let sandbox = scripted(&folder, &gated(), 1);
    let patient = settings().concurrency;
    let mut calls: FuturesUnordered<_> =
        (0..=patient).map(|_| transition(&sandbox, "ok")).collect();
    let (refused, gate) = tokio::join!(calls.next(), reached(&folder));
    let cause = refused.expect("a call").expect_err("too many wait").cause;
    assert_eq!(cause, Cause::Loading);
    assert_eq!(cause.code(), "logic_unavailable");
    // Further calls are refused at once.
    let begun = Instant::now();
    assert_eq!(super::cause(&sandbox, "ok").await, Cause::Loading);
    assert!(begun.elapsed() < Duration::from_secs(2));
    drop(gate);
    let answers: Vec<_> = calls.collect().await;
    assert_eq!(answers.len(), patient);
    let busy = |error: GuestError| matches!(error.cause, Cause::Busy { .. });
    assert!(
        answers
            .into_iter()
            .all(|one| one.map_or_else(busy, |_| true))
    );
}

#[tokio::test]
async fn a_failed_compilation_is_not_retried_at_once() {
    let folder = Folder::new("refused");
    let sandbox = scripted(&folder, "exit 3", 60_000);
    let pinned = pinned(guests::hostile());
    let fetch = async || Ok::<_, Infallible>(guests::hostile().to_vec());
    let refused = sandbox.warm(&pinned, fetch).await.expect_err("refused");
    assert_eq!(refused.code(), "logic_incompatible");
    let again = sandbox.warm(&pinned, no_bytes).await;
    assert_eq!(again, Err(refused));
}

#[tokio::test]
async fn a_compiler_killed_from_outside_says_nothing_about_the_component() {
    for (signal, code) in [
        ("KILL", "logic_unavailable"),
        ("TERM", "logic_unavailable"),
        ("XCPU", "logic_incompatible"),
    ] {
        let folder = Folder::new(&format!("killed-{signal}"));
        let sandbox = scripted(&folder, &format!("kill -{signal} $$"), 60_000);
        let fetch = async || Ok::<_, Infallible>(guests::hostile().to_vec());
        let killed = sandbox.warm(&pinned(guests::hostile()), fetch).await;
        assert_eq!(killed.expect_err("killed").code(), code, "{signal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_starting_host_loads_active_versions() {
    let app = TestApp::start().await;
    app.publish("not-active", guests::hostile(), &serde_json::json!({}))
        .await
        .expect(201);
    let sandbox = Sandbox::new(settings()).expect("sandbox");
    let (store, seals) = (app.store().clone(), app.engine.seals().clone());
    let timeout = Duration::from_secs(20);
    let engine = Engine::new(store, sandbox.clone(), Clock::System, seals, timeout).await;
    engine.expect("an engine").definitions().warm_active().await;
    let active = pinned(DOCUMENT_APPROVAL);
    sandbox.warm(&active, no_bytes).await.expect("loaded");
    let other = sandbox.warm(&pinned(guests::hostile()), no_bytes).await;
    assert_eq!(other.expect_err("not loaded").code(), "logic_unavailable");
}
