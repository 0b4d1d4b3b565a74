/* Answers the calls of the host with the author's flow, and reads facts for the flow. */
#include <stdlib.h>
#include <string.h>

#include "wrkflw.h"

/* The first refusal of this call; violations add up. */
static struct {
  bool set;
  exports_wrkflw_flow_logic_refusal_t refusal;
} refused;

/* Each call begins without a refusal. */
static void begin(void) { memset(&refused, 0, sizeof refused); }

static void refuse(uint8_t tag, wf_text_t code, wf_text_t message) {
  if (refused.set) return;
  refused.set = true;
  /* These cases carry a reason. */
  refused.refusal.tag = tag;
  refused.refusal.val.denied = (wrkflw_flow_types_reason_t){code, message};
}

void wf_denied(const char *code, const char *message) { refuse(WRKFLW_FLOW_TYPES_REFUSAL_DENIED, wf_text(code), wf_text(message)); }
void wf_not_now(const char *code, const char *message) { refuse(WRKFLW_FLOW_TYPES_REFUSAL_NOT_NOW, wf_text(code), wf_text(message)); }

static void violated(wf_text_t field, const char *code, wf_text_t message) {
  if (refused.set && refused.refusal.tag != WRKFLW_FLOW_TYPES_REFUSAL_INVALID) return;
  refused.set = true;
  refused.refusal.tag = WRKFLW_FLOW_TYPES_REFUSAL_INVALID;
  wrkflw_flow_types_list_violation_t *list = &refused.refusal.val.invalid;
  list->ptr = realloc(list->ptr, (list->len + 1) * sizeof *list->ptr);
  list->ptr[list->len++] = (wrkflw_flow_types_violation_t){field, wf_text(code), message};
}

void wf_invalid(const char *field, const char *code, const char *message) { violated(wf_text(field), code, wf_text(message)); }

wf_text_t wf_decimal(uint32_t number) {
  uint8_t *digits = malloc(10);
  size_t at = 10;
  do digits[--at] = (uint8_t)('0' + number % 10);
  while ((number /= 10) > 0);
  return (wf_text_t){digits + at, 10 - at};
}

/* The message and the source line: `amount >= 0 (flow.c:12)`. */
void wf_fault(const char *file, int line, const char *message) {
  const char *name = file;
  for (; *file != 0; file++)
    if (*file == '/') name = file + 1;
  wf_text_t text = wf_joined(wf_joined(wf_text(message), wf_text(" (")), wf_joined(wf_text(name), wf_text(":")));
  text = wf_joined(wf_joined(text, wf_decimal((uint32_t)line)), wf_text(")"));
  refuse(WRKFLW_FLOW_TYPES_REFUSAL_FAULT, wf_text("exception"), text);
}

static void fault(const char *code, const char *message, wf_text_t about) {
  refuse(WRKFLW_FLOW_TYPES_REFUSAL_FAULT, wf_text(code), wf_joined(wf_text(message), about));
}

/* ── Facts ── */

wf_text_t wf_of_config(wf_text_t config, const char *pointer) {
  wf_text_t value = wf_find(config, pointer);
  if (value.len == 0) value = wf_find(wf_text(wf_flow.config), pointer);
  wf_text_t text = wf_string(value);
  return text.ptr == NULL ? value : text;
}

wf_text_t wf_setting(const wf_facts_t *facts, const char *pointer) { return wf_of_config(facts->config, pointer); }
wf_text_t wf_data(const wf_facts_t *facts, const char *pointer) { return wf_find(facts->instance.data, pointer); }

/* Whether both values have the same JSON type. */
static bool alike(wf_text_t one, wf_text_t other) {
  const uint8_t kinds[] = "\"{[tfn";
  uint8_t a = one.len ? one.ptr[0] : 0, b = other.len ? other.ptr[0] : 0;
  if (a == 'f') a = 't';
  if (b == 'f') b = 't';
  for (size_t i = 0; kinds[i] != 0; i++)
    if (a == kinds[i] || b == kinds[i]) return a == b || b == 'n';
  return true;
}

/* An object with members. An empty object as a default accepts any members, such as a table does. */
static bool has_members(wf_text_t json) {
  wf_text_t name, value;
  size_t cursor = 0;
  return json.len > 0 && json.ptr[0] == '{' && wf_each(json, &cursor, &name, &value);
}

/* Refuses settings that have no default, and values of another type. `at` is the field that contains these settings. */
static void check_config(wf_text_t config, wf_text_t defaults, wf_text_t at) {
  wf_text_t name, value, usual_name, usual;
  for (size_t cursor = 0; wf_each(config, &cursor, &name, &value);) {
    wf_text_t field = wf_joined(wf_joined(at, wf_text("/")), name);
    bool known = false;
    for (size_t other = 0; wf_each(defaults, &other, &usual_name, &usual);) {
      if (!wf_same(name, usual_name)) continue;
      known = true;
      if (!alike(value, usual)) violated(field, "type", wf_text("It is of another type than its default."));
      else if (has_members(usual) && has_members(value)) check_config(value, usual, field);
    }
    if (!known) violated(field, "unknown", wf_joined(wf_text("There is no setting "), name));
  }
}

const wf_actor_t *wf_actor(const wf_event_t *event) {
  const wrkflw_flow_types_event_source_t *source = &event->record->source;
  if (source->tag == WRKFLW_FLOW_TYPES_EVENT_SOURCE_TASK) return &source->val.task.actor;
  return source->tag == WRKFLW_FLOW_TYPES_EVENT_SOURCE_SIGNAL ? &source->val.signal.actor : NULL;
}

static const wrkflw_flow_types_task_decision_t *decision_of(const wf_event_t *event) {
  return event->record->source.tag == WRKFLW_FLOW_TYPES_EVENT_SOURCE_TASK ? &event->record->source.val.task : NULL;
}

static bool is_blank(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

wf_text_t wf_comment(const wf_event_t *event) {
  const wrkflw_flow_types_task_decision_t *decision = decision_of(event);
  if (decision == NULL || !decision->comment.is_some) return (wf_text_t){NULL, 0};
  wf_text_t comment = decision->comment.val;
  while (comment.len > 0 && is_blank(comment.ptr[comment.len - 1])) comment.len--;
  for (; comment.len > 0 && is_blank(*comment.ptr); comment.len--) comment.ptr++;
  return comment;
}

uint32_t wf_votes(const wf_event_t *event, const char *trigger) {
  uint32_t votes = decision_of(event) != NULL && wf_is(event->trigger, trigger);
  for (size_t i = 0; i < event->here->tasks.len; i++) {
    const wf_task_t *task = &event->here->tasks.ptr[i];
    votes += task->decision.is_some && wf_is(task->decision.val.outcome, trigger);
  }
  return votes;
}

static bool is_open(const wf_task_t *task) {
  return task->status == WRKFLW_FLOW_TYPES_TASK_STATUS_PENDING || task->status == WRKFLW_FLOW_TYPES_TASK_STATUS_CLAIMED;
}

const wf_task_t *wf_decided_task(const wf_event_t *event) {
  const wrkflw_flow_types_task_decision_t *cast = decision_of(event);
  for (size_t i = 0; cast != NULL && i < event->here->tasks.len; i++)
    if (wf_same(event->here->tasks.ptr[i].id, cast->task)) return &event->here->tasks.ptr[i];
  return NULL;
}

uint32_t wf_undecided(const wf_event_t *event) {
  const wf_task_t *cast = wf_decided_task(event);
  uint32_t undecided = 0;
  for (size_t i = 0; i < event->here->tasks.len; i++) {
    const wf_task_t *task = &event->here->tasks.ptr[i];
    undecided += is_open(task) && task != cast;
  }
  return undecided;
}

wf_quorum_t wf_quorum(const wf_event_t *event, const char *trigger) {
  uint32_t votes = wf_votes(event, trigger);
  if (votes >= event->here->needed) return WF_REACHED;
  return votes + wf_undecided(event) < event->here->needed ? WF_IMPOSSIBLE : WF_OPEN;
}

bool wf_decided_in(const wf_facts_t *facts, const char *state, wf_text_t person) {
  for (size_t i = 0; i < facts->deciders.len; i++) {
    const wrkflw_flow_types_decider_t *one = &facts->deciders.ptr[i];
    bool theirs = wf_same(one->actor, person) || (one->on_behalf_of.is_some && wf_same(one->on_behalf_of.val, person));
    if (theirs && wf_is(one->state, state)) return true;
  }
  return false;
}

/* ── The exported functions ── */

static const wf_state_instance_t *active(const wf_facts_t *facts, wf_text_t id) {
  for (size_t i = 0; i < facts->active.len; i++)
    if (wf_same(facts->active.ptr[i].id, id)) return &facts->active.ptr[i];
  fault("unknown_state_instance", "No active state has the id ", id);
  return NULL;
}

static wf_graph_t drawn(wf_text_t config) {
  wf_graph_t graph = {0};
  wf_flow.graph(&graph, config);
  return graph;
}

bool exports_wrkflw_flow_logic_describe(wf_text_t *config, wf_graph_t *ret, exports_wrkflw_flow_logic_list_violation_t *err) {
  begin();
  check_config(*config, wf_text(wf_flow.config), wf_text(""));
  if (!refused.set) *ret = drawn(*config);
  if (!refused.set) return true;
  /* `describe` has violations only. */
  if (refused.refusal.tag != WRKFLW_FLOW_TYPES_REFUSAL_INVALID) {
    wrkflw_flow_types_reason_t reason = refused.refusal.val.denied;
    begin();
    refused.refusal.tag = WRKFLW_FLOW_TYPES_REFUSAL_INVALID;
    violated(wf_text(""), "exception", reason.message);
  }
  *err = (exports_wrkflw_flow_logic_list_violation_t){refused.refusal.val.invalid.ptr, refused.refusal.val.invalid.len};
  return false;
}

static bool answered(exports_wrkflw_flow_logic_refusal_t *err) {
  if (refused.set) *err = refused.refusal;
  return !refused.set;
}

static wf_event_t event_of(const wf_facts_t *facts, const wf_record_t *record) {
  return (wf_event_t){.record = record, .here = active(facts, record->state_instance), .trigger = record->trigger, .input = record->input};
}

bool exports_wrkflw_flow_logic_start(wf_facts_t *facts, exports_wrkflw_flow_logic_actor_t *by, exports_wrkflw_flow_logic_refusal_t *err) {
  begin();
  if (wf_flow.start != NULL) wf_flow.start(facts, by);
  return answered(err);
}

wf_plan_t wf_along(const wf_facts_t *facts, const wf_event_t *event) {
  wf_graph_t graph = drawn(facts->config);
  for (size_t i = 0; i < graph.transitions.len; i++) {
    const wf_transition_t *way = &graph.transitions.ptr[i];
    if (!wf_same(way->source, event->here->name) || !wf_same(way->trigger, event->trigger)) continue;
    if (way->targets.len == 1) return wf_fork((wf_target_t){.name = way->targets.ptr[0]});
  }
  fault("no_single_target", "To no single state leads ", event->trigger);
  return wf_stay();
}

bool exports_wrkflw_flow_logic_transition(wf_facts_t *facts, wf_record_t *record, wf_plan_t *ret, exports_wrkflw_flow_logic_refusal_t *err) {
  begin();
  wf_event_t event = event_of(facts, record);
  if (!refused.set && wf_flow.guard != NULL && wf_actor(&event) != NULL) wf_flow.guard(facts, &event);
  if (!refused.set) *ret = wf_flow.transition != NULL ? wf_flow.transition(facts, &event) : wf_along(facts, &event);
  return answered(err);
}

/* Whether the offer would create a task with these candidates. */
static bool fits(const wf_offer_t *offer, const wrkflw_flow_types_list_principal_t *candidates) {
  if (offer->each_member.is_some) {
    const wrkflw_flow_types_principal_t *only = candidates->ptr;
    bool is_member = candidates->len == 1 && only->tag == WRKFLW_FLOW_TYPES_PRINCIPAL_MEMBER;
    return is_member && wf_same(only->val.member.group, offer->each_member.val);
  }
  if (offer->candidates.len != candidates->len) return false;
  for (size_t i = 0; i < candidates->len; i++) {
    const wrkflw_flow_types_principal_t *one = &offer->candidates.ptr[i], *other = &candidates->ptr[i];
    /* The text of every case comes first in the union. */
    if (one->tag != other->tag || !wf_same(one->val.user, other->val.user)) return false;
    bool is_member = one->tag == WRKFLW_FLOW_TYPES_PRINCIPAL_MEMBER;
    if (is_member && !wf_same(one->val.member.group, other->val.member.group)) return false;
  }
  return true;
}

/* The position of the task's offer among `offers` offers with its label. Tasks have the order of their offers. Later tasks replace
   the cancelled ones in the same order. `offers` if there is none. */
static size_t place_of(const wf_task_t *task, const wf_state_instance_t *here, size_t offers) {
  size_t *gone = calloc(here->tasks.len + 1, sizeof *gone), gone_count = 0, count = 0, place = 0;
  for (size_t i = 0; i < here->tasks.len; i++) {
    const wf_task_t *one = &here->tasks.ptr[i];
    if (!wf_same(one->label, task->label)) continue;
    if (one == task) place = count;
    if (one->status == WRKFLW_FLOW_TYPES_TASK_STATUS_CANCELLED) gone[gone_count++] = count;
    count++;
  }
  while (place >= offers) {
    size_t later = place - offers;
    if (later >= gone_count || gone[later] >= place) return offers;
    place = gone[later];
  }
  return place;
}

/* The offer that created a task: the only one with its label. Among several, the one with the same candidates, or else the one at the
   same position. A task that went to a manager has other candidates than its offer. NULL if there is none. */
static const wf_offer_t *offer_of(const wf_task_t *task, const wf_state_instance_t *here, const wrkflw_flow_types_list_offer_t *offers) {
  const wf_offer_t **labelled = calloc(offers->len + 1, sizeof *labelled), *fitting = NULL;
  size_t count = 0;
  bool in_order = true;
  for (size_t i = 0; i < offers->len; i++) {
    const wf_offer_t *offer = &offers->ptr[i];
    if (!wf_same(offer->label, task->label)) continue;
    labelled[count++] = offer;
    in_order = in_order && !offer->each_member.is_some;
    if (fitting == NULL && fits(offer, &task->candidates)) fitting = offer;
  }
  if (count == 1) return labelled[0];
  if (fitting != NULL || !in_order) return fitting;
  /* The item after the last one is NULL. */
  return labelled[place_of(task, here, count)];
}

/* Offers the task to the managers of those who had it, if they had it in person. */
static void to_managers(wf_offer_t *offer, const wf_task_t *task) {
  wrkflw_flow_types_list_principal_t managers = {calloc(task->candidates.len + 1, sizeof *managers.ptr), 0};
  const wf_text_t *person = task->owner.is_some ? &task->owner.val : NULL;
  for (size_t i = 0; i < (task->owner.is_some ? 1 : task->candidates.len); i++) {
    const wrkflw_flow_types_principal_t *candidate = &task->candidates.ptr[i];
    if (!task->owner.is_some) {
      if (candidate->tag == WRKFLW_FLOW_TYPES_PRINCIPAL_USER) person = &candidate->val.user;
      else if (candidate->tag == WRKFLW_FLOW_TYPES_PRINCIPAL_MEMBER) person = &candidate->val.member.person;
      else continue;
    }
    managers.ptr[managers.len].tag = WRKFLW_FLOW_TYPES_PRINCIPAL_MANAGER_OF;
    managers.ptr[managers.len++].val.manager_of = *person;
  }
  if (managers.len == 0) return;
  offer->candidates = managers;
  offer->owner.is_some = offer->each_member.is_some = false;
}

/* The overdue work goes to the managers of those who had it. Own work, and work of groups, is offered as before. */
static void upwards(wf_assignment_t *again, const wf_state_t *state, const wf_state_instance_t *here, const wf_overdue_t *overdue) {
  wrkflw_flow_types_list_offer_t offers = {calloc(here->tasks.len + 1, sizeof *offers.ptr), 0};
  for (size_t i = 0; i < here->tasks.len; i++) {
    const wf_task_t *task = &here->tasks.ptr[i];
    if (overdue->task.is_some ? !wf_same(task->id, overdue->task.val) : !is_open(task)) continue;
    wf_offer_t *offer = &offers.ptr[offers.len++];
    *offer = (wf_offer_t){.label = task->label, .candidates = task->candidates};
    const wf_offer_t *before = offer_of(task, here, &again->offers);
    if (before != NULL) *offer = *before;
    if (!state->own_work) to_managers(offer, task);
  }
  again->offers = offers;
}

static wf_assignment_t assigned(const wf_facts_t *facts, const wf_state_t *state, const wf_state_instance_t *here, const exports_wrkflw_flow_logic_entry_t *entry) {
  wf_assignment_t assignment;
  bool overdue = entry->cause.tag == WRKFLW_FLOW_TYPES_ENTRY_CAUSE_OVERDUE;
  if (overdue && wf_flow.escalate != NULL)
    assignment = wf_flow.escalate(facts, here, &entry->cause.val.overdue);
  else if (wf_flow.assign != NULL)
    assignment = wf_flow.assign(facts, here);
  else
    assignment = state->own_work ? wf_to_user(facts->instance.initiator) : wf_to_nobody();
  for (size_t i = 0; i < assignment.offers.len; i++)
    if (assignment.offers.ptr[i].label.len == 0) assignment.offers.ptr[i].label = state->title;
  if (overdue && wf_flow.escalate == NULL) upwards(&assignment, state, here, &entry->cause.val.overdue);
  return assignment;
}

static wf_text_t fired(const wf_graph_t *graph, const wf_state_t *state, uint8_t by) {
  for (size_t i = 0; i < graph->transitions.len; i++) {
    const wf_transition_t *way = &graph->transitions.ptr[i];
    if (wf_same(way->source, state->name) && (way->by & by)) return way->trigger;
  }
  return (wf_text_t){NULL, 0};
}

static wf_call_t called(const wf_facts_t *facts, const wf_graph_t *graph, const wf_state_t *state, const wf_state_instance_t *here) {
  if (wf_flow.call != NULL) return wf_flow.call(facts, here);
  wf_call_t call = wf_call("", facts->instance.data, "", "");
  call.service = state->name;
  call.on_reply = fired(graph, state, WRKFLW_FLOW_TYPES_FIRED_BY_REPLY);
  call.on_failure = fired(graph, state, WRKFLW_FLOW_TYPES_FIRED_BY_FAILURE);
  return call;
}

bool exports_wrkflw_flow_logic_enter(wf_facts_t *facts, exports_wrkflw_flow_logic_list_entry_t *entries, exports_wrkflw_flow_logic_list_work_t *ret, exports_wrkflw_flow_logic_refusal_t *err) {
  begin();
  wf_graph_t graph = drawn(facts->config);
  *ret = (exports_wrkflw_flow_logic_list_work_t){calloc(entries->len, sizeof *ret->ptr), entries->len};
  for (size_t i = 0; i < entries->len && !refused.set; i++) {
    const exports_wrkflw_flow_logic_entry_t *entry = &entries->ptr[i];
    const wf_state_instance_t *here = active(facts, entry->state_instance);
    const wf_state_t *state = NULL;
    for (size_t j = 0; j < graph.states.len; j++)
      if (wf_same(graph.states.ptr[j].name, entry->state)) state = &graph.states.ptr[j];
    if (here == NULL) break;
    if (state == NULL) {
      fault("unknown_state", "This flow knows no state ", entry->state);
    } else if (state->kind.tag == WRKFLW_FLOW_TYPES_STATE_KIND_SERVICE) {
      ret->ptr[i].tag = WRKFLW_FLOW_TYPES_WORK_SERVICE, ret->ptr[i].val.service = called(facts, &graph, state, here);
    } else if (state->kind.tag == WRKFLW_FLOW_TYPES_STATE_KIND_WAIT) {
      ret->ptr[i].tag = WRKFLW_FLOW_TYPES_WORK_WAIT;
      ret->ptr[i].val.wait = wf_flow.wait != NULL ? wf_flow.wait(facts, here) : wf_for_signals();
    } else {
      ret->ptr[i].tag = WRKFLW_FLOW_TYPES_WORK_TASK, ret->ptr[i].val.task = assigned(facts, state, here, entry);
    }
  }
  return answered(err);
}
