//! Components that would keep a compiler busy for minutes, or use gigabytes.
//!
//! The scan refuses most of them within a few milliseconds. The others end in the child process, at its limits of memory and
//! processor time. The memory of the host itself does not grow.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use wrkflw_sandbox::{CompileLimits, Compiler, Sandbox, Settings};

use super::uploads::{leb, with_section};
use super::*;
use crate::support::raw::Raw;

/// The time limit of the scan in an unoptimised build on a shared machine. The goal is 5 ms.
const SCAN_MAX: Duration = Duration::from_millis(500);
/// The most memory that the host may gain while its children compile bombs that need more.
const GROWTH_BYTES_MAX: u64 = 200 << 20;

/// Compiles in a child as a host does, with low limits. One for each test, because uploads queue.
pub(super) fn sandbox() -> Sandbox {
    let program = env!("CARGO_BIN_EXE_compiler-under-test");
    let settings = Settings {
        compile: CompileLimits {
            memory_bytes: 640 << 20,
            cpu_seconds: 2,
            wall_seconds: 120,
            ..CompileLimits::DEFAULT
        },
        ..Settings::new(Compiler::Child(program.into()))
    };
    Sandbox::new(settings).expect("a sandbox")
}

/// Each level instantiates the level inside it twice.
fn doubling(depth: usize) -> Vec<u8> {
    let mut text = "(component $c0 (core module $m) (core instance (instantiate $m)))".to_owned();
    for level in 1..=depth {
        let inner = level - 1;
        text = format!(
            "(component $c{level} {text} (instance (instantiate $c{inner})) (instance (instantiate $c{inner})))"
        );
    }
    wat::parse_str(text).expect("a component")
}

fn raw(also: &str) -> Vec<u8> {
    Raw {
        also,
        ..Raw::default()
    }
    .component()
}

/// Nested loops, each of which changes some of a thousand variables.
pub(super) fn loops(depth: usize) -> Vec<u8> {
    let mut body = String::new();
    for level in 0..depth {
        let (a, b) = (level * 7 % 1_000, level * 13 % 1_000);
        write!(
            body,
            "(loop $l{level} (local.set {a} (i64.add (local.get {a}) (local.get {b}))) "
        )
        .expect("written");
    }
    for level in (0..depth).rev() {
        write!(
            body,
            "(br_if $l{level} (i64.eqz (local.get {})))) ",
            level % 1_000
        )
        .expect("written");
    }
    let variables = "i64 ".repeat(1_000);
    raw(&format!("(func (local {variables}) {body})"))
}

/// This many live values, all of which are used at the end.
pub(super) fn live(values: usize) -> Vec<u8> {
    let mut body = String::new();
    for value in 0..values {
        write!(body, "(i32.load offset={} (local.get 0)) ", value % 60_000).expect("written");
    }
    body.push_str(&"i32.add i32.rotl ".repeat((values - 1) / 2));
    body.push_str(&"i32.add ".repeat((values - 1) % 2));
    raw(&format!("(func (param i32) (result i32) {body})"))
}

/// This many calls whose results are all used at the end.
pub(super) fn calls(count: usize) -> Vec<u8> {
    let body = "(call $one (i32.const 1)) ".repeat(count) + &"i32.xor ".repeat(count - 1);
    raw(&format!(
        "(func $one (param i32) (result i32) (local.get 0)) (func (result i32) {body})"
    ))
}

/// A module with this many imports, as bytes, because parsing so much text is slow.
fn imports(count: usize) -> Vec<u8> {
    // A type section with the type of a function without parameters and results, then the imports.
    let mut module = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0".to_vec();
    let import = [1, b'm', 1, b'f', 0, 0];
    let section = [leb(count), import.repeat(count)].concat();
    module.push(2);
    module.extend(leb(section.len()));
    module.extend(section);
    with_section(1, &module)
}

async fn refused(app: &TestApp, what: &str, bytes: &[u8], words: &str) -> Duration {
    let before = stored(app).await;
    let begun = Instant::now();
    let answer = app.publish("bomb", bytes, &json!({})).await;
    let elapsed = begun.elapsed();
    assert_eq!(answer.status, 422, "{what}: {}", answer.text);
    let problem = answer.problem(422, "unpublishable");
    let error = &problem["errors"][0];
    assert_eq!(error["code"], "component_too_complex", "{what}: {error}");
    let detail = error["detail"].as_str().expect("a reason");
    assert!(detail.contains(words), "{what}: {detail}");
    assert_eq!(stored(app).await, before, "{what}");
    elapsed
}

#[expect(clippy::print_stdout, reason = "the figures of a run")]
pub(super) fn print(line: &str) {
    println!("{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scan_refuses_a_bomb_at_once() {
    let app = TestApp::empty_in(sandbox()).await;
    let straight = "(drop (i32.add (i32.const 1) (i32.const 2))) ".repeat(200_000);
    let mut table = "(br_table ".to_owned();
    table.push_str(&"0 ".repeat(1_200_000));
    table.push_str("(i32.const 0))");
    for (what, bytes, words) in [
        (
            "instances, doubled 20 times",
            doubling(20),
            "instantiations",
        ),
        (
            "instances, doubled 24 times",
            doubling(24),
            "instantiations",
        ),
        (
            "100 000 functions",
            raw(&"(func) ".repeat(100_000)),
            "functions",
        ),
        (
            "a function of 1.2 MB",
            raw(&format!("(func {straight})")),
            "bytes in one function",
        ),
        (
            "a jump table of 1.2 MB",
            raw(&format!("(func (block {table}))")),
            "bytes in one function",
        ),
        ("150 000 imports", imports(150_000), "imports"),
        (
            "a custom section of 2 MB",
            with_section(0, &[b"\x01x".to_vec(), vec![0; 2 << 20]].concat()),
            "custom section",
        ),
    ] {
        let elapsed = refused(&app, what, &bytes, words).await;
        print(&format!(
            "{what}: {} bytes, refused after {elapsed:?}, upload included",
            bytes.len()
        ));
        if bytes.len() < 10_000 {
            assert!(elapsed < SCAN_MAX, "{what}: {elapsed:?}");
        }
    }
    let huge = with_section(0, &[b"\x01x".to_vec(), vec![0; 64 << 20]].concat());
    let before = stored(&app).await;
    app.publish("bomb", &huge, &json!({}))
        .await
        .problem(413, "too_large");
    assert_eq!(stored(&app).await, before);
}

/// The resident memory of this process.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.expect("a size").parse::<u64>().expect("a number") * 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn the_child_stops_bombs_that_pass_the_scan() {
    let app = TestApp::empty_in(sandbox()).await;
    let before = resident_bytes();
    let limits = "compiling the component takes more than";
    for (what, bytes) in [
        ("loops in loops over a thousand variables", loops(3_000)),
        ("live values", live(60_000)),
        ("calls with live results", calls(100_000)),
    ] {
        let elapsed = refused(&app, what, &bytes, limits).await;
        let grown = resident_bytes().saturating_sub(before);
        print(&format!(
            "{what}: {} bytes, ended after {elapsed:?}, the host grew by {grown} bytes",
            bytes.len()
        ));
        assert!(grown < GROWTH_BYTES_MAX, "{what}: {grown}");
    }
    // The compiler works for the next component.
    app.with_approval().await;
}
