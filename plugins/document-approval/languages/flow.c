/* Two reviews of a document; a rejected one goes back to its author. */
#include "wrkflw.h"

static const char SCHEMA[] =
  "{\"type\": \"object\", \"properties\": {\"title\": {\"type\": \"string\"}, \"link\": {\"type\": \"string\"}}, \"required\": [\"title\"]}";

static void rejection(wf_graph_t *graph, wf_text_t config) {
  wf_transition_t *way = wf_on(graph, "REJECT", "ReworkRequested");
  if (wf_true(wf_of_config(config, "/rejectionNeedsComment"))) way->comment = WF_COMMENT_REQUIRED;
}

static void graph(wf_graph_t *graph, wf_text_t config) {
  graph->title = wf_text("Document approval");
  graph->description = wf_text("Two reviews; a rejected document goes back to its author.");
  wf_instance_title(graph, "{/title}");
  wf_initiators(graph, wf_of_config(config, "/initiators"));
  wf_schema(graph, SCHEMA);
  wf_start_in(graph, "Submitted");
  wf_task(graph, "Submitted", "First review");
  wf_on(graph, "APPROVE", "FinalReview");
  rejection(graph, config);
  wf_task(graph, "FinalReview", "Final review");
  wf_on(graph, "APPROVE", "Approved");
  rejection(graph, config);
  wf_own_work(graph, "ReworkRequested", "Rework")->description =
    wf_text("The author changes the document as the rejection says, or gives it up.");
  wf_on(graph, "SUBMIT", "Submitted");
  wf_on(graph, "ABANDON", "Rejected");
  wf_terminal(graph, "Approved", "APPROVED");
  wf_terminal(graph, "Rejected", "REJECTED");
}

static wf_assignment_t assign(const wf_facts_t *facts, const wf_state_instance_t *entering) {
  if (wf_is(entering->name, "Submitted")) return wf_to_group(wf_setting(facts, "/reviewers"));
  if (wf_is(entering->name, "FinalReview")) return wf_to_group(wf_setting(facts, "/approvers"));
  return wf_to_user(facts->instance.initiator);
}

const wf_flow_t wf_flow = {
  .config = "{\"initiators\": \"authors\", \"reviewers\": \"reviewers\", \"approvers\": \"approvers\", \"rejectionNeedsComment\": true}",
  .graph = graph,
  .assign = assign,
};
