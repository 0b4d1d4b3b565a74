//! Every misbehaviour ends in its own error, and others are not affected.

use super::*;
use std::convert::Infallible;

use serde_json::json;

use crate::support::app::TestApp;

#[tokio::test]
async fn each_misbehaviour_ends_in_its_own_error() {
    let sandbox = sandbox();
    for behaviour in ["spin", "grow"] {
        let budget = settings().fuel_transition;
        let expected = Cause::FuelExhausted { budget };
        assert_eq!(cause(&sandbox, behaviour).await, expected, "{behaviour}");
    }
    for behaviour in ["huge", "large"] {
        let bytes_max = settings().output_bytes_max;
        let expected = Cause::OutputTooLarge { bytes_max };
        assert_eq!(cause(&sandbox, behaviour).await, expected, "{behaviour}");
    }
    for (behaviour, detail) in [
        (
            "bad_decimal",
            "the attribute `amount` is no decimal number: \"1e9\"",
        ),
        (
            "not_finite",
            "the attribute `amount` is not a finite number: NaN",
        ),
        ("nul", "a note's message contains the character NUL"),
        (
            "extended",
            "a plan has the extension `telepathy`, which this host does not know",
        ),
    ] {
        let detail = detail.to_owned();
        let expected = Cause::Malformed { detail };
        assert_eq!(cause(&sandbox, behaviour).await, expected, "{behaviour}");
    }
    let Cause::Malformed { detail } = cause(&sandbox, "bad_timestamp").await else {
        panic!("not malformed");
    };
    assert!(detail.ends_with(r#": "soon""#), "{detail}");
}

#[tokio::test]
async fn a_trap_shows_the_author_its_position() {
    let Cause::Trapped(trap) = cause(&sandbox(), "trap").await else {
        panic!("no trap");
    };
    assert_eq!(
        trap.message,
        "wasm trap: wasm `unreachable` instruction executed"
    );
    let named = trap
        .frames
        .iter()
        .any(|frame| frame.contains("a_function_that_traps"));
    assert!(named, "{:?}", trap.frames);
}

#[tokio::test]
async fn recursion_ends_at_the_stack_limit() {
    let Cause::Trapped(trap) = cause(&sandbox(), "recurse").await else {
        panic!("no trap");
    };
    assert_eq!(trap.message, "wasm trap: call stack exhausted");
    assert!(trap.frames.len() <= 20, "{}", trap.frames.len());
}

#[tokio::test]
async fn growing_memory_ends_at_the_memory_limit() {
    let cause = cause(&sandbox(), "allocate").await;
    assert!(
        matches!(cause, Cause::MemoryExhausted { bytes_max, .. } if bytes_max == 64 << 20),
        "{cause}"
    );
}

#[tokio::test]
async fn a_guest_with_fuel_left_ends_at_the_deadline() {
    let sandbox = Sandbox::new(Settings {
        fuel_transition: 5_000_000_000,
        deadline_ms: 50,
        ..settings()
    });
    let sandbox = sandbox.expect("sandbox");
    let expected = Cause::DeadlinePassed { deadline_ms: 50 };
    assert_eq!(cause(&sandbox, "crawl").await, expected);
}

#[tokio::test]
async fn facts_too_large_for_a_guest_are_not_passed() {
    let data = format!(r#"{{"text":"{}"}}"#, "x".repeat(1_100 << 10));
    let question = entering(&["Work"]);
    let error = ask_about(&sandbox(), &instance(&data), question).await;
    let cause = error.expect_err("too large").cause;
    assert!(
        matches!(cause, Cause::InputTooLarge { bytes, .. } if bytes > 1_100 << 10),
        "{cause}"
    );
    assert_eq!(cause.code(), "logic_fault");
}

#[tokio::test]
async fn errors_name_definition_version_digest_and_function() {
    let digest = digest(guests::hostile());
    for (behaviour, function, code) in [
        ("spin", "start", "logic_budget_exceeded"),
        ("allocate", "transition", "logic_budget_exceeded"),
        ("trap", "transition", "logic_fault"),
        ("recurse", "enter", "logic_fault"),
        ("nul", "transition", "logic_fault"),
        ("huge", "transition", "logic_output_too_large"),
    ] {
        let question = match function {
            "start" => Question::Start(actor("author")),
            "enter" => entering(&["Work"]),
            _ => Question::Transition(wanting(behaviour, function).into()),
        };
        let data = format!(r#"{{"behaviour":"{behaviour}","function":"{function}"}}"#);
        let result = ask_about(&sandbox(), &instance(&data), question).await;
        let error = result.expect_err(behaviour);
        assert_eq!(error.code(), code, "{behaviour}");
        let expected = format!("`{function}` of hostile version 7 (component {digest}): ");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_flows_continue_while_one_loops() {
    let sandbox = Sandbox::new(Settings {
        fuel_transition: 5_000_000_000,
        deadline_ms: 100,
        concurrency: 4,
        ..settings()
    });
    let sandbox = sandbox.expect("sandbox");
    let peaceful = guests::another(guests::hostile(), "peaceful");
    ask_other(&sandbox, &peaceful).await.expect("warm");
    transition(&sandbox, "ok").await.expect("warm");

    // Twelve loops of a tenth of a second each, two at a time, at low priority.
    let mut loops = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let sandbox = sandbox.clone();
        loops.spawn(async move { cause(&sandbox, "crawl").await });
    }
    for _ in 0..20 {
        ask_other(&sandbox, &peaceful).await.expect("answers");
    }
    // A caller who had waited for them would have seen most of them end.
    let mut ended = 0;
    while let Some(cause) = loops.try_join_next() {
        let cause = cause.expect("joined");
        assert!(matches!(cause, Cause::DeadlinePassed { .. }), "{cause}");
        ended += 1;
    }
    assert!(
        ended <= 6,
        "{ended} loops ended before twenty quick calls did"
    );
}

async fn ask_other(sandbox: &Sandbox, component: &[u8]) -> Result<Evaluation, GuestError> {
    let (config, instance) = (json("{}"), instance("{}"));
    let facts = Facts {
        now: NOW.parse().expect("instant"),
        tenant: "acme",
        config: &config,
        instance: &instance,
        reads: &Read::ALL,
    };
    let question = Question::Start(actor("author"));
    let fetch = async || Ok::<_, Infallible>(component.to_vec());
    sandbox
        .ask(&pinned(component), facts, &question, fetch)
        .await
}

#[tokio::test]
async fn a_call_that_gets_no_thread_in_time_is_refused() {
    let sandbox = Sandbox::new(Settings {
        fuel_transition: 5_000_000_000,
        deadline_ms: 1_000,
        queue_ms_max: 20,
        concurrency: 1,
        ..settings()
    });
    let sandbox = sandbox.expect("sandbox");
    transition(&sandbox, "ok").await.expect("warm");
    let (looping, waiting) = tokio::join!(cause(&sandbox, "crawl"), cause(&sandbox, "ok"));
    assert!(matches!(looping, Cause::DeadlinePassed { .. }), "{looping}");
    assert_eq!(waiting, Cause::Busy { queue_ms_max: 20 });
}

#[test]
fn limits_beyond_the_safe_maximum_are_refused() {
    let refused = |settings: Settings| Sandbox::new(settings).expect_err("refused");
    let error = refused(Settings {
        memory_bytes_max: 1 << 30,
        ..settings()
    });
    assert_eq!(
        error,
        "memory_bytes_max is 1073741824, but at most 268435456 is safe"
    );
    let error = refused(Settings {
        fuel_start: 0,
        ..settings()
    });
    assert_eq!(error, "fuel_start must not be 0");
    let error = refused(Settings {
        artifact_dir: Some("nowhere".into()),
        ..settings()
    });
    assert_eq!(
        error,
        "artifact_key must be a secret when artifact_dir is set"
    );
}

/// These limits are constants of a host. For a sample flow, the minimum of each is enough.
#[tokio::test]
async fn a_sandbox_with_every_limit_at_its_minimum_serves() {
    let least = Settings {
        fuel_start: 1_000_000,
        fuel_transition: 1_000_000,
        fuel_enter: 1_000_000,
        memory_bytes_max: 2 << 20,
        table_elements_max: 100,
        output_bytes_max: 16 << 10,
        concurrency: 1,
        cache_bytes_max: 16 << 20,
        ..settings()
    };
    let app = TestApp::empty_in(Sandbox::new(least).expect("a sandbox")).await;
    app.with_approval().await;
    let started = app.started("least").await;
    app.decided("reviewer", &started, json!({ "outcome": "APPROVE" }))
        .await;
}
