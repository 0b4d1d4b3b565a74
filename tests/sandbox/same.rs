//! Same facts, same component, same answer: random calls, each made twice in fresh instances of the newly compiled code, and
//! twice of the stored code. Answer, refusal, failure and fuel are equal all four times.
//!
//! With `WRKFLW_SOAK`, ten times as many.

use serde_json::{Value, json as value};
use wrkflw::sample::DOCUMENT_APPROVAL;
use wrkflw_core::answer::AttributeValue;
use wrkflw_core::graph::Read;
use wrkflw_core::ids::{InstanceId, StateId, TaskId};
use wrkflw_core::instance::{
    Candidate, Decision, Ownership, PastState, StateInstance, Task, TaskStatus,
};

use super::artifacts::Folder;
use super::*;
use crate::support::length::at_length;

/// For each of the guests, ten thousand in total.
const QUESTIONS: u64 = 3_334;
const QUESTIONS_LONG: u64 = 10 * QUESTIONS;

/// Pseudo-random numbers, the same in every run: `SplitMix64`.
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn small(&mut self) -> u32 {
        let [a, b, c, d, ..] = self.number().to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.number() % bound as u64).expect("below a usize")
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn some<T>(&mut self, max: usize, mut make: impl FnMut(&mut Random) -> T) -> Vec<T> {
        (0..self.below(max + 1)).map(|_| make(self)).collect()
    }

    fn text(&mut self) -> String {
        let characters = [
            'a', 'Z', '0', ' ', '"', '\\', '/', '\n', 'é', '\u{202e}', '漢', '🙂',
        ];
        let text = self.some(24, |random| characters[random.below(characters.len())]);
        text.into_iter().collect()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => value!(self.below(2) == 0),
            2 => value!(self.number() >> 12),
            3 => value!(f64::from(self.small()) / 8.0),
            4 => value!(self.text()),
            5 => value!(self.some(4, |random| random.value(depth - 1))),
            _ => self.object(depth - 1),
        }
    }

    fn object(&mut self, depth: usize) -> Value {
        let members = self.some(4, |random| (random.text(), random.value(depth)));
        members.into_iter().collect()
    }

    /// Data or input that the guests read, or that they ignore.
    fn document(&mut self) -> Json {
        let behaviour = self.one(&BEHAVIOURS);
        let function = self.one(&["start", "transition", "enter"]);
        let users = self.some(3, |random| random.one(&USERS).to_owned());
        let document = match self.below(4) {
            0 => self.object(3),
            1 => value!({ "behaviour": behaviour, "function": function }),
            2 => value!({
                "assign": { "offers": [{ "users": users, "groups": ["reviewers"] }], "needed": self.below(4) },
                "overdue": { "offers": [{ "users": users }], "needed": 1 },
                "patient": self.below(2) == 0,
            }),
            _ => {
                value!({ "title": self.text(), "reason": self.text(), "amount": self.below(9_999).to_string() })
            }
        };
        json_of(&document)
    }

    fn moment(&mut self) -> jiff::Timestamp {
        let millis = i64::try_from(self.number() % 4_000_000_000_000).expect("within a century");
        jiff::Timestamp::from_millisecond(millis).expect("an instant")
    }

    fn actor(&mut self) -> Actor {
        Actor {
            id: self.one(&USERS).into(),
            groups: self.some(3, |random| {
                random.one(&["authors", "reviewers", "approvers"]).into()
            }),
            permissions: self.some(2, Random::text),
            on_behalf_of: (self.below(4) == 0).then(|| self.one(&USERS).into()),
            stands_in_for: vec![],
        }
    }

    fn task(&mut self) -> Task {
        let owner: String = self.one(&USERS).into();
        let claimed_at = self.moment();
        let status = match self.below(4) {
            0 => TaskStatus::Pending,
            1 => TaskStatus::Claimed {
                owner,
                claimed_at,
                ownership: Ownership::default(),
            },
            2 => TaskStatus::Cancelled {
                owner: Some(owner),
                cancelled_at: claimed_at,
                reason: None,
            },
            _ => TaskStatus::Completed {
                claimed_at,
                decision: Decision {
                    outcome: self.one(&TRIGGERS).into(),
                    actor: owner.clone(),
                    on_behalf_of: None,
                    comment: (self.below(2) == 0).then(|| self.text()),
                    input: self.document(),
                    decided_at: self.moment(),
                },
                owner,
            },
        };
        Task {
            id: TaskId(self.id()),
            label: self.text(),
            candidates: self.some(2, |random| Candidate::Group(random.text())),
            created_at: self.moment(),
            due_at: None,
            deadlines: vec![],
            suspended: None,
            status,
        }
    }

    fn id(&mut self) -> Uuid {
        Uuid::from_u64_pair(self.number(), self.number())
    }

    fn state_instance(&mut self) -> StateInstance {
        let (id, name, at) = (StateId(self.id()), self.one(&STATES), self.moment());
        StateInstance {
            tasks: self.some(3, Random::task),
            needed: u32::try_from(self.below(4)).expect("small"),
            ..StateInstance::new(id, name, at)
        }
    }

    fn instance(&mut self) -> Instance {
        let mut instance = instance(self.document().as_str());
        instance.id = InstanceId(self.id());
        instance.revision = self.small() >> 1;
        instance.initiator = self.one(&USERS).into();
        instance.started_at = self.moment();
        instance.active = self.some(2, Random::state_instance);
        instance.past = self.some(4, |random| PastState {
            state: random.state_instance(),
            left_at: random.moment(),
            left_trigger: random.one(&TRIGGERS).into(),
            actor: (random.below(2) == 0).then(|| random.one(&USERS).into()),
        });
        for name in self.some(3, Random::text) {
            let value = match self.below(3) {
                0 => AttributeValue::Text(self.text()),
                1 => AttributeValue::Decimal(self.below(1_000).to_string()),
                _ => AttributeValue::Boolean(true),
            };
            instance.attributes.insert(name, value);
        }
        instance
    }

    fn occurrence(&mut self, instance: &Instance) -> Occurrence {
        let state_instance = instance.active.first();
        let task = state_instance.and_then(|state_instance| state_instance.tasks.first());
        let source = match self.below(5) {
            1 => Source::Signal {
                sender: self.actor(),
                id: self.text(),
                correlation: (self.below(2) == 0).then(|| self.text()),
                at: instance.started_at,
            },
            2 => Source::Deadline {
                task: task.map(|task| task.id),
                due_at: instance.started_at,
                count: self.small() % 3,
            },
            3 => Source::Entry,
            _ => Source::Task {
                task: task.map_or_else(|| self.text(), |task| task.id.to_string()),
                actor: self.actor(),
                comment: (self.below(2) == 0).then(|| self.text()),
            },
        };
        Occurrence {
            state_instance: state_instance.map_or_else(String::new, |one| one.id.to_string()),
            trigger: self.one(&TRIGGERS).into(),
            source,
            input: self.document(),
        }
    }

    fn question(&mut self, instance: &Instance) -> Question {
        match self.below(5) {
            0 => Question::Start(self.actor()),
            1..=3 => Question::Transition(self.occurrence(instance).into()),
            _ => {
                let entries = self.below(3);
                let entries = (0..=entries).map(|_| self.entry());
                Question::Enter(entries.collect())
            }
        }
    }

    fn entry(&mut self) -> Entry {
        let cause = match self.below(3) {
            0 => EntryCause::Entered,
            1 => EntryCause::Migrated,
            _ => EntryCause::Overdue {
                task: None,
                count: 1 + self.small() % 3,
            },
        };
        Entry {
            state_instance: self.text(),
            state: self.one(&STATES).into(),
            cause,
        }
    }
}

const USERS: [&str; 5] = ["author", "reviewer", "reviewer2", "approver", "nobody"];
const STATES: [&str; 7] = [
    "Submitted",
    "FinalReview",
    "Rework",
    "Vote",
    "Work",
    "Done",
    "Nowhere",
];
const TRIGGERS: [&str; 7] = ["APPROVE", "REJECT", "SUBMIT", "YES", "NO", "LATE", "GO"];
/// The behaviours of the hostile guest, except those that only wall time ends.
const BEHAVIOURS: [&str; 20] = [
    "ok",
    "deny",
    "invalid",
    "echo",
    "refuse",
    "attributes",
    "nan",
    "remember",
    "escapes",
    "spin",
    "grow",
    "hoard",
    "recurse",
    "nested",
    "backtrack",
    "trap",
    "many_notes",
    "bad_decimal",
    "nul",
    "own_initiator",
];

fn json_of(value: &Value) -> Json {
    json(&value.to_string())
}

/// What must be equal: the answer with its fuel, or the failure.
async fn evaluate(
    sandbox: &Sandbox,
    guest: &(Pinned, &'static [u8]),
    now: jiff::Timestamp,
    instance: &Instance,
    question: &Question,
) -> Result<(Answer, u64), Cause> {
    let config = json("{}");
    let facts = Facts {
        now,
        tenant: "acme",
        config: &config,
        instance,
        reads: &Read::ALL,
    };
    let fetch = async || -> Result<Vec<u8>, Infallible> { Ok(guest.1.to_vec()) };
    let evaluated = sandbox.ask(&guest.0, facts, question, fetch).await;
    evaluated
        .map(|evaluation| (evaluation.answer, evaluation.fuel))
        .map_err(|error| error.cause)
}

/// Little fuel, so that a call that uses all of it is fast. Much wall time, for a busy machine.
fn frugal() -> Settings {
    Settings {
        fuel_start: 1_000_000,
        fuel_transition: 1_000_000,
        fuel_enter: 1_000_000,
        ..settings()
    }
}

fn questions() -> u64 {
    at_length(QUESTIONS, QUESTIONS_LONG)
}

#[tokio::test(flavor = "multi_thread")]
async fn random_calls_have_one_answer_each() {
    let folder = Folder::new("same");
    let guests = [DOCUMENT_APPROVAL, guests::hostile(), guests::committee()]
        .map(|component| (pinned(component), component));
    let keeping =
        Sandbox::new(frugal().keeping_artifacts(folder.path(), [7; 32])).expect("a sandbox");
    for (pinned, component) in &guests {
        let fetch = async || Ok::<_, Infallible>(component.to_vec());
        keeping
            .warm(pinned, fetch)
            .await
            .expect("compiled and kept");
    }
    let compiled = Sandbox::new(frugal()).expect("a sandbox");
    let stored =
        Sandbox::new(frugal().keeping_artifacts(folder.path(), [7; 32])).expect("a sandbox");
    for (pinned, _) in &guests {
        let fetch = async || Err::<Vec<u8>, _>("it is to be loaded from its artifact");
        stored.warm(pinned, fetch).await.expect("loaded");
    }
    let mut work = tokio::task::JoinSet::new();
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    for worker in 0..workers {
        let (compiled, stored, guests) = (compiled.clone(), stored.clone(), guests.clone());
        work.spawn(async move {
            let (mut answered, mut failed) = (0_u64, 0_u64);
            for number in
                (worker..questions()).step_by(usize::try_from(workers).expect("a small number"))
            {
                for guest in &guests {
                    let mut random = Random(number);
                    let (now, instance) = (random.moment(), random.instance());
                    let question = random.question(&instance);
                    let first = evaluate(&compiled, guest, now, &instance, &question).await;
                    for sandbox in [&compiled, &stored, &stored] {
                        let again = evaluate(sandbox, guest, now, &instance, &question).await;
                        assert_eq!(
                            first, again,
                            "question {number}: {question:?} about {instance:?}"
                        );
                    }
                    match first {
                        Ok(_) => answered += 1,
                        Err(_) => failed += 1,
                    }
                }
            }
            (answered, failed)
        });
    }
    let counts = work.join_all().await;
    let answered: u64 = counts.iter().map(|(answered, _)| answered).sum();
    let failed: u64 = counts.iter().map(|(_, failed)| failed).sum();
    assert_eq!(answered + failed, 3 * questions());
    // Both results occurred often.
    assert!(
        answered > questions() && failed > questions() / 20,
        "{answered} answered, {failed} failed"
    );
}
