//! What no scenario is made of, the step of a child, and the ends of absences.

use jiff::SignedDuration;
use wrkflw_core::actor::StandIn;
use wrkflw_core::instance::CHILD_NOT_STARTED;
use wrkflw_core::lookup::WorkloadsOf;
use wrkflw_core::scenario::World;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// The instance, and an entry of a command that asked the directory this.
fn asking(of: impl FnOnce(InstanceId) -> Lookup) -> (InstanceId, Entry) {
    let mut world = World::new("tests", NOW);
    let instance = InstanceId(world.next_id());
    let looked = AnsweredLookup {
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

/// The file says until when somebody was absent: then the host released what the substitute had claimed.
#[test]
fn an_absence_ends_when_the_host_was_told_so() {
    let rob = StandIn {
        person: "rob".to_owned(),
        groups: vec!["reviewers".to_owned()],
        definition: None,
        via: Vec::new(),
    };
    let asks = Lookup {
        stand_ins_of: ["sue".to_owned()].into(),
        ..Lookup::default()
    };
    let mut world = World::new("tests", NOW);
    let mut entries = Vec::new();
    for (hours, acts, is_known) in [(0, true, true), (1, false, false), (2, true, true)] {
        let (_, mut entry) = asking(|_| asks.clone());
        entry.command_id = CommandId(world.next_id());
        let evidence = entry.evidence.as_mut().expect("the first of its command");
        evidence.now = NOW + SignedDuration::from_hours(hours);
        if acts {
            evidence.actor.id = "sue".to_owned();
            evidence.actor.stands_in_for = vec![rob.clone()];
        }
        if is_known {
            let stand_ins = vec![rob.clone()];
            let found = &mut evidence.lookups[0].found;
            found.stand_ins.insert("sue".to_owned(), stand_ins);
        }
        entries.push(entry);
    }
    let commands = commands(entries).expect("nothing was allocated");
    let timeline = Timeline::of(&commands, &Graph::default());
    let rules = Rules::default();
    let mut redactor = Redactor::new(&rules, people::all(&commands));
    let written = object(timeline.initial(&mut redactor)).to_string();
    for period in [
        r#"{"person":"person-2","substitute":"person-1","until":"1970-01-01T01:00:00Z"}"#,
        r#"{"from":"1970-01-01T02:00:00Z","person":"person-2","substitute":"person-1"}"#,
    ] {
        assert!(written.contains(period), "{written}");
    }
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
