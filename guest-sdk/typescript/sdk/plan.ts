// Plans: what follows from an event. The host checks a plan before anything is written.

import type { AttributeType, StateInstance } from "./contract.ts";
import { fault } from "./refusal.ts";
import { instant, json, noMore, orNull } from "./strict.ts";

/** A state to enter. With a key, it is entered for one item. */
export interface Target<S extends string = string> {
  state: S;
  /** With different keys, a plan may name a state several times. */
  key?: string | null;
  /** Data about the item for the state, at most 16 KiB. */
  data?: unknown;
}

/** A JSON Merge Patch (RFC 7396): `null` removes a member. */
export type Patch<D> = { [Member in keyof D]?: (D[Member] extends object ? Patch<D[Member]> | D[Member] : D[Member]) | null };
type Value = string | number | boolean | Uint8Array | Date;
type Next = { tag: "stay" | "reoffer" | "end-branch" } | { tag: "enter" | "spawn"; val: { name: string; key: string | null; data: string | null }[] };

/** The next states, and other changes; made by `to`, `fork`, `stay`, `reoffer`, `spawn` and `endBranch`. */
export class Plan<S extends string = string, D = unknown> {
  private readonly cancelled: string[] = [];
  private data: object | undefined;
  private readonly values: Record<string, Value | null> = {};
  private readonly published: { name: string; data: string }[] = [];
  private readonly notes: { code: string; message: string; detail: string | null }[] = [];

  constructor(private readonly next: Next) {}

  /** Change the instance's data. At most once per plan, because two merge patches cannot always be merged. */
  patch(change: Patch<D>): this {
    if (this.data !== undefined) throw fault("data", "The plan patches the data twice. Make one patch of both.");
    this.data = change;
    return this;
  }

  /** Set an attribute that the graph declares, or remove it by `null`. */
  attribute(name: string, value: Value | null): this {
    this.values[name] = value;
    return this;
  }

  /** Publish an event of type `custom.<name>`. */
  publish(name: string, data: unknown): this {
    this.published.push({ name, data: JSON.stringify(data) });
    return this;
  }

  /** Record why: a code of the flow's own, a sentence for people, and a detail for programs, at most 4 KiB. */
  note(code: string, message: string, detail?: unknown): this {
    this.notes.push({ code, message, detail: json(detail) });
    return this;
  }

  /** Cancel other branches. */
  cancel(...others: Pick<StateInstance, "id">[]): this {
    this.cancelled.push(...others.map((one) => one.id));
    return this;
  }

  /** The plan as a record of the contract. */
  wire(kinds: Record<string, AttributeType>) {
    return {
      next: this.next,
      cancel: this.cancelled,
      data: json(this.data),
      attributes: Object.entries(this.values).map(([name, value]) => ({ name, value: attributeValue(kinds, name, value) })),
      publish: this.published,
      notes: this.notes,
      extensions: [],
    };
  }
}

function attributeValue(kinds: Record<string, AttributeType>, name: string, value: Value | null) {
  const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
  if (kind === undefined) throw fault("unknown_attribute", `The graph declares no attribute ${name}.`);
  if (value === null) return null;
  if (kind === "timestamp" && typeof value === "string") return { tag: kind, val: instant(`The attribute ${name}`, value) };
  const plain = value instanceof Date ? instant(`The attribute ${name}`, value) : value;
  return { tag: kind, val: kind === "decimal" ? decimal(name, plain) : plain };
}

function decimal(name: string, value: Exclude<Value, Date>): string {
  const text = String(value);
  if (typeof value === "number" && !/^-?\d+(\.\d+)?$/.test(text))
    throw fault("no_decimal", `The attribute ${name} is a decimal, and JavaScript writes this number as ${text}: give a text such as "0.0000001".`);
  return text;
}

const targets = <S extends string>(given: (S | Target<S>)[]) =>
  given.map((one) => {
    const { state, key, data, ...rest } = typeof one === "string" ? ({ state: one } as Target<S>) : one;
    noMore("The target", rest);
    return { name: state, key: orNull(key ?? undefined), data: json(data) };
  });

/** Go to this state. */
export const to = <S extends string>(target: S | Target<S>): Plan<S> => fork([target]);
/** Go to several states at once, one branch each: different ones, or one per item. */
export const fork = <S extends string>(to: (S | Target<S>)[]): Plan<S> => new Plan({ tag: "enter", val: targets(to) });
/** This state goes on, and a branch begins beside it in each of these states. */
export const spawn = <S extends string>(beside: (S | Target<S>)[]): Plan<S> => new Plan({ tag: "spawn", val: targets(beside) });
/** Stay in the state: more decisions are needed. */
export const stay = (): Plan<never> => new Plan({ tag: "stay" });
/** Stay in the task state with other work: the host calls `assign` again. */
export const reoffer = (): Plan<never> => new Plan({ tag: "reoffer" });
/** End this branch; the others go on. */
export const endBranch = (): Plan<never> => new Plan({ tag: "end-branch" });
