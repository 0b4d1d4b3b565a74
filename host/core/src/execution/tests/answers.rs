//! Invalid answers of flow logic, and the messages for its author.

use super::script::{Script, end_branch, enter, fault, offers};
use crate::answer::{
    Assignment, Attribute, AttributeValue, Deadline, Due, Note, Offer, OverdueAction, Plan,
    Principal, PublishedEvent, Reason, Refusal, Since, Violation,
};
use crate::execution::ExecutionError;
use crate::json::Json;

/// The fault of a plan that answers the decision in `Review`.
#[track_caller]
fn planned(plan: Plan) -> String {
    fault(
        Script::new()
            .claimed()
            .planning(move |_, _| Ok(plan.clone()))
            .go(),
    )
}

/// The fault of an assignment that answers for `Review`, at the start.
#[track_caller]
fn assigned(assignment: Assignment) -> String {
    let mut script = Script::new().assigning(move |_| assignment.clone());
    fault(script.run("ann", &super::script::start()))
}

fn with(change: impl FnOnce(&mut Plan)) -> Plan {
    let mut plan = enter(&["Done"]);
    change(&mut plan);
    plan
}

fn note(code: &str, message: &str) -> Note {
    Note {
        code: code.into(),
        message: message.into(),
        detail: None,
    }
}

/// A note with a detail of so many bytes.
fn detailed(bytes: usize) -> Note {
    let detail = Json::of(&"x".repeat(bytes - 2));
    assert_eq!(detail.as_str().len(), bytes);
    Note {
        detail: Some(detail),
        ..note("row", "It applies.")
    }
}

fn offering(change: impl FnOnce(&mut Assignment, &mut Offer)) -> Assignment {
    let mut assignment = offers(&["crew"]);
    let mut offer = assignment.offers.remove(0);
    change(&mut assignment, &mut offer);
    assignment.offers.insert(0, offer);
    assignment
}

fn attribute(name: &str, value: AttributeValue) -> Plan {
    with(|plan| {
        plan.attributes.push(Attribute {
            name: name.into(),
            value: Some(value),
        });
    })
}

fn published(name: &str, data: &str) -> Plan {
    with(|plan| {
        plan.publish.push(PublishedEvent {
            name: name.into(),
            data: data.into(),
        });
    })
}

#[test]
fn plans_enter_what_was_declared() {
    for (plan, message) in [
        (
            enter(&["Unreached"]),
            "Review on GO may lead to Review, Other, Rework, Hop, Done, not to \"Unreached\"",
        ),
        (enter(&["Nowhere"]), "not to \"Nowhere\""),
        (
            enter(&["Done", "Done"]),
            "a plan must not enter a state twice",
        ),
        (
            end_branch(),
            "Review ends the last branch without an outcome",
        ),
        (
            enter(&[]),
            "Review enters no state; a branch ends with `end-branch`",
        ),
        (
            Plan::default(),
            "Review goes on with nothing left that could move it",
        ),
        (
            with(|plan| plan.cancel.push("7".into())),
            "\"7\" is no other active or waiting state",
        ),
    ] {
        let fault = planned(plan);
        assert!(
            fault.starts_with("transition: ") && fault.ends_with(message),
            "{fault}"
        );
    }
}

/// The plan is a fault with this message.
#[track_caller]
fn faulty(plan: Plan, message: &str) {
    let fault = planned(plan);
    let expected = format!("transition: {message}");
    assert!(fault.starts_with(&expected), "{fault}");
}

#[test]
fn notes_are_bounded() {
    for (plan, message) in [
        (
            with(|plan| plan.notes = vec![note("row", "It applies."); 33]),
            "a plan carries at most 64 attributes and 32 notes",
        ),
        (
            with(|plan| plan.notes.push(note("row", &"x".repeat(2_001)))),
            "the message of a note is longer than 2000 bytes",
        ),
        (
            with(|plan| plan.notes.push(note("", "It applies."))),
            "the code of a note is empty",
        ),
        (
            with(|plan| plan.notes.push(note(&"x".repeat(201), "It applies."))),
            "the code of a note is longer than 200 bytes",
        ),
        (
            with(|plan| plan.notes.push(detailed(4_097))),
            "the detail of the note \"row\" is longer than 4096 bytes",
        ),
    ] {
        faulty(plan, message);
    }
}

#[test]
fn effects_are_of_the_declared_kinds() {
    let text = |text: &str| AttributeValue::Text(text.into());
    let many = vec![
        PublishedEvent {
            name: "a".into(),
            data: "{}".into()
        };
        33
    ];
    for (plan, message) in [
        (
            attribute("colour", text("red")),
            "the attribute \"colour\" is not declared",
        ),
        (
            attribute("title", AttributeValue::Boolean(true)),
            "the attribute title is no Text that can be kept",
        ),
        (
            attribute("title", text(&"x".repeat(2_001))),
            "the attribute title is no Text that can be kept",
        ),
        (
            attribute("price", AttributeValue::Decimal("1e9".into())),
            "the attribute price is no Decimal that can be kept",
        ),
        (
            attribute("price", AttributeValue::Float(1.0)),
            "the attribute price is no Decimal that can be kept",
        ),
        (
            with(|plan| plan.data = Some(r#"{"title":7}"#.into())),
            "the data no longer satisfies the flow's own schema: ",
        ),
        (
            with(|plan| plan.data = Some(r#"{"title":null}"#.into())),
            "the data no longer satisfies the flow's own schema: ",
        ),
        (
            with(|plan| plan.data = Some("{".into())),
            "the data patch has the text ends too early",
        ),
        (
            with(|plan| plan.data = Some(format!("{{\"x\":{:?}}}", "y".repeat(65_536)))),
            "the data grows beyond 65536 bytes",
        ),
        (published("Paid", "{}"), "an event's name is 1 to 64 of a-z"),
        (
            published("paid", "{"),
            "the data of event paid has the text ends too early",
        ),
        (
            with(|plan| plan.publish = many.clone()),
            "a plan publishes at most 32 events",
        ),
    ] {
        faulty(plan, message);
    }
}

#[test]
fn no_text_holds_a_nul() {
    let nul = || "a\0b".to_owned();
    for plan in [
        with(|plan| plan.notes.push(note(&nul(), "It applies."))),
        with(|plan| plan.notes.push(note("row", &nul()))),
        with(|plan| plan.data = Some(r#"{"title":"a\u0000b"}"#.into())),
        attribute("title", AttributeValue::Text(nul())),
        published("paid", r#"{"a":"\u0000"}"#),
        published("pa\0id", "{}"),
        enter(&["Do\0ne"]),
    ] {
        let shown = format!("{plan:?}");
        assert!(!planned(plan).contains('\0'), "{shown}");
    }
    for assignment in [
        offering(|_, offer| offer.label = nul()),
        offering(|_, offer| offer.candidates = vec![Principal::User(nul())]),
        offering(|_, offer| offer.owner = Some(nul())),
        offering(|assignment, _| assignment.exclude.push(nul())),
        offering(|assignment, _| assignment.fallback = Some(nul())),
    ] {
        let shown = format!("{assignment:?}");
        assert!(!assigned(assignment).contains('\0'), "{shown}");
    }
    let reason = move || Reason {
        code: "no".into(),
        message: nul(),
    };
    let mut denied = Script::new()
        .claimed()
        .guarding(move |_| Err(Refusal::Denied(reason())));
    assert_eq!(
        fault(denied.go()),
        "transition: the message of a reason contains the character NUL"
    );
    let mut refused = Script::new()
        .claimed()
        .planning(move |_, _| Err(Refusal::NotNow(reason())));
    assert_eq!(
        fault(refused.go()),
        "transition: the message of a reason contains the character NUL"
    );
}

#[test]
fn ids_have_one_spelling() {
    let other = || "Rene\u{301}".to_owned();
    for assignment in [
        offering(|_, offer| offer.candidates = vec![Principal::User(other())]),
        offering(|_, offer| offer.owner = Some(other())),
        offering(|assignment, _| assignment.exclude.push(other())),
        offering(|assignment, _| assignment.fallback = Some(other())),
    ] {
        let message = assigned(assignment);
        assert!(message.contains("normal form C"), "{message}");
    }
    let same = offering(|_, offer| offer.candidates = vec![Principal::User("Ren\u{e9}".into())]);
    let mut script = Script::new().assigning(move |_| same.clone());
    script.run("ann", &super::script::start()).expect("a start");
}

#[test]
fn verdicts_say_something() {
    let at = |field: &str, code: &str| Violation {
        expected: None,
        field: field.into(),
        code: code.into(),
        message: "m".into(),
    };
    let violation = |code| at("/data/a", code);
    let elsewhere = |field| {
        let says = "transition: the field of a violation is a JSON Pointer into the request, which begins with one of /data, \
                    /input, /comment; `FIELD` does not";
        (
            Err(Refusal::Invalid(vec![violation("c"), at(field, "c")])),
            says.replace("FIELD", field),
        )
    };
    let verdicts = [
        elsewhere("/a"),
        elsewhere("data/a"),
        elsewhere("/database"),
        elsewhere("/comments"),
        (
            Err(Refusal::Invalid(vec![])),
            "transition: a refusal as invalid names 1 to 100 fields, not 0".to_owned(),
        ),
        (
            Err(Refusal::Invalid(vec![violation("c"); 101])),
            "transition: a refusal as invalid names 1 to 100 fields, not 101".to_owned(),
        ),
        (
            Err(Refusal::Invalid(vec![violation("")])),
            "transition: the code of a violation is empty".to_owned(),
        ),
        (
            Err(Refusal::Denied(Reason {
                code: String::new(),
                message: "m".into(),
            })),
            "transition: the code of a reason is empty".to_owned(),
        ),
        (
            Err(Refusal::Denied(Reason {
                code: "c".into(),
                message: "m".repeat(2_001),
            })),
            "transition: the message of a reason is longer than 2000 bytes".to_owned(),
        ),
    ];
    for (verdict, message) in verdicts {
        let mut script = Script::new().claimed().guarding(move |_| verdict.clone());
        assert_eq!(fault(script.go()), message);
    }
    for field in ["", "/data", "/data/a/0", "/input/a~1b", "/comment"] {
        let refused = Err(Refusal::Invalid(vec![at(field, "c")]));
        let mut script = Script::new().claimed().guarding(move |_| refused.clone());
        let refusal = script.go().expect_err("refused");
        assert!(
            matches!(refusal, ExecutionError::Rejected(_)),
            "{field}: {refusal:?}"
        );
    }
}

#[test]
fn assignments_find_somebody_who_may() {
    for (assignment, message) in [
        (
            offers(&["crew"; 201]),
            "Review may have 200 offers at most, not 201",
        ),
        (
            offering(|assignment, _| assignment.needed = 2),
            "Review needs 2 decisions and offers 1 task besides",
        ),
        (
            offering(|_, offer| offer.candidates = vec![Principal::User("bob".into()); 201]),
            "an offer in Review names 200 candidates at most",
        ),
        (
            offering(|_, offer| offer.candidates = vec![Principal::Group(String::new())]),
            "a candidate is empty",
        ),
        (
            offering(|_, offer| offer.owner = Some("ann".into())),
            "Review is given to ann, who must not decide there",
        ),
        (
            offering(|assignment, offer| {
                assignment.exclude.push("bob".into());
                offer.owner = Some("bob".into());
            }),
            "Review is given to bob, who must not decide there",
        ),
    ] {
        let fault = assigned(assignment);
        assert!(fault.starts_with(&format!("enter: {message}")), "{fault}");
    }
}

#[test]
fn deadlines_can_be_kept() {
    let deadline = |repeat, action| Deadline {
        when: Due::After(60),
        since: Since::Created,
        repeat,
        action,
    };
    let remind = || deadline(None, OverdueAction::Remind);
    let fire = |trigger: &str| deadline(None, OverdueAction::Fire(trigger.into()));
    for (assignment, message) in [
        (
            offering(|_, offer| offer.deadlines = vec![remind(); 17]),
            "Review has more than 16 deadlines in one place",
        ),
        (
            offering(|assignment, _| assignment.deadlines = vec![remind(); 17]),
            "Review has more than 16 deadlines in one place",
        ),
        (
            offering(|assignment, _| {
                assignment.deadlines = vec![deadline(Some(59), OverdueAction::Remind)];
            }),
            "a deadline of Review repeats more often than every 60 seconds",
        ),
        (
            offering(|_, offer| offer.deadlines = vec![fire("LATE")]),
            "a deadline of Review fires \"LATE\", which is declared for no deadline there",
        ),
        (
            offering(|assignment, _| assignment.deadlines = vec![fire("GO")]),
            "a deadline of Review fires \"GO\", which is declared for no deadline there",
        ),
    ] {
        assert_eq!(assigned(assignment), format!("enter: {message}"));
    }
}

#[test]
fn own_work_is_offered_to_the_initiator_alone() {
    let user = |id: &str| vec![Principal::User(id.into())];
    for (candidates, owner) in [
        (vec![Principal::Group("crew".into())], None),
        (user("bob"), None),
        ([user("ann"), user("bob")].concat(), None),
        (user("ann"), Some("bob")),
        (vec![], Some("bob")),
    ] {
        let assign = move |state: &str| {
            let change = |_: &mut Assignment, offer: &mut Offer| {
                if state == "Rework" {
                    offer.candidates.clone_from(&candidates);
                    offer.owner = owner.map(str::to_owned);
                }
            };
            offering(change)
        };
        let mut script = Script::new()
            .assigning(assign)
            .planning(|_, _| Ok(enter(&["Rework"])))
            .claimed();
        assert_eq!(
            fault(script.go()),
            "enter: Rework is the initiator's own work and is offered to somebody else"
        );
    }
}
