//! Makes answers in the contract's own types out of a fuzzer's bytes. It knows no rule that an answer must keep.

use arbitrary::{Result, Unstructured};
use wrkflw_sandbox::fuzzing::types;

/// Items of a list: enough for every rule between neighbours.
const ITEMS_MAX: usize = 6;
/// Texts that belong together, so that some answers are nearly sound. Others are made of the bytes.
const TEXTS: [&str; 15] = [
    "Draft",
    "Review",
    "Done",
    "APPROVE",
    "REJECT",
    "amount",
    "authors",
    "{}",
    r#"{"type":"object"}"#,
    "1999.90",
    "2026-11-20T18:00:00.000Z",
    "DONE",
    "office",
    "task:act",
    "/amount",
];

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    if u.ratio(3, 4)? {
        return Ok((*u.choose(&TEXTS)?).to_owned());
    }
    Ok(u.arbitrary::<&str>()?.to_owned())
}

fn list<T>(
    u: &mut Unstructured<'_>,
    one: impl Fn(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = u.int_in_range(0..=ITEMS_MAX)?;
    (0..count).map(|_| one(u)).collect()
}

/// What ends the conversion of the whole answer.
fn rarely<T>(
    u: &mut Unstructured<'_>,
    one: impl Fn(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    if u.ratio(1, 100)? {
        list(u, one)
    } else {
        Ok(Vec::new())
    }
}

fn maybe<T>(
    u: &mut Unstructured<'_>,
    one: impl Fn(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Option<T>> {
    u.arbitrary::<bool>()?.then(|| one(u)).transpose()
}

pub(super) fn refusal(u: &mut Unstructured<'_>) -> Result<types::Refusal> {
    let (code, message) = (text(u)?, text(u)?);
    let reason = types::Reason { code, message };
    Ok(match u.int_in_range(0..=3)? {
        0 => types::Refusal::Denied(reason),
        1 => types::Refusal::NotNow(reason),
        2 => types::Refusal::Fault(reason),
        _ => types::Refusal::Invalid(list(u, violation)?),
    })
}

fn violation(u: &mut Unstructured<'_>) -> Result<types::Violation> {
    Ok(types::Violation {
        field: text(u)?,
        code: text(u)?,
        message: text(u)?,
    })
}

pub(super) fn plan(u: &mut Unstructured<'_>) -> Result<types::Plan> {
    Ok(types::Plan {
        next: match u.int_in_range(0..=4)? {
            0 => types::Next::Stay,
            1 => types::Next::Reoffer,
            2 => types::Next::EndBranch,
            3 => types::Next::Spawn(list(u, target)?),
            _ => types::Next::Enter(list(u, target)?),
        },
        cancel: list(u, text)?,
        data: maybe(u, text)?,
        attributes: list(u, attribute)?,
        publish: list(u, |u| {
            Ok(types::PublishedEvent {
                name: text(u)?,
                data: text(u)?,
            })
        })?,
        notes: list(u, |u| {
            Ok(types::Note {
                code: text(u)?,
                message: text(u)?,
                detail: maybe(u, text)?,
            })
        })?,
        extensions: rarely(u, extension)?,
    })
}

fn target(u: &mut Unstructured<'_>) -> Result<types::Target> {
    Ok(types::Target {
        name: text(u)?,
        key: maybe(u, text)?,
        data: maybe(u, text)?,
    })
}

fn attribute(u: &mut Unstructured<'_>) -> Result<types::Attribute> {
    Ok(types::Attribute {
        name: text(u)?,
        value: maybe(u, attribute_value)?,
    })
}

fn attribute_value(u: &mut Unstructured<'_>) -> Result<types::AttributeValue> {
    Ok(match u.int_in_range(0..=5)? {
        0 => types::AttributeValue::Text(text(u)?),
        1 => types::AttributeValue::Boolean(u.arbitrary()?),
        2 => types::AttributeValue::Decimal(text(u)?),
        3 => types::AttributeValue::Float(u.arbitrary()?),
        4 => types::AttributeValue::Timestamp(text(u)?),
        _ => types::AttributeValue::Bytes(u.arbitrary::<&[u8]>()?.to_vec()),
    })
}

pub(super) fn work(u: &mut Unstructured<'_>) -> Result<types::Work> {
    Ok(match u.int_in_range(0..=2)? {
        0 => types::Work::Task(assignment(u)?),
        1 => types::Work::Service(types::ServiceCall {
            service: text(u)?,
            request: text(u)?,
            timeout: u.arbitrary()?,
            retries: list(u, |u| u.int_in_range(0..=u32::MAX))?,
            on_reply: text(u)?,
            on_failure: text(u)?,
            deadlines: list(u, deadline)?,
            subscriptions: list(u, subscription)?,
        }),
        _ => types::Work::Wait(waiting(u)?),
    })
}

fn assignment(u: &mut Unstructured<'_>) -> Result<types::Assignment> {
    Ok(types::Assignment {
        offers: list(u, offer)?,
        needed: needed(u)?,
        exclude: list(u, text)?,
        fallback: maybe(u, text)?,
        priority: u.arbitrary()?,
        blind: u.arbitrary()?,
        deadlines: list(u, deadline)?,
        subscriptions: list(u, subscription)?,
        extensions: rarely(u, extension)?,
    })
}

fn needed(u: &mut Unstructured<'_>) -> Result<types::Needed> {
    let part = |u: &mut Unstructured<'_>| -> Result<types::Fraction> {
        Ok(types::Fraction {
            numerator: u.arbitrary()?,
            denominator: u.arbitrary()?,
        })
    };
    Ok(match u.int_in_range(0..=2)? {
        0 => types::Needed::Count(u.arbitrary()?),
        1 => types::Needed::AtLeast(part(u)?),
        _ => types::Needed::MoreThan(part(u)?),
    })
}

fn offer(u: &mut Unstructured<'_>) -> Result<types::Offer> {
    Ok(types::Offer {
        label: text(u)?,
        candidates: list(u, principal)?,
        owner: maybe(u, text)?,
        each_member: rarely(u, text)?.pop(),
        retain: u.arbitrary()?,
        allocation: *u.choose(&[
            types::Allocation::Offered,
            types::Allocation::RoundRobin,
            types::Allocation::LeastLoaded,
        ])?,
        deadlines: list(u, deadline)?,
        extensions: rarely(u, extension)?,
    })
}

fn principal(u: &mut Unstructured<'_>) -> Result<types::Principal> {
    Ok(match u.int_in_range(0..=3)? {
        0 => types::Principal::User(text(u)?),
        1 => types::Principal::Group(text(u)?),
        2 => types::Principal::Member(types::Member {
            person: text(u)?,
            group: text(u)?,
        }),
        _ => types::Principal::ManagerOf(text(u)?),
    })
}

fn deadline(u: &mut Unstructured<'_>) -> Result<types::Deadline> {
    Ok(types::Deadline {
        when: match u.int_in_range(0..=3)? {
            0 => types::Due::After(u.arbitrary()?),
            1 => types::Due::Working(types::WorkingTime {
                time: u.arbitrary()?,
                calendar: text(u)?,
            }),
            2 => types::Due::WorkingDays(types::WorkingDays {
                days: u.arbitrary()?,
                calendar: text(u)?,
            }),
            _ => types::Due::At(text(u)?),
        },
        since: if u.arbitrary()? {
            types::Since::Claimed
        } else {
            types::Since::Created
        },
        repeat: maybe(u, |u| u.int_in_range(0..=u32::MAX))?,
        action: match u.int_in_range(0..=4)? {
            0 => types::OverdueAction::Remind,
            1 => types::OverdueAction::Escalate,
            2 => types::OverdueAction::Release,
            3 => types::OverdueAction::Cancel(text(u)?),
            _ => types::OverdueAction::Fire(text(u)?),
        },
    })
}

fn waiting(u: &mut Unstructured<'_>) -> Result<types::Waiting> {
    Ok(types::Waiting {
        deadlines: list(u, deadline)?,
        subscriptions: list(u, subscription)?,
        children: list(u, |u| {
            Ok(types::Child {
                key: text(u)?,
                entity_type: text(u)?,
                entity_id: text(u)?,
                data: text(u)?,
                on_end: maybe(u, text)?,
                detached: u.arbitrary()?,
            })
        })?,
    })
}

fn subscription(u: &mut Unstructured<'_>) -> Result<types::SignalSubscription> {
    Ok(types::SignalSubscription {
        trigger: text(u)?,
        correlation: maybe(u, text)?,
        buffered: u.arbitrary()?,
    })
}

pub(super) fn definition(u: &mut Unstructured<'_>) -> Result<types::Definition> {
    Ok(types::Definition {
        title: text(u)?,
        description: text(u)?,
        initial: text(u)?,
        initiators: list(u, text)?,
        states: list(u, state)?,
        transitions: list(u, transition)?,
        data_schema: maybe(u, text)?,
        attributes: list(u, |u| {
            Ok(types::AttributeDeclaration {
                name: text(u)?,
                kind: *u.choose(&[
                    types::AttributeType::Text,
                    types::AttributeType::Boolean,
                    types::AttributeType::Decimal,
                    types::AttributeType::Float,
                    types::AttributeType::Timestamp,
                    types::AttributeType::Bytes,
                ])?,
            })
        })?,
        instance_title: maybe(u, text)?,
        instance_summary: maybe(u, text)?,
        priorities: list(u, |u| {
            Ok(types::PriorityName {
                name: text(u)?,
                at_least: u.arbitrary()?,
            })
        })?,
        separate: list(u, |u| list(u, text))?,
        requires: rarely(u, text)?,
        reads: if u.arbitrary()? {
            types::Reads::all()
        } else {
            types::Reads::empty()
        },
        sole_per_entity: u.arbitrary()?,
        visibility: if u.arbitrary()? {
            types::Visibility::Participants(list(u, text)?)
        } else {
            types::Visibility::Tenant
        },
        uses: list(u, |u| {
            Ok(match u.int_in_range(0..=3)? {
                0 => types::NameUse::Group(text(u)?),
                1 => types::NameUse::Person(text(u)?),
                2 => types::NameUse::Service(text(u)?),
                _ => types::NameUse::Calendar(text(u)?),
            })
        })?,
        extensions: rarely(u, extension)?,
    })
}

fn state(u: &mut Unstructured<'_>) -> Result<types::State> {
    Ok(types::State {
        name: text(u)?,
        title: text(u)?,
        description: text(u)?,
        kind: match u.int_in_range(0..=4)? {
            0 => types::StateKind::Task,
            1 => types::StateKind::Service,
            2 => types::StateKind::Router,
            3 => types::StateKind::Wait,
            _ => types::StateKind::Terminal(text(u)?),
        },
        join: match u.int_in_range(0..=2)? {
            0 => types::Join::None,
            1 => types::Join::All,
            _ => types::Join::Count(u.arbitrary()?),
        },
        own_work: u.arbitrary()?,
        extensions: rarely(u, extension)?,
    })
}

fn transition(u: &mut Unstructured<'_>) -> Result<types::Transition> {
    let sources = [
        types::FiredBy::DECISION,
        types::FiredBy::SIGNAL,
        types::FiredBy::DEADLINE,
        types::FiredBy::REPLY,
        types::FiredBy::FAILURE,
        types::FiredBy::CHILD,
        types::FiredBy::ENTRY,
    ];
    let mut by = types::FiredBy::empty();
    for source in sources {
        if u.arbitrary()? {
            by |= source;
        }
    }
    Ok(types::Transition {
        source: text(u)?,
        trigger: text(u)?,
        targets: list(u, text)?,
        by,
        permission: maybe(u, text)?,
        title: text(u)?,
        description: text(u)?,
        condition: text(u)?,
        input: maybe(u, text)?,
        comment: match u.int_in_range(0..=2)? {
            0 => types::CommentRule::Optional,
            1 => types::CommentRule::Required,
            _ => types::CommentRule::None,
        },
        extensions: rarely(u, extension)?,
    })
}

fn extension(u: &mut Unstructured<'_>) -> Result<types::Extension> {
    Ok(types::Extension {
        name: text(u)?,
        value: text(u)?,
    })
}
