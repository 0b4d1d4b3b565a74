//! A vote among the people that the instance's data names.
//!
//! `assign` in the data is the assignment of `Vote`: `{"offers": [{"users": [], "groups": [], "managersOf": [],
//! "from": "a member of the data that names a user", "owner": "", "eachMember": "a group", "retain": false, "allocation": "round-robin or
//! least-loaded", "label": "", "deadlines": []}], "needed": 1, or a part such as {"atLeast": [2, 3]} or {"moreThan": [1, 2]}, "exclude": [],
//! "fallback": "", "priority": 0, "blind": false, "deadlines": [{"after": 60, "days": 7, "working": "a calendar",
//! "every": 60, "since": "claim", "do": "remind, release, escalate, cancel or a trigger"}]}`, with `days` instead of `after`
//! for working days. An escalation uses `overdue` instead of `assign`, and MORE uses `reoffer`.
//!
//! The vote ends with `Approved` once `needed` people have decided YES. It ends with `Rejected` once too few votes are left, by a
//! decision whose comment is the data's `veto`, or when a deadline fires LATE, unless the data has `patient`. With `"noted": true` each
//! plan has a note with the count. Every vote is refused with `complaints` violations.
//!
//! Its config makes different versions: `{"state": "another name of Vote", "group": "who votes, whatever the data says",
//! "requires": "a member that the data must have", "instanceTitle": "a template", "instanceSummary": "another",
//! "priorities": [{"name": "urgent", "atLeast": 100}], "observers": ["a group that sees instances besides participants"],
//! "calendars": ["a calendar that deadlines name"]}`. An input may have `data`, a patch of the data.
//!
//! With `"advice": true` in the config, ASK begins `Advice` beside the vote, with the assignment `advice` of the data. The next ASK
//! cancels it. GIVEN ends it.

mod bindings;

use bindings::exports::wrkflw::flow::logic::Guest;
use bindings::wrkflw::flow::types::{
    Actor, Allocation, Assignment, CommentRule, Deadline, Definition, Due, Entry, EntryCause,
    Event, EventSource, FiredBy, Fraction, Join, NameUse, Needed, Next, Note, Offer, OverdueAction,
    Plan, Principal, PriorityName, Reads, Reason, Refusal, Since, Snapshot, State, StateKind,
    Target, TaskStatus, Transition, Violation, Visibility, Work, WorkingDays, WorkingTime,
};
use serde_json::{Value, json};

struct Committee;

// Native linkers reject the export names of components, so a native build only checks this crate.
#[cfg(target_arch = "wasm32")]
bindings::export!(Committee with_types_in bindings);
#[cfg(not(target_arch = "wasm32"))]
const _: () = is_guest::<Committee>();
#[cfg(not(target_arch = "wasm32"))]
const fn is_guest<T: Guest>() {}

const APPROVED: &str = "Approved";
const REJECTED: &str = "Rejected";
const ADVICE: &str = "Advice";

impl Guest for Committee {
    fn describe(config: String) -> Result<Definition, Vec<Violation>> {
        let state = |name: &str, title: &str, kind| State {
            name: name.into(),
            title: title.into(),
            description: format!("{title}: what is done."),
            kind,
            join: Join::None,
            own_work: false,
            extensions: vec![],
        };
        let settings = settings(&config);
        let vote = settings["state"].as_str().unwrap_or("Vote");
        let required: Vec<_> = [Some("assign"), settings["requires"].as_str()]
            .into_iter()
            .flatten()
            .collect();
        let way = |trigger: &str, by| {
            let told = &settings["transitions"][trigger];
            let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
            Transition {
                source: vote.into(),
                trigger: trigger.into(),
                targets: vec![APPROVED.into(), REJECTED.into()],
                by,
                permission: told["permission"].as_str().map(str::to_owned),
                title: text("title"),
                description: text("description"),
                condition: text("condition"),
                input: told.get("input").map(Value::to_string),
                comment: match told["comment"].as_str() {
                    Some("required") => CommentRule::Required,
                    Some("none") => CommentRule::None,
                    _ => CommentRule::Optional,
                },
                extensions: vec![],
            }
        };
        let template = |name: &str| settings[name].as_str().map(str::to_owned);
        let mut definition = Definition {
            title: "Committee".into(),
            description: "A vote among people.".into(),
            instance_title: template("instanceTitle"),
            instance_summary: template("instanceSummary"),
            priorities: priorities(&settings["priorities"]),
            initial: vote.into(),
            initiators: vec![],
            states: vec![
                state(vote, "The vote", StateKind::Task),
                state(APPROVED, APPROVED, StateKind::Terminal("APPROVED".into())),
                state(REJECTED, REJECTED, StateKind::Terminal("REJECTED".into())),
            ],
            transitions: vec![
                way("YES", FiredBy::DECISION),
                way("NO", FiredBy::DECISION),
                way("LATE", FiredBy::DEADLINE),
                way("MORE", FiredBy::DECISION),
            ],
            separate: vec![],
            requires: vec![],
            extensions: vec![],
            reads: Reads::empty(),
            sole_per_entity: false,
            visibility: visibility(&settings["observers"]),
            uses: calendars(&settings["calendars"]),
            data_schema: Some(json!({ "type": "object", "required": required }).to_string()),
            attributes: vec![],
        };
        if settings["advice"] == true {
            add_advice(&mut definition);
        }
        Ok(definition)
    }

    fn start(_facts: Snapshot, _by: Actor) -> Result<(), Refusal> {
        Ok(())
    }

    fn transition(facts: Snapshot, event: Event) -> Result<Plan, Refusal> {
        let complaints = data(&facts)["complaints"].as_u64();
        if let (EventSource::Task(_), Some(count)) = (&event.source, complaints) {
            let complaint = |number| Violation {
                field: format!("/input/{number}"),
                code: "unwanted".into(),
                message: "x".repeat(1_000),
            };
            return Err(Refusal::Invalid((0..count).map(complaint).collect()));
        }
        let state_instance = &facts.active[0];
        if let Some(plan) = about_advice(&facts, &event.trigger) {
            return Ok(plan);
        }
        let voting = match &event.source {
            EventSource::Task(voting) if is_veto(&facts, voting.comment.as_deref()) => {
                return Ok(enter(Some(REJECTED)));
            }
            EventSource::Task(voting) => voting.task.as_str(),
            EventSource::Deadline(_) if data(&facts)["patient"] == true => {
                return Err(Refusal::NotNow(Reason {
                    code: "patient".into(),
                    message: "The vote takes as long as it takes.".into(),
                }));
            }
            EventSource::Deadline(_) => return Ok(enter(Some(REJECTED))),
            _ => unreachable!("only decisions and deadlines fire here"),
        };
        let decisions = state_instance
            .tasks
            .iter()
            .filter_map(|task| task.decision.as_ref());
        let yes = decisions.filter(|decision| decision.outcome == "YES");
        let yes = yes.count() + usize::from(event.trigger == "YES");
        let open = state_instance.tasks.iter().filter(|task| {
            matches!(task.status, TaskStatus::Pending | TaskStatus::Claimed) && task.id != voting
        });
        let needed = usize::try_from(state_instance.needed).expect("a small number");
        let input: Value = serde_json::from_str(&event.input).expect("the host sends JSON");
        let data = input.get("data").map(Value::to_string);
        if event.trigger == "MORE" {
            return Ok(Plan {
                next: Next::Reoffer,
                data,
                ..enter(None)
            });
        }
        let plan = enter(if yes >= needed {
            Some(APPROVED)
        } else if yes + open.count() < needed {
            Some(REJECTED)
        } else {
            None
        });
        let notes = if self::data(&facts)["noted"] == true {
            vec![Note {
                code: "counted".into(),
                message: format!("{yes} of {needed}"),
                detail: Some(json!({ "yes": yes }).to_string()),
            }]
        } else {
            vec![]
        };
        Ok(Plan {
            data,
            notes,
            ..plan
        })
    }

    fn enter(facts: Snapshot, entries: Vec<Entry>) -> Result<Vec<Work>, Refusal> {
        let work = |entry: &Entry| Work::Task(assignment(&facts, entry));
        Ok(entries.iter().map(work).collect())
    }
}

/// Adds the state `Advice`. Its transitions are copies of the first one of the vote.
fn add_advice(definition: &mut Definition) {
    let advice = State {
        name: ADVICE.into(),
        title: ADVICE.into(),
        ..definition.states[0].clone()
    };
    let asked = Transition {
        trigger: "ASK".into(),
        targets: vec![ADVICE.into()],
        ..definition.transitions[0].clone()
    };
    let given = Transition {
        source: ADVICE.into(),
        trigger: "GIVEN".into(),
        ..definition.transitions[0].clone()
    };
    definition.states.push(advice);
    definition.transitions.extend([asked, given]);
}

fn about_advice(facts: &Snapshot, trigger: &str) -> Option<Plan> {
    let begun = facts.active[1..].iter().map(|one| one.id.clone());
    let begun: Vec<_> = begun.collect();
    let target = || Target {
        name: ADVICE.into(),
        key: None,
        data: None,
    };
    let (next, cancel) = match trigger {
        "ASK" if begun.is_empty() => (Next::Spawn(vec![target()]), vec![]),
        "ASK" => (Next::Stay, begun),
        "GIVEN" => (Next::EndBranch, vec![]),
        _ => return None,
    };
    Some(Plan {
        next,
        cancel,
        ..enter(None)
    })
}

fn assignment(facts: &Snapshot, entry: &Entry) -> Assignment {
    let data = data(facts);
    let assign = match entry.cause {
        _ if entry.state == ADVICE => &data["advice"],
        EntryCause::Overdue(_) => &data["overdue"],
        EntryCause::Entered | EntryCause::Migrated => &data["assign"],
        EntryCause::Reoffered => &data["reoffer"],
    };
    let settings = settings(&facts.config);
    let group = settings["group"].as_str();
    let number = |name: &str| assign[name].as_u64().unwrap_or(0);
    let offers = assign["offers"].as_array();
    Assignment {
        offers: offers
            .into_iter()
            .flatten()
            .map(|one| match group {
                Some(group) => offer(&in_group(one, group), &data),
                None => offer(one, &data),
            })
            .collect(),
        needed: needed(&assign["needed"]),
        exclude: texts(&assign["exclude"]),
        fallback: assign["fallback"].as_str().map(str::to_owned),
        priority: u8::try_from(number("priority")).expect("a small number"),
        deadlines: deadlines(&assign["deadlines"]),
        subscriptions: vec![],
        blind: assign["blind"] == true,
        extensions: vec![],
    }
}

fn visibility(observers: &Value) -> Visibility {
    match observers {
        Value::Array(_) => Visibility::Participants(texts(observers)),
        _ => Visibility::Tenant,
    }
}

fn priorities(list: &Value) -> Vec<PriorityName> {
    let priority = |one: &Value| PriorityName {
        name: one["name"].as_str().expect("a name").to_owned(),
        at_least: one["atLeast"]
            .as_u64()
            .and_then(|number| u8::try_from(number).ok())
            .expect("a small number"),
    };
    let list = list.as_array().into_iter().flatten();
    list.map(priority).collect()
}

fn needed(needed: &Value) -> Needed {
    let number =
        |value: &Value| u32::try_from(value.as_u64().unwrap_or(0)).expect("a small number");
    let fraction = |part: &Value| Fraction {
        numerator: number(&part[0]),
        denominator: number(&part[1]),
    };
    if let Some(part) = needed.get("atLeast") {
        Needed::AtLeast(fraction(part))
    } else if let Some(part) = needed.get("moreThan") {
        Needed::MoreThan(fraction(part))
    } else {
        Needed::Count(number(needed))
    }
}

fn settings(config: &str) -> Value {
    serde_json::from_str(config).expect("the host sends JSON")
}

/// An offer with the same label to this group only.
fn in_group(offer: &Value, group: &str) -> Value {
    let mut moved = json!({ "groups": [group] });
    if let Some(label) = offer.get("label") {
        moved["label"] = label.clone();
    }
    moved
}

fn is_veto(facts: &Snapshot, comment: Option<&str>) -> bool {
    comment.is_some_and(|comment| data(facts)["veto"] == comment)
}

fn data(facts: &Snapshot) -> Value {
    serde_json::from_str(&facts.instance.data).expect("the host sends JSON")
}

fn enter(state: Option<&str>) -> Plan {
    Plan {
        next: state.map_or(Next::Stay, |state| {
            Next::Enter(vec![Target {
                name: state.into(),
                key: None,
                data: None,
            }])
        }),
        cancel: vec![],
        data: None,
        attributes: vec![],
        publish: vec![],
        notes: vec![],
        extensions: vec![],
    }
}

fn calendars(list: &Value) -> Vec<NameUse> {
    let names = list.as_array().into_iter().flatten();
    let names = names.filter_map(|name| name.as_str().map(str::to_owned));
    names.map(NameUse::Calendar).collect()
}

fn deadlines(list: &Value) -> Vec<Deadline> {
    let seconds = |value: &Value| {
        let number = value.as_u64()?;
        Some(u32::try_from(number).expect("a small number"))
    };
    let deadline = |one: &Value| {
        let days = seconds(&one["days"]);
        let after = seconds(&one["after"]).or(days);
        let after = after.expect("a deadline says when");
        Deadline {
            when: match one["working"].as_str() {
                Some(calendar) if days.is_some() => Due::WorkingDays(WorkingDays {
                    days: after,
                    calendar: calendar.into(),
                }),
                Some(calendar) => Due::Working(WorkingTime {
                    time: after,
                    calendar: calendar.into(),
                }),
                None => Due::After(after),
            },
            since: match one["since"].as_str() {
                Some("claim") => Since::Claimed,
                _ => Since::Created,
            },
            repeat: seconds(&one["every"]),
            action: match one["do"].as_str().expect("a deadline does something") {
                "remind" => OverdueAction::Remind,
                "release" => OverdueAction::Release,
                "escalate" => OverdueAction::Escalate,
                "cancel" => OverdueAction::Cancel("the time is over".into()),
                trigger => OverdueAction::Fire(trigger.into()),
            },
        }
    };
    list.as_array()
        .into_iter()
        .flatten()
        .map(deadline)
        .collect()
}

fn offer(offer: &Value, data: &Value) -> Offer {
    let from = offer["from"].as_str().and_then(|name| data[name].as_str());
    let users = texts(&offer["users"]).into_iter();
    let users = users.chain(from.map(str::to_owned)).map(Principal::User);
    let groups = texts(&offer["groups"]).into_iter().map(Principal::Group);
    let managers = texts(&offer["managersOf"]).into_iter();
    Offer {
        label: offer["label"].as_str().unwrap_or("vote").into(),
        candidates: users
            .chain(groups)
            .chain(managers.map(Principal::ManagerOf))
            .collect(),
        owner: offer["owner"].as_str().map(str::to_owned),
        each_member: offer["eachMember"].as_str().map(str::to_owned),
        retain: offer["retain"] == true,
        allocation: match offer["allocation"].as_str() {
            Some("round-robin") => Allocation::RoundRobin,
            Some("least-loaded") => Allocation::LeastLoaded,
            _ => Allocation::Offered,
        },
        deadlines: deadlines(&offer["deadlines"]),
        extensions: vec![],
    }
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
