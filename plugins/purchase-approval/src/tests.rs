//! Every rule of a purchase, without wasm and in milliseconds.

use super::*;
use wrkflw_guest::testing::{
    Outcome, Scenario, When, claim, deadline, decide, given, later, signal, start,
};
use wrkflw_guest::{AttributeValue, Moment, Task, TaskStatus, Value, days, hours};

const FINANCE: [&str; 5] = ["fay", "finn", "flora", "frank", "fred"];

fn company() -> Scenario<PurchaseApproval> {
    let flow = given().config(&json!({ "finance": FINANCE, "cfoAbove": 50000 }));
    flow.managed("ann", "meg")
        .managed("meg", "max")
        .managed("fay", "fiona")
        .member("cora", "cfo")
}

fn purchase(amount: &str) -> String {
    format!(r#"{{ "amount": {amount}, "currency": "EUR", "supplier": "Desks Ltd" }}"#)
}

/// A purchase whose data names this manager. The flow must ignore it.
fn managed_by(manager: &str) -> Value {
    json!({ "amount": 10, "currency": "EUR", "supplier": "Desks Ltd", "managerId": manager })
}

fn approve(who: &str) -> When<Trigger> {
    decide(who, Approve).input(json!({ "costCentre": "4711" }))
}

fn reject(who: &str) -> When<Trigger> {
    decide(who, Reject).comment("Too dear.")
}

/// An instance in the finance step, after the manager's approval.
fn at_finance(amount: &str) -> Scenario<PurchaseApproval> {
    let mut flow = company();
    flow.follow([start("ann", purchase(amount)), approve("meg")]);
    flow
}

fn last(amount: &str) -> Outcome {
    at_finance(amount).follow([approve("fay"), approve("fred")])
}

#[test]
fn the_manager_takes_the_approval_back_until_finance_decides() {
    let mut flow = at_finance("10");
    flow.when(signal("ann", TakeBack)).denied("not_approver");
    flow.when(signal("meg", TakeBack)).enters(Manager);
    flow.when(approve("meg")).enters(Finance);
    flow.follow([approve("fay")]);
    flow.when(signal("meg", TakeBack))
        .refused("finance_decided");
}

#[test]
fn two_of_five_approvals_suffice_and_the_other_tasks_are_cancelled() {
    let mut flow = at_finance("1999.90");
    assert_eq!(flow.state_instances()[0].tasks.len(), 5);
    assert_eq!(flow.state_instances()[0].needed, 2);
    flow.when(approve("fay")).stays();
    flow.when(approve("fay")).denied("already_decided");
    flow.when(reject("finn")).stays();
    flow.when(approve("fred"))
        .ends("APPROVED")
        .publishes("purchase.approved");
    let tasks = &flow
        .facts()
        .last_past_state(Finance)
        .expect("a vote")
        .tasks
        .clone();
    let left = |task: &&Task| task.status == TaskStatus::Cancelled;
    assert_eq!(tasks.iter().filter(left).count(), 2);
}

#[test]
fn a_vote_ends_as_soon_as_two_can_no_longer_approve() {
    let mut flow = at_finance("10");
    flow.follow([reject("fay"), reject("finn"), reject("flora")])
        .stays();
    flow.when(reject("frank"))
        .ends("REJECTED")
        .notes("too_few_left");
    let mut flow = at_finance("10");
    flow.follow([
        approve("fay"),
        reject("finn"),
        reject("flora"),
        reject("frank"),
    ])
    .stays();
    flow.when(reject("fred")).ends("REJECTED");
}

#[test]
fn the_limit_for_the_cfo_is_compared_exactly() {
    for amount in ["49999.99", "50000", "50000.00"] {
        last(amount).ends("APPROVED");
    }
    for amount in ["50000.01", "50000.000000000000000001", "5.1e4"] {
        last(amount).enters(Cfo).offers_to_group("cfo");
    }
    let mut flow = at_finance("50000.01");
    flow.follow([approve("fay"), approve("fred"), approve("cora")])
        .ends("APPROVED")
        .publishes("purchase.approved");
}

#[test]
fn the_manager_comes_from_the_directory() {
    company()
        .when(start("ann", managed_by("mia")))
        .offers_to_manager_of("ann");
    company()
        .when(start("ann", purchase("10")))
        .offers_to_manager_of("ann");
    let mut flow = company();
    flow.follow([start("ann", purchase("10"))]);
    flow.when(reject("meg")).ends("REJECTED");
}

#[test]
fn nobody_approves_twice_nor_for_themselves() {
    let flow = company();
    let mut flow = flow.managed("fay", "finn");
    let asked = flow.follow([start("fay", purchase("10")), approve("finn")]);
    assert_eq!(asked.assignment().offers.len(), 3);
    flow.when(approve("fay")).denied("own_request");
    flow.when(approve("finn")).denied("decided_elsewhere");
    let substitute = || approve("sue").on_behalf_of("fay");
    flow.when(substitute()).denied("not_a_candidate");
    let mut flow = at_finance("60000").member("fay", "cfo");
    flow.follow([approve("fay"), approve("fred")]);
    flow.when(approve("fay")).denied("decided_elsewhere");
    flow.when(substitute()).denied("decided_elsewhere");
}

#[test]
fn only_the_requester_withdraws_in_every_step() {
    let steps = [
        vec![],
        vec![approve("meg")],
        vec![approve("meg"), approve("fay"), approve("fred")],
    ];
    for before in steps {
        let mut flow = company();
        flow.follow([start("ann", purchase("60000"))].into_iter().chain(before));
        flow.when(signal("meg", Withdraw)).denied("not_requester");
        flow.when(signal("ann", Approve))
            .invalid("/trigger", "unknown_signal");
        flow.when(signal("ann", Withdraw)).ends("WITHDRAWN");
    }
    let mut flow = company();
    flow.follow([start("ann", purchase("10"))]);
    flow.when(decide("meg", Withdraw))
        .invalid("/outcome", "unknown_outcome");
}

#[test]
fn a_rejection_needs_a_comment_and_finance_names_a_cost_centre() {
    let mut flow = company();
    flow.follow([start("ann", purchase("10"))]);
    flow.when(decide("meg", Reject).comment("  "))
        .invalid("/comment", "required");
    flow.follow([approve("meg")]);
    flow.when(decide("fay", Approve))
        .invalid("/input/costCentre", "required");
    flow.when(reject("fay")).stays();
}

#[test]
fn late_work_is_reminded_of_and_goes_to_the_next_manager() {
    let mut flow = company();
    flow.follow([start("ann", purchase("10"))]);
    flow.when(later(hours(24)))
        .reminds("Approval by the manager");
    flow.when(later(hours(24))).offers_to_manager_of("meg");
    flow.when(approve("meg")).denied("not_a_candidate");
    flow.follow([approve("max"), claim("fay")]);
    flow.when(later(days(1))).reminds("fay").reminds("fred");
    let late = flow.when(later(days(2)));
    late.offers_to_manager_of("fay")
        .offers_to_manager_of("fred");
    // The person who takes over for one of five counts as one of five.
    flow.follow([approve("fiona")]).stays();
    assert_eq!(
        flow.facts()
            .state_instance(Finance)
            .map(|state_instance| (state_instance.needed, state_instance.votes(Approve))),
        Some((2, 1))
    );
}

#[test]
fn each_step_can_be_searched_by_its_deadline() {
    let mut flow = company();
    let due = |flow: &Scenario<PurchaseApproval>| flow.facts().attribute("stepDue").cloned();
    flow.follow([start("ann", purchase("1234.50"))]);
    let now = flow.facts().now;
    let at = |moment: Moment| Some(AttributeValue::Timestamp(moment.to_string()));
    assert_eq!(due(&flow), at(now.after(hours(48))));
    let amount = flow.facts().attribute("amount").cloned();
    assert_eq!(amount, Some(AttributeValue::Decimal("1234.50".into())));
    assert_eq!(
        flow.facts().attribute("supplier"),
        Some(&"Desks Ltd".into())
    );
    flow.follow([approve("meg")]);
    assert_eq!(due(&flow), at(now.after(hours(72))));
}

#[test]
fn too_few_people_or_a_late_reminder_are_refused_as_settings() {
    given::<PurchaseApproval>().refuses_config("/finance", "too_few");
    let sla = json!({ "remindHours": 48, "escalateHours": 24 });
    let flow = company().config(&json!({ "finance": FINANCE, "managerSla": sla }));
    flow.refuses_config("/managerSla", "type");
}

#[test]
fn no_deadline_decides() {
    at_finance("10")
        .when(deadline(Approve))
        .denied("no_deadline");
}
