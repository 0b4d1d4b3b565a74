"""What schemathesis cannot read from the document: things that exist, and what no schema can say."""

import json
import os
import unicodedata
import urllib.parse
import urllib.request
from functools import cache

import schemathesis
from hypothesis import strategies

BASE = os.environ["TARGET_URL"]
TOKEN = os.environ["TARGET_TOKEN"]
COMPONENT = os.environ["SAMPLE_COMPONENT"]
# A placeholder for a cursor until its list is known.
SOME_CURSOR = "c29tZSBjdXJzb3I"


@cache
def component():
    with open(COMPONENT, "rb") as file:
        return file.read()


# A cursor is valid only for the list that it came from, which no schema can express.
schemathesis.openapi.format("cursor", strategies.just(SOME_CURSOR))
# An upload: mostly random bytes, sometimes a component.
schemathesis.openapi.format(
    "binary", strategies.binary(max_size=64) | strategies.builds(component)
)


@cache
def next_cursor(path):
    """Where the second page of a list begins; none where there is one page alone."""
    request = urllib.request.Request(
        f"{BASE}{path}?limit=1", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    try:
        with urllib.request.urlopen(request) as response:
            return json.load(response)["page"]["next"]
    except (OSError, KeyError, ValueError):
        return None


def real_cursor(path, parameters):
    for name, value in (parameters or {}).items():
        path = path.replace(f"{{{name}}}", urllib.parse.quote(str(value), safe=""))
    return next_cursor(path.removesuffix("/stream"))


@schemathesis.hook
def map_case(context, case):
    """Puts a cursor of the list itself where some cursor was asked for, or leaves it out."""
    for container, name in ((case.query, "after"), (case.headers, "Last-Event-ID")):
        if container and container.get(name) == SOME_CURSOR:
            found = real_cursor(case.operation.path, case.path_parameters)
            if found:
                container[name] = found
            else:
                del container[name]
    # An id must be in the normal form C of Unicode, which no pattern can express. A changed case is validated again, so unchanged
    # cases are not set.
    if is_positive(case):
        for part in ("path_parameters", "query", "body"):
            given = getattr(case, part)
            if normal(given) != given:
                setattr(case, part, normal(given))
    # Its coverage phase makes headers only of letters and digits, and an empty one if a pattern requires quotes.
    if is_positive(case) and case.headers and not case.headers.get("If-Match", "*").strip():
        del case.headers["If-Match"]
    return case


def normal(value):
    """The same with every text in normal form C; names of members stay."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, dict):
        return {name: normal(item) for name, item in value.items()}
    return [normal(item) for item in value] if isinstance(value, list) else value


def is_positive(case):
    return case.meta is None or case.meta.generation.mode.is_positive


def has_nul(value):
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(has_nul(name) or has_nul(item) for name, item in value.items())
    return isinstance(value, list) and any(map(has_nul, value))


@schemathesis.hook
def filter_case(context, case):
    """No text has a NUL, at any depth of what is otherwise free in form. Where a schema says so, it is tried."""
    return not (is_positive(case) and has_nul(case.body))
