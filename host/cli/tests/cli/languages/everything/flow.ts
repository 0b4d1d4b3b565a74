// A flow that says everything that flow logic can say at least once. It makes no sense as work.

import {
  type Event, type Facts, type Target, days, endBranch, fault, flow, fork, denied, hours, allInvalid, managerOf, minutes, notNow,
  group, ownWork, reoffer, router, service, spawn, stay, task, terminal, to, toEachMember, toGroup, toUser, user, wait,
} from "wrkflw";

type State = "Sort" | "Each" | "Named" | "Order" | "Parts" | "Own" | "Item" | "All" | "Two" | "Done" | "Failed";
type Trigger =
  | "SORTED" | "AGREE" | "REFUSE" | "SHIFT" | "MORE" | "AGAIN" | "CALLED" | "ANSWERED" | "UNANSWERED" | "ENDED" | "LATE" | "FINISH";
interface Types {
  config: { group: string; calendar: string };
  data: { name: string; sorted?: { deep: unknown[] } };
  state: State;
  trigger: Trigger;
}

const AT = "2099-12-31T12:00:00.000Z";
const NAME = { type: "object", required: ["name"], properties: { name: { type: "string" } } };
const NOTE = { type: "object", properties: { note: { type: "string" } } };

export const logic = flow<Types>({
  config: { group: "reviewers", calendar: "office" },

  graph: ({ group, calendar }) => ({
    title: "Everything",
    description: "All that a flow can say.",
    start: "Sort",
    initiators: ["authors"],
    schema: NAME,
    attributes: { text: "text", boolean: "boolean", decimal: "decimal", float: "float", timestamp: "timestamp", bytes: "bytes" },
    instanceTitle: "Case {/name}",
    instanceSummary: "{entityType} {entityId}",
    priorities: { low: 0, high: 50 },
    separate: [["Each", "Named"]],
    reads: ["groups", "permissions", "comments", "inputs"],
    solePerEntity: true,
    visibleToParticipants: ["approvers"],
    uses: { groups: [group], people: ["reviewer"], calendars: [calendar], services: ["shop"] },
    states: {
      Sort: router("Sort", { SORTED: { to: ["Each", "Named", "Order", "Parts", "Own", "Item"], condition: "Always" } }),
      Each: task(
        "Each",
        {
          AGREE: { to: "All", title: "Agree to it", description: "It goes on.", needs: "task:act", input: NOTE },
          REFUSE: { to: "All", comment: "none" },
          LATE: { to: "All", by: ["decision", "deadline"], comment: "required" },
          SHIFT: { to: "All", by: "signal" },
          MORE: { to: "Item", by: "signal" },
          AGAIN: { to: "All", by: "signal" },
          CALLED: { to: "All", by: "signal" },
        },
        { description: "Everybody votes." },
      ),
      Named: task("Named", { AGREE: "All" }),
      Order: service("Order", {
        ANSWERED: "All",
        UNANSWERED: { to: "All", by: "failure" },
        CALLED: { to: "All", by: "signal" },
        LATE: { to: "All", by: "deadline" },
      }),
      Parts: wait("Parts", { ENDED: { to: "All", by: "child" }, CALLED: "All", LATE: { to: "All", by: "deadline" } }),
      Own: ownWork("Own", { FINISH: ["All", "Two"] }),
      Item: task("Item", { AGREE: "All" }),
      All: task("All", { FINISH: "Done" }, { join: "all" }),
      Two: task("Two", { FINISH: "Failed" }, { join: 2 }),
      Done: terminal("DONE"),
      Failed: terminal("FAILED"),
    },
  }),

  start({ data }, actor) {
    if (data.name === "denied") throw denied("denied_code", "No, never.");
    if (data.name === "later") throw notNow("later_code", "No, not now.");
    if (data.name === "invalid")
      throw allInvalid([
        { field: "/data/name", code: "one", message: "First." },
        { field: "/data/other", code: "two", message: "Second." },
      ]);
    if (data.name === "fault") throw fault("fault_code", "It does not know.");
    if (!actor.groups.includes("authors") || !actor.permissions.includes("instance:start")) throw denied("no_author", "Only authors.");
  },

  guard(facts, event) {
    if (event.actor === undefined) throw denied("nobody", "Nobody acts.");
    if (event.state !== "Each") return;
    if (event.trigger === "AGREE" && event.input.note === undefined) event.requireComment("Say why.");
    if (event.trigger === "SHIFT") event.onlyRequester(facts);
    if (event.trigger === "MORE") event.notBy(["reviewer"]);
  },

  transition(facts, event) {
    const item = (key: string): Target<State> => ({ state: "Item", key, data: { label: key } });
    if (event.state === "Sort")
      return fork<State>(["Each", "Named", "Order", "Parts", "Own", item("one"), item("two")])
        .attribute("text", "words")
        .attribute("boolean", true)
        .attribute("decimal", "19.90")
        .attribute("float", 1.5)
        .attribute("timestamp", new Date(AT))
        .attribute("bytes", new Uint8Array([1, 2, 3]))
        .patch({ sorted: { deep: [1, "two", null] } })
        .note("sorted", "It is sorted.")
        .publish("sorted", { name: facts.data.name });
    if (event.state === "Own") return endBranch().publish("own", told(facts, event));
    if (event.state !== "Each") return undefined;
    if (event.trigger === "MORE") return spawn([item("three")]).note("more", "One more.", event.input);
    if (event.trigger === "AGAIN") return reoffer();
    if (event.trigger === "AGREE")
      return event.quorum("AGREE") === "reached" ? to<State>("All").publish("agreed", told(facts, event)) : stay().publish("open", told(facts, event));
    if (event.trigger !== "SHIFT") return undefined;
    const second = facts.active.find((one) => one.key === "two");
    if (second === undefined) throw fault("no_second", "There is no second item.");
    return stay().attribute("boolean", null).cancel(second).note("shifted", "It is shifted.", told(facts, event)).publish("shifted", told(facts, event));
  },

  assign({ config, initiator, entering }, state) {
    if (state === "Each")
      return toEachMember(config.group, {
        needed: { atLeast: [2, 3] },
        exclude: ["outsider"],
        fallback: "approvers",
        priority: 50,
        blind: true,
        deadlines: [
          { after: days(1), then: "remind", every: hours(12) },
          { working: { time: hours(8), calendar: config.calendar }, then: "escalate" },
          { at: new Date(AT), then: { fire: "LATE" } },
          { after: days(90), then: { cancel: "too late" } },
        ],
        subscriptions: [{ trigger: "CALLED", correlation: "each", buffered: true }],
      });
    if (state === "Named")
      return {
        offers: [
          { label: "first", to: [user("reviewer"), managerOf("author")], retain: true, deadlines: [{ after: minutes(30), then: "release", since: "claimed" }] },
          { label: "second", to: [group(config.group)], owner: "reviewer2", deadlines: [{ workingDays: { days: 2, calendar: config.calendar }, then: "remind" }] },
          { label: "third", to: [group(config.group)], allocation: "round-robin" },
          { label: "fourth", to: [group(config.group)], allocation: "least-loaded" },
        ],
        needed: { moreThan: [1, 2] },
      };
    if (state === "Item") return { offers: [{ label: JSON.parse(entering?.data ?? "{}").label, to: [user("reviewer")] }] };
    return state === "Own" ? toUser(initiator) : toGroup("approvers", { needed: 1 });
  },

  call: ({ data }) => ({
    service: "shop",
    request: { name: data.name },
    onReply: "ANSWERED",
    onFailure: "UNANSWERED",
    timeout: 5,
    retries: [60, 120],
    deadlines: [{ after: days(3), then: { fire: "LATE" } }],
    subscriptions: [{ trigger: "CALLED", correlation: "order" }],
  }),

  wait: ({ config, data }) => ({
    children: [
      { key: "document-approval", entityType: "document", entityId: "attached", data: { title: data.name }, onEnd: "ENDED" },
      { key: "document-approval", entityType: "document", entityId: "detached", data: { title: data.name }, detached: true },
    ],
    deadlines: [{ workingDays: { days: 7, calendar: config.calendar }, then: { fire: "LATE" } }],
    subscriptions: [{ trigger: "CALLED", correlation: "parts", buffered: true }],
  }),
});

/** The facts that flow logic gets about an event. */
const told = (facts: Facts<Types>, event: Event<Types>) => ({
  actor: event.actor?.id ?? null,
  comment: event.comment,
  correlation: event.signal?.correlation ?? null,
  deciders: facts.decidersOf("Each"),
  input: event.input,
  sorted: facts.pastStates("Sort").length,
  task: event.task?.label ?? null,
  undecided: event.undecided,
  votes: event.votes("AGREE"),
});
