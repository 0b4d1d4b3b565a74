"""A client of the wrkflw API.

`connect` gives a client for the generated operations in `wrkflw.api`. It adds a token, idempotency keys and retries, and raises a
`ProblemError` for a response that is not a success. `pages` iterates over a list, `events` follows the event stream.
"""

from wrkflw.client import ProblemError, Retries, connect
from wrkflw.events import Streamed, events
from wrkflw.pages import pages

__all__ = ["ProblemError", "Retries", "Streamed", "connect", "events", "pages"]
