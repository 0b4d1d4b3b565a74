"""The event stream: server-sent events that are resumed after a broken connection."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from wrkflw.client import Bearer, ProblemError, Retries, Token

# The host sends an event or its position at least every 15 seconds.
SILENCE_MAX = 60.0
TIMEOUT = httpx.Timeout(10.0, read=SILENCE_MAX)
PATH = "/v1/events/stream"


@dataclass(frozen=True)
class Streamed:
    """One event (CloudEvents 1.0), with the id to continue after."""

    id: str
    event: dict[str, Any]


def events(
    base_url: str,
    token: Token,
    after: str | None = None,
    retries: Retries | None = None,
    transport: httpx.BaseTransport | None = None,
) -> Iterator[Streamed]:
    """Every event in the order of the commits from now on, without end; since the first event with `after="earliest"`.

    A broken stream is resumed after the last event, so none is lost or repeated. Store `id` together with what you did, and begin
    after it the next time.
    """
    stream = _Stream(token, after, retries or Retries())
    with httpx.Client(base_url=base_url, auth=Bearer(token), timeout=TIMEOUT, transport=transport) as client:
        while True:
            try:
                with client.stream("GET", PATH, headers=stream.headers()) as response:
                    if response.status_code >= 400:
                        response.read()
                        raise ProblemError(response)
                    for text in response.iter_text():
                        yield from stream.read(text)
            except (httpx.TransportError, ProblemError) as error:
                stream.fail(error)
            time.sleep(stream.pause())


async def async_events(
    base_url: str,
    token: Token,
    after: str | None = None,
    retries: Retries | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[Streamed]:
    """The same as `events`, in a program with an event loop."""
    stream = _Stream(token, after, retries or Retries())
    async with httpx.AsyncClient(base_url=base_url, auth=Bearer(token), timeout=TIMEOUT, transport=transport) as client:
        while True:
            try:
                async with client.stream("GET", PATH, headers=stream.headers()) as response:
                    if response.status_code >= 400:
                        await response.aread()
                        raise ProblemError(response)
                    async for text in response.aiter_text():
                        for streamed in stream.read(text):
                            yield streamed
            except (httpx.TransportError, ProblemError) as error:
                stream.fail(error)
            await asyncio.sleep(stream.pause())


class _Stream:
    """Where a stream stands, which the server tells before the first event, and the lines of an event that are not whole yet."""

    def __init__(self, token: Token, after: str | None, retries: Retries) -> None:
        self.token = token
        self.after = after
        self.retries = retries
        self.attempt = 0
        self._begin()

    def _begin(self) -> None:
        self.rest = ""
        self.id = ""
        self.data: list[str] = []

    def headers(self) -> dict[str, str]:
        """Those of the next connection."""
        self._begin()
        headers = {"accept": "text/event-stream"}
        if self.after is not None:
            headers["last-event-id"] = self.after
        return headers

    def read(self, text: str) -> Iterator[Streamed]:
        """The events that end in the next part of the stream. Other line ends than a line feed are part of the texts of events."""
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            line = line.removesuffix("\r")
            if line == "":
                event_id, data = self.id, self.data
                self.id, self.data = "", []
                if event_id:
                    self.after = event_id
                if event_id and data:
                    self.attempt = 0
                    yield Streamed(event_id, json.loads("\n".join(data)))
            elif line.startswith("id:"):
                self.id = line[3:].strip()
            elif line.startswith("data:"):
                self.data.append(line[5:].removeprefix(" "))

    def fail(self, error: httpx.TransportError | ProblemError) -> None:
        """Raises the error, unless a new connection may succeed. A stream ends when its token expires: a function as `token` gives a new
        one."""
        if isinstance(error, ProblemError):
            is_expired = error.code == "token_expired" and callable(self.token)
            passes = error.status >= 500 or error.status == 429 or is_expired
        else:
            # The URL or the token is wrong.
            passes = not isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError)
        if not passes:
            raise error

    def pause(self) -> float:
        """The seconds before the next connection."""
        pause = self.retries.after(min(self.attempt, 16))
        self.attempt += 1
        return pause
