"""An expense: small ones pass, others need the manager and two of finance, and then receipts within seven working days."""

from dataclasses import dataclass

from wrkflw import Actor, Assignment, Event, Facts, Flow, Graph, Plan, Waiting, after, escalate, export, fire, hours, invalid, remind
from wrkflw import router, stay, subscribe, task, terminal, to, to_each_member, to_manager_of, wait, way, working_days


@dataclass
class Config:
    finance: str = "reviewers"
    limit: int = 100


@dataclass
class Expense:
    amount: int
    number: str


SCHEMA = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}, "number": {"type": "string"}, "votes": {"type": "integer"}},
    "required": ["amount", "number"],
}
RECEIPTS = {"type": "object", "properties": {"pages": {"type": "integer", "minimum": 1}}, "required": ["pages"]}


class Expenses(Flow[Config, Expense]):
    def graph(self, config: Config) -> Graph:
        decline = way("Declined", comment="required", description="Say why.")
        return Graph(
            title="Expense",
            description="What somebody spent.",
            start="Sort",
            schema=SCHEMA,
            instance_title="Expense {/number}",
            instance_summary="{/amount} in all",
            attributes={"number": "text", "amount": "decimal"},
            priorities={"low": 0, "high": 50},
            reads=["groups", "comments"],
            uses_groups=[config.finance],
            uses_calendars=["office"],
            states={
                "Sort": router("Sort", {"SORTED": way("Manager", "Paid", condition="Up to the limit it is paid at once")}),
                "Manager": task("Manager", {"APPROVE": "Vote", "DECLINE": way("Declined", comment="required")}),
                "Vote": task("Vote", {"APPROVE": way("Receipts", title="Pay it"), "DECLINE": decline}, description="Two of finance decide."),
                "Receipts": wait("Receipts", {"RECEIVED": way("Paid", input=RECEIPTS), "LATE": way("Lapsed", by=["deadline"])}),
                "Paid": terminal("PAID"),
                "Declined": terminal("DECLINED"),
                "Lapsed": terminal("LAPSED"),
            },
        )

    def start(self, facts: Facts[Config, Expense], actor: Actor) -> None:
        if facts.data.amount <= 0:
            raise invalid("/data/amount", "range", "It is above 0.")

    def transition(self, facts: Facts[Config, Expense], event: Event) -> Plan:
        if event.state == "Sort":
            paid = facts.data.amount <= facts.config.limit
            return to("Paid" if paid else "Manager").attribute("number", facts.data.number).attribute("amount", facts.data.amount)
        if event.state != "Vote":
            return self.along(facts, event)
        votes = event.votes("APPROVE")
        match event.trigger, event.quorum("APPROVE"):
            case "APPROVE", "reached":
                return to("Receipts").patch({"votes": votes}).publish("approved", {"votes": votes})
            case "APPROVE", _:
                return stay().note("open", "One more is needed.", {"votes": votes})
            case _, "impossible":
                return self.along(facts, event)
            case _:
                return stay()

    def assign(self, facts: Facts[Config, Expense], state: str) -> Assignment:
        if state == "Manager":
            return to_manager_of(facts.initiator, deadlines=[escalate(after(hours(48)))])
        return to_each_member(facts.config.finance, needed=2, priority=50, deadlines=[remind(after(hours(24)), every=hours(24))])

    def wait(self, facts: Facts[Config, Expense], state: str) -> Waiting:
        return Waiting(subscriptions=[subscribe("RECEIVED", facts.data.number)], deadlines=[fire("LATE", working_days(7, "office"))])


Logic = export(Expenses)
