//! A flow that misbehaves as its input says.
//!
//! It uses raw bindings, as an attacker would. The event's input, the instance's data and the version's config (the last for
//! `describe` only) may contain `{"behaviour": "spin", "function": "transition"}`; the first of them that does counts. `function`
//! is `transition` by default. [`burn`] has the behaviours that never return or use all resources, and [`plan`] those with a
//! wrong answer.
//!
//! The flow itself: `Work`, a task of the group in the config's `candidates`, goes on `GO` to `Done`.

mod bindings;
mod burn;

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use bindings::exports::wrkflw::flow::logic::Guest;
use bindings::wrkflw::flow::types::{
    Actor, Allocation, Assignment, Attribute, AttributeDeclaration, AttributeType, AttributeValue,
    CommentRule, Definition, Entry, Event, Extension, FiredBy, Join, Needed, Next, Note, Offer,
    Plan, Principal, PublishedEvent, Reads, Reason, Refusal, ServiceCall, Snapshot, State,
    StateKind, Target, Transition, Violation, Visibility, Waiting, Work,
};
use serde_json::Value;

struct Hostile;

// Native linkers reject the export names of components, so a native build only checks this crate.
#[cfg(target_arch = "wasm32")]
bindings::export!(Hostile with_types_in bindings);
#[cfg(not(target_arch = "wasm32"))]
const _: () = is_guest::<Hostile>();
#[cfg(not(target_arch = "wasm32"))]
const fn is_guest<T: Guest>() {}

/// A value survives from one call to the next only if the host reuses an instance.
static CALLS: AtomicU32 = AtomicU32::new(0);

impl Guest for Hostile {
    fn describe(config: String) -> Result<Definition, Vec<Violation>> {
        let wanted = Wanted::of(&[&config]);
        burn::misbehave(wanted.within("describe"));
        if wanted.behaviour == "refuse_config" {
            return Err(vec![Violation {
                field: "/behaviour".into(),
                code: "unwanted".into(),
                message: "this config was asked to be refused".into(),
            }]);
        }
        Ok(match wanted.behaviour.as_str() {
            "broken_graph" => broken(definition()),
            "changing" => titled(definition(), CALLS.fetch_add(1, Ordering::Relaxed)),
            "tangled" => tangled(definition()),
            "extended" => Definition {
                extensions: extended(true),
                ..definition()
            },
            "extended_state" => {
                let mut graph = definition();
                graph.states[0].extensions = extended(true);
                graph
            }
            "extended_transition" => {
                let mut graph = definition();
                graph.transitions[0].extensions = extended(true);
                graph
            }
            "demanding" => Definition {
                requires: vec!["telepathy".into()],
                ..definition()
            },
            "reads_nothing" => Definition {
                reads: Reads::empty(),
                ..definition()
            },
            _ => schooled(definition(), &config),
        })
    }

    fn start(facts: Snapshot, by: Actor) -> Result<(), Refusal> {
        let wanted = Wanted::of(&[&facts.instance.data]);
        let behaviour = wanted.within("start");
        burn::misbehave(behaviour);
        verdict(behaviour, &facts, &by)
    }

    fn transition(facts: Snapshot, event: Event) -> Result<Plan, Refusal> {
        let wanted = Wanted::of(&[&event.input, &facts.instance.data]);
        let behaviour = wanted.within("transition");
        burn::misbehave(behaviour);
        verdict(behaviour, &facts, &event)?;
        plan(behaviour)
    }

    fn enter(facts: Snapshot, entries: Vec<Entry>) -> Result<Vec<Work>, Refusal> {
        let wanted = Wanted::of(&[&facts.instance.data]);
        let behaviour = wanted.within("enter");
        burn::misbehave(behaviour);
        let work = || Work::Task(assignment(&facts, behaviour));
        Ok(match behaviour {
            "deny" => return Err(Refusal::Denied(reason())),
            "refuse" => return Err(Refusal::NotNow(reason())),
            "give_up" => return Err(Refusal::Fault(reason())),
            "no_work" => vec![],
            "more_work" => vec![work(), work()],
            "other_work" => vec![Work::Wait(Waiting {
                deadlines: vec![],
                subscriptions: vec![],
                children: vec![],
            })],
            "service_work" => vec![Work::Service(ServiceCall {
                service: "mail".into(),
                request: "{}".into(),
                timeout: 1,
                retries: vec![],
                on_reply: "GO".into(),
                on_failure: "GO".into(),
                deadlines: vec![],
                subscriptions: vec![],
            })],
            _ => entries.iter().map(|_| work()).collect(),
        })
    }
}

/// Refusals that need no plan. `asked` is the argument of the call besides the facts.
fn verdict(behaviour: &str, facts: &Snapshot, asked: &dyn fmt::Debug) -> Result<(), Refusal> {
    let said = |code: &str, message: String| {
        Err(Refusal::Denied(Reason {
            code: code.into(),
            message,
        }))
    };
    match behaviour {
        "deny" => Err(Refusal::Denied(reason())),
        "invalid" => Err(Refusal::Invalid(vec![Violation {
            field: "/input/behaviour".into(),
            code: "unwanted".into(),
            message: "the input asked to be invalid".into(),
        }])),
        "escapes" => said(ESCAPES, ESCAPES.into()),
        "sermon" => said("sermon", "word ".repeat(20_000)),
        "echo" => said("echo", format!("{facts:?} {asked:?}")),
        "echo_asked" => said("echo", format!("{asked:?}")),
        _ => Ok(()),
    }
}

fn assignment(facts: &Snapshot, behaviour: &str) -> Assignment {
    let group = text(&facts.config, "candidates").unwrap_or_else(|| "reviewers".into());
    let initiator = facts.instance.initiator.clone();
    let (candidate, owner) = match behaviour {
        "own_initiator" => (Principal::Group(group), Some(initiator)),
        "offer_initiator" => (Principal::User(initiator), None),
        "offer_manager" => (Principal::ManagerOf(initiator), None),
        "offer_nobody" => (Principal::Group(String::new()), None),
        _ => (Principal::Group(group), None),
    };
    let offer = Offer {
        label: "work".into(),
        candidates: vec![candidate],
        owner,
        each_member: None,
        retain: false,
        allocation: Allocation::Offered,
        deadlines: vec![],
        extensions: extended(behaviour == "extended_offer"),
    };
    Assignment {
        offers: vec![offer; if behaviour == "many_offers" { 201 } else { 1 }],
        needed: Needed::Count(1),
        exclude: vec![],
        fallback: None,
        priority: 0,
        deadlines: vec![],
        subscriptions: vec![],
        blind: false,
        extensions: extended(behaviour == "extended"),
    }
}

/// Extensions that no host knows.
fn extended(is_wanted: bool) -> Vec<Extension> {
    let extension = || Extension {
        name: "telepathy".into(),
        value: "{}".into(),
    };
    is_wanted.then(extension).into_iter().collect()
}

/// Clears a terminal, forges a line of a log, and reverses the direction of text.
const ESCAPES: &str = "\u{1b}[2J\u{7}\r\n{\"level\":\"ERROR\",\"message\":\"forged\"}\u{202e}";

/// The behaviour that the input requests.
struct Wanted {
    behaviour: String,
    function: String,
}

impl Wanted {
    /// The behaviour in the first of these documents that has one.
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

fn target(name: &str) -> Target {
    Target {
        name: name.into(),
        key: None,
        data: None,
    }
}

fn note(message: impl Into<String>) -> Note {
    Note {
        code: "test".into(),
        message: message.into(),
        detail: None,
    }
}

fn plan(behaviour: &str) -> Result<Plan, Refusal> {
    let attribute = |name: &str, value| {
        vec![Attribute {
            name: name.into(),
            value: Some(value),
        }]
    };
    let mut plan = Plan {
        next: Next::Enter(vec![target("Done")]),
        cancel: vec![],
        data: None,
        attributes: vec![],
        publish: vec![],
        notes: vec![],
        extensions: extended(behaviour == "extended"),
    };
    match behaviour {
        "refuse" => return Err(Refusal::NotNow(reason())),
        "unfit" => {
            return Err(Refusal::Invalid(vec![Violation {
                field: "/input/behaviour".into(),
                code: "unfit".into(),
                message: "the input asked to be unfit".into(),
            }]));
        }
        "give_up" => return Err(Refusal::Fault(reason())),
        "huge" => plan.notes.push(note("x".repeat(40 << 20))),
        "million_notes" => plan.notes = vec![note("x"); 1_000_000],
        "many_notes" => plan.notes = vec![note("x"); 33],
        "flood" => plan.publish = vec![event("thing"); 20_000],
        "many_events" => plan.publish = vec![event("thing"); 33],
        "foreign_topic" => plan.publish = vec![event("../flow.completed")],
        "cancel_unknown" => plan.cancel = vec!["00000000-0000-0000-0000-000000000000".into()],
        "escaped_target" => plan.next = Next::Enter(vec![target(ESCAPES)]),
        "endless_target" => plan.next = Next::Enter(vec![target(&"N".repeat(200 << 10))]),
        "nan" => plan.notes = burn::nan_bits().into_iter().map(note).collect(),
        "large" => plan.notes.push(note("x".repeat(300 << 10))),
        "undeclared_target" => plan.next = Next::Enter(vec![target("Nowhere")]),
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
        "nul" => plan.notes.push(note("a\0b")),
        "remember" => {
            let calls = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
            plan.notes.push(note(format!("call {calls}")));
        }
        _ => {}
    }
    Ok(plan)
}

fn event(name: &str) -> PublishedEvent {
    PublishedEvent {
        name: name.into(),
        data: "{}".into(),
    }
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
        description: String::new(),
        kind: StateKind::Task,
        join: Join::None,
        own_work: false,
        extensions: vec![],
    });
    let way = graph.transitions[0].clone();
    graph.transitions.push(Transition {
        targets: vec!["Missing".into()],
        by: FiredBy::REPLY,
        ..way
    });
    graph.data_schema = Some(r#"{"type": "thing"}"#.into());
    graph.instance_title = Some("Thing {number}".into());
    graph
}

/// The graph, whose titles count the calls. If an instance were used twice, the graph would change.
fn titled(mut graph: Definition, calls: u32) -> Definition {
    for state in &mut graph.states {
        state.title = format!("{} {calls}", state.title);
    }
    graph
}

/// The graph with the schemas that the config gives.
fn schooled(mut graph: Definition, config: &str) -> Definition {
    graph.transitions[0].input = text(config, "input");
    if let Some(schema) = text(config, "schema") {
        graph.data_schema = Some(schema);
    }
    graph
}

/// The graph with many states and transitions between them. Each state also has a transition to the last one.
fn tangled(mut graph: Definition) -> Definition {
    const STATES: usize = 50;
    for number in 0..STATES {
        let name = format!("S{number}");
        graph.states.push(State {
            title: name.clone(),
            description: String::new(),
            name,
            kind: StateKind::Task,
            join: Join::None,
            own_work: false,
            extensions: vec![],
        });
    }
    graph.transitions[0].targets.push("S0".into());
    let names: Vec<String> = (0..STATES).map(|number| format!("S{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let ahead = names.iter().skip(number + 1).step_by(2).take(4);
        let mut targets: Vec<String> = ahead.cloned().collect();
        targets.push("Done".into());
        graph.transitions.push(Transition {
            source: name.clone(),
            trigger: "GO".into(),
            targets,
            by: FiredBy::DECISION,
            permission: None,
            title: String::new(),
            description: String::new(),
            condition: String::new(),
            input: None,
            comment: CommentRule::Optional,
            extensions: vec![],
        });
    }
    graph.transitions[1..]
        .iter_mut()
        .zip(names.iter().skip(1))
        .for_each(|(way, next)| {
            if !way.targets.contains(next) {
                way.targets.push(next.clone());
            }
        });
    graph
}

fn definition() -> Definition {
    let state = |name: &str, kind| State {
        name: name.into(),
        title: name.into(),
        description: String::new(),
        kind,
        join: Join::None,
        own_work: false,
        extensions: vec![],
    };
    Definition {
        title: String::new(),
        description: String::new(),
        instance_title: None,
        instance_summary: None,
        priorities: vec![],
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
            title: String::new(),
            description: String::new(),
            condition: String::new(),
            input: None,
            comment: CommentRule::Optional,
            extensions: vec![],
        }],
        separate: vec![],
        requires: vec![],
        extensions: vec![],
        reads: Reads::all(),
        sole_per_entity: false,
        visibility: Visibility::Tenant,
        uses: vec![],
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
