"""Plans: what follows from an event. The host checks a plan before anything is written."""

import json
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Mapping, Self

from wit_world.imports import types as wit

from .graph import AttributeType, json_or_none
from .moment import instant
from .refusal import fault

_VALUES = {
    "text": wit.AttributeValue_Text,
    "boolean": wit.AttributeValue_Boolean,
    "decimal": wit.AttributeValue_Decimal,
    "float": wit.AttributeValue_Float,
    "timestamp": wit.AttributeValue_Timestamp,
    "bytes": wit.AttributeValue_Bytes,
}


@dataclass
class Target:
    """A state to enter. With a key, it is entered for one item, so that a plan may name a state several times."""

    state: str
    key: str | None = None
    #: Data about the item for the state, at most 16 KiB.
    data: Any = None


class Plan:
    """The next states, and other changes; made by `to`, `fork`, `stay`, `reoffer`, `spawn` and `end_branch`."""

    def __init__(self, following: wit.Next):
        self._next = following
        self._cancel: list[str] = []
        self._data: Mapping[str, Any] | None = None
        self._attributes: dict[str, Any] = {}
        self._published: list[wit.PublishedEvent] = []
        self._notes: list[wit.Note] = []

    def patch(self, change: Mapping[str, Any]) -> Self:
        """Change the instance's data by a JSON Merge Patch, where `None` removes a member. Once per plan: two cannot always be merged."""
        if self._data is not None:
            raise fault("data", "The plan patches the data twice. Make one patch of both.")
        self._data = change
        return self

    def attribute(self, name: str, value: Any) -> Self:
        """Set an attribute that the graph declares, or remove it by `None`."""
        self._attributes[name] = value
        return self

    def publish(self, name: str, data: Any) -> Self:
        """Publish an event of type `custom.<name>`."""
        self._published.append(wit.PublishedEvent(name, json.dumps(data)))
        return self

    def note(self, code: str, message: str, detail: Any = None) -> Self:
        """Record why: a code of the flow's own, a sentence for people, and a detail for programs, at most 4 KiB."""
        self._notes.append(wit.Note(code, message, json_or_none(detail)))
        return self

    def cancel(self, *others: wit.StateInstance) -> Self:
        """Cancel other branches."""
        self._cancel += [one.id for one in others]
        return self

    def wire(self, kinds: Mapping[str, AttributeType]) -> wit.Plan:
        """The plan as a record of the contract."""
        return wit.Plan(
            next=self._next,
            cancel=self._cancel,
            data=json_or_none(self._data),
            attributes=[wit.Attribute(name, _value(kinds, name, value)) for name, value in self._attributes.items()],
            publish=self._published,
            notes=self._notes,
            extensions=[],
        )


def _value(kinds: Mapping[str, AttributeType], name: str, value: Any) -> wit.AttributeValue | None:
    if name not in kinds:
        raise fault("unknown_attribute", f"The graph declares no attribute {name}.")
    if value is None:
        return None
    if isinstance(value, datetime):
        value = instant(value)
    return _VALUES[kinds[name]](_decimal(value) if kinds[name] == "decimal" else value)


def _decimal(value: Any) -> str:
    """The digits of a number without an exponent, unlike `str`."""
    if isinstance(value, float):
        value = Decimal(str(value))
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def to(target: str | Target) -> Plan:
    """Go to this state."""
    return fork(target)


def fork(*targets: str | Target) -> Plan:
    """Go to several states at once, one branch each: different ones, or one per item."""
    return Plan(wit.Next_Enter(_targets(targets)))


def spawn(*targets: str | Target) -> Plan:
    """This state goes on, and a branch begins beside it in each of these states."""
    return Plan(wit.Next_Spawn(_targets(targets)))


def stay() -> Plan:
    """Stay in the state: more decisions are needed."""
    return Plan(wit.Next_Stay())


def reoffer() -> Plan:
    """Stay in the task state with other work: the host calls `assign` again."""
    return Plan(wit.Next_Reoffer())


def end_branch() -> Plan:
    """End this branch; the others go on."""
    return Plan(wit.Next_EndBranch())


def _targets(targets: tuple[str | Target, ...]) -> list[wit.Target]:
    named = [one if isinstance(one, Target) else Target(one) for one in targets]
    return [wit.Target(one.state, one.key, json_or_none(one.data)) for one in named]
