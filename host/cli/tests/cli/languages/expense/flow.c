/* An expense: small ones pass, others need the manager and two of finance, and then receipts within seven working days. */
#include "wrkflw.h"

static const char SCHEMA[] =
  "{\"type\": \"object\", \"properties\": {\"amount\": {\"type\": \"integer\"}, \"number\": {\"type\": \"string\"}, "
  "\"votes\": {\"type\": \"integer\"}}, \"required\": [\"amount\", \"number\"]}";
static const char RECEIPTS[] =
  "{\"type\": \"object\", \"properties\": {\"pages\": {\"type\": \"integer\", \"minimum\": 1}}, \"required\": [\"pages\"]}";

static void graph(wf_graph_t *graph, wf_text_t config) {
  graph->title = wf_text("Expense");
  graph->description = wf_text("What somebody spent.");
  graph->reads = WRKFLW_FLOW_TYPES_READS_GROUPS | WRKFLW_FLOW_TYPES_READS_COMMENTS;
  wf_start_in(graph, "Sort");
  wf_schema(graph, SCHEMA);
  wf_instance_title(graph, "Expense {/number}");
  wf_instance_summary(graph, "{/amount} in all");
  wf_attribute(graph, "number", WRKFLW_FLOW_TYPES_ATTRIBUTE_TYPE_TEXT);
  wf_attribute(graph, "amount", WRKFLW_FLOW_TYPES_ATTRIBUTE_TYPE_DECIMAL);
  wf_priority(graph, "low", 0);
  wf_priority(graph, "high", 50);
  wf_uses_group(graph, wf_of_config(config, "/finance"));
  wf_uses_calendar(graph, wf_text("office"));
  wf_router(graph, "Sort", "Sort");
  wf_on(graph, "SORTED", "Manager")->condition = wf_text("Up to the limit it is paid at once");
  wf_or(graph, "Paid");
  wf_task(graph, "Manager", "Manager");
  wf_on(graph, "APPROVE", "Vote");
  wf_on(graph, "DECLINE", "Declined")->comment = WF_COMMENT_REQUIRED;
  wf_task(graph, "Vote", "Vote")->description = wf_text("Two of finance decide.");
  wf_on(graph, "APPROVE", "Receipts")->title = wf_text("Pay it");
  wf_transition_t *decline = wf_on(graph, "DECLINE", "Declined");
  decline->comment = WF_COMMENT_REQUIRED;
  decline->description = wf_text("Say why.");
  wf_wait(graph, "Receipts", "Receipts");
  wf_input(wf_on(graph, "RECEIVED", "Paid"), RECEIPTS);
  wf_on(graph, "LATE", "Lapsed")->by = WRKFLW_FLOW_TYPES_FIRED_BY_DEADLINE;
  wf_terminal(graph, "Paid", "PAID");
  wf_terminal(graph, "Declined", "DECLINED");
  wf_terminal(graph, "Lapsed", "LAPSED");
}

static void start(const wf_facts_t *facts, const wf_actor_t *actor) {
  (void)actor;
  if (wf_integer(wf_data(facts, "/amount"), 0) <= 0) wf_invalid("/data/amount", "range", "It is above 0.");
}

static wf_plan_t transition(const wf_facts_t *facts, const wf_event_t *event) {
  if (wf_is(event->here->name, "Sort")) {
    int64_t amount = wf_integer(wf_data(facts, "/amount"), -1), limit = wf_integer(wf_setting(facts, "/limit"), -1);
    WF_REQUIRE(amount >= 0 && limit >= 0, wf_stay());
    wf_plan_t plan = wf_to(amount <= limit ? "Paid" : "Manager");
    wf_set_attribute(&plan, "number", WRKFLW_FLOW_TYPES_ATTRIBUTE_VALUE_TEXT, wf_string(wf_data(facts, "/number")));
    wf_set_attribute(&plan, "amount", WRKFLW_FLOW_TYPES_ATTRIBUTE_VALUE_DECIMAL, wf_data(facts, "/amount"));
    return plan;
  }
  if (!wf_is(event->here->name, "Vote")) return wf_along(facts, event);
  wf_quorum_t quorum = wf_quorum(event, "APPROVE");
  if (wf_is(event->trigger, "DECLINE")) return quorum == WF_IMPOSSIBLE ? wf_along(facts, event) : wf_stay();
  wf_text_t votes = wf_joined(wf_text("{\"votes\":"), wf_joined(wf_decimal(wf_votes(event, "APPROVE")), wf_text("}")));
  if (quorum != WF_REACHED) {
    wf_plan_t more = wf_stay();
    wf_note(&more, "open", wf_text("One more is needed."), votes);
    return more;
  }
  wf_plan_t plan = wf_to("Receipts");
  wf_patch(&plan, votes);
  wf_publish(&plan, "approved", votes);
  return plan;
}

static wf_assignment_t assign(const wf_facts_t *facts, const wf_state_instance_t *entering) {
  if (wf_is(entering->name, "Manager")) {
    wf_assignment_t manager = wf_to_manager_of(facts->instance.initiator);
    wf_deadline(&manager.deadlines, wf_escalate(wf_after(WF_HOURS(48))));
    return manager;
  }
  wf_assignment_t assignment = wf_to_each_member(wf_setting(facts, "/finance"));
  assignment.priority = 50;
  wf_needed(&assignment, 2);
  wf_deadline(&assignment.deadlines, wf_every(wf_remind(wf_after(WF_HOURS(24))), WF_HOURS(24)));
  return assignment;
}

static wf_waiting_t wait(const wf_facts_t *facts, const wf_state_instance_t *entering) {
  (void)entering;
  wf_waiting_t waiting = wf_for_signals();
  wf_subscribe(&waiting.subscriptions, "RECEIVED", wf_string(wf_data(facts, "/number")));
  wf_deadline(&waiting.deadlines, wf_fire(wf_working_days(7, wf_text("office")), "LATE"));
  return waiting;
}

const wf_flow_t wf_flow = {
  .config = "{\"finance\": \"reviewers\", \"limit\": 100}",
  .graph = graph,
  .start = start,
  .transition = transition,
  .assign = assign,
  .wait = wait,
};
