/* A flow that says everything that flow logic can say at least once. It makes no sense as work. */
#include "wrkflw.h"

static const char AT[] = "2099-12-31T12:00:00.000Z";
static const char NAME[] = "{\"type\": \"object\", \"required\": [\"name\"], \"properties\": {\"name\": {\"type\": \"string\"}}}";
static const char NOTE[] = "{\"type\": \"object\", \"properties\": {\"note\": {\"type\": \"string\"}}}";
static const wf_text_t NONE = {0};

static void signalled(wf_graph_t *graph, const char *trigger, const char *target) {
  wf_on(graph, trigger, target)->by = WRKFLW_FLOW_TYPES_FIRED_BY_SIGNAL;
}

static void graph(wf_graph_t *graph, wf_text_t config) {
  graph->title = wf_text("Everything");
  graph->description = wf_text("All that a flow can say.");
  graph->reads = WRKFLW_FLOW_TYPES_READS_GROUPS | WRKFLW_FLOW_TYPES_READS_PERMISSIONS | WRKFLW_FLOW_TYPES_READS_COMMENTS | WRKFLW_FLOW_TYPES_READS_INPUTS;
  graph->sole_per_entity = true;
  wf_start_in(graph, "Sort");
  wf_initiators(graph, wf_text("authors"));
  wf_schema(graph, NAME);
  wf_attribute(graph, "text", WRKFLW_FLOW_TYPES_ATTRIBUTE_TYPE_TEXT);
  wf_attribute(graph, "boolean", WRKFLW_FLOW_TYPES_ATTRIBUTE_TYPE_BOOLEAN);
  wf_attribute(graph, "decimal", WRKFLW_FLOW_TYPES_ATTRIBUTE_TYPE_DECIMAL);
  wf_attribute(graph, "float", WRKFLW_FLOW_TYPES_ATTRIBUTE_TYPE_FLOAT);
  wf_attribute(graph, "timestamp", WRKFLW_FLOW_TYPES_ATTRIBUTE_TYPE_TIMESTAMP);
  wf_attribute(graph, "bytes", WRKFLW_FLOW_TYPES_ATTRIBUTE_TYPE_BYTES);
  wf_instance_title(graph, "Case {/name}");
  wf_instance_summary(graph, "{entityType} {entityId}");
  wf_priority(graph, "low", 0);
  wf_priority(graph, "high", 50);
  wf_separate(graph, (const char *const[]){"Each", "Named", NULL});
  wf_observer(graph, wf_text("approvers"));
  wf_uses_group(graph, wf_of_config(config, "/group"));
  wf_uses_person(graph, wf_text("reviewer"));
  wf_uses_calendar(graph, wf_of_config(config, "/calendar"));
  wf_uses_service(graph, wf_text("shop"));

  wf_router(graph, "Sort", "Sort");
  wf_on(graph, "SORTED", "Each")->condition = wf_text("Always");
  wf_or(graph, "Named");
  wf_or(graph, "Order");
  wf_or(graph, "Parts");
  wf_or(graph, "Own");
  wf_or(graph, "Item");

  wf_task(graph, "Each", "Each")->description = wf_text("Everybody votes.");
  wf_transition_t *agree = wf_on(graph, "AGREE", "All");
  agree->title = wf_text("Agree to it");
  agree->description = wf_text("It goes on.");
  wf_needs(agree, "task:act");
  wf_input(agree, NOTE);
  wf_on(graph, "REFUSE", "All")->comment = WF_COMMENT_NONE;
  wf_transition_t *late = wf_on(graph, "LATE", "All");
  late->by |= WRKFLW_FLOW_TYPES_FIRED_BY_DEADLINE;
  late->comment = WF_COMMENT_REQUIRED;
  signalled(graph, "SHIFT", "All");
  signalled(graph, "MORE", "Item");
  signalled(graph, "AGAIN", "All");
  signalled(graph, "CALLED", "All");

  wf_task(graph, "Named", "Named");
  wf_on(graph, "AGREE", "All");

  wf_service(graph, "Order", "Order");
  wf_on(graph, "ANSWERED", "All");
  wf_on(graph, "UNANSWERED", "All")->by = WRKFLW_FLOW_TYPES_FIRED_BY_FAILURE;
  signalled(graph, "CALLED", "All");
  wf_on(graph, "LATE", "All")->by = WRKFLW_FLOW_TYPES_FIRED_BY_DEADLINE;

  wf_wait(graph, "Parts", "Parts");
  wf_on(graph, "ENDED", "All")->by = WRKFLW_FLOW_TYPES_FIRED_BY_CHILD;
  wf_on(graph, "CALLED", "All");
  wf_on(graph, "LATE", "All")->by = WRKFLW_FLOW_TYPES_FIRED_BY_DEADLINE;

  wf_own_work(graph, "Own", "Own");
  wf_on(graph, "FINISH", "All");
  wf_or(graph, "Two");
  wf_task(graph, "Item", "Item");
  wf_on(graph, "AGREE", "All");
  wf_task(graph, "All", "All")->join.tag = WRKFLW_FLOW_TYPES_JOIN_ALL;
  wf_on(graph, "FINISH", "Done");
  wf_state_t *two = wf_task(graph, "Two", "Two");
  two->join.tag = WRKFLW_FLOW_TYPES_JOIN_COUNT, two->join.val.count = 2;
  wf_on(graph, "FINISH", "Failed");
  wf_terminal(graph, "Done", "DONE");
  wf_terminal(graph, "Failed", "FAILED");
}

static bool has(const wf_text_t *list, size_t len, const char *name) {
  for (size_t i = 0; i < len; i++)
    if (wf_is(list[i], name)) return true;
  return false;
}

static void start(const wf_facts_t *facts, const wf_actor_t *actor) {
  wf_text_t name = wf_string(wf_data(facts, "/name"));
  if (wf_is(name, "denied")) wf_denied("denied_code", "No, never.");
  if (wf_is(name, "later")) wf_not_now("later_code", "No, not now.");
  if (wf_is(name, "invalid")) {
    wf_invalid("/data/name", "one", "First.");
    wf_invalid("/data/other", "two", "Second.");
  }
  if (wf_is(name, "fault")) WF_FAULT("It does not know.");
  bool may = has(actor->groups.ptr, actor->groups.len, "authors") && has(actor->permissions.ptr, actor->permissions.len, "instance:start");
  if (!may) wf_denied("no_author", "Only authors.");
}

static void guard(const wf_facts_t *facts, const wf_event_t *event) {
  const wf_actor_t *actor = wf_actor(event);
  if (actor == NULL) {
    wf_denied("nobody", "Nobody acts.");
    return;
  }
  if (!wf_is(event->here->name, "Each")) return;
  if (wf_is(event->trigger, "AGREE") && wf_find(event->input, "/note").len == 0 && wf_comment(event).len == 0)
    wf_invalid("/comment", "required", "Say why.");
  if (wf_is(event->trigger, "SHIFT") && !wf_same(actor->id, facts->instance.initiator))
    wf_denied("not_requester", "Only those whose request it is may do this.");
  if (wf_is(event->trigger, "MORE") && wf_is(actor->id, "reviewer")) wf_denied("four_eyes", "You have decided on this elsewhere.");
}

static wf_text_t joined(const wf_text_t *parts, size_t count) {
  wf_text_t all = NONE;
  for (size_t i = 0; i < count; i++) all = wf_joined(all, parts[i]);
  return all;
}
#define JOINED(...) joined((const wf_text_t[]){__VA_ARGS__}, sizeof (const wf_text_t[]){__VA_ARGS__} / sizeof(wf_text_t))

/* The facts that flow logic gets about an event. */
static wf_text_t told(const wf_facts_t *facts, const wf_event_t *event) {
  wf_text_t deciders = wf_text(""), null = wf_text("null");
  uint32_t sorted = 0;
  for (size_t i = 0; i < facts->deciders.len; i++) {
    if (!wf_is(facts->deciders.ptr[i].state, "Each")) continue;
    if (deciders.len > 0) deciders = wf_joined(deciders, wf_text(","));
    deciders = wf_joined(deciders, wf_quoted(facts->deciders.ptr[i].actor));
  }
  for (size_t i = 0; i < facts->past.len; i++) sorted += wf_is(facts->past.ptr[i].name, "Sort");
  const wf_task_t *task = wf_decided_task(event);
  return JOINED(
    wf_text("{\"actor\":"), wf_quoted(wf_actor(event)->id), wf_text(",\"comment\":"), wf_quoted(wf_comment(event)),
    wf_text(",\"correlation\":null,\"deciders\":["), deciders, wf_text("],\"input\":"), event->input, wf_text(",\"sorted\":"), wf_decimal(sorted),
    wf_text(",\"task\":"), task != NULL ? wf_quoted(task->label) : null, wf_text(",\"undecided\":"), wf_decimal(wf_undecided(event)),
    wf_text(",\"votes\":"), wf_decimal(wf_votes(event, "AGREE")), wf_text("}"));
}

static wf_target_t item(const char *key) {
  return wf_target("Item", wf_text(key), JOINED(wf_text("{\"label\":"), wf_quoted(wf_text(key)), wf_text("}")));
}

static wf_plan_t sorted(const wf_facts_t *facts) {
  wf_plan_t plan = wf_to("Each");
  wf_branch(&plan, wf_target("Named", NONE, NONE));
  wf_branch(&plan, wf_target("Order", NONE, NONE));
  wf_branch(&plan, wf_target("Parts", NONE, NONE));
  wf_branch(&plan, wf_target("Own", NONE, NONE));
  wf_branch(&plan, item("one"));
  wf_branch(&plan, item("two"));
  wf_set_attribute(&plan, "text", WRKFLW_FLOW_TYPES_ATTRIBUTE_VALUE_TEXT, wf_text("words"));
  wf_set_attribute(&plan, "boolean", WRKFLW_FLOW_TYPES_ATTRIBUTE_VALUE_BOOLEAN, NONE)->val.boolean = true;
  wf_set_attribute(&plan, "decimal", WRKFLW_FLOW_TYPES_ATTRIBUTE_VALUE_DECIMAL, wf_text("19.90"));
  wf_set_attribute(&plan, "float", WRKFLW_FLOW_TYPES_ATTRIBUTE_VALUE_FLOAT, NONE)->val.float_ = 1.5;
  wf_set_attribute(&plan, "timestamp", WRKFLW_FLOW_TYPES_ATTRIBUTE_VALUE_TIMESTAMP, wf_text(AT));
  wf_set_attribute(&plan, "bytes", WRKFLW_FLOW_TYPES_ATTRIBUTE_VALUE_BYTES, wf_text("\1\2\3"));
  wf_patch(&plan, wf_text("{\"sorted\":{\"deep\":[1,\"two\",null]}}"));
  wf_note(&plan, "sorted", wf_text("It is sorted."), NONE);
  wf_publish(&plan, "sorted", JOINED(wf_text("{\"name\":"), wf_data(facts, "/name"), wf_text("}")));
  return plan;
}

static wf_plan_t shifted(const wf_facts_t *facts, const wf_event_t *event) {
  const wf_state_instance_t *second = NULL;
  for (size_t i = 0; i < facts->active.len; i++)
    if (facts->active.ptr[i].key.is_some && wf_is(facts->active.ptr[i].key.val, "two")) second = &facts->active.ptr[i];
  WF_REQUIRE(second != NULL, wf_stay());
  wf_plan_t plan = wf_stay();
  wf_remove_attribute(&plan, "boolean");
  wf_cancel(&plan, second);
  wf_note(&plan, "shifted", wf_text("It is shifted."), told(facts, event));
  wf_publish(&plan, "shifted", told(facts, event));
  return plan;
}

static wf_plan_t transition(const wf_facts_t *facts, const wf_event_t *event) {
  wf_plan_t plan;
  if (wf_is(event->here->name, "Sort")) return sorted(facts);
  if (wf_is(event->here->name, "Own")) {
    plan = wf_end_branch();
    wf_publish(&plan, "own", told(facts, event));
    return plan;
  }
  if (!wf_is(event->here->name, "Each")) return wf_along(facts, event);
  if (wf_is(event->trigger, "SHIFT")) return shifted(facts, event);
  if (wf_is(event->trigger, "AGAIN")) return wf_reoffer();
  if (wf_is(event->trigger, "MORE")) {
    plan = wf_spawn(item("three"));
    wf_note(&plan, "more", wf_text("One more."), event->input);
    return plan;
  }
  if (!wf_is(event->trigger, "AGREE")) return wf_along(facts, event);
  bool reached = wf_quorum(event, "AGREE") == WF_REACHED;
  plan = reached ? wf_to("All") : wf_stay();
  wf_publish(&plan, reached ? "agreed" : "open", told(facts, event));
  return plan;
}

static wf_assignment_t each(wf_text_t group, wf_text_t calendar) {
  wf_assignment_t made = wf_to_each_member(group);
  wf_at_least(&made, 2, 3);
  wf_exclude(&made, wf_text("outsider"));
  wf_fallback(&made, wf_text("approvers"));
  made.priority = 50;
  made.blind = true;
  wf_deadline(&made.deadlines, wf_every(wf_remind(wf_after(WF_DAYS(1))), WF_HOURS(12)));
  wf_deadline(&made.deadlines, wf_escalate(wf_working(WF_HOURS(8), calendar)));
  wf_deadline(&made.deadlines, wf_fire(wf_at(AT), "LATE"));
  wf_deadline(&made.deadlines, wf_cancel_instance(wf_after(WF_DAYS(90)), "too late"));
  wf_subscribe(&made.subscriptions, "CALLED", wf_text("each"))->buffered = true;
  return made;
}

static wf_assignment_t named(wf_text_t group, wf_text_t calendar) {
  wf_assignment_t made = wf_to_nobody();
  wf_offer_t *offer = wf_offer(&made, "first");
  wf_offer_to_user(offer, wf_text("reviewer"));
  wf_offer_to_manager_of(offer, wf_text("author"));
  offer->retain = true;
  wf_deadline(&offer->deadlines, wf_since_claim(wf_release(wf_after(WF_MINUTES(30)))));
  offer = wf_offer(&made, "second");
  wf_offer_to_group(offer, group);
  wf_owned_by(offer, wf_text("reviewer2"));
  wf_deadline(&offer->deadlines, wf_remind(wf_working_days(2, calendar)));
  offer = wf_offer(&made, "third");
  wf_offer_to_group(offer, group);
  offer->allocation = WRKFLW_FLOW_TYPES_ALLOCATION_ROUND_ROBIN;
  offer = wf_offer(&made, "fourth");
  wf_offer_to_group(offer, group);
  offer->allocation = WRKFLW_FLOW_TYPES_ALLOCATION_LEAST_LOADED;
  wf_more_than(&made, 1, 2);
  return made;
}

static wf_assignment_t assign(const wf_facts_t *facts, const wf_state_instance_t *entering) {
  wf_text_t group = wf_setting(facts, "/group"), calendar = wf_setting(facts, "/calendar");
  if (wf_is(entering->name, "Each")) return each(group, calendar);
  if (wf_is(entering->name, "Named")) return named(group, calendar);
  if (wf_is(entering->name, "Own")) return wf_to_user(facts->instance.initiator);
  if (!wf_is(entering->name, "Item")) return wf_to_group(wf_text("approvers"));
  wf_assignment_t made = wf_to_user(wf_text("reviewer"));
  made.offers.ptr[0].label = wf_string(wf_find(entering->data.val, "/label"));
  return made;
}

static wf_call_t call(const wf_facts_t *facts, const wf_state_instance_t *entering) {
  (void)entering;
  static uint32_t pauses[] = {60, 120};
  wf_call_t made = wf_call("shop", JOINED(wf_text("{\"name\":"), wf_data(facts, "/name"), wf_text("}")), "ANSWERED", "UNANSWERED");
  made.timeout = 5;
  made.retries.ptr = pauses, made.retries.len = 2;
  wf_deadline(&made.deadlines, wf_fire(wf_after(WF_DAYS(3)), "LATE"));
  wf_subscribe(&made.subscriptions, "CALLED", wf_text("order"));
  return made;
}

static wf_waiting_t wait(const wf_facts_t *facts, const wf_state_instance_t *entering) {
  (void)entering;
  wf_text_t data = JOINED(wf_text("{\"title\":"), wf_data(facts, "/name"), wf_text("}"));
  wf_text_t document = wf_text("document");
  wf_waiting_t made = wf_for_signals();
  wf_child(&made, "document-approval", document, wf_text("attached"), data, "ENDED");
  wf_child(&made, "document-approval", document, wf_text("detached"), data, NULL)->detached = true;
  wf_deadline(&made.deadlines, wf_fire(wf_working_days(7, wf_setting(facts, "/calendar")), "LATE"));
  wf_subscribe(&made.subscriptions, "CALLED", wf_text("parts"))->buffered = true;
  return made;
}

const wf_flow_t wf_flow = {
  .config = "{\"group\": \"reviewers\", \"calendar\": \"office\"}",
  .graph = graph,
  .start = start,
  .guard = guard,
  .transition = transition,
  .assign = assign,
  .call = call,
  .wait = wait,
};
