// An expense: small ones pass, others need the manager and two of finance, and then receipts within seven working days.

import { type Event, type Facts, type Plan, flow, hours, invalid, router, stay, task, terminal, to, toEachMember, toManagerOf, wait } from "wrkflw";

interface Config {
  finance: string;
  limit: number;
}

interface Expense {
  amount: number;
  number: string;
}

type State = "Sort" | "Manager" | "Vote" | "Receipts" | "Paid" | "Declined" | "Lapsed";
type Trigger = "SORTED" | "APPROVE" | "DECLINE" | "RECEIVED" | "LATE";
interface Types {
  config: Config;
  data: Expense;
  state: State;
  trigger: Trigger;
}

const schema = {
  type: "object",
  properties: { amount: { type: "integer" }, number: { type: "string" }, votes: { type: "integer" } },
  required: ["amount", "number"],
};
const receipts = { type: "object", properties: { pages: { type: "integer", minimum: 1 } }, required: ["pages"] };

export const logic = flow<Types>({
  config: { finance: "reviewers", limit: 100 },

  graph: ({ finance }) => ({
    title: "Expense",
    description: "What somebody spent.",
    start: "Sort",
    schema,
    instanceTitle: "Expense {/number}",
    instanceSummary: "{/amount} in all",
    attributes: { number: "text", amount: "decimal" },
    priorities: { low: 0, high: 50 },
    reads: ["groups", "comments"],
    uses: { groups: [finance], calendars: ["office"] },
    states: {
      Sort: router("Sort", { SORTED: { to: ["Manager", "Paid"], condition: "Up to the limit it is paid at once" } }),
      Manager: task("Manager", { APPROVE: "Vote", DECLINE: { to: "Declined", comment: "required" } }),
      Vote: task(
        "Vote",
        { APPROVE: { to: "Receipts", title: "Pay it" }, DECLINE: { to: "Declined", comment: "required", description: "Say why." } },
        { description: "Two of finance decide." },
      ),
      Receipts: wait("Receipts", { RECEIVED: { to: "Paid", input: receipts }, LATE: { to: "Lapsed", by: "deadline" } }),
      Paid: terminal("PAID"),
      Declined: terminal("DECLINED"),
      Lapsed: terminal("LAPSED"),
    },
  }),

  start({ data }) {
    if (data.amount <= 0) throw invalid("/data/amount", "range", "It is above 0.");
  },

  transition(facts, event) {
    if (event.state === "Sort") {
      const paid = facts.data.amount <= facts.config.limit;
      return to<State>(paid ? "Paid" : "Manager").attribute("number", facts.data.number).attribute("amount", facts.data.amount);
    }
    return event.state === "Vote" ? voted(event) : undefined;
  },

  assign: ({ config, initiator }, state) =>
    state === "Vote"
      ? toEachMember(config.finance, { needed: 2, priority: 50, deadlines: [{ after: hours(24), then: "remind", every: hours(24) }] })
      : toManagerOf(initiator, { deadlines: [{ after: hours(48), then: "escalate" }] }),

  wait: ({ data }) => ({ subscriptions: [{ trigger: "RECEIVED", correlation: data.number }], deadlines: [{ workingDays: { days: 7, calendar: "office" }, then: { fire: "LATE" } }] }),
});

function voted(event: Event<Types>): Plan<State> | undefined {
  const { trigger } = event;
  if (trigger === "DECLINE") return event.quorum("APPROVE") === "impossible" ? undefined : stay();
  if (event.quorum("APPROVE") !== "reached") return stay().note("open", "One more is needed.", { votes: event.votes("APPROVE") });
  return to<State>("Receipts").patch({ votes: event.votes("APPROVE") }).publish("approved", { votes: event.votes("APPROVE") });
}
