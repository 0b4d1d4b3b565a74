"""The event stream: server-sent events that are resumed after a broken connection."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from wrkflw.client import Bearer, ProblemError, Retries, Token

# The host sends an event or its position at least every 15 seconds.
SILENCE_MAX = 60.0


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
    pauses = retries or Retries()
    attempt = 0
    position = _Position(after)
    timeout = httpx.Timeout(10.0, read=SILENCE_MAX)
    with httpx.Client(base_url=base_url, auth=Bearer(token), timeout=timeout, transport=transport) as client:
        while True:
            try:
                for streamed in _connection(client, position):
                    attempt = 0
                    yield streamed
            except (httpx.UnsupportedProtocol, httpx.LocalProtocolError):
                # The URL or the token is wrong.
                raise
            except httpx.TransportError:
                pass
            except ProblemError as error:
                if not _passes(error, token):
                    raise
            time.sleep(pauses.after(min(attempt, 16)))
            attempt += 1


def _passes(error: ProblemError, token: Token) -> bool:
    """Whether a new connection may succeed. A stream ends when its token expires: a function as `token` gives a new one."""
    return error.status >= 500 or error.status == 429 or (error.code == "token_expired" and callable(token))


def lines(texts: Iterator[str]) -> Iterator[str]:
    """The lines of a stream. Other line ends than a line feed are part of the texts of events."""
    rest = ""
    for text in texts:
        *lines, rest = (rest + text).split("\n")
        for line in lines:
            yield line.removesuffix("\r")


class _Position:
    """Where a stream stands. The server tells it before the first event."""

    def __init__(self, after: str | None) -> None:
        self.after = after


def _connection(client: httpx.Client, position: _Position) -> Iterator[Streamed]:
    headers = {"accept": "text/event-stream"}
    if position.after is not None:
        headers["last-event-id"] = position.after
    with client.stream("GET", "/v1/events/stream", headers=headers) as response:
        if response.status_code >= 400:
            response.read()
            raise ProblemError(response)
        event_id = ""
        data: list[str] = []
        for line in lines(response.iter_text()):
            if line == "":
                if event_id:
                    position.after = event_id
                if event_id and data:
                    yield Streamed(event_id, json.loads("\n".join(data)))
                event_id, data = "", []
            elif line.startswith("id:"):
                event_id = line[3:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
