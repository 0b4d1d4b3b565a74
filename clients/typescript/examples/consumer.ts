/**
 * A consumer of the event topic: node consumer.js BROKERS TOPIC SCHEMAS STORE [GROUP] [COUNT] [IDLE_SECONDS]
 *
 * It checks each event against its schema, drops duplicates by id, reports gaps in the sequence of an instance, and continues after
 * a restart from the offset that it committed. It prints one line for each new event. It ends after COUNT new events (0: no limit),
 * or when no record arrives for IDLE_SECONDS (0: never).
 */
import { closeSync, existsSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { Consumer, stringDeserializers } from "@platformatic/kafka";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";

const [brokers = "", topic = "", schemas = "", storePath = "", group = "example-typescript", count = "0", idle = "0"] =
  process.argv.slice(2);

interface Processed {
  id: string;
  instance: string;
  sequence: number;
  type: string;
  /** Whether an operator sent it again. Such an event comes after newer events of its instance. */
  replayed: boolean;
}

/** The validators of the schemas that events name. Schemas of other hosts than the configured one are refused. */
class Schemas {
  private readonly ajv = new Ajv2020({ strict: false, validateFormats: false });
  private readonly known = new Map<string, ValidateFunction>();

  constructor(private readonly base: string) {}

  async check(url: string, data: unknown): Promise<void> {
    if (!url.startsWith(this.base)) throw new Error(`the schema ${url} is not below ${this.base}`);
    let validate = this.known.get(url);
    if (!validate) {
      const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
      if (!response.ok) throw new Error(`${url} answers ${response.status}`);
      validate = this.ajv.compile((await response.json()) as object);
      this.known.set(url, validate);
    }
    if (!validate(data)) throw new Error(`${url}: ${this.ajv.errorsText(validate.errors)}`);
  }
}

/** A file with a line for each processed event. The line is both the effect and the record of it, so they cannot differ. */
class Store {
  private readonly ids = new Set<string>();
  private readonly sequences = new Map<string, number>();
  private readonly file: number;

  constructor(path: string) {
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    // A last line without a newline was not written completely. It is removed.
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    for (const line of whole.split("\n").filter((line) => line !== "")) this.note(JSON.parse(line) as Processed);
    this.file = openSync(path, "a");
    ftruncateSync(this.file, Buffer.byteLength(whole));
    fsyncSync(this.file);
  }

  private note({ id, instance, sequence, replayed }: Processed): void {
    this.ids.add(id);
    if (!replayed) this.sequences.set(instance, Math.max(sequence, this.sequences.get(instance) ?? 0));
  }

  /** Returns whether the event is new. */
  process(event: Processed): boolean {
    if (this.ids.has(event.id)) return false;
    const { instance, sequence, replayed } = event;
    // The first one need not be 1: the topic keeps events for a limited time.
    const last = this.sequences.get(instance) ?? sequence - 1;
    // An operator discarded the missing events, or they expired before they were read.
    if (!replayed && sequence !== last + 1)
      console.error(`event ${sequence} of ${instance} follows event ${last}: the rest is in /v1/instances/${instance}/history`);
    writeSync(this.file, `${JSON.stringify(event)}\n`);
    fsyncSync(this.file);
    this.note(event);
    return true;
  }

  close(): void {
    closeSync(this.file);
  }
}

const checked = new Schemas(schemas.endsWith("/") ? schemas : `${schemas}/`);
const store = new Store(storePath);
const consumer = new Consumer({
  groupId: group,
  clientId: "example",
  bootstrapBrokers: brokers.split(","),
  deserializers: stringDeserializers,
});
// The offset is committed after the event was processed, never before. A new group begins with the first event.
const stream = await consumer.consume({ topics: [topic], mode: "committed", fallbackMode: "earliest", autocommit: false });
let fresh = 0;
const end = () => void stream.close();
const watch = () => (Number(idle) > 0 ? setTimeout(end, Number(idle) * 1_000) : undefined);
let timer = watch();
for await (const record of stream) {
  clearTimeout(timer);
  const header = (name: string): string => {
    const value = record.headers.get(name);
    if (value === undefined) throw new Error(`a record has no header ${name}`);
    return value;
  };
  await checked.check(header("ce_dataschema"), JSON.parse(record.value));
  const event = {
    id: header("ce_id"),
    instance: header("ce_subject"),
    sequence: Number(header("ce_sequence")),
    type: header("ce_type"),
    replayed: record.headers.get("wrkflw-replayed") === "true",
  };
  if (store.process(event)) {
    fresh += 1;
    console.log(JSON.stringify(event));
  }
  await record.commit();
  if (Number(count) > 0 && fresh === Number(count)) break;
  timer = watch();
}
clearTimeout(timer);
store.close();
await consumer.close(true);
