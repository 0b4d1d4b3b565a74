//! Compiling in a child process: the program under test, started with its hidden command.

use std::io::Write;
use std::process::{Command, Stdio};

use wrkflw::wasm::COMPILE_COMMAND;

use super::*;
use crate::support::program;

#[tokio::test]
async fn a_child_compiles_what_this_process_runs() {
    let sandbox = Sandbox::new(Settings {
        compiler: Compiler::Child(program::wrkflw()),
        ..settings()
    });
    let sandbox = sandbox.expect("sandbox");
    let evaluation = transition(&sandbox, "ok").await.expect("answers");
    assert!(plan(evaluation).enter.is_some());
}

#[tokio::test]
async fn a_compiler_that_is_not_there_is_the_operators_matter() {
    let sandbox = Sandbox::new(Settings {
        compiler: Compiler::Child("/nowhere/wrkflw".into()),
        ..settings()
    });
    let cause = cause(&sandbox.expect("sandbox"), "ok").await;
    assert_eq!(cause.code(), "logic_unavailable");
    assert!(cause.to_string().contains("/nowhere/wrkflw"), "{cause}");
}

/// Feeds the child directly, past the scan that would refuse these bytes.
#[test]
fn the_child_tells_a_bad_component_from_a_failure_of_its_own() {
    let mut child = Command::new(program::wrkflw())
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
