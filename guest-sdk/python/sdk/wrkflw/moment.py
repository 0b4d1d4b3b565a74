"""Conversion of instants between Python and the contract."""

from datetime import datetime, timezone


def moment(text: str) -> datetime:
    """Parses an RFC 3339 instant of the facts."""
    return datetime.fromisoformat(text)


def instant(when: datetime) -> str:
    """Formats an aware datetime for the contract."""
    return when.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
