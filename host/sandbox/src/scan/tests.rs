//! Components that are refused before they are compiled.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::*;

const BYTES_MAX: usize = 4 << 20;

fn refused(text: &str) -> Vec<(&'static str, String)> {
    let bytes = wat::parse_str(text).expect("a component in text form");
    scan(&bytes, BYTES_MAX)
        .expect_err("refused")
        .into_iter()
        .map(|problem| (problem.code, problem.message))
        .collect()
}

/// The one problem of a component.
fn problem(text: &str) -> (&'static str, String) {
    let mut problems = refused(text);
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.remove(0)
}

#[test]
fn imports_are_refused_by_name_all_of_them() {
    let problems = refused(
        r#"(component
            (import "log" (func))
            (import "wasi:random/random@0.2.0" (instance
                (export "get-random-u64" (func (result u64)))
                (export "pool" (type (sub resource))))))"#,
    );
    let messages: Vec<_> = problems
        .iter()
        .map(|(_, message)| message.as_str())
        .collect();
    let wasi = "; build it without WASI (target wasm32-unknown-unknown, or `--stub-wasi` of componentize-qjs and componentize-py)";
    assert_eq!(
        messages,
        [
            "it imports the function `log`, but flow logic imports nothing",
            &format!(
                "it imports the function `wasi:random/random@0.2.0#get-random-u64`, \
                 but flow logic imports nothing{wasi}"
            ),
            &format!(
                "it imports the resource `wasi:random/random@0.2.0#pool`, \
                 but flow logic imports nothing{wasi}"
            ),
            "it does not export `wrkflw:flow/logic@0.1.0`; in Rust, write `wrkflw_guest::export!(TheFlow);`",
        ]
    );
    assert_eq!(problems[0].0, "component_imports");
}

#[test]
fn imported_types_carry_no_authority() {
    let (code, _) = problem(
        r#"(component (import "wrkflw:flow/types@0.1.0" (instance (type $u u32) (export "t" (type (eq $u))))))"#,
    );
    assert_eq!(code, "component_exports");
}

#[test]
fn another_version_of_the_contract_is_told_apart() {
    let (code, message) =
        problem(r#"(component (instance $i) (export "wrkflw:flow/logic@0.2.0" (instance $i)))"#);
    assert_eq!(code, "component_exports");
    assert_eq!(
        message,
        "it was built for wrkflw:flow@0.2.0, this host speaks wrkflw:flow@0.1.0"
    );
}

#[test]
fn an_asynchronous_component_is_refused_with_the_flags_that_help() {
    let (code, message) = problem("(component (core func (canon task.cancel)))");
    assert_eq!(code, "component_invalid");
    for words in ["task.cancel", "--sync --stub-wasi"] {
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn features_that_are_off_are_named() {
    for (module, feature) in [
        ("(memory 1 1 shared)", "threads"),
        ("(memory i64 1)", "memory64"),
        ("(func return_call 0)", "tail calls"),
        ("(tag)", "exceptions"),
    ] {
        let (code, message) = problem(&format!("(component (core module {module}))"));
        assert_eq!(code, "component_invalid");
        assert!(message.contains(feature), "{message}");
    }
}

/// Each level instantiates the one inside it twice.
fn doubling(depth: usize) -> String {
    let mut text = "(component $c0 (core module $m) (core instance (instantiate $m)))".to_owned();
    for level in 1..=depth {
        let inner = level - 1;
        text = format!(
            "(component $c{level} {text} (instance (instantiate $c{inner})) (instance (instantiate $c{inner})))"
        );
    }
    text
}

#[test]
fn a_bomb_of_instances_is_refused_at_once() {
    let bytes = wat::parse_str(doubling(24)).expect("component");
    assert!(bytes.len() < 2_000, "{}", bytes.len());
    let problems = scan(&bytes, BYTES_MAX).expect_err("refused");
    // The best of many, because others use this machine. Without optimisation it takes ten times as long as in a host.
    let took = (0..50).map(|_| {
        let begun = Instant::now();
        let again = scan(&bytes, BYTES_MAX);
        let took = begun.elapsed();
        assert_eq!(again, Err(problems.clone()));
        took
    });
    let best = took.min().expect("fifty");
    eprintln!("a bomb of {} bytes: refused in {best:?}", bytes.len());
    assert!(best < Duration::from_millis(5), "{best:?}");
    assert_eq!(problems[0].code, "component_too_complex");
    assert!(problems[0].message.contains("instantiations"));

    // Few enough to be counted: the only problem is the missing export.
    assert_eq!(problem(&doubling(5)).0, "component_exports");
}

#[test]
fn a_bomb_hidden_behind_aliases_and_exports_is_followed() {
    let (code, _) = problem(&format!(
        r#"(component
            {}
            (export $again "again" (component $c6))
            (component $user
                (alias outer 1 $again (component $borrowed))
                (instance (instantiate $borrowed))
                (instance (instantiate $borrowed))
                (instance (instantiate $borrowed)))
            (instance (instantiate $user)))"#,
        doubling(6)
    ));
    assert_eq!(code, "component_too_complex");
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let (code, message) = problem(
        r#"(component
            (import "parts" (instance $parts (export "c" (component))))
            (alias export $parts "c" (component $c))
            (instance (instantiate $c)))"#,
    );
    assert_eq!(code, "component_too_complex");
    assert!(
        message.contains("takes a component out of an instance"),
        "{message}"
    );
}

#[test]
fn counts_are_bounded() {
    let functions = "(func) ".repeat(50_001);
    let (code, message) = problem(&format!("(component (core module {functions}))"));
    assert_eq!(code, "component_too_complex");
    assert_eq!(
        message,
        "it has 50001 functions, at most 50000 are accepted"
    );

    let long = "nop ".repeat((1 << 20) + 1);
    let (_, message) = problem(&format!("(component (core module (func {long})))"));
    assert!(message.contains("bytes in one function"), "{message}");

    let mut imports = String::new();
    for number in 0..257 {
        write!(imports, "(import \"i{number}\" (func))").expect("written");
    }
    let (_, message) = problem(&format!("(component {imports})"));
    assert!(message.contains("imports, at most 256"), "{message}");

    let bytes = vec![0; 100];
    let problems = scan(&bytes, 99).expect_err("refused");
    assert_eq!(problems[0].code, "component_too_large");
}

#[test]
fn no_bytes_make_the_scan_panic() {
    let honest = wat::parse_str(doubling(3)).expect("component");
    for at in 8..honest.len() {
        for bit in 0..8 {
            let mut bytes = honest.clone();
            bytes[at] ^= 1 << bit;
            let _ = scan(&bytes, BYTES_MAX);
        }
        let _ = scan(&honest[..at], BYTES_MAX);
    }
}

/// A type section with component types nested in each other. Each level takes three bytes.
fn nested_types(levels: usize, kind: u8) -> Vec<u8> {
    let mut content = vec![1];
    content.extend([kind, 1, 1].repeat(levels));
    content.extend([kind, 0]);
    let mut bytes = b"\0asm\x0d\0\x01\0\x07".to_vec();
    let mut length = content.len();
    while length > 0x7f {
        bytes.push(u8::try_from(length & 0x7f).expect("seven bits") | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).expect("seven bits"));
    bytes.extend(content);
    bytes
}

#[test]
fn types_in_types_do_not_overflow_the_stack() {
    for kind in [0x41, 0x42] {
        for levels in [100, 50_000, 1_000_000] {
            let problems = scan(&nested_types(levels, kind), BYTES_MAX).expect_err("refused");
            assert_eq!(problems[0].code, "component_too_complex", "{levels}");
            let message = &problems[0].message;
            assert!(message.contains("nested more than 100 times"), "{message}");
        }
        // Shallow enough to be read. The only problem is then the missing export of every flow.
        let problems = scan(&nested_types(50, kind), BYTES_MAX).expect_err("refused");
        assert_eq!(problems[0].code, "component_exports");
    }
}

#[test]
fn an_inner_part_that_is_cut_off_is_refused() {
    let module = (1, b"\0asm\x01\0\0\0");
    let component = (4, b"\0asm\x0d\0\x01\0");
    for (section, inner) in [module, component] {
        let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
        bytes.extend([section, 20]);
        bytes.extend(inner);
        let problems = scan(&bytes, BYTES_MAX).expect_err("refused");
        assert_eq!(problems[0].code, "component_invalid");
        assert_eq!(
            problems[0].message,
            "the component is cut off: its part at offset 0xa ends at 0x1e, the input at 0x12"
        );
    }
}
