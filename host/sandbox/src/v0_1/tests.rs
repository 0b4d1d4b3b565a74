//! An instance as large as it may become fits into the largest question, and a question has one digest for ever.

use proptest::prelude::*;

use super::lower::{decision, event, snapshot};
use super::types;
use crate::sandbox::Asking;
use crate::size::size;
use jiff::Timestamp;
use uuid::Uuid;
use wrkflw_core::actor::Actor;
use wrkflw_core::answer::AttributeValue;
use wrkflw_core::graph::Read;
use wrkflw_core::ids::{InstanceId, StateId, TaskId, VersionRef, hex};
use wrkflw_core::instance::{
    Candidate, ChildInstance, Decision, Entity, Instance, Ownership, PastState, StateInstance,
    Status, Task, TaskStatus,
};
use wrkflw_core::json::Json;
use wrkflw_core::question::{Entry, EntryCause, Facts, Occurrence, Question, Source};
use wrkflw_core::shown::samples::{Random, input_of};
use wrkflw_core::shown::{
    COMMENT_BYTES_MAX, CONFIG_BYTES_MAX, DATA_BYTES_MAX, FACTS_BYTES_MAX, check, check_actor,
};
use wrkflw_core::template::Labels;

/// In as many groups as anybody may act with.
fn busiest(random: &mut Random) -> Actor {
    let mut actor = Actor {
        id: random.name(800),
        on_behalf_of: Some(random.name(800)),
        ..Actor::host()
    };
    loop {
        let before = actor.clone();
        actor.groups.push(random.name(200));
        actor.permissions.push(random.name(128));
        if check_actor(&actor).is_err() {
            return before;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_an_instance_grew_to_it_can_be_asked_about(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let instance = random.largest();
        prop_assert_eq!(check(&instance), Ok(()));
        let config = input_of(CONFIG_BYTES_MAX);
        let tenant = "t".repeat(256);
        let facts = Facts {
            now: Timestamp::UNIX_EPOCH,
            tenant: &tenant,
            config: &config,
            instance: &instance,
            reads: &Read::ALL,
        };
        let source = Source::Task {
            task: instance.id.to_string(),
            actor: busiest(&mut random),
            comment: Some("c".repeat(COMMENT_BYTES_MAX)),
        };
        let occurrence = Occurrence {
            state_instance: instance.id.to_string(),
            trigger: "T".repeat(256),
            source,
            input: input_of(DATA_BYTES_MAX),
        };
        let bytes = size(&snapshot(&facts)) + size(&event(&occurrence, &Read::ALL));
        prop_assert!(bytes <= FACTS_BYTES_MAX, "{bytes} bytes");
        prop_assert!(bytes > FACTS_BYTES_MAX / 2, "{bytes} bytes are not much");
    }
}

#[test]
fn what_is_left_out_says_so() {
    let (at, input) = (
        Timestamp::UNIX_EPOCH,
        Json::parse(r#"{"a":1}"#).expect("JSON"),
    );
    let kept = Decision {
        outcome: "GO".into(),
        actor: "ann".into(),
        on_behalf_of: None,
        comment: Some("fine".into()),
        input,
        decided_at: at,
    };
    let sent = decision(&kept, true, &Read::ALL);
    assert_eq!((sent.omitted, &*sent.input), (false, r#"{"a":1}"#));
    let unsent = decision(&kept, false, &Read::ALL);
    assert_eq!(
        (unsent.omitted, &*unsent.input, unsent.comment),
        (true, "{}", None)
    );
    assert_eq!(unsent.actor, "ann");
}

#[test]
fn logic_is_told_what_it_reads() {
    let (instance, config) = (recorded(), Json::empty());
    let mut occurrence = decided_by("bob");
    if let Source::Task { actor, comment, .. } = &mut occurrence.source {
        actor.groups = vec!["legal".into()];
        actor.permissions = vec!["fin:approve".into()];
        *comment = Some("as agreed".into());
    }
    let shown = |reads: &[Read]| {
        let facts = Facts {
            now: at(61),
            tenant: "default",
            config: &config,
            instance: &instance,
            reads,
        };
        let past = snapshot(&facts).past.remove(0).tasks.remove(0).decision;
        let past = past.expect("a decision");
        let types::EventSource::Task(proposed) = event(&occurrence, reads).source else {
            panic!("a decision is proposed")
        };
        assert_eq!(proposed.comment.as_deref(), Some("as agreed"));
        assert!(!past.omitted);
        let actor = proposed.actor;
        [
            !actor.groups.is_empty(),
            !actor.permissions.is_empty(),
            past.comment.is_some(),
            past.input != "{}",
        ]
    };
    assert_eq!(shown(&[]), [false; 4]);
    assert_eq!(shown(&Read::ALL), [true; 4]);
    for (place, read) in Read::ALL.into_iter().enumerate() {
        let mut only = [false; 4];
        only[place] = true;
        assert_eq!(shown(&[read]), only, "{read:?}");
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("an instant")
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

fn task(number: u128, label: &str, candidate: Candidate, status: TaskStatus) -> Task {
    Task {
        id: TaskId(id(number)),
        label: label.into(),
        candidates: vec![candidate],
        created_at: at(1),
        due_at: (number == 12).then(|| at(50)),
        deadlines: vec![],
        suspended: None,
        status,
    }
}

/// An active state instance for an item.
fn finance(predecessor: StateId) -> StateInstance {
    let claimed = TaskStatus::Claimed {
        owner: "bob".into(),
        claimed_at: at(5),
        ownership: Ownership::default(),
    };
    let mut finance = StateInstance::new(StateId(id(32)), "FinanceReview", at(4));
    finance.predecessors = vec![predecessor];
    finance.due_at = Some(at(60));
    finance.key = Some("line 1".into());
    finance.data = Some(json(r#"{"amount":1.50}"#));
    finance.tasks = vec![task(12, "Finance", Candidate::User("bob".into()), claimed)];
    finance
}

/// An instance with every kind of part that a snapshot has.
fn recorded() -> Instance {
    let decided = TaskStatus::Completed {
        owner: "ann".into(),
        claimed_at: at(2),
        decision: Decision {
            outcome: "APPROVE".into(),
            actor: "ann".into(),
            on_behalf_of: Some("eve".into()),
            comment: Some("fine".into()),
            input: json(r#"{"pages":3}"#),
            decided_at: at(3),
        },
    };
    let entity = |kind: &str, id: &str| Entity {
        kind: kind.into(),
        id: id.into(),
    };
    let mut legal = StateInstance::new(StateId(id(31)), "LegalReview", at(1));
    legal.needed = 2;
    legal.tasks = vec![task(11, "Legal", Candidate::Group("legal".into()), decided)];
    legal.children = vec![ChildInstance {
        id: InstanceId(id(21)),
        key: "audit".into(),
        entity: entity("order", "7"),
        data: Json::empty(),
        on_end: None,
        detached: false,
        outcome: Some("DONE".into()),
        version: Some(3),
    }];
    let active = vec![finance(legal.id)];
    let attributes = [
        ("amount", AttributeValue::Decimal("12.50".into())),
        ("rush", AttributeValue::Boolean(true)),
        ("weight", AttributeValue::Float(0.1)),
    ];
    Instance {
        id: InstanceId(id(1)),
        definition: VersionRef {
            key: "contract".into(),
            version: 2,
        },
        revision: 4,
        entity: entity("contract", "C-1"),
        initiator: "kim".into(),
        requesters: vec!["kim".into()],
        status: Status::Running,
        started_at: at(0),
        updated_at: at(4),
        predecessor: None,
        parent: Some(InstanceId(id(2))),
        data: json(r#"{"amount":"12.50"}"#),
        labels: Labels::default(),
        attributes: attributes.map(|(name, value)| (name.into(), value)).into(),
        active,
        waiting: vec![StateInstance::new(StateId(id(33)), "Done", at(4))],
        past: vec![PastState {
            state: legal,
            left_at: at(4),
            left_trigger: "APPROVE".into(),
            actor: Some("ann".into()),
        }],
        sole: false,
        observers: None,
        buffered: vec![],
    }
}

fn with_facts<T>(work: impl FnOnce(&Facts<'_>) -> T) -> T {
    let instance = recorded();
    let config = json(r#"{"limit":10}"#);
    work(&Facts {
        now: at(61),
        tenant: "default",
        config: &config,
        instance: &instance,
        reads: &Read::ALL,
    })
}

fn digest_of(question: &Question) -> String {
    hex(&with_facts(|facts| Asking::of(facts, question)).digest())
}

fn decided_by(actor: &str) -> Occurrence {
    Occurrence {
        state_instance: id(32).to_string(),
        trigger: "APPROVE".into(),
        source: Source::Task {
            task: id(12).to_string(),
            actor: Actor {
                id: actor.into(),
                ..Actor::host()
            },
            comment: None,
        },
        input: Json::empty(),
    }
}

/// The audit of a released version of the contract has these digests. If this test fails, commands that were recorded before
/// cannot be proven any more: mend the translation, not the test.
#[test]
fn what_was_asked_has_the_same_digest_in_every_release() {
    let entry = Entry {
        state_instance: id(32).to_string(),
        state: "FinanceReview".into(),
        cause: EntryCause::Overdue {
            task: None,
            count: 2,
        },
    };
    let digests = [
        Question::Start(Actor {
            id: "bob".into(),
            ..Actor::host()
        }),
        Question::Transition(decided_by("bob").into()),
        Question::Transition(decided_by("joe").into()),
        Question::Enter(vec![entry]),
    ]
    .map(|question| digest_of(&question));
    assert_eq!(
        digests,
        [
            "6adff6c1b27e10f13d9f424b8133faa956a538543b95805013865a830f053015",
            "363f994d8bfa13748e9772a130665c240933dd8649fc1f8ebd67ad833fce49a1",
            "22b895b757ad2925873f9eb56ed0de6d903f3625e5ca18a75f9e0c5416486109",
            "ceabd872182678909bdf246b38b9f9093cb75f8a47547e1be8183584bdca9910",
        ]
    );
}
