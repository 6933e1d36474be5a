"""Run the tests of a file on its mutants, in a copy of the project; `tools.mutate` says why."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

from tools.mutants import Mutant

__all__ = ["LARGE", "Project", "Suite", "try_mutant"]

WORKER = Path(__file__).with_name("mutant_worker.py")
# What these tests import and what takes time to import. It is imported once.
LARGE = ("numpy", "numba", "hypothesis.strategies", "joblib", "h5py", "scipy.io")
LARGE += ("scipy.linalg", "sklearn.model_selection", "sklearn.pipeline")
LARGE += ("sklearn.linear_model", "sklearn.metrics", "sklearn.preprocessing")
LINKED = ("data", "notebooks")  # folders that no test writes into
LEFT_OUT = (".git", ".venv", "build", "__pycache__", ".*_cache", ".hypothesis")
QUICK = 0.3  # seconds of the processor; slower tests are run with the JIT
LEAST_LIMIT = 5  # seconds for a test with the JIT off, besides ten times its own time
LIMIT = 120  # seconds for the start, and for a test that was never timed or is compiled


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
    root, file, patterns : the project, the file, and the patterns of its test files
    kept : dict
        What was measured before, by test file, as JSON holds it. It is kept up to date.
    """

    def __init__(self, root: Path, file: str, patterns: str, kept: dict):
        self.file = file
        self.source = (root / file).read_text()
        found = [path for pattern in patterns.split() for path in root.glob(pattern)]
        paths = sorted(set(found))
        self.test_files = [path.relative_to(root).as_posix() for path in paths]
        if not self.test_files:
            raise ValueError(f"{file} has no tests: there is no {patterns}.")
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
    others = (*LINKED, "tools", "build")
    folders = [path for path in root.iterdir() if path.is_dir()]
    paths = [*root.glob("*.py")]
    for folder in folders:
        if folder.name not in others and not folder.name.startswith("."):
            paths += folder.rglob("*.py")
    for path in sorted(paths):
        if not path.name.startswith("test_"):
            name = path.relative_to(root).as_posix()
            total.update(name.encode() + path.read_bytes())
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
