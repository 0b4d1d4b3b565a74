"""The connection to a host: a token, retries with the same idempotency key, and problems as exceptions."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import httpx

from wrkflw.api import Client

Token = str | Callable[[], str]

# Statuses after which the same request may succeed: nothing was done, or the key finds what was done.
PASSING = frozenset({429, 502, 503, 504})
# Operations that take a key. All others refuse it.
KEYED = re.compile(r"/v1/(instances(/[^/]+/.+)?|tasks/.+|signals/.+|migrations|cancellations|people/.+/absences)$")
# Operations that take no key, and whose repetition would do more. They are sent again only after 429, when nothing was done.
KEYLESS = re.compile(r"/v1/(subscriptions(/[^/]+/test)?|embed-tokens|events/replay)$")
PASSING_KEYLESS = frozenset({429})


@dataclass(frozen=True)
class Retries:
    """How often and how long a request is tried again. Times are in seconds; a pause doubles, and a part of it is random."""

    attempts: int = 4
    pause: float = 0.2
    pause_max: float = 10.0

    def after(self, attempt: int, asked: float = 0.0) -> float:
        """The pause after this attempt, if the host asked for `asked` seconds."""
        doubled = self.pause * float(2**attempt) * (0.5 + random.random() / 2)
        return min(max(asked, doubled), self.pause_max)


class ProblemError(Exception):
    """A response that is not a success. `code` is stable; `detail` is for people; `problem` is the whole body."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.status = response.status_code
        self.problem = _problem(response)
        self.code = str(self.problem.get("code", "unknown"))
        self.detail = str(self.problem.get("detail", response.text[:500]))
        super().__init__(f"{self.status} {self.code}: {self.detail}")


def connect(
    base_url: str,
    token: Token,
    retries: Retries | None = None,
    transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None = None,
    timeout: float = 60.0,
) -> Client:
    """A client of one host, as one person. `token` is a bearer token, or a function that gives a valid one for each request. A `transport`
    of httpx that is not asynchronous takes the operations `sync` and `sync_detailed` alone, an asynchronous one `asyncio` and
    `asyncio_detailed`."""
    arguments: dict[str, Any] = {"auth": Bearer(token), "transport": _Retrying(transport, retries or Retries())}
    return Client(base_url=base_url, timeout=httpx.Timeout(timeout), httpx_args=arguments)


class Bearer(httpx.Auth):
    """Sets the `Authorization` header."""

    def __init__(self, token: Token) -> None:
        self.token = token

    def auth_flow(self, request: httpx.Request) -> Any:
        token = self.token if isinstance(self.token, str) else self.token()
        request.headers["authorization"] = f"Bearer {token}"
        yield request


class _Retrying(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends a request until it succeeds or is not to be tried again, and raises its problem."""

    def __init__(self, given: httpx.BaseTransport | httpx.AsyncBaseTransport | None, retries: Retries) -> None:
        self.given = given
        self.retries = retries

    @cached_property
    def inner(self) -> httpx.BaseTransport:
        inner = self.given or httpx.HTTPTransport()
        if not isinstance(inner, httpx.BaseTransport):
            raise TypeError("the client's transport is asynchronous: call the operation `asyncio` or `asyncio_detailed`")
        return inner

    @cached_property
    def async_inner(self) -> httpx.AsyncBaseTransport:
        inner = self.given or httpx.AsyncHTTPTransport()
        if not isinstance(inner, httpx.AsyncBaseTransport):
            raise TypeError("the client's transport is not asynchronous: call the operation `sync` or `sync_detailed`")
        return inner

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        attempts = _Attempts(request, self.retries)
        while True:
            try:
                response = self.inner.handle_request(request)
            except httpx.TransportError as error:
                pause = attempts.pause(error)
                if pause is None:
                    raise
            else:
                pause = attempts.pause(response)
                if pause is None:
                    if response.status_code < 400:
                        return response
                    response.read()
                    raise ProblemError(response)
                response.close()
            time.sleep(pause)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        attempts = _Attempts(request, self.retries)
        while True:
            try:
                response = await self.async_inner.handle_async_request(request)
            except httpx.TransportError as error:
                pause = attempts.pause(error)
                if pause is None:
                    raise
            else:
                pause = attempts.pause(response)
                if pause is None:
                    if response.status_code < 400:
                        return response
                    await response.aread()
                    raise ProblemError(response)
                await response.aclose()
            await asyncio.sleep(pause)

    def close(self) -> None:
        if "inner" in self.__dict__:
            self.inner.close()

    async def aclose(self) -> None:
        if "async_inner" in self.__dict__:
            await self.async_inner.aclose()


class _Attempts:
    """The attempts of one request, which has an idempotency key if it takes one."""

    def __init__(self, request: httpx.Request, retries: Retries) -> None:
        lacks_key = request.method == "POST" and "idempotency-key" not in request.headers
        self.request = request
        self.retries = retries
        self.keyless = lacks_key and _takes_no_key(request)
        self.made = 0
        if lacks_key and not self.keyless and KEYED.search(request.url.path):
            request.headers["idempotency-key"] = str(uuid.uuid4())

    def pause(self, result: httpx.Response | httpx.TransportError) -> float | None:
        """The seconds before the next attempt, after this result of the last one. None if there is no other."""
        asked = 0.0
        if isinstance(result, httpx.Response):
            result.request = self.request
            may_pass = result.status_code in (PASSING_KEYLESS if self.keyless else PASSING)
            asked = _seconds(result.headers.get("retry-after"))
        else:
            may_pass = not self.keyless
        attempt = self.made
        self.made += 1
        return self.retries.after(attempt, asked) if may_pass and attempt < self.retries.attempts else None


def _takes_no_key(request: httpx.Request) -> bool:
    """Whether the host cannot find what the request did by a key. A command on the tasks of a filter may find others when repeated."""
    path = request.url.path
    if not path.endswith("/v1/tasks/bulk"):
        return KEYLESS.search(path) is not None
    try:
        body = json.loads(request.read())
    except ValueError:
        return False
    return isinstance(body, dict) and "filter" in body


def _seconds(header: str | None) -> float:
    return float(header) if header is not None and header.isdigit() else 0.0


def _problem(response: httpx.Response) -> dict[str, Any]:
    """The body of a problem. A proxy may have sent something else."""
    try:
        body = json.loads(response.text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
