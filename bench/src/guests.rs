//! The cost of flow logic: calls in fresh instances, and the time to load a component.
//!
//! No HTTP and no database: the sandbox alone, with the sample flow that the program contains.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;
use wrkflw::sample::DOCUMENT_APPROVAL;
use wrkflw_core::actor::Actor;
use wrkflw_core::ids::{Digest, InstanceId, StateId, TaskId, VersionRef};
use wrkflw_core::instance::{Entity, Instance, Ownership, StateInstance, Status, Task, TaskStatus};
use wrkflw_core::json::Json;
use wrkflw_core::question::{Entry, EntryCause, Facts, Occurrence, Question, Source};
use wrkflw_core::template::Labels;
use wrkflw_sandbox::{Compiler, Pinned, Sandbox, Settings};

use crate::usage;

const NOW: &str = "2026-11-20T18:00:00.250Z";
const KEY: [u8; 32] = [7; 32];

/// Calls of flow logic, and cold loads.
#[derive(Args)]
pub(crate) struct Guests {
    /// Calls of each function
    #[arg(long, default_value_t = 20_000)]
    calls: usize,
    /// Concurrent callers, each with this number of calls
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Cold loads from each source
    #[arg(long, default_value_t = 20)]
    loads: usize,
    /// A component to measure instead of the sample; it must have the sample's states
    #[arg(long)]
    component: Option<std::path::PathBuf>,
}

impl Guests {
    pub(crate) async fn run(&self) -> anyhow::Result<String> {
        let component = match &self.component {
            Some(path) => std::fs::read(path)?,
            None => DOCUMENT_APPROVAL.to_vec(),
        };
        let subject = Arc::new(Subject::new(component)?);
        let mut table = format!(
            "{:<24}{:>9}{:>12}{:>12}{:>12}{:>12}\n",
            "", "times", "p50 us", "p95 us", "fuel", "cpu us"
        );
        let sandbox = Sandbox::new(settings()).map_err(anyhow::Error::msg)?;
        subject.warm_in(&sandbox).await?;
        for (name, question) in questions() {
            // A tenth more calls warm caches and the pool.
            self.ask(&subject, &sandbox, &question, self.calls / 10)
                .await?;
            let used = usage::processor_time(std::process::id())?;
            let mut asked = self.ask(&subject, &sandbox, &question, self.calls).await?;
            let used = usage::processor_time(std::process::id())?.saturating_sub(used);
            let calls = u32::try_from(asked.running.len())?.max(1);
            let each = (used / calls).as_secs_f64() * 1e6;
            let more = format!("{:>12}{each:>12.1}", asked.fuel);
            let title = format!("{name}, instance and all");
            line(&mut table, &title, &mut asked.running, &more);
            let title = format!("{name}, with conversions");
            line(&mut table, &title, &mut asked.asking, "");
        }
        self.cold(&subject, &mut table).await?;
        Ok(table)
    }

    /// Runs all callers concurrently.
    async fn ask(
        &self,
        subject: &Arc<Subject>,
        sandbox: &Sandbox,
        question: &Question,
        calls: usize,
    ) -> anyhow::Result<Asked> {
        let mut callers = JoinSet::new();
        for _ in 0..self.threads {
            let (subject, sandbox) = (Arc::clone(subject), sandbox.clone());
            let question = question.clone();
            callers.spawn(async move {
                let mut asked = Asked::default();
                for _ in 0..calls {
                    let begun = Instant::now();
                    let (duration, fuel) = subject.ask(&sandbox, &question).await?;
                    asked.asking.push(begun.elapsed());
                    asked.running.push(duration);
                    asked.fuel = fuel;
                }
                anyhow::Ok(asked)
            });
        }
        let mut all = Asked::default();
        while let Some(asked) = callers.join_next().await {
            let asked = asked??;
            all.asking.extend(asked.asking);
            all.running.extend(asked.running);
            all.fuel = asked.fuel;
        }
        Ok(all)
    }

    async fn cold(&self, subject: &Subject, table: &mut String) -> anyhow::Result<()> {
        let folder = std::env::temp_dir().join(format!("wrkflw-bench-{}", std::process::id()));
        let kept = || settings().keeping_artifacts(&folder, KEY);
        let (mut compiled, mut loaded) = (Vec::new(), Vec::new());
        for _ in 0..self.loads {
            compiled.push(subject.warm(settings()).await?);
        }
        subject.warm(kept()).await?;
        for _ in 0..self.loads {
            loaded.push(subject.warm(kept()).await?);
        }
        std::fs::remove_dir_all(&folder)?;
        line(table, "cold load from wasm", &mut compiled, "");
        line(table, "cold load from artifact", &mut loaded, "");
        Ok(())
    }
}

/// The times of calls of one function.
#[derive(Default)]
struct Asked {
    asking: Vec<Duration>,
    running: Vec<Duration>,
    fuel: u64,
}

struct Subject {
    component: Vec<u8>,
    pinned: Pinned,
    config: Json,
    instance: Instance,
}

impl Subject {
    fn new(component: Vec<u8>) -> anyhow::Result<Subject> {
        let reference = VersionRef {
            key: "document-approval".into(),
            version: 1,
        };
        Ok(Subject {
            pinned: Pinned {
                digest: Digest(Sha256::digest(&component).into()),
                reference: reference.clone(),
            },
            component,
            config: json("{}")?,
            instance: instance(reference)?,
        })
    }

    async fn ask(&self, sandbox: &Sandbox, question: &Question) -> anyhow::Result<(Duration, u64)> {
        let facts = Facts {
            now: NOW.parse()?,
            tenant: "acme",
            config: &self.config,
            instance: &self.instance,
            reads: &[],
        };
        let fetch = async || Ok::<_, Infallible>(self.component.clone());
        let evaluated = sandbox.ask(&self.pinned, facts, question, fetch).await?;
        Ok((evaluated.duration, evaluated.fuel))
    }

    /// The time until a new sandbox can make the first call.
    async fn warm(&self, settings: Settings) -> anyhow::Result<Duration> {
        let sandbox = Sandbox::new(settings).map_err(anyhow::Error::msg)?;
        let begun = Instant::now();
        self.warm_in(&sandbox).await?;
        Ok(begun.elapsed())
    }

    async fn warm_in(&self, sandbox: &Sandbox) -> anyhow::Result<()> {
        let fetch = async || Ok::<_, Infallible>(self.component.clone());
        Ok(sandbox.warm(&self.pinned, fetch).await?)
    }
}

fn settings() -> Settings {
    Settings::new(Compiler::InProcess)
}

fn json(text: &str) -> anyhow::Result<Json> {
    Json::parse(text).map_err(|error| anyhow::anyhow!("{}", error.detail))
}

/// A document under its first review, with a task that a reviewer owns.
fn instance(definition: VersionRef) -> anyhow::Result<Instance> {
    let at = NOW.parse()?;
    let task = Task {
        id: TaskId(uuid::Uuid::from_u128(3)),
        label: "review".into(),
        candidates: vec![],
        created_at: at,
        due_at: None,
        deadlines: vec![],
        suspended: None,
        status: TaskStatus::Claimed {
            owner: "reviewer".into(),
            claimed_at: at,
            ownership: Ownership::default(),
        },
    };
    let state_instance = StateId(uuid::Uuid::from_u128(2));
    Ok(Instance {
        id: InstanceId(uuid::Uuid::from_u128(1)),
        definition,
        revision: 2,
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
        data: json(r#"{"title":"A plan"}"#)?,
        labels: Labels::default(),
        attributes: BTreeMap::default(),
        active: vec![StateInstance {
            tasks: vec![task],
            needed: 1,
            ..StateInstance::new(state_instance, "Submitted", at)
        }],
        waiting: vec![],
        past: vec![],
        sole: false,
        observers: None,
        buffered: vec![],
    })
}

fn questions() -> [(&'static str, Question); 3] {
    let reviewer = || Actor {
        id: "reviewer".into(),
        groups: vec!["reviewers".into()],
        permissions: vec!["task:act".into()],
        on_behalf_of: None,
        stands_in_for: vec![],
    };
    let decision = Occurrence {
        state_instance: uuid::Uuid::from_u128(2).to_string(),
        trigger: "APPROVE".into(),
        source: Source::Task {
            task: uuid::Uuid::from_u128(3).to_string(),
            actor: reviewer(),
            comment: Some("fine".into()),
        },
        input: Json::empty(),
    };
    [
        ("start", Question::Start(reviewer())),
        ("transition", Question::Transition(decision.into())),
        (
            "enter",
            Question::Enter(vec![Entry {
                state_instance: uuid::Uuid::from_u128(4).to_string(),
                state: "FinalReview".into(),
                cause: EntryCause::Entered,
            }]),
        ),
    ]
}

fn line(table: &mut String, name: &str, took: &mut [Duration], more: &str) {
    took.sort();
    let micros = |percent: usize| {
        let at = took.len().saturating_sub(1) * percent / 100;
        took.get(at).map_or(0.0, |took| took.as_secs_f64() * 1e6)
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        table,
        "{name:<24}{:>9}{:>12.1}{:>12.1}{more}",
        took.len(),
        micros(50),
        micros(95)
    );
}
