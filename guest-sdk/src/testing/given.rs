//! The instance that a test begins with.

use wrkflw_core::command::{Command, Lineage};
use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::Entity;
use wrkflw_core::json::Json;
use wrkflw_core::moment;
use wrkflw_core::scenario::Acting;
use wrkflw_core::version::Version;

use super::contract::lift;
use super::run::{Native, well_formed};
use super::scenario::{Scenario, canonical};
use crate::Flow;

impl<F: Flow> Scenario<F> {
    pub(super) fn start_of(&self, data: Json, lineage: Option<Lineage>) -> Command {
        let given = &self.snapshot.instance;
        Command::Start {
            definition: given.key.clone(),
            entity: Entity {
                kind: given.entity_type.clone(),
                id: given.entity_id.clone(),
            },
            data,
            lineage: lineage.map(Box::new),
        }
    }

    #[track_caller]
    pub(super) fn lineage(&self, initiator: Option<String>) -> Lineage {
        let given = &self.snapshot.instance;
        let id = |text: &String| {
            let id = text
                .parse()
                .unwrap_or_else(|_| panic!("{text:?} is no id of an instance"));
            InstanceId(id)
        };
        Lineage {
            id: None,
            initiator,
            predecessor: given.predecessor.as_ref().map(id),
            parent: given.parent.as_ref().map(id),
            requesters: given.requesters.clone(),
        }
    }

    /// Begins an instance in this state, as if it had reached the state by itself.
    #[track_caller]
    pub(super) fn place(&mut self, state: &str) {
        let version = self.version();
        let mut graph = version.graph.clone();
        state.clone_into(&mut graph.initial);
        graph.initiators.clear();
        let begun = Version {
            reference: version.reference.clone(),
            component: version.component,
            config: version.config.clone(),
            graph,
            schema: version.schema.clone(),
            templates: version.templates.clone(),
        };
        let given = self.snapshot.instance.clone();
        let lineage = self.lineage(Some(given.initiator.clone()));
        let command = self.start_of(canonical("the data", &given.data), Some(lineage));
        let actor = self.actor(&given.initiator, None);
        self.world.instance = None;
        let acting = Acting {
            version: &begun,
            previous: None,
            actor: &actor,
        };
        let native = Native::new(Some(&given.attributes));
        self.run_with(native, acting, &command).allowed();
        // Attributes of routers on the way come after the given ones.
        let instance = &mut self.snapshot.instance;
        instance.attributes.splice(0..0, given.attributes);
        instance.started_at = given.started_at;
        self.take_given();
        self.update_facts(&version);
    }

    /// Applies the given properties to an instance that has started.
    #[track_caller]
    pub(super) fn take_given(&mut self) {
        let given = self.snapshot.instance.clone();
        let lineage = self.lineage(None);
        if self.world.instance.is_none() {
            return;
        }
        let version = self.version();
        let Some(instance) = &mut self.world.instance else {
            return;
        };
        let started_at = moment::parse(&given.started_at);
        let attributes = given.attributes.into_iter().map(|attribute| {
            let attribute = well_formed("the test's attribute", lift::attribute(attribute));
            attribute.value.map(|value| (attribute.name, value))
        });
        instance.definition.key = given.key;
        instance.definition.version = given.version;
        instance.entity.kind = given.entity_type;
        instance.entity.id = given.entity_id;
        instance.initiator = given.initiator;
        instance.requesters = given.requesters;
        instance.started_at = started_at.expect("`started_at` is given as the facts have it");
        instance.predecessor = lineage.predecessor;
        instance.parent = lineage.parent;
        instance.data = canonical("the data", &given.data);
        instance.attributes = attributes.flatten().collect();
        let templates = &version.templates;
        instance.labels = templates.labels(&instance.entity, &instance.data);
    }
}
