"""Lists as iterators."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any


def pages(operation: Callable[..., Any], **arguments: Any) -> Iterator[Any]:
    """Every item of a list, page by page: `for task in pages(list_tasks.sync, client=client): ...`."""
    while True:
        page = operation(**arguments)
        yield from page.data
        if not _goes_on(page, arguments):
            return


async def async_pages(operation: Callable[..., Awaitable[Any]], **arguments: Any) -> AsyncIterator[Any]:
    """The same of an asynchronous operation: `async for task in async_pages(list_tasks.asyncio, client=client): ...`."""
    while True:
        page = await operation(**arguments)
        for item in page.data:
            yield item
        if not _goes_on(page, arguments):
            return


def _goes_on(page: Any, arguments: dict[str, Any]) -> bool:
    """Whether there is another page; the arguments are those of it then."""
    following = page.page.next_
    # The list of events has a next page at its end, too: the same again.
    if not following or following == arguments.get("after"):
        return False
    arguments["after"] = following
    return True
