//! Components that are never published: each is refused with a reason, and nothing of it is stored.

use super::*;
use crate::support::raw::Raw;

/// An upload, the code of the first error, and words of its message.
type Case = (&'static str, Vec<u8>, &'static str, &'static str);

async fn refuses(cases: impl IntoIterator<Item = Case>) {
    let app = TestApp::empty_in(bombs::sandbox()).await;
    let before = stored(&app).await;
    for (what, bytes, code, words) in cases {
        let answer = app.publish("bad", &bytes, &json!({})).await;
        assert_eq!(answer.status, 422, "{what}: {}", answer.text);
        let problem = answer.problem(422, "unpublishable");
        let error = &problem["errors"][0];
        assert_eq!(error["code"], code, "{what}: {error}");
        let detail = error["detail"].as_str().expect("a reason");
        assert!(detail.contains(words), "{what}: {detail}");
        is_tame(detail);
        assert_eq!(stored(&app).await, before, "{what}");
    }
}

fn text(component: &str) -> Vec<u8> {
    wat::parse_str(component).unwrap_or_else(|error| panic!("{error}\n{component}"))
}

fn raw(also: &str, memory: &str) -> Vec<u8> {
    let memory_and = Raw {
        memory,
        also,
        ..Raw::default()
    };
    memory_and.component()
}

/// A number in LEB128: seven bits at a time, the lowest first.
pub(super) fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).expect("seven bits");
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// The correct flow with one more section at its end.
pub(super) fn with_section(id: u8, content: &[u8]) -> Vec<u8> {
    let mut component = Raw::default().component();
    component.push(id);
    component.extend(leb(content.len()));
    component.extend(content);
    component
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_component_is_refused() {
    let honest = Raw::default().component();
    let mut junk = honest.clone();
    junk.truncate(junk.len() / 2);
    refuses([
        (
            "junk",
            b"\xde\xad\xbe\xef".to_vec(),
            "not_a_component",
            "no WebAssembly",
        ),
        ("half a component", junk, "component_invalid", "cut off"),
        (
            "a core module",
            text("(module)"),
            "not_a_component",
            "core WebAssembly module",
        ),
        (
            "text",
            b"(component)".to_vec(),
            "not_a_component",
            "WebAssembly text",
        ),
        (
            "machine code",
            b"\x7fELF\x02\x01\x01\0".to_vec(),
            "not_a_component",
            "machine code",
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn features_that_the_sandbox_lacks_are_refused_by_name() {
    let module = |inner: &str| text(&format!("(component (core module {inner}))"));
    let relaxed = "(func (param v128 v128 v128) (result v128)
        local.get 0 local.get 1 local.get 2 f32x4.relaxed_madd)";
    let lifted = r#"(component
        (core module $m (func (export "f")) (func (export "cb") (param i32 i32 i32) (result i32) unreachable))
        (core instance $i (instantiate $m))
        (func (export "f") async (canon lift (core func $i "f") async)))"#;
    let wasi = r#"(component (import "wasi:random/random@0.2.0"
        (instance (export "get-random-u64" (func (result u64))))))"#;
    let logging = r#"(component (import "log" (func (param "line" string))))"#;
    refuses([
        (
            "shared memory",
            module("(memory 1 1 shared)"),
            "component_invalid",
            "threads",
        ),
        (
            "memory64",
            module("(memory i64 1)"),
            "component_invalid",
            "memory64",
        ),
        (
            "relaxed SIMD",
            module(relaxed),
            "component_invalid",
            "relaxed SIMD",
        ),
        ("an async lift", text(lifted), "component_invalid", "async"),
        (
            "randomness",
            text(wasi),
            "component_imports",
            "build it without WASI",
        ),
        (
            "a log to flood",
            text(logging),
            "component_imports",
            "`log`",
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_and_tables_beyond_the_pool_are_refused() {
    let instances: Vec<u8> = [leb(200), [0, 1, 0].repeat(200)].concat();
    let mut many_instances = with_section(1, b"\0asm\x01\0\0\0");
    many_instances.push(2);
    many_instances.extend(leb(instances.len()));
    many_instances.extend(instances);
    refuses([
        (
            "4 GiB at once",
            raw("", "65536"),
            "component_rejected",
            "memory",
        ),
        (
            "a table of ten million",
            raw("(table 10000000 funcref)", ""),
            "component_rejected",
            "table",
        ),
        (
            "five memories",
            raw("(memory 1) (memory 1) (memory 1) (memory 1)", ""),
            "component_rejected",
            "memories",
        ),
        (
            "200 core instances",
            many_instances,
            "component_rejected",
            "instances",
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_cannot_describe_itself_is_refused() {
    let starting = |code: &str| raw(&format!("(func $first {code}) (start $first)"), "");
    let misdescribed = |describe| {
        Raw {
            describe,
            ..Raw::default()
        }
        .component()
    };
    let wrong = r#"(component
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f")))
        (instance $logic
            (export "describe" (func $f)) (export "start" (func $f)) (export "transition" (func $f))
            (export "enter" (func $f)))
        (export "wrkflw:flow/logic@0.1.0" (instance $logic)))"#;
    let spin = "(loop $for_ever (br $for_ever))";
    refuses([
        (
            "an endless start",
            starting(spin),
            "describe_failed",
            "`describe`",
        ),
        (
            "a start that traps",
            starting("unreachable"),
            "describe_failed",
            "unreachable",
        ),
        (
            "an endless describe",
            misdescribed(spin),
            "describe_failed",
            "`describe`",
        ),
        (
            "a describe that traps",
            misdescribed("unreachable"),
            "describe_failed",
            "unreachable",
        ),
        (
            "functions of other types",
            text(wrong),
            "describe_failed",
            "type mismatch",
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn types_that_are_too_deep_or_too_wide_are_refused() {
    let numbered = |count: usize, next: fn(usize) -> String| {
        let types: Vec<_> = (1..=count)
            .map(|n| format!("(type $t{n} {})", next(n - 1)))
            .collect();
        text(&format!(
            "(component (type $t0 (list u8)) {})",
            types.concat()
        ))
    };
    let mut nested = [0x41, 1, 1].repeat(50_000);
    nested.extend([0x41, 0]);
    nested.insert(0, 1);
    refuses([
        (
            "a list in a list, 101 times",
            numbered(101, |inner| format!("(list $t{inner})")),
            "component_invalid",
            "nest",
        ),
        (
            "a pair of pairs, 30 times",
            numbered(30, |inner| format!("(tuple $t{inner} $t{inner})")),
            "component_invalid",
            "type size",
        ),
        (
            "a component in a component, 50 000 times",
            with_section(7, &nested),
            "component_too_complex",
            "nested more than 100 times",
        ),
    ])
    .await;
}
