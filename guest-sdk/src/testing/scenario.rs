//! A scenario: an instance, the people around it, and the facts of the moment.
//!
//! This file has the methods for tests. `when.rs` converts events to commands, and `run.rs` runs them with the core.

use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::Value;
use wrkflw_core::json::Json;
use wrkflw_core::moment;
use wrkflw_core::scenario::World;
use wrkflw_core::version::Version;

use super::event::When;
use super::outcome::Outcome;
use super::version::version;
use crate::bindings::exports::wrkflw::flow::logic::Guest;
use crate::bindings::wrkflw::flow::types::Snapshot;
use crate::export::Logic;
use crate::{Facts, Flow, Instance, Names, Omitted, StateInstance, Violation, json};

/// A test of a flow, with the facts that the last event left.
pub struct Scenario<F: Flow> {
    /// The facts that the flow would get now. Before the start, the given ones.
    pub(super) snapshot: Snapshot,
    /// The instance as the host keeps it once it has started, and its environment.
    pub(super) world: World,
    /// The version that results from the config and the flow's graph.
    pub(super) version: Option<Arc<Version>>,
    pub(super) flow: PhantomData<fn() -> F>,
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
        extensions: vec![],
    };
    Scenario {
        world: World::new(&snapshot.instance.tenant, parsed(&snapshot.now)),
        snapshot,
        version: None,
        flow: PhantomData,
    }
}

impl<F: Flow> Scenario<F> {
    /// Given this config.
    pub fn config(mut self, config: &Value) -> Self {
        self.snapshot.config = config.to_string();
        self.version = None;
        self
    }

    /// Given this data.
    #[track_caller]
    pub fn data(self, data: &Value) -> Self {
        self.instance(|instance| instance.data = data.to_string())
    }

    /// Given this initiator.
    #[track_caller]
    pub fn initiator(self, user: &str) -> Self {
        self.instance(|instance| {
            instance.initiator = user.into();
            instance.requesters = vec![user.into()];
        })
    }

    /// Given this time, as `2026-01-05T09:00:00.000Z`. An instance that is put into a state later has started at this time, unless
    /// the test gives another `started_at`.
    #[track_caller]
    pub fn now(mut self, now: &str) -> Self {
        let before = std::mem::replace(&mut self.snapshot.now, now.into());
        let started_at = &mut self.snapshot.instance.started_at;
        if self.world.instance.is_none() && *started_at == before {
            now.clone_into(started_at);
        }
        self.world.now = parsed(now);
        self
    }

    /// Changes further properties of the given instance.
    #[track_caller]
    pub fn instance(mut self, change: impl FnOnce(&mut Instance)) -> Self {
        change(&mut self.snapshot.instance);
        self.world.tenant.clone_from(&self.snapshot.instance.tenant);
        self.version = None;
        self.take_given();
        self
    }

    /// Given a member of this group. The members of a group that is not given are unknown.
    pub fn member(mut self, user: &str, group: &str) -> Self {
        self.world.directory.joins(user, group);
        self
    }

    /// Given a group without members.
    pub fn nobody_in(mut self, group: &str) -> Self {
        self.world.directory.knows(group);
        self
    }

    /// Given the permissions of a person's roles.
    pub fn permitted(mut self, user: &str, permission: &str) -> Self {
        self.world.directory.permits(user, permission);
        self
    }

    /// Given the manager of a person.
    pub fn managed(mut self, user: &str, manager: &str) -> Self {
        self.world.directory.manages(user, Some(manager));
        self
    }

    /// Given how many open tasks of other instances a person owns, for offers to the least loaded.
    pub fn owning(mut self, user: &str, tasks: u32) -> Self {
        self.world.directory.owns(user, tasks);
        self
    }

    /// Given that a person got a task of another instance at this time, for offers by round robin.
    #[track_caller]
    pub fn given_task(mut self, user: &str, at: &str) -> Self {
        let at = moment::parse(at).expect("the time is given as 2026-01-05T09:00:00.000Z");
        self.world.directory.was_given(user, at);
        self
    }

    /// Given that a person is absent, so that the host gives them no task.
    pub fn absent(mut self, user: &str) -> Self {
        self.world.directory.is_absent(user);
        self
    }

    /// Given a working calendar, as the API takes it. A calendar that is not given counts all time as working time.
    #[track_caller]
    pub fn calendar(mut self, name: &str, settings: &Value) -> Self {
        let settings = canonical("the calendar", &settings.to_string());
        self.world.directory.calendar(name, settings);
        self
    }

    /// Given an instance that has just come into this state.
    #[track_caller]
    pub fn at(mut self, state: F::State) -> Self {
        self.place(state.name());
        self
    }

    /// Sends an event to the host and runs the flow until it waits again.
    #[track_caller]
    pub fn when(&mut self, event: When<F::Trigger>) -> Outcome {
        let mut outcome = self.happens(&event);
        outcome.ended = self.outcome();
        if let Some(instance) = &self.world.instance {
            outcome.labels = instance.labels.clone();
        }
        outcome
    }

    /// Sends these events to the flow, one after the other. Each must be allowed. Returns the outcome
    /// of the last one.
    #[track_caller]
    pub fn follow(&mut self, events: impl IntoIterator<Item = When<F::Trigger>>) -> Outcome {
        let mut last = None;
        for event in events {
            let outcome = self.when(event);
            outcome.allowed();
            last = Some(outcome);
        }
        last.expect("at least one event")
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

    /// The active states.
    pub fn states(&self) -> Vec<F::State> {
        let active = self.snapshot.active.iter();
        active
            .filter_map(|state_instance| F::State::parse(&state_instance.name))
            .collect()
    }

    /// The active state instances, with their tasks.
    pub fn state_instances(&self) -> &[StateInstance] {
        &self.snapshot.active
    }

    /// The version that results from the config and the flow's graph. Fails the test if the host would not publish it.
    #[track_caller]
    pub(super) fn version(&mut self) -> Arc<Version> {
        if let Some(version) = &self.version {
            return Arc::clone(version);
        }
        let instance = &self.snapshot.instance;
        let version = version::<F>(
            &instance.key,
            instance.version,
            ("the config", &self.snapshot.config),
        );
        Arc::clone(self.version.insert(Arc::new(version)))
    }
}

#[track_caller]
fn parsed(now: &str) -> jiff::Timestamp {
    moment::parse(now).expect("`now` is given as 2026-01-05T09:00:00.000Z")
}

/// Converts a text of the test to the canonical form that the host stores.
#[track_caller]
pub(super) fn canonical(what: &str, text: &str) -> Json {
    match Json::parse(text) {
        Ok(json) => json,
        Err(error) => panic!("{what} is no JSON that the host takes: {error}"),
    }
}
