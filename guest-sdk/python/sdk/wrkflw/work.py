"""The work in a state: the tasks and their deadlines, the request to a service, the signals and children of a wait."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Iterable, Literal, Mapping, Sequence

from wit_world.imports import types as wit

from .graph import PRIORITY_MAX, Extensions, extension_list, listed, named, whole
from .moment import instant


def user(who: str) -> wit.Principal:
    return wit.Principal_User(who)


def group(which: str) -> wit.Principal:
    return wit.Principal_Group(which)


def manager_of(who: str) -> wit.Principal:
    """The manager of this person at the creation of the task."""
    return wit.Principal_ManagerOf(who)


def member(person: str, of: str) -> wit.Principal:
    """This person, as long as they are a member of the group."""
    return wit.Principal_Member(wit.Member(person, of))


def minutes(count: int) -> int:
    return count * 60


def hours(count: int) -> int:
    return minutes(count) * 60


def days(count: int) -> int:
    return hours(count) * 24


def after(seconds: int) -> wit.Due:
    """This many seconds after the beginning: `after(hours(48))`."""
    return wit.Due_After(whole("`after`", seconds))


def working(seconds: int, calendar: str) -> wit.Due:
    """The same, counting working time by a calendar of the tenant."""
    return wit.Due_Working(wit.WorkingTime(whole("A time of `working`", seconds), calendar))


def working_days(count: int, calendar: str) -> wit.Due:
    """At the end of the last of this many working days."""
    return wit.Due_WorkingDays(wit.WorkingDays(whole("A number of `working_days`", count), calendar))


def at(when: datetime) -> wit.Due:
    return wit.Due_At(instant(when))


def _deadline(due: wit.Due, action: wit.OverdueAction, every: int | None, since_claim: bool) -> wit.Deadline:
    since = wit.Since.CLAIMED if since_claim else wit.Since.CREATED
    repeat = None if every is None else whole("`every`", every)
    return wit.Deadline(when=due, since=since, repeat=repeat, action=action)


def remind(due: wit.Due, every: int | None = None, since_claim: bool = False) -> wit.Deadline:
    """A reminder: `remind(after(hours(24)), every=hours(24))`. `since_claim` is for deadlines of an offer."""
    return _deadline(due, wit.OverdueAction_Remind(), every, since_claim)


def escalate(due: wit.Due, every: int | None = None, since_claim: bool = False) -> wit.Deadline:
    """Calls the flow's `escalate`."""
    return _deadline(due, wit.OverdueAction_Escalate(), every, since_claim)


def release(due: wit.Due, every: int | None = None, since_claim: bool = False) -> wit.Deadline:
    """Takes the task from its owner and offers it again."""
    return _deadline(due, wit.OverdueAction_Release(), every, since_claim)


def fire(trigger: str, due: wit.Due, every: int | None = None, since_claim: bool = False) -> wit.Deadline:
    """Fires a trigger of the state. The graph must allow it with `deadline`."""
    return _deadline(due, wit.OverdueAction_Fire(trigger), every, since_claim)


def cancel_instance(reason: str, due: wit.Due) -> wit.Deadline:
    """Cancels the instance with all its branches and children."""
    return _deadline(due, wit.OverdueAction_Cancel(reason), None, False)


@dataclass(kw_only=True)
class Offer:
    """One task, or one for each member of a group."""

    #: Distinguishes the task from others of the same state. Without one: the title of the state.
    label: str | None = None
    #: Who may claim it.
    to: Sequence[wit.Principal] = ()
    #: The owner from the start, without a claim.
    owner: str | None = None
    #: Creates one such task for each member of this group.
    each_member: str | None = None
    #: A candidate who is familiar with the instance owns it from the start.
    retain: bool = False
    #: Whether the host gives the task to one of its candidates.
    allocation: Literal["offered", "round-robin", "least-loaded"] = "offered"
    deadlines: Sequence[wit.Deadline] = ()
    extensions: Extensions = field(default_factory=dict)

    def wire(self, title: str) -> wit.Offer:
        return wit.Offer(
            label=title if self.label is None else self.label,
            candidates=listed("`to` of an offer", self.to),
            owner=self.owner,
            each_member=self.each_member,
            retain=self.retain,
            allocation=named("`allocation`", wit.Allocation, self.allocation),
            deadlines=list(self.deadlines),
            extensions=extension_list(self.extensions),
        )


def at_least(numerator: int, denominator: int) -> wit.Needed:
    """At least this fraction of the tasks."""
    return wit.Needed_AtLeast(_part(numerator, denominator))


def more_than(numerator: int, denominator: int) -> wit.Needed:
    """More than this fraction of the tasks."""
    return wit.Needed_MoreThan(_part(numerator, denominator))


def _part(numerator: int, denominator: int) -> wit.Fraction:
    return wit.Fraction(whole("A numerator", numerator), whole("A denominator", denominator))


def needed_of(needed: int | wit.Needed) -> wit.Needed:
    return wit.Needed_Count(whole("`needed`", needed)) if isinstance(needed, (int, float)) else needed


@dataclass(kw_only=True)
class Assignment:
    """Who gets the work of a task state."""

    offers: Sequence[Offer]
    #: How many decisions with the same outcome the state needs: a number, or `at_least(2, 3)` or `more_than(1, 2)` of its tasks.
    needed: int | wit.Needed = 1
    #: People who must not decide.
    exclude: Sequence[str] = ()
    #: The group that gets the work when nobody else is left.
    fallback: str | None = None
    #: A higher number is more urgent.
    priority: int = 0
    #: Deadlines of the state as a whole.
    deadlines: Sequence[wit.Deadline] = ()
    #: Signal subscriptions besides signals to the instance, by `subscribe`.
    subscriptions: Sequence[wit.SignalSubscription] = ()
    #: Other people are not told the decisions until the state has ended.
    blind: bool = False
    extensions: Extensions = field(default_factory=dict)

    def wire(self, title: str) -> wit.Assignment:
        return wit.Assignment(
            offers=[offer.wire(title) for offer in self.offers],
            needed=needed_of(self.needed),
            exclude=listed("`exclude`", self.exclude),
            fallback=self.fallback,
            priority=whole("A priority", self.priority, PRIORITY_MAX),
            deadlines=list(self.deadlines),
            subscriptions=list(self.subscriptions),
            blind=self.blind,
            extensions=extension_list(self.extensions),
        )


def to_group(which: str, **rest: Any) -> Assignment:
    """One task, which any member of the group may claim."""
    return Assignment(offers=[Offer(to=[group(which)])], **rest)


def to_user(who: str, **rest: Any) -> Assignment:
    """One task, for this person."""
    return Assignment(offers=[Offer(to=[user(who)])], **rest)


def to_manager_of(who: str, **rest: Any) -> Assignment:
    """One task, for the manager of this person."""
    return Assignment(offers=[Offer(to=[manager_of(who)])], **rest)


def to_each_member(which: str, **rest: Any) -> Assignment:
    """A task for each member of the group, which only that member may do."""
    return Assignment(offers=[Offer(each_member=which)], **rest)


def to_each(people: Iterable[str], **rest: Any) -> Assignment:
    """A task for each of these people."""
    return Assignment(offers=[Offer(label=one, to=[user(one)]) for one in listed("`to_each`", people)], **rest)


def to_nobody(**rest: Any) -> Assignment:
    """No task: the host tries the fallbacks."""
    return Assignment(offers=[], **rest)


def subscribe(trigger: str, correlation: str | None = None, buffered: bool = False) -> wit.SignalSubscription:
    """A subscription of a state to a signal: under a correlation key, or with buffered signals, or both."""
    return wit.SignalSubscription(trigger=trigger, correlation=correlation, buffered=buffered)


@dataclass(frozen=True)
class JsonText:
    """An unparsed JSON text, whose numbers keep their digits."""

    text: str


@dataclass(kw_only=True)
class ServiceCall:
    """The call of a service state."""

    #: A service that the operator has configured by this name.
    service: str
    request: Any
    on_reply: str
    on_failure: str
    #: The timeout of each attempt in seconds.
    timeout: int = 30
    #: Pauses before further attempts.
    retries: Sequence[int] = (10, minutes(1), minutes(5))
    deadlines: Sequence[wit.Deadline] = ()
    subscriptions: Sequence[wit.SignalSubscription] = ()

    def wire(self) -> wit.ServiceCall:
        request = self.request
        return wit.ServiceCall(
            service=self.service,
            request=request.text if isinstance(request, JsonText) else json.dumps(request),
            timeout=whole("A timeout", self.timeout),
            retries=[whole("A pause of `retries`", pause) for pause in self.retries],
            on_reply=self.on_reply,
            on_failure=self.on_failure,
            deadlines=list(self.deadlines),
            subscriptions=list(self.subscriptions),
        )


def child(
    key: str, entity_type: str, entity_id: str, data: Mapping[str, Any] | None = None, on_end: str | None = None, detached: bool = False
) -> wit.Child:
    """An instance to start; `on_end` is fired when it ends. It is cancelled when the state ends before it, unless it is `detached`."""
    text = json.dumps(data or {})
    return wit.Child(key=key, entity_type=entity_type, entity_id=entity_id, data=text, on_end=on_end, detached=detached)


@dataclass(kw_only=True)
class Waiting:
    """What a wait state waits for."""

    #: Signal subscriptions of the state, by `subscribe`. Without them, signals are sent to the instance.
    subscriptions: Sequence[wit.SignalSubscription] = ()
    #: Instances to start. Their ends fire triggers.
    children: Sequence[wit.Child] = ()
    deadlines: Sequence[wit.Deadline] = ()

    def wire(self) -> wit.Waiting:
        return wit.Waiting(
            deadlines=list(self.deadlines),
            subscriptions=list(self.subscriptions),
            children=list(self.children),
        )
