"""The graph of a flow as an author writes it, and its conversion to the definition of the contract."""

import json
from dataclasses import dataclass, field
from typing import Any, Iterable, Literal, Mapping, Sequence

from wit_world.imports import types as wit

from .refusal import fault

FiredBy = Literal["decision", "signal", "deadline", "reply", "failure", "child", "entry"]
Reads = Literal["groups", "permissions", "comments", "inputs"]
CommentRule = Literal["optional", "required", "none"]
AttributeType = Literal["text", "boolean", "decimal", "float", "timestamp", "bytes"]
Extensions = Mapping[str, Any]
PRIORITY_MAX = 255
_U32_MAX = 2**32 - 1


@dataclass(kw_only=True)
class Transition:
    """The targets and requirements of a transition; made by `way`."""

    to: Sequence[str]
    #: Replaces what fires triggers of this kind of state by default.
    by: FiredBy | Sequence[FiredBy] = ()
    #: The permission (`subject:action`) that the transition needs.
    needs: str | None = None
    #: A title for people, such as `Send back`. Without one, they see the trigger.
    title: str = ""
    description: str = ""
    #: The condition of the transition or of its targets in words, for people.
    condition: str = ""
    #: JSON Schema 2020-12 of the input of a decision, signal or reply.
    input: Any = None
    #: Whether a decision has a comment.
    comment: CommentRule = "optional"
    extensions: Extensions = field(default_factory=dict)


def way(*to: str, **rest: Any) -> Transition:
    """A transition to this state, or to those that `transition` chooses from: `way("Rework", comment="required")`."""
    return Transition(to=to, **rest)


@dataclass(kw_only=True)
class State:
    """A state; made by `task`, `own_work`, `service`, `router`, `wait` and `terminal`."""

    kind: wit.StateKind
    fired_by: FiredBy
    title: str
    on: Mapping[str, str | Transition]
    own_work: bool = False
    #: What people do in the state, for display.
    description: str = ""
    #: The state is a join: it begins when all branches of the fork around it have arrived or ended, or as soon as this many
    #: have arrived.
    join: Literal["all"] | int | None = None
    extensions: Extensions = field(default_factory=dict)


Transitions = Mapping[str, str | Transition]


def task(title: str, on: Transitions, **rest: Any) -> State:
    """A state in which people work: `assign` says who. Decisions leave it. A transition is the target, or a `way`."""
    return State(kind=wit.StateKind_Task(), fired_by="decision", title=title, on=on, **rest)


def own_work(title: str, on: Transitions, **rest: Any) -> State:
    """A state in which the initiator works on their own request. Decisions leave it."""
    return task(title, on, own_work=True, **rest)


def service(title: str, on: Transitions, **rest: Any) -> State:
    """A state that calls a service: `call` says which. The reply leaves it. The transition on failure is `way(..., by=["failure"])`."""
    return State(kind=wit.StateKind_Service(), fired_by="reply", title=title, on=on, **rest)


def router(title: str, on: Transitions, **rest: Any) -> State:
    """A state without work: the host calls `transition` at once. It has one trigger."""
    return State(kind=wit.StateKind_Router(), fired_by="entry", title=title, on=on, **rest)


def wait(title: str, on: Transitions, **rest: Any) -> State:
    """A state that waits for something outside of it: `wait` of the flow says for what. Signals leave it."""
    return State(kind=wit.StateKind_Wait(), fired_by="signal", title=title, on=on, **rest)


def terminal(outcome: str, **rest: Any) -> State:
    """A state that ends the instance with this outcome."""
    return State(kind=wit.StateKind_Terminal(outcome), fired_by="entry", title=outcome, on={}, **rest)


@dataclass(kw_only=True)
class Graph:
    """The graph of the whole flow."""

    #: The state in which every instance begins.
    start: str
    #: Every state of the flow.
    states: Mapping[str, State]
    #: The flow's name for people; without it its key is shown.
    title: str = ""
    description: str = ""
    #: Groups whose members may start an instance. Empty: everybody who is signed in.
    initiators: Sequence[str] = ()
    #: JSON Schema 2020-12 that an instance's data satisfies at all times.
    schema: Any = None
    #: Attributes that instances can be searched by.
    attributes: Mapping[str, AttributeType] = field(default_factory=dict)
    #: Template of an instance's title: `Invoice {/number} of {/supplier/name}`.
    instance_title: str | None = None
    instance_summary: str | None = None
    #: Names of priorities, each with the lowest number that it covers, in ascending order.
    priorities: Mapping[str, int] = field(default_factory=dict)
    #: Lists of states. A person may decide in only one state of each list.
    separate: Sequence[Sequence[str]] = ()
    #: Personal data that the flow reads besides ids.
    reads: Sequence[Reads] = ()
    #: While an instance runs, no other instance of any definition about the same entity may run.
    sole_per_entity: bool = False
    #: Only participants, their managers and the members of these groups see an instance. `None`: everybody of the tenant; empty: no group.
    visible_to_participants: Sequence[str] | None = None
    #: Names of the tenant's directory that the config contains. They are looked up when a version is published.
    uses_groups: Sequence[str] = ()
    uses_people: Sequence[str] = ()
    #: The calendars that deadlines count by, all of them.
    uses_calendars: Sequence[str] = ()
    #: Services that the operator of the host configures.
    uses_services: Sequence[str] = ()
    #: Extensions without which the flow does not work.
    requires: Sequence[str] = ()
    extensions: Extensions = field(default_factory=dict)

    def targets(self, state: str, trigger: str) -> Sequence[str]:
        """The possible targets of the trigger."""
        drawn = self.states.get(state)
        found = drawn.on.get(trigger) if drawn else None
        return _as_way(found).to if found is not None else ()

    def definition(self) -> wit.Definition:
        """The definition as a record of the contract."""
        drawn = self.states.items()
        uses = [wit.NameUse_Group(name) for name in listed("`uses_groups`", self.uses_groups)]
        uses += [wit.NameUse_Person(name) for name in listed("`uses_people`", self.uses_people)]
        uses += [wit.NameUse_Calendar(name) for name in listed("`uses_calendars`", self.uses_calendars)]
        uses += [wit.NameUse_Service(name) for name in listed("`uses_services`", self.uses_services)]
        observers = self.visible_to_participants
        groups = [] if observers is None else listed("`visible_to_participants`", observers)
        return wit.Definition(
            title=self.title,
            description=self.description,
            initial=self.start,
            initiators=listed("`initiators`", self.initiators),
            states=[_wire_state(name, state) for name, state in drawn],
            transitions=[_wire_way(name, state, trigger, to) for name, state in drawn for trigger, to in state.on.items()],
            data_schema=json_or_none(self.schema),
            attributes=[wit.AttributeDeclaration(name, named(f"The type of {name}", wit.AttributeType, kind)) for name, kind in self.attributes.items()],
            instance_title=self.instance_title,
            instance_summary=self.instance_summary,
            priorities=[wit.PriorityName(name, whole(f"The priority {name}", at_least, PRIORITY_MAX)) for name, at_least in self.priorities.items()],
            separate=[listed("A list of `separate`", states) for states in listed("`separate`", self.separate)],
            reads=_flags("`reads`", wit.Reads, listed("`reads`", self.reads)),
            sole_per_entity=self.sole_per_entity,
            visibility=wit.Visibility_Tenant() if observers is None else wit.Visibility_Participants(groups),
            uses=uses,
            requires=listed("`requires`", self.requires),
            extensions=extension_list(self.extensions),
        )


def _wire_state(name: str, state: State) -> wit.State:
    joins = {None: wit.Join_None_(), "all": wit.Join_All()}
    return wit.State(
        name=name,
        title=state.title,
        description=state.description,
        kind=state.kind,
        join=joins[state.join] if state.join in joins else wit.Join_Count(whole(f"`join` of {name}", state.join)),
        own_work=state.own_work,
        extensions=extension_list(state.extensions),
    )


def _as_way(to: str | Transition) -> Transition:
    return to if isinstance(to, Transition) else way(to)


def _wire_way(source: str, state: State, trigger: str, to: str | Transition) -> wit.Transition:
    drawn = _as_way(to)
    by = [drawn.by] if isinstance(drawn.by, str) else drawn.by
    return wit.Transition(
        source=source,
        trigger=trigger,
        targets=listed(f"`to` of {trigger}", drawn.to),
        by=_flags(f"`by` of {trigger}", wit.FiredBy, by or [state.fired_by]),
        permission=drawn.needs,
        title=drawn.title,
        description=drawn.description,
        condition=drawn.condition,
        input=json_or_none(drawn.input),
        comment=named(f"`comment` of {trigger}", wit.CommentRule, drawn.comment),
        extensions=extension_list(drawn.extensions),
    )


def _flags(what: str, kind: Any, names: Sequence[str]) -> Any:
    flags = kind(0)
    for name in names:
        flags |= named(what, kind, name)
    return flags


def named(what: str, kind: Any, name: str) -> Any:
    """The member of an enumeration of the contract."""
    members = {member.lower().replace("_", "-"): value for member, value in kind.__members__.items()}
    if name not in members:
        raise fault("unknown_name", f"There is no {name}: {what} is one of {', '.join(members)}.")
    return members[name]


def json_or_none(value: Any) -> str | None:
    """The JSON text of an optional value."""
    return None if value is None else json.dumps(value)


def extension_list(extensions: Extensions) -> list[wit.Extension]:
    """Extensions as records of the contract."""
    return [wit.Extension(name, json.dumps(value)) for name, value in extensions.items()]


def listed(what: str, given: Iterable[Any]) -> list[Any]:
    """Checks that this is a list. Python would convert a single text to a list of its letters."""
    if isinstance(given, str):
        raise fault("no_list", f"{what} is a list, not the text {given}.")
    return list(given)


def whole(what: str, value: Any, most: int = _U32_MAX) -> int:
    """Checks that a number fits the contract. Otherwise the component would trap without naming the number."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and 0 <= value <= most:
        return value
    raise fault("no_whole_number", f"{what} is a whole number from 0 to {most}, not {value}.")
