/* Builds graphs, plans and work. A member that the author does not set is zero. This file alone replaces zeros by defaults. */
#include <stdlib.h>
#include <string.h>

#include "wrkflw.h"

/* Adds a zeroed item to a list of the contract, and returns it. */
#define ADDED(list) ((list).ptr = realloc((list).ptr, ((list).len + 1) * sizeof *(list).ptr), \
                     memset(&(list).ptr[(list).len], 0, sizeof *(list).ptr), &(list).ptr[(list).len++])
/* Sets an optional value. The macro evaluates `option` twice, so the expression must have no side effect. */
#define SET(option, value) ((option).is_some = true, (option).val = (value))

wf_text_t wf_text(const char *text) { return (wf_text_t){(uint8_t *)text, strlen(text)}; }
bool wf_same(wf_text_t one, wf_text_t other) { return one.len == other.len && memcmp(one.ptr, other.ptr, one.len) == 0; }
bool wf_is(wf_text_t one, const char *other) { return wf_same(one, wf_text(other)); }

wf_text_t wf_joined(wf_text_t one, wf_text_t other) {
  uint8_t *both = malloc(one.len + other.len);
  memcpy(both, one.ptr, one.len);
  memcpy(both + one.len, other.ptr, other.len);
  return (wf_text_t){both, one.len + other.len};
}

void wf_start_in(wf_graph_t *graph, const char *state) { graph->initial = wf_text(state); }
void wf_initiators(wf_graph_t *graph, wf_text_t group) { *ADDED(graph->initiators) = group; }
void wf_schema(wf_graph_t *graph, const char *schema) { SET(graph->data_schema, wf_text(schema)); }
void wf_instance_title(wf_graph_t *graph, const char *template_) { SET(graph->instance_title, wf_text(template_)); }

void wf_instance_summary(wf_graph_t *graph, const char *template_) { SET(graph->instance_summary, wf_text(template_)); }
void wf_needs(wf_transition_t *transition, const char *permission) { SET(transition->permission, wf_text(permission)); }
void wf_input(wf_transition_t *transition, const char *schema) { SET(transition->input, wf_text(schema)); }

void wf_priority(wf_graph_t *graph, const char *name, uint8_t at_least) {
  wrkflw_flow_types_priority_name_t *added = ADDED(graph->priorities);
  added->name = wf_text(name), added->at_least = at_least;
}

void wf_attribute(wf_graph_t *graph, const char *name, wrkflw_flow_types_attribute_type_t kind) {
  wrkflw_flow_types_attribute_declaration_t *added = ADDED(graph->attributes);
  added->name = wf_text(name), added->kind = kind;
}

void wf_separate(wf_graph_t *graph, const char *const *states) {
  wrkflw_flow_types_list_state_name_t *list = ADDED(graph->separate);
  for (; *states != NULL; states++) *ADDED(*list) = wf_text(*states);
}

void wf_visible_to_participants(wf_graph_t *graph) {
  graph->visibility.tag = WRKFLW_FLOW_TYPES_VISIBILITY_PARTICIPANTS;
}

void wf_observer(wf_graph_t *graph, wf_text_t group) {
  wf_visible_to_participants(graph);
  *ADDED(graph->visibility.val.participants) = group;
}

static void uses(wf_graph_t *graph, uint8_t kind, wf_text_t name) {
  wrkflw_flow_types_name_use_t *use = ADDED(graph->uses);
  /* Every case has a name. */
  use->tag = kind, use->val.group = name;
}

void wf_uses_group(wf_graph_t *graph, wf_text_t group) { uses(graph, WRKFLW_FLOW_TYPES_NAME_USE_GROUP, group); }
void wf_uses_person(wf_graph_t *graph, wf_text_t person) { uses(graph, WRKFLW_FLOW_TYPES_NAME_USE_PERSON, person); }
void wf_uses_calendar(wf_graph_t *graph, wf_text_t calendar) { uses(graph, WRKFLW_FLOW_TYPES_NAME_USE_CALENDAR, calendar); }
void wf_uses_service(wf_graph_t *graph, wf_text_t service) { uses(graph, WRKFLW_FLOW_TYPES_NAME_USE_SERVICE, service); }

static wf_state_t *state(wf_graph_t *graph, const char *name, const char *title, uint8_t kind) {
  wf_state_t *added = ADDED(graph->states);
  added->name = wf_text(name), added->title = wf_text(title), added->kind.tag = kind;
  return added;
}

wf_state_t *wf_task(wf_graph_t *graph, const char *name, const char *title) {
  return state(graph, name, title, WRKFLW_FLOW_TYPES_STATE_KIND_TASK);
}

wf_state_t *wf_own_work(wf_graph_t *graph, const char *name, const char *title) {
  wf_state_t *added = wf_task(graph, name, title);
  added->own_work = true;
  return added;
}

wf_state_t *wf_service(wf_graph_t *graph, const char *name, const char *title) {
  return state(graph, name, title, WRKFLW_FLOW_TYPES_STATE_KIND_SERVICE);
}

wf_state_t *wf_router(wf_graph_t *graph, const char *name, const char *title) {
  return state(graph, name, title, WRKFLW_FLOW_TYPES_STATE_KIND_ROUTER);
}

wf_state_t *wf_wait(wf_graph_t *graph, const char *name, const char *title) {
  return state(graph, name, title, WRKFLW_FLOW_TYPES_STATE_KIND_WAIT);
}

wf_state_t *wf_terminal(wf_graph_t *graph, const char *name, const char *outcome) {
  wf_state_t *added = state(graph, name, outcome, WRKFLW_FLOW_TYPES_STATE_KIND_TERMINAL);
  added->kind.val.terminal = wf_text(outcome);
  return added;
}

wf_transition_t *wf_on(wf_graph_t *graph, const char *trigger, const char *target) {
  /* What fires a trigger by default, for each kind of state. */
  static const wrkflw_flow_types_fired_by_t usual[] = {
    [WRKFLW_FLOW_TYPES_STATE_KIND_TASK] = WRKFLW_FLOW_TYPES_FIRED_BY_DECISION,
    [WRKFLW_FLOW_TYPES_STATE_KIND_SERVICE] = WRKFLW_FLOW_TYPES_FIRED_BY_REPLY,
    [WRKFLW_FLOW_TYPES_STATE_KIND_ROUTER] = WRKFLW_FLOW_TYPES_FIRED_BY_ENTRY,
    [WRKFLW_FLOW_TYPES_STATE_KIND_WAIT] = WRKFLW_FLOW_TYPES_FIRED_BY_SIGNAL,
    [WRKFLW_FLOW_TYPES_STATE_KIND_TERMINAL] = 0,
  };
  if (graph->states.len == 0) abort();
  const wf_state_t *source = &graph->states.ptr[graph->states.len - 1];
  wf_transition_t *added = ADDED(graph->transitions);
  added->source = source->name, added->trigger = wf_text(trigger), added->by = usual[source->kind.tag];
  *ADDED(added->targets) = wf_text(target);
  return added;
}

void wf_or(wf_graph_t *graph, const char *target) {
  if (graph->transitions.len == 0) abort();
  *ADDED(graph->transitions.ptr[graph->transitions.len - 1].targets) = wf_text(target);
}

static wf_plan_t plan(uint8_t tag) { return (wf_plan_t){.next = {.tag = tag}}; }
wf_plan_t wf_stay(void) { return plan(WRKFLW_FLOW_TYPES_NEXT_STAY); }
wf_plan_t wf_reoffer(void) { return plan(WRKFLW_FLOW_TYPES_NEXT_REOFFER); }
wf_plan_t wf_end_branch(void) { return plan(WRKFLW_FLOW_TYPES_NEXT_END_BRANCH); }
wf_plan_t wf_to(const char *state) { return wf_fork((wf_target_t){.name = wf_text(state)}); }

wf_plan_t wf_fork(wf_target_t first) {
  wf_plan_t made = plan(WRKFLW_FLOW_TYPES_NEXT_ENTER);
  wf_branch(&made, first);
  return made;
}

wf_plan_t wf_spawn(wf_target_t first) {
  wf_plan_t made = plan(WRKFLW_FLOW_TYPES_NEXT_SPAWN);
  wf_branch(&made, first);
  return made;
}

void wf_branch(wf_plan_t *made, wf_target_t more) {
  /* Both cases have the same list. */
  *ADDED(made->next.val.enter) = more;
}

wf_target_t wf_target(const char *state, wf_text_t key, wf_text_t data) {
  wf_target_t target = {.name = wf_text(state)};
  if (key.len > 0) SET(target.key, key);
  if (data.len > 0) SET(target.data, data);
  return target;
}

void wf_cancel(wf_plan_t *made, const wf_state_instance_t *other) { *ADDED(made->cancel) = other->id; }

void wf_patch(wf_plan_t *made, wf_text_t patch) { SET(made->data, patch); }

wrkflw_flow_types_attribute_value_t *wf_set_attribute(wf_plan_t *made, const char *name, uint8_t kind, wf_text_t value) {
  wrkflw_flow_types_attribute_t *attribute = ADDED(made->attributes);
  attribute->name = wf_text(name);
  /* The cases with a text or bytes have their value at the same position of the union. */
  SET(attribute->value, ((wrkflw_flow_types_attribute_value_t){.tag = kind, .val.text = value}));
  return &attribute->value.val;
}

void wf_remove_attribute(wf_plan_t *made, const char *name) {
  wrkflw_flow_types_attribute_t *attribute = ADDED(made->attributes);
  attribute->name = wf_text(name);
}

void wf_note(wf_plan_t *made, const char *code, wf_text_t message, wf_text_t detail) {
  wrkflw_flow_types_note_t *note = ADDED(made->notes);
  note->code = wf_text(code), note->message = message;
  if (detail.len > 0) SET(note->detail, detail);
}

void wf_publish(wf_plan_t *made, const char *name, wf_text_t data) {
  wrkflw_flow_types_published_event_t *event = ADDED(made->publish);
  event->name = wf_text(name), event->data = data;
}

wf_assignment_t wf_to_nobody(void) {
  return (wf_assignment_t){.needed = {.tag = WRKFLW_FLOW_TYPES_NEEDED_COUNT, .val.count = 1}};
}

/* The SDK fills in the title of the state where a label is empty. */
wf_offer_t *wf_offer(wf_assignment_t *assignment, const char *label) {
  wf_offer_t *offer = ADDED(assignment->offers);
  offer->label = wf_text(label);
  return offer;
}

static void offer_to(wf_offer_t *offer, uint8_t kind, wf_text_t name) {
  wrkflw_flow_types_principal_t *candidate = ADDED(offer->candidates);
  /* These cases have a name. */
  candidate->tag = kind, candidate->val.user = name;
}

void wf_offer_to_user(wf_offer_t *offer, wf_text_t user) { offer_to(offer, WRKFLW_FLOW_TYPES_PRINCIPAL_USER, user); }
void wf_offer_to_group(wf_offer_t *offer, wf_text_t group) { offer_to(offer, WRKFLW_FLOW_TYPES_PRINCIPAL_GROUP, group); }
void wf_offer_to_manager_of(wf_offer_t *offer, wf_text_t user) { offer_to(offer, WRKFLW_FLOW_TYPES_PRINCIPAL_MANAGER_OF, user); }
void wf_owned_by(wf_offer_t *offer, wf_text_t user) { SET(offer->owner, user); }

static wf_assignment_t one_offer(uint8_t kind, wf_text_t name) {
  wf_assignment_t assignment = wf_to_nobody();
  offer_to(wf_offer(&assignment, ""), kind, name);
  return assignment;
}

wf_assignment_t wf_to_group(wf_text_t group) { return one_offer(WRKFLW_FLOW_TYPES_PRINCIPAL_GROUP, group); }
wf_assignment_t wf_to_user(wf_text_t user) { return one_offer(WRKFLW_FLOW_TYPES_PRINCIPAL_USER, user); }
wf_assignment_t wf_to_manager_of(wf_text_t user) { return one_offer(WRKFLW_FLOW_TYPES_PRINCIPAL_MANAGER_OF, user); }

wf_assignment_t wf_to_each_member(wf_text_t group) {
  wf_assignment_t assignment = wf_to_nobody();
  wf_offer_t *offer = wf_offer(&assignment, "");
  SET(offer->each_member, group);
  return assignment;
}

void wf_needed(wf_assignment_t *assignment, uint32_t decisions) {
  assignment->needed = (wrkflw_flow_types_needed_t){.tag = WRKFLW_FLOW_TYPES_NEEDED_COUNT, .val.count = decisions};
}

void wf_at_least(wf_assignment_t *assignment, uint32_t numerator, uint32_t denominator) {
  assignment->needed = (wrkflw_flow_types_needed_t){.tag = WRKFLW_FLOW_TYPES_NEEDED_AT_LEAST, .val.at_least = {numerator, denominator}};
}

void wf_more_than(wf_assignment_t *assignment, uint32_t numerator, uint32_t denominator) {
  assignment->needed = (wrkflw_flow_types_needed_t){.tag = WRKFLW_FLOW_TYPES_NEEDED_MORE_THAN, .val.more_than = {numerator, denominator}};
}

void wf_exclude(wf_assignment_t *assignment, wf_text_t person) { *ADDED(assignment->exclude) = person; }
void wf_fallback(wf_assignment_t *assignment, wf_text_t group) { SET(assignment->fallback, group); }
void wf_deadline(wf_deadlines_t *deadlines, wf_deadline_t deadline) { *ADDED(*deadlines) = deadline; }

wf_due_t wf_after(uint32_t seconds) { return (wf_due_t){.tag = WRKFLW_FLOW_TYPES_DUE_AFTER, .val.after = seconds}; }

wf_due_t wf_working(uint32_t seconds, wf_text_t calendar) {
  return (wf_due_t){.tag = WRKFLW_FLOW_TYPES_DUE_WORKING, .val.working = {seconds, calendar}};
}

wf_due_t wf_working_days(uint32_t days, wf_text_t calendar) {
  return (wf_due_t){.tag = WRKFLW_FLOW_TYPES_DUE_WORKING_DAYS, .val.working_days = {days, calendar}};
}

wf_due_t wf_at(const char *time) { return (wf_due_t){.tag = WRKFLW_FLOW_TYPES_DUE_AT, .val.at = wf_text(time)}; }

static wf_deadline_t deadline(wf_due_t due, uint8_t action) { return (wf_deadline_t){.when = due, .action = {.tag = action}}; }
wf_deadline_t wf_remind(wf_due_t due) { return deadline(due, WRKFLW_FLOW_TYPES_OVERDUE_ACTION_REMIND); }
wf_deadline_t wf_escalate(wf_due_t due) { return deadline(due, WRKFLW_FLOW_TYPES_OVERDUE_ACTION_ESCALATE); }
wf_deadline_t wf_release(wf_due_t due) { return deadline(due, WRKFLW_FLOW_TYPES_OVERDUE_ACTION_RELEASE); }

wf_deadline_t wf_fire(wf_due_t due, const char *trigger) {
  wf_deadline_t made = deadline(due, WRKFLW_FLOW_TYPES_OVERDUE_ACTION_FIRE);
  made.action.val.fire = wf_text(trigger);
  return made;
}

wf_deadline_t wf_cancel_instance(wf_due_t due, const char *reason) {
  wf_deadline_t made = deadline(due, WRKFLW_FLOW_TYPES_OVERDUE_ACTION_CANCEL);
  made.action.val.cancel = wf_text(reason);
  return made;
}

wf_deadline_t wf_since_claim(wf_deadline_t made) {
  made.since = WRKFLW_FLOW_TYPES_SINCE_CLAIMED;
  return made;
}

wf_deadline_t wf_every(wf_deadline_t made, uint32_t seconds) {
  SET(made.repeat, seconds);
  return made;
}

wf_call_t wf_call(const char *service, wf_text_t request, const char *on_reply, const char *on_failure) {
  wf_call_t call = {.service = wf_text(service), .request = request, .timeout = 30};
  *ADDED(call.retries) = 10, *ADDED(call.retries) = WF_MINUTES(1), *ADDED(call.retries) = WF_MINUTES(5);
  call.on_reply = wf_text(on_reply), call.on_failure = wf_text(on_failure);
  return call;
}

wf_waiting_t wf_for_signals(void) { return (wf_waiting_t){0}; }

wf_subscription_t *wf_subscribe(wf_subscriptions_t *subscriptions, const char *trigger, wf_text_t correlation) {
  wf_subscription_t *subscription = ADDED(*subscriptions);
  subscription->trigger = wf_text(trigger);
  if (correlation.len > 0) SET(subscription->correlation, correlation);
  return subscription;
}

wf_child_t *wf_child(wf_waiting_t *waiting, const char *key, wf_text_t entity_type, wf_text_t entity_id, wf_text_t data, const char *on_end) {
  wf_child_t *child = ADDED(waiting->children);
  child->key = wf_text(key), child->entity_type = entity_type, child->entity_id = entity_id, child->data = data;
  if (on_end != NULL) SET(child->on_end, wf_text(on_end));
  return child;
}
