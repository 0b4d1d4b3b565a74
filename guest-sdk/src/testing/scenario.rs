//! A scenario: an instance, the people around it, and the facts of the moment.
//!
//! This file is what a test says; how the host is stood in for is in `host.rs`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::branches::Branch;
use super::event::{What, When};
use super::outcome::{Answer, Outcome};
use super::time::Pending;
use crate::bindings::exports::wrkflw::flow::logic::Guest;
use crate::bindings::wrkflw::flow::types::{Definition, Event, EventSource, Snapshot};
use crate::export::Logic;
use crate::{Actor, Facts, Flow, Instance, Names, Omitted, StateInstance, Violation, json};

/// A test of a flow, from the facts given to the last event.
pub struct Scenario<F: Flow> {
    pub(super) snapshot: Snapshot,
    pub(super) people: BTreeMap<String, Person>,
    /// What the host knows about each stay and the facts do not tell.
    pub(super) stays: BTreeMap<String, Stay>,
    pub(super) ids: u32,
    pub(super) ended: Option<String>,
    /// Signals that came before a state that takes them.
    pub(super) early: Vec<When<F::Trigger>>,
    /// Who was reminded by the event at hand.
    pub(super) reminded: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Person {
    pub(super) groups: Vec<String>,
    pub(super) permissions: Vec<String>,
    pub(super) manager: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Stay {
    pub(super) branch: Branch,
    pub(super) exclude: BTreeSet<String>,
    pub(super) deadlines: Vec<Pending>,
    /// Early signals count.
    pub(super) keep_early: bool,
    /// What the end of each child fires.
    pub(super) on_end: BTreeMap<String, Option<String>>,
}

/// A scenario with an empty config, before anything has started.
pub fn given<F: Flow>() -> Scenario<F> {
    let now = "2026-01-05T09:00:00.000Z".to_owned();
    let instance = Instance {
        id: "instance".into(),
        tenant: "tenant".into(),
        key: "flow".into(),
        version: 1,
        revision: 0,
        entity_type: "entity".into(),
        entity_id: "1".into(),
        initiator: "initiator".into(),
        requesters: vec!["initiator".into()],
        started_at: now.clone(),
        predecessor: None,
        parent: None,
        data: "{}".into(),
        attributes: vec![],
    };
    let snapshot = Snapshot {
        now,
        config: "{}".into(),
        instance,
        active: vec![],
        waiting: vec![],
        past: vec![],
        deciders: vec![],
        omitted: Omitted {
            texts: 0,
            states: 0,
        },
    };
    Scenario {
        snapshot,
        people: BTreeMap::new(),
        stays: BTreeMap::new(),
        ids: 0,
        ended: None,
        early: vec![],
        reminded: vec![],
    }
}

impl<F: Flow> Scenario<F> {
    /// Given this config.
    pub fn config(mut self, config: &Value) -> Self {
        self.snapshot.config = config.to_string();
        self
    }

    /// Given this data.
    pub fn data(mut self, data: &Value) -> Self {
        self.snapshot.instance.data = data.to_string();
        self
    }

    /// Given this initiator.
    pub fn initiator(mut self, user: &str) -> Self {
        self.snapshot.instance.initiator = user.into();
        self.snapshot.instance.requesters = vec![user.into()];
        self
    }

    /// Given this time, as `2026-01-05T09:00:00.000Z`.
    pub fn now(mut self, now: &str) -> Self {
        self.snapshot.now = now.into();
        self
    }

    /// Given whatever else about the instance.
    pub fn instance(mut self, change: impl FnOnce(&mut Instance)) -> Self {
        change(&mut self.snapshot.instance);
        self
    }

    /// Given a member of this group.
    pub fn member(mut self, user: &str, group: &str) -> Self {
        self.people
            .entry(user.into())
            .or_default()
            .groups
            .push(group.into());
        self
    }

    /// Given what somebody's roles permit.
    pub fn permitted(mut self, user: &str, permission: &str) -> Self {
        self.people
            .entry(user.into())
            .or_default()
            .permissions
            .push(permission.into());
        self
    }

    /// Given who manages somebody.
    pub fn managed(mut self, user: &str, manager: &str) -> Self {
        self.people.entry(user.into()).or_default().manager = Some(manager.into());
        self
    }

    /// Given an instance that has just come into this state.
    #[track_caller]
    pub fn at(mut self, state: F::State) -> Self {
        let definition = self.definition();
        let (states, mut entered) = ([state.name().into()], vec![]);
        self.enter(&definition, &states, None, false, &mut entered);
        self.begin_joins(&definition, &mut entered);
        self.tell_due();
        self
    }

    /// Puts an event to the flow and follows it to where it leads.
    #[track_caller]
    pub fn when(&mut self, event: When<F::Trigger>) -> Outcome {
        assert!(
            self.ended.is_none(),
            "the instance has ended as {:?}",
            self.ended
        );
        let definition = self.definition();
        let mut entered = vec![];
        let answer = match &event.what {
            What::Start { actor, data } => {
                let before = self.snapshot.clone();
                self.snapshot.instance.initiator.clone_from(actor);
                self.snapshot.instance.requesters = vec![actor.clone()];
                self.snapshot.instance.data.clone_from(data);
                let answer = self.begin(&definition, actor, &mut entered);
                if !matches!(answer, Answer::Done) {
                    self.snapshot = before;
                }
                answer
            }
            What::Later { seconds } => self.pass(&definition, *seconds, &mut entered),
            What::Escalate { count } => self
                .escalate(&event, *count, &mut entered)
                .unwrap_or_else(Answer::Denied),
            What::Claim { actor } => self
                .claim(&definition, &event, actor)
                .unwrap_or_else(Answer::Denied),
            What::Migrate => self.migrate(&mut entered),
            What::Release { actor } => self.release(actor).unwrap_or_else(Answer::Denied),
            _ => self
                .fire(&definition, &event, &mut entered)
                .unwrap_or_else(Answer::Denied),
        };
        self.count_early(&definition, &mut entered);
        self.tell_due();
        Outcome {
            answer,
            entered,
            ended: self.ended.clone(),
            reminded: std::mem::take(&mut self.reminded),
        }
    }

    /// Puts these events to the flow, one after the other. Each must be allowed; the last one's
    /// outcome is left to assert.
    #[track_caller]
    pub fn follow(&mut self, events: impl IntoIterator<Item = When<F::Trigger>>) -> Outcome {
        let outcomes = events.into_iter().map(|event| {
            let outcome = self.when(event);
            outcome.allowed();
            outcome
        });
        outcomes.last().expect("at least one event")
    }

    /// The graph for the config; a test fails if the config is refused.
    #[track_caller]
    pub(super) fn definition(&self) -> Definition {
        let described = Logic::<F>::describe(self.snapshot.config.clone());
        described
            .unwrap_or_else(|violations| panic!("the flow refuses its config: {violations:#?}"))
    }

    /// The flow refuses the config, for this field and with this code.
    #[track_caller]
    pub fn refuses_config(&self, field: &str, code: &str) {
        let violations =
            Logic::<F>::describe(self.snapshot.config.clone()).expect_err("the config is accepted");
        let found = |one: &Violation| one.field == field && one.code == code;
        assert!(
            violations.iter().any(found),
            "expected {code:?} at {field:?}, but {violations:#?}"
        );
    }

    /// The facts as they are now.
    #[track_caller]
    pub fn facts(&self) -> Facts<F> {
        let facts = Facts::read(self.snapshot.clone());
        facts.unwrap_or_else(|violations| {
            panic!("config or data do not fit the flow: {violations:#?}")
        })
    }

    /// The instance's data as it is now.
    #[track_caller]
    pub fn data_now(&self) -> Value {
        json::parse(&self.snapshot.instance.data).expect("the host keeps the data as JSON")
    }

    /// The states being worked on.
    pub fn states(&self) -> Vec<F::State> {
        self.snapshot
            .active
            .iter()
            .filter_map(|stay| F::State::parse(&stay.name))
            .collect()
    }

    /// The states being worked on, with their tasks.
    pub fn stays(&self) -> &[StateInstance] {
        &self.snapshot.active
    }

    pub(super) fn actor(&self, user: &str) -> Actor {
        let person = self.people.get(user).cloned().unwrap_or_default();
        Actor {
            id: user.into(),
            groups: person.groups,
            permissions: person.permissions,
            on_behalf_of: None,
        }
    }

    fn begin(
        &mut self,
        definition: &Definition,
        user: &str,
        entered: &mut Vec<super::Entered>,
    ) -> Answer {
        let actor = self.actor(user);
        if !definition.initiators.is_empty()
            && !definition.initiators.iter().any(|group| actor.is_in(group))
        {
            return Answer::Denied(crate::Reason::new(
                "not_initiator",
                format!("{user} is in no group that may start it."),
            ));
        }
        let event = Event {
            state_instance: None,
            trigger: "START".into(),
            source: EventSource::Start(actor),
            input: "{}".into(),
        };
        let answer = Answer::from(Logic::<F>::guard(self.snapshot.clone(), event));
        if matches!(answer, Answer::Done) {
            let initial = std::slice::from_ref(&definition.initial);
            self.enter(definition, initial, None, false, entered);
            self.begin_joins(definition, entered);
        }
        answer
    }
}
