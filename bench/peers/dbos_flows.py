"""The two-review approval as a DBOS workflow with two messages to wait for, driven by threads of the same process.

    dbos_flows.py [CALLERS=1,8,32] [SECONDS=10] [RUNS=3] [WARM_UP=10]      DATABASE_URL names the database
"""

import os
import resource
import sys
import threading
import time
import uuid

from dbos import DBOS, SetWorkflowID

DOCUMENT = {
    "documentId": "D-2041", "title": "Framework supply contract", "amount": 48250.5, "currency": "EUR",
    "owner": "m.keller", "department": "purchasing", "pages": 14, "checksum": "9f2c1d7e5b",
}
COLUMNS = ["flow", "start", "look up", "claim", "decide", "wait"]

DBOS(config={
    "name": "peers", "system_database_url": os.environ["DATABASE_URL"].replace("postgres://", "postgresql+psycopg://"),
    "sys_db_pool_size": 32, "run_admin_server": False, "log_level": "ERROR",
})


@DBOS.workflow()
def review(document):
    for n in (1, 2):
        decision = DBOS.recv(f"review{n}", timeout_seconds=600)
        if not decision or decision["outcome"] != "APPROVE":
            return "REJECTED"
    return "APPROVED"


def flow(steps):
    def took(step, since):
        steps.setdefault(step, []).append((time.perf_counter() - since) * 1000)
        return time.perf_counter()

    begun = now = time.perf_counter()
    key = str(uuid.uuid4())
    with SetWorkflowID(key):
        handle = DBOS.start_workflow(review, DOCUMENT)
    now = took("start", now)
    for n, who in ((1, "anna"), (2, "bert")):
        DBOS.send(key, {"who": who, "outcome": "APPROVE"}, topic=f"review{n}", idempotency_key=f"{key}-{n}")
        now = took("decide", now)
    assert handle.get_result() == "APPROVED"
    took("wait", now)
    took("flow", begun)


def run(callers, seconds):
    everything, lock, begun = {}, threading.Lock(), time.perf_counter()

    def caller():
        steps = {}
        while time.perf_counter() - begun < seconds:
            flow(steps)
        with lock:
            for step, times in steps.items():
                everything.setdefault(step, []).extend(times)

    threads = [threading.Thread(target=caller) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(everything["flow"]) / (time.perf_counter() - begun), everything


def quantiles(times):
    if not times:
        return "-"
    times = sorted(times)
    return f"{times[len(times) // 2]:.2f} / {times[(len(times) - 1) * 95 // 100]:.2f}"


def main():
    given = sys.argv[1:]
    callers, seconds, runs, warm_up = given + ["1,8,32", "10", "3", "10"][len(given):]
    DBOS.launch()
    run(8, float(warm_up))
    for count in map(int, callers.split(",")):
        done = sorted((run(count, float(seconds)) for _ in range(int(runs))), key=lambda each: each[0])
        rate, steps = done[len(done) // 2]
        rates = ", ".join(f"{each[0]:.0f}" for each in done)
        cells = " | ".join(quantiles(steps.get(column)) for column in COLUMNS)
        print(f"| dbos | {count} | {rate:.0f} ({rates}) | {cells} |", flush=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"memory dbos {memory} MiB, the callers in it", flush=True)
    DBOS.destroy()


main()
