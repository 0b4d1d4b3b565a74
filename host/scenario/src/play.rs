//! Runs a scenario: each step is a command, and its effects are compared with the expectations.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use wrkflw_core::actor::Actor;
use wrkflw_core::command::{Command, Lineage};
use wrkflw_core::event::Event;
use wrkflw_core::execution::NOBODY_WAITS;
use wrkflw_core::ids::{InstanceId, TaskId};
use wrkflw_core::instance::{Entity, Instance, Status};
use wrkflw_core::json::{Json, Node};
use wrkflw_core::moment;
use wrkflw_core::rejection::{FirstSignal, Rejection};
use wrkflw_core::scenario::{
    Acting, Logic, Meant, PASSING_MAX, Stopped, World, is_still_due, next_moment,
};
use wrkflw_core::version::Version;

pub use crate::expect::Difference;
use crate::expect::differences;
use crate::file::Scenario;
use crate::seen::{self, SeenRefusal, seen};
use crate::step::{Step, Which};

/// The tenant's public name in scenarios.
const TENANT: &str = "scenario";
/// The entity of an instance that names none.
const ENTITY: (&str, &str) = ("entity", "1");
/// How long the id of a signal counts, as on a host.
const SIGNALS_COUNT: SignedDuration = SignedDuration::from_hours(60 * 24);

/// Why a scenario fails: the first step that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// From one.
    pub step: usize,
    /// Of the step in the file.
    pub line: usize,
    /// The step in words.
    pub what: String,
    pub differences: Vec<Difference>,
    /// A hint.
    pub hint: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}, {}", self.step, self.what)?;
        for difference in &self.differences {
            write!(f, "\n  {difference}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

/// Runs all steps. The version is of the config that the scenario is about.
pub fn play(scenario: &Scenario, version: &Version, logic: &mut impl Logic) -> Result<(), Failure> {
    let mut play = Play {
        world: world(scenario),
        version,
        logic,
        signals: BTreeMap::new(),
    };
    for (index, step) in scenario.text.steps.iter().enumerate() {
        let (events, refused) = match play.step(step) {
            Ok(events) => (events, Vec::new()),
            Err(refused) => (Vec::new(), refused),
        };
        let instance = play.world.instance.as_ref();
        let differences = differences(step.expect.as_ref(), &seen(instance, &events, &refused));
        if !differences.is_empty() {
            return Err(Failure {
                step: index + 1,
                line: scenario.line(index),
                what: step.words(),
                hint: hint(instance, &refused),
                differences,
            });
        }
    }
    Ok(())
}

/// The world as the scenario begins.
fn world(scenario: &Scenario) -> World {
    let text = &scenario.text;
    let mut world = World::new(TENANT, scenario.begins());
    let directory = &mut world.directory;
    for (group, members) in &text.groups {
        directory.knows(group);
        for member in members {
            directory.joins(member, group);
        }
    }
    for (person, manager) in &text.managers {
        directory.manages(person, Some(manager));
    }
    for (person, permissions) in &text.permissions {
        for permission in permissions {
            directory.permits(person, permission);
        }
    }
    for (name, settings) in &text.calendars {
        directory.calendar(name, settings.clone());
    }
    let begins = scenario.begins();
    let absences = text.absences.iter();
    directory.absences = absences.filter_map(|away| away.absence(begins)).collect();
    world
}

/// A hint for a step that did not meet its expectations.
fn hint(instance: Option<&Instance>, refused: &[SeenRefusal]) -> Option<String> {
    let refused = refused.first()?;
    if matches!(
        refused.code.as_str(),
        "no_task" | "not_a_candidate" | "not_owner"
    ) {
        let open = instance.map(seen::tasks).unwrap_or_default();
        let open: Vec<_> = open.iter().map(Node::to_string).collect();
        return Some(if open.is_empty() {
            "no task is open".to_owned()
        } else {
            format!("these tasks are open: {}", open.join(", "))
        });
    }
    None
}

struct Play<'a, L> {
    world: World,
    version: &'a Version,
    logic: &'a mut L,
    /// The content of each signal that has come, and when.
    signals: BTreeMap<SignalKey, (Option<[u8; 32]>, Timestamp)>,
}

/// A signal's sender with its trigger and target, and its id.
type SignalKey = Option<([u8; 32], String)>;

type Happened = Result<Vec<Event>, Vec<SeenRefusal>>;

impl<L: Logic> Play<'_, L> {
    fn step(&mut self, step: &Step) -> Happened {
        let until = step.at.as_deref().and_then(moment::parse);
        let mut events = match until {
            Some(until) => self.passes(until)?,
            None => Vec::new(),
        };
        events.extend(self.happens(step)?);
        Ok(events)
    }

    fn happens(&mut self, step: &Step) -> Happened {
        let by = step.by.as_deref().unwrap_or_default();
        if let Some(data) = &step.start {
            return self.start(step, by, data);
        }
        if self.changes_directory(step) {
            let running = self.world.instance.as_ref();
            let running = running.filter(|instance| instance.status == Status::Running);
            let Some(instance) = running.map(|instance| instance.id) else {
                return Ok(Vec::new());
            };
            return self.run(&Actor::host(), &Command::Reassessment { instance });
        }
        if let Some(until) = step.waits(self.world.now) {
            return self.passes(until);
        }
        if step.action().is_none() {
            return Ok(Vec::new());
        }
        let Some(instance) = self.world.instance.as_ref().map(|instance| instance.id) else {
            let message = "nothing has started: begin with the step `start`";
            return Err(vec![SeenRefusal::new("not_started", message)]);
        };
        let which = step.which();
        if which.is_some() || step.decide.is_some() {
            return self.work(step, which, by);
        }
        let reason = |reason: &Option<String>| reason.clone();
        let command = if let Some(trigger) = &step.signal {
            return self.signalled(step, trigger, (by, instance));
        } else if let Some(key) = &step.child {
            return self.child_ends(step, key, instance);
        } else if let Some(name) = &step.service {
            return self.call_ends(step, name, instance);
        } else if let Some(reason) = reason(&step.cancel) {
            Command::Cancel { instance, reason }
        } else if let Some(reason) = reason(&step.suspend) {
            Command::Suspend { instance, reason }
        } else {
            Command::Resume { instance }
        };
        let actor = self.actor(by, None);
        self.run(&actor, &command)
    }

    /// A signal that names a state was sent to all. It is for the first such state instance that has not got it yet.
    fn signalled(
        &mut self,
        step: &Step,
        trigger: &str,
        (by, instance): (&str, InstanceId),
    ) -> Happened {
        let id = step.id.clone();
        let id = id.unwrap_or_else(|| self.world.next_id().to_string());
        let signal = |state| Command::Signal {
            instance,
            trigger: trigger.to_owned(),
            id: id.clone(),
            input: step.input.clone().unwrap_or_else(Json::empty),
            correlation: step.correlation.clone(),
            state,
        };
        let mut commands = vec![signal(None)];
        if step.state.is_some() || step.item.is_some() {
            let (running, place) = (self.world.instance.iter(), step.place());
            let meant = running.flat_map(|instance| &instance.active);
            let meant = meant.filter(|one| place.is(one));
            commands = meant.map(|one| signal(Some(one.id))).collect();
        }
        let first = |command: &Command| self.first_of(by, command).is_none();
        let place = commands.iter().position(first).unwrap_or(0);
        let Some(command) = commands.get(place) else {
            let message = format!("no such state waits for {trigger}");
            return Err(vec![SeenRefusal::new(NOBODY_WAITS, message)]);
        };
        let content = command.content();
        if let Some((known, at)) = self.first_of(by, command) {
            if known == content {
                return Ok(Vec::new());
            }
            let first = FirstSignal {
                signal: None,
                instance: Some(instance),
                event: None,
                at,
            };
            let (trigger, id) = (trigger.to_owned(), id.clone());
            let reused = Rejection::SignalIdReused { trigger, id, first };
            return Err(SeenRefusal::of(Stopped::Rejected(reused)));
        }
        let actor = self.actor(by, None);
        let events = self.run(&actor, command)?;
        let key = signal_key(by, command);
        self.signals.insert(key, (content, self.world.now));
        Ok(events)
    }

    /// The content and the time of the earlier signal with the key of this one, if that still counts.
    fn first_of(&self, by: &str, command: &Command) -> Option<(Option<[u8; 32]>, Timestamp)> {
        let known = self.signals.get(&signal_key(by, command)).copied();
        known.filter(|(_, at)| self.world.now.duration_since(*at) < SIGNALS_COUNT)
    }

    fn start(&mut self, step: &Step, by: &str, data: &Json) -> Happened {
        if self.world.instance.is_some() {
            let message = "the instance has started: begin another file";
            return Err(vec![SeenRefusal::new("started", message)]);
        }
        let entity = step
            .entity
            .as_deref()
            .and_then(|entity| entity.split_once('/'));
        let (kind, id) = entity.unwrap_or(ENTITY);
        let lineage = step.requesters.clone().map(|requesters| {
            Box::new(Lineage {
                id: None,
                initiator: None,
                predecessor: None,
                parent: None,
                requesters,
            })
        });
        let command = Command::Start {
            definition: self.version.reference.key.clone(),
            entity: Entity {
                kind: kind.to_owned(),
                id: id.to_owned(),
            },
            data: data.clone(),
            lineage,
        };
        let actor = self.actor(by, None);
        self.run(&actor, &command)
    }

    /// Moves the time. The deadlines that pass act, the earliest first, and owners are checked when an absence begins or ends.
    fn passes(&mut self, until: Timestamp) -> Happened {
        let mut events = Vec::new();
        for _ in 0..PASSING_MAX {
            let Some(command) = next_moment(&mut self.world, until) else {
                return Ok(events);
            };
            events.extend(self.run(&Actor::host(), &command)?);
            if is_still_due(&self.world, &command) {
                let message = "the host tries a deadline again and again";
                return Err(vec![SeenRefusal::new(seen::FAULT, message)]);
            }
        }
        let message = format!("more than {PASSING_MAX} deadlines pass in one step");
        Err(vec![SeenRefusal::new(seen::FAULT, message)])
    }

    fn changes_directory(&mut self, step: &Step) -> bool {
        let (directory, now) = (&mut self.world.directory, self.world.now);
        for (group, people) in step.join.iter().flatten() {
            for person in people {
                directory.joins(person, group);
            }
        }
        for (group, people) in step.leave.iter().flatten() {
            for person in people {
                directory.leaves(person, group);
            }
        }
        for (person, manager) in step.manager.iter().flatten() {
            directory.manages(person, manager.as_deref());
        }
        let away = step.absence.as_ref().and_then(|away| away.absence(now));
        directory.absences.extend(away);
        let changes = ["join", "leave", "manager", "absence"];
        step.action()
            .is_some_and(|action| changes.contains(&action))
    }

    fn work(&mut self, step: &Step, which: Option<&Which>, by: &str) -> Happened {
        let actor = self.actor(by, None);
        let label = step.task.as_deref().or_else(|| which?.label());
        let meant = Meant {
            state: step.state.as_deref(),
            key: step.item.as_deref(),
            label,
            absent: step.absent.as_deref(),
        };
        let acting = acting(self.version, &actor);
        let chosen = self.world.work(acting, meant, |task| step.on(task));
        let command = chosen.map_err(|unworked| SeenRefusal::of_work(unworked, by))?;
        self.run(&actor, &command)
    }

    fn child_ends(&mut self, step: &Step, key: &str, instance: InstanceId) -> Happened {
        let Some(child) = self.world.child(step.place(), key) else {
            let message = format!("no child {key} runs here");
            return Err(vec![SeenRefusal::new("unknown_child", message)]);
        };
        let command = Command::ChildEnded {
            instance,
            child: child.id,
            version: step.reason.is_none().then_some(1),
            outcome: step.outcome.clone().unwrap_or_default(),
            data: step.input.clone().unwrap_or_else(Json::empty),
            reason: step.reason.clone(),
        };
        self.run(&Actor::host(), &command)
    }

    fn call_ends(&mut self, step: &Step, name: &str, instance: InstanceId) -> Happened {
        let called = self.world.call(step.place(), Some(name));
        let Some((state, call)) = called else {
            let message = format!("no service {name} is called here");
            return Err(vec![SeenRefusal::new("unknown_call", message)]);
        };
        let command = match &step.error {
            Some(error) => Command::ServiceFailed {
                instance,
                state,
                attempts: step.attempts.unwrap_or_else(|| call.attempts_max()),
                error: error.clone(),
            },
            None => Command::ServiceAnswered {
                instance,
                state,
                attempts: step.attempts.unwrap_or(1),
                output: step.input.clone().unwrap_or_else(Json::empty),
                model: step.model.clone(),
                model_version: step.model_version.clone(),
            },
        };
        self.run(&Actor::host(), &command)
    }

    fn actor(&self, user: &str, absent: Option<&str>) -> Actor {
        let world = &self.world;
        world.directory.actor(user, absent, world.now)
    }

    fn run(&mut self, actor: &Actor, command: &Command) -> Happened {
        let ran = self
            .world
            .run(acting(self.version, actor), command, self.logic);
        ran.map_err(|stopped: Stopped| SeenRefusal::of(stopped))
    }
}

/// The key by which a host counts a signal once.
fn signal_key(by: &str, command: &Command) -> SignalKey {
    let signal = command.signal()?;
    Some((signal.identity(by), signal.id))
}

fn acting<'a>(version: &'a Version, actor: &'a Actor) -> Acting<'a> {
    Acting {
        version,
        previous: None,
        actor,
    }
}

impl Step {
    /// The state that it names.
    fn place(&self) -> Meant<'_> {
        Meant {
            state: self.state.as_deref(),
            key: self.item.as_deref(),
            ..Meant::default()
        }
    }

    /// The task that it names. A decision names none.
    fn which(&self) -> Option<&Which> {
        let named = [
            &self.claim,
            &self.release,
            &self.delegate,
            &self.resolve,
            &self.reassign,
            &self.reset,
            &self.suspend_task,
            &self.resume_task,
        ];
        named.into_iter().find_map(Option::as_ref)
    }

    /// The command on this task.
    fn on(&self, task: TaskId) -> Command {
        let (to, reason) = (self.to.clone(), self.reason.clone());
        let because = reason.clone().unwrap_or_else(|| "-".to_owned());
        let to = to.unwrap_or_default();
        if let Some(outcome) = &self.decide {
            return Command::Decide {
                task,
                outcome: outcome.clone(),
                comment: self.comment.clone(),
                input: self.input.clone().unwrap_or_else(Json::empty),
            };
        }
        match self.action() {
            Some("claim") => Command::Claim { task },
            Some("release") => Command::Release { task },
            Some("delegate") => Command::Delegate {
                task,
                to,
                reason: because,
            },
            Some("resolve") => Command::Resolve { task },
            Some("reassign") => Command::Reassign {
                task,
                to,
                reason: because,
            },
            Some("reset") => Command::Reset {
                task,
                reason: because,
            },
            Some("suspendTask") => Command::SuspendTask {
                task,
                reason,
                until: self.until.as_deref().and_then(moment::parse),
            },
            _ => Command::ResumeTask { task },
        }
    }
}
