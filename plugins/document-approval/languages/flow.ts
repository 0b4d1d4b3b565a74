// Two reviews of a document; a rejected one goes back to its author.

import { flow, ownWork, task, terminal, toGroup, toUser } from "wrkflw";

/** The groups that take part, and whether a rejection has to say why. */
interface Config {
  initiators: string;
  reviewers: string;
  approvers: string;
  rejectionNeedsComment: boolean;
}

/** The part of the document that the logic needs: its title. */
interface Document {
  title: string;
  link?: string;
}

type State = "Submitted" | "FinalReview" | "ReworkRequested" | "Approved" | "Rejected";
type Trigger = "APPROVE" | "REJECT" | "SUBMIT" | "ABANDON";

export const logic = flow<{ config: Config; data: Document; state: State; trigger: Trigger }>({
  config: { initiators: "authors", reviewers: "reviewers", approvers: "approvers", rejectionNeedsComment: true },

  graph(config) {
    const rework = { to: "ReworkRequested", comment: config.rejectionNeedsComment ? "required" : "optional" } as const;
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
    switch (state) {
      case "Submitted":
        return toGroup(config.reviewers);
      case "FinalReview":
        return toGroup(config.approvers);
      default:
        return toUser(initiator);
    }
  },
});
