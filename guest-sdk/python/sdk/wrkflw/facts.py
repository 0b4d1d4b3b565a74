"""The input of a flow: the facts of one moment and the event, in the author's own types."""

import json
from datetime import datetime
from functools import cached_property
from typing import Any, Collection, Generic, Literal, TypeVar

from wit_world.imports import types as wit

from .graph import listed
from .moment import moment
from .refusal import denied, fault, invalid
from .typed import check, read

C = TypeVar("C")
D = TypeVar("D")
#: Whether the result of a vote is certain: enough votes for it, too few left, or open.
Quorum = Literal["reached", "impossible", "open"]


class Facts(Generic[C, D]):
    """What is known about an instance at one moment. `assign`, `call` and `wait` see all states as entered."""

    def __init__(self, snapshot: wit.Snapshot, config: C, data: D, entering: wit.StateInstance | None = None):
        #: The settings of the definition version.
        self.config = config
        #: The instance's data. Keep amounts as strings: a JSON number becomes a `float`.
        self.data = data
        self.instance = snapshot.instance
        #: The active states; more than one after a fork.
        self.active = snapshot.active
        #: Joins that some branches have reached and others have not.
        self.waiting = snapshot.waiting
        #: The newest states that the instance has left, oldest first. Very long texts are left out.
        self.past = snapshot.past
        #: Every decision of the instance. Always complete.
        self.deciders = snapshot.deciders
        #: What was left out of `past`.
        self.omitted = snapshot.omitted
        #: The state instance that needs work; only in `assign`, `escalate`, `call` and `wait`.
        self.entering = entering
        self._now = snapshot.now

    @cached_property
    def now(self) -> datetime:
        """The time of the command. There is no other clock."""
        return moment(self._now)

    @property
    def initiator(self) -> str:
        """Who started the instance."""
        return self.instance.initiator

    def is_requester(self, person: str) -> bool:
        """Whether this person requested the instance, its predecessor or its parent."""
        return person in self.instance.requesters

    def attribute(self, name: str) -> Any:
        """The value of an attribute. A decimal and a timestamp are texts."""
        found = next((one for one in self.instance.attributes if one.name == name), None)
        return found.value.value if found and found.value else None

    def state_instance(self, state: str) -> wit.StateInstance | None:
        """The active state instance in a state."""
        return next((one for one in self.active if one.name == state), None)

    def past_states(self, state: str) -> list[wit.PastState]:
        """The ended instances of a state, oldest first."""
        return [one for one in self.past if one.name == state]

    def deciders_of(self, state: str) -> list[str]:
        """Everybody who decided in this state, or on whose behalf somebody did, oldest first. Complete, unlike `past`."""
        there = [(one.actor, one.on_behalf_of) for one in self.deciders if one.state == state]
        return [person for pair in there for person in pair if person is not None]


class Event:
    """An event that has happened in a state, or that somebody proposes."""

    def __init__(self, event: wit.Event, facts: Facts):
        here = next((one for one in facts.active if one.id == event.state_instance), None)
        if here is None:
            raise fault("unknown_state_instance", f"No active state has the id {event.state_instance}.")
        self.state = here.name
        self.trigger = event.trigger
        self.source = event.source
        #: The state instance before the event.
        self.state_instance = here
        #: The form of a decision, the payload of a signal, the reply of a service or the data of a child.
        self.input: Any = json.loads(event.input)

    def input_as(self, kind: type[D]) -> D:
        """The input as one of the author's dataclasses; `invalid` if it does not fit."""
        check(kind, "The input")
        return read(kind, self.input, "/input")

    def _of(self, kind: Any) -> Any:
        return self.source.value if isinstance(self.source, kind) else None

    @property
    def actor(self) -> wit.Actor | None:
        """The person who decides or sends the signal, if one does."""
        source = self._of((wit.EventSource_Task, wit.EventSource_Signal))
        return source.actor if source else None

    @property
    def comment(self) -> str:
        """The trimmed comment of the decision; empty if there is none."""
        decision = self._of(wit.EventSource_Task)
        return ((decision and decision.comment) or "").strip()

    @property
    def task(self) -> wit.Task | None:
        """The task being decided."""
        decision = self._of(wit.EventSource_Task)
        return next((one for one in self.state_instance.tasks if decision and one.id == decision.task), None)

    @property
    def signal(self) -> wit.ReceivedSignal | None:
        return self._of(wit.EventSource_Signal)

    @property
    def deadline(self) -> wit.PassedDeadline | None:
        """The deadline that passed."""
        return self._of(wit.EventSource_Deadline)

    @property
    def service(self) -> wit.ServiceAnswer | None:
        """The result of the service call."""
        return self._of(wit.EventSource_Service)

    @property
    def child(self) -> wit.EndedChild | None:
        """The child instance that ended."""
        return self._of(wit.EventSource_Child)

    def require_comment(self, message: str) -> None:
        """Refuses a decision without a comment, where that depends on data; otherwise the graph says `comment="required"`."""
        if not self.comment:
            raise invalid("/comment", "required", message)

    def only_requester(self, facts: Facts) -> None:
        """Refuses everybody but requesters, as for a withdrawal by a signal. Allows an event without a person."""
        if self.actor and not facts.is_requester(self.actor.id):
            raise denied("not_requester", "Only those whose request it is may do this.")

    def not_by(self, people: Collection[str]) -> None:
        """Refuses these people and anyone who acts for them, such as those who decided elsewhere."""
        refused = listed("`not_by`", people)
        if self.actor and (self.actor.id in refused or self.actor.on_behalf_of in refused):
            raise denied("four_eyes", "You have decided on this elsewhere.")

    def votes(self, trigger: str) -> int:
        """Decisions for this trigger in the state instance, including the one being cast."""
        cast = isinstance(self.source, wit.EventSource_Task) and self.trigger == trigger
        return cast + sum(1 for one in self.state_instance.tasks if one.decision and one.decision.outcome == trigger)

    @property
    def undecided(self) -> int:
        """Tasks that are still undecided once this decision is cast."""
        this = self.task
        return sum(1 for one in self.state_instance.tasks if is_open(one) and one is not this)

    def quorum(self, trigger: str, needed: int | wit.Needed | None = None) -> Quorum:
        """Whether enough people decide for this trigger: as many as the assignment needs, or `needed` if it is given, as for a veto."""
        tasks = sum(1 for one in self.state_instance.tasks if one.status != wit.TaskStatus.CANCELLED)
        votes, enough = self.votes(trigger), count_of(self.state_instance.needed if needed is None else needed, tasks)
        if votes >= enough:
            return "reached"
        return "impossible" if votes + self.undecided < enough else "open"


def is_open(task: wit.Task) -> bool:
    """Whether the task is neither decided nor cancelled."""
    return task.status in (wit.TaskStatus.PENDING, wit.TaskStatus.CLAIMED)


def count_of(needed: int | wit.Needed, tasks: int) -> int:
    """The number of decisions needed out of this many tasks, at least one."""
    if isinstance(needed, int):
        return max(needed, 1)
    if isinstance(needed, wit.Needed_AtLeast):
        return max(-(-tasks * needed.value.numerator // needed.value.denominator), 1)
    if isinstance(needed, wit.Needed_MoreThan):
        return tasks * needed.value.numerator // needed.value.denominator + 1
    return max(needed.value, 1)
