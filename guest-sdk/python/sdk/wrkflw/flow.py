"""A flow: the functions that the host calls."""

import json
import typing
from typing import Any, Callable, Generic, Sequence, TypeVar

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import types as wit

from .facts import C, D, Event, Facts, is_open
from .graph import Graph
from .plan import Plan, to
from .refusal import Refusal, all_invalid, fault, refusal_of, violations_of
from .typed import check, read
from .work import Assignment, JsonText, Offer, ServiceCall, Waiting, manager_of, to_nobody, to_user

A = TypeVar("A")


class Flow(Generic[C, D]):
    """The logic of a flow: `class Requests(Flow[Config, Data])`, where both are dataclasses.

    Every function is pure: no clock, no randomness, no memory between calls. Every one may raise a refusal. Only the graph is
    required; the other functions do what the graph says.
    """

    def graph(self, config: C) -> Graph:
        """The graph for these settings."""
        raise NotImplementedError

    def check(self, config: C) -> list[wit.Violation]:
        """What is wrong with the settings beyond their types."""
        return []

    def start(self, facts: Facts[C, D], actor: wit.Actor) -> None:
        """May this person start an instance with this data? The host has checked initiators and schema."""

    def guard(self, facts: Facts[C, D], event: Event) -> None:
        """May this decision or signal happen now? The host has checked who owns the task. Called before `transition`, by one host call."""

    def transition(self, facts: Facts[C, D], event: Event) -> Plan:
        """What follows? By default: the only state that the trigger leads to."""
        return self.along(facts, event)

    def assign(self, facts: Facts[C, D], state: str) -> Assignment:
        """Who works on the task state? By default: the initiator in states of own work, nobody elsewhere."""
        return to_user(facts.initiator) if self.graph(facts.config).states[state].own_work else to_nobody()

    def escalate(self, facts: Facts[C, D], state: str, overdue: wit.Overdue) -> Assignment:
        """Who gets the overdue work? By default: the managers of those who had it. Own work, and work of groups, is offered as before."""
        drawn, again = self.graph(facts.config).states[state], _returned("assign", self.assign(facts, state), Assignment)
        tasks = facts.entering.tasks if facts.entering else []
        concerned = [one for one in tasks if (one.id == overdue.task if overdue.task else is_open(one))]
        again.offers = [_upwards(one, tasks, again, drawn.title, drawn.own_work) for one in concerned]
        return again

    def call(self, facts: Facts[C, D], state: str) -> ServiceCall:
        """Which service does the service state call? By default: the service with the state's name, with the instance's data."""
        drawn = self.graph(facts.config).definition().transitions
        fired = lambda by: next((one.trigger for one in drawn if one.source == state and by in one.by), "")
        request = JsonText(facts.instance.data)
        return ServiceCall(service=state, request=request, on_reply=fired(wit.FiredBy.REPLY), on_failure=fired(wit.FiredBy.FAILURE))

    def wait(self, facts: Facts[C, D], state: str) -> Waiting:
        """What does the wait state wait for? By default: its signals."""
        return Waiting()

    def along(self, facts: Facts[C, D], event: Event) -> Plan:
        """The plan to the only state that the trigger leads to; a fault if it leads to several."""
        targets = self.graph(facts.config).targets(event.state, event.trigger)
        if len(targets) != 1:
            raise fault("no_single_target", f"{event.trigger} in {event.state} leads to no single state.")
        return to(targets[0])


def _upwards(task: wit.Task, tasks: Sequence[wit.Task], again: Assignment, title: str, own_work: bool) -> Offer:
    before = _offer_of(task, tasks, again.offers, title) or Offer(label=task.label, to=task.candidates)
    people = [task.owner] if task.owner else [person for one in task.candidates if (person := _person_of(one))]
    if own_work or not people:
        return before
    return Offer(**{**vars(before), "to": [manager_of(one) for one in people], "owner": None, "each_member": None})


def _offer_of(task: wit.Task, tasks: Sequence[wit.Task], offers: Sequence[Offer], title: str) -> Offer | None:
    """The offer that created a task: the only one with its label. Among several, the one with the same candidates, or else the one at
    the same position. A task that went to a manager has other candidates than its offer."""
    labelled = [one for one in offers if (one.label or title) == task.label]
    if len(labelled) == 1:
        return labelled[0]
    fitting = next((one for one in labelled if _fits(one, task.candidates)), None)
    if fitting or any(one.each_member for one in labelled):
        return fitting
    place = _place(task, [one for one in tasks if one.label == task.label], len(labelled))
    return None if place is None else labelled[place]


def _place(task: wit.Task, labelled: Sequence[wit.Task], offers: int) -> int | None:
    """The position of the task's offer among the offers with its label. Tasks have the order of their offers. Later tasks replace the
    cancelled ones in the same order."""
    gone = [at for at, one in enumerate(labelled) if one.status == wit.TaskStatus.CANCELLED]
    place = next(at for at, one in enumerate(labelled) if one.id == task.id)
    while place >= offers:
        before = gone[place - offers] if place - offers < len(gone) else place
        if before >= place:
            return None
        place = before
    return place


def _fits(offer: Offer, candidates: Sequence[wit.Principal]) -> bool:
    """Whether the offer would create a task with these candidates."""
    if offer.each_member:
        groups = [one.value.group if isinstance(one, wit.Principal_Member) else None for one in candidates]
        return groups == [offer.each_member]
    return list(offer.to) == list(candidates)


def _person_of(candidate: wit.Principal) -> str | None:
    if isinstance(candidate, wit.Principal_User):
        return candidate.value
    return candidate.value.person if isinstance(candidate, wit.Principal_Member) else None


def export(flow: type[Flow]) -> type:
    """Makes a component of a flow: `Logic = export(Requests)` at the end of the file."""
    base = next(one for one in typing.cast(Any, flow).__orig_bases__ if typing.get_origin(one) is Flow)
    config_type, data_type = typing.get_args(base)
    check(config_type, "The config")
    check(data_type, "The data")
    logic = flow()

    def facts(snapshot: wit.Snapshot, entering: wit.StateInstance | None = None) -> Facts:
        config = read(config_type, json.loads(snapshot.config), "/config", strict=True)
        return Facts(snapshot, config, read(data_type, json.loads(snapshot.instance.data), "/data"), entering)

    def told(snapshot: wit.Snapshot, entering: wit.StateInstance | None = None) -> Facts:
        try:
            return facts(snapshot, entering)
        except Refusal as refusal:
            problems = "; ".join(f"{one.field}: {one.message}" for one in violations_of(refusal))
            raise fault("unreadable", f"The flow cannot read {problems}")

    def work(snapshot: wit.Snapshot, entry: wit.Entry) -> wit.Work:
        known = told(snapshot, next((one for one in snapshot.active if one.id == entry.state_instance), None))
        state = logic.graph(known.config).states.get(entry.state)
        if state is None:
            raise fault("unknown_state", f"This flow knows no state {entry.state}.")
        if isinstance(state.kind, wit.StateKind_Service):
            return wit.Work_Service(_returned("call", logic.call(known, entry.state), ServiceCall).wire())
        if isinstance(state.kind, wit.StateKind_Wait):
            return wit.Work_Wait(_returned("wait", logic.wait(known, entry.state), Waiting).wire())
        if isinstance(entry.cause, wit.EntryCause_Overdue):
            again = logic.escalate(known, entry.state, entry.cause.value)
            return wit.Work_Task(_returned("escalate", again, Assignment).wire(state.title))
        return wit.Work_Task(_returned("assign", logic.assign(known, entry.state), Assignment).wire(state.title))

    class Logic(exports.Logic):
        def describe(self, config: str) -> wit.Definition:
            return _answer(violations_of, lambda: described(config))

        def start(self, facts: wit.Snapshot, by: wit.Actor) -> None:
            _answer(refusal_of, lambda: started(facts, by))

        def transition(self, facts: wit.Snapshot, event: wit.Event) -> wit.Plan:
            return _answer(refusal_of, lambda: planned(facts, event))

        def enter(self, facts: wit.Snapshot, entries: list[wit.Entry]) -> list[wit.Work]:
            return _answer(refusal_of, lambda: [work(facts, entry) for entry in entries])

    def described(text: str) -> wit.Definition:
        config = read(config_type, json.loads(text), "", strict=True)
        if violations := logic.check(config):
            raise all_invalid(violations)
        return _returned("graph", logic.graph(config), Graph).definition()

    def started(snapshot: wit.Snapshot, by: wit.Actor) -> None:
        logic.start(facts(snapshot), by)

    def planned(snapshot: wit.Snapshot, record: wit.Event) -> wit.Plan:
        known = told(snapshot)
        event = Event(record, known)
        if event.actor is not None:
            logic.guard(known, event)
        plan = _returned("transition", logic.transition(known, event), Plan)
        return plan.wire(logic.graph(known.config).attributes)

    return Logic


def _returned(function: str, answer: Any, kind: type[A]) -> A:
    """Checks the type of an answer. A missing `return` would otherwise not be noticed."""
    if not isinstance(answer, kind):
        raise fault("no_answer", f"`{function}` returns no {kind.__name__}, but {answer!r:.100}.")
    return answer


def _answer(wire: Callable[[Exception], Any], answer: Callable[[], Any]) -> Any:
    try:
        return answer()
    except Exception as raised:
        raise Err(wire(raised)) from None
