//! Behaviour of handwritten code only: it breaks the calling convention from the inside.

use super::*;
use crate::support::raw::Raw;

/// The length of an input by which a component detects the decision that should fail.
const LONG: usize = 5_000;
const SPIN: &str = "(loop $for_ever (br $for_ever))";
const WHEN_LONG: &str = "i32.gt_u (local.get $size) (i32.const 4000)";

/// One note, whose address and length are at 0x100.
const ONE_NOTE: &str = "(i32.store offset=52 (global.get $plan) (i32.const 0x100))
    (i32.store offset=56 (global.get $plan) (i32.const 1))";

fn note(at: &str, length: &str) -> String {
    format!(
        "(i32.store (i32.const 0x100) (i32.const {at})) (i32.store (i32.const 0x104) (i32.const {length})) {ONE_NOTE}"
    )
}

/// Publishes a component under this key, starts an instance and claims its task.
async fn at_work(app: &TestApp, key: &str, component: &[u8]) -> String {
    app.publish(key, component, &json!({})).await.expect(201);
    let path = format!("/v1/definitions/{key}/versions/1/activate");
    app.post("admin", &path, json!({})).await.expect(200);
    let body = json!({ "definitionKey": key, "entityType": "thing", "entityId": key, "data": {} });
    let instance = app.post("author", "/v1/instances", body).await.started();
    let task = claimed(app, "reviewer", &instance).await;
    format!("/v1/tasks/{task}/decide")
}

fn go() -> Value {
    let input = json!({ "pad": "x".repeat(LONG) });
    json!({ "outcome": "GO", "input": input })
}

/// Each of these fails the decision with this code and message, and writes nothing.
async fn fail(cases: &[(&str, Raw<'_>, &str, &str)]) {
    let app = TestApp::empty().await;
    for (number, (what, raw, code, words)) in cases.iter().enumerate() {
        let decide = at_work(&app, &format!("raw-{number}"), &raw.component()).await;
        let before = stored(&app).await;
        let answer = app.post("reviewer", &decide, go()).await;
        assert_eq!(answer.status, 424, "{what}: {}", answer.text);
        let problem = answer.problem(424, code);
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.contains(words), "{what}: {detail}");
        is_tame(detail);
        assert_eq!(stored(&app).await, before, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exported_realloc_and_post_return_are_limited_like_other_calls() {
    let in_realloc = |code: &str| format!("(if ({WHEN_LONG}) (then {code}))");
    let (spins, traps) = (in_realloc(SPIN), in_realloc("unreachable"));
    let beyond = in_realloc("(return (i32.const 0x7fffff00))");
    let own_data = in_realloc("(return (global.get $described))");
    let at = |realloc| Raw {
        realloc,
        ..Raw::default()
    };
    let after = |after| Raw {
        after,
        ..Raw::default()
    };
    fail(&[
        ("an endless realloc", at(&spins), BUDGET, ""),
        ("a realloc that traps", at(&traps), FAULT, "unreachable"),
        (
            "a realloc beyond the memory",
            at(&beyond),
            FAULT,
            "beyond end of memory",
        ),
        (
            "arguments over its own answer",
            at(&own_data),
            FAULT,
            "discriminant",
        ),
        ("an endless post-return", after(SPIN), BUDGET, ""),
        (
            "a post-return that traps",
            after("unreachable"),
            FAULT,
            "unreachable",
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_answer_is_refused() {
    let beyond = note("0x7fffffff", "10");
    let around = note("0xffffffff", "0xffffffff");
    let byte = format!(
        "(i32.store (i32.const 0x200) (i32.const 0xff)) {}",
        note("0x200", "1")
    );
    let surrogate = format!(
        "(i32.store (i32.const 0x200) (i32.const 0x80a0ed)) {}",
        note("0x200", "3")
    );
    let at = |transition| Raw {
        transition,
        ..Raw::default()
    };
    fail(&[
        (
            "a text beyond the memory",
            at(&beyond),
            FAULT,
            "out of bounds",
        ),
        (
            "a text around the end of addresses",
            at(&around),
            FAULT,
            "out of bounds",
        ),
        ("a text that is not UTF-8", at(&byte), FAULT, "utf-8"),
        ("half a surrogate pair", at(&surrogate), FAULT, "utf-8"),
        (
            "an answer at an odd address",
            at("(return (i32.add (global.get $plan) (i32.const 1)))"),
            FAULT,
            "aligned",
        ),
        (
            "an answer beyond the memory",
            at("(return (i32.const -4))"),
            FAULT,
            "bounds",
        ),
        (
            "a result that is neither",
            at("(i32.store (global.get $plan) (i32.const 7))"),
            FAULT,
            "discriminant",
        ),
        (
            "a case that is none",
            at("(i32.store offset=4 (global.get $plan) (i32.const 5))"),
            FAULT,
            "discriminant",
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_larger_than_its_guest_is_refused() {
    let fifty_mib = note("0x100000", "52428800");
    // As many notes as fit. All of their codes are the same mebibyte. A note has 28 bytes.
    let aliased = "(loop $next
            (i32.store (i32.add (i32.const 0x100000) (i32.mul (local.get $n) (i32.const 28))) (i32.const 0x900000))
            (i32.store (i32.add (i32.const 0x100004) (i32.mul (local.get $n) (i32.const 28))) (i32.const 0x100000))
            (local.set $n (i32.add (local.get $n) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $n) (i32.const 290000))))
        (i32.store offset=52 (global.get $plan) (i32.const 0x100000))
        (i32.store offset=56 (global.get $plan) (i32.const 290000))";
    let at = |memory, transition| Raw {
        memory,
        transition,
        ..Raw::default()
    };
    fail(&[
        (
            "a text of 50 MiB",
            at("900", &fifty_mib),
            OUTPUT,
            "more than",
        ),
        (
            "very often one text",
            at("256", aliased),
            OUTPUT,
            "more than",
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_message_has_harmless_names() {
    let named = |name: &str| format!("(func $\"{name}\" unreachable)");
    let escapes = "\\1b[2J\\r\\n{\\22level\\22:\\22ERROR\\22}\\u{202e}";
    let endless = "n".repeat(900_000);
    let (escaping, boundless) = (named(escapes), named(&endless));
    let (call_escaping, call_boundless) = (
        format!("(call $\"{escapes}\")"),
        format!("(call $\"{endless}\")"),
    );
    let divides = "(drop (i32.div_s (i32.const 1) (i32.const 0)))";
    let at = |also, transition| Raw {
        also,
        transition,
        ..Raw::default()
    };
    fail(&[
        ("unreachable", at("", "unreachable"), FAULT, "unreachable"),
        (
            "a division by zero",
            at("", divides),
            FAULT,
            "divide by zero",
        ),
        (
            "a name that clears the screen",
            at(&escaping, &call_escaping),
            FAULT,
            "\\u{1b}[2J\\u{d}\\u{a}",
        ),
        (
            "a name without an end",
            at(&boundless, &call_boundless),
            FAULT,
            "nnn…",
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_verdict_starts_nothing() {
    let app = TestApp::empty().await;
    let bad = Raw {
        start: "(i32.store (global.get $verdict) (i32.const 9))",
        ..Raw::default()
    };
    app.publish("raw", &bad.component(), &json!({}))
        .await
        .expect(201);
    app.post(
        "admin",
        "/v1/definitions/raw/versions/1/activate",
        json!({}),
    )
    .await
    .expect(200);
    let before = stored(&app).await;
    let body =
        json!({ "definitionKey": "raw", "entityType": "thing", "entityId": "t", "data": {} });
    app.post("author", "/v1/instances", body)
        .await
        .problem(424, FAULT);
    assert_eq!(stored(&app).await, before);
}

/// What harms only the guest is ignored: its answer counts.
#[tokio::test(flavor = "multi_thread")]
async fn harm_to_the_guest_itself_is_ignored() {
    let app = TestApp::empty().await;
    let hoards_table = "(loop $more (br_if $more (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))))";
    for (key, raw) in [
        ("honest", Raw::default()),
        (
            "realloc-null",
            Raw {
                realloc: "(return (i32.const 0))",
                ..Raw::default()
            },
        ),
        (
            "table-bomb",
            Raw {
                also: "(table $t 1 funcref)",
                transition: hoards_table,
                ..Raw::default()
            },
        ),
    ] {
        let decide = at_work(&app, key, &raw.component()).await;
        let done = app.post("reviewer", &decide, go()).await.expect(200);
        assert_eq!(done["instance"]["outcome"], "DONE", "{key}");
    }
}
