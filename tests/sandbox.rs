//! The sandbox from the outside: real components, one of them hostile in every way.

mod admission;
mod artifacts;
mod compiler;
mod limits;
mod questions;
mod same;
mod sample;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};
use uuid::Uuid;
use wrkflw_core::actor::Actor;
use wrkflw_core::answer::{Next, Plan, Target};
use wrkflw_core::graph::Read;
use wrkflw_core::ids::{Digest, InstanceId, VersionRef};
use wrkflw_core::instance::{Entity, Instance, Status};
use wrkflw_core::json::Json;
use wrkflw_core::question::{Answer, Entry, EntryCause, Facts, Occurrence, Question, Source};
use wrkflw_core::template::Labels;
use wrkflw_sandbox::{Cause, Compiler, Evaluation, GuestError, Pinned, Sandbox, Settings};

use crate::support::guests;

const NOW: &str = "2026-11-20T18:00:00.250Z";

fn settings() -> Settings {
    Settings {
        // On a shared, busy machine, a result about fuel must not become one about time.
        deadline_ms: 2_000,
        queue_ms_max: 60_000,
        ..Settings::new(Compiler::InProcess)
    }
}

/// A sandbox for all tests without special requirements.
fn sandbox() -> Sandbox {
    static SHARED: LazyLock<Sandbox> = LazyLock::new(|| Sandbox::new(settings()).expect("sandbox"));
    SHARED.clone()
}

fn digest(component: &[u8]) -> Digest {
    Digest(Sha256::digest(component).into())
}

fn pinned(component: &[u8]) -> Pinned {
    Pinned {
        reference: VersionRef {
            key: "hostile".into(),
            version: 7,
        },
        digest: digest(component),
    }
}

fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

fn instance(data: &str) -> Instance {
    let at = NOW.parse().expect("instant");
    Instance {
        id: InstanceId(Uuid::from_u128(1)),
        definition: pinned(&[]).reference,
        revision: 3,
        entity: Entity {
            kind: "document".into(),
            id: "D-1".into(),
        },
        initiator: "author".into(),
        requesters: vec!["author".into()],
        status: Status::Running,
        started_at: at,
        updated_at: at,
        predecessor: None,
        parent: None,
        data: json(data),
        labels: Labels::default(),
        attributes: BTreeMap::default(),
        active: vec![],
        waiting: vec![],
        past: vec![],
        sole: false,
        observers: None,
        buffered: vec![],
    }
}

fn occurrence(trigger: &str, source: Source, input: &str) -> Occurrence {
    Occurrence {
        state_instance: String::new(),
        trigger: trigger.into(),
        source,
        input: json(input),
    }
}

fn actor(id: &str) -> Actor {
    Actor {
        id: id.into(),
        groups: vec!["reviewers".into()],
        permissions: vec![],
        on_behalf_of: None,
        stands_in_for: vec![],
    }
}

/// A decision whose input asks `function` to misbehave.
fn wanting(behaviour: &str, function: &str) -> Occurrence {
    let source = Source::Task {
        task: "t".into(),
        actor: actor("reviewer"),
        comment: None,
    };
    let input = format!(r#"{{"behaviour":"{behaviour}","function":"{function}"}}"#);
    occurrence("GO", source, &input)
}

/// Calls the hostile guest.
async fn ask(sandbox: &Sandbox, question: Question) -> Result<Evaluation, GuestError> {
    ask_about(sandbox, &instance("{}"), question).await
}

async fn ask_about(
    sandbox: &Sandbox,
    instance: &Instance,
    question: Question,
) -> Result<Evaluation, GuestError> {
    let component = guests::hostile();
    let config = json("{}");
    let facts = Facts {
        now: NOW.parse().expect("instant"),
        tenant: "acme",
        config: &config,
        instance,
        reads: &Read::ALL,
    };
    let fetch = async || Ok::<_, Infallible>(component.to_vec());
    sandbox
        .ask(&pinned(component), facts, &question, fetch)
        .await
}

async fn transition(sandbox: &Sandbox, behaviour: &str) -> Result<Evaluation, GuestError> {
    let occurrence = wanting(behaviour, "transition");
    ask(sandbox, Question::Transition(occurrence.into())).await
}

/// The work in the states of these names, which are being entered.
fn entering(states: &[&str]) -> Question {
    let entry = |state: &&str| Entry {
        state_instance: String::new(),
        state: (*state).to_owned(),
        cause: EntryCause::Entered,
    };
    Question::Enter(states.iter().map(entry).collect())
}

async fn cause(sandbox: &Sandbox, behaviour: &str) -> Cause {
    transition(sandbox, behaviour)
        .await
        .expect_err(behaviour)
        .cause
}

fn plan(evaluation: Evaluation) -> Plan {
    match evaluation.answer {
        Answer::Transition(Ok(plan)) => plan,
        other => panic!("expected a plan, got {other:?}"),
    }
}
