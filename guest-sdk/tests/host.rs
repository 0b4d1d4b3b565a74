//! The harness refuses what the host refuses, because it runs the host's core. One test for each kind of rule, with flows that an
//! earlier imitation of the host accepted.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use wrkflw_guest::testing::{
    Scenario, can_be_published, deadline, decide, given, later, migrate, signal, start,
};
use wrkflw_guest::{
    Assignment, Attribute, AttributeType, Due, Event, Facts, FiredBy, Flow, Graph, NoConfig, Offer,
    Plan, Quorum, Refusal, ServiceCall, SignalSubscription, Waiting, config, days, hours, json,
};

wrkflw_guest::states! { enum State { Begin, Turn, Left, Right, Wait, Meet, Done } }
wrkflw_guest::triggers! { enum Trigger { Go, Fork, Circle, Join, End, Ring, Late } }
use State::{Begin, Done, Left, Meet, Right, Turn, Wait};
use Trigger::{Circle, End, Fork, Go, Join, Late, Ring};

config! {
    struct Settings { turns: u32 = 0, working: bool = false, repeat: u32 = 0 }
}

struct Ruled;

impl Flow for Ruled {
    type Config = Settings;
    type Data = BTreeMap<String, u32>;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &Settings) -> Graph<State, Trigger> {
        Graph::start(Begin)
            .uses_calendars(["office"])
            .data_schema(|| {
                let amounts = json!({ "type": "integer", "maximum": 99 });
                json!({ "type": "object", "additionalProperties": amounts })
            })
            .task(Begin, "Begin", |s| {
                s.on(Go, Done)
                    .input(|| json!({ "properties": { "sum": { "type": "integer" } } }));
                s.on(Fork, [Left, Right]);
                s.on(Circle, Turn);
                s.on(Ring, Wait);
            })
            .router(Turn, "Turn", |s| s.on(Circle, [Turn, Done]))
            .task(Left, "Left", |s| {
                s.on(Fork, [Left, Right]);
                s.on(Join, Meet);
            })
            .task(Right, "Right", |s| {
                s.on(Join, Meet);
                s.on(End, Meet);
            })
            .router(Meet, "Meet", |s| {
                s.join();
                s.on(Go, Done);
            })
            .wait(Wait, "Wait", |s| {
                s.on(Ring, Done);
                s.on(Late, Done).fired_by(FiredBy::DEADLINE);
            })
            .terminal(Done, "DONE")
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        let turned = facts.past_states(Turn).count();
        Ok(match (event.state, event.trigger) {
            (Turn, _) if turned < facts.config.turns as usize => Plan::to(Turn),
            (Turn, _) => Plan::to(Done),
            (Left | Begin, Fork) => Plan::fork([Left, Right]),
            (_, End) => Plan::end_branch(),
            (Begin, Go) => match event.quorum(Go) {
                Quorum::Open => Plan::stay(),
                _ => Plan::to(Done),
            },
            _ => Plan::along(facts, event)?,
        })
    }

    fn assign(facts: &Facts<Self>, state: State) -> Result<Assignment, Refusal> {
        let late = Due::After(days(1)).remind();
        let late = match facts.config.repeat {
            0 => late,
            pause => late.every(pause),
        };
        Ok(match state {
            Begin => {
                let seats = ["first", "second", "third"];
                let offers = seats.map(|seat| Offer::new(seat).to_group(seat));
                let assignment = Assignment::new(offers).needed(2).fallback("office");
                let working = Due::working(hours(8), "office").remind();
                assignment.deadline(if facts.config.working { working } else { late })
            }
            _ => Assignment::to_group("all").fallback("office"),
        })
    }

    fn wait(_: &Facts<Self>, _: State) -> Result<Waiting, Refusal> {
        let waiting = Waiting::for_signals().subscribe(SignalSubscription::to(Ring).buffered());
        Ok(waiting.deadline(Due::After(hours(4)).fire(Late)))
    }
}

fn begun(settings: &wrkflw_guest::Value) -> Scenario<Ruled> {
    let mut flow = given::<Ruled>().config(settings).member("bob", "first");
    flow.follow([start("ann", json!({}))]);
    flow
}

/// The message with which the test of a flow fails.
fn complaint(attempt: impl FnOnce()) -> String {
    let panicked = catch_unwind(AssertUnwindSafe(attempt)).expect_err("it fails");
    *panicked.downcast::<String>().expect("words")
}

#[test]
fn sixteen_routers_in_a_row_are_allowed_and_no_more() {
    let circle = |turns: u32| {
        let mut flow = begun(&json!({ "turns": turns }));
        flow.when(decide("bob", Circle)).ends("DONE");
    };
    circle(15);
    let said = complaint(|| circle(16));
    assert!(
        said.contains("more than 16 router states in a row"),
        "{said}"
    );
}

#[test]
fn buffered_signals_and_repetitions_are_limited() {
    let mut flow = begun(&json!({}));
    for _ in 0..100 {
        flow.when(signal("shop", Ring)).is_kept();
    }
    flow.when(signal("shop", Ring)).denied("limit_reached");
    flow.when(signal("other", Ring)).is_kept();
    let said = complaint(|| drop(begun(&json!({ "repeat": 59 }))));
    assert!(said.contains("more often than every 60 seconds"), "{said}");
    begun(&json!({ "repeat": 60 }));
}

#[test]
fn fallbacks_get_the_work_and_nobody_else() {
    // The only member is the requester. So the manager gets it, then the fallback group.
    let alone = || given::<Ruled>().member("ann", "all").nobody_in("office");
    let into = |flow: Scenario<Ruled>| {
        let mut flow = flow.initiator("ann").at(Right);
        let offered = flow.when(later(0));
        (flow, offered)
    };
    let (mut flow, _) = into(alone().managed("ann", "meg"));
    flow.when(decide("ann", Join)).denied("own_request");
    flow.when(decide("bob", Join)).denied("not_a_candidate");
    flow.when(decide("meg", Join)).enters(Meet).ends("DONE");
    let (mut flow, _) = into(alone().member("olga", "office"));
    flow.when(decide("olga", Join)).enters(Meet);
    let mut flow = alone().initiator("ann");
    for seat in ["first", "second", "third"] {
        flow = flow.nobody_in(seat);
    }
    flow.when(start("ann", json!({}))).has_nobody_for(Begin);
}

#[test]
fn a_quorum_does_not_wait_for_a_group_without_members() {
    let mut flow = given::<Ruled>()
        .nobody_in("third")
        .member("bob", "first")
        .member("sue", "second");
    flow.follow([start("ann", json!({}))]);
    let open = |flow: &Scenario<Ruled>| {
        let tasks = flow.state_instances()[0].tasks.iter();
        let open = tasks.filter(|task| task.is_open());
        open.map(|task| task.label.clone()).collect::<Vec<_>>()
    };
    assert_eq!(open(&flow), ["first", "second"]);
    flow.when(decide("bob", Go)).stays();
    flow.when(decide("sue", Go)).ends("DONE");
}

#[test]
fn forks_nest_as_deep_as_on_the_host() {
    let mut flow = begun(&json!({})).member("bob", "all");
    flow.follow([decide("bob", Fork)]);
    for _ in 1..16 {
        flow.follow([decide("bob", Fork).in_state(Left)]);
    }
    let said = complaint(|| drop(flow.when(decide("bob", Fork).in_state(Left))));
    assert!(said.contains("opens a fork inside 16 others"), "{said}");
}

#[test]
fn a_deadline_acts_when_it_is_due_if_it_is_open() {
    let mut flow = begun(&json!({ "repeat": 3600 }));
    flow.when(deadline(Late)).denied("no_deadline");
    let before = flow.facts().now;
    flow.when(later(days(1) + hours(2))).reminds("Begin");
    assert_eq!(flow.facts().now, before.after(days(1) + hours(2)));
    let due = flow.state_instances()[0].due_at.clone();
    assert_eq!(due, Some(before.after(days(1) + hours(3)).to_string()));
    let mut flow = given::<Ruled>().at(Wait);
    let before = flow.facts().now;
    flow.when(deadline(Late)).ends("DONE");
    assert_eq!(flow.facts().now, before.after(hours(4)));
}

#[test]
fn working_time_follows_the_calendar() {
    let nine_to_five = json!([{ "from": "09:00", "until": "17:00" }]);
    let hours = json!({ "monday": nine_to_five, "wednesday": nine_to_five });
    let office = json!({ "timeZone": "Etc/UTC", "hours": hours });
    let due = |flow: Scenario<Ruled>| {
        let mut flow = flow
            .config(&json!({ "working": true }))
            .now("2026-01-05T13:00:00.000Z");
        flow.follow([start("ann", json!({}))]);
        flow.state_instances()[0].due_at.clone()
    };
    assert_eq!(due(given()).as_deref(), Some("2026-01-05T21:00:00.000Z"));
    let by_calendar = due(given::<Ruled>().calendar("office", &office));
    assert_eq!(by_calendar.as_deref(), Some("2026-01-07T13:00:00.000Z"));
}

#[test]
fn data_and_inputs_are_validated_against_their_schemas() {
    given::<Ruled>()
        .when(start("ann", json!({ "amount": 100 })))
        .invalid("/data/amount", "maximum");
    let mut flow = begun(&json!({}));
    let wrong = decide("bob", Go).input(json!({ "sum": "ten" }));
    flow.when(wrong).invalid("/input/sum", "type");
}

#[test]
fn an_instance_starts_at_the_given_time() {
    let summer = "2026-07-01T09:00:00.000Z";
    let started_at = |flow: Scenario<Ruled>| flow.facts().instance.started_at;
    assert_eq!(started_at(given().now(summer).at(Wait)), summer);
    // Given values are kept, and so is the start of an instance that goes on.
    let spring = "2026-04-01T09:00:00.000Z";
    let given_start = given::<Ruled>().instance(|one| one.started_at = spring.into());
    assert_eq!(started_at(given_start.now(summer).at(Wait)), spring);
    let later = given().now(spring).at(Wait).now(summer);
    assert_eq!(started_at(later), spring);
}

#[test]
fn given_properties_are_in_the_facts() {
    let colour = Attribute {
        name: "colour".into(),
        value: Some("red".into()),
    };
    let mut flow = given::<Ruled>()
        .initiator("ann")
        .data(&json!({ "amount": 5 }))
        .instance(|instance| {
            instance.entity_id = "7".into();
            instance.requesters.push("rob".into());
            instance.attributes.push(colour.clone());
        })
        .at(Right)
        .member("rob", "all");
    let facts = flow.facts();
    assert_eq!((&*facts.instance.entity_id, facts.data["amount"]), ("7", 5));
    assert_eq!(facts.attribute("colour"), colour.value.as_ref());
    flow.when(decide("rob", Join)).denied("own_request");
    flow = flow.instance(|instance| instance.requesters.truncate(1));
    flow.when(decide("rob", Join)).ends("DONE");
    assert_eq!(flow.facts().instance.requesters, ["ann"]);
    let other = "0190d3a0-0000-7000-8000-000000000001";
    let mut flow = given::<Ruled>().instance(|instance| {
        instance.predecessor = Some(other.into());
        instance.requesters = vec!["rob".into()];
    });
    flow.follow([start("ann", json!({}))]);
    let told = flow.facts().instance;
    assert_eq!(told.requesters, ["ann", "rob"]);
    assert_eq!(told.predecessor.as_deref(), Some(other));
}

#[test]
fn a_migration_that_offers_work_to_nobody_is_refused() {
    let mut flow = begun(&json!({}));
    flow.when(migrate()).allowed();
    for seat in ["second", "third", "office"] {
        flow = flow.nobody_in(seat);
    }
    flow.when(migrate()).denied("nobody_left");
    assert_eq!(flow.facts().instance.version, 2);
}

/// A flow with a service state and without `call`.
struct Served;

impl Flow for Served {
    type Config = NoConfig;
    type Data = BTreeMap<String, u32>;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Begin)
            .service(Begin, "Begin", |s| {
                s.on(Ring, Done);
                s.on(Late, Done).fired_by(FiredBy::FAILURE);
            })
            .terminal(Done, "DONE")
    }
}

#[test]
fn the_default_service_has_the_name_of_the_state() {
    let mut flow = given::<Served>();
    let entered = flow.when(start("ann", json!({ "amount": 1 })));
    let ServiceCall {
        service,
        request,
        on_reply,
        on_failure,
        ..
    } = entered.call();
    assert_eq!((&**service, &**request), ("Begin", r#"{"amount":1}"#));
    assert_eq!((&**on_reply, &**on_failure), ("RING", "LATE"));
}

struct Misnamed;

impl Flow for Misnamed {
    type Config = NoConfig;
    type Data = BTreeMap<String, u32>;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Begin)
            .attribute("cost centre", AttributeType::Text)
            .data_schema(|| json!({ "type": "amount" }))
            .own_work(Begin, "Begin", |s| s.on(Go, Done))
            .own_work(Turn, "Turn", |s| s.on(Go, Done))
            .terminal(Done, "DONE")
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only read from JSON")]
struct File {
    file: String,
}

struct Filed;

impl Flow for Filed {
    type Config = File;
    type Data = BTreeMap<String, u32>;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &File) -> Graph<State, Trigger> {
        Graph::start(Begin)
            .own_work(Begin, "Begin", |s| s.on(Go, Done))
            .terminal(Done, "DONE")
    }
}

/// Messages have the lines of `wrkflw plugin check`.
#[test]
fn a_flow_that_a_host_would_not_publish_fails_its_first_test() {
    let expected = "the flow cannot be published:\n  /attributes/0: name the attribute `cost centre` like `costCentre`: letters, \
                    digits, `_`, `.` and `-`, a letter or `_` first, at most 255 characters [attribute_name_malformed]\n  \
                    Turn: ";
    for attempt in [
        || drop(given::<Misnamed>().when(start("ann", json!({})))),
        || can_be_published::<Misnamed>("/there/is/no/such/folder"),
    ] {
        let said = complaint(attempt);
        assert!(said.starts_with(expected), "{said}");
        for code in ["[unreachable]", "[schema_invalid]"] {
            assert!(said.contains(code), "{said}");
        }
    }
}

#[test]
fn a_wrong_config_is_reported_with_its_field() {
    let said = complaint(|| drop(begun(&json!({ "turn": 1 }))));
    let expected = "the flow cannot be published:\n  the config: /turn: unknown field `turn`";
    assert!(said.starts_with(expected), "{said}");
    let said = complaint(|| can_be_published::<Filed>(env!("CARGO_MANIFEST_DIR")));
    let expected = "the flow cannot be published:\n  the empty config (there is no config.json): /file: missing field `file`";
    assert!(said.starts_with(expected), "{said}");
    let template = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins/purchase-approval");
    let said = complaint(|| can_be_published::<Filed>(template));
    let expected =
        "the flow cannot be published:\n  config.json: /cfoAbove: unknown field `cfoAbove`";
    assert!(said.starts_with(expected), "{said}");
}
