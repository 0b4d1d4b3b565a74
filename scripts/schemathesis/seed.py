"""Makes something of everything, so that there is something to find: instances of each sample flow in several states -
with deadlines, votes, branches, signals - people, absences."""

import json
import os
import sys
import urllib.request
from datetime import datetime, timedelta, timezone

BASE = os.environ["TARGET_URL"]
FLOW = "document-approval"
DOCUMENTS = 12


def call(token, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(BASE + path, data, headers, method=method)
    with urllib.request.urlopen(request) as response:
        text = response.read()
        return json.loads(text) if text else None


def person(admin, name, groups=()):
    call(admin, "PUT", f"/v1/people/{name}", {"name": name})
    for group in groups:
        call(admin, "PUT", f"/v1/groups/{group}/members/{name}", {})


def start(token, flow, kind, number, data):
    body = {"definitionKey": flow, "entityType": kind, "entityId": str(number), "data": data}
    return call(token, "POST", "/v1/instances", body)["instance"]["id"]


def decide(token, instance, state, decision, name=None):
    """Decides the first open task of a state, or the one that is offered to this person."""
    states = call(token, "GET", f"/v1/instances/{instance}")["states"]
    tasks = next(found["tasks"] for found in states if found["name"] == state)
    task = next(
        task
        for task in tasks
        if task["status"] in ("PENDING", "CLAIMED")
        and (name is None or name in (one["id"] for one in task["candidates"]))
    )
    if task["status"] == "PENDING":
        call(token, "POST", f"/v1/tasks/{task['id']}/claim")
    call(token, "POST", f"/v1/tasks/{task['id']}/decide", decision)


def purchases(author, admin, people):
    """One waits for a manager, one for a quorum of votes, one is withdrawn by a signal; each has deadlines."""
    for group in ("cfo", "finance-office"):
        call(admin, "PUT", f"/v1/groups/{group}", {"name": group})
    for name in ("fay", "finn", "flora", "frank", "fred"):
        person(admin, name, ["finance-office"])
    person(admin, "author")
    person(admin, "approver", ["cfo"])
    call(admin, "PUT", "/v1/people/author/manager", {"manager": "approver"})
    made = [
        start(
            author,
            "purchase-approval",
            "purchase",
            number,
            {"amount": amount, "currency": "EUR", "supplier": "Desks Ltd"},
        )
        for number, amount in enumerate((100, 2000, 90000))
    ]
    approve = {"outcome": "APPROVE", "input": {"costCentre": "4711"}}
    decide(people["approver"], made[1], "Manager", approve)
    decide(people["fay"], made[1], "Finance", approve, name="fay")
    call(author, "POST", f"/v1/instances/{made[2]}/signals/WITHDRAW", {"input": {}})


def orders(author, admin, people):
    """One is new, one is in three branches of which one waits for a payment, one waits at its join."""
    for group, member in (
        ("intake", "fay"),
        ("credit", "approver"),
        ("warehouse", "reviewer"),
        ("dispatch", "finn"),
    ):
        call(admin, "PUT", f"/v1/groups/{group}", {"name": group})
        person(admin, member, [group])
    made = []
    for number in range(3):
        data = {
            "customer": "Lamps Inc",
            "total": 1999.9,
            "weight": 12.5,
            "express": True,
            "inAdvance": number == 1,
            "shipBy": (datetime.now(timezone.utc) + timedelta(days=7)).isoformat(),
            "lines": ["2 lamps", "1 bulb"],
        }
        made.append(start(author, "order-handling", "order", number, data))
    for order in made[1:]:
        decide(people["fay"], order, "Received", {"outcome": "ACCEPT"})
    decide(people["approver"], made[2], "CreditCheck", {"outcome": "GRANT"})


def main():
    author, reviewer, admin, approver, fay = sys.argv[1:]
    people = {"approver": approver, "fay": fay}
    purchases(author, admin, people)
    orders(author, admin, people)
    started = []
    for number in range(DOCUMENTS):
        body = {
            "definitionKey": FLOW,
            "entityType": "document",
            "entityId": str(number),
            "data": {"title": f"Budget {number}"},
        }
        started.append(call(author, "POST", "/v1/instances", body)["instance"])
    tasks = [instance["states"][0]["tasks"][0]["id"] for instance in started]
    for task in tasks[:6]:
        call(reviewer, "POST", f"/v1/tasks/{task}/claim")
    for task in tasks[:3]:
        call(reviewer, "POST", f"/v1/tasks/{task}/decide", {"outcome": "APPROVE"})
    for instance, action in zip(started[-2:], ("suspend", "cancel")):
        call(admin, "POST", f"/v1/instances/{instance['id']}/{action}", {"reason": "as an example"})
    now = datetime.now(timezone.utc)
    absence = {
        "substitute": "reviewer2",
        "from": now.isoformat(),
        "until": (now + timedelta(days=7)).isoformat(),
    }
    call(reviewer, "POST", "/v1/people/reviewer/absences", absence)
    hours = {"monday": [{"from": "09:00", "until": "17:00"}]}
    call(admin, "PUT", "/v1/calendars/office", {"timeZone": "Europe/Berlin", "hours": hours})
    # Nothing listens at this port, so some deliveries fail.
    call(admin, "POST", "/v1/subscriptions", {"url": "http://127.0.0.1:9/", "types": ["*"]})


main()
