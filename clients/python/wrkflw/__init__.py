"""A client of the wrkflw API.

`connect` gives a client for the generated operations in `wrkflw.api`. It adds a token, idempotency keys and retries, and raises a
`ProblemError` for a response that is not a success. `pages` iterates over a list, `events` follows the event stream, and `async_pages` and
`async_events` do so in a program with an event loop.
"""

from wrkflw.client import ProblemError, Retries, connect
from wrkflw.events import Streamed, async_events, events
from wrkflw.pages import async_pages, pages

__all__ = ["ProblemError", "Retries", "Streamed", "async_events", "async_pages", "connect", "events", "pages"]
