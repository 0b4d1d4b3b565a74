//! Makes commands from the events of a test, and outcomes from their results.

use std::collections::BTreeMap;

use wrkflw_core::actor::Actor;
use wrkflw_core::command::Command;
use wrkflw_core::instance::{Instance, Status};
use wrkflw_core::question::Facts;
use wrkflw_core::rejection::Rejection;
use wrkflw_core::version::Version;

use super::contract::lower;
use super::event::{What, When};
use super::outcome::{Answer, Outcome};
use super::run::{Ran, Run};
use super::scenario::{Scenario, canonical};
use super::told;
use crate::{Flow, Names, Reason};

impl<F: Flow> Scenario<F> {
    /// The instance. Fails a test that has not started one.
    #[track_caller]
    pub(super) fn started(&self) -> &Instance {
        let instance = self.instance.as_ref();
        instance.expect("no instance has started: begin with `start` or `at`")
    }

    /// How the instance has ended, if it has.
    pub(super) fn outcome(&self) -> Option<String> {
        match &self.instance.as_ref()?.status {
            Status::Completed { outcome, .. } => Some(outcome.clone()),
            Status::Running | Status::Suspended { .. } | Status::Cancelled { .. } => None,
        }
    }

    #[track_caller]
    pub(super) fn happens(&mut self, when: &When<F::Trigger>) -> Outcome {
        match &when.what {
            What::Start { actor, data } => self.start(actor, data),
            What::Decide { actor, .. }
            | What::Claim { actor }
            | What::Release { actor }
            | What::Suspend { actor }
            | What::Resume { actor } => self.works(when, actor),
            What::Signal { actor, trigger } => {
                let sent = self.ids.next().to_string();
                let (trigger, input) = (trigger.name().to_owned(), &when.input);
                let command = Command::Signal {
                    instance: self.started().id,
                    trigger,
                    id: sent,
                    input: canonical("the payload", &input.to_string()),
                    correlation: when.correlation.clone(),
                    state: None,
                };
                let actor = self.directory.actor(actor, when.on_behalf_of.as_deref());
                self.run(&actor, &command)
            }
            What::Deadline(trigger) => self.until_fired(when, trigger.name()),
            What::Escalate { count } => self.until_escalated(when, *count),
            What::Later { seconds } => self.later(*seconds),
            What::Child {
                trigger,
                key,
                outcome,
            } => self.child_ends(when, (trigger.name(), key, outcome)),
            What::Migrate => self.migrate(),
        }
    }

    #[track_caller]
    fn start(&mut self, actor: &str, data: &str) -> Outcome {
        assert!(
            self.instance.is_none(),
            "the instance has started: begin another with `given`"
        );
        let given = &self.snapshot.instance;
        let comes_from_another = given.predecessor.is_some() || given.parent.is_some();
        let lineage = comes_from_another.then(|| self.lineage(None));
        let command = self.start_of(canonical("the data", data), lineage);
        let actor = self.directory.actor(actor, None);
        self.run(&actor, &command)
    }

    #[track_caller]
    fn child_ends(&mut self, when: &When<F::Trigger>, end: (&str, &str, &str)) -> Outcome {
        let (trigger, key, outcome) = end;
        let active = self.started().active.iter();
        let here = active.filter(|one| when.means(one));
        let mut running = here.flat_map(|one| &one.children);
        let child = running.find(|child| child.key == key && child.outcome.is_none());
        let Some(child) = child else {
            return denied("unknown_child", format!("no child {key} runs here"));
        };
        if child.on_end.as_deref() != Some(trigger) {
            let message = format!("the end of {key} fires {:?}", child.on_end);
            return denied("trigger_not_declared", message);
        }
        let command = Command::ChildEnded {
            instance: self.started().id,
            child: child.id,
            version: Some(1),
            outcome: outcome.to_owned(),
            data: canonical("the child's data", &when.input.to_string()),
            reason: None,
        };
        self.run(&Actor::host(), &command)
    }

    #[track_caller]
    fn migrate(&mut self) -> Outcome {
        let previous = self.version();
        self.snapshot.instance.version += 1;
        self.version = None;
        let version = self.version();
        let command = Command::Migrate {
            instance: self.started().id,
            version: version.reference.version,
            states: BTreeMap::new(),
        };
        let operator = self.directory.actor("operator", None);
        let migrating = Run {
            previous: Some(&previous),
            ..self.prepared(&version, &operator)
        };
        let ran = migrating.to_end::<F>(self.instance.as_ref(), &command);
        let outcome = self.take(ran, &version, &command);
        if self.started().definition == previous.reference {
            self.snapshot.instance.version = previous.reference.version;
            self.version = Some(previous);
        }
        outcome
    }

    /// Runs a command under the version of the scenario.
    #[track_caller]
    pub(super) fn run(&mut self, actor: &Actor, command: &Command) -> Outcome {
        let version = self.version();
        let run = self.prepared(&version, actor);
        let ran = run.to_end::<F>(self.instance.as_ref(), command);
        self.take(ran, &version, command)
    }

    /// What a command of this actor is run with.
    #[track_caller]
    pub(super) fn prepared<'a>(&'a self, version: &'a Version, actor: &'a Actor) -> Run<'a> {
        Run {
            version,
            previous: None,
            tenant: &self.snapshot.instance.tenant,
            actor,
            now: self.moment(),
            directory: &self.directory,
            ids: self.ids,
            placed: None,
        }
    }

    /// Applies the result of a command to the scenario.
    #[track_caller]
    pub(super) fn take(
        &mut self,
        ran: Result<Ran, Rejection>,
        version: &Version,
        command: &Command,
    ) -> Outcome {
        match ran {
            Err(rejection) => Outcome {
                answer: Answer::from(rejection),
                ..Outcome::nothing()
            },
            Ok(ran) => {
                let outcome = told::outcome(&ran, &version.graph, command);
                self.ids = ran.ids;
                self.instance = Some(ran.instance);
                self.tell(version);
                outcome
            }
        }
    }

    /// Updates the facts that the flow would get now.
    #[track_caller]
    pub(super) fn tell(&mut self, version: &Version) {
        let Some(instance) = &self.instance else {
            return;
        };
        self.snapshot = lower::snapshot(&Facts {
            now: self.moment(),
            tenant: &self.snapshot.instance.tenant,
            config: &version.config,
            instance,
            reads: &version.graph.reads,
        });
    }
}

/// A denial by the harness itself, when there is nothing to make a command from.
pub(super) fn denied(code: &str, message: String) -> Outcome {
    Outcome {
        answer: Answer::Denied(Reason::new(code, message)),
        ..Outcome::nothing()
    }
}
