"""Run tests again and again in the current folder: python tools/mutant_worker.py MODULE ...

A request is a line of JSON on stdin, and its answer a line of JSON on stdout. Each request is
answered by a process of its own, which is forked from this one. This one has imported the modules,
which must not be of the project, so that a short run takes a tenth of the time.

A request has the test files, and the tests with the seconds that each may take, in the order in
which to run them (or None for all). It also has the seconds for all else, and the file whose lines
are traced, or None. The answer has how it ended ("passed", "failed" or "timeout"), the last test
that began, and for each test that ended its outcome, its seconds (of the clock and of the
processor) and its lines of the file. The lines that ran before all tests are those of the import.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import sys
import threading
import time
import traceback

MEMORY = 6 << 30  # bytes of address space; a mutant may ask for any amount
OUTPUT = "pytest-output.txt"
FEW_EVENTS = 500  # lines of a function that are traced
LOOK_EVERY = 0.02  # seconds


class Reporter:
    """Plugin of pytest: choose and order the tests, and send what happens into a pipe."""

    def __init__(self, pipe: int, request: dict):
        self.pipe = pipe
        self.tests = request["tests"]
        self.tracer = None
        if request["trace"]:
            self.tracer = Tracer(os.path.abspath(request["trace"]))
            self.tracer.start()

    def pytest_collection_finish(self) -> None:
        if self.tracer:
            self.tracer.stop()
            self.send(imported=sorted(self.tracer.lines))

    def send(self, **event) -> None:
        os.write(self.pipe, json.dumps(event).encode() + b"\n")

    def pytest_collection_modifyitems(self, items: list) -> None:
        if self.tests is not None:
            place = {name: i for i, (name, _) in enumerate(self.tests)}
            chosen = [item for item in items if item.nodeid in place]
            items[:] = sorted(chosen, key=lambda item: place[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.send(begins=nodeid)
        self.began = (time.monotonic(), time.process_time())
        self.outcome = "passed"
        if self.tracer:
            self.tracer.start()

    def pytest_runtest_logreport(self, report) -> None:
        if report.outcome != "passed":
            self.outcome = report.outcome

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self.tracer:
            self.tracer.stop()
        ended = (time.monotonic(), time.process_time())
        seconds, own = (round(b - a, 4) for a, b in zip(self.began, ended, strict=True))
        times = {"seconds": seconds, "processor_seconds": own}
        lines = sorted(self.tracer.lines) if self.tracer else []
        self.send(ends=nodeid, outcome=self.outcome, lines=lines, **times)


class Tracer:
    """Note the lines of a file that run from `start` to `stop`.

    Only the first lines of a function that run are traced one by one, because that is slow. Then
    all lines of the function count as run, so that there may be too many lines, but none too few.
    """

    def __init__(self, path: str):
        self.path = path

    def start(self) -> None:
        self.lines: set[int] = set()
        self.n_events: dict = {}
        threading.settrace(self.call)
        sys.settrace(self.call)

    def stop(self) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def call(self, frame, event, argument):
        code = frame.f_code
        if code.co_filename != self.path or self.n_events.get(code, 0) > FEW_EVENTS:
            return None
        return self.line(frame, event, argument)

    def line(self, frame, event, argument):
        code = frame.f_code
        self.lines.add(frame.f_lineno)
        n = self.n_events.get(code, 0) + 1
        self.n_events[code] = n
        if n > FEW_EVENTS:
            self.lines.update(line for _, _, line in code.co_lines() if line)
            frame.f_trace_lines = False
        return self.line


def run_tests(pipe: int, request: dict) -> int:
    """Run pytest in this process, and return its exit code."""
    import pytest

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    options = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider"]
    options += ["--tb=line", "--no-header"]
    # Plugins that are imported before pytest begins give this warning.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    if "hypothesis" in sys.modules:
        options += ["-p", "_hypothesis_pytestplugin", "--hypothesis-seed=0"]
    plugin = Reporter(pipe, request)
    return int(pytest.main([*options, *request["test_files"]], plugins=[plugin]))


def fork(request: dict) -> tuple[int, int]:
    """Start the tests in a new process; return its number and the pipe that it writes to."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    code = 99
    try:
        os.setsid()  # so that it can be ended together with the processes that it starts
        os.close(reader)
        output = os.open(OUTPUT, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        for standard in (0, 1, 2):
            os.dup2(output, standard)
        code = run_tests(writer, request)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def answer(request: dict) -> dict:
    """Run the tests of a request in a forked process, and end it if a test takes too long."""
    limits = dict(request["tests"] or [])
    child, pipe = fork(request)
    result = {"ending": None, "last": None, "tests": {}, "imported": []}
    deadline = time.monotonic() + request["limit"]
    text = b""
    while result["ending"] is None:
        ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            select.select([pipe], [], [], LOOK_EVERY)
        text += read_all(pipe)
        *events, text = text.split(b"\n")
        for event in map(json.loads, events):
            limit = request["limit"]
            if "imported" in event:
                result["imported"] = event["imported"]
            elif "begins" in event:
                result["last"] = event["begins"]
                limit = limits.get(event["begins"], limit)
            else:
                result["tests"][event.pop("ends")] = event
            deadline = time.monotonic() + limit
        if ended:
            # 5: there is no test to run.
            passed = os.waitstatus_to_exitcode(status) in (0, 5)
            result["ending"] = "passed" if passed else "failed"
        elif time.monotonic() > deadline:
            result["ending"] = "timeout"
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not ended:
        os.waitpid(child, 0)
    os.close(pipe)
    return result


def read_all(pipe: int) -> bytes:
    """Return what a pipe holds, without waiting."""
    parts = []
    while select.select([pipe], [], [], 0)[0]:
        part = os.read(pipe, 1 << 20)
        if not part:  # the other end is closed
            time.sleep(LOOK_EVERY / 10)
            break
        parts.append(part)
    return b"".join(parts)


def serve() -> None:
    """Answer the requests."""
    # The folder of this file is no place to import from; pytest adds the folder of the project.
    sys.path.pop(0)
    for name in sys.argv[1:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # nothing of this is garbage in a forked process
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    serve()
