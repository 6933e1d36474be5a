"""Find lines that no test needs: python -m tools.mutate [--file FILE] [--all] [--resume] ...

Mutants of the three core files are made (see `tools.mutants`), and the tests of the file are run on
each. A mutant that passes them has survived: no test notices that the line is wrong. Survivors that
no test can notice, because they are as right as the original or only slower, are listed with the
reason in tools/equivalent_mutants.txt.

The tests run in a copy of the project in a temporary folder. First all of them run once, to note
their times and the lines that each of them runs. A mutant needs only the tests that run its line,
the quick ones first, until one fails. They run with the JIT off, because compiling would take most
of the time. Those that are slow without the JIT follow, with it, if the mutant has survived so far.

Results are kept in build/mutants.json. With --resume a mutant is not run again while the file and
its tests are unchanged.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import queue
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tools.mutant_tests import LARGE, Project, Suite, try_mutant
from tools.mutants import Mutant, mutants

__all__ = ["Listed", "Report", "read_list", "run"]

ROOT = Path(__file__).resolve().parents[1]
LISTED = Path(__file__).with_name("equivalent_mutants.txt")
# Which tests concern a file.
TESTS = {
    "hmoh.py": "tests/test_hmoh*.py tests/test_crafted_files.py",
    "kernels.py": "tests/test_kernels*.py",
    "metrics.py": "tests/test_metrics*.py",
}
LIST_HEAD = """
# Mutants that no test can kill. python -m tools.mutate leaves them out, and reports stale ones.
# A reason holds for the mutants below it: file and function, the line (-), what it becomes (+).
"""
LEAST_SHARE = 0.95  # of the mutants that must be killed or listed


# ---- the list of equivalent mutants --------------------------------------------------


@dataclass(frozen=True)
class Listed:
    """A mutant of the list: the key of a `Mutant`, and why no test can kill it."""

    key: tuple[str, str, str, str]
    reason: str


def read_list(path: Path) -> list[Listed]:
    """Return the entries of a list of equivalent mutants.

    A reason stands in lines that begin with `#`. It holds for the mutants below it, up to the next
    reason. A mutant is the file and the function, then the line (-) and what it becomes (+). An
    empty line ends a reason, so that the head of the file is none.
    """
    entries = []
    reason = []
    place = line = ""
    last = ""
    for number, text in enumerate(path.read_text().splitlines(), start=1):
        mark, _, rest = text.partition(" ")
        if not text.strip():
            pass
        elif mark == "#":
            reason = [*reason, rest] if last == "#" else [rest]
        elif mark == "-":
            line = rest
        elif mark == "+":
            file, _, function = place.partition(" ")
            entries.append(Listed((file, function, line, rest), " ".join(reason)))
        elif text[0] not in " #-+" and mark.endswith(".py"):
            place = text
        else:
            need = "begin it with #, - or +, or with the name of a file"
            raise ValueError(f"line {number} of {path} is {text!r}; {need}.")
        last = mark
    without = [entry for entry in entries if not entry.reason]
    if without:
        raise ValueError(f"{path} lists {without[0].key} without a reason; give one.")
    return entries


def write_list(path: Path, entries: list[Listed]) -> None:
    """Write entries in the form that `read_list` reads, those with the same reason together."""
    lines = LIST_HEAD.strip().splitlines()
    before = (None, None, None)
    for entry in entries:
        file, function, old, new = entry.key
        place = f"{file} {function}".rstrip()
        if entry.reason != before[0]:
            lines += [
                "",
                *textwrap.wrap(f"# {entry.reason}", 98, subsequent_indent="# "),
            ]
        if (entry.reason, place) != before[:2]:
            lines.append(place)
        if (entry.reason, place, old) != before:
            lines.append(f"- {old}")
        lines.append(f"+ {new}")
        before = (entry.reason, place, old)
    path.write_text("\n".join(lines) + "\n")


# ---- all mutants ---------------------------------------------------------------------


@dataclass
class Report:
    """What `run` found.

    Attributes
    ----------
    statuses : list of (Mutant, str)
        "killed", "timeout", "listed" or "survived".
    stale : list of Listed
        Entries of the list that are no mutant of the files.
    needless : list of Listed
        Entries of the list that a test kills.
    """

    statuses: list[tuple[Mutant, str]]
    stale: list[Listed]
    needless: list[Listed]

    def count(self, file: str | None = None) -> Counter:
        """Return how many mutants (of a file) have each status."""
        chosen = [s for mutant, s in self.statuses if file in (None, mutant.file)]
        return Counter(chosen)

    def share(self, file: str | None = None) -> float:
        """Return the share of the mutants (of a file) that are killed or listed."""
        counts = self.count(file)
        return 1 - counts["survived"] / max(counts.total(), 1)

    def __str__(self) -> str:
        columns = ("killed", "timeout", "listed", "survived")
        lines = [_row("file", "mutants", *columns, "share")]
        files = list(dict.fromkeys(mutant.file for mutant, _ in self.statuses))
        for file in (*files, None):
            counts = self.count(file)
            numbers = (counts.total(), *(counts[name] for name in columns))
            lines.append(_row(file or "all", *numbers, f"{self.share(file):.1%}"))
        survivors = [mutant for mutant, s in self.statuses if s == "survived"]
        lines += ["", "Survivors:"] if survivors else ["", "No survivor."]
        lines += [describe(mutant) for mutant in survivors]
        for entry in self.stale:
            lines.append(f"Stale, there is no such mutant any more: {entry.key}")
        for entry in self.needless:
            lines.append(f"Listed, but a test kills it: {entry.key}")
        return "\n".join(lines)


def _row(name: str, *values) -> str:
    return f"{name:<12}" + "".join(f"{value!s:>10}" for value in values)


def describe(mutant: Mutant) -> str:
    """Return a mutant as one line of text."""
    return f"{mutant.file}:{mutant.line}  {mutant.old} -> {mutant.new}"


def named(found: list[Mutant]) -> dict[str, Mutant]:
    """Return mutants by names that stay when other lines change."""
    names = {}
    seen = Counter()
    for mutant in found:
        seen[mutant.key] += 1
        names[" | ".join((*mutant.key, str(seen[mutant.key])))] = mutant
    return names


def run(
    root: Path = ROOT,
    targets: dict[str, str] = TESTS,
    list_path: Path = LISTED,
    modules: tuple[str, ...] = LARGE,
    sample: int | None = None,
    seed: int = 0,
    function: str = "",
    jobs: int = 1,
    resume: bool = False,
    quick: bool = False,
    with_listed: bool = False,
    show: Callable[[str], None] = print,
) -> Report:
    """Make the mutants of the files, test them, and return what became of them.

    Parameters
    ----------
    root : folder of the project
    targets : file -> patterns of its test files, with spaces between them
    list_path : the list of equivalent mutants; it may be missing
    modules : what the tests import, to import it once
    sample, seed : how many mutants to test, None for all, and which
        The sample depends on the text of a mutant, not on its place. So it stays much the same
        when a file is edited.
    function : only functions whose names begin so
    jobs : copies of the project that are used at the same time
    resume : take results from build/mutants.json
    quick : leave out the tests that need the JIT, so that more mutants survive
    with_listed : test the mutants of the list too, to see whether they survive
    show : gets a line of text for each survivor
    """
    listed = read_list(list_path) if list_path.exists() else []
    reasons = {entry.key: entry for entry in listed}
    memory = _Memory(root / "build" / "mutants.json", resume)
    suites = {}
    every: dict[str, Mutant] = {}
    for file, patterns in targets.items():
        kept = memory.suites.setdefault(file, {})
        suites[file] = Suite(root, file, patterns, kept)
        every |= named(mutants(file, suites[file].source))
    keys = {mutant.key for mutant in every.values()}
    own = [entry for entry in listed if entry.key[0] in targets]
    stale = [entry for entry in own if entry.key not in keys]
    names = [name for name in every if every[name].function.startswith(function)]
    if sample is not None and sample < len(names):
        ranks = {n: hashlib.sha256(f"{seed} {n}".encode()).digest() for n in names}
        chosen = set(sorted(names, key=ranks.get)[:sample])
        names = [name for name in names if name in chosen]

    statuses = dict.fromkeys(names, "listed")
    to_test = [n for n in names if with_listed or every[n].key not in reasons]
    projects: queue.Queue[Project] = queue.Queue()
    for _ in range(jobs):
        projects.put(Project(root, modules))

    def settle(name: str) -> None:
        mutant = every[name]
        suite = suites[mutant.file]
        before = memory.results.get(name, {})
        if not suite.still_holds(before, quick):
            project = projects.get()
            try:
                by = before.get("by")
                result = try_mutant(mutant, suite, project, by, quick)
            finally:
                projects.put(project)
            memory.keep(name, suite.signed(result))
        statuses[name] = memory.results[name]["status"]
        if statuses[name] == "survived" and mutant.key not in reasons:
            show(describe(mutant))

    pool = ThreadPoolExecutor(jobs)
    try:
        for done in as_completed([pool.submit(settle, name) for name in to_test]):
            done.result()
    finally:
        pool.shutdown(cancel_futures=True)
        memory.save()
        while not projects.empty():
            projects.get().close()

    needless = []
    for name in to_test:
        entry = reasons.get(every[name].key)
        if entry and statuses[name] == "survived":
            statuses[name] = "listed"
        elif entry:
            needless.append(entry)
    found = [(every[name], statuses[name]) for name in names]
    return Report(found, stale, needless)


class _Memory:
    """Results and timings that are kept in a file."""

    def __init__(self, path: Path, resume: bool):
        self.path = path
        self.results: dict[str, dict] = {}
        self.suites: dict[str, dict] = {}
        if resume and path.exists():
            kept = json.loads(path.read_text())
            self.results = kept["results"]
            self.suites = kept["suites"]
        self._lock = threading.Lock()
        self._saved = time.monotonic()

    def keep(self, name: str, result: dict) -> None:
        """Note a result, and write the file now and then."""
        with self._lock:
            self.results[name] = result
            is_due = time.monotonic() > self._saved + 60
        if is_due:
            self.save()

    def save(self) -> None:
        """Write everything to the file."""
        with self._lock:
            self._saved = time.monotonic()
            self.path.parent.mkdir(exist_ok=True)
            temporary = self.path.with_suffix(".tmp")
            kept = {"results": self.results, "suites": self.suites}
            temporary.write_text(json.dumps(kept))
            temporary.replace(self.path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--file", choices=TESTS, action="append", help="only this file")
    parser.add_argument("--function", default="", help="only functions that begin so")
    parser.add_argument("--sample", type=int, default=300, help="mutants to test")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--all", action="store_true", help="test all mutants")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--resume", action="store_true", help="take kept results")
    parser.add_argument("--quick", action="store_true", help="without the JIT")
    parser.add_argument("--prune", action="store_true", help="remove stale entries")
    parser.add_argument("--listed", action="store_true", help="test listed ones too")
    options = parser.parse_args()
    began = time.monotonic()
    report = run(
        targets={file: TESTS[file] for file in options.file or TESTS},
        sample=None if options.all else options.sample,
        seed=options.seed,
        function=options.function,
        jobs=options.jobs,
        resume=options.resume,
        quick=options.quick,
        with_listed=options.listed,
        show=lambda text: print(text, flush=True),
    )
    if options.prune:
        entries = read_list(LISTED)
        write_list(LISTED, [entry for entry in entries if entry not in report.stale])
    print(f"\n{report}\n{time.monotonic() - began:.0f} seconds")
    is_stale = bool(report.stale) and not options.prune
    return int(report.share() < LEAST_SHARE or is_stale)


if __name__ == "__main__":
    sys.exit(main())
