// A flow: the functions that the host calls.

import type { Actor, Entry, EventRecord, Overdue, Principal, Snapshot, Task, Violation } from "./contract.ts";
import { readConfig } from "./config.ts";
import { Event, Facts, isOpen } from "./facts.ts";
import { definition, firedIn, type Graph, type State, targetsOf } from "./graph.ts";
import { type Plan, to } from "./plan.ts";
import { Refusal, described, fault, refusalOf } from "./refusal.ts";
import { type Assignment, type Offer, type ServiceCall, type Waiting, managerOf, toNobody, toUser, wireAssignment, wireCall, wireWaiting } from "./work.ts";

/** The types of a flow: `flow<{ config: Config; data: Data; state: State; trigger: Trigger }>({ ... })`. */
export interface Types {
  config: any;
  data: any;
  state: string;
  trigger: string;
}

/** The logic of a flow. Every function is pure: no clock, no randomness, no memory between calls. Every function may throw a refusal. */
export interface Flow<F extends Types = Types> {
  /** The settings with their defaults. Unknown settings, and values of another type, are refused. */
  config: F["config"];
  /** The graph for these settings. */
  graph(config: F["config"]): Graph<F["state"], F["trigger"]>;
  /** What is wrong with the settings beyond their types. */
  check?(config: F["config"]): Violation[];
  /** May this person start an instance with this data? The host has checked initiators and schema. */
  start?(facts: Facts<F>, actor: Actor): void;
  /** May this decision or signal happen now? The host has checked who owns the task. Called before `transition`, in the same host call. */
  guard?(facts: Facts<F>, event: Event<F>): void;
  /** What follows? Without it, or without an answer: the only state that the trigger leads to. */
  transition?(facts: Facts<F>, event: Event<F>): Plan<F["state"], F["data"]> | Plan<F["state"]> | undefined;
  /** Who works on the task state? Without this function: the initiator in states of own work, nobody elsewhere. */
  assign?(facts: Facts<F>, state: F["state"]): Assignment;
  /** Who gets the overdue work? Without this function: the managers of those who had it. */
  escalate?(facts: Facts<F>, state: F["state"], overdue: Overdue): Assignment;
  /** Which service does the service state call? Without this function: the service with the state's name, with the instance's data. */
  call?(facts: Facts<F>, state: F["state"]): ServiceCall<F["trigger"]>;
  /** What does the wait state wait for? Without this function: its signals. */
  wait?(facts: Facts<F>, state: F["state"]): Waiting<F["trigger"]>;
}

/** What a component exports: `export const logic = flow({ ... })`. */
export function flow<F extends Types = Types>(logic: Flow<F>) {
  const graphFor = (config: F["config"]) => logic.graph(config) as Graph;
  const read = (snapshot: Snapshot) => new Facts<F>(snapshot, readConfig(logic.config, snapshot.config));
  return {
    describe: (config: string) =>
      throwing(violationsOf, () => {
        const settings = readConfig(logic.config, config);
        const violations = logic.check?.(settings) ?? [];
        if (violations.length > 0) throw new Refusal({ tag: "invalid", val: violations });
        return definition(graphFor(settings));
      }),

    start: (snapshot: Snapshot, by: Actor) => throwing(refusalOf, () => logic.start?.(read(snapshot), by)),

    transition: (snapshot: Snapshot, record: EventRecord) =>
      throwing(refusalOf, () => {
        const facts = read(snapshot);
        const event = new Event(record, facts);
        if (event.actor !== undefined) logic.guard?.(facts, event);
        const graph = graphFor(facts.config);
        const plan = logic.transition?.(facts, event) ?? along(graph, event);
        return plan.wire(graph.attributes ?? {});
      }),

    enter: (snapshot: Snapshot, entries: Entry[]) =>
      throwing(refusalOf, () => {
        const config = readConfig(logic.config, snapshot.config);
        const graph = graphFor(config);
        return entries.map((entry) => {
          const entering = snapshot.active.find((one) => one.id === entry.stateInstance);
          return work(logic, graph, new Facts<F>(snapshot, config, entering), entry);
        });
      }),
  };
}

/** Converts thrown values to the errors of the contract. */
function throwing<T>(wire: (thrown: unknown) => unknown, answer: () => T): T {
  try {
    return answer();
  } catch (thrown) {
    throw wire(thrown);
  }
}

function violationsOf(thrown: unknown): Violation[] {
  if (!(thrown instanceof Refusal)) return [{ field: "", code: "exception", message: described(thrown) }];
  const { wire } = thrown;
  return wire.tag === "invalid" ? wire.val : [{ field: "", ...wire.val }];
}

function along<F extends Types>(graph: Graph, event: Event<F>): Plan<F["state"]> {
  const [target, ...more] = targetsOf(graph, event.state, event.trigger);
  if (target === undefined || more.length > 0) throw fault("no_single_target", `${event.trigger} in ${event.state} leads to no single state.`);
  return to(target);
}

function work<F extends Types>(logic: Flow<F>, graph: Graph, facts: Facts<F>, entry: Entry) {
  const name = entry.state;
  const state = graph.states[name];
  if (state === undefined) throw fault("unknown_state", `This flow knows no state ${name}.`);
  const { title } = state;
  if (state.kind === "service") {
    const call = logic.call && returned("call", logic.call(facts, name));
    return { tag: "service", val: call === undefined ? called(state, facts, name) : wireCall(call) };
  }
  if (state.kind === "wait") return { tag: "wait", val: wireWaiting(logic.wait ? returned("wait", logic.wait(facts, name)) : {}) };
  if (state.kind !== "task") throw fault("no_work", `There is no work in ${name}.`);
  const otherwise = () => (state.ownWork ? toUser(facts.initiator) : toNobody());
  const assigned = () => (logic.assign ? returned("assign", logic.assign(facts, name)) : otherwise());
  if (entry.cause.tag !== "overdue") return { tag: "task", val: wireAssignment(assigned(), title) };
  const overdue = entry.cause.val;
  const answer = logic.escalate
    ? returned("escalate", logic.escalate(facts, name, overdue))
    : upwards(facts, assigned(), overdue, title, state.ownWork);
  return { tag: "task", val: wireAssignment(answer, title) };
}

/** Checks that the flow returned an answer. In JavaScript, a forgotten `return` would otherwise select the default. */
function returned<A>(name: string, answer: A | null | undefined): A {
  if (answer === undefined || answer === null) throw fault("no_answer", `\`${name}\` returns nothing.`);
  return answer;
}

/** Calls the service with the state's name, with the instance's data. */
function called<F extends Types>(state: State, facts: Facts<F>, name: string) {
  const call = wireCall({ service: name, request: null, onReply: firedIn(state, "reply") ?? "", onFailure: firedIn(state, "failure") ?? "" });
  // Passes the text, because `JSON.parse` may have rounded its numbers.
  return { ...call, request: facts.instance.data };
}

/** The overdue work goes to the managers of those who had it. Own work, and work of groups, is offered as before. */
function upwards<F extends Types>(facts: Facts<F>, again: Assignment, overdue: Overdue, title: string, ownWork: boolean): Assignment {
  const tasks = (facts.entering?.tasks ?? []).filter((task) => (overdue.task === null ? isOpen(task) : task.id === overdue.task));
  const offers = tasks.map((task) => {
    const before = offerOf(task, facts.entering?.tasks ?? [], again.offers, title) ?? { label: task.label, to: task.candidates };
    const people = task.owner === null ? task.candidates.flatMap(personOf) : [task.owner];
    if (ownWork || people.length === 0) return before;
    const { owner: _owner, eachMember: _each, ...kept } = before;
    return { ...kept, to: people.map(managerOf) };
  });
  return { ...again, offers };
}

/**
 * The offer that created a task: the only one with its label. Among several, the one with the same candidates, or else the one at the same
 * position. A task that went to a manager has other candidates than its offer.
 */
function offerOf(task: Task, all: Task[], offers: Offer[], title: string): Offer | undefined {
  const labelled = offers.filter((offer) => (offer.label ?? title) === task.label);
  if (labelled.length === 1) return labelled[0];
  const fitting = labelled.find((offer) => fits(offer, task.candidates));
  if (fitting || labelled.some((offer) => offer.eachMember)) return fitting;
  return labelled[place(task, all.filter((one) => one.label === task.label), labelled.length)];
}

/**
 * The position of the task's offer among the offers with its label; -1 if it has none. Tasks have the order of their offers. Later tasks
 * replace the cancelled ones in the same order.
 */
function place(task: Task, labelled: Task[], offers: number): number {
  const gone = labelled.flatMap((one, at) => (one.status === "cancelled" ? [at] : []));
  let at = labelled.findIndex((one) => one.id === task.id);
  while (at >= offers) {
    const before = gone[at - offers];
    at = before !== undefined && before < at ? before : -1;
  }
  return at;
}

/** Whether the offer would create a task with these candidates. */
function fits({ to = [], eachMember }: Offer, candidates: Principal[]): boolean {
  const [only] = candidates;
  if (eachMember) return candidates.length === 1 && only?.tag === "member" && only.val.group === eachMember;
  return to.length === candidates.length && to.every((one, index) => same(one, candidates[index]));
}

function same(one: Principal, other: Principal | undefined): boolean {
  if (one.tag === "member") return other?.tag === "member" && one.val.person === other.val.person && one.val.group === other.val.group;
  return one.tag === other?.tag && one.val === other.val;
}

function personOf(candidate: Principal): string[] {
  if (candidate.tag === "user") return [candidate.val];
  return candidate.tag === "member" ? [candidate.val.person] : [];
}
