//! A flow that misbehaves in whatever way its input asks for.
//!
//! It speaks the contract through raw bindings, as an attacker would. In order of precedence the
//! event's input, the instance's data and the version's config (the last for `describe` alone) may say
//! `{"behaviour": "spin", "function": "transition"}`; `function` is `transition` unless said otherwise.
//! What can be asked for stands in [`misbehave`] and [`plan`].
//!
//! The flow itself: `Work`, a task of the group in config's `candidates`, goes on `GO` to `Done`.

mod bindings;

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

use bindings::exports::wrkflw::flow::logic::Guest;
use bindings::wrkflw::flow::types::{
    AssignCause, Assignment, Attribute, AttributeDeclaration, AttributeType, AttributeValue,
    Definition, Event, FiredBy, Offer, Plan, Principal, Reason, ServiceCall, Snapshot, State,
    StateKind, Transition, Verdict, Violation, Waiting,
};
use serde_json::Value;

struct Hostile;

// No native linker accepts the names of a component's exports; natively this crate is only checked.
#[cfg(target_arch = "wasm32")]
bindings::export!(Hostile with_types_in bindings);
#[cfg(not(target_arch = "wasm32"))]
const _: () = is_guest::<Hostile>();
#[cfg(not(target_arch = "wasm32"))]
const fn is_guest<T: Guest>() {}

/// Survives from one call to the next only if the host reuses an instance.
static CALLS: AtomicU32 = AtomicU32::new(0);

impl Guest for Hostile {
    fn describe(config: String) -> Result<Definition, Vec<Violation>> {
        let wanted = Wanted::of(&[&config]);
        misbehave(wanted.within("describe"));
        if wanted.behaviour == "refuse_config" {
            return Err(vec![Violation {
                field: "/behaviour".into(),
                code: "unwanted".into(),
                message: "this config was asked to be refused".into(),
            }]);
        }
        Ok(if wanted.behaviour == "broken_graph" {
            broken(definition())
        } else {
            definition()
        })
    }

    fn guard(facts: Snapshot, event: Event) -> Verdict {
        let wanted = Wanted::of(&[&event.input, &facts.instance.data]);
        let behaviour = wanted.within("guard");
        misbehave(behaviour);
        match behaviour {
            "deny" => Verdict::Deny(reason()),
            "invalid" => Verdict::Invalid(vec![Violation {
                field: "/behaviour".into(),
                code: "unwanted".into(),
                message: "the input asked to be invalid".into(),
            }]),
            "echo" => Verdict::Deny(Reason {
                code: "echo".into(),
                message: format!("{facts:?} {event:?}"),
            }),
            _ => Verdict::Allow,
        }
    }

    fn transition(facts: Snapshot, event: Event) -> Result<Plan, Reason> {
        let wanted = Wanted::of(&[&event.input, &facts.instance.data]);
        let behaviour = wanted.within("transition");
        misbehave(behaviour);
        plan(behaviour)
    }

    fn assign(facts: Snapshot, _state: String, _cause: AssignCause) -> Assignment {
        let wanted = Wanted::of(&[&facts.instance.data]);
        let behaviour = wanted.within("assign");
        misbehave(behaviour);
        let group = text(&facts.config, "candidates").unwrap_or_else(|| "reviewers".into());
        let initiator = facts.instance.initiator;
        let (candidate, owner) = match behaviour {
            "own_initiator" => (Principal::Group(group), Some(initiator)),
            "offer_initiator" => (Principal::User(initiator), None),
            "offer_manager" => (Principal::ManagerOf(initiator), None),
            _ => (Principal::Group(group), None),
        };
        Assignment {
            offers: vec![Offer {
                label: "work".into(),
                candidates: vec![candidate],
                owner,
                form: None,
                deadlines: vec![],
            }],
            needed: 1,
            exclude: vec![],
            fallback: None,
            priority: 0,
            deadlines: vec![],
        }
    }

    fn call(_facts: Snapshot, _state: String) -> ServiceCall {
        unreachable!("the flow has no service state")
    }

    fn wait(_facts: Snapshot, _state: String) -> Waiting {
        unreachable!("the flow has no wait state")
    }
}

/// What the input asks for.
struct Wanted {
    behaviour: String,
    function: String,
}

impl Wanted {
    /// The first of these documents that names a behaviour.
    fn of(documents: &[&str]) -> Wanted {
        let found = documents.iter().find_map(|document| {
            text(document, "behaviour").map(|behaviour| (behaviour, *document))
        });
        let (behaviour, document) = found.unwrap_or_else(|| ("ok".into(), "{}"));
        Wanted {
            behaviour,
            function: text(document, "function").unwrap_or_else(|| "transition".into()),
        }
    }

    fn within(&self, function: &str) -> &str {
        if self.function == function {
            &self.behaviour
        } else {
            "ok"
        }
    }
}

fn text(document: &str, member: &str) -> Option<String> {
    let document: Value = serde_json::from_str(document).ok()?;
    document.get(member)?.as_str().map(str::to_owned)
}

/// What never comes back with an answer, or should not.
fn misbehave(behaviour: &str) {
    match behaviour {
        "spin" => spin(),
        "crawl" => crawl(),
        "recurse" => {
            black_box(recurse(0));
        }
        "allocate" => allocate(),
        "grow" => grow(),
        "trap" => a_function_that_traps(),
        _ => {}
    }
}

fn spin() {
    let mut count = 0_u64;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}

/// For ever too, with operators that take long for their fuel.
fn crawl() {
    let mut number = 2.0_f64;
    while number > 0.0 {
        number = ((number + 1.0).sqrt() / 1.000_1).sqrt() / 0.999_9;
    }
    black_box(number);
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "the host must survive it")]
fn recurse(depth: u64) -> u64 {
    // Small frames, so that the host's limit is met before the guest's own stack in memory runs out.
    black_box(depth) ^ recurse(depth + 1)
}

fn allocate() {
    let mut hoard = Vec::new();
    loop {
        hoard.push(black_box(vec![1_u8; 1 << 20]));
    }
}

/// Asks for more memory than there is, for ever: cheap in operators, costly in time.
fn grow() {
    #[cfg(target_arch = "wasm32")]
    loop {
        black_box(core::arch::wasm32::memory_grow::<0>(60_000));
    }
}

#[inline(never)]
fn a_function_that_traps() {
    panic!("the input asked for it");
}

fn plan(behaviour: &str) -> Result<Plan, Reason> {
    let attribute = |name: &str, value| {
        vec![Attribute {
            name: name.into(),
            value: Some(value),
        }]
    };
    let mut plan = Plan {
        enter: Some(vec!["Done".into()]),
        cancel: vec![],
        data: None,
        attributes: vec![],
        publish: vec![],
        notes: vec![],
    };
    match behaviour {
        "refuse" => return Err(reason()),
        "huge" => plan.notes.push("x".repeat(8 << 20)),
        "large" => plan.notes.push("x".repeat(300 << 10)),
        "undeclared_target" => plan.enter = Some(vec!["Nowhere".into()]),
        "unknown_attribute" => {
            plan.attributes = attribute("undeclared", AttributeValue::Text("x".into()));
        }
        "break_schema" => plan.data = Some(r#"{"behaviour": 42}"#.into()),
        "broken_json" => plan.data = Some(r#"{"behaviour": "#.into()),
        "bad_decimal" => {
            plan.attributes = attribute("amount", AttributeValue::Decimal("1e9".into()));
        }
        "attributes" => plan.attributes = every_type(),
        "not_finite" => plan.attributes = attribute("amount", AttributeValue::Float(f64::NAN)),
        "bad_timestamp" => {
            plan.attributes = attribute("amount", AttributeValue::Timestamp("soon".into()));
        }
        "nul" => plan.notes.push("a\0b".into()),
        "remember" => {
            let calls = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
            plan.notes.push(format!("call {calls}"));
        }
        _ => {}
    }
    Ok(plan)
}

/// An attribute of each type.
fn every_type() -> Vec<Attribute> {
    [
        (
            "amount",
            AttributeValue::Decimal("1000.000000000000000000000000000001".into()),
        ),
        ("region", AttributeValue::Text("EU".into())),
        ("urgent", AttributeValue::Boolean(true)),
        ("score", AttributeValue::Float(0.5)),
        (
            "ordered",
            AttributeValue::Timestamp("2026-01-31T12:00:00.000Z".into()),
        ),
        ("mark", AttributeValue::Bytes(vec![0, 255])),
    ]
    .map(|(name, value)| Attribute {
        name: name.into(),
        value: Some(value),
    })
    .into()
}

fn reason() -> Reason {
    Reason {
        code: "unwanted".into(),
        message: "the input asked to be refused".into(),
    }
}

/// The graph with a mistake of every kind that authors make.
fn broken(mut graph: Definition) -> Definition {
    graph.initial = "Nowhere".into();
    graph.states.push(State {
        name: "Lost".into(),
        title: "Lost".into(),
        kind: StateKind::Task,
        join: false,
        own_work: false,
    });
    let way = graph.transitions[0].clone();
    graph.transitions.push(Transition {
        targets: vec!["Missing".into()],
        by: FiredBy::REPLY,
        ..way
    });
    graph.data_schema = Some(r#"{"type": "thing"}"#.into());
    graph
}

fn definition() -> Definition {
    let state = |name: &str, kind| State {
        name: name.into(),
        title: name.into(),
        kind,
        join: false,
        own_work: false,
    };
    Definition {
        initial: "Work".into(),
        initiators: vec![],
        states: vec![
            state("Work", StateKind::Task),
            state("Done", StateKind::Terminal("DONE".into())),
        ],
        transitions: vec![Transition {
            source: "Work".into(),
            trigger: "GO".into(),
            targets: vec!["Done".into()],
            by: FiredBy::DECISION,
            permission: None,
        }],
        data_schema: Some(
            r#"{"type": "object", "properties": {"behaviour": {"type": "string"}, "function": {"type": "string"}}}"#
                .into(),
        ),
        attributes: [
            ("amount", AttributeType::Decimal),
            ("region", AttributeType::Text),
            ("urgent", AttributeType::Boolean),
            ("score", AttributeType::Float),
            ("ordered", AttributeType::Timestamp),
            ("mark", AttributeType::Bytes),
        ]
        .map(|(name, kind)| AttributeDeclaration {
            name: name.into(),
            kind,
        })
        .into(),
    }
}
