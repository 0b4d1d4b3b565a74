//! Compiling in a child process: started with the hidden command as the program starts itself.

use std::io::Write;
use std::process::{Command, Stdio};

use wrkflw_sandbox::COMPILE_COMMAND;

use super::*;

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

/// One of the limits that the child sets itself, as the easiest to run into: it writes no files.
#[test]
fn the_child_lives_under_limits() {
    let path = std::env::temp_dir().join(format!("wrkflw-child-{}", std::process::id()));
    let file = std::fs::File::create(&path).expect("file");
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
