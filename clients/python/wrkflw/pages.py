"""Lists as iterators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def pages(operation: Callable[..., Any], **arguments: Any) -> Iterator[Any]:
    """Every item of a list, page by page: `for task in pages(list_tasks.sync, client=client): ...`."""
    while True:
        page = operation(**arguments)
        yield from page.data
        following = page.page.next_
        # The list of events has a next page at its end, too: the same again.
        if not following or following == arguments.get("after"):
            return
        arguments["after"] = following
