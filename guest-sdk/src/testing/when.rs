//! Converts the events of a test to commands, and their results to outcomes.

use std::collections::BTreeMap;

use wrkflw_core::actor::Actor;
use wrkflw_core::command::Command;
use wrkflw_core::instance::{Instance, Status};
use wrkflw_core::question::Facts;
use wrkflw_core::scenario::{Acting, Stopped};
use wrkflw_core::version::Version;

use super::contract::lower;
use super::event::{What, When};
use super::outcome::{Answer, Outcome};
use super::run::Native;
use super::scenario::{Scenario, canonical};
use super::told;
use crate::{Flow, Names, Reason};

impl<F: Flow> Scenario<F> {
    /// The instance. Fails the test if none has started.
    #[track_caller]
    pub(super) fn started(&self) -> &Instance {
        let instance = self.world.instance.as_ref();
        instance.expect("no instance has started: begin with `start` or `at`")
    }

    /// The outcome of the instance, if it has ended.
    pub(super) fn outcome(&self) -> Option<String> {
        match &self.world.instance.as_ref()?.status {
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
            | What::Delegate { actor, .. }
            | What::Reassign { actor, .. }
            | What::Suspend { actor }
            | What::Resume { actor } => self.works(when, actor),
            What::Signal { actor, trigger } => {
                let sent = self.world.next_id().to_string();
                let (trigger, input) = (trigger.name().to_owned(), &when.input);
                let command = Command::Signal {
                    instance: self.started().id,
                    trigger,
                    id: sent,
                    input: canonical("the payload", &input.to_string()),
                    correlation: when.correlation.clone(),
                    state: None,
                };
                let actor = self.actor(actor, when.on_behalf_of.as_deref());
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
            What::Answered { attempts, model } => {
                self.call_answers(when, *attempts, model.as_ref())
            }
            What::Unanswered { error } => self.call_fails(when, error),
            What::Migrate => self.migrate(),
        }
    }

    #[track_caller]
    fn start(&mut self, actor: &str, data: &str) -> Outcome {
        assert!(
            self.world.instance.is_none(),
            "the instance has started: begin another with `given`"
        );
        let given = &self.snapshot.instance;
        let comes_from_another = given.predecessor.is_some() || given.parent.is_some();
        let lineage = comes_from_another.then(|| self.lineage(None));
        let command = self.start_of(canonical("the data", data), lineage);
        let actor = self.actor(actor, None);
        self.run(&actor, &command)
    }

    #[track_caller]
    fn child_ends(&mut self, when: &When<F::Trigger>, end: (&str, &str, &str)) -> Outcome {
        let (trigger, key, outcome) = end;
        self.started();
        let Some(child) = self.world.child(when.meant(), key) else {
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

    /// The service of the state answers with the input of the event.
    #[track_caller]
    fn call_answers(
        &mut self,
        when: &When<F::Trigger>,
        attempts: u32,
        model: Option<&(String, String)>,
    ) -> Outcome {
        let instance = self.started().id;
        let Some((state, _)) = self.world.call(when.meant(), None) else {
            return not_called();
        };
        let (model, model_version) = model.cloned().unzip();
        let command = Command::ServiceAnswered {
            instance,
            state,
            attempts,
            output: canonical("the reply", &when.input.to_string()),
            model,
            model_version,
        };
        self.run(&Actor::host(), &command)
    }

    /// All permitted attempts of the call fail.
    #[track_caller]
    fn call_fails(&mut self, when: &When<F::Trigger>, error: &str) -> Outcome {
        let instance = self.started().id;
        let Some((state, call)) = self.world.call(when.meant(), None) else {
            return not_called();
        };
        let command = Command::ServiceFailed {
            instance,
            state,
            attempts: call.attempts_max(),
            error: error.to_owned(),
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
        let operator = self.actor("operator", None);
        let migrating = Acting {
            previous: Some(&previous),
            ..acting(&version, &operator)
        };
        let outcome = self.run_with(Native::new(None), migrating, &command);
        if self.started().definition == previous.reference {
            self.snapshot.instance.version = previous.reference.version;
            self.version = Some(previous);
        }
        outcome
    }

    /// The person, with what the directory says of them at this moment.
    pub(super) fn actor(&self, user: &str, absent: Option<&str>) -> Actor {
        let world = &self.world;
        world.directory.actor(user, absent, world.now)
    }

    /// Runs a command under the version of the scenario.
    #[track_caller]
    pub(super) fn run(&mut self, actor: &Actor, command: &Command) -> Outcome {
        let version = self.version();
        self.run_with(Native::new(None), acting(&version, actor), command)
    }

    /// Runs a command. An answer that the host rejects fails the test.
    #[track_caller]
    pub(super) fn run_with(
        &mut self,
        mut native: Native<'_, F>,
        acting: Acting<'_>,
        command: &Command,
    ) -> Outcome {
        match self.world.run(acting, command, &mut native) {
            Err(reason) => stopped(reason),
            Ok(events) => {
                let all = (self.started(), &*events, &native.recorded);
                let outcome = told::outcome(all, &acting.version.graph, command);
                self.update_facts(acting.version);
                outcome
            }
        }
    }

    /// Updates the facts that the flow would get now.
    #[track_caller]
    pub(super) fn update_facts(&mut self, version: &Version) {
        let Some(instance) = &self.world.instance else {
            return;
        };
        self.snapshot = lower::snapshot(&Facts {
            now: self.world.now,
            tenant: &self.snapshot.instance.tenant,
            config: version.config.json(),
            instance,
            reads: &version.graph.reads,
        });
    }
}

/// The context of a person who acts under this version.
pub(super) fn acting<'a>(version: &'a Version, actor: &'a Actor) -> Acting<'a> {
    Acting {
        version,
        previous: None,
        actor,
    }
}

/// The outcome of a command without an effect. An answer that the host rejects fails the test.
#[track_caller]
pub(super) fn stopped(reason: Stopped) -> Outcome {
    match reason {
        Stopped::Rejected(rejection) => Outcome {
            answer: Answer::from(rejection),
            ..Outcome::nothing()
        },
        Stopped::Fault(fault) => {
            panic!("the host does not accept what the flow answers: {fault}")
        }
    }
}

/// The selected state calls no service.
fn not_called() -> Outcome {
    denied("no_call", "no service is called here".to_owned())
}

/// A denial by the harness itself, where no command can be made.
pub(super) fn denied(code: &str, message: String) -> Outcome {
    Outcome {
        answer: Answer::Denied(Reason::new(code, message)),
        ..Outcome::nothing()
    }
}
