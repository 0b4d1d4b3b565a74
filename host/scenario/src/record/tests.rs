//! What no scenario is made of, and the step of a child.

use wrkflw_core::instance::CHILD_NOT_STARTED;
use wrkflw_core::lookup::WorkloadsOf;
use wrkflw_core::scenario::World;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// The instance, and an entry of a command that asked the directory this.
fn asking(of: impl FnOnce(InstanceId) -> Lookup) -> (InstanceId, Entry) {
    let mut world = World::new("tests", NOW);
    let instance = InstanceId(world.next_id());
    let looked = Looked {
        asked: of(instance),
        found: Findings::default(),
    };
    let evidence = Evidence {
        command: Command::Resume { instance },
        actor: Actor::host(),
        now: NOW,
        definition: "reviews".to_owned(),
        lookups: vec![looked],
    };
    let entry = Entry {
        revision: 1,
        command_id: CommandId(world.next_id()),
        actor: None,
        payload: Event::Custom {
            name: "told".to_owned(),
            data: Json::empty(),
        },
        evidence: Some(evidence),
        occurred_at: NOW,
    };
    (instance, entry)
}

#[test]
fn an_instance_whose_tasks_the_host_allocated_is_no_scenario() {
    let (instance, entry) = asking(|instance| Lookup {
        workloads: Some(WorkloadsOf {
            people: ["ann".to_owned()].into(),
            definition: "reviews".to_owned(),
            state: "Review".to_owned(),
            besides: instance,
            open_max: 0,
        }),
        ..Lookup::default()
    });
    let flow = (&Json::empty(), &Graph::default());
    let refused = record(instance, vec![entry], flow, &Rules::default());
    let why = refused.expect_err("a scenario knows no other work");
    assert!(why.contains("allocated"), "{why}");
}

#[test]
fn a_child_that_could_not_be_started_has_a_reason() {
    let id = InstanceId(World::new("tests", NOW).next_id());
    let ended = |reason: Option<&str>| Command::ChildEnded {
        instance: id,
        child: id,
        version: reason.is_none().then_some(1),
        outcome: CHILD_NOT_STARTED.to_owned(),
        data: Json::empty(),
        reason: reason.map(str::to_owned),
    };
    let rules = Rules::default();
    let mut redactor = Redactor::new(&rules, vec![]);
    let mut step = |reason| object(child_ended(&mut redactor, &ended(reason), None)).to_string();
    assert!(step(Some("no such definition")).contains(r#""reason":"(comment)""#));
    assert!(!step(None).contains("reason"));
}
