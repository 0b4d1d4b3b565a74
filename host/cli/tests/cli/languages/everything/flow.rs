//! A flow that says everything that flow logic can say at least once. It makes no sense as work.

use serde::{Deserialize, Serialize};
use wrkflw_guest::{
    Actor, Assignment, AttributeType, Child, CommentRule, Decimal, Due, Event, Facts, FiredBy,
    Flow, Graph, Moment, Offer, Plan, Quorum, Reads, Refusal, ServiceCall, SignalSubscription,
    StateInstance, Target, Value, Verdict, Waiting, all, allow, days, deny, fault, hours, invalid,
    json, minutes, not_now,
};

wrkflw_guest::states! { pub enum State { Sort, Each, Named, Order, Parts, Own, Item, All, Two, Done, Failed } }
wrkflw_guest::triggers! {
    pub enum Trigger { Sorted, Agree, Refuse, Shift, More, Again, Called, Answered, Unanswered, Ended, Late, Finish }
}
use State::{All, Done, Each, Failed, Item, Named, Order, Own, Parts, Sort, Two};
use Trigger::{
    Again, Agree, Answered, Called, Ended, Finish, Late, More, Refuse, Shift, Sorted, Unanswered,
};

wrkflw_guest::config! {
    pub struct Config { group: String = "reviewers", calendar: String = "office" }
}

#[derive(Serialize, Deserialize)]
pub struct Case {
    name: String,
}
#[derive(Deserialize)]
struct Part {
    label: String,
}

pub struct Everything;

impl Flow for Everything {
    type Config = Config;
    type Data = Case;
    type State = State;
    type Trigger = Trigger;

    fn graph(config: &Config) -> Graph<State, Trigger> {
        Graph::start(Sort)
            .titled("Everything")
            .described("All that a flow can say.")
            .started_by("authors")
            .data_schema(|| json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } }))
            .attribute("text", AttributeType::Text)
            .attribute("boolean", AttributeType::Boolean)
            .attribute("decimal", AttributeType::Decimal)
            .attribute("float", AttributeType::Float)
            .attribute("timestamp", AttributeType::Timestamp)
            .attribute("bytes", AttributeType::Bytes)
            .instance_title("Case {/name}")
            .instance_summary("{entityType} {entityId}")
            .priority_name("low", 0)
            .priority_name("high", 50)
            .separate([Each, Named])
            .reads(Reads::GROUPS | Reads::PERMISSIONS | Reads::COMMENTS | Reads::INPUTS)
            .sole_per_entity()
            .visible_to_participants(["approvers"])
            .uses_groups([&config.group])
            .uses_people(["reviewer"])
            .uses_calendars([&config.calendar])
            .uses_services(["shop"])
            .router(Sort, "Sort", |s| {
                s.on(Sorted, [Each, Named, Order, Parts, Own, Item]).condition("Always")
            })
            .task(Each, "Each", |s| {
                s.described("Everybody votes.");
                s.on(Agree, All)
                    .titled("Agree to it")
                    .described("It goes on.")
                    .needs("task:act")
                    .input(|| json!({ "type": "object", "properties": { "note": { "type": "string" } } }));
                s.on(Refuse, All).comment(CommentRule::None);
                s.on(Late, All).fired_by(FiredBy::DECISION | FiredBy::DEADLINE).comment(CommentRule::Required);
                s.on_signal(Shift, All);
                s.on_signal(More, Item);
                s.on_signal(Again, All);
                s.on_signal(Called, All);
            })
            .task(Named, "Named", |s| s.on(Agree, All))
            .service(Order, "Order", |s| {
                s.on(Answered, All);
                s.on(Unanswered, All).fired_by(FiredBy::FAILURE);
                s.on_signal(Called, All);
                s.on(Late, All).fired_by(FiredBy::DEADLINE);
            })
            .wait(Parts, "Parts", |s| {
                s.on(Ended, All).fired_by(FiredBy::CHILD);
                s.on(Called, All);
                s.on(Late, All).fired_by(FiredBy::DEADLINE);
            })
            .own_work(Own, "Own", |s| s.on(Finish, [All, Two]))
            .task(Item, "Item", |s| s.on(Agree, All))
            .task(All, "All", |s| {
                s.join();
                s.on(Finish, Done);
            })
            .task(Two, "Two", |s| {
                s.join_count(2);
                s.on(Finish, Failed);
            })
            .terminal(Done, "DONE")
            .terminal(Failed, "FAILED")
    }

    fn start(facts: &Facts<Self>, actor: &Actor) -> Verdict {
        match facts.data.name.as_str() {
            "denied" => deny("denied_code", "No, never."),
            "later" => not_now("later_code", "No, not now."),
            "invalid" => all([
                invalid("/data/name", "one", "First."),
                invalid("/data/other", "two", "Second."),
            ]),
            "fault" => fault("fault_code", "It does not know."),
            _ if actor.is_in("authors") && actor.may("instance:start") => allow(),
            _ => deny("no_author", "Only authors."),
        }
    }

    fn guard(facts: &Facts<Self>, event: &Event<Self>) -> Verdict {
        match (event.state, event.trigger) {
            _ if event.actor().is_none() => deny("nobody", "Nobody acts."),
            (Each, Agree) if event.input.get("note").is_none() => event.require_comment("Say why."),
            (Each, Shift) => event.only_requester(facts),
            (Each, More) => event.not_by(&["reviewer"]),
            _ => allow(),
        }
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        let item = |key: &str| Target::new(Item).key(key).data(json!({ "label": key }));
        let plain = [Each, Named, Order, Parts, Own].map(Target::new);
        Ok(match (event.state, event.trigger) {
            (Sort, _) => Plan::fork(plain.into_iter().chain([item("one"), item("two")]))
                .attribute("text", "words")
                .attribute("boolean", true)
                .attribute("decimal", &Decimal::parse("19.90").expect("a number"))
                .attribute("float", 1.5)
                .attribute("timestamp", at())
                .attribute("bytes", vec![1, 2, 3])
                .patch(&json!({ "sorted": { "deep": [1, "two", null] } }))
                .note("sorted", "It is sorted.")
                .publish("sorted", &json!({ "name": facts.data.name })),
            (Each, Shift) => Plan::stay()
                .without_attribute("boolean")
                .cancel(second(facts)?)
                .note_with("shifted", "It is shifted.", &summary(facts, event))
                .publish("shifted", &summary(facts, event)),
            (Each, More) => {
                Plan::spawn([item("three")]).note_with("more", "One more.", &event.input)
            }
            (Each, Again) => Plan::reoffer(),
            (Each, Agree) => match event.quorum(Agree) {
                Quorum::Reached => Plan::to(All).publish("agreed", &summary(facts, event)),
                _ => Plan::stay().publish("open", &summary(facts, event)),
            },
            (Own, _) => Plan::end_branch().publish("own", &summary(facts, event)),
            _ => Plan::along(facts, event)?,
        })
    }

    fn assign(facts: &Facts<Self>, state: State) -> Result<Assignment, Refusal> {
        let Config { group, calendar } = &facts.config;
        Ok(match state {
            Each => Assignment::to_each_member(group)
                .at_least(2, 3)
                .exclude(["outsider"])
                .fallback("approvers")
                .priority(50)
                .blind()
                .deadline(Due::After(days(1)).remind().every(hours(12)))
                .deadline(Due::working(hours(8), calendar).escalate())
                .deadline(Due::at(at()).fire(Late))
                .deadline(Due::After(days(90)).cancel("too late"))
                .subscribe(
                    SignalSubscription::to(Called)
                        .correlation("each")
                        .buffered(),
                ),
            Named => {
                let first = Offer::new("first")
                    .to_user("reviewer")
                    .to_manager_of("author");
                let second = Offer::new("second").to_group(group).owned_by("reviewer2");
                Assignment::new([
                    first
                        .retain()
                        .deadline(Due::After(minutes(30)).release().since_claim()),
                    second.deadline(Due::working_days(2, calendar).remind()),
                    Offer::new("third").to_group(group).round_robin(),
                    Offer::new("fourth").to_group(group).least_loaded(),
                ])
                .more_than(1, 2)
            }
            Item => {
                let Part { label } = facts
                    .entering()
                    .map_or_else(|| fault("no_item", "No item."), StateInstance::item)?;
                Assignment::new([Offer::new(&label).to_user("reviewer")])
            }
            Own => Assignment::to_user(facts.initiator()),
            _ => Assignment::to_group("approvers").needed(1),
        })
    }

    fn call(facts: &Facts<Self>, _: State) -> Result<ServiceCall, Refusal> {
        let request = json!({ "name": facts.data.name });
        Ok(ServiceCall::new("shop", &request, Answered, Unanswered)
            .timeout(5)
            .retries([60, 120])
            .deadline(Due::After(days(3)).fire(Late))
            .subscribe(SignalSubscription::to(Called).correlation("order")))
    }

    fn wait(facts: &Facts<Self>, _: State) -> Result<Waiting, Refusal> {
        let data = json!({ "title": facts.data.name });
        let child = |id: &str| Child::new("document-approval", "document", id, &data);
        let children = [
            child("attached").on_end(Ended),
            child("detached").detached(),
        ];
        Ok(Waiting::for_children(children)
            .deadline(Due::working_days(7, &facts.config.calendar).fire(Late))
            .subscribe(
                SignalSubscription::to(Called)
                    .correlation("parts")
                    .buffered(),
            ))
    }
}

/// The item that a signal cancels.
fn second(facts: &Facts<Everything>) -> Result<&StateInstance, Refusal> {
    let mut items = facts.active.iter();
    let found = items.find(|one| one.key.as_deref() == Some("two"));
    found.map_or_else(|| fault("no_second", "There is no second item."), Ok)
}

fn at() -> Moment {
    Moment::parse("2099-12-31T12:00:00.000Z").expect("a time")
}

/// The facts that flow logic gets about an event.
fn summary(facts: &Facts<Everything>, event: &Event<Everything>) -> Value {
    json!({
        "actor": event.actor().map(|actor| &actor.id),
        "comment": event.comment(),
        "correlation": event.signal().and_then(|signal| signal.correlation.as_ref()),
        "deciders": facts.deciders(Each),
        "input": event.input,
        "sorted": facts.past_states(Sort).count(),
        "task": event.task().map(|task| &task.label),
        "undecided": event.undecided(),
        "votes": event.votes(Agree),
    })
}

wrkflw_guest::export!(Everything);
