"""The client against a running host: WRKFLW_TEST_URL, and tokens in WRKFLW_TEST_AUTHOR and WRKFLW_TEST_REVIEWER."""

from __future__ import annotations

import os
import unittest
from collections.abc import Callable, Iterator
from itertools import islice

import httpx

from wrkflw import ProblemError, Retries, async_events, async_pages, connect, events, pages
from wrkflw.api import Client
from wrkflw.api.api.events import list_events
from wrkflw.api.api.instances import list_instances, start_instance
from wrkflw.api.api.tasks import claim_task, decide_task, list_tasks
from wrkflw.api.models import (
    CommandAnswer,
    DecideBody,
    Events,
    InstanceView,
    MinimalInstance,
    PageTaskSummary,
    StartBody,
    StartBodyData,
)
from wrkflw.client import KEYED, KEYLESS

URL = os.environ["WRKFLW_TEST_URL"]
AUTHOR = os.environ["WRKFLW_TEST_AUTHOR"]
REVIEWER = os.environ["WRKFLW_TEST_REVIEWER"]
QUICK = Retries(attempts=2, pause=0.001, pause_max=0.005)


class Through(httpx.BaseTransport):
    """A transport that passes each response to a function, which returns it, replaces it or raises."""

    def __init__(self, change: Callable[[int, httpx.Request, httpx.Response], httpx.Response]) -> None:
        self.inner = httpx.HTTPTransport()
        self.change = change
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self.change(len(self.requests), request, self.inner.handle_request(request))


def start(entity: str, client: Client | None = None) -> InstanceView | MinimalInstance:
    data = StartBodyData.from_dict({"title": "A plan"})
    body = StartBody(definition_key="document-approval", entity_type="document", entity_id=entity, data=data)
    started = start_instance.sync(client=client or connect(URL, AUTHOR), body=body)
    assert isinstance(started, CommandAnswer)
    return started.instance


class ClientTest(unittest.TestCase):
    def test_a_refusal_is_raised_with_its_code(self) -> None:
        task = start("py-refusal").states[0].tasks[0]
        with self.assertRaises(ProblemError) as caught:
            claim_task.sync(task.id, client=connect(URL, lambda: AUTHOR))
        self.assertEqual(caught.exception.code, "forbidden")

    def test_a_command_whose_reply_is_lost_is_carried_out_once(self) -> None:
        def lose_first(number: int, request: httpx.Request, response: httpx.Response) -> httpx.Response:
            if number == 1:
                response.read()
                raise httpx.ReadError("the connection broke", request=request)
            return response

        losing = Through(lose_first)
        started = start("py-retry", connect(URL, AUTHOR, retries=QUICK, transport=losing))
        keys = {request.headers["idempotency-key"] for request in losing.requests}
        self.assertEqual((len(losing.requests), len(keys)), (2, 1))
        listed = list(pages(list_instances.sync, client=connect(URL, AUTHOR), entity_id="py-retry"))
        self.assertEqual([instance.id for instance in listed], [started.id])

    def test_a_request_that_takes_no_key_is_not_sent_again_when_its_reply_is_lost(self) -> None:
        def lose(number: int, request: httpx.Request, response: httpx.Response) -> httpx.Response:
            response.read()
            raise httpx.ReadError("the connection broke", request=request)

        by_filter = {"action": "claim", "filter": {"view": "available"}}
        for path, body in (("/v1/tasks/bulk?dryRun=true", by_filter), ("/v1/subscriptions/1/test", {})):
            losing = Through(lose)
            client = connect(URL, AUTHOR, retries=QUICK, transport=losing).get_httpx_client()
            with self.assertRaises(httpx.ReadError):
                client.post(path, json=body)
            self.assertEqual([request.headers.get("idempotency-key") for request in losing.requests], [None])
        client = connect(URL, AUTHOR).get_httpx_client()
        self.assertEqual(client.post("/v1/tasks/bulk?dryRun=true", json=by_filter).status_code, 200)

    def test_every_operation_without_a_key_is_known_to_be_repeatable_or_not(self) -> None:
        # These lead to the same state when they are repeated, send a message again under its id, or only read.
        repeatable = {
            "activateVersion", "discardDeadLetter", "retryDeadLetter", "publishVersion", "reinstateVersion", "resumeVersion", "retireVersion", "stopVersion",
            "searchInstances", "findNames", "markNotificationRead", "stopOperation", "retryDeliveries", "discardDelivery", "retryDelivery",
        }
        document = httpx.get(f"{URL}/openapi.json").json()
        found = set()
        for path, item in document["paths"].items():
            operation = item.get("post")
            if operation is None:
                continue
            takes_key = any(one["name"] == "Idempotency-Key" for one in operation.get("parameters", []))
            self.assertEqual(takes_key, KEYED.search(path) is not None, path)
            if takes_key:
                continue
            found.add(operation["operationId"])
            is_repeatable = operation["operationId"] in repeatable
            self.assertNotEqual(is_repeatable, KEYLESS.search(path) is not None, path)
        self.assertLessEqual(repeatable, found)

    def test_the_list_of_events_ends_at_its_newest_one(self) -> None:
        newest = str(start("py-newest").id)
        # The host shows an event when no earlier transaction is open. The stream waits for that.
        next(one for one in events(URL, AUTHOR, after="earliest") if one.event["subject"] == newest)
        found = list(pages(list_events.sync, client=connect(URL, AUTHOR), after="earliest", limit=10))
        self.assertEqual(found[-1].subject, newest)
        self.assertEqual(len(found), len({one.id for one in found}))

    def test_a_text_with_a_line_separator_is_one_line_of_the_stream(self) -> None:
        content = 'id: 1\r\ndata: {"a":\ndata: "b\u2028c\u0085"}\n\n: live\n\n'
        whole = httpx.MockTransport(lambda _: httpx.Response(200, text=content))
        streamed = next(events(URL, AUTHOR, transport=whole))
        self.assertEqual((streamed.id, streamed.event), ("1", {"a": "b\u2028c\u0085"}))

    def test_an_expired_token_ends_the_stream(self) -> None:
        def expired(number: int, request: httpx.Request, response: httpx.Response) -> httpx.Response:
            response.close()
            return httpx.Response(401, json={"code": "token_expired"}, request=request)

        with self.assertRaises(ProblemError) as caught:
            next(events(URL, AUTHOR, transport=Through(expired)))
        self.assertEqual(caught.exception.code, "token_expired")

    def test_a_busy_host_is_asked_again_and_at_last_its_problem_is_raised(self) -> None:
        def busy(number: int, request: httpx.Request, response: httpx.Response) -> httpx.Response:
            response.close()
            return httpx.Response(503, headers={"retry-after": "1"}, text="try later", request=request)

        transport = Through(busy)
        with self.assertRaises(ProblemError) as caught:
            start("py-busy", connect(URL, AUTHOR, retries=QUICK, transport=transport))
        self.assertEqual((caught.exception.status, len(transport.requests)), (503, 3))

    def test_pages_gives_every_item_once(self) -> None:
        ids = {start(f"py-page-{number}").id for number in range(5)}
        found = [one.id for one in pages(list_instances.sync, client=connect(URL, AUTHOR), limit=2)]
        self.assertEqual(len(found), len(set(found)))
        self.assertLessEqual(ids, set(found))

    def test_a_list_is_asked_for_several_parts(self) -> None:
        task = start("py-parts").states[0].tasks[0]
        page = list_tasks.sync(
            client=connect(URL, REVIEWER),
            view="available",
            entity_type="document",
            entity_id="py-parts",
            include=["outcomes", "actions"],
        )
        assert isinstance(page, PageTaskSummary)
        self.assertEqual([one.id for one in page.data], [task.id])
        self.assertTrue(page.data[0].outcomes)
        self.assertTrue(page.data[0].actions)

    def test_a_broken_event_stream_is_resumed_without_a_gap_or_a_repetition(self) -> None:
        task = start("py-events").states[0].tasks[0]
        reviewer = connect(URL, REVIEWER)
        decide_task.sync(task.id, client=reviewer, body=DecideBody(outcome="APPROVE"))
        page = list_events.sync(client=reviewer, limit=100)
        assert isinstance(page, Events)
        expected = [event.id for event in page.data]

        def cut(number: int, request: httpx.Request, response: httpx.Response) -> httpx.Response:
            # Only the first two: a person may have few streams at a time, and the host notices late that one is broken.
            if number > 2:
                return response
            return httpx.Response(response.status_code, headers=response.headers, stream=Cut(response, 3_000))

        cutting = Through(cut)
        streamed = events(URL, REVIEWER, after="earliest", retries=QUICK, transport=cutting)
        got = [one.event["id"] for one in islice(streamed, len(expected))]
        self.assertEqual(got, expected)
        self.assertGreater(len(cutting.requests), 1)


class AsyncThrough(httpx.AsyncBaseTransport):
    """A transport whose first response is lost."""

    def __init__(self) -> None:
        self.inner = httpx.AsyncHTTPTransport()
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        response = await self.inner.handle_async_request(request)
        if len(self.requests) == 1:
            await response.aread()
            raise httpx.ReadError("the connection broke", request=request)
        return response


class AsyncClientTest(unittest.IsolatedAsyncioTestCase):
    async def test_operations_pages_and_events_are_those_of_the_other_client(self) -> None:
        ids = {start(f"py-async-{number}").id for number in range(3)}
        async with connect(URL, REVIEWER) as client:
            listed = [one.id async for one in async_pages(list_instances.asyncio, client=client, limit=2)]
            self.assertEqual(len(listed), len(set(listed)))
            self.assertLessEqual(ids, set(listed))
            expected = [event.id async for event in async_pages(list_events.asyncio, client=client, after="earliest")]
        got: list[str] = []
        async for streamed in async_events(URL, REVIEWER, after="earliest"):
            got.append(streamed.event["id"])
            if len(got) == len(expected):
                break
        self.assertEqual(got, expected)

    async def test_a_command_whose_reply_is_lost_is_carried_out_once(self) -> None:
        losing = AsyncThrough()
        client = connect(URL, AUTHOR, retries=QUICK, transport=losing)
        data = StartBodyData.from_dict({"title": "A plan"})
        body = StartBody(definition_key="document-approval", entity_type="document", entity_id="py-async-retry", data=data)
        started = await start_instance.asyncio(client=client, body=body)
        assert isinstance(started, CommandAnswer)
        keys = {request.headers["idempotency-key"] for request in losing.requests}
        self.assertEqual((len(losing.requests), len(keys)), (2, 1))
        listed = list(pages(list_instances.sync, client=connect(URL, AUTHOR), entity_id="py-async-retry"))
        self.assertEqual([instance.id for instance in listed], [started.instance.id])

    async def test_a_refusal_is_raised_with_its_code(self) -> None:
        task = start("py-async-refusal").states[0].tasks[0]
        with self.assertRaises(ProblemError) as caught:
            await claim_task.asyncio(task.id, client=connect(URL, AUTHOR))
        self.assertEqual((caught.exception.code, caught.exception.response.request.method), ("forbidden", "POST"))

    async def test_a_transport_of_the_other_kind_is_refused(self) -> None:
        with self.assertRaisesRegex(TypeError, "call the operation `sync`"):
            await list_instances.asyncio(client=connect(URL, AUTHOR, transport=httpx.HTTPTransport()))
        with self.assertRaisesRegex(TypeError, "call the operation `asyncio`"):
            list_instances.sync(client=connect(URL, AUTHOR, transport=AsyncThrough()))


class Cut(httpx.SyncByteStream):
    """A response that breaks off after so many bytes."""

    def __init__(self, response: httpx.Response, left: int) -> None:
        self.response = response
        self.left = left

    def __iter__(self) -> Iterator[bytes]:
        assert isinstance(self.response.stream, httpx.SyncByteStream)
        for chunk in self.response.stream:
            yield chunk[: self.left]
            self.left -= len(chunk)
            if self.left <= 0:
                raise httpx.ReadError("the connection broke")

    def close(self) -> None:
        self.response.close()


if __name__ == "__main__":
    unittest.main()
