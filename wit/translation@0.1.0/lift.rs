//! Converts a guest's answers to the types of the core. The core checks whether they make sense. This file checks the form: text
//! that can be stored, and valid instants and numbers.

use jiff::Timestamp;

use super::lower;
use super::types;
use wrkflw_core::answer::{
    Allocation, Assignment, Attribute, AttributeValue, Child, Deadline, Due, Next, Note, Offer,
    OverdueAction, Plan, Principal, PublishedEvent, Reason, Refusal, ServiceCall, Share,
    SignalSubscription, Since, Target, Violation, Waiting, Work,
};
use wrkflw_core::json::Json;
use wrkflw_core::moment;
use wrkflw_core::search;

/// The longest part of a refused value that an error repeats.
const QUOTED_CHARS_MAX: usize = 60;

/// The error: what is malformed, and where.
pub(crate) type Lifted<T> = Result<T, String>;

/// An answer or a refusal.
pub(crate) fn result<A, B>(
    answer: Result<A, types::Refusal>,
    convert: impl FnOnce(A) -> Lifted<B>,
) -> Lifted<Result<B, Refusal>> {
    match answer {
        Ok(answer) => convert(answer).map(Ok),
        Err(refused) => refusal(refused).map(Err),
    }
}

pub(crate) fn refusal(refusal: types::Refusal) -> Lifted<Refusal> {
    Ok(match refusal {
        types::Refusal::Denied(because) => Refusal::Denied(reason(because)?),
        types::Refusal::NotNow(because) => Refusal::NotNow(reason(because)?),
        types::Refusal::Invalid(found) => Refusal::Invalid(each(found, violation)?),
        types::Refusal::Fault(because) => Refusal::Fault(reason(because)?),
    })
}

fn reason(reason: types::Reason) -> Lifted<Reason> {
    Ok(Reason {
        code: text("a reason's code", reason.code)?,
        message: text("a reason's message", reason.message)?,
    })
}

fn violation(violation: types::Violation) -> Lifted<Violation> {
    Ok(Violation {
        expected: None,
        field: text("a violation's field", violation.field)?,
        code: text("a violation's code", violation.code)?,
        message: text("a violation's message", violation.message)?,
    })
}

pub(crate) fn plan(plan: types::Plan) -> Lifted<Plan> {
    no_extensions("a plan", &plan.extensions)?;
    Ok(Plan {
        next: match plan.next {
            types::Next::Stay => Next::Stay,
            types::Next::Reoffer => Next::Reoffer,
            types::Next::Enter(targets) => Next::Enter(each(targets, target)?),
            types::Next::Spawn(targets) => Next::Spawn(each(targets, target)?),
            types::Next::EndBranch => Next::EndBranch,
        },
        cancel: texts("a state to cancel", plan.cancel)?,
        data: optional("the data patch", plan.data)?,
        attributes: each(plan.attributes, attribute)?,
        publish: each(plan.publish, |event| {
            Ok(PublishedEvent {
                name: text("an event's name", event.name)?,
                data: text("an event's data", event.data)?,
            })
        })?,
        notes: each(plan.notes, note)?,
    })
}

fn note(note: types::Note) -> Lifted<Note> {
    let detail =
        |text: String| Json::parse(&text).map_err(|error| format!("a note's detail has {error}"));
    Ok(Note {
        code: text("a note's code", note.code)?,
        message: text("a note's message", note.message)?,
        detail: note.detail.map(detail).transpose()?,
    })
}

fn target(target: types::Target) -> Lifted<Target> {
    Ok(Target {
        name: text("a state to enter", target.name)?,
        key: optional("the key of a state to enter", target.key)?,
        data: optional("the data of a state to enter", target.data)?,
    })
}

pub(crate) fn works(works: Vec<types::Work>) -> Lifted<Vec<Work>> {
    each(works, work)
}

pub(crate) fn work(work: types::Work) -> Lifted<Work> {
    Ok(match work {
        types::Work::Task(task) => Work::Task(assignment(task)?),
        types::Work::Wait(wait) => Work::Wait(waiting(wait)?),
        types::Work::Service(call) => Work::Service(service_call(call)?),
    })
}

fn assignment(assignment: types::Assignment) -> Lifted<Assignment> {
    no_extensions("an assignment", &assignment.extensions)?;
    let share = |part: types::Fraction, exceeded| Share {
        numerator: part.numerator,
        denominator: part.denominator,
        exceeded,
    };
    let (needed, share) = match assignment.needed {
        types::Needed::Count(count) => (count, None),
        types::Needed::AtLeast(part) => (0, Some(share(part, false))),
        types::Needed::MoreThan(part) => (0, Some(share(part, true))),
    };
    Ok(Assignment {
        offers: each(assignment.offers, offer)?,
        needed,
        share,
        exclude: texts("an excluded person", assignment.exclude)?,
        fallback: optional("the fallback group", assignment.fallback)?,
        priority: assignment.priority,
        deadlines: each(assignment.deadlines, deadline)?,
        subscriptions: each(assignment.subscriptions, subscription)?,
        blind: assignment.blind,
    })
}

fn service_call(call: types::ServiceCall) -> Lifted<ServiceCall> {
    Ok(ServiceCall {
        service: text("a service", call.service)?,
        request: text("a request to a service", call.request)?,
        timeout: call.timeout,
        retries: call.retries,
        on_reply: text("the trigger of a reply", call.on_reply)?,
        on_failure: text("the trigger of a failure", call.on_failure)?,
        deadlines: each(call.deadlines, deadline)?,
        subscriptions: each(call.subscriptions, subscription)?,
    })
}

fn waiting(waiting: types::Waiting) -> Lifted<Waiting> {
    Ok(Waiting {
        deadlines: each(waiting.deadlines, deadline)?,
        subscriptions: each(waiting.subscriptions, subscription)?,
        children: each(waiting.children, child)?,
    })
}

fn subscription(subscription: types::SignalSubscription) -> Lifted<SignalSubscription> {
    Ok(SignalSubscription {
        trigger: text("a subscription's trigger", subscription.trigger)?,
        correlation: optional("a correlation key", subscription.correlation)?,
        buffered: subscription.buffered,
    })
}

fn child(child: types::Child) -> Lifted<Child> {
    Ok(Child {
        key: text("a child's key", child.key)?,
        entity_type: text("a child's entity type", child.entity_type)?,
        entity_id: text("a child's entity id", child.entity_id)?,
        data: text("a child's data", child.data)?,
        on_end: optional("a child's trigger", child.on_end)?,
        detached: child.detached,
    })
}

fn offer(offer: types::Offer) -> Lifted<Offer> {
    no_extensions("an offer", &offer.extensions)?;
    Ok(Offer {
        label: text("an offer's label", offer.label)?,
        candidates: each(offer.candidates, principal)?,
        owner: optional("an offer's owner", offer.owner)?,
        each_member: optional("an offer's group", offer.each_member)?,
        retain: offer.retain,
        allocation: match offer.allocation {
            types::Allocation::Offered => Allocation::Offered,
            types::Allocation::RoundRobin => Allocation::RoundRobin,
            types::Allocation::LeastLoaded => Allocation::LeastLoaded,
        },
        deadlines: each(offer.deadlines, deadline)?,
    })
}

fn principal(principal: types::Principal) -> Lifted<Principal> {
    Ok(match principal {
        types::Principal::User(id) => Principal::User(text("a user", id)?),
        types::Principal::Group(id) => Principal::Group(text("a group", id)?),
        types::Principal::ManagerOf(id) => Principal::ManagerOf(text("a user", id)?),
        types::Principal::Member(member) => Principal::Member {
            person: text("a user", member.person)?,
            group: text("a group", member.group)?,
        },
    })
}

fn deadline(deadline: types::Deadline) -> Lifted<Deadline> {
    Ok(Deadline {
        when: match deadline.when {
            types::Due::After(seconds) => Due::After(seconds),
            types::Due::Working(working) => Due::Working {
                seconds: working.time,
                calendar: text("a calendar", working.calendar)?,
            },
            types::Due::WorkingDays(working) => Due::WorkingDays {
                days: working.days,
                calendar: text("a calendar", working.calendar)?,
            },
            types::Due::At(instant) => Due::At(timestamp("a deadline", &instant)?),
        },
        since: match deadline.since {
            types::Since::Created => Since::Created,
            types::Since::Claimed => Since::Claimed,
        },
        repeat: deadline.repeat,
        action: match deadline.action {
            types::OverdueAction::Remind => OverdueAction::Remind,
            types::OverdueAction::Escalate => OverdueAction::Escalate,
            types::OverdueAction::Release => OverdueAction::Release,
            types::OverdueAction::Fire(trigger) => OverdueAction::Fire(text("a trigger", trigger)?),
            types::OverdueAction::Cancel(reason) => {
                OverdueAction::Cancel(text("the reason of a cancellation", reason)?)
            }
        },
    })
}

pub(crate) fn attribute(attribute: types::Attribute) -> Lifted<Attribute> {
    let name = text("an attribute's name", attribute.name)?;
    let place = format!("the attribute `{}`", quoted(&name));
    let value = attribute
        .value
        .map(|value| attribute_value(&place, value))
        .transpose()?;
    Ok(Attribute { name, value })
}

fn attribute_value(place: &str, value: types::AttributeValue) -> Lifted<AttributeValue> {
    Ok(match value {
        types::AttributeValue::Text(value) => AttributeValue::Text(text(place, value)?),
        types::AttributeValue::Boolean(truth) => AttributeValue::Boolean(truth),
        types::AttributeValue::Decimal(digits) if is_decimal(&digits) => {
            AttributeValue::Decimal(unsigned_zero(digits))
        }
        types::AttributeValue::Decimal(other) => {
            return Err(format!(
                "{place} is no decimal number: \"{}\"",
                quoted(&other)
            ));
        }
        types::AttributeValue::Float(number) if number.is_finite() => AttributeValue::Float(number),
        types::AttributeValue::Float(number) => {
            return Err(format!("{place} is not a finite number: {number}"));
        }
        types::AttributeValue::Timestamp(instant) => {
            AttributeValue::Timestamp(timestamp(place, &instant)?)
        }
        types::AttributeValue::Bytes(bytes) => AttributeValue::Bytes(bytes),
    })
}

/// Whether this is a decimal in the form of the core, without leading zeros: `-1999.90`.
fn is_decimal(digits: &str) -> bool {
    let number = digits.strip_prefix('-').unwrap_or(digits);
    let whole = number
        .split_once('.')
        .map_or(number, |(whole, _fraction)| whole);
    search::is_decimal(digits) && (whole == "0" || !whole.starts_with('0'))
}

/// Removes the sign of a zero. A database has only one zero, and what is recorded must equal what it returns.
fn unsigned_zero(digits: String) -> String {
    match digits.strip_prefix('-') {
        Some(zero) if !zero.contains(|digit| matches!(digit, '1'..='9')) => zero.to_owned(),
        _ => digits,
    }
}

/// Accepts only the canonical form, so that stored instants compare as text.
fn timestamp(place: &str, instant: &str) -> Lifted<Timestamp> {
    moment::parse(instant)
        .filter(|parsed| lower::timestamp(*parsed) == instant)
        .ok_or_else(|| {
            format!(
                "{place} is no instant of the form \"2026-11-20T18:00:00.000Z\": \"{}\"",
                quoted(instant)
            )
        })
}

/// This version of the host knows no extension.
pub(super) fn no_extensions(of: &str, extensions: &[types::Extension]) -> Lifted<()> {
    let Some(first) = extensions.first() else {
        return Ok(());
    };
    let name = quoted(&first.name);
    Err(format!(
        "{of} has the extension `{name}`, which this host does not know"
    ))
}

/// Accepts only text that a database can store.
pub(super) fn text(place: &str, text: String) -> Lifted<String> {
    if text.contains('\0') {
        return Err(format!("{place} contains the character NUL"));
    }
    Ok(text)
}

pub(super) fn texts(place: &str, list: Vec<String>) -> Lifted<Vec<String>> {
    each(list, |item| text(place, item))
}

pub(super) fn optional(place: &str, value: Option<String>) -> Lifted<Option<String>> {
    value.map(|value| text(place, value)).transpose()
}

pub(super) fn each<A, B>(list: Vec<A>, convert: impl FnMut(A) -> Lifted<B>) -> Lifted<Vec<B>> {
    list.into_iter().map(convert).collect()
}

pub(super) fn quoted(value: &str) -> String {
    wrkflw_core::text::tame(value, QUOTED_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_one_plain_form() {
        let side = "9".repeat(100);
        let longest = format!("-{side}.{side}");
        for good in ["0", "42", "-1999.90", "0.001", "-0", &longest] {
            assert!(is_decimal(good), "{good}");
        }
        let (long, fine) = (format!("{side}9"), format!("0.{side}9"));
        for bad in [
            "", "-", "01", "1.", ".5", "1e3", "+1", "1,5", "NaN", " 1", "٣", &long, &fine,
        ] {
            assert!(!is_decimal(bad), "{bad}");
        }
    }

    #[test]
    fn zero_has_no_sign() {
        let plain = ["0", "0.00", "-0.01", "-10", "10"];
        for digits in plain {
            assert_eq!(unsigned_zero(digits.to_owned()), digits);
        }
        for (signed, zero) in [("-0", "0"), ("-0.00", "0.00")] {
            assert_eq!(unsigned_zero(signed.to_owned()), zero);
        }
    }

    #[test]
    fn instants_are_in_utc_with_milliseconds() {
        assert!(timestamp("x", "2026-11-20T18:00:00.120Z").is_ok());
        for bad in [
            "2026-11-20T18:00:00Z",
            "2026-11-20T18:00:00.000000Z",
            "2026-11-20T19:00:00.000+01:00",
            "2026-11-20 18:00:00.000Z",
            "2026-02-30T18:00:00.000Z",
            "tomorrow",
            "",
        ] {
            let error = timestamp("the due date", bad).expect_err(bad);
            assert!(error.starts_with("the due date is no instant"), "{error}");
        }
    }

    #[test]
    fn malformed_parts_of_a_plan_are_named() {
        let with = |value: types::AttributeValue| types::Plan {
            next: types::Next::Stay,
            cancel: vec![],
            data: None,
            attributes: vec![types::Attribute {
                name: "amount".into(),
                value: Some(value),
            }],
            publish: vec![],
            notes: vec![],
            extensions: vec![],
        };
        let refused = |plan| super::plan(plan).expect_err("refused");
        assert_eq!(
            refused(with(types::AttributeValue::Decimal("1e9\u{1b}".into()))),
            "the attribute `amount` is no decimal number: \"1e9\\u{1b}\""
        );
        assert_eq!(
            refused(with(types::AttributeValue::Float(f64::INFINITY))),
            "the attribute `amount` is not a finite number: inf"
        );
        assert_eq!(
            refused(with(types::AttributeValue::Text("a\0b".into()))),
            "the attribute `amount` contains the character NUL"
        );
        let noted = |detail: &str| types::Plan {
            attributes: vec![],
            notes: vec![types::Note {
                code: "row".into(),
                message: "The second row applies.".into(),
                detail: Some(detail.into()),
            }],
            ..with(types::AttributeValue::Boolean(true))
        };
        for malformed in ["", "{", r#"{"a":"\u0000"}"#, r#"{"a":1,"a":2}"#] {
            let error = refused(noted(malformed));
            assert!(error.starts_with("a note's detail has "), "{error}");
        }
        let lifted = super::plan(noted(r#"{ "row": 2 }"#)).expect("a plan");
        let detail = lifted.notes[0].detail.as_ref().map(Json::as_str);
        assert_eq!(detail, Some(r#"{"row":2}"#));
    }
}
