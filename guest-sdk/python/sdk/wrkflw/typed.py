"""Converts JSON to the author's dataclasses."""

import dataclasses
import types
import typing
from typing import Any

from wit_world.imports.types import Violation

from .refusal import all_invalid

#: The types of values that `json.loads` returns.
_OF_JSON = (str, int, float, bool, list, dict, type(None))


def read(kind: Any, value: Any, at: str, strict: bool = False) -> Any:
    """The value as `kind`: a dataclass, a list, a dict, an option or a plain type of them. `strict` refuses unknown members.

    `at` is the JSON Pointer of the value, with which the fields of violations begin.
    """
    violations: list[Violation] = []
    made = _read(kind, value, at, strict, violations)
    if violations:
        raise all_invalid(violations)
    return made


def _read(kind: Any, value: Any, at: str, strict: bool, violations: list[Violation]) -> Any:
    if kind is Any:
        return value
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        options = [one for one in of if one is not type(None)]
        if value is None and len(options) < len(of):
            return None
        return _read(options[0], value, at, strict, violations) if len(options) == 1 else value
    if origin is typing.Literal:
        if value not in of:
            violations.append(Violation(at, "type", f"It is one of {', '.join(map(str, of))}."))
        return value
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(kind, value, at, strict, violations)
    plain = origin or kind
    if plain is list and isinstance(value, list) and of:
        return [_read(of[0], one, f"{at}/{index}", strict, violations) for index, one in enumerate(value)]
    if plain is dict and isinstance(value, dict) and of:
        return {name: _read(of[1], one, f"{at}/{name}", strict, violations) for name, one in value.items()}
    if plain is float and type(value) is int:
        return float(value)
    # A `bool` is an `int` in Python, but not in JSON.
    if isinstance(plain, type) and (not isinstance(value, plain) or (plain is int and isinstance(value, bool))):
        violations.append(Violation(at, "type", f"It is no {plain.__name__}."))
    return value


def _read_dataclass(kind: Any, value: Any, at: str, strict: bool, violations: list[Violation]) -> Any:
    if not isinstance(value, dict):
        violations.append(Violation(at, "type", "It is no object."))
        return None
    hints = typing.get_type_hints(kind)
    fields = {json_name(field.name): field for field in dataclasses.fields(kind)}
    if strict:
        known = ", ".join(fields)
        violations += [Violation(f"{at}/{name}", "unknown", f"There is no {name}: there are {known}.") for name in value if name not in fields]
    members = {}
    for name, field in fields.items():
        if name in value:
            members[field.name] = _read(hints[field.name], value[name], f"{at}/{name}", strict, violations)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            violations.append(Violation(f"{at}/{name}", "required", f"{name} is missing."))
    return None if violations else kind(**members)


def check(kind: Any, at: str, within: tuple[Any, ...] = ()) -> None:
    """Refuses a type that JSON does not have, such as a date, because every call would fail. `at` is its position."""
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or origin is typing.Literal or kind in within:
        return
    if origin in (typing.Union, types.UnionType):
        options = [one for one in of if one is not type(None)]
        # As above. Among several types, nothing is converted.
        if len(options) == 1:
            check(options[0], at, within)
    elif dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            check(hints[field.name], f"{kind.__name__}.{field.name}", (*within, kind))
    elif (plain := origin or kind) in (list, dict) and of:
        check(of[-1], at, within)
    elif isinstance(plain, type) and (typing.is_typeddict(plain) or not _is_of_json(plain)):
        raise TypeError(f"{at} is a {plain.__name__}, which JSON cannot be: take a str, int, float, bool, list, dict or dataclass without type parameters.")


def _is_of_json(kind: type) -> bool:
    try:
        return any(issubclass(one, kind) for one in _OF_JSON)
    except TypeError:  # A protocol that values cannot be checked against.
        return False


def json_name(name: str) -> str:
    """A member's name in JSON: `needs_comment` is `needsComment`."""
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)
