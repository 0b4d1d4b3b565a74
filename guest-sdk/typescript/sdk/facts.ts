// The input of a flow: the facts of one moment and the event, in the author's own types.

import type { Actor, Attribute, Decider, EndedChild, EventRecord, EventSource, Instance, Omitted, PassedDeadline } from "./contract.ts";
import type { PastState, ReceivedSignal, ServiceAnswer, Snapshot, StateInstance, Task, Timestamp } from "./contract.ts";
import type { Types } from "./flow.ts";
import { denied, fault, invalid } from "./refusal.ts";
import type { Needed } from "./work.ts";

/** What is known about an instance at one moment. `assign`, `call` and `wait` see all states as entered. */
export class Facts<F extends Types = Types> {
  /** The time of the command. There is no other clock: `new Date(facts.now)`. */
  readonly now: Timestamp;
  readonly config: F["config"];
  /** The instance's data. `JSON.parse` rounds numbers of more than 15 digits: keep amounts as strings. */
  readonly data: F["data"];
  readonly instance: Instance;
  /** The active states; more than one after a fork. */
  readonly active: StateInstance[];
  /** Joins that some branches have reached and others have not. */
  readonly waiting: StateInstance[];
  /** The newest states that the instance has left, oldest first. Very long texts are left out. */
  readonly past: PastState[];
  /** Every decision of the instance. Always complete. */
  readonly deciders: Decider[];
  /** What was left out of `past`. */
  readonly omitted: Omitted;

  constructor(
    snapshot: Snapshot,
    config: F["config"],
    /** The state instance that needs work; only in `assign`, `escalate`, `call` and `wait`. */
    readonly entering?: StateInstance,
  ) {
    this.now = snapshot.now;
    this.config = config;
    this.data = JSON.parse(snapshot.instance.data);
    this.instance = snapshot.instance;
    this.active = snapshot.active;
    this.waiting = snapshot.waiting;
    this.past = snapshot.past;
    this.deciders = snapshot.deciders;
    this.omitted = snapshot.omitted;
  }

  /** Who started the instance. */
  get initiator(): string {
    return this.instance.initiator;
  }

  /** Whether this person requested the instance, its predecessor or its parent. */
  isRequester(person: string): boolean {
    return this.instance.requesters.includes(person);
  }

  /** The value of an attribute. A decimal and a timestamp are texts. */
  attribute(name: string): string | boolean | number | Uint8Array | undefined {
    return this.instance.attributes.find((one: Attribute) => one.name === name)?.value?.val;
  }

  /** The active state instance in a state. */
  stateInstance(state: F["state"]): StateInstance | undefined {
    return this.active.find((one) => one.name === state);
  }

  /** The ended instances of a state, oldest first. */
  pastStates(state: F["state"]): PastState[] {
    return this.past.filter((one) => one.name === state);
  }

  /** Everybody who decided in this state, or on whose behalf somebody did, oldest first. Complete, unlike `past`. */
  decidersOf(state: F["state"]): string[] {
    const there = this.deciders.filter((one) => one.state === state);
    return there.flatMap((one) => (one.onBehalfOf === null ? [one.actor] : [one.actor, one.onBehalfOf]));
  }
}

/** Whether the result of a vote is certain: enough votes for it, too few left, or open. */
export type Quorum = "reached" | "impossible" | "open";

/** An event that has happened in a state, or that somebody proposes. */
export class Event<F extends Types = Types> {
  readonly state: F["state"];
  readonly trigger: F["trigger"];
  readonly source: EventSource;
  /** The state instance before the event. */
  readonly stateInstance: StateInstance;
  /** The form of a decision, the payload of a signal, the reply of a service or the data of a child. */
  readonly input: any;

  constructor(event: EventRecord, facts: Facts<F>) {
    const here = facts.active.find((one) => one.id === event.stateInstance);
    if (here === undefined) throw fault("unknown_state_instance", `No active state has the id ${event.stateInstance}.`);
    this.state = here.name;
    this.trigger = event.trigger;
    this.source = event.source;
    this.stateInstance = here;
    this.input = JSON.parse(event.input);
  }

  /** The person who decides or sends the signal, if one does. */
  get actor(): Actor | undefined {
    const { source } = this;
    return source.tag === "task" || source.tag === "signal" ? source.val.actor : undefined;
  }

  /** The trimmed comment of the decision; empty if there is none. */
  get comment(): string {
    return this.source.tag === "task" ? (this.source.val.comment ?? "").trim() : "";
  }

  /** The task being decided. */
  get task(): Task | undefined {
    const { source } = this;
    return source.tag === "task" ? this.stateInstance.tasks.find((one) => one.id === source.val.task) : undefined;
  }

  get signal(): ReceivedSignal | undefined {
    return this.source.tag === "signal" ? this.source.val : undefined;
  }

  /** The deadline that passed. */
  get deadline(): PassedDeadline | undefined {
    return this.source.tag === "deadline" ? this.source.val : undefined;
  }

  /** The result of the service call. */
  get service(): ServiceAnswer | undefined {
    return this.source.tag === "service" ? this.source.val : undefined;
  }

  /** The child instance that ended. */
  get child(): EndedChild | undefined {
    return this.source.tag === "child" ? this.source.val : undefined;
  }

  /** Refuses a decision without a comment, where that depends on data; otherwise the graph says `comment: "required"`. */
  requireComment(message: string): void {
    if (this.comment === "") throw invalid("/comment", "required", message);
  }

  /** Refuses everybody but requesters, as for a withdrawal by a signal. Allows an event without a person. */
  onlyRequester(facts: Facts<F>): void {
    if (this.actor && !facts.isRequester(this.actor.id)) throw denied("not_requester", "Only those whose request it is may do this.");
  }

  /** Refuses these people and anyone who acts for them, such as those who decided elsewhere. */
  notBy(people: string[]): void {
    const { actor } = this;
    if (actor && [actor.id, actor.onBehalfOf].some((one) => one !== null && people.includes(one)))
      throw denied("four_eyes", "You have decided on this elsewhere.");
  }

  /** Decisions for this trigger in the state instance, including the one being cast. */
  votes(trigger: F["trigger"]): number {
    const cast = this.source.tag === "task" && this.trigger === trigger ? 1 : 0;
    return cast + this.stateInstance.tasks.filter((one) => one.decision?.outcome === trigger).length;
  }

  /** Tasks that are still undecided once this decision is cast. */
  get undecided(): number {
    const { task } = this;
    return this.stateInstance.tasks.filter((one) => isOpen(one) && one.id !== task?.id).length;
  }

  /** Whether enough people decide for this trigger: as many as the assignment needs, or `needed` if it is given, as for a veto. */
  quorum(trigger: F["trigger"], needed: Needed = this.stateInstance.needed): Quorum {
    const tasks = this.stateInstance.tasks.filter((one) => one.status !== "cancelled").length;
    const [votes, enough] = [this.votes(trigger), countOf(needed, tasks)];
    if (votes >= enough) return "reached";
    return votes + this.undecided < enough ? "impossible" : "open";
  }
}

/** Whether the task is neither decided nor cancelled. */
export const isOpen = (task: Task): boolean => task.status === "pending" || task.status === "claimed";

/** The number of decisions needed out of this many tasks, at least one. */
export function countOf(needed: Needed, tasks: number): number {
  if (typeof needed === "number") return Math.max(needed, 1);
  if ("atLeast" in needed) return Math.max(Math.ceil((tasks * needed.atLeast[0]) / needed.atLeast[1]), 1);
  return Math.floor((tasks * needed.moreThan[0]) / needed.moreThan[1]) + 1;
}
