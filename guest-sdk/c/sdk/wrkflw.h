/* Write the logic of a wrkflw flow in C: define `const wf_flow_t wf_flow`.
 *
 * Every function is pure: no clock, no randomness, no memory between two calls. A member that is left out of a struct is zero, which
 * means nothing. A function refuses by `wf_denied` and the like. Then the answer is the first refusal, whatever the function returns. */
#ifndef WRKFLW_H
#define WRKFLW_H
#include "flow.h"
#include "json.h"

/* The contract's own types, with short names. Each member is described in `wit/types.wit`. */
typedef exports_wrkflw_flow_logic_snapshot_t wf_facts_t;
typedef exports_wrkflw_flow_logic_event_t wf_record_t;
typedef wrkflw_flow_types_state_instance_t wf_state_instance_t;
typedef wrkflw_flow_types_task_t wf_task_t;
typedef wrkflw_flow_types_actor_t wf_actor_t;
typedef wrkflw_flow_types_overdue_t wf_overdue_t;
typedef wrkflw_flow_types_definition_t wf_graph_t;
typedef wrkflw_flow_types_state_t wf_state_t;
typedef wrkflw_flow_types_transition_t wf_transition_t;
typedef wrkflw_flow_types_plan_t wf_plan_t;
typedef wrkflw_flow_types_target_t wf_target_t;
typedef wrkflw_flow_types_assignment_t wf_assignment_t;
typedef wrkflw_flow_types_offer_t wf_offer_t;
typedef wrkflw_flow_types_deadline_t wf_deadline_t;
typedef wrkflw_flow_types_list_deadline_t wf_deadlines_t;
typedef wrkflw_flow_types_signal_subscription_t wf_subscription_t;
typedef wrkflw_flow_types_list_signal_subscription_t wf_subscriptions_t;
typedef wrkflw_flow_types_due_t wf_due_t;
typedef wrkflw_flow_types_service_call_t wf_call_t;
typedef wrkflw_flow_types_waiting_t wf_waiting_t;
typedef wrkflw_flow_types_child_t wf_child_t;

/* An event with the state instance that it is about. */
typedef struct {
  const wf_record_t *record;
  const wf_state_instance_t *here;
  wf_text_t trigger;
  /* The form of a decision, the payload of a signal, the reply of a service or the data of a child. */
  wf_text_t input;
} wf_event_t;

/* A flow. Only `graph` is required. Without one of the other functions, the SDK does what the graph says. */
typedef struct {
  /* The settings with their defaults: a JSON object. Unknown settings, and values of another type, are refused. */
  const char *config;
  /* Declares the graph for these settings. */
  void (*graph)(wf_graph_t *graph, wf_text_t config);
  /* May this person start an instance with this data? */
  void (*start)(const wf_facts_t *facts, const wf_actor_t *actor);
  /* May this decision or signal happen now? Asked before `transition`, in the same call. */
  void (*guard)(const wf_facts_t *facts, const wf_event_t *event);
  /* What follows? Without this function: the only state that the trigger leads to. */
  wf_plan_t (*transition)(const wf_facts_t *facts, const wf_event_t *event);
  /* Who works on the task state? Without this function: the initiator in states of own work, nobody elsewhere. */
  wf_assignment_t (*assign)(const wf_facts_t *facts, const wf_state_instance_t *entering);
  /* Who gets the overdue work? Without this function: the managers of those who had it. */
  wf_assignment_t (*escalate)(const wf_facts_t *facts, const wf_state_instance_t *entering, const wf_overdue_t *overdue);
  /* Which service does the service state call? Without this function: the service with the state's name, with the instance's data. */
  wf_call_t (*call)(const wf_facts_t *facts, const wf_state_instance_t *entering);
  /* What does the wait state wait for? Without this function: its signals. */
  wf_waiting_t (*wait)(const wf_facts_t *facts, const wf_state_instance_t *entering);
} wf_flow_t;
extern const wf_flow_t wf_flow;

/* ── Texts ── */

/* A literal, or any text that ends with NUL, as it is: it is not copied. */
wf_text_t wf_text(const char *text);
bool wf_is(wf_text_t one, const char *other);
bool wf_same(wf_text_t one, wf_text_t other);
/* Joins two texts. */
wf_text_t wf_joined(wf_text_t one, wf_text_t other);
wf_text_t wf_decimal(uint32_t number);

/* ── Refusals ── */

/* This actor may not, now or ever. */
void wf_denied(const char *code, const char *message);
/* Not possible at the moment; a later attempt may succeed. */
void wf_not_now(const char *code, const char *message);
/* The data or the input does not permit it. Each further call adds a violation. `field` is a JSON Pointer into the request:
 * `/data/title` of a start, `/input/amount` of a decision or a signal, `/comment`. */
void wf_invalid(const char *field, const char *code, const char *message);
/* The flow cannot answer, by a mistake of its author: `WF_FAULT("no row fits")`. */
void wf_fault(const char *file, int line, const char *message);
#define WF_FAULT(message) wf_fault(__FILE__, __LINE__, message)
/* Refuses as a fault and returns unless the condition holds: `WF_REQUIRE(amount >= 0, wf_stay())`, or `WF_REQUIRE(ok, )` without a value. */
#define WF_REQUIRE(condition, value) do { if (!(condition)) { WF_FAULT(#condition); return value; } } while (0)

/* ── The graph: a state, then its transitions. What a function returns can be changed until the next call. ── */

void wf_start_in(wf_graph_t *graph, const char *state);
void wf_initiators(wf_graph_t *graph, wf_text_t group);
/* JSON Schema 2020-12 that an instance's data satisfies at all times. */
void wf_schema(wf_graph_t *graph, const char *schema);
void wf_instance_title(wf_graph_t *graph, const char *template_);
void wf_instance_summary(wf_graph_t *graph, const char *template_);
/* The name of the priorities from this number up. Call it in ascending order. */
void wf_priority(wf_graph_t *graph, const char *name, uint8_t at_least);
void wf_attribute(wf_graph_t *graph, const char *name, wrkflw_flow_types_attribute_type_t kind);
/* A person may decide in only one of these states. The list ends with NULL. */
void wf_separate(wf_graph_t *graph, const char *const *states);
/* Only participants and their managers see an instance, and the members of each group that `wf_observer` adds. */
void wf_visible_to_participants(wf_graph_t *graph);
void wf_observer(wf_graph_t *graph, wf_text_t group);
/* What the config names of the tenant's directory; it is looked up when a version is published. A deadline counts only by a calendar
   that is listed. */
void wf_uses_group(wf_graph_t *graph, wf_text_t group);
void wf_uses_person(wf_graph_t *graph, wf_text_t person);
void wf_uses_calendar(wf_graph_t *graph, wf_text_t calendar);
/* A service that the operator of the host configures. It is looked up like the names above. */
void wf_uses_service(wf_graph_t *graph, wf_text_t service);
/* People work here. In a state of own work, the initiator does. */
wf_state_t *wf_task(wf_graph_t *graph, const char *name, const char *title);
wf_state_t *wf_own_work(wf_graph_t *graph, const char *name, const char *title);
wf_state_t *wf_service(wf_graph_t *graph, const char *name, const char *title);
wf_state_t *wf_router(wf_graph_t *graph, const char *name, const char *title);
wf_state_t *wf_wait(wf_graph_t *graph, const char *name, const char *title);
wf_state_t *wf_terminal(wf_graph_t *graph, const char *name, const char *outcome);
/* A transition of the last state: `wf_on(graph, "REJECT", "Rework")->comment = WF_COMMENT_REQUIRED`. */
wf_transition_t *wf_on(wf_graph_t *graph, const char *trigger, const char *target);
/* A further state to which the last transition may lead. */
void wf_or(wf_graph_t *graph, const char *target);
/* The permission (`subject:action`) that the transition needs. */
void wf_needs(wf_transition_t *transition, const char *permission);
/* JSON Schema 2020-12 of the input of a decision, signal or reply. */
void wf_input(wf_transition_t *transition, const char *schema);
#define WF_COMMENT_REQUIRED WRKFLW_FLOW_TYPES_COMMENT_RULE_REQUIRED
#define WF_COMMENT_NONE WRKFLW_FLOW_TYPES_COMMENT_RULE_NONE

/* ── Facts and events ── */

/* A setting, by its JSON Pointer, or its default. */
wf_text_t wf_setting(const wf_facts_t *facts, const char *pointer);
/* The same for `graph`. */
wf_text_t wf_of_config(wf_text_t config, const char *pointer);
/* The instance's data at a JSON Pointer. */
wf_text_t wf_data(const wf_facts_t *facts, const char *pointer);
/* The person who decides or sends the signal; NULL if no person acts. */
const wf_actor_t *wf_actor(const wf_event_t *event);
/* The trimmed comment of the decision. Its length is 0 if there is none. */
wf_text_t wf_comment(const wf_event_t *event);
/* The task being decided; NULL if none is. */
const wf_task_t *wf_decided_task(const wf_event_t *event);
/* Decisions for this trigger in the state instance, including the one being cast. */
uint32_t wf_votes(const wf_event_t *event, const char *trigger);
/* Tasks that are still undecided once this decision is cast. */
uint32_t wf_undecided(const wf_event_t *event);
typedef enum { WF_OPEN, WF_REACHED, WF_IMPOSSIBLE } wf_quorum_t;
/* Whether enough people decide for this trigger: as many as the assignment needs. */
wf_quorum_t wf_quorum(const wf_event_t *event, const char *trigger);
/* Whether this person decided in this state, or somebody did on their behalf. Complete, unlike `facts->past`. */
bool wf_decided_in(const wf_facts_t *facts, const char *state, wf_text_t person);

/* ── Plans ── */

wf_plan_t wf_to(const char *state);
/* To the only state that the trigger leads to; a fault if it leads to several. */
wf_plan_t wf_along(const wf_facts_t *facts, const wf_event_t *event);
wf_plan_t wf_stay(void);
wf_plan_t wf_reoffer(void);
wf_plan_t wf_end_branch(void);
/* The first of several branches: `wf_branch(&plan, ...)` adds the others. */
wf_plan_t wf_fork(wf_target_t first);
/* The state goes on, and a branch begins beside it. */
wf_plan_t wf_spawn(wf_target_t first);
void wf_branch(wf_plan_t *plan, wf_target_t more);
/* A state to enter. With a key, it is entered for one item; `data` is JSON about the item for the state. Both may be empty. */
wf_target_t wf_target(const char *state, wf_text_t key, wf_text_t data);
/* Cancels another branch. */
void wf_cancel(wf_plan_t *plan, const wf_state_instance_t *other);
/* A JSON Merge Patch for the instance's data. */
void wf_patch(wf_plan_t *plan, wf_text_t patch);
/* Sets an attribute. `value` is for all kinds but booleans and floats, which are written to the returned value:
 * `wf_set_attribute(&plan, "urgent", WRKFLW_FLOW_TYPES_ATTRIBUTE_VALUE_BOOLEAN, wf_text(""))->val.boolean = true`. */
wrkflw_flow_types_attribute_value_t *wf_set_attribute(wf_plan_t *plan, const char *name, uint8_t kind, wf_text_t value);
void wf_remove_attribute(wf_plan_t *plan, const char *name);
/* The reason of the plan: a sentence for people, and JSON for programs, which may be empty. */
void wf_note(wf_plan_t *plan, const char *code, wf_text_t message, wf_text_t detail);
void wf_publish(wf_plan_t *plan, const char *name, wf_text_t data);

/* ── Work ── */

/* One task for: a group, any member of which may claim it; this person; the manager of this person; each member of the group. */
wf_assignment_t wf_to_group(wf_text_t group);
wf_assignment_t wf_to_user(wf_text_t user);
wf_assignment_t wf_to_manager_of(wf_text_t user);
wf_assignment_t wf_to_each_member(wf_text_t group);
/* No task: the host tries the fallbacks. Offers can be added. */
wf_assignment_t wf_to_nobody(void);
wf_offer_t *wf_offer(wf_assignment_t *assignment, const char *label);
void wf_offer_to_user(wf_offer_t *offer, wf_text_t user);
void wf_offer_to_group(wf_offer_t *offer, wf_text_t group);
void wf_offer_to_manager_of(wf_offer_t *offer, wf_text_t user);
/* The task has this owner from the start, without a claim. Set `offer->retain` and `offer->allocation` directly. */
void wf_owned_by(wf_offer_t *offer, wf_text_t user);
/* How many decisions with the same outcome the state needs; 1 by default. */
void wf_needed(wf_assignment_t *assignment, uint32_t decisions);
/* At least, or more than, this part of the tasks: `wf_at_least(&assignment, 2, 3)`. */
void wf_at_least(wf_assignment_t *assignment, uint32_t numerator, uint32_t denominator);
void wf_more_than(wf_assignment_t *assignment, uint32_t numerator, uint32_t denominator);
void wf_exclude(wf_assignment_t *assignment, wf_text_t person);
void wf_fallback(wf_assignment_t *assignment, wf_text_t group);
/* A deadline of an assignment, an offer, a service call or a wait: `wf_deadline(&assignment.deadlines, wf_remind(wf_after(WF_HOURS(24))))`. */
void wf_deadline(wf_deadlines_t *deadlines, wf_deadline_t deadline);
#define WF_MINUTES(count) ((count) * 60u)
#define WF_HOURS(count) ((count) * 3600u)
#define WF_DAYS(count) ((count) * 86400u)
wf_due_t wf_after(uint32_t seconds);
/* `wf_working` counts working time, by a calendar of the tenant. `wf_working_days` is the end of the last of this many working days.
 * `wf_at` is an instant in UTC with milliseconds: `2026-11-20T18:00:00.000Z`. It takes no other form. */
wf_due_t wf_working(uint32_t seconds, wf_text_t calendar);
wf_due_t wf_working_days(uint32_t days, wf_text_t calendar);
wf_due_t wf_at(const char *time);
wf_deadline_t wf_remind(wf_due_t due);
wf_deadline_t wf_escalate(wf_due_t due);
wf_deadline_t wf_release(wf_due_t due);
wf_deadline_t wf_fire(wf_due_t due, const char *trigger);
/* Cancels the instance with all its branches and children. */
wf_deadline_t wf_cancel_instance(wf_due_t due, const char *reason);
/* Counts from each claim of the task. Only for deadlines of an offer. */
wf_deadline_t wf_since_claim(wf_deadline_t deadline);
/* Repeats the action after each of these pauses. */
wf_deadline_t wf_every(wf_deadline_t deadline, uint32_t seconds);
/* A service call with 30 seconds for each attempt and three further attempts. */
wf_call_t wf_call(const char *service, wf_text_t request, const char *on_reply, const char *on_failure);
/* Waits for the signals that the graph declares. */
wf_waiting_t wf_for_signals(void);
/* Subscribes the state of an assignment, a service call or a wait to a signal, besides signals to its instance: under a correlation key,
 * which may be empty, or with buffered signals: `wf_subscribe(&waiting.subscriptions, "PAID", number)->buffered = true`. */
wf_subscription_t *wf_subscribe(wf_subscriptions_t *subscriptions, const char *trigger, wf_text_t correlation);
/* Starts an instance. `on_end` is the trigger that its end fires, or NULL. The returned struct can be made `detached`. */
wf_child_t *wf_child(wf_waiting_t *waiting, const char *key, wf_text_t entity_type, wf_text_t entity_id, wf_text_t data, const char *on_end);
#endif
