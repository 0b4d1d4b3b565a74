#!/usr/bin/env python3
"""Prints the files of the host that one decide passes, with their lines.

    scripts/decide_path.py [--functions]

It starts a host with the role `api` on a private PostgreSQL. Two instances of the
sample flow are started, and a first reviewer decides one of them, so that the flow is
compiled and its version is cached. Then a reviewer of whom the host knows nothing yet
decides the other one by `POST /v1/tasks/{id}/decide`, without a claim before it. The
connection is open before. This decide verifies the token, reads the instance from the
database, claims and decides the task, enters the next state and offers its task.

Before it, a breakpoint is set at each function of the host, and each that is reached is
noted. A file is on the path if one of its functions is. Code of dependencies, generated
and derived code and tests are left out, and files of which only functions ran that also
run while the host does nothing. Statements in files of their own are listed apart. With
--functions, each file is followed by the lines of its functions that ran.

It needs Linux on x86-64 and the right to trace processes. PROGRAM=... is a program of the
profile `dev` that is built already.
"""

import argparse
import ctypes
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# How long the host is watched while it does nothing.
IDLE_SECONDS = 2
# The requests and options of ptrace, and the place of the instruction pointer among the registers.
CONT, GETREGS, SETREGS, DETACH, SEIZE, INTERRUPT = 7, 12, 13, 17, 0x4206, 0x4207
TRACECLONE, EVENT_STOP, ALL_THREADS = 8, 128, 0x40000000
REGISTERS, RIP = 27, 16
BREAKPOINT = b"\xcc"

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, thread, data=None):
    """Fails with `ProcessLookupError` if the thread has ended."""
    if libc.ptrace(request, thread, None, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Tracer:
    """Notes which of these addresses a process reaches. Each breakpoint is removed when it is reached."""

    def __init__(self, process, addresses):
        self.process = process
        self.memory = open(f"/proc/{process}/mem", "r+b", buffering=0)
        self.threads, self.stopped, self.signals = set(), set(), []
        self.reached = set()
        for _ in range(3):  # Threads may begin meanwhile.
            for thread in map(int, os.listdir(f"/proc/{process}/task")):
                if thread not in self.threads:
                    ptrace(SEIZE, thread, TRACECLONE)
                    self.threads.add(thread)
        self.original = {address: self.read(address) for address in addresses}

    def read(self, address):
        self.memory.seek(address)
        return self.memory.read(1)

    def write(self, address, byte):
        self.memory.seek(address)
        self.memory.write(byte)

    def set(self):
        """Sets all breakpoints. None is noted as reached."""
        self.stop()
        self.reached = set()
        for address in self.original:
            self.write(address, BREAKPOINT)
        self.go_on()

    def end(self):
        self.stop()
        for address, byte in self.original.items():
            self.write(address, byte)
        for thread in self.threads:
            ptrace(DETACH, thread)

    def stop(self):
        for thread in self.threads - self.stopped:
            ptrace(INTERRUPT, thread)
        while self.threads - self.stopped:
            self.event(block=True)

    def go_on(self):
        delivered, self.signals = dict(self.signals), []
        for thread in list(self.stopped):
            self.stopped.discard(thread)
            ptrace(CONT, thread, delivered.get(thread, 0))

    def watch(self, until):
        """Notes what is reached, until the condition holds."""
        while not until():
            if self.event(block=False):
                self.go_on()
            else:
                time.sleep(0.0002)

    def event(self, block):
        """Takes the next event, whose thread is stopped then. False if there is none."""
        thread, status = os.waitpid(-1, ALL_THREADS | (0 if block else os.WNOHANG))
        if thread == 0:
            return False
        if not os.WIFSTOPPED(status):
            self.threads.discard(thread)
            self.stopped.discard(thread)
            return True
        self.threads.add(thread)
        self.stopped.add(thread)
        number, event = os.WSTOPSIG(status), status >> 16
        if event == 0 and not (number == signal.SIGTRAP and self.at_breakpoint(thread)):
            self.signals.append((thread, number))
        return True

    def at_breakpoint(self, thread):
        registers = (ctypes.c_ulonglong * REGISTERS)()
        ptrace(GETREGS, thread, ctypes.cast(registers, ctypes.c_void_p))
        address = registers[RIP] - 1
        if address not in self.original:
            return False
        if address not in self.reached:
            self.reached.add(address)
            self.write(address, self.original[address])
        registers[RIP] = address
        ptrace(SETREGS, thread, ctypes.cast(registers, ctypes.c_void_p))
        return True


def build():
    """The path of the program."""
    given = os.environ.get("PROGRAM")
    if given:
        return pathlib.Path(given).resolve()
    subprocess.run(["cargo", "build", "--quiet", "--package", "wrkflw"], cwd=ROOT, check=True)
    return ROOT / "target" / "debug" / "wrkflw"


def started(process, log):
    """What a host says of itself when it is ready."""
    told = ""
    for line in process.stdout:
        told += line
        if line == "}\n":
            return json.loads(told)
    sys.exit(f"the host did not start:\n{log.read_text()}")


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait()


class Host:
    """A host with the role `api`, and tokens of its people."""

    def __init__(self, program, work, database):
        self.work = work
        quiet = {name: value for name, value in os.environ.items() if not name.startswith("WRKFLW_")}
        log = work / "log"

        def run(environment, *arguments):
            return subprocess.Popen(
                [program, "--output", "json", *arguments],
                cwd=work, env=environment, stdout=subprocess.PIPE, stderr=log.open("a"), text=True,
            )

        # It makes the people, their groups, the flow and the secrets.
        first = run(quiet, "dev", "--empty", "--port", "0", "--log", "warn", "--database-url", database)
        started(first, log)
        self.tokens = {
            person: subprocess.check_output([program, "token", person], cwd=work, env=quiet, text=True).strip()
            for person in ["author", "reviewer", "reviewer2"]
        }
        stop(first)
        secret = {name: (work / ".wrkflw" / f"{name}.secret").read_text().strip() for name in ["jwt", "seal"]}
        serving = {
            **quiet,
            "WRKFLW_DATABASE_URL": database,
            "WRKFLW_JWT_SECRET": secret["jwt"],
            "WRKFLW_SEAL_KEYS": f"dev:{secret['seal']}",
            "WRKFLW_ROLES": "api",
            "WRKFLW_LISTEN": "127.0.0.1:0",
            "WRKFLW_LOG": "info",
        }
        self.process = run(serving, "serve")
        self.connection = http.client.HTTPConnection(started(self.process, log)["listen"])

    def post(self, person, path, body):
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.tokens[person]}"}
        self.connection.request("POST", path, json.dumps(body), headers)
        response = self.connection.getresponse()
        answer = response.read()
        if response.status not in (200, 201):
            sys.exit(f"{path}: {response.status} {answer.decode()}")
        return json.loads(answer)

    def start(self, number):
        """Starts an instance. Returns its task."""
        answer = self.post("author", "/v1/instances", {
            "definitionKey": "document-approval", "entityType": "path", "entityId": str(number),
            "data": {"title": "Framework supply contract"},
        })
        return answer["instance"]["states"][0]["tasks"][0]["id"]

    def decide(self, person, task):
        answer = self.post(person, f"/v1/tasks/{task}/decide", {"outcome": "APPROVE"})
        assert answer["result"] == "changed", answer


def entries(program, process):
    """The addresses of the host's own functions in the process."""
    symbols = subprocess.check_output(["nm", "--defined-only", program], text=True)
    own = re.findall(r"^([0-9a-f]+) [tT] _\S*wrkflw", symbols, re.MULTILINE)
    maps = pathlib.Path(f"/proc/{process}/maps").read_text()
    base = min(int(line.split("-")[0], 16) for line in maps.splitlines() if line.endswith(str(program)))
    return base, {base + int(address, 16) for address in own}


def places(program, addresses):
    """The file and the line of each address."""
    asked = "\n".join(hex(address) for address in addresses)
    told = subprocess.run(["addr2line", "-e", program], input=asked, text=True, capture_output=True, check=True)
    for address, place in zip(addresses, told.stdout.splitlines()):
        file, _, line = place.split(" ")[0].rpartition(":")
        if line.isdigit():
            yield address, file, int(line)


class Source:
    """A file of ours, and the first and last line of each of its functions."""

    def __init__(self, path):
        self.path = path
        lines = (ROOT / path).read_text().splitlines()
        self.lines = len(lines)
        for number, line in enumerate(lines):
            if line == "#[cfg(test)]" and re.match(r"(pub(\(\w+\))? )?mod tests \{", lines[number + 1]):
                self.lines = number
                break
        self.functions = []
        for number, line in enumerate(lines[: self.lines]):
            found = re.match(r"( *)(pub(\([\w: ]+\))? )?(const |async |unsafe )*fn ", line)
            if found and not line.endswith((";", "}")):
                indent = found.group(1)
                after = range(number + 1, self.lines)
                last = next((n for n in after if lines[n].startswith((indent + "}", indent + ");"))), number)
                self.functions.append((number + 1, last + 1))
            elif found:
                self.functions.append((number + 1, number + 1))

    def function(self, line):
        """The outermost function around this line; none for derived code."""
        return next((span for span in self.functions if span[0] <= line <= span[1]), None)


def own(file):
    """The file's path in the tree, if it is source of ours and no test."""
    parts = pathlib.PurePath(os.path.normpath(file)).parts
    for top in ("host", "wit"):
        if top in parts:
            path = pathlib.Path(*parts[parts.index(top):])
            if (ROOT / path).is_file() and "tests" not in path.parts and path.stem != "tests":
                return path
    return None


def statements(path):
    """The statements in files of their own that this file runs."""
    crate = ROOT / pathlib.Path(*path.parts[:2])
    for name in re.findall(r'"([a-z_/]+\.sql)"', (ROOT / path).read_text()):
        for folder in (crate, (ROOT / path).parent):
            if (folder / name).is_file():
                yield (folder / name).relative_to(ROOT)


def trace(program, work, database):
    """The addresses that the decide reaches, and those that the idle host reaches."""
    host = Host(program, work, database)
    try:
        known, unknown = host.start(1), host.start(2)
        host.decide("reviewer", known)
        base, addresses = entries(program, host.process.pid)
        tracer = Tracer(host.process.pid, addresses)
        until = time.monotonic() + IDLE_SECONDS
        tracer.set()
        tracer.watch(lambda: time.monotonic() > until)
        idle = {address - base for address in tracer.reached}
        tracer.set()
        decide = threading.Thread(target=host.decide, args=("reviewer2", unknown))
        decide.start()
        tracer.watch(lambda: not decide.is_alive())
        decided = {address - base for address in tracer.reached}
        tracer.end()
    finally:
        host.process.kill()
    return decided, idle


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", action="store_true", help="also print the lines of the functions that ran")
    options = parser.parse_args()
    program = build()
    work = pathlib.Path(tempfile.mkdtemp(prefix="wrkflw-decide-path."))
    work.chmod(0o711)
    server = work / "postgres"
    postgres = [str(ROOT / "scripts" / "postgres.sh")]
    try:
        database = subprocess.check_output([*postgres, "start", str(server)], text=True).strip()
        decided, idle = trace(program, work, database)
    finally:
        subprocess.run([*postgres, "stop", str(server)], check=False)
        shutil.rmtree(work, ignore_errors=True)
    passed, sources = {}, {}
    for address, file, line in places(program, sorted(decided)):
        path = own(file)
        if path is None:
            continue
        source = sources.setdefault(path, None) or Source(path)
        sources[path] = source
        span = source.function(line)
        if span is not None:
            spans, besides = passed.setdefault(path, (set(), set()))
            spans.add(span)
            if address not in idle:
                besides.add(span)
    show({path: spans for path, (spans, besides) in passed.items() if besides}, sources, options.functions)


def show(passed, sources, functions):
    print(f"{'file':60} lines  of functions that run")
    files = run = 0
    sql = set()
    for path in sorted(passed):
        lines = sources[path].lines
        ran = len({line for start, end in passed[path] for line in range(start, end + 1)})
        files, run = files + lines, run + ran
        print(f"{path!s:60} {lines:5}  {ran:5}")
        if functions:
            print("\n".join(f"    {start}-{end}" for start, end in sorted(passed[path])))
        sql.update(statements(path))
    print(f"{f'{len(passed)} files':60} {files:5}  {run:5}")
    for statement in sorted(sql):
        print(f"{statement!s:60} {len((ROOT / statement).read_text().splitlines()):5}  (statement)")


if __name__ == "__main__":
    main()
