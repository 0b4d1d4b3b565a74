// @ts-check
// Two reviews of a document; a rejected one goes back to its author.

import { flow, ownWork, task, terminal, toGroup, toUser } from "wrkflw";

/**
 * The groups that take part, and whether a rejection has to say why.
 * @typedef {{ initiators: string, reviewers: string, approvers: string, rejectionNeedsComment: boolean }} Config
 * @typedef {{ title: string, link?: string }} Document
 * @typedef {"Submitted" | "FinalReview" | "ReworkRequested" | "Approved" | "Rejected"} State
 * @typedef {"APPROVE" | "REJECT" | "SUBMIT" | "ABANDON"} Trigger
 * @typedef {import("wrkflw").Flow<{ config: Config, data: Document, state: State, trigger: Trigger }>} DocumentApproval
 */

/** @type {DocumentApproval} */
const documentApproval = {
  config: { initiators: "authors", reviewers: "reviewers", approvers: "approvers", rejectionNeedsComment: true },

  graph(config) {
    /** @type {import("wrkflw").Transition<State>} */
    const rework = { to: "ReworkRequested", comment: config.rejectionNeedsComment ? "required" : "optional" };
    return {
      title: "Document approval",
      description: "Two reviews; a rejected document goes back to its author.",
      instanceTitle: "{/title}",
      initiators: [config.initiators],
      schema: {
        type: "object",
        properties: { title: { type: "string" }, link: { type: "string" } },
        required: ["title"],
      },
      start: "Submitted",
      states: {
        Submitted: task("First review", { APPROVE: "FinalReview", REJECT: rework }),
        FinalReview: task("Final review", { APPROVE: "Approved", REJECT: rework }),
        ReworkRequested: ownWork(
          "Rework",
          { SUBMIT: "Submitted", ABANDON: "Rejected" },
          { description: "The author changes the document as the rejection says, or gives it up." },
        ),
        Approved: terminal("APPROVED"),
        Rejected: terminal("REJECTED"),
      },
    };
  },

  assign({ config, initiator }, state) {
    if (state === "Submitted") return toGroup(config.reviewers);
    if (state === "FinalReview") return toGroup(config.approvers);
    return toUser(initiator);
  },
};

export const logic = flow(documentApproval);
