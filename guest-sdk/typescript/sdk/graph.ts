// The graph of a flow as an author writes it, and its conversion to the definition of the contract.
//
// `States` lists every state of the flow, so a forgotten or misspelt state does not compile.

import type { AttributeType } from "./contract.ts";
import { fault } from "./refusal.ts";
import { PRIORITY_MAX, extensionList, json, noMore, orNull, whole } from "./strict.ts";

/** What may fire a trigger. */
export type FiredBy = "decision" | "signal" | "deadline" | "reply" | "failure" | "child" | "entry";
/** Personal data that a flow may read besides ids. */
export type Reads = "groups" | "permissions" | "comments" | "inputs";
export type CommentRule = "optional" | "required" | "none";
type Extensions = Record<string, unknown>;

/** A transition: the targets of its trigger, and its requirements. */
export interface Transition<S extends string> {
  /** One state, or those that `transition` chooses from. */
  to: S | S[];
  /** Replaces what fires triggers of this kind of state by default. */
  by?: FiredBy | FiredBy[];
  /** The permission (`subject:action`) that the transition needs. */
  needs?: string;
  /** A title for people, such as `Send back`. Without one, they see the trigger. */
  title?: string;
  description?: string;
  /** The condition of the transition or of its targets in words, for people. */
  condition?: string;
  /** JSON Schema 2020-12 of the input of a decision, signal or reply. */
  input?: object;
  /** Whether a decision has a comment. */
  comment?: CommentRule;
  extensions?: Extensions;
}

/** The transitions of a state, by their triggers. A transition may be just its target. */
export type Transitions<S extends string, T extends string> = { [Trigger in T]?: S | S[] | Transition<S> };

export interface StateOptions {
  /** What people do in the state, for display. */
  description?: string;
  /** The state is a join: it begins when all branches of the fork around it have arrived or ended, or as soon as this many have arrived. */
  join?: "all" | number;
  extensions?: Extensions;
}

type Kind = "task" | "service" | "router" | "wait" | "terminal";

/** A state; made by `task`, `ownWork`, `service`, `router`, `wait` and `terminal`. */
export interface State<S extends string = string, T extends string = string> {
  kind: Kind;
  /** The title for people. For a terminal state, the outcome. */
  title: string;
  ownWork: boolean;
  firedBy: FiredBy;
  on: Transitions<S, T>;
  options: StateOptions;
}

function state<S extends string, T extends string>(
  kind: Kind,
  firedBy: FiredBy,
  title: string,
  on: Transitions<S, T>,
  options: StateOptions,
): State<S, T> {
  return { kind, title, ownWork: false, firedBy, on, options };
}

/** A state in which people work: `assign` says who. Decisions leave it. */
export const task = <S extends string, T extends string>(title: string, on: Transitions<S, T>, options: StateOptions = {}) =>
  state("task", "decision", title, on, options);

/** A state in which the initiator works on their own request. Decisions leave it. */
export const ownWork = <S extends string, T extends string>(title: string, on: Transitions<S, T>, options: StateOptions = {}) => ({
  ...task(title, on, options),
  ownWork: true,
});

/** A state that calls a service: `call` says which. The reply leaves it. The transition on failure is `by: "failure"`. */
export const service = <S extends string, T extends string>(title: string, on: Transitions<S, T>, options: StateOptions = {}) =>
  state("service", "reply", title, on, options);

/** A state without work: the host calls `transition` at once. It has one trigger. */
export const router = <S extends string, T extends string>(title: string, on: Transitions<S, T>, options: StateOptions = {}) =>
  state("router", "entry", title, on, options);

/** A state that waits for something outside of it: `wait` says for what. Signals leave it. */
export const wait = <S extends string, T extends string>(title: string, on: Transitions<S, T>, options: StateOptions = {}) =>
  state("wait", "signal", title, on, options);

/** A state that ends the instance with this outcome. */
export const terminal = (outcome: string, options: StateOptions = {}) => state<never, never>("terminal", "entry", outcome, {}, options);

/** The graph of the whole flow. */
export interface Graph<S extends string = string, T extends string = string> {
  /** The flow's name for people; without it its key is shown. */
  title?: string;
  description?: string;
  /** The state in which every instance begins. */
  start: S;
  /** Groups whose members may start an instance. Empty: everybody who is signed in. */
  initiators?: string[];
  /** Every state of the flow. */
  states: { [Name in S]: State<S, T> };
  /** JSON Schema 2020-12 that an instance's data satisfies at all times. */
  schema?: object;
  /** Attributes that instances can be searched by. */
  attributes?: Record<string, AttributeType>;
  /** Template of an instance's title: `Invoice {/number} of {/supplier/name}`. */
  instanceTitle?: string;
  instanceSummary?: string;
  /** Names of priorities, each with the lowest number that it covers, in ascending order. */
  priorities?: Record<string, number>;
  /** Lists of states. A person may decide in only one state of each list. */
  separate?: S[][];
  /** Personal data that the flow reads besides ids. */
  reads?: Reads[];
  /** While an instance runs, no other instance of any definition about the same entity may run. */
  solePerEntity?: boolean;
  /** Only participants, their managers and the members of these groups see an instance; left out: everybody of the tenant. */
  visibleToParticipants?: string[];
  /**
   * Names of the tenant's directory that the config contains. They are looked up when a version is published. Deadlines use only
   * calendars of this list.
   */
  uses?: { groups?: string[]; people?: string[]; calendars?: string[]; services?: string[] };
  /** Extensions without which the flow does not work. */
  requires?: string[];
  extensions?: Extensions;
}

/** The definition as a record of the contract. Fills in all optional members. */
export function definition(graph: Graph) {
  const { title = "", description = "", start, initiators = [], states, schema, attributes = {}, ...more } = graph;
  const { instanceTitle, instanceSummary, priorities = {}, separate = [], reads = [], solePerEntity = false, ...last } = more;
  const { visibleToParticipants, uses = {}, requires = [], extensions, ...rest } = last;
  noMore("The graph", rest);
  const { groups = [], people = [], calendars = [], services = [], ...others } = uses;
  noMore("`uses`", others);
  const used = (tag: string, names: string[]) => names.map((val) => ({ tag, val }));
  const drawn = Object.entries(states);
  return {
    title,
    description,
    initial: start,
    initiators,
    states: drawn.map(([name, one]) => wireState(name, one)),
    transitions: drawn.flatMap(([name, one]) => Object.keys(one.on).map((trigger) => wireTransition(name, one, trigger))),
    dataSchema: json(schema),
    attributes: Object.entries(attributes).map(([name, kind]) => ({ name, kind })),
    instanceTitle: orNull(instanceTitle),
    instanceSummary: orNull(instanceSummary),
    priorities: Object.entries(priorities).map(([name, atLeast]) => ({ name, atLeast: whole(`The priority ${name}`, atLeast, PRIORITY_MAX) })),
    separate,
    reads: flags(["groups", "permissions", "comments", "inputs"], reads),
    solePerEntity,
    visibility: visibleToParticipants === undefined ? { tag: "tenant" } : { tag: "participants", val: visibleToParticipants },
    uses: [...used("group", groups), ...used("person", people), ...used("calendar", calendars), ...used("service", services)],
    requires,
    extensions: extensionList(extensions),
  };
}

function wireState(name: string, one: State) {
  const { description = "", join, extensions, ...rest } = one.options;
  noMore(`The state ${name}`, rest);
  return {
    name,
    title: one.title,
    description,
    kind: one.kind === "terminal" ? { tag: "terminal", val: one.title } : { tag: one.kind },
    join: join === undefined ? { tag: "none" } : join === "all" ? { tag: "all" } : { tag: "count", val: whole(`\`join\` of ${name}`, join) },
    ownWork: one.ownWork,
    extensions: extensionList(extensions),
  };
}

const FIRED_BY: FiredBy[] = ["decision", "signal", "deadline", "reply", "failure", "child", "entry"];

/** The transition of a state by a trigger, also if the author wrote only its target. */
function transitionOf(one: State, trigger: string): Transition<string> {
  const way = one.on[trigger];
  return typeof way === "string" || Array.isArray(way) ? { to: way } : (way ?? { to: [] });
}

function wireTransition(source: string, one: State, trigger: string) {
  const { to, by = one.firedBy, needs, title = "", description = "", condition = "", input, ...all } = transitionOf(one, trigger);
  const { comment = "optional", ...more } = all;
  const { extensions, ...rest } = more;
  noMore(`The transition ${trigger} of ${source}`, rest);
  return {
    source,
    trigger,
    targets: [to].flat(),
    by: flags(FIRED_BY, [by].flat()),
    permission: orNull(needs),
    title,
    description,
    condition,
    input: json(input),
    comment,
    extensions: extensionList(extensions),
  };
}

function flags<N extends string>(all: N[], set: N[]): Record<N, boolean> {
  const unknown = set.find((name) => !all.includes(name));
  if (unknown !== undefined) throw fault("unknown_flag", `There is no ${unknown}: it is one of ${all.join(", ")}.`);
  return Object.fromEntries(all.map((name) => [name, set.includes(name)])) as Record<N, boolean>;
}

/** The possible targets of the trigger. */
export function targetsOf(graph: Graph, source: string, trigger: string): string[] {
  const state = graph.states[source];
  return state === undefined ? [] : [transitionOf(state, trigger).to].flat();
}

/** The trigger of the state that this source may fire. */
export function firedIn(state: State, by: FiredBy): string | undefined {
  return Object.keys(state.on).find((trigger) => [transitionOf(state, trigger).by ?? state.firedBy].flat().includes(by));
}
