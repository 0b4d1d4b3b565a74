"""The example consumers of both languages against a real broker."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.test_client import REVIEWER, URL, start
from wrkflw import connect
from wrkflw.api.api.events import list_events
from wrkflw.api.models import Events

KAFKA = os.environ["WRKFLW_TEST_KAFKA"]
TOPIC = "wrkflw.events"
IDLE = 6.0
CLIENTS = Path(__file__).parents[2]


def python(store: str, group: str, count: int) -> list[str]:
    program = [sys.executable, str(CLIENTS / "python/examples/consumer.py")]
    limited = ["--count", str(count)] if count else []
    return [*program, KAFKA, TOPIC, f"{URL}/schemas/", store, "--group", group, "--idle", str(IDLE), *limited]


def typescript(store: str, group: str, count: int) -> list[str]:
    program = ["node", str(CLIENTS / "typescript/build/examples/consumer.js")]
    return [*program, KAFKA, TOPIC, f"{URL}/schemas/", store, group, str(count), str(IDLE)]


def published(events: list[dict[str, Any]]) -> str:
    """A topic of these events, in one partition."""
    topic = f"own-{uuid4()}"
    servers: dict[str, str | int | float | bool] = {"bootstrap.servers": KAFKA}
    # Kept until the topic exists: a client that is collected ends its requests.
    admin = AdminClient(servers)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    producer = Producer(servers)
    for event in events:
        named = ("id", "type", "subject", "sequence", "dataschema")
        headers: list[tuple[str, str | bytes | None]] = [(f"ce_{name}", str(event[name])) for name in named]
        if event.get("replayed"):
            headers.append(("wrkflw-replayed", "true"))
        producer.produce(topic, json.dumps(event["data"]), headers=headers)
    if producer.flush(60) != 0:
        raise AssertionError("the broker did not take the records")
    return topic


def ran_on(topic: str, command: Callable[[str, str, int], list[str]]) -> subprocess.CompletedProcess[str]:
    """What a consumer with an empty store makes of this topic."""
    with tempfile.TemporaryDirectory() as folder:
        line = command(f"{folder}/store", f"{command.__name__}-{topic}", 0)
        line = [topic if part == TOPIC else part for part in line]
        return subprocess.run(line, capture_output=True, text=True, timeout=100)


def consumed(command: list[str]) -> list[tuple[str, str]]:
    """The instance and the id of each event that the consumer called new."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if ran.returncode != 0:
        raise AssertionError(f"{command}: {ran.stderr}")
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    return [(line["instance"], line["id"]) for line in lines]


def by_instance(events: list[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for instance, event in events:
        found.setdefault(instance, []).append(event)
    return found


def all_events() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    after = "earliest"
    while True:
        page = list_events.sync(client=connect(URL, REVIEWER), after=after, limit=100)
        assert isinstance(page, Events)
        found += [(str(event.subject), str(event.id)) for event in page.data]
        following = page.page.next_
        assert isinstance(following, str)
        if following == after:
            return found
        after = following


class Consumers(unittest.TestCase):
    def test_a_record_that_violates_its_schema_or_names_a_foreign_one_is_refused(self) -> None:
        of_host = f"{URL}/schemas/v1/dev.wrkflw.task.claimed.json"
        violated = r"ValidationError|task\.claimed\.json: data"
        for schema, reason in ((of_host, violated), ("http://127.0.0.1:1/schemas/x.json", "is not below")):
            named = {"id": uuid4(), "type": "dev.wrkflw.task.claimed", "subject": uuid4(), "sequence": 1}
            topic = published([{**named, "dataschema": schema, "data": {"instanceId": 7}}])
            for command in (python, typescript):
                with self.subTest(f"{command.__name__} {reason}"):
                    ran = ran_on(topic, command)
                    self.assertNotEqual(ran.returncode, 0)
                    self.assertEqual(ran.stdout, "")
                    self.assertRegex(ran.stderr, reason)

    def test_a_topic_may_begin_with_any_event_and_a_gap_is_reported(self) -> None:
        start("gaps")
        page = list_events.sync(client=connect(URL, REVIEWER), after="earliest", limit=1)
        assert isinstance(page, Events)
        event = page.data[0].to_dict()
        # The ninth event was lost, and comes by a replay.
        order = ((7, False), (8, False), (10, False), (9, True), (11, False))
        events = [{**event, "id": str(uuid4()), "sequence": f"{sequence:020}", "replayed": again} for sequence, again in order]
        topic = published(events)
        for command in (python, typescript):
            with self.subTest(command.__name__):
                ran = ran_on(topic, command)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                new = [json.loads(line)["id"] for line in ran.stdout.splitlines()]
                self.assertEqual(new, [event["id"] for event in events])
                self.assertEqual(re.findall(r"event (\d+) of", ran.stderr), ["10"])

    def test_every_event_is_processed_once_in_order_across_restarts_and_repetitions(self) -> None:
        for number in range(3):
            start(f"consumed-{number}")
        for command in (python, typescript):
            with self.subTest(command.__name__), tempfile.TemporaryDirectory() as folder:
                feed = all_events()
                store = f"{folder}/store"
                first = consumed(command(store, command.__name__, 5))
                self.assertEqual(len(first), 5)
                rest = consumed(command(store, command.__name__, 0))
                self.assertEqual(by_instance(first + rest), by_instance(feed))
                # A new group begins with the first record: all are duplicates but those of a new instance.
                start(f"consumed-by-{command.__name__}")
                new = [event for event in all_events() if event not in feed]
                self.assertEqual(consumed(command(store, f"{command.__name__}-again", 0)), new)
