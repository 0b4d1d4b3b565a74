//! Sub-flows whose wait states wait for signals, for a deadline or for child instances. The instance's data says for what:
//!
//! `{"first": "Work", "wait": {"correlation": "", "bufferSignals": true, "children": [{"key": "", "entity": "", "data": {},
//! "onEnd": "ENDED", "detached": true}], "late": 60, "cancel": "a reason"}, "payments": 2, "refuse": true}`
//!
//! `Plan` leads to `Wait`, or to `first`. `Wait` ends with `payments` signals PAID, with LATE, or once every child with a trigger has
//! ENDED. With `cancel`, the deadline `late` cancels the instance for this reason instead. LEAVE leads to `Work`, where GO leads to
//! `Wait` and WITHDRAW to the end. A start with `refuse` is denied, and so is a signal with it in its input; `"badly"` panics. With
//! `"swarm": 20` in place of `children`, each instance starts this many like itself. `wait` and `work` may have
//! `"subscriptions": [{"trigger": "PAID", "correlation": "", "buffered": true}]`.
//!
//! `Ask` calls the service of `"ask": {"service": "machine", "timeout": 5, "retries": [1], "late": 60}`. A reply with a `score` leads to
//! the end, a failure and LATE to `Work`. `"stays": true` keeps the state after a reply. `asked` has the facts that the flow got.
//!
//! The config may have a `work` that replaces that of the data, and `"services": ["machine"]`, the names that the flow uses. With
//! `{"sole": true}` the flow is sole per entity. With `{"observers": ["a group"]}` only participants and these groups see its instances.

mod bindings;

use bindings::exports::wrkflw::flow::logic::Guest;
use bindings::wrkflw::flow::types::{
    Actor, Allocation, Assignment, Child, CommentRule, Deadline, Definition, Due, Entry, Event,
    EventSource, FiredBy, Join, NameUse, Needed, Next, Offer, OverdueAction, Plan, Principal,
    Reads, Reason, Refusal, ServiceCall, SignalSubscription, Since, Snapshot, State, StateKind,
    Target, Transition, Violation, Visibility, Waiting, Work,
};
use serde_json::{Value, json};

struct Subflows;

/// The schema of a reply of the service.
const SCORE: &str =
    r#"{"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}"#;

// Native linkers reject the export names of components, so a native build only checks this crate.
#[cfg(target_arch = "wasm32")]
bindings::export!(Subflows with_types_in bindings);
#[cfg(not(target_arch = "wasm32"))]
const _: () = is_guest::<Subflows>();
#[cfg(not(target_arch = "wasm32"))]
const fn is_guest<T: Guest>() {}

/// Refuses if this document requests it.
fn verdict(asked: &str) -> Result<(), Refusal> {
    match &parsed(asked)["refuse"] {
        Value::Bool(true) => deny("refused"),
        Value::String(how) if how == "badly" => panic!("as it was asked to"),
        _ => Ok(()),
    }
}

fn deny(code: &str) -> Result<(), Refusal> {
    Err(Refusal::Denied(Reason {
        code: code.into(),
        message: "as it was asked to".into(),
    }))
}

impl Guest for Subflows {
    fn describe(config: String) -> Result<Definition, Vec<Violation>> {
        let state = |name: &str, kind| State {
            name: name.into(),
            title: name.into(),
            description: String::new(),
            kind,
            join: Join::None,
            own_work: false,
            extensions: vec![],
        };
        let way = |source: &str, trigger: &str, by, targets: &[&str]| Transition {
            source: source.into(),
            trigger: trigger.into(),
            targets: targets.iter().map(|target| (*target).to_owned()).collect(),
            by,
            permission: None,
            title: String::new(),
            description: String::new(),
            condition: String::new(),
            input: None,
            comment: CommentRule::Optional,
            extensions: vec![],
        };
        Ok(Definition {
            title: String::new(),
            description: String::new(),
            instance_title: None,
            instance_summary: None,
            priorities: vec![],
            initial: "Plan".into(),
            initiators: vec!["authors".into()],
            states: vec![
                state("Plan", StateKind::Router),
                state("Wait", StateKind::Wait),
                state("Work", StateKind::Task),
                state("Ask", StateKind::Service),
                state("Done", StateKind::Terminal("DONE".into())),
                state("Dropped", StateKind::Terminal("DROPPED".into())),
            ],
            transitions: vec![
                way("Plan", "BEGIN", FiredBy::ENTRY, &["Wait", "Work", "Ask"]),
                Transition {
                    input: Some(SCORE.into()),
                    ..way("Ask", "ANSWERED", FiredBy::REPLY, &["Done"])
                },
                way("Ask", "UNANSWERED", FiredBy::FAILURE, &["Work"]),
                way("Ask", "LATE", FiredBy::DEADLINE, &["Work"]),
                way("Ask", "LEAVE", FiredBy::SIGNAL, &["Work"]),
                way("Wait", "PAID", FiredBy::SIGNAL, &["Done"]),
                way("Wait", "LEAVE", FiredBy::SIGNAL, &["Work"]),
                way("Wait", "LATE", FiredBy::DEADLINE, &["Done"]),
                way("Wait", "ENDED", FiredBy::CHILD, &["Done"]),
                way("Work", "GO", FiredBy::DECISION, &["Wait"]),
                way("Work", "WITHDRAW", FiredBy::SIGNAL, &["Dropped"]),
            ],
            separate: vec![],
            requires: vec![],
            extensions: vec![],
            reads: Reads::GROUPS,
            sole_per_entity: parsed(&config)["sole"] == true,
            visibility: match parsed(&config)["observers"].as_array() {
                Some(groups) => {
                    let groups = groups.iter().filter_map(Value::as_str);
                    Visibility::Participants(groups.map(str::to_owned).collect())
                }
                None => Visibility::Tenant,
            },
            uses: names(&parsed(&config)["services"])
                .map(NameUse::Service)
                .collect(),
            data_schema: Some(
                r#"{"type": "object", "properties": {"first": {"type": "string"}}}"#.into(),
            ),
            attributes: vec![],
        })
    }

    fn start(facts: Snapshot, by: Actor) -> Result<(), Refusal> {
        // Children start in the name of a person, whose rights they do not get.
        let is_lent = by.id != facts.instance.initiator || !by.groups.is_empty();
        if facts.instance.parent.is_some() && is_lent {
            return deny("borrowed_standing");
        }
        verdict(&facts.instance.data)
    }

    fn transition(facts: Snapshot, event: Event) -> Result<Plan, Refusal> {
        if matches!(event.source, EventSource::Task(_) | EventSource::Signal(_)) {
            verdict(&event.input)?;
        }
        let data = parsed(&facts.instance.data);
        let paid = data["paid"].as_u64().unwrap_or(0) + 1;
        let here = facts
            .active
            .iter()
            .find(|state_instance| state_instance.id == event.state_instance);
        let children = here.map_or(&[][..], |state_instance| &state_instance.children);
        let (enter, patch) = match event.trigger.as_str() {
            "BEGIN" => (Some(data["first"].as_str().unwrap_or("Wait")), None),
            "PAID" => {
                let is_enough = paid >= data["payments"].as_u64().unwrap_or(1);
                (is_enough.then_some("Done"), Some(json!({ "paid": paid })))
            }
            "ENDED" => {
                let EventSource::Child(ended) = &event.source else {
                    unreachable!("only children fire it");
                };
                let outcome = ended.outcome.clone();
                let all = children.iter().all(|child| child.outcome.is_some());
                let ends = json!({ "ends": { ended.id.clone(): {
                    "outcome": outcome, "version": ended.version, "data": parsed(&event.input)
                } } });
                (all.then_some("Done"), Some(ends))
            }
            "LEAVE" => (Some("Work"), None),
            "ANSWERED" | "UNANSWERED" => {
                let EventSource::Service(answer) = &event.source else {
                    unreachable!("only services fire it");
                };
                let asked = json!({ "asked": {
                    "service": answer.service, "attempts": answer.attempts, "error": answer.error,
                    "model": answer.model, "modelVersion": answer.model_version, "output": parsed(&event.input)
                } });
                let next = match event.trigger.as_str() {
                    "UNANSWERED" => Some("Work"),
                    _ if data["ask"]["stays"] == true => None,
                    _ => Some("Done"),
                };
                (next, Some(asked))
            }
            "LATE" if here.is_some_and(|one| one.name == "Ask") => (Some("Work"), None),
            "GO" => (Some("Wait"), None),
            "WITHDRAW" => (Some("Dropped"), None),
            _ => (Some("Done"), None),
        };
        Ok(Plan {
            next: enter.map_or(Next::Stay, |state| {
                Next::Enter(vec![Target {
                    name: state.into(),
                    key: None,
                    data: None,
                }])
            }),
            cancel: vec![],
            data: patch.map(|patch| patch.to_string()),
            attributes: vec![],
            publish: vec![],
            notes: vec![],
            extensions: vec![],
        })
    }

    fn enter(facts: Snapshot, entries: Vec<Entry>) -> Result<Vec<Work>, Refusal> {
        let work = |entry: &Entry| match entry.state.as_str() {
            "Wait" => Work::Wait(waiting(&facts)),
            "Ask" => Work::Service(asking(&facts)),
            _ => Work::Task(assignment(&facts)),
        };
        Ok(entries.iter().map(work).collect())
    }
}

fn assignment(facts: &Snapshot) -> Assignment {
    let (config, data) = (parsed(&facts.config), parsed(&facts.instance.data));
    let (of_version, of_instance) = (&config["work"], &data["work"]);
    Assignment {
        offers: vec![Offer {
            label: "work".into(),
            candidates: vec![Principal::Group("reviewers".into())],
            owner: None,
            each_member: None,
            retain: false,
            allocation: Allocation::Offered,
            deadlines: vec![],
            extensions: vec![],
        }],
        needed: Needed::Count(1),
        exclude: vec![],
        fallback: None,
        priority: 0,
        deadlines: vec![],
        subscriptions: subscriptions(if of_version.is_object() {
            of_version
        } else {
            of_instance
        }),
        blind: false,
        extensions: vec![],
    }
}

fn waiting(facts: &Snapshot) -> Waiting {
    let data = parsed(&facts.instance.data);
    let wait = &data["wait"];
    let late = wait["late"]
        .as_u64()
        .and_then(|late| u32::try_from(late).ok());
    let swarm = (0..wait["swarm"].as_u64().unwrap_or(0)).map(|number| Child {
        key: "subflows".into(),
        entity_type: "errand".into(),
        entity_id: format!("{}/{number}", facts.instance.entity_id),
        data: facts.instance.data.clone(),
        on_end: Some("ENDED".into()),
        detached: false,
    });
    let children = wait["children"].as_array().into_iter().flatten();
    Waiting {
        deadlines: late
            .map(|late| Deadline {
                when: Due::After(late),
                since: Since::Created,
                repeat: None,
                action: match wait["cancel"].as_str() {
                    Some(reason) => OverdueAction::Cancel(reason.into()),
                    None => OverdueAction::Fire("LATE".into()),
                },
            })
            .into_iter()
            .collect(),
        subscriptions: subscriptions(wait),
        children: children.map(child).chain(swarm).collect(),
    }
}

fn asking(facts: &Snapshot) -> ServiceCall {
    let data = parsed(&facts.instance.data);
    let ask = &data["ask"];
    let seconds = |value: &Value| u32::try_from(value.as_u64()?).ok();
    let retries = ask["retries"].as_array().into_iter().flatten();
    let late = seconds(&ask["late"]).map(|late| Deadline {
        when: Due::After(late),
        since: Since::Created,
        repeat: None,
        action: OverdueAction::Fire("LATE".into()),
    });
    ServiceCall {
        service: ask["service"].as_str().unwrap_or("machine").into(),
        request: json!({ "about": facts.instance.entity_id }).to_string(),
        timeout: seconds(&ask["timeout"]).unwrap_or(5),
        retries: retries.filter_map(seconds).collect(),
        on_reply: "ANSWERED".into(),
        on_failure: "UNANSWERED".into(),
        deadlines: late.into_iter().collect(),
        subscriptions: subscriptions(ask),
    }
}

fn names(list: &Value) -> impl Iterator<Item = String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|name| name.as_str().map(str::to_owned))
}

/// The subscriptions of `subscriptions`. A `correlation` or `bufferSignals` beside them applies to every signal of the wait
/// state.
fn subscriptions(of: &Value) -> Vec<SignalSubscription> {
    let named = of["subscriptions"].as_array().into_iter().flatten();
    let named = named.cloned();
    let all = ["PAID", "LEAVE"].map(|trigger| {
        json!({ "trigger": trigger, "correlation": of["correlation"], "buffered": of["bufferSignals"] })
    });
    let says = of["correlation"].is_string() || of["bufferSignals"] == true;
    let subscription = |one: Value| SignalSubscription {
        trigger: one["trigger"].as_str().unwrap_or_default().into(),
        correlation: one["correlation"].as_str().map(str::to_owned),
        buffered: one["buffered"] == true,
    };
    named
        .chain(all.into_iter().filter(|_| says))
        .map(subscription)
        .collect()
}

fn child(child: &Value) -> Child {
    let text = |name: &str| child[name].as_str().map(str::to_owned);
    Child {
        key: text("key").unwrap_or_else(|| "subflows".into()),
        entity_type: "errand".into(),
        entity_id: text("entity").unwrap_or_default(),
        data: child["data"].to_string(),
        on_end: text("onEnd"),
        detached: child["detached"] == true,
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("the host sends JSON")
}
