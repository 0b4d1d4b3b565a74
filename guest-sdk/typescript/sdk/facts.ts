// What a flow decides on: the facts of one moment and the event, with the author's own types in them.

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
  /** States being worked on; more than one after a fork. */
  readonly active: StateInstance[];
  /** Joins that some branches have reached and others not yet. */
  readonly waiting: StateInstance[];
  /** States already left, oldest first: the newest of them, without very long texts. */
  readonly past: PastState[];
  /** Every decision of the instance, never cut. */
  readonly deciders: Decider[];
  /** What was left out of `past`. */
  readonly omitted: Omitted;

  constructor(
    snapshot: Snapshot,
    config: F["config"],
    /** The state instance that work is asked for; only in `assign`, `escalate`, `call` and `wait`. */
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

  /** The visits to a state that have ended, oldest first. */
  pastStates(state: F["state"]): PastState[] {
    return this.past.filter((one) => one.name === state);
  }

  /** Everybody who decided in this state, or on whose behalf somebody did, oldest first. Complete, unlike `past`. */
  decidersOf(state: F["state"]): string[] {
    const there = this.deciders.filter((one) => one.state === state);
    return there.flatMap((one) => (one.onBehalfOf === null ? [one.actor] : [one.actor, one.onBehalfOf]));
  }
}

/** Whether a vote is certain: enough are for it, too few are left, or it depends on those that are left. */
export type Quorum = "reached" | "impossible" | "open";

/** What happened in a state, or is proposed. */
export class Event<F extends Types = Types> {
  readonly state: F["state"];
  readonly trigger: F["trigger"];
  readonly source: EventSource;
  /** The state instance before the event. */
  readonly stateInstance: StateInstance;
  /** What the decider filled in, the signal's payload, the service's reply or the child's data. */
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

  /** Who decides or sends the signal, if a person acts. */
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

  /** What became of the service call. */
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

  /** Refuses whoever did not request the instance, as for a withdrawal by a signal. Where no person acts, it is allowed. */
  onlyRequester(facts: Facts<F>): void {
    if (this.actor && !facts.isRequester(this.actor.id)) throw denied("not_requester", "Only those whose request it is may do this.");
  }

  /** Refuses these people and whoever acts for them, such as those who decided elsewhere. */
  notBy(people: string[]): void {
    const { actor } = this;
    if (actor && [actor.id, actor.onBehalfOf].some((one) => one !== null && people.includes(one)))
      throw denied("four_eyes", "You have decided on this elsewhere.");
  }

  /** Decisions for this trigger in the state instance, the one being cast included. */
  votes(trigger: F["trigger"]): number {
    const cast = this.source.tag === "task" && this.trigger === trigger ? 1 : 0;
    return cast + this.stateInstance.tasks.filter((one) => one.decision?.outcome === trigger).length;
  }

  /** Tasks that are still undecided once this decision is cast. */
  get undecided(): number {
    const { task } = this;
    return this.stateInstance.tasks.filter((one) => isOpen(one) && one.id !== task?.id).length;
  }

  /** Whether enough people decide for this trigger: as many as the assignment needs, or as `needed` says, as for a veto. */
  quorum(trigger: F["trigger"], needed: Needed = this.stateInstance.needed): Quorum {
    const tasks = this.stateInstance.tasks.filter((one) => one.status !== "cancelled").length;
    const [votes, enough] = [this.votes(trigger), countOf(needed, tasks)];
    if (votes >= enough) return "reached";
    return votes + this.undecided < enough ? "impossible" : "open";
  }
}

/** Neither decided nor cancelled. */
export const isOpen = (task: Task): boolean => task.status === "pending" || task.status === "claimed";

/** How many of so many tasks they are, at least one. */
export function countOf(needed: Needed, tasks: number): number {
  if (typeof needed === "number") return Math.max(needed, 1);
  if ("atLeast" in needed) return Math.max(Math.ceil((tasks * needed.atLeast[0]) / needed.atLeast[1]), 1);
  return Math.floor((tasks * needed.moreThan[0]) / needed.moreThan[1]) + 1;
}
