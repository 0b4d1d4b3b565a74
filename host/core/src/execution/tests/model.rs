//! Random flows, people and commands, compared with a small model of the host's rules that shares no code with the host.
//!
//! Flow logic answers at random and it refuses nothing, so only the host refuses commands. A rule must permit every
//! command that was executed, and forbid every command that was refused. A failure prints all steps.

mod choices;
mod flow;
mod ledger;
mod outside;
mod rules;
mod staffing;
mod step;
mod world;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use super::script::Script;
use crate::actor::Actor;
use crate::apply::{Stamp, apply};
use crate::command::{Command, Lineage};
use crate::event::Event;
use crate::execution::{ExecutionError, Outcome};
use crate::instance::{CHILD_CANCELLED, Instance, Status};
use crate::json::Json;
use crate::rejection::Rejection;

use choices::{ALLOCATED, Choices};
use flow::Flow;
use ledger::{Checked, Ledger, Life, Moment, VisitPhase, ensure};
use rules::AttemptedCommand;
use step::{ModelStep, View};
use world::{Change, World};

const CASES: u32 = 700;
const STEPS_MAX: usize = 60;

/// What must have happened for the walks to show anything.
const LEAST: [(&str, usize); 29] = [
    (ALLOCATED, 100),
    ("FLOW_RETITLED", 20),
    ("DECISION_RECORDED", 300),
    (FOR_ANOTHER, 50),
    ("TASK_DELEGATED", 200),
    ("TASK_RESOLVED", 50),
    ("TASK_REASSIGNED", 200),
    ("TASK_ESCALATED", 20),
    ("TASK_SUSPENDED", 50),
    ("TASK_RESUMED", 20),
    ("TASK_REROUTED", 50),
    ("STATE_UNASSIGNABLE", 100),
    ("STATE_ASSIGNABLE", 50),
    ("BRANCH_ARRIVED", 30),
    ("FLOW_COMPLETED", 50),
    (CANCELLED_LATE, 5),
    ("FLOW_RESTARTED", 100),
    ("SIGNAL_RECEIVED", 400),
    ("SIGNAL_TAKEN", 50),
    ("CHILD_ENDED", 50),
    ("TRIGGER_REFUSED", 5),
    ("FLOW_MIGRATED", 150),
    (BORN, 50),
    (CAME_BACK, 20),
    (NOBODY_LEFT, 20),
    ("no migrate", 100),
    ("no signal", 200),
    ("no decide", 500),
    ("no claim", 500),
];
/// An instance that a deadline cancelled.
const CANCELLED_LATE: &str = "cancelled late";
/// A decision in somebody else's name.
const FOR_ANOTHER: &str = "for another";
/// A child that was started, and one whose end came back.
const BORN: &str = "born";
const CAME_BACK: &str = "came back";
/// A migration that would have left work to nobody.
const NOBODY_LEFT: &str = "nobody left";

/// A running walk and its results.
struct Walk {
    script: Script,
    world: Rc<RefCell<World>>,
    choices: Rc<RefCell<Choices>>,
    ledger: Ledger,
    /// Folded from the events alone.
    folded: Option<Instance>,
    /// The waiting parents, from the outermost one.
    parents: Vec<Kin>,
    /// The directory has changed since the host last looked.
    changed: bool,
    /// Steps so far.
    taken: usize,
    steps: Vec<String>,
    /// How often each kind of event was seen, and each kind of command refused.
    seen: BTreeMap<String, usize>,
}

/// An instance that waits while the walk goes on with its child.
struct Kin {
    instance: Instance,
    ledger: Ledger,
    folded: Option<Instance>,
}

impl Walk {
    fn new(flow: &Flow, directory: &[Change]) -> Walk {
        let world = Rc::new(RefCell::new(World::default()));
        let choices = Rc::new(RefCell::new(Choices::default()));
        for change in directory {
            world.borrow_mut().take(change);
        }
        let script = flow.script(&choices, &world);
        Walk {
            ledger: Ledger::new(script.graphs()),
            script,
            parents: Vec::new(),
            taken: 0,
            world,
            choices,
            folded: None,
            changed: false,
            steps: Vec::new(),
            seen: BTreeMap::new(),
        }
    }

    fn step(&mut self, step: &ModelStep) -> Checked {
        for change in &step.changes {
            self.steps.push(format!("{change:?}"));
            self.world.borrow_mut().take(change);
            self.changed = true;
        }
        self.taken += 1;
        self.choices.borrow_mut().left.clone_from(&step.choices);
        let Some(instance) = self.script.instance.clone() else {
            let actor = world::PEOPLE[step.choices.len() % world::PEOPLE.len()];
            let actor = self.world.borrow().actor(actor);
            return self.start(&actor, &step.start(None));
        };
        if step.reassessed && self.changed {
            let reassessment = Command::Reassessment {
                instance: instance.id,
            };
            self.go_on(&Actor::host(), &reassessment)?;
        }
        let instance = self.script.instance().clone();
        if instance.status.ended_at().is_some()
            && let Some(parent) = self.parents.pop()
        {
            return self.come_back(&instance, parent);
        }
        if !self.parents.is_empty() && step.ends_child() {
            let command = Command::Cancel {
                instance: instance.id,
                reason: "parent left the state".into(),
            };
            return self.go_on(&Actor::host(), &command);
        }
        let (actor, command) = step.command(&View {
            instance: &instance,
            ledger: &self.ledger,
            world: &self.world.borrow(),
            number: self.taken,
        });
        match command {
            Command::Start { .. } => self.start(&actor, &command),
            _ => self.go_on(&actor, &command),
        }
    }

    /// The parent is told that the child has ended.
    fn come_back(&mut self, child: &Instance, parent: Kin) -> Checked {
        let outcome = match &child.status {
            Status::Completed { outcome, .. } => outcome.clone(),
            _ => CHILD_CANCELLED.to_owned(),
        };
        let command = Command::ChildEnded {
            instance: parent.instance.id,
            child: child.id,
            version: Some(1),
            outcome,
            data: child.data.clone(),
            reason: None,
        };
        self.script.instance = Some(parent.instance);
        (self.ledger, self.folded) = (parent.ledger, parent.folded);
        // Nobody looked at it meanwhile.
        self.changed = true;
        self.count(CAME_BACK);
        self.go_on(&Actor::host(), &command)
    }

    fn start(&mut self, actor: &Actor, command: &Command) -> Checked {
        let before = self.script.instance.take();
        let mut ledger = Ledger::new(self.ledger.graphs.clone());
        let world = self.world.borrow().clone();
        self.choices.borrow_mut().version = 0;
        // The host starts children for whoever may start their parent.
        let permitted = if actor.is_host() {
            Ok(())
        } else {
            rules::may_start(&ledger, &world, &actor.id)
        };
        let result = self.script.run_as(actor, command);
        self.log(actor, command, &result);
        rules::judge(permitted, &result)?;
        let Ok(outcome) = result else {
            self.script.instance = before;
            return Ok(());
        };
        std::mem::swap(&mut self.ledger, &mut ledger);
        let folded = self.folded.take();
        if let (Some(before), Some(lineage)) = (before, lineage_of(command)) {
            let after = &outcome.instance;
            inherits(&before, lineage, after)?;
            if lineage.parent.is_some() {
                self.count(BORN);
                self.parents.push(Kin {
                    instance: before,
                    ledger,
                    folded,
                });
            }
        }
        self.accept(&world, actor, command, &outcome, 1)
    }

    fn go_on(&mut self, actor: &Actor, command: &Command) -> Checked {
        let before = self.script.instance().clone();
        let world = self.world.borrow().clone();
        let attempt = AttemptedCommand {
            ledger: &self.ledger,
            world: &world,
            actor: &actor.id,
            instance: &before,
        };
        let permitted = attempt.permitted(command);
        let is_idle = permitted.is_ok() && attempt.is_idle(command);
        let was = self.ledger.life;
        let version = match command {
            Command::Migrate { version, .. } => usize::from(*version != 1),
            _ => self.ledger.version,
        };
        self.choices.borrow_mut().version = version;
        self.choices.borrow_mut().reassigned.clear();
        let result = self.script.run_as(actor, command);
        self.log(actor, command, &result);
        if let (
            Command::Migrate { states: names, .. },
            Err(ExecutionError::Rejected(Rejection::NobodyLeft { states })),
        ) = (command, &result)
        {
            permitted?;
            self.count(NOBODY_LEFT);
            let offered = &self.choices.borrow().reassigned;
            return self.ledger.nobody_left(&world, (names, offered), states);
        }
        rules::judge(permitted, &result)?;
        match result {
            Err(_) => ensure(*self.script.instance() == before, || {
                "refused, and done".into()
            }),
            Ok(outcome) if outcome.events.is_empty() => {
                self.is_known(command)?;
                let may_be = actor.is_host() || is_idle;
                ensure(may_be && outcome.instance == before, || {
                    "nothing is done".into()
                })?;
                self.looked(&world, command)
            }
            Ok(_) if is_idle => Err("what the actor has is claimed again".into()),
            Ok(outcome) => {
                let lifts = rules::is_taken_at_rest(command);
                ensure(was == Life::Running || lifts, || {
                    format!("{was:?}, and moved")
                })?;
                self.accept(&world, actor, command, &outcome, before.revision + 1)
            }
        }
    }

    fn accept(
        &mut self,
        world: &World,
        actor: &Actor,
        command: &Command,
        outcome: &Outcome,
        revision: u32,
    ) -> Checked {
        let after = &outcome.instance;
        ensure(after.revision == revision, || {
            format!("revision {}", after.revision)
        })?;
        let now = Moment {
            world,
            actor: &actor.id,
            command,
        };
        let stamp = Stamp {
            instance: after.id,
            revision,
            at: after.updated_at,
            actor: (!actor.is_host()).then_some(&actor.id),
        };
        for event in &outcome.events {
            self.ledger.write(event, &now)?;
            let stored = Json::of(event);
            let back: Event =
                serde_json::from_str(stored.as_str()).map_err(|error| error.to_string())?;
            ensure(back == *event, || format!("{stored:?} reads {back:?}"))?;
            let folded = apply(self.folded.take(), event, stamp);
            self.folded = Some(folded.map_err(|error| error.to_string())?);
            self.count(event.kind());
            if event.allocation().is_some() {
                self.count(ALLOCATED);
            }
            if let Event::FlowCancelled {
                deadline: Some(_), ..
            } = event
            {
                self.count(CANCELLED_LATE);
            }
            if let Event::DecisionRecorded {
                on_behalf_of: Some(_),
                ..
            } = event
            {
                self.count(FOR_ANOTHER);
            }
        }
        ensure(self.folded.as_ref() == Some(after), || {
            "the fold is another".into()
        })?;
        let decisions = outcome.events.iter();
        let decisions = decisions.filter(|event| matches!(event, Event::DecisionRecorded { .. }));
        let wanted = usize::from(matches!(command, Command::Decide { .. }));
        ensure(decisions.count() == wanted, || "not one decision".into())?;
        for event in &outcome.events {
            if let Event::StateContinued { state, .. } = event {
                self.ledger.goes_on(after, *state)?;
            }
        }
        self.ledger.agrees(after)?;
        self.ledger.all_are_given()?;
        self.ledger.settled()?;
        self.is_known(command)?;
        self.looked(world, command)?;
        // What was made just now was looked at just now.
        let makes =
            |event: &Event, id| matches!(event, Event::TaskCreated { state, .. } if *state == id);
        let events = &outcome.events;
        self.ledger
            .marks(world, |id| events.iter().any(|event| makes(event, id)))
    }

    /// The end of a child is in the record of the state instance that waits for it.
    fn is_known(&self, command: &Command) -> Checked {
        let Command::ChildEnded { child, .. } = command else {
            return Ok(());
        };
        let ledger = &self.ledger;
        let is_active = |id| ledger.state_instances[id].place == VisitPhase::Active;
        let child_of = ledger.children.get(child);
        let forgotten =
            child_of.is_some_and(|child| child.ended.is_none() && is_active(&child.state_instance));
        ensure(!forgotten, || format!("the end of {child} is forgotten"))
    }

    /// After a reassessment, state instances without eligible people are marked, and no others.
    fn looked(&mut self, world: &World, command: &Command) -> Checked {
        let all = matches!(
            command,
            Command::Reassessment { .. }
                | Command::Resume { .. }
                | Command::Start { .. }
                | Command::Migrate { .. }
        );
        if all && self.ledger.life == Life::Running {
            self.changed = false;
            self.entitled(world)?;
        }
        self.ledger.marks(world, |_| !self.changed)
    }

    /// An owner keeps a claimed task only while they may decide it, for themselves or for an absent person.
    fn entitled(&self, world: &World) -> Checked {
        for work in self.ledger.tasks.values().filter(|work| work.open) {
            let Some(hand) = work
                .hand
                .as_ref()
                .filter(|hand| !hand.given && hand.chain.is_empty())
            else {
                continue;
            };
            let keeps = rules::is_entitled(&self.ledger, world, work, hand);
            ensure(keeps, || format!("{} keeps what they lost", hand.owner))?;
        }
        Ok(())
    }

    fn count(&mut self, kind: &str) {
        *self.seen.entry(kind.to_owned()).or_default() += 1;
    }

    fn log(&mut self, actor: &Actor, command: &Command, result: &Result<Outcome, ExecutionError>) {
        let came = match result {
            Ok(outcome) => {
                let events = outcome.events.iter().map(|event| format!("{event:?}"));
                let events: Vec<_> = events.collect();
                format!("\n    {}", events.join("\n    "))
            }
            Err(error) => format!(" no: {error}"),
        };
        if result.is_err() {
            self.count(&format!("no {}", command.action()));
        }
        self.steps.push(format!("{} {command:?}{came}", actor.id));
    }
}

fn lineage_of(command: &Command) -> Option<&Lineage> {
    match command {
        Command::Start { lineage, .. } => lineage.as_deref(),
        _ => None,
    }
}

/// Whoever comes after an instance, or is its child, keeps its requesters.
fn inherits(before: &Instance, lineage: &Lineage, after: &Instance) -> Checked {
    let is_heir = after.predecessor == Some(before.id) && after.parent.is_none();
    let is_child = after.parent == Some(before.id)
        && after.predecessor.is_none()
        && lineage.id == Some(after.id)
        && after.initiator == before.initiator;
    ensure(is_heir || is_child, || "another's heir".into())?;
    let mut requesters = before.requesters.iter();
    let kept = requesters.all(|requester| after.requesters.contains(requester));
    ensure(kept, || "requesters are forgotten".into())
}

fn walked(
    flow: &Flow,
    directory: &[Change],
    steps: &[ModelStep],
) -> Result<BTreeMap<String, usize>, String> {
    let mut walk = Walk::new(flow, directory);
    for step in steps {
        let checked = walk.step(step);
        checked.map_err(|why| {
            format!(
                "{why}\n{:#?}\n{}",
                walk.ledger.graph(),
                walk.steps.join("\n")
            )
        })?;
    }
    Ok(walk.seen)
}

#[test]
fn the_rules_hold_on_every_path() {
    let same = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, same);
    let walks = (
        flow::flow(),
        prop::collection::vec(world::change(), 20..50),
        prop::collection::vec(step::step(), 0..STEPS_MAX),
    );
    let seen = Cell::new(BTreeMap::new());
    let result = runner.run(&walks, |(flow, directory, steps)| {
        let walk = walked(&flow, &directory, &steps).map_err(TestCaseError::fail)?;
        let mut all: BTreeMap<String, usize> = seen.take();
        for (kind, count) in walk {
            *all.entry(kind).or_default() += count;
        }
        seen.set(all);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    // Walks without these events would prove nothing.
    let seen = seen.take();
    for (kind, least) in LEAST {
        let count = seen.get(kind).copied().unwrap_or(0);
        assert!(count >= least, "{kind} happened {count} times: {seen:#?}");
    }
}
