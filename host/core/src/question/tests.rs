//! The audit keeps answers as JSON, and a replay compares them. So their JSON never changes.

use super::*;
use crate::answer::{
    Allocation, Assignment, Attribute, AttributeValue, Child, Deadline, Due, Next, Note, Offer,
    OverdueAction, Principal, PublishedEvent, Reason, ServiceCall, Share, SignalSubscription,
    Since, Target, Violation, Waiting,
};

const RECORDED: &str = include_str!("recorded.jsonl");

fn at() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("an instant")
}

fn plan(next: Next) -> Plan {
    let values = [
        Some(AttributeValue::Text("a".into())),
        Some(AttributeValue::Boolean(true)),
        Some(AttributeValue::Decimal("1.50".into())),
        Some(AttributeValue::Float(0.5)),
        Some(AttributeValue::Timestamp(at())),
        Some(AttributeValue::Bytes(vec![1, 2])),
        None,
    ];
    let attribute = |value| Attribute {
        name: "size".into(),
        value,
    };
    Plan {
        next,
        cancel: vec!["x".into()],
        data: Some("{}".into()),
        attributes: values.map(attribute).into(),
        publish: vec![PublishedEvent {
            name: "bought".into(),
            data: "{}".into(),
        }],
        notes: vec![
            Note {
                code: "small".into(),
                message: "It is small.".into(),
                detail: Some(Json::parse(r#"{"row":2}"#).expect("JSON")),
            },
            Note {
                code: "plain".into(),
                message: "It is plain.".into(),
                detail: None,
            },
        ],
    }
}

fn subscription(trigger: &str, correlation: Option<&str>) -> SignalSubscription {
    SignalSubscription {
        trigger: trigger.into(),
        correlation: correlation.map(str::to_owned),
        buffered: true,
    }
}

fn call(deadlines: Vec<Deadline>, subscription: SignalSubscription) -> ServiceCall {
    ServiceCall {
        service: "scorer".into(),
        request: "{}".into(),
        timeout: 30,
        retries: vec![10, 60],
        on_reply: "SCORED".into(),
        on_failure: "UNSCORED".into(),
        deadlines,
        subscriptions: vec![subscription],
    }
}

fn waiting(deadlines: Vec<Deadline>, subscription: SignalSubscription) -> Waiting {
    Waiting {
        deadlines,
        subscriptions: vec![subscription],
        children: vec![Child {
            key: "audit".into(),
            entity_type: "order".into(),
            entity_id: "7".into(),
            data: "{}".into(),
            on_end: Some("AUDITED".into()),
            detached: false,
        }],
    }
}

fn works() -> Vec<Work> {
    let deadline = |when, action| Deadline {
        when,
        since: Since::Claimed,
        repeat: Some(5),
        action,
    };
    let deadlines = vec![
        deadline(Due::After(60), OverdueAction::Remind),
        deadline(Due::At(at()), OverdueAction::Escalate),
        deadline(Due::After(1), OverdueAction::Release),
        deadline(
            Due::Working {
                seconds: 60,
                calendar: "office".into(),
            },
            OverdueAction::Fire("LATE".into()),
        ),
        deadline(
            Due::WorkingDays {
                days: 7,
                calendar: "office".into(),
            },
            OverdueAction::Cancel("no receipts".into()),
        ),
    ];
    let assignment = Assignment {
        offers: vec![Offer {
            label: "Legal".into(),
            candidates: vec![
                Principal::User("ann".into()),
                Principal::Group("legal".into()),
                Principal::ManagerOf("bob".into()),
                Principal::Member {
                    person: "cid".into(),
                    group: "legal".into(),
                },
            ],
            owner: Some("ann".into()),
            each_member: Some("board".into()),
            retain: true,
            allocation: Allocation::LeastLoaded,
            deadlines: vec![],
        }],
        needed: 2,
        share: Some(Share {
            numerator: 1,
            denominator: 2,
            exceeded: true,
        }),
        exclude: vec!["kim".into()],
        fallback: Some("office".into()),
        priority: 3,
        deadlines: deadlines.clone(),
        subscriptions: vec![subscription("WITHDRAW", None)],
        blind: true,
    };
    let call = call(deadlines.clone(), subscription("WITHDRAW", None));
    vec![
        Work::Task(assignment),
        Work::Service(call),
        Work::Wait(waiting(deadlines, subscription("PAID", Some("order 7")))),
    ]
}

fn answers() -> Vec<Answer> {
    let reason = || Reason {
        code: "too_dear".into(),
        message: "It is too dear.".into(),
    };
    let violation = Violation {
        expected: None,
        field: "/amount".into(),
        code: "too_large".into(),
        message: "At most 10.".into(),
    };
    let refusals = [
        Refusal::Denied(reason()),
        Refusal::NotNow(reason()),
        Refusal::Invalid(vec![violation]),
        Refusal::Fault(reason()),
    ];
    let plans = [
        Next::Stay,
        Next::Reoffer,
        Next::Enter(vec![Target::new("Review")]),
        Next::Spawn(vec![Target {
            key: Some("line 1".into()),
            data: Some(r#"{"amount":1.50}"#.into()),
            ..Target::new("Check")
        }]),
        Next::EndBranch,
    ]
    .map(plan);
    let mut answers = vec![Answer::Start(Ok(())), Answer::Enter(Ok(works()))];
    answers.extend(refusals.map(|refusal| Answer::Start(Err(refusal))));
    answers.extend(plans.map(|plan| Answer::Transition(Ok(plan))));
    answers
}

/// If this test fails, commands that were recorded before cannot be proven any more: keep the JSON by attributes of serde.
#[test]
fn what_the_audit_keeps_is_the_same_in_every_release() {
    let answers = answers().into_iter();
    let now: Vec<_> = answers.map(|one| Json::of(&one).to_string()).collect();
    let recorded: Vec<_> = RECORDED.lines().collect();
    assert_eq!(now, recorded, "now:\n{}", now.join("\n"));
}
