"""Compare the project with independent answers on random cases, for as long as you like.

    make fuzz                                        # three minutes; goes on where it stopped
    make fuzz ARGS="--minutes 60 --seed 7"
    python tests/fuzz.py --seed 7 --target metrics --case 12345      # one case again

A target is a function `check_...(case)` in a file `tests/fuzz_*.py`. It makes data from a case,
calls the project, and yields once for each call whose result it has compared with an answer that
was found in another way. Any exception is a failure.

A case is a small dictionary. Each value is drawn from the choices of its target, and the seed of
the data is drawn too. Case i of a target is a pure function of the seed of the run, the name of
the target and i. So a case that failed can be repeated by its number.

A case that fails is made smaller while it still fails, and printed. The place in each target is
kept in build/, and the next run with the same seed goes on there.
"""

import argparse
import faulthandler
import json
import multiprocessing
import os
import random
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fuzz_baselines import BASELINES, check_baselines
from fuzz_common import ROOT
from fuzz_files import (
    DATA_FILES,
    MODEL_FILES,
    check_data,
    check_models,
    limit_memory,
)
from fuzz_hmoh import HMOH_CASES, KERNELS, check_hmoh, check_kernels
from fuzz_metrics import METRICS, check_metrics
from fuzz_threads import THREADS, check_threads

FOLDER = ROOT / "build"
TURN = 0.2  # seconds that a target runs before another one may
KEEP_EVERY = 5.0  # seconds after which the place is kept
LONGEST = 60.0  # seconds that an isolated case may take
SHRINKING = 60.0  # seconds to make a case smaller
COUNTED = ("cases", "calls", "seconds")


class Target(NamedTuple):
    """Describe a target.

    `choices` has for each value of a case a range, or a sequence with the plainest choice first.
    `share` is its part of the time. An isolated target runs in a process of its own, because the
    libraries that read files may crash.
    """

    name: str
    choices: dict[str, Sequence]
    check: Callable
    share: float
    is_isolated: bool = False


LISTED = [
    Target("metrics", METRICS, check_metrics, 0.5),
    Target("hmoh", HMOH_CASES, check_hmoh, 0.15),
    Target("baselines", BASELINES, check_baselines, 0.1),
    Target("kernels", KERNELS, check_kernels, 0.1),
    Target("threads", THREADS, check_threads, 0.05),
    Target("models", MODEL_FILES, check_models, 0.05, is_isolated=True),
    Target("data", DATA_FILES, check_data, 0.05, is_isolated=True),
]
TARGETS = {target.name: target for target in LISTED}


# ---- cases ---------------------------------------------------------------------------


def draw(target: Target, seed: int, number: int) -> dict:
    """Return a case: a pure function of the seed, the name of the target and the number."""
    rng = random.Random(f"{seed} {target.name} {number}")
    case = {name: rng.choice(values) for name, values in target.choices.items()}
    return case | {"seed": rng.randrange(2**32)}


def count_calls(target: Target, case: dict) -> int:
    """Run a case; return the number of calls that were compared."""
    if target.is_isolated:
        return WORKER.run(target.name, case)
    return sum(1 for _ in target.check(case))


def failure(target: Target, case: dict) -> str | None:
    """Return how a case fails, or None if it does not."""
    try:
        count_calls(target, case)
    except Exception:
        return traceback.format_exc()
    return None


def plainer(values: Sequence, value) -> list:
    """Return the choices that are plainer than a value, the plainest first."""
    if not isinstance(values, range):
        return list(dict.fromkeys(values[: values.index(value)]))
    least = values[0]
    # The least, then half way to it, then a quarter, and at last one less.
    gaps = [value - least >> k for k in range((value - least).bit_length())]
    return [value - gap for gap in gaps]


def place_of(how: str | None) -> str | None:
    """Return the last line of code in a traceback, by which two failures are the same."""
    lines = [line for line in (how or "").splitlines() if line.startswith("  File ")]
    return lines[-1] if lines else None


def shrink(target: Target, case: dict) -> dict:
    """Return the plainest case that fails at the same place, changing one value at a time."""
    end = time.monotonic() + SHRINKING
    place = place_of(failure(target, case))
    is_changed = place is not None
    while is_changed:
        is_changed = False
        for name, values in target.choices.items():
            for value in plainer(values, case[name]):
                if time.monotonic() > end:
                    return case
                changed = case | {name: value}
                if place_of(failure(target, changed)) == place:
                    case = changed
                    is_changed = True
                    break
    return case


# ---- a process that may crash --------------------------------------------------------


class Worker:
    """Run cases in another process, so that a crash there is a failure and not the end."""

    process = None

    def start(self) -> None:
        """Start the process and wait until it is ready."""
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe.recv()

    def run(self, name: str, case: dict) -> int:
        """Return the number of calls that were compared."""
        if self.process is None:
            self.start()
        try:
            self.pipe.send((name, case))
            if not self.pipe.poll(LONGEST):
                self.stop()
                raise AssertionError(f"no answer within {LONGEST:.0f} seconds")
            outcome = self.pipe.recv()
        except (EOFError, OSError):
            code = self.stop()
            raise AssertionError(f"the process died with exit code {code}") from None
        if isinstance(outcome, str):
            raise AssertionError(outcome)
        return outcome

    def stop(self) -> int | None:
        """End the process; return its exit code if it has ended before."""
        if self.process is None:
            return None
        self.process.join(1)
        code = self.process.exitcode
        self.process.kill()
        self.process.join()
        self.pipe.close()
        self.process = None
        return code


def serve(pipe) -> None:
    """Run the cases that come through the pipe."""
    warnings.simplefilter("error")
    limit_memory()
    pipe.send("ready")
    while True:
        try:
            name, case = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(sum(1 for _ in TARGETS[name].check(case)))
        except Exception:
            pipe.send(traceback.format_exc())


WORKER = Worker()


# ---- a run ---------------------------------------------------------------------------


class Place:
    """Hold the cases, calls and seconds of each target, over all runs with one seed."""

    def __init__(self, seed: int, names: list[str], restart: bool):
        self.seed = seed
        self.names = names
        self.path = FOLDER / f"fuzz_{seed}.json"
        self.totals = {name: dict.fromkeys(COUNTED, 0) for name in TARGETS}
        if self.path.exists() and not restart:
            self.totals |= json.loads(self.path.read_text())["targets"]
        self.begun = {name: dict(self.totals[name]) for name in names}

    def keep(self) -> None:
        """Write the file, atomically."""
        FOLDER.mkdir(exist_ok=True)
        temporary = self.path.with_suffix(f".{os.getpid()}.tmp")
        content = {"seed": self.seed, "targets": self.totals}
        temporary.write_text(json.dumps(content, indent=1))
        os.replace(temporary, self.path)

    def done(self, name: str, what: str) -> float:
        """Return what a target did in this run."""
        return self.totals[name][what] - self.begun[name][what]

    def note(self, name: str, n_calls: int, seconds: float) -> None:
        """Count a case that passed."""
        for what, number in zip(COUNTED, (1, n_calls, seconds), strict=True):
            self.totals[name][what] += number

    def report(self) -> None:
        """Print what each target did in this run, and its calls in all runs."""
        print(f"{'target':12}{'cases':>9}{'calls':>11}{'calls/s':>9}{'in all runs':>14}")
        rows = []
        for name in self.names:
            counts = [self.done(name, what) for what in COUNTED]
            rows.append([*counts, self.totals[name]["calls"]])
        rows.append([sum(column) for column in zip(*rows, strict=True)])
        for name, row in zip([*self.names, "all"], rows, strict=True):
            n_cases, n_calls, seconds, n_ever = row
            speed = n_calls / max(seconds, 1e-9)
            print(f"{name:12}{n_cases:9,}{n_calls:11,}{speed:9,.0f}{n_ever:14,}")


def fuzz(names: list[str], args: argparse.Namespace) -> int:
    """Run cases of these targets in turn until the time is over or one fails."""
    place = Place(args.seed, names, args.restart)
    if any(TARGETS[name].is_isolated for name in names):
        WORKER.start()
    end = time.monotonic() + 60 * args.minutes
    next_keep = time.monotonic() + KEEP_EVERY
    next_line = time.monotonic() + 60

    def is_open(name):
        return args.cases is None or place.done(name, "cases") < args.cases

    def used(name):
        return place.done(name, "seconds") / TARGETS[name].share

    def take_turn(target):
        """Run cases for a short time; return whether all passed."""
        turn_end = min(time.monotonic() + TURN, end)
        while time.monotonic() < turn_end and is_open(target.name):
            case = draw(target, args.seed, place.totals[target.name]["cases"])
            start = time.monotonic()
            try:
                n_calls = count_calls(target, case)
            except Exception:
                return False
            place.note(target.name, n_calls, time.monotonic() - start)
        return True

    failed = None
    try:
        while failed is None and time.monotonic() < end:
            open_names = [name for name in names if is_open(name)]
            if not open_names:
                break
            name = min(open_names, key=used)
            if not take_turn(TARGETS[name]):
                failed = name
            if time.monotonic() > next_keep:
                place.keep()
                next_keep += KEEP_EVERY
            if time.monotonic() > next_line:
                print(f"{(end - next_line) / 60:.0f} minutes left", flush=True)
                next_line += 60
    finally:
        place.keep()
        place.report()
    if failed is None:
        return 0
    report_failure(TARGETS[failed], args.seed, place.totals[failed]["cases"])
    return 1


def report_failure(target: Target, seed: int, number: int) -> None:
    """Print a case that fails, as small as possible, and how to repeat it."""
    case = draw(target, seed, number)
    print(f"\nFAILED: target {target.name}, seed {seed}, case {number}", flush=True)
    small = shrink(target, case)
    how = failure(target, small)
    if how is None:
        how = "It did not fail again, so it depends on the time.\n"
    print(f"{how}as drawn: {case}\nshrunk:   {small}")
    options = f"--seed {seed} --target {target.name} --case {number}"
    print(f"repeat:   {sys.executable} {__file__} {options}")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--minutes", type=float, default=3.0, help="how long to run")
    add("--seed", type=int, default=0)
    add("--target", action="append", choices=TARGETS, help="may be given several times")
    add("--case", type=int, help="run only the case with this number")
    add("--cases", type=int, help="run at most so many cases of each target")
    add("--restart", action="store_true", help="begin at case 0 again")
    args = parser.parse_args(arguments)
    names = args.target or list(TARGETS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            if args.case is None:
                return fuzz(names, args)
            for name in names:
                if failure(TARGETS[name], draw(TARGETS[name], args.seed, args.case)):
                    report_failure(TARGETS[name], args.seed, args.case)
                    return 1
                print(f"target {name}, seed {args.seed}, case {args.case}: passed")
            return 0
        finally:
            WORKER.stop()


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
