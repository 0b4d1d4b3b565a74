//! A flow whose answers are closures, and a driver for one instance of it.

use std::cell::RefCell;
use std::rc::Rc;

use jiff::Timestamp;
use uuid::Uuid;

use super::directory::TestDirectory;
use crate::actor::{Actor, StandIn};
use crate::answer::{Assignment, Next, Offer, Plan, Principal, Refusal, Target, Waiting, Work};
use crate::check::samples::{self, way_by as way};
use crate::command::Command;
use crate::execution::{Ask, Context, Execution, ExecutionError, Outcome};
use crate::graph::{
    AttributeDeclaration, AttributeType, FiredBy, Graph, NameUse, State, StateKind,
};
use crate::ids::{Digest, TaskId, VersionRef};
use crate::instance::{Entity, Instance};
use crate::json::Json;
use crate::lookup::{Findings, Lookup};
use crate::question::{Answer, Entry, EntryCause, Occurrence, Question, Source};
use crate::rejection::Rejection;
use crate::schema::Schema;
use crate::template::Templates;
use crate::version::Version;

type Starter = Box<dyn Fn(&Actor) -> Result<(), Refusal>>;
type Guard = Box<dyn Fn(&Occurrence) -> Result<(), Refusal>>;
type Planner = Box<dyn Fn(&Occurrence, &str, &Instance) -> Result<Plan, Refusal>>;
type Assigner = Box<dyn Fn(&str, &EntryCause) -> Assignment>;
type Waiter = Box<dyn Fn(&str) -> Waiting>;
type Enterer = Box<dyn Fn(&[Entry]) -> Result<Vec<Work>, Refusal>>;
type Directory = Box<dyn Fn(&Lookup) -> Findings>;

/// A flow under test. `Review` goes on GO anywhere, on DROP with a permission to `Done`.
pub(super) struct Script {
    version: Version,
    /// What a migration leads to.
    target: Option<Version>,
    start: Starter,
    /// Asked before `plan` about whatever a person decides or sends.
    guard: Guard,
    plan: Planner,
    assign: Assigner,
    wait: Waiter,
    /// Answers for `assign` and `wait`, if it is set.
    enter: Option<Enterer>,
    directory: Directory,
    /// The functions that were asked.
    pub(super) asked: Vec<&'static str>,
    pub(super) instance: Option<Instance>,
    /// Ids are numbers, in the order of their making.
    made: u128,
    /// Seconds.
    now: i64,
}

impl Script {
    /// Everything is allowed, GO leads to `Done`, and all work is offered to the crew.
    pub(super) fn new() -> Script {
        let reference = VersionRef {
            key: "subflows".into(),
            version: 1,
        };
        let schema = json(
            r#"{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}"#,
        );
        let compiled = Schema::compile(&schema).expect("a schema");
        let graph = graph(schema);
        let version = Version {
            reference,
            component: Digest([0; 32]),
            config: Json::empty().into(),
            graph,
            schema: Some(compiled),
            templates: Templates::default(),
        };
        Script {
            version,
            target: None,
            start: Box::new(|_| Ok(())),
            guard: Box::new(|_| Ok(())),
            plan: Box::new(|_, _, _| Ok(enter(&["Done"]))),
            assign: Box::new(|_, _| offers(&["crew"])),
            wait: Box::new(|state| panic!("nobody waits in {state}")),
            enter: None,
            asked: Vec::new(),
            directory: Box::new(|lookup| TestDirectory::new().found(lookup)),
            instance: None,
            made: 0,
            now: 0,
        }
    }

    pub(super) fn starting(
        mut self,
        start: impl Fn(&Actor) -> Result<(), Refusal> + 'static,
    ) -> Script {
        self.start = Box::new(start);
        self
    }

    pub(super) fn guarding(
        mut self,
        guard: impl Fn(&Occurrence) -> Result<(), Refusal> + 'static,
    ) -> Script {
        self.guard = Box::new(guard);
        self
    }

    /// `plan` is asked with the name of the state that is left.
    pub(super) fn planning(
        self,
        plan: impl Fn(&str, &Instance) -> Result<Plan, Refusal> + 'static,
    ) -> Script {
        self.planning_for(move |_, state, instance| plan(state, instance))
    }

    pub(super) fn planning_for(
        mut self,
        plan: impl Fn(&Occurrence, &str, &Instance) -> Result<Plan, Refusal> + 'static,
    ) -> Script {
        self.plan = Box::new(plan);
        self
    }

    pub(super) fn assigning(self, assign: impl Fn(&str) -> Assignment + 'static) -> Script {
        self.assigning_for(move |state, _| assign(state))
    }

    pub(super) fn assigning_for(
        mut self,
        assign: impl Fn(&str, &EntryCause) -> Assignment + 'static,
    ) -> Script {
        self.assign = Box::new(assign);
        self
    }

    pub(super) fn waiting(mut self, wait: impl Fn(&str) -> Waiting + 'static) -> Script {
        self.wait = Box::new(wait);
        self
    }

    pub(super) fn entering(
        mut self,
        enter: impl Fn(&[Entry]) -> Result<Vec<Work>, Refusal> + 'static,
    ) -> Script {
        self.enter = Some(Box::new(enter));
        self
    }

    /// Sets the directory's answers.
    pub(super) fn knowing(mut self, directory: impl Fn(&Lookup) -> Findings + 'static) -> Script {
        self.directory = Box::new(directory);
        self
    }

    /// Uses this directory, with its later changes.
    pub(super) fn living_in(self, directory: &Rc<RefCell<TestDirectory>>) -> Script {
        let directory = directory.clone();
        self.knowing(move |lookup| directory.borrow_mut().found(lookup))
    }

    /// Another graph than the usual one.
    pub(super) fn drawn(mut self, graph: Graph) -> Script {
        self.version.templates = Templates::of(&graph).expect("templates");
        self.version.graph = graph;
        self.version.schema = None;
        self
    }

    /// Adds a second version, with its graph and schema derived from the first one's.
    pub(super) fn followed_by(mut self, change: impl FnOnce(&mut Graph)) -> Script {
        let mut graph = self.version.graph.clone();
        change(&mut graph);
        let schema = graph.data_schema.as_ref();
        self.target = Some(Version {
            reference: VersionRef {
                version: 2,
                ..self.version.reference.clone()
            },
            component: Digest([1; 32]),
            config: Json::empty().into(),
            schema: schema.map(|schema| Schema::compile(schema).expect("a schema")),
            templates: Templates::of(&graph).expect("templates"),
            graph,
        });
        self
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.version.graph
    }

    /// Of the first version, and of the one that a migration leads to.
    pub(super) fn graphs(&self) -> Vec<Graph> {
        let versions = std::iter::once(&self.version).chain(&self.target);
        versions.map(|version| version.graph.clone()).collect()
    }

    /// Changes the graph of a running instance.
    pub(super) fn redraw(&mut self, change: impl FnOnce(&mut Graph)) {
        change(&mut self.version.graph);
        self.version.templates = Templates::of(&self.version.graph).expect("templates");
    }

    pub(super) fn pass_time(&mut self, seconds: i64) {
        self.now += seconds;
    }

    fn is_migrated(&self) -> bool {
        let current = self.instance.as_ref().map(|instance| &instance.definition);
        current.is_some_and(|current| *current != self.version.reference)
    }

    /// Started by `ann`.
    pub(super) fn started(mut self) -> Script {
        self.run("ann", &start()).expect("a start");
        self
    }

    /// Started by `ann`, its first task claimed by `bob`.
    pub(super) fn claimed(self) -> Script {
        let mut script = self.started();
        let task = script.task(0);
        script
            .run("bob", &Command::Claim { task })
            .expect("a claim");
        script
    }

    pub(super) fn instance(&self) -> &Instance {
        self.instance.as_ref().expect("an instance")
    }

    /// The open or decided task of this number, over all active state instances.
    pub(super) fn task(&self, number: usize) -> TaskId {
        self.instance()
            .active
            .iter()
            .flat_map(|state_instance| &state_instance.tasks)
            .nth(number)
            .expect("a task")
            .id
    }

    /// The next command comes at this second.
    pub(super) fn at(&mut self, second: i64) {
        self.now = second - 1;
    }

    /// The second of the last command.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// Runs a command; a refused one changes nothing.
    pub(super) fn run(
        &mut self,
        actor: &str,
        command: &Command,
    ) -> Result<Outcome, ExecutionError> {
        self.run_as(&person(actor), command)
    }

    pub(super) fn run_as(
        &mut self,
        actor: &Actor,
        command: &Command,
    ) -> Result<Outcome, ExecutionError> {
        self.now += 1;
        let now = Timestamp::from_second(self.now).expect("a time");
        let target = self.target.as_ref().unwrap_or(&self.version);
        let current = if self.is_migrated() {
            target
        } else {
            &self.version
        };
        let (version, previous) = match command {
            Command::Migrate { version: 1, .. } => (&self.version, Some(current)),
            Command::Migrate { .. } => (target, Some(current)),
            _ => (current, None),
        };
        let context = Context {
            version,
            previous,
            tenant: "acme",
            actor,
            now,
        };
        let count = &mut self.made;
        let mut ids = || {
            *count += 1;
            Uuid::from_u128(*count)
        };
        let mut execution = Execution::begin(context, self.instance.clone(), command, &mut ids)?;
        while let Some(ask) = execution.ask()? {
            let question = match ask {
                Ask::Logic(question) => question,
                Ask::Directory(lookup) => {
                    execution.found(&(self.directory)(&lookup))?;
                    continue;
                }
            };
            self.asked.push(question.function());
            let instance = execution.instance().into_owned();
            let answer = match &question {
                Question::Start(by) => Answer::Start((self.start)(by)),
                Question::Transition(occurrence) => {
                    let mut active = instance.active.iter();
                    let here = active.find(|one| one.id.to_string() == occurrence.state_instance);
                    let name = &here.expect("an active state").name;
                    let plan = || (self.plan)(occurrence, name, &instance);
                    Answer::Transition(match occurrence.source {
                        Source::Task { .. } | Source::Signal { .. } => {
                            (self.guard)(occurrence).and_then(|()| plan())
                        }
                        _ => plan(),
                    })
                }
                Question::Enter(entries) => Answer::Enter(if let Some(enter) = &self.enter {
                    enter(entries)
                } else {
                    let work = |entry: &Entry| match version.graph.state(&entry.state)?.kind {
                        StateKind::Wait => Some(Work::Wait((self.wait)(&entry.state))),
                        _ => Some(Work::Task((self.assign)(&entry.state, &entry.cause))),
                    };
                    let works: Option<_> = entries.iter().map(work).collect();
                    Ok(works.expect("declared states"))
                }),
            };
            execution.answer(answer)?;
        }
        let outcome = execution.finish();
        self.instance = Some(outcome.instance.clone());
        Ok(outcome)
    }

    /// `bob` claims the task.
    pub(super) fn claim(&mut self, task: TaskId) {
        self.run("bob", &Command::Claim { task }).expect("a claim");
    }

    /// `bob` decides GO on his first task.
    pub(super) fn go(&mut self) -> Result<Outcome, ExecutionError> {
        let command = decide(self.task(0), "GO");
        self.run("bob", &command)
    }
}

/// The message of a fault of flow logic.
#[track_caller]
pub(super) fn fault(result: Result<Outcome, ExecutionError>) -> String {
    match result {
        Err(ExecutionError::Fault(fault)) => fault.to_string(),
        other => panic!("no fault: {other:?}"),
    }
}

#[track_caller]
pub(super) fn rejection(result: Result<Outcome, ExecutionError>) -> Rejection {
    match result {
        Err(ExecutionError::Rejected(rejection)) => rejection,
        other => panic!("no rejection: {other:?}"),
    }
}

/// The code of a refusal to this actor.
#[track_caller]
pub(super) fn forbidden(result: Result<Outcome, ExecutionError>) -> String {
    let rejection = rejection(result);
    let code = rejection.forbids().map(str::to_owned);
    code.unwrap_or_else(|| panic!("not forbidden: {rejection:?}"))
}

pub(super) fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

/// All are of the crew.
pub(super) fn person(id: &str) -> Actor {
    Actor {
        id: id.into(),
        groups: vec!["crew".into()],
        permissions: vec![],
        on_behalf_of: None,
        stands_in_for: vec![],
    }
}

/// Of no group, standing in for these people, who are of the crew.
pub(super) fn substitute(id: &str, absent: &[&str]) -> Actor {
    let stand_in = |person: &&str| StandIn {
        person: (*person).to_owned(),
        groups: vec!["crew".into()],
        definition: None,
        via: vec![],
    };
    Actor {
        groups: vec![],
        stands_in_for: absent.iter().map(stand_in).collect(),
        ..person(id)
    }
}

pub(super) fn start() -> Command {
    let entity = Entity {
        kind: "errand".into(),
        id: "1".into(),
    };
    Command::Start {
        lineage: None,
        definition: "subflows".into(),
        entity,
        data: json(r#"{"title":"A plan"}"#),
    }
}

pub(super) fn decide(task: TaskId, outcome: &str) -> Command {
    Command::Decide {
        task,
        outcome: outcome.into(),
        comment: None,
        input: Json::empty(),
    }
}

pub(super) fn enter(states: &[&str]) -> Plan {
    Plan {
        next: Next::Enter(states.iter().map(|state| Target::new(*state)).collect()),
        ..Plan::default()
    }
}

pub(super) fn end_branch() -> Plan {
    Plan {
        next: Next::EndBranch,
        ..Plan::default()
    }
}

/// A task for each of these groups.
pub(super) fn offers(groups: &[&str]) -> Assignment {
    let offer = |group: &&str| Offer {
        label: "work".into(),
        candidates: vec![Principal::Group((*group).into())],
        ..Offer::default()
    };
    Assignment {
        offers: groups.iter().map(offer).collect(),
        needed: 1,
        ..Assignment::default()
    }
}

fn graph(schema: Json) -> Graph {
    let state = |name: &str, kind| samples::state(name, name, kind);
    let everywhere = ["Review", "Other", "Rework", "Hop", "Done"];
    let mut drop = way("Review", "DROP", FiredBy::Decision, &["Done"]);
    drop.permission = Some("errand:drop".into());
    let attribute = |name: &str, kind| AttributeDeclaration {
        name: name.into(),
        kind,
    };
    Graph {
        initial: "Review".into(),
        initiators: vec!["crew".into()],
        states: vec![
            state("Review", StateKind::Task),
            state("Other", StateKind::Task),
            State {
                own_work: true,
                ..state("Rework", StateKind::Task)
            },
            state("Hop", StateKind::Router),
            state("Done", StateKind::Terminal("DONE".into())),
            state("Unreached", StateKind::Task),
        ],
        transitions: vec![
            way("Review", "GO", FiredBy::Decision, &everywhere),
            drop,
            way("Other", "GO", FiredBy::Decision, &everywhere),
            way("Rework", "GO", FiredBy::Decision, &everywhere),
            way("Hop", "ON", FiredBy::Entry, &everywhere),
        ],
        data_schema: Some(schema),
        attributes: vec![
            attribute("title", AttributeType::Text),
            attribute("price", AttributeType::Decimal),
        ],
        uses: vec![NameUse::Calendar("office".into())],
        ..Graph::default()
    }
}
