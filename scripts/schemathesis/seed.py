"""Makes something of everything, so that there is something to find: instances in several states, people, absences."""

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


def main():
    author, reviewer, admin = sys.argv[1:]
    started = []
    for number in range(DOCUMENTS):
        body = {
            "definitionKey": FLOW,
            "entityType": "document",
            "entityId": str(number),
            "data": {"title": f"Budget {number}"},
        }
        started.append(call(author, "POST", "/v1/instances", body))
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
        "activeFrom": now.isoformat(),
        "activeUntil": (now + timedelta(days=7)).isoformat(),
    }
    call(reviewer, "POST", "/v1/people/reviewer/absences", absence)
    call(admin, "PUT", "/v1/people/author/manager", {"manager": "approver"})
    hours = {"monday": [{"from": "09:00", "to": "17:00"}]}
    call(admin, "PUT", "/v1/calendars/office", {"timeZone": "Europe/Berlin", "hours": hours})
    # Nobody listens at this port, so that there are deliveries that fail.
    call(admin, "POST", "/v1/subscriptions", {"url": "http://127.0.0.1:9/", "types": ["*"]})


main()
