"""A consumer of the event topic: python consumer.py BROKERS TOPIC SCHEMAS STORE

It checks each event against its schema, drops duplicates by id, reports gaps in the sequence of an instance, and continues after a
restart from the offset that it committed. It prints one line for each new event.
"""

import argparse
import json
import sqlite3
import sys
import time
import urllib.request
from typing import Any

from confluent_kafka import Consumer, KafkaException
from jsonschema import Draft202012Validator


class Schemas:
    """The validators of the schemas that events name. Schemas of other hosts than the configured one are refused."""

    def __init__(self, base: str) -> None:
        self.base = base.rstrip("/") + "/"
        self.known: dict[str, Draft202012Validator] = {}

    def check(self, url: str, data: Any) -> None:
        if not url.startswith(self.base):
            raise ValueError(f"the schema {url} is not below {self.base}")
        if url not in self.known:
            with urllib.request.urlopen(url, timeout=10) as response:
                self.known[url] = Draft202012Validator(json.load(response))
        self.known[url].validate(data)


class Store:
    """What was processed. The effect of an event and the fact that it was processed are written in one transaction."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path)
        self.db.execute("create table if not exists event (id text primary key, type text, data text)")
        self.db.execute("create table if not exists instance (id text primary key, sequence integer)")

    def process(self, headers: dict[str, str], data: Any) -> bool:
        """Returns whether the event is new."""
        instance, sequence = headers["ce_subject"], int(headers["ce_sequence"])
        with self.db:
            event = (headers["ce_id"], headers["ce_type"], json.dumps(data))
            if self.db.execute("insert into event values (?, ?, ?) on conflict do nothing", event).rowcount == 0:
                return False
            if headers.get("wrkflw-replayed") == "true":
                # It comes behind newer events of its instance.
                return True
            found = self.db.execute("select sequence from instance where id = ?", (instance,)).fetchone()
            # The first one need not be 1: the topic keeps events for a limited time.
            last = found[0] if found else sequence - 1
            if sequence != last + 1:
                # An operator discarded what is missing, or it expired before it was read.
                history = f"/v1/instances/{instance}/history"
                print(f"event {sequence} of {instance} follows event {last}: the rest is in {history}", file=sys.stderr, flush=True)
            self.db.execute("insert or replace into instance values (?, ?)", (instance, max(sequence, last)))
        return True


def main() -> None:
    arguments = argparse.ArgumentParser()
    for name in ("brokers", "topic", "schemas", "store"):
        arguments.add_argument(name)
    arguments.add_argument("--group", default="example-python")
    arguments.add_argument("--count", type=int, help="end after so many new events")
    arguments.add_argument("--idle", type=float, help="end when nothing came for so many seconds")
    options = arguments.parse_args()

    schemas, store = Schemas(options.schemas), Store(options.store)
    consumer = Consumer(
        {
            "bootstrap.servers": options.brokers,
            "group.id": options.group,
            # For a new group. Later it continues from the committed offset.
            "auto.offset.reset": "earliest",
            # The offset is committed after the event was processed, never before.
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([options.topic])
    new, last = 0, time.monotonic()
    while options.count is None or new < options.count:
        record = consumer.poll(0.5)
        if record is None:
            if options.idle is not None and time.monotonic() - last > options.idle:
                break
            continue
        if record.error():
            raise KafkaException(record.error())
        last = time.monotonic()
        named = record.headers()
        pairs = named if isinstance(named, list) else []
        headers = {name: value.decode() for name, value in pairs if isinstance(value, bytes)}
        data = json.loads(record.value() or b"null")
        schemas.check(headers["ce_dataschema"], data)
        if store.process(headers, data):
            new += 1
            line = {"id": headers["ce_id"], "instance": headers["ce_subject"], "type": headers["ce_type"]}
            print(json.dumps(line), flush=True)
        consumer.commit(message=record, asynchronous=False)
    consumer.close()


if __name__ == "__main__":
    main()
