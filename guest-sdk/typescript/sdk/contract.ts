// The records of the contract (`wit/types.wit`) as JavaScript objects: the facts for logic, and the answers for the host.
//
// `null` is an option without a value. A variant is `{ tag, val }`. Authors read the facts in this form. Their answers have
// shorter types (`work.ts`, `plan.ts`, `graph.ts`), which the SDK converts to these records.

/** Seconds. */
export type Duration = number;
/** An RFC 3339 instant in UTC: `2026-11-20T18:00:00.000Z`. */
export type Timestamp = string;
type Json = string;
type Extension = { name: string; value: Json };

// ── Facts ──

export interface Snapshot {
  now: Timestamp;
  config: Json;
  instance: Instance;
  active: StateInstance[];
  waiting: StateInstance[];
  past: PastState[];
  deciders: Decider[];
  omitted: Omitted;
  extensions: Extension[];
}

/** Who decided what, and where. */
export interface Decider {
  state: string;
  stateInstance: string;
  outcome: string;
  actor: string;
  onBehalfOf: string | null;
  decidedAt: Timestamp;
}

/** How much was left out of the facts. */
export interface Omitted {
  texts: number;
  states: number;
}

/** One run of a definition version, about one entity. */
export interface Instance {
  id: string;
  tenant: string;
  key: string;
  version: number;
  revision: number;
  entityType: string;
  entityId: string;
  /** Who started it. */
  initiator: string;
  /** The initiator, and those of the instances that this one restarts or is a child of. */
  requesters: string[];
  startedAt: Timestamp;
  predecessor: string | null;
  parent: string | null;
  /** The text of the data. `facts.data` is the parsed value. */
  data: Json;
  attributes: Attribute[];
}

/** One visit of an instance to a state. */
export interface StateInstance {
  id: string;
  name: string;
  enteredAt: Timestamp;
  dueAt: Timestamp | null;
  predecessors: string[];
  /** The key of the item that the plan gave. */
  key: string | null;
  /** The data about the item that the plan gave. */
  data: Json | null;
  /** How many decisions with the same outcome it needs. */
  needed: number;
  tasks: Task[];
  children: ChildStatus[];
}

export type TaskStatus = "pending" | "claimed" | "completed" | "cancelled";

/** A work item of one state instance. */
export interface Task {
  id: string;
  label: string;
  status: TaskStatus;
  candidates: Principal[];
  owner: string | null;
  createdAt: Timestamp;
  claimedAt: Timestamp | null;
  dueAt: Timestamp | null;
  suspended: Suspension | null;
  decision: Decision | null;
}

/** Who suspended a task. */
export interface Suspension {
  by: string;
  at: Timestamp;
  until: Timestamp | null;
}

/** What somebody decided on a task. */
export interface Decision {
  outcome: string;
  actor: string;
  onBehalfOf: string | null;
  /** `null` unless the graph reads `comments`. */
  comment: string | null;
  /** `{}` unless the graph reads `inputs`. */
  input: Json;
  omitted: boolean;
  decidedAt: Timestamp;
}

/** An instance that a wait state started. */
export interface ChildStatus {
  id: string;
  key: string;
  entityType: string;
  entityId: string;
  outcome: string | null;
  version: number | null;
}

/** A state instance that has ended. */
export interface PastState {
  id: string;
  name: string;
  enteredAt: Timestamp;
  leftAt: Timestamp;
  leftTrigger: string;
  actor: string | null;
  predecessors: string[];
  key: string | null;
  needed: number;
  tasks: Task[];
  children: ChildStatus[];
}

/** The person or system that acts. */
export interface Actor {
  id: string;
  /** Empty unless the graph reads `groups`. */
  groups: string[];
  /** Empty unless the graph reads `permissions`. */
  permissions: string[];
  onBehalfOf: string | null;
}

export interface EventRecord {
  stateInstance: string;
  trigger: string;
  source: EventSource;
  input: Json;
}

/** The origin of an event. */
export type EventSource =
  | { tag: "task"; val: TaskDecision }
  | { tag: "signal"; val: ReceivedSignal }
  | { tag: "service"; val: ServiceAnswer }
  | { tag: "deadline"; val: PassedDeadline }
  | { tag: "child"; val: EndedChild }
  | { tag: "entry" };

/** A signal that the instance has received. */
export interface ReceivedSignal {
  actor: Actor;
  id: string;
  correlation: string | null;
  receivedAt: Timestamp;
}

/** The result of a service call. */
export interface ServiceAnswer {
  service: string;
  attempts: number;
  error: string | null;
  model: string | null;
  modelVersion: string | null;
}

/** A deadline that has passed. */
export interface PassedDeadline {
  task: string | null;
  dueAt: Timestamp;
  count: number;
}

/** A child instance that has ended. */
export interface EndedChild {
  id: string;
  key: string;
  entityType: string;
  entityId: string;
  version: number | null;
  outcome: string;
  reason: string | null;
}

/** A proposed decision. */
export interface TaskDecision {
  task: string;
  actor: Actor;
  comment: string | null;
}

// ── Answers ──

/** A stable code for programs, and a sentence for people. */
export interface Reason {
  code: string;
  message: string;
}

/** A violation of a field, named by a JSON Pointer into the request. */
export interface Violation {
  field: string;
  code: string;
  message: string;
}

export type WireRefusal =
  | { tag: "denied" | "not-now" | "fault"; val: Reason }
  | { tag: "invalid"; val: Violation[] };

export interface Attribute {
  name: string;
  value: AttributeValue | null;
}

export type AttributeType = "text" | "boolean" | "decimal" | "float" | "timestamp" | "bytes";
export type AttributeValue = { tag: AttributeType; val: string | boolean | number | Uint8Array };

/** To whom work is offered. */
export type Principal =
  | { tag: "user"; val: string }
  | { tag: "group"; val: string }
  | { tag: "manager-of"; val: string }
  | { tag: "member"; val: Member };

/** A person as a member of a group. */
export interface Member {
  person: string;
  group: string;
}

/** An exact fraction. */
export interface Fraction {
  numerator: number;
  denominator: number;
}

/** A state that needs work. */
export interface Entry {
  stateInstance: string;
  state: string;
  cause: EntryCause;
}

/** Why it needs work. */
export type EntryCause = { tag: "entered" | "migrated" | "reoffered" } | { tag: "overdue"; val: Overdue };

/** The overdue task, or the overdue state as a whole. */
export interface Overdue {
  task: string | null;
  count: number;
}
