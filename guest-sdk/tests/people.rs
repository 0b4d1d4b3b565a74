//! What the SDK knows about people and time, tested with one flow: escalation, exclusion, lineage, children and buffered signals.

use serde::{Deserialize, Serialize};
use wrkflw_guest::testing::{
    Scenario, child, claim, decide, given, later, migrate, release, resume, signal, start, suspend,
};
use wrkflw_guest::{
    Assignment, Child, Due, Event, Facts, FiredBy, Flow, Graph, NoConfig, Offer, Plan, Refusal,
    SignalSubscription, Verdict, Waiting, allow, days, hours, json, minutes,
};

wrkflw_guest::states! { enum State { Draft, Review, Parts, Vote, Done, Dropped } }
wrkflw_guest::triggers! { enum Trigger { Submit, Agree, Reject, Back, Drop, Ended, Called, Late } }
use State::{Done, Draft, Dropped, Parts, Review, Vote};
use Trigger::{Agree, Back, Called, Ended, Late, Reject, Submit};

#[derive(Serialize, Deserialize)]
struct Paper {
    group: Option<String>,
}

struct Papers;

impl Flow for Papers {
    type Config = NoConfig;
    type Data = Paper;
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        Graph::start(Draft)
            .own_work(Draft, "Draft", |s| s.on(Submit, [Review, Parts]))
            .task(Review, "Review", |s| {
                s.on(Agree, Vote);
                s.on(Back, [Draft, Parts]);
            })
            .wait(Parts, "Parts", |s| {
                s.on(Ended, Vote).fired_by(FiredBy::CHILD);
                s.on(Called, Vote);
            })
            .task(Vote, "Vote", |s| {
                s.until_quorum(Agree, Reject);
                s.on(Agree, Done);
                s.on(Reject, Dropped)
                    .fired_by(FiredBy::DECISION | FiredBy::DEADLINE);
                s.on(Back, [Draft, Review, Parts]);
                s.on_signal(Trigger::Drop, Dropped);
                s.on(Late, Dropped).fired_by(FiredBy::DEADLINE);
            })
            .terminal(Done, "DONE")
            .terminal(Dropped, "DROPPED")
    }

    fn guard(facts: &Facts<Self>, event: &Event<Self>) -> Verdict {
        match event.trigger {
            Back => event.way_back(facts, "/to").map(drop),
            _ => allow(),
        }
    }

    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<State>, Refusal> {
        Ok(match (event.state, event.trigger) {
            (Draft, _) if facts.data.group.is_none() => Plan::to(Parts),
            (Draft, _) => Plan::to(Review),
            (_, Back) => Plan::to(event.way_back(facts, "/to")?),
            (Parts, Ended) if event.children_running() > 0 => Plan::stay(),
            _ => Plan::along(facts, event)?,
        })
    }

    fn assign(facts: &Facts<Self>, state: State) -> Result<Assignment, Refusal> {
        let late = Due::after_hours(8).escalate();
        Ok(match (state, &facts.data.group) {
            (Review, Some(group)) => {
                let offer = Offer::new("").to_group(group).deadline(late);
                Assignment::new([offer.deadline(Due::after_hours(2).release().since_claim())])
            }
            (Vote, _) => Assignment::any_of(["amy", "ben", "cat"], 2)
                .each(|offer| offer.deadline(late.clone()))
                .deadline(Due::After(hours(100)).fire(Late)),
            _ => Assignment::to_user(facts.initiator())
                .deadline(late)
                .deadline(Due::After(days(30)).cancel("nobody submitted it")),
        })
    }

    fn wait(_: &Facts<Self>, _: State) -> Result<Waiting, Refusal> {
        let child = |id| Child::new("part", "part", id, &json!({})).on_end(Ended);
        Ok(Waiting::for_children([child("1"), child("2")])
            .subscribe(SignalSubscription::to(Called).buffered()))
    }
}

fn drafted(data: wrkflw_guest::Value) -> Scenario<Papers> {
    let mut flow = given()
        .member("rob", "reviewers")
        .managed("rob", "meg")
        .managed("amy", "meg")
        .managed("ben", "mia")
        .managed("cat", "max");
    flow.follow([start("ann", data)]);
    flow
}

fn reviewed() -> Scenario<Papers> {
    let mut flow = drafted(json!({ "group": "reviewers" }));
    flow.follow([decide("ann", Submit), decide("rob", Agree)]);
    flow
}

#[test]
fn late_work_goes_to_the_manager_of_its_owner() {
    let mut flow = reviewed();
    flow.follow([claim("amy")]);
    let late = flow.when(later(hours(8)));
    late.offers_to_manager_of("amy").offers_to_manager_of("ben");
    flow.when(decide("amy", Agree)).denied("not_a_candidate");
    flow.when(decide("meg", Agree).task("amy")).stays();
    flow.when(decide("meg", Agree)).denied("already_decided");
}

#[test]
fn unclaimed_work_of_a_group_stays_with_the_group() {
    let mut flow = drafted(json!({ "group": "reviewers" }));
    flow.follow([decide("ann", Submit)]);
    flow.when(later(hours(8))).offers_to_group("reviewers");
    flow.when(decide("rob", Agree)).enters(Vote);
}

#[test]
fn late_own_work_stays_with_the_initiator() {
    let mut flow = drafted(json!({}));
    flow.when(later(hours(8))).offers_to_user("ann");
    flow.when(decide("ann", Submit)).enters(Parts);
}

#[test]
fn an_instance_whose_draft_nobody_submits_is_cancelled() {
    let mut flow = drafted(json!({}));
    flow.follow([later(days(29))]);
    flow.when(later(days(1)))
        .is_cancelled("nobody submitted it");
    flow.when(decide("ann", Submit)).denied("task_taken");
}

#[test]
fn a_task_returns_to_the_group_when_it_is_overdue_or_released() {
    let mut flow = drafted(json!({ "group": "reviewers" })).member("rita", "reviewers");
    flow.follow([decide("ann", Submit), claim("rob")]);
    flow.when(decide("rita", Agree)).denied("not_owner");
    flow.when(release("rita")).denied("not_owner");
    flow.follow([release("rob"), claim("rita")]);
    flow.when(claim("rob")).denied("task_taken");
    // Each owner has two hours.
    flow.follow([
        later(hours(1)),
        release("rita"),
        later(hours(1)),
        claim("rob"),
    ]);
    flow.follow([later(hours(1))]);
    flow.when(claim("rita")).denied("task_taken");
    flow.follow([later(hours(1)), claim("rita")]);
    flow.follow([later(hours(2)), claim("rob")]);
}

#[test]
fn a_suspended_task_waits_for_its_owner() {
    let mut flow = drafted(json!({ "group": "reviewers" }));
    flow.follow([
        decide("ann", Submit),
        claim("rob"),
        later(hours(1)),
        suspend("rob"),
    ]);
    flow.when(decide("rob", Agree)).denied("task_suspended");
    let facts = flow.facts();
    let task = &facts.state_instance(Review).expect("a review").tasks[0];
    let suspended = task.suspended.as_ref().expect("a suspension");
    assert_eq!((&*suspended.by, &suspended.until), ("rob", &None));
    // The two hours do not count while the task is suspended.
    flow.follow([later(hours(5)), resume("rob"), later(minutes(59))]);
    let review = flow.facts();
    let task = &review.state_instance(Review).expect("a review").tasks[0];
    assert_eq!(task.owner.as_deref(), Some("rob"));
    flow.when(decide("rob", Agree)).enters(Vote);
}

#[test]
fn a_person_decides_only_once_also_as_a_substitute() {
    let mut flow = reviewed();
    flow.follow([decide("sue", Agree).on_behalf_of("amy")])
        .stays();
    for again in [
        decide("amy", Agree),
        decide("sue", Agree).on_behalf_of("ben"),
    ] {
        flow.when(again).denied("already_decided");
    }
    flow.when(decide("ann", Agree).on_behalf_of("ben"))
        .denied("own_request");
    flow.when(decide("ben", Agree)).ends("DONE");
}

#[test]
fn enough_rejections_end_a_vote_and_cancelled_tasks_do_not_count() {
    let mut flow = reviewed();
    flow.follow([decide("amy", Reject)]).stays();
    flow.when(decide("ben", Reject)).ends("DROPPED");
    let mut flow = reviewed();
    // Three tasks are replaced. With the cancelled ones there would be six.
    flow.follow([later(hours(8)), decide("meg", Reject).task("amy")])
        .stays();
    assert_eq!(flow.state_instances()[0].tasks.len(), 6);
    flow.when(decide("meg", Agree)).denied("already_decided");
}

#[test]
fn the_way_back_leads_to_states_that_the_instance_has_been_in() {
    let mut flow = reviewed();
    let back = |to: &str| decide("amy", Back).input(json!({ "to": to }));
    flow.when(back("Parts")).invalid("/input/to", "never_there");
    flow.when(back("Done")).invalid("/input/to", "no_way");
    let facts = flow.facts();
    let state_instance = facts.state_instance(Vote).expect("a vote");
    let lineage: Vec<_> = facts
        .lineage(state_instance)
        .iter()
        .map(|past| past.name.clone())
        .collect();
    assert_eq!(lineage, ["Review", "Draft"]);
    flow.when(back("Review")).enters(Review);
    flow.follow([decide("rob", Agree)]);
    assert_eq!(flow.facts().past_states(Review).count(), 2);
    assert!(flow.facts().last_past_state(Parts).is_none());
}

#[test]
fn children_are_counted_down() {
    let mut flow = drafted(json!({}));
    flow.follow([decide("ann", Submit), child(Ended, "part", "OK")])
        .stays();
    flow.when(child(Ended, "part", "OK")).enters(Vote);
    let mut flow = drafted(json!({}));
    flow.follow([decide("ann", Submit)]);
    flow.when(child(Ended, "other", "OK"))
        .denied("unknown_child");
}

#[test]
fn an_early_signal_counts_once() {
    let mut flow = drafted(json!({}));
    flow.when(signal("shop", Called)).is_kept();
    flow.when(decide("ann", Submit)).enters(Parts).enters(Vote);
    flow.when(signal("shop", Trigger::Drop)).ends("DROPPED");
}

#[test]
fn deadlines_act_in_the_order_in_which_they_pass() {
    let mut flow = reviewed();
    let facts = flow.facts();
    let state_instance = facts.state_instance(Vote).expect("a vote");
    let (now, at) = (facts.now, |after| facts.now.after(hours(after)).to_string());
    assert_eq!(state_instance.due_at, Some(at(100)));
    assert_eq!(state_instance.tasks[0].due_at, Some(at(8)));
    let late = flow.when(later(hours(200)));
    late.offers_to_manager_of("amy").ends("DROPPED");
    assert_eq!(flow.facts().now, now.after(hours(200)));
}

#[test]
fn a_migrated_state_is_assigned_as_if_it_was_entered() {
    let mut flow = reviewed();
    flow.follow([decide("ben", Agree), claim("amy")]);
    let migrated = flow.when(migrate());
    assert_eq!(migrated.assignment().offers.len(), 3);
    let facts = flow.facts();
    let state_instance = facts.state_instance(Vote).expect("a vote");
    let owners = state_instance.tasks.iter().filter(|task| task.is_open());
    let owners: Vec<_> = owners.map(|task| task.owner.as_deref()).collect();
    // The vote does not wait for ben, who has decided.
    assert_eq!(owners, [Some("amy"), None]);
    flow.when(decide("ben", Agree)).denied("already_decided");
    flow.when(decide("amy", Agree)).ends("DONE");
}
