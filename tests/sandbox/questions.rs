//! Calls and answers cross the boundary completely, and leave no state behind.

use wrkflw_core::answer::{Attribute, AttributeValue, Principal, Reason, Refusal, Violation, Work};
use wrkflw_core::graph::Read;
use wrkflw_core::ids::{StateId, TaskId};
use wrkflw_core::instance::{
    CallResult, Candidate, Decision, PastState, StateInstance, Task, TaskStatus,
};

use super::*;

#[tokio::test]
async fn refusals_plans_and_work_are_returned() {
    let sandbox = sandbox();
    let verdict = async |behaviour: &str| {
        let data = format!(r#"{{"behaviour":"{behaviour}","function":"start"}}"#);
        let question = Question::Start(actor("author"));
        match ask_about(&sandbox, &instance(&data), question).await {
            Ok(Evaluation {
                answer: Answer::Start(verdict),
                ..
            }) => verdict,
            other => panic!("expected a verdict, got {other:?}"),
        }
    };
    let unwanted = Reason {
        code: "unwanted".into(),
        message: "the input asked to be refused".into(),
    };
    assert_eq!(verdict("ok").await, Ok(()));
    assert_eq!(
        verdict("deny").await,
        Err(Refusal::Denied(unwanted.clone()))
    );
    let Err(Refusal::Invalid(violations)) = verdict("invalid").await else {
        panic!("not invalid");
    };
    assert_eq!(violations[0].field, "/input/behaviour");

    let next = plan(transition(&sandbox, "ok").await.expect("answers")).next;
    assert_eq!(next, Next::Enter(vec![Target::new("Done")]));
    let unfit = Violation {
        expected: None,
        field: "/input/behaviour".into(),
        code: "unfit".into(),
        message: "the input asked to be unfit".into(),
    };
    for (behaviour, refusal) in [
        ("refuse", Refusal::NotNow(unwanted.clone())),
        ("give_up", Refusal::Fault(unwanted)),
        ("unfit", Refusal::Invalid(vec![unfit])),
    ] {
        let refused = transition(&sandbox, behaviour).await.expect("answers");
        assert_eq!(refused.answer, Answer::Transition(Err(refusal)));
    }

    let entered = ask(&sandbox, entering(&["Work", "Work"])).await;
    let Answer::Enter(Ok(works)) = entered.expect("answers").answer else {
        panic!("no work");
    };
    assert_eq!(works.len(), 2);
    for work in works {
        let Work::Task(assignment) = work else {
            panic!("no task");
        };
        assert_eq!(
            assignment.offers[0].candidates,
            [Principal::Group("reviewers".into())]
        );
    }
}

/// The core checks whether an answer makes sense. The sandbox returns it unchanged.
#[tokio::test]
async fn a_well_formed_answer_without_sense_is_passed_on() {
    let sandbox = sandbox();
    let given = async |behaviour| plan(transition(&sandbox, behaviour).await.expect("answers"));
    assert_eq!(
        given("undeclared_target").await.next,
        Next::Enter(vec![Target::new("Nowhere")])
    );
    let attribute = Attribute {
        name: "undeclared".into(),
        value: Some(AttributeValue::Text("x".into())),
    };
    assert_eq!(given("unknown_attribute").await.attributes, [attribute]);
    let data = given("break_schema").await.data;
    assert_eq!(data.as_deref(), Some(r#"{"behaviour": 42}"#));
    let data = given("broken_json").await.data;
    assert_eq!(data.as_deref(), Some(r#"{"behaviour": "#));
}

#[tokio::test]
async fn no_state_survives_a_call() {
    for _ in 0..3 {
        let plan = plan(transition(&sandbox(), "remember").await.expect("answers"));
        assert_eq!(plan.notes[0].message, "call 1");
    }
}

#[tokio::test]
async fn bits_of_nan_are_canonical() {
    let plan = plan(transition(&sandbox(), "nan").await.expect("answers"));
    let bits: Vec<_> = plan.notes.iter().map(|note| &note.message).collect();
    assert_eq!(bits, ["7ff8000000000000"; 5]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_calls_use_equal_fuel() {
    let sandbox = sandbox();
    let first = transition(&sandbox, "ok").await.expect("answers");
    assert!(first.fuel > 0);
    let again = (0..20).map(|_| transition(&sandbox, "ok"));
    for evaluation in futures_util::future::join_all(again).await {
        assert_eq!(evaluation.expect("answers").fuel, first.fuel);
    }
    let other = Sandbox::new(settings()).expect("sandbox");
    let elsewhere = transition(&other, "ok").await.expect("answers");
    assert_eq!(elsewhere.fuel, first.fuel);
}

/// What the guest received, as Rust's debug text of the contract's types.
async fn echo(instance: &Instance, mut occurrence: Occurrence) -> String {
    occurrence.input = json(r#"{"behaviour":"echo"}"#);
    let question = Question::Transition(occurrence.into());
    let evaluation = ask_about(&sandbox(), instance, question).await;
    match evaluation.expect("answers").answer {
        Answer::Transition(Err(Refusal::Denied(reason))) => reason.message,
        other => panic!("expected an echo, got {other:?}"),
    }
}

#[tokio::test]
async fn a_start_has_its_actor_and_times_with_milliseconds() {
    let data = r#"{"behaviour":"echo","function":"start"}"#;
    let question = Question::Start(actor("author"));
    let evaluation = ask_about(&sandbox(), &instance(data), question).await;
    let answer = evaluation.expect("answers").answer;
    let Answer::Start(Err(Refusal::Denied(Reason { message: echo, .. }))) = answer else {
        panic!("expected an echo, got {answer:?}");
    };
    for expected in [
        r#"now: "2026-11-20T18:00:00.250Z""#,
        r#"tenant: "acme", key: "hostile", version: 7, revision: 3"#,
        r#"entity-type: "document", entity-id: "D-1""#,
        r#"data: "{\"behaviour\":\"echo\",\"function\":\"start\"}""#,
        r#"id: "author", groups: ["reviewers"]"#,
    ] {
        assert!(echo.contains(expected), "{expected} is missing in {echo}");
    }
}

#[tokio::test]
async fn sources_have_the_facts_of_their_events() {
    let at = NOW.parse().expect("instant");
    let sources: [(Source, &[&str]); 4] = [
        (
            Source::Signal {
                sender: actor("bank"),
                id: "p-1".into(),
                correlation: Some("order-7".into()),
                at,
            },
            &[
                r#"id: "bank", groups: ["reviewers"]"#,
                r#"id: "p-1", correlation: Some("order-7"), received-at: "2026-11-20T18:00:00.250Z""#,
            ],
        ),
        (
            Source::Deadline {
                task: Some(TaskId(Uuid::nil())),
                due_at: at,
                count: 3,
            },
            &[
                r#"task: Some("00000000-0000-0000-0000-000000000000")"#,
                r#"due-at: "2026-11-20T18:00:00.250Z", count: 3"#,
            ],
        ),
        (
            Source::Child {
                id: "c-1".into(),
                key: "errand".into(),
                entity: Entity {
                    kind: "order".into(),
                    id: "7".into(),
                },
                version: Some(4),
                outcome: "NOT_STARTED".into(),
                reason: Some("no version".into()),
            },
            &[
                r#"id: "c-1", key: "errand", entity-type: "order", entity-id: "7", version: Some(4)"#,
                r#"outcome: "NOT_STARTED", reason: Some("no version")"#,
            ],
        ),
        (
            Source::Service {
                service: "scorer".into(),
                result: CallResult {
                    attempts: 2,
                    error: Some("down".into()),
                    model: Some("m".into()),
                    model_version: Some("7".into()),
                },
            },
            &[
                r#"service: "scorer", attempts: 2, error: Some("down")"#,
                r#"model: Some("m"), model-version: Some("7")"#,
            ],
        ),
    ];
    for (source, parts) in sources {
        let echo = echo(&instance("{}"), occurrence("GO", source, "{}")).await;
        for part in parts {
            assert!(echo.contains(part), "{part} is missing in {echo}");
        }
    }
}

fn state_instance(number: u128, tasks: Vec<Task>) -> StateInstance {
    StateInstance {
        tasks,
        ..StateInstance::new(
            StateId(Uuid::from_u128(number)),
            &format!("S{number}"),
            "2026-11-20T10:00:00.9Z".parse().expect("instant"),
        )
    }
}

#[tokio::test]
async fn the_newest_hundred_past_states_are_passed() {
    let mut instance = instance("{}");
    instance.past = (0..150)
        .map(|number| PastState {
            state: state_instance(number, vec![]),
            left_at: NOW.parse().expect("instant"),
            left_trigger: "GO".into(),
            actor: Some("reviewer".into()),
        })
        .collect();
    let echo = echo(&instance, wanting("echo", "transition")).await;
    assert!(
        echo.contains("omitted: Omitted { texts: 0, states: 50 }"),
        "{echo}"
    );
    assert!(!echo.contains(r#""S49""#) && echo.contains(r#""S50""#));
    assert!(echo.find(r#""S50""#) < echo.find(r#""S149""#));
}

#[tokio::test]
async fn tasks_have_their_owner_and_decision() {
    let at = "2026-11-20T11:00:00Z".parse().expect("instant");
    let decision = Decision {
        outcome: "GO".into(),
        actor: "reviewer".into(),
        on_behalf_of: None,
        comment: Some("fine".into()),
        input: json(r#"{"score":1}"#),
        decided_at: at,
    };
    let task = Task {
        id: wrkflw_core::ids::TaskId(Uuid::from_u128(9)),
        label: "review".into(),
        candidates: vec![Candidate::User("author".into())],
        created_at: at,
        due_at: None,
        deadlines: vec![],
        suspended: None,
        status: TaskStatus::Completed {
            owner: "reviewer".into(),
            claimed_at: at,
            decision,
        },
    };
    let mut instance = instance("{}");
    instance.active = vec![state_instance(5, vec![task])];
    instance
        .attributes
        .insert("amount".into(), AttributeValue::Decimal("1999.90".into()));
    let echo = echo(&instance, wanting("echo", "transition")).await;
    for expected in [
        r#"entered-at: "2026-11-20T10:00:00.900Z""#,
        "status: TaskStatus::Completed",
        r#"owner: Some("reviewer")"#,
        r#"claimed-at: Some("2026-11-20T11:00:00.000Z")"#,
        r#"comment: Some("fine"), input: "{\"score\":1}""#,
        r#"Decimal("1999.90")"#,
    ] {
        assert!(echo.contains(expected), "{expected} is missing in {echo}");
    }
}

/// Roughly the largest instance: a crowd that votes with long texts, a long history, large settings.
fn crowded() -> Instance {
    let at = "2026-11-20T11:00:00Z".parse().expect("instant");
    let decided = |number: u128, said: usize| {
        let owner = format!("a-person-of-the-crowd-{number}");
        let decision = Decision {
            outcome: "APPROVE".into(),
            actor: owner.clone(),
            on_behalf_of: None,
            comment: Some("c".repeat(said)),
            input: json(r#"{"costCentre":"4711"}"#),
            decided_at: at,
        };
        Task {
            id: wrkflw_core::ids::TaskId(Uuid::from_u128(number)),
            label: owner.clone(),
            candidates: vec![Candidate::User(owner.clone()); 4],
            created_at: at,
            due_at: None,
            deadlines: vec![],
            suspended: None,
            status: TaskStatus::Completed {
                owner,
                claimed_at: at,
                decision,
            },
        }
    };
    let mut data = instance(&format!(
        r#"{{"amount":7,"currency":"EUR","supplier":"S","purpose":"{}"}}"#,
        "x".repeat(65_000)
    ));
    let mut finance = state_instance(1, (0..200).map(|number| decided(number, 600)).collect());
    finance.name = "Finance".into();
    (finance.needed, finance.tasks[0].status) = (200, TaskStatus::Pending);
    data.active = vec![finance];
    data.past = (1_000..1_100)
        .map(|number| PastState {
            state: state_instance(
                number,
                (0..3)
                    .map(|task| decided(number * 10 + task, 200))
                    .collect(),
            ),
            left_at: at,
            left_trigger: "APPROVE".into(),
            actor: None,
        })
        .collect();
    data
}

#[tokio::test]
async fn the_largest_facts_are_within_the_limits_of_a_flow() {
    let component = guests::purchase_approval();
    let person = |number| format!(r#""{}-{number}""#, "p".repeat(400));
    let people: Vec<_> = (0..150).map(person).collect();
    let config = json(&format!(r#"{{"finance":[{}]}}"#, people.join(",")));
    let instance = crowded();
    let facts = Facts {
        now: NOW.parse().expect("instant"),
        tenant: "acme",
        config: &config,
        instance: &instance,
        reads: &Read::ALL,
    };
    let state_instance = &instance.active[0];
    let source = Source::Task {
        task: state_instance.tasks[0].id.to_string(),
        actor: actor("a-person-of-the-crowd-0"),
        comment: Some("c".repeat(16 << 10)),
    };
    let decision = Occurrence {
        state_instance: state_instance.id.to_string(),
        ..occurrence(
            "APPROVE",
            source,
            &format!(r#"{{"costCentre":"{}"}}"#, "4".repeat(65_000)),
        )
    };
    for question in [
        Question::Start(actor("a-person-of-the-crowd-0")),
        Question::Transition(decision.into()),
        entering(&["Finance"]),
    ] {
        let fetch = async || Ok::<_, Infallible>(component.to_vec());
        let result = sandbox()
            .ask(&pinned(component), facts, &question, fetch)
            .await;
        let answered = result.unwrap_or_else(|error| panic!("{}: {error}", question.function()));
        assert!(answered.fuel > 0);
    }
}
