"""Refusals: why something may not happen, or why a flow cannot answer. All of them are raised.

`denied` concerns the person (403), `not_now` the moment (409), `invalid` the data or the input (422), and `fault` is a mistake of
the flow (424). Any other exception is a fault, too, with the line of the author's file.
"""

import json
import os
from typing import Iterable

from wit_world.imports import types as wit
from wit_world.imports.types import Violation

_MESSAGE_CHARS_MAX = 500
_OWN_FOLDER = os.path.dirname(__file__)
#: The paths of files of the standard library begin with this.
_STANDARD = (os.path.join(os.path.dirname(os.path.dirname(json.__file__)), ""), "<frozen ")


class Refusal(Exception):
    """The exception for refusals by the functions of a flow."""

    def __init__(self, wire: wit.Refusal):
        super().__init__(wire)
        self.wire = wire


def denied(code: str, message: str) -> Refusal:
    """This actor may not, now or ever: `raise denied("over_limit", "Above 1000, the CFO decides.")`."""
    return Refusal(wit.Refusal_Denied(wit.Reason(code, message)))


def not_now(code: str, message: str) -> Refusal:
    """Not possible at the moment; a later attempt may succeed."""
    return Refusal(wit.Refusal_NotNow(wit.Reason(code, message)))


def invalid(field: str, code: str, message: str) -> Refusal:
    """The data or the input does not permit it.

    `field` is a JSON Pointer into the request: `/data/title` of a start, `/input/amount` of a decision or a signal, `/comment`.
    """
    return all_invalid([Violation(field, code, message)])


def all_invalid(violations: Iterable[Violation]) -> Refusal:
    """The same for several fields."""
    return Refusal(wit.Refusal_Invalid(list(violations)))


def fault(code: str, message: str) -> Refusal:
    """The flow cannot answer, by a mistake of its author."""
    return Refusal(wit.Refusal_Fault(wit.Reason(code, message)))


def refusal_of(raised: Exception) -> wit.Refusal:
    """Converts an exception to a refusal."""
    if isinstance(raised, Refusal):
        return raised.wire
    return wit.Refusal_Fault(wit.Reason("exception", _described(raised)))


def violations_of(raised: Exception) -> list[Violation]:
    """The same for `describe`, which has violations only."""
    wire = refusal_of(raised)
    if isinstance(wire, wit.Refusal_Invalid):
        return wire.value
    return [Violation("", wire.value.code, wire.value.message)]


def _described(raised: Exception) -> str:
    """The exception with its place: `KeyError: 'x' (flow.py:12)`. The place is the innermost line outside of this package and Python's."""
    text = f"{type(raised).__name__}: {raised}"[:_MESSAGE_CHARS_MAX]
    # The module `traceback` would read source files, which a component does not have.
    place, frame = "", raised.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if os.path.dirname(file) != _OWN_FOLDER and not file.startswith(_STANDARD):
            place = f" ({os.path.basename(file)}:{frame.tb_lineno})"
        frame = frame.tb_next
    return text + place
