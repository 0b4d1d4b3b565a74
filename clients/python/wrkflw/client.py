"""The connection to a host: a token, retries with the same idempotency key, and problems as exceptions."""

from __future__ import annotations

import json
import random
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from wrkflw.api import Client

Token = str | Callable[[], str]

# Statuses after which the same request may succeed: nothing was done, or the key finds what was done.
PASSING = frozenset({429, 502, 503, 504})
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
    transport: httpx.BaseTransport | None = None,
    timeout: float = 60.0,
) -> Client:
    """A client of one host, as one person, for the operations `sync` and `sync_detailed`. `token` is a bearer token, or a function that
    gives a valid one for each request."""
    retrying = _Retrying(transport or httpx.HTTPTransport(), retries or Retries())
    arguments: dict[str, Any] = {
        "auth": Bearer(token),
        "transport": retrying,
        "event_hooks": {"response": [_raise]},
    }
    return Client(base_url=base_url, timeout=httpx.Timeout(timeout), httpx_args=arguments)


class Bearer(httpx.Auth):
    """Sets the `Authorization` header."""

    def __init__(self, token: Token) -> None:
        self.token = token

    def auth_flow(self, request: httpx.Request) -> Any:
        token = self.token if isinstance(self.token, str) else self.token()
        request.headers["authorization"] = f"Bearer {token}"
        yield request


class _Retrying(httpx.BaseTransport):
    def __init__(self, inner: httpx.BaseTransport, retries: Retries) -> None:
        self.inner = inner
        self.retries = retries

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        lacks_key = request.method == "POST" and "idempotency-key" not in request.headers
        keyless = lacks_key and _takes_no_key(request)
        if lacks_key and not keyless:
            request.headers["idempotency-key"] = str(uuid.uuid4())
        passing = PASSING_KEYLESS if keyless else PASSING
        attempt = 0
        while True:
            is_last = attempt >= self.retries.attempts
            asked = 0.0
            try:
                response = self.inner.handle_request(request)
                if is_last or response.status_code not in passing:
                    return response
                asked = _seconds(response.headers.get("retry-after"))
                response.close()
            except httpx.TransportError:
                if is_last or keyless:
                    raise
            time.sleep(self.retries.after(attempt, asked))
            attempt += 1

    def close(self) -> None:
        self.inner.close()


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


def _raise(response: httpx.Response) -> None:
    if response.status_code >= 400:
        response.read()
        raise ProblemError(response)


def _problem(response: httpx.Response) -> dict[str, Any]:
    """The body of a problem. A proxy may have sent something else."""
    try:
        body = json.loads(response.text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
