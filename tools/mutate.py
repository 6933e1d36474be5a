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
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tools.mutants import Mutant, mutants

__all__ = ["Listed", "Project", "read_list", "run"]

ROOT = Path(__file__).resolve().parents[1]
LISTED = Path(__file__).with_name("equivalent_mutants.txt")
WORKER = Path(__file__).with_name("mutant_worker.py")
# Which tests concern a file.
TESTS = {
    "hmoh.py": "tests/test_hmoh*.py",
    "kernels.py": "tests/test_kernels*.py",
    "metrics.py": "tests/test_metrics*.py",
}
# What these tests import and what takes time to import. It is imported once.
LARGE = ("numpy", "numba", "hypothesis.strategies", "joblib", "h5py", "scipy.io")
LARGE += ("scipy.linalg", "sklearn.model_selection", "sklearn.pipeline")
LARGE += ("sklearn.linear_model", "sklearn.metrics", "sklearn.preprocessing")
LINKED = ("data", "notebooks")  # folders that no test writes into
LEFT_OUT = (".git", ".venv", "build", "__pycache__", ".*_cache", ".hypothesis")
LEAST_SHARE = 0.95  # of the mutants that must be killed or listed
QUICK = (
    0.3  # seconds of the processor; slower tests with the JIT off are run with the JIT
)
LEAST_LIMIT = 5  # seconds for a test with the JIT off, besides ten times its own time
LIMIT = 120  # seconds for the start, and for a test that was never timed or is compiled


# ---- the list of equivalent mutants --------------------------------------------------


@dataclass(frozen=True)
class Listed:
    """A mutant of the list: the key of a `Mutant`, and why no test can kill it."""

    key: tuple[str, str, str, str]
    reason: str


def read_list(path: Path) -> list[Listed]:
    """Return the entries of a list of equivalent mutants.

    A reason stands in lines that begin with `#`. It holds for the mutants below it, up to the next
    reason. A mutant is the file and the function, then the line (-) and what it becomes (+).
    """
    entries = []
    reason = []
    place = line = ""
    last = ""
    for number, text in enumerate(path.read_text().splitlines(), start=1):
        mark, _, rest = text.partition(" ")
        if not text.strip():
            continue
        if mark == "#":
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


# ---- tests ---------------------------------------------------------------------------


class Project:
    """A copy of a project in a temporary folder, in which mutants are tested."""

    def __init__(self, root: Path, modules: tuple[str, ...] = LARGE):
        self.modules = modules
        self.folder = Path(tempfile.mkdtemp(prefix="mutants-")) / root.name
        ignored = shutil.ignore_patterns(*LEFT_OUT, *LINKED)
        shutil.copytree(root, self.folder, ignore=ignored)
        for name in LINKED:
            if (root / name).exists():
                (self.folder / name).symlink_to(root / name)
        self._workers: dict[bool, subprocess.Popen] = {}

    def close(self) -> None:
        """End the processes that run the tests, and remove the copy."""
        for worker in self._workers.values():
            worker.stdin.close()
            worker.wait()
            worker.stdout.close()
        shutil.rmtree(self.folder.parent)

    def write(self, file: str, source: str) -> None:
        """Write a file, and remove what was compiled from it before."""
        path = self.folder / file
        # Python and numba would take a file of the same second and size for the same file.
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()
        path.write_text(source)

    def test(self, test_files, tests=None, trace=None, jit: bool = False) -> dict:
        """Run tests until one fails; see `tools.mutant_worker` for request and answer."""
        if jit not in self._workers:
            self._workers[jit] = self._start_worker(jit)
        worker = self._workers[jit]
        request = {
            "test_files": list(test_files),
            "tests": tests,
            "trace": trace,
            "limit": LIMIT,
        }
        worker.stdin.write(json.dumps(request) + "\n")
        worker.stdin.flush()
        return json.loads(worker.stdout.readline())

    def _start_worker(self, jit: bool) -> subprocess.Popen:
        settings = {
            "NUMBA_DISABLE_JIT": str(int(not jit)),
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONDONTWRITEBYTECODE": "",
        }
        return subprocess.Popen(
            [sys.executable, str(WORKER), "pytest", *self.modules],
            cwd=self.folder,
            env=os.environ | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def output(self) -> str:
        """Return the last lines that pytest printed."""
        lines = (self.folder / "pytest-output.txt").read_text().splitlines()
        return "\n".join(lines[-20:])


class Suite:
    """The tests of one file: what they are, how long they take, and which lines they run.

    Parameters
    ----------
    root, file, pattern : the project, the file, and the pattern of its test files
    kept : dict
        What was measured before, by test file, as JSON holds it. It is kept up to date.
    """

    def __init__(self, root: Path, file: str, pattern: str, kept: dict):
        self.file = file
        self.source = (root / file).read_text()
        paths = sorted(root.glob(pattern))
        self.test_files = [path.relative_to(root).as_posix() for path in paths]
        if not self.test_files:
            raise ValueError(f"{file} has no tests: there is no {pattern}.")
        shared = _digest_of_shared_code(root)
        self.digests = {}
        for name in self.test_files:
            self.digests[name] = _hash(shared + (root / name).read_bytes())
        self.digest = _hash("".join(self.digests.values()).encode())
        for name in list(kept):
            if kept[name]["digest"] != self.digests.get(name):
                del kept[name]
        self.kept = kept
        self._lock = threading.Lock()

    def timed(self, project: Project) -> dict:
        """Return all tests by name, with seconds, lines of the file and outcome, the JIT off."""
        with self._lock:
            new = [name for name in self.test_files if name not in self.kept]
            if new:
                project.write(self.file, self.source)
                result = project.test(new, trace=self.file)
                self._check(result, project, "off")
                for name in new:
                    self.kept[name] = {
                        "digest": self.digests[name],
                        "imported": result["imported"],
                        "tests": {},
                    }
                for test, measured in result["tests"].items():
                    self.kept[_file_of(test)]["tests"][test] = measured
        parts = [self.kept[name]["tests"] for name in self.test_files]
        return {test: part[test] for part in parts for test in part}

    def check_with_jit(self, timed: dict, project: Project) -> None:
        """Check that the tests that need the JIT pass, so that a failure is the mutant's."""
        with self._lock:
            new = [n for n in self.test_files if "passes_with_jit" not in self.kept[n]]
            tests = [(test, LIMIT) for test in timed if needs_jit(timed[test])]
            tests = [(test, limit) for test, limit in tests if _file_of(test) in new]
            if tests:
                project.write(self.file, self.source)
                result = project.test(new, tests, jit=True)
                self._check(result, project, "on")
            for name in new:
                self.kept[name]["passes_with_jit"] = True

    def _check(self, result: dict, project: Project, jit: str) -> None:
        if result["ending"] != "passed":
            raise RuntimeError(
                f"the tests of {self.file} do not pass without a mutation, with the JIT {jit} "
                f"({result['last']}); mend them first.\n{project.output()}"
            )

    def concerned(self, mutant: Mutant, timed: dict) -> list[str]:
        """Return the tests that can notice a mutant, in the order in which to run them.

        They run its statement. A statement that runs at import concerns all tests. A test that
        runs no line of the file may run it in another process, or needs the JIT.

        Each test function is run with one set of parameters, the quickest first. Then each is run
        with a second one, and so on.
        """
        first, last = mutant.statement

        def runs(lines: list[int]) -> bool:
            return any(first <= line <= last for line in lines)

        names = list(timed)
        imported = [part["imported"] for part in self.kept.values()]
        if mutant.in_function and not any(map(runs, imported)):
            lines = {name: timed[name]["lines"] for name in names}
            names = [name for name in names if not lines[name] or runs(lines[name])]
        names.sort(key=lambda name: timed[name]["processor_seconds"])
        rounds = Counter()
        order = {}
        for name in names:
            function = name.partition("[")[0]
            rounds[function] += 1
            order[name] = rounds[function]
        return sorted(names, key=order.get)

    def still_holds(self, result: dict, quick: bool) -> bool:
        """Return whether a kept result would be the same now.

        A test that failed fails again, whatever becomes of other tests.
        """
        if result.get("quick") and not quick:
            return False
        by = result.get("by")
        digest = self.digests.get(_file_of(by)) if by else self.digest
        return result.get("digest") == digest

    def signed(self, result: dict) -> dict:
        """Return a result with what `still_holds` needs."""
        by = result["by"]
        return result | {"digest": self.digests[_file_of(by)] if by else self.digest}


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest_of_shared_code(root: Path) -> bytes:
    """Return a hash of all code that tests may use: that of the project without tools and tests."""
    total = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        is_other = parts[0] in (*LINKED, "tools", "build") or parts[0].startswith(".")
        if not is_other and not path.name.startswith("test_"):
            total.update("/".join(parts).encode() + path.read_bytes())
    return total.digest()


def needs_jit(test: dict) -> bool:
    """Return whether a test is slow or does not run with the JIT off."""
    return test["processor_seconds"] > QUICK or test["outcome"] == "skipped"


def try_mutant(
    mutant: Mutant, suite: Suite, project: Project, first: str | None, quick: bool
) -> dict:
    """Return the status of a mutant, and which test killed it.

    `first` is the test that killed it before, if it was run before. With `quick` no test is run
    with the JIT.
    """
    timed = suite.timed(project)
    names = suite.concerned(mutant, timed)
    if first in timed:
        names = [first, *(name for name in names if name != first)]
    parts = {jit: [n for n in names if needs_jit(timed[n]) == jit] for jit in (0, 1)}
    if first in parts[1]:
        parts = {1: parts[1], 0: parts[0]}
    for jit, names in parts.items():
        if not names or (jit and quick):
            continue
        if jit:
            suite.check_with_jit(timed, project)
        project.write(suite.file, mutant.apply(suite.source))
        least = LIMIT if jit else LEAST_LIMIT
        tests = [(name, least + 10 * timed[name]["seconds"]) for name in names]
        test_files = sorted({_file_of(name) for name in names})
        result = project.test(test_files, tests, jit=bool(jit))
        if result["ending"] != "passed":
            status = "killed" if result["ending"] == "failed" else "timeout"
            return {"status": status, "by": result["last"]}
    return {"status": "survived", "by": None, "quick": quick}


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
    targets : file -> pattern of its test files
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
    for file, pattern in targets.items():
        kept = memory.suites.setdefault(file, {})
        suites[file] = Suite(root, file, pattern, kept)
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
    print(f"\n{report}\n{time.monotonic() - began:.0f} seconds")
    return int(report.share() < LEAST_SHARE or bool(report.stale))


if __name__ == "__main__":
    sys.exit(main())
