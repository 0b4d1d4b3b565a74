// The work in a state: the tasks and their deadlines, the request to a service, the signals and children of a wait.

import type { Duration, Fraction, Principal } from "./contract.ts";
import { fault } from "./refusal.ts";
import { PRIORITY_MAX, extensionList, instant, noMore, orNull, whole } from "./strict.ts";

type Extensions = Record<string, unknown>;

export const user = (id: string): Principal => ({ tag: "user", val: id });
export const group = (id: string): Principal => ({ tag: "group", val: id });
/** The manager of this person at the creation of the task. */
export const managerOf = (id: string): Principal => ({ tag: "manager-of", val: id });
/** This person, as long as they are a member of the group. */
export const member = (person: string, of: string): Principal => ({ tag: "member", val: { person, group: of } });

export const minutes = (count: number): Duration => count * 60;
export const hours = (count: number): Duration => minutes(count) * 60;
export const days = (count: number): Duration => hours(count) * 24;

/** When something has to be done, and what happens when it is not: exactly one of `after`, `working`, `workingDays` and `at`. */
export interface Deadline<T extends string = string> {
  /** Seconds, as by `hours(48)`. */
  after?: Duration;
  /** Seconds of working time by a calendar of the tenant. */
  working?: { time: Duration; calendar: string };
  /** The end of the last of this many working days. */
  workingDays?: { days: number; calendar: string };
  /** An instant. As a text, in the form of RFC 3339. */
  at?: Date | string;
  /** `escalate` calls the flow's `escalate`; `release` takes the task from its owner. */
  then: "remind" | "escalate" | "release" | { fire: T } | { cancel: string };
  /** When the time begins to count. `claimed` is for deadlines of an offer only. */
  since?: "created" | "claimed";
  /** Repeats the action after each of these pauses. */
  every?: Duration;
}

/** One task, or one for each member of a group. */
export interface Offer {
  /** Distinguishes the task from others of the same state. Without one: the title of the state. */
  label?: string;
  /** Who may claim it. */
  to?: Principal[];
  /** The owner from the start, without a claim. */
  owner?: string;
  /** Creates one such task for each member of this group. */
  eachMember?: string;
  /** A candidate who is familiar with the instance owns it from the start. */
  retain?: boolean;
  /** Whether the host gives the task to one of its candidates; `offered` by default. */
  allocation?: "offered" | "round-robin" | "least-loaded";
  deadlines?: Deadline[];
  extensions?: Extensions;
}

/** How many decisions with the same outcome a state needs: a number, or a fraction of its tasks. */
export type Needed = number | { atLeast: [number, number] } | { moreThan: [number, number] };

/** The assignment of a task state. */
export interface Assignment {
  offers: Offer[];
  /** 1 by default. */
  needed?: Needed;
  /** People who must not decide. */
  exclude?: string[];
  /** The group that gets the work when nobody else is left. */
  fallback?: string;
  /** A higher number is more urgent. */
  priority?: number;
  /** Deadlines of the state as a whole. */
  deadlines?: Deadline[];
  /** Signal subscriptions besides signals to the instance. */
  subscriptions?: Subscription[];
  /** Other people are not told the decisions until the state has ended. */
  blind?: boolean;
  extensions?: Extensions;
}

type Rest = Omit<Assignment, "offers">;
/** One task, which any member of the group may claim. */
export const toGroup = (id: string, rest: Rest = {}): Assignment => ({ offers: [{ to: [group(id)] }], ...rest });
/** One task, for this person. */
export const toUser = (id: string, rest: Rest = {}): Assignment => ({ offers: [{ to: [user(id)] }], ...rest });
/** One task, for the manager of this person. */
export const toManagerOf = (id: string, rest: Rest = {}): Assignment => ({ offers: [{ to: [managerOf(id)] }], ...rest });
/** A task for each member of the group, which only that member may do. */
export const toEachMember = (id: string, rest: Rest = {}): Assignment => ({ offers: [{ eachMember: id }], ...rest });
/** A task for each of these people. */
export const toEach = (people: string[], rest: Rest = {}): Assignment => ({ offers: people.map((id) => ({ label: id, to: [user(id)] })), ...rest });
/** No task: the host tries the fallbacks. */
export const toNobody = (rest: Rest = {}): Assignment => ({ offers: [], ...rest });

/** A subscription of a state to a signal, besides signals to the instance. */
export interface Subscription<T extends string = string> {
  /** A trigger that a signal fires in the state. */
  trigger: T;
  /** The correlation key by which signals find the state. */
  correlation?: string;
  /** Whether the state takes buffered signals, which came before it was entered. */
  buffered?: boolean;
}

/** The call of a service state. */
export interface ServiceCall<T extends string = string> {
  /** A service that the operator has configured by this name. */
  service: string;
  request: unknown;
  onReply: T;
  onFailure: T;
  /** The timeout of each attempt in seconds; 30 by default. */
  timeout?: Duration;
  /** Pauses before further attempts; three by default. */
  retries?: Duration[];
  deadlines?: Deadline<T>[];
  subscriptions?: Subscription<T>[];
}

/** The wait of a wait state. */
export interface Waiting<T extends string = string> {
  /** Signal subscriptions of the state. Without them, signals are sent to the instance. */
  subscriptions?: Subscription<T>[];
  /** Instances to start. Their ends fire triggers. */
  children?: Child<T>[];
  deadlines?: Deadline<T>[];
}

/** An instance to start. */
export interface Child<T extends string = string> {
  key: string;
  entityType: string;
  entityId: string;
  data?: unknown;
  /** The trigger that its end fires. */
  onEnd?: T;
  /** Whether it goes on when the state ends before it. Otherwise it is cancelled then. */
  detached?: boolean;
}

// ── Conversion to records of the contract, with all optional members filled in ──

export function wireAssignment(assignment: Assignment, title: string) {
  const { offers, needed = 1, exclude = [], fallback, priority = 0, deadlines = [], ...more } = assignment;
  const { subscriptions = [], blind = false, extensions, ...rest } = more;
  noMore("The assignment", rest);
  return {
    offers: offers.map((offer) => wireOffer(offer, title)),
    needed: wireNeeded(needed),
    exclude,
    fallback: orNull(fallback),
    priority: whole("A priority", priority, PRIORITY_MAX),
    deadlines: deadlines.map(wireDeadline),
    subscriptions: subscriptions.map(wireSubscription),
    blind,
    extensions: extensionList(extensions),
  };
}

function wireOffer(offer: Offer, title: string) {
  const { label = title, to = [], owner, eachMember, retain = false, allocation = "offered", deadlines = [], extensions, ...rest } = offer;
  noMore("The offer", rest);
  return {
    label,
    candidates: to,
    owner: orNull(owner),
    eachMember: orNull(eachMember),
    retain,
    allocation,
    deadlines: deadlines.map(wireDeadline),
    extensions: extensionList(extensions),
  };
}

function wireNeeded(needed: Needed) {
  if (typeof needed === "number") return { tag: "count", val: whole("`needed`", needed) };
  const part = ([numerator, denominator]: [number, number]): Fraction => ({
    numerator: whole("A numerator", numerator),
    denominator: whole("A denominator", denominator),
  });
  return "atLeast" in needed ? { tag: "at-least", val: part(needed.atLeast) } : { tag: "more-than", val: part(needed.moreThan) };
}

function wireDeadline(deadline: Deadline) {
  const { after, working, workingDays, at, then, since = "created", every, ...rest } = deadline;
  noMore("The deadline", rest);
  const when = [
    after !== undefined && { tag: "after", val: whole("`after`", after) },
    working && { tag: "working", val: { ...working, time: whole("A time of `working`", working.time) } },
    workingDays && { tag: "working-days", val: { ...workingDays, days: whole("A number of `workingDays`", workingDays.days) } },
    at !== undefined && { tag: "at", val: instant("`at`", at) },
  ].filter((one) => one !== false && one !== undefined);
  if (when.length !== 1) throw fault("deadline", "A deadline has exactly one of after, working, workingDays and at.");
  const repeat = orNull(every);
  return { when: when[0], since, repeat: repeat === null ? null : whole("`every`", repeat), action: wireAction(then) };
}

function wireAction(then: Deadline["then"]) {
  if (typeof then === "string") return { tag: then };
  return "fire" in then ? { tag: "fire", val: then.fire } : { tag: "cancel", val: then.cancel };
}

function wireSubscription(subscription: Subscription) {
  const { trigger, correlation, buffered = false, ...rest } = subscription;
  noMore("The subscription", rest);
  return { trigger, correlation: orNull(correlation), buffered };
}

export function wireCall(call: ServiceCall) {
  const { service, request, onReply, onFailure, timeout = 30, retries = [10, minutes(1), minutes(5)], ...more } = call;
  const { deadlines = [], subscriptions = [], ...rest } = more;
  noMore("The service call", rest);
  return {
    service,
    request: JSON.stringify(request),
    timeout: whole("A timeout", timeout),
    retries: retries.map((pause) => whole("A pause of `retries`", pause)),
    onReply,
    onFailure,
    deadlines: deadlines.map(wireDeadline),
    subscriptions: subscriptions.map(wireSubscription),
  };
}

export function wireWaiting(waiting: Waiting) {
  const { subscriptions = [], children = [], deadlines = [], ...rest } = waiting;
  noMore("The wait", rest);
  return { deadlines: deadlines.map(wireDeadline), subscriptions: subscriptions.map(wireSubscription), children: children.map(wireChild) };
}

function wireChild(child: Child) {
  const { key, entityType, entityId, data = {}, onEnd, detached = false, ...rest } = child;
  noMore("The child", rest);
  return { key, entityType, entityId, data: JSON.stringify(data), onEnd: orNull(onEnd), detached };
}
