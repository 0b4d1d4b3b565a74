"""Instants as the contract writes them."""

from datetime import datetime, timezone


def moment(text: str) -> datetime:
    """The instant that an RFC 3339 text of the facts names."""
    return datetime.fromisoformat(text)


def instant(when: datetime) -> str:
    """An aware datetime as the contract has it."""
    return when.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
