"""A flow that says everything that flow logic can say at least once. It makes no sense as work."""

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from wrkflw import Actor, Assignment, Event, Facts, Flow, Graph, Offer, Plan, ServiceCall, Target, Violation, Waiting, after, all_invalid, at, at_least
from wrkflw import cancel_instance, child, days, denied, end_branch, escalate, export, fault, fire, fork, group, hours, manager_of, minutes, more_than
from wrkflw import not_now, own_work, release, remind, reoffer, router, service, spawn, stay, subscribe, task, terminal, to, to_each_member, to_group
from wrkflw import to_user, user, wait, way, working, working_days


@dataclass
class Config:
    group: str = "reviewers"
    calendar: str = "office"


@dataclass
class Case:
    name: str


AT = datetime(2099, 12, 31, 12, tzinfo=timezone.utc)
NAME = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
NOTE = {"type": "object", "properties": {"note": {"type": "string"}}}


class Everything(Flow[Config, Case]):
    def graph(self, config: Config) -> Graph:
        agree = way("All", title="Agree to it", description="It goes on.", needs="task:act", input=NOTE)
        each = {
            "AGREE": agree,
            "REFUSE": way("All", comment="none"),
            "LATE": way("All", by=["decision", "deadline"], comment="required"),
            "SHIFT": way("All", by=["signal"]),
            "MORE": way("Item", by=["signal"]),
            "AGAIN": way("All", by=["signal"]),
            "CALLED": way("All", by=["signal"]),
        }
        late = way("All", by=["deadline"])
        order = {"ANSWERED": "All", "UNANSWERED": way("All", by="failure"), "CALLED": way("All", by=["signal"]), "LATE": late}
        return Graph(
            title="Everything",
            description="All that a flow can say.",
            start="Sort",
            initiators=["authors"],
            schema=NAME,
            attributes={"text": "text", "boolean": "boolean", "decimal": "decimal", "float": "float", "timestamp": "timestamp", "bytes": "bytes"},
            instance_title="Case {/name}",
            instance_summary="{entityType} {entityId}",
            priorities={"low": 0, "high": 50},
            separate=[["Each", "Named"]],
            reads=["groups", "permissions", "comments", "inputs"],
            sole_per_entity=True,
            visible_to_participants=["approvers"],
            uses_groups=[config.group],
            uses_people=["reviewer"],
            uses_calendars=[config.calendar],
            uses_services=["shop"],
            states={
                "Sort": router("Sort", {"SORTED": way("Each", "Named", "Order", "Parts", "Own", "Item", condition="Always")}),
                "Each": task("Each", each, description="Everybody votes."),
                "Named": task("Named", {"AGREE": "All"}),
                "Order": service("Order", order),
                "Parts": wait("Parts", {"ENDED": way("All", by=["child"]), "CALLED": "All", "LATE": late}),
                "Own": own_work("Own", {"FINISH": way("All", "Two")}),
                "Item": task("Item", {"AGREE": "All"}),
                "All": task("All", {"FINISH": "Done"}, join="all"),
                "Two": task("Two", {"FINISH": "Failed"}, join=2),
                "Done": terminal("DONE"),
                "Failed": terminal("FAILED"),
            },
        )

    def start(self, facts: Facts[Config, Case], actor: Actor) -> None:
        match facts.data.name:
            case "denied":
                raise denied("denied_code", "No, never.")
            case "later":
                raise not_now("later_code", "No, not now.")
            case "invalid":
                raise all_invalid([Violation("/data/name", "one", "First."), Violation("/data/other", "two", "Second.")])
            case "fault":
                raise fault("fault_code", "It does not know.")
        if "authors" not in actor.groups or "instance:start" not in actor.permissions:
            raise denied("no_author", "Only authors.")

    def guard(self, facts: Facts[Config, Case], event: Event) -> None:
        if event.actor is None:
            raise denied("nobody", "Nobody acts.")
        match event.state, event.trigger:
            case "Each", "AGREE" if "note" not in event.input:
                event.require_comment("Say why.")
            case "Each", "SHIFT":
                event.only_requester(facts)
            case "Each", "MORE":
                event.not_by(["reviewer"])

    def transition(self, facts: Facts[Config, Case], event: Event) -> Plan:
        match event.state, event.trigger:
            case "Sort", _:
                plan = fork("Each", "Named", "Order", "Parts", "Own", _item("one"), _item("two"))
                plan.attribute("text", "words").attribute("boolean", True).attribute("decimal", "19.90").attribute("float", 1.5)
                plan.attribute("timestamp", AT).attribute("bytes", b"\x01\x02\x03").patch({"sorted": {"deep": [1, "two", None]}})
                return plan.note("sorted", "It is sorted.").publish("sorted", {"name": facts.data.name})
            case "Each", "SHIFT":
                second = next((one for one in facts.active if one.key == "two"), None)
                if second is None:
                    raise fault("no_second", "There is no second item.")
                told = _told(facts, event)
                return stay().attribute("boolean", None).cancel(second).note("shifted", "It is shifted.", told).publish("shifted", told)
            case "Each", "MORE":
                return spawn(_item("three")).note("more", "One more.", event.input)
            case "Each", "AGAIN":
                return reoffer()
            case "Each", "AGREE" if event.quorum("AGREE") == "reached":
                return to("All").publish("agreed", _told(facts, event))
            case "Each", "AGREE":
                return stay().publish("open", _told(facts, event))
            case "Own", _:
                return end_branch().publish("own", _told(facts, event))
        return self.along(facts, event)

    def assign(self, facts: Facts[Config, Case], state: str) -> Assignment:
        reviewers, calendar = group(facts.config.group), facts.config.calendar
        match state:
            case "Each":
                deadlines = [
                    remind(after(days(1)), every=hours(12)),
                    escalate(working(hours(8), calendar)),
                    fire("LATE", at(AT)),
                    cancel_instance("too late", after(days(90))),
                ]
                rest: dict[str, Any] = {"exclude": ["outsider"], "fallback": "approvers", "priority": 50, "blind": True, "deadlines": deadlines}
                called = subscribe("CALLED", "each", buffered=True)
                return to_each_member(facts.config.group, needed=at_least(2, 3), subscriptions=[called], **rest)
            case "Named":
                late = release(after(minutes(30)), since_claim=True)
                offers = [
                    Offer(label="first", to=[user("reviewer"), manager_of("author")], retain=True, deadlines=[late]),
                    Offer(label="second", to=[reviewers], owner="reviewer2", deadlines=[remind(working_days(2, calendar))]),
                    Offer(label="third", to=[reviewers], allocation="round-robin"),
                    Offer(label="fourth", to=[reviewers], allocation="least-loaded"),
                ]
                return Assignment(offers=offers, needed=more_than(1, 2))
            case "Item":
                item = json.loads(facts.entering and facts.entering.data or "{}")
                return Assignment(offers=[Offer(label=item["label"], to=[user("reviewer")])])
            case "Own":
                return to_user(facts.initiator)
        return to_group("approvers", needed=1)

    def call(self, facts: Facts[Config, Case], state: str) -> ServiceCall:
        return ServiceCall(
            service="shop",
            request={"name": facts.data.name},
            on_reply="ANSWERED",
            on_failure="UNANSWERED",
            timeout=5,
            retries=[60, 120],
            deadlines=[fire("LATE", after(days(3)))],
            subscriptions=[subscribe("CALLED", "order")],
        )

    def wait(self, facts: Facts[Config, Case], state: str) -> Waiting:
        data = {"title": facts.data.name}
        attached = child("document-approval", "document", "attached", data, on_end="ENDED")
        detached = child("document-approval", "document", "detached", data, detached=True)
        return Waiting(
            children=[attached, detached],
            deadlines=[fire("LATE", working_days(7, facts.config.calendar))],
            subscriptions=[subscribe("CALLED", "parts", buffered=True)],
        )


def _item(key: str) -> Target:
    return Target("Item", key, {"label": key})


def _told(facts: Facts[Config, Case], event: Event) -> dict[str, Any]:
    """What flow logic is told of an event."""
    return {
        "actor": event.actor and event.actor.id,
        "comment": event.comment,
        "correlation": event.signal and event.signal.correlation,
        "deciders": facts.deciders_of("Each"),
        "input": event.input,
        "sorted": len(facts.past_states("Sort")),
        "task": event.task and event.task.label,
        "undecided": event.undecided,
        "votes": event.votes("AGREE"),
    }


Logic = export(Everything)
