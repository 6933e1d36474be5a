"""Run the paper's protocol (Sec. 4.1) many times: compare methods, vary a parameter, keep the runs.

    python -m study.protocol mnist [--bits 32 64] [--seeds 3] [--methods HMOH HCOH] [--published]
                                   [--labelled]

prints mAP, mAP@1000, Precision@H2 and training time. The paper's values stand beside ours
where data and protocol are the paper's. Finished runs are kept in build/records and are not
repeated until the code or the data change, so an interrupted comparison continues where it stopped.

`study.profile` says how large all runs are: the paper's protocol with ten seeds, or small ones.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import itertools
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import numpy as np

from baselines import METHODS, PUBLISHED_FAULTS, named
from study import datasets, profile
from study.datasets import Dataset
from study.keep import code_version, kept, make_all, plain, plain_values, run_key
from study.profile import BITS, SEEDS, by_profile
from study.scores import with_derived
from study.training import data_of, method_of, name_run, run, settings_of

__all__ = ["compare", "run", "run_all", "sweep"]

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build"
RECORDS = BUILD / "records"

# A STAND-IN decides nothing, so it gets only the first of the seeds. There MIHash, which takes many
# times as long as another method, and curves along the stream get even fewer.
STAND_IN_SEEDS, STAND_IN_FEWEST = 6, 3


# ---- data of the caller's, for other processes ---------------------------------------


class _OnDisk(NamedTuple):
    """Name a folder with the arrays of a data set; `rest` is everything else."""

    folder: str
    rest: tuple


@contextlib.contextmanager
def _on_disk(data: Dataset) -> Iterator[_OnDisk]:
    """Write the arrays of a data set into a folder of build/, which is removed in the end."""
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="arrays-", dir=BUILD) as folder:
        rest = []
        for name, value in vars(data).items():
            if isinstance(value, np.ndarray):
                np.save(Path(folder, f"{name}.npy"), value, allow_pickle=False)
            else:
                rest.append((name, value))
        yield _OnDisk(folder, tuple(rest))


@cache
def _opened(stored: _OnDisk) -> Dataset:
    """Return a data set with memory-mapped arrays, which the processes share."""
    paths = Path(stored.folder).glob("*.npy")
    arrays = {path.stem: np.load(path, mmap_mode="r", allow_pickle=False) for path in paths}
    return Dataset(**dict(stored.rest), **arrays)


# ---- many runs -----------------------------------------------------------------------


def _maker(job: dict) -> Callable:
    """Return the class of a job's method, or the function that stands for it in the table."""
    method = method_of(job["method"], bool(job.get("published")))
    return getattr(method, "make", method)


def _file_of(maker: Callable) -> str | None:
    """Return the project's file that defines a method; None if a script or notebook does."""
    file = f"{maker.__module__.replace('.', '/')}.py"
    return file if (ROOT / file).exists() else None


def _version_of(maker: Callable) -> str:
    """Return the version of the code that a run of a method depends on."""
    file = _file_of(maker)
    if file is not None:
        return _version(file)
    try:
        return _version() + inspect.getsource(maker)
    except (OSError, TypeError):  # code that cannot be read may be another one each time
        return _version() + uuid4().hex


@cache
def _version(*files: str) -> str:
    return code_version(ROOT, "study/training.py", *files)


def _place(job: dict, fingerprint: str) -> tuple[dict, Path]:
    """Return the arguments of a run without its label, and the path of its record.

    The label of a run is not kept: runs that differ only in their labels share a record. So do the
    two forms of a method whose published code has no fault.
    """
    arguments = {name: job[name] for name in job if name not in ("label", "published")}
    if job.get("published") and job["method"] in PUBLISHED_FAULTS:
        arguments["published"] = True
    if job.get("database") == "learned":
        del arguments["database"]  # it is what a run does without it
    # A name of the paper's data becomes that of the stand-in, if the stand-in is used.
    data = data_of(job["dataset"])
    plainly = arguments | {"dataset": data.name}
    case = (job["method"], data.role, "published" in arguments)
    settings = json.dumps(plain_values(settings_of(*case)), sort_keys=True)
    version = _version_of(_maker(arguments))
    key = run_key(plainly, profile.PROFILE, fingerprint, settings, version)
    name = "{method}-{dataset}-{n_bits}-{seed}".format(**plainly)
    path = RECORDS / f"{re.sub('[^A-Za-z0-9_.-]+', '_', name)}-{key}.json"
    return plainly if isinstance(job["dataset"], str) else arguments, path


def _kept_run(place: tuple[dict, Path]) -> dict:
    """Return the record of `run`, read from build/records or written there."""
    arguments, path = place
    if isinstance(arguments["dataset"], _OnDisk):
        arguments = arguments | {"dataset": _opened(arguments["dataset"])}
    return kept(path, lambda: run(**arguments))


def _shared_first(job: dict) -> tuple:
    """Return what jobs are sorted by: those that share features are run one after the other.

    Among these the long codes come first. They take longest, so no core waits for the last one.
    """
    data = data_of(job["dataset"])
    given = settings_of(job["method"], data.role) | (job.get("params") or {})
    given = {name: plain(given[name]) for name in sorted(given) if "feature_map" in name}
    of_map = json.dumps(given)
    return data.name, job["seed"], job.get("split", ""), of_map, -job["n_bits"]


def run_all(jobs: Iterable[dict], n_workers: int | None = None) -> list[dict]:
    """Return the records of many runs, in order; finished ones are read from build/records.

    A kept record is used while the code, the libraries, the data and the arguments are the same.
    The code of a feature map of your own does not count: only its name and its parameters do. A
    method that a script or notebook defines runs in this process, because others do not know it.

    Parameters
    ----------
    jobs : dicts of the arguments of `run`
    n_workers : int, optional
        Processes; by default one for each core, and one in the quick profile. With 1 the runs do
        not compete for the machine, which training times need.
    """
    jobs = list(jobs)
    order = sorted(range(len(jobs)), key=lambda number: _shared_first(jobs[number]))
    sets = dict.fromkeys(job["dataset"] for job in jobs)
    fingerprints = {data: datasets.fingerprint(data) for data in sets}
    places = [_place(job, fingerprints[job["dataset"]]) for job in jobs]
    if n_workers is None:
        n_workers = by_profile(os.cpu_count(), 1)
    if any(_file_of(_maker(job)) is None for job in jobs):
        n_workers = 1
    n_workers = min(n_workers, sum(not path.exists() for _, path in places))
    text = ", ".join(dict.fromkeys(data_of(data).name for data in sets))
    with contextlib.ExitStack() as stack:
        for data in sets:
            if isinstance(data, Dataset):
                # A copy shares no features with earlier calls, since when arrays may have changed.
                own = stack.enter_context(_on_disk(data)) if n_workers > 1 else replace(data)
                for arguments, _ in places:
                    if arguments["dataset"] is data:
                        arguments["dataset"] = own
        records = make_all(_kept_run, places, n_workers, order, text)
    found = []
    for job, record in zip(jobs, records, strict=True):
        published = job.get("published", False)
        label = job.get("label") or name_run(job["method"], published)
        found.append(with_derived(record | {"label": label, "published": published}))
    return found


def _seeds(
    method: str, dataset: str | Dataset, seeds: Iterable[int], checkpoints: bool | list[int]
) -> list[dict]:
    """Return the seeds of a method on a data set, each with its checkpoints if it has any."""
    cases = [{"seed": seed} for seed in seeds]
    n_curves = len(cases)
    if data_of(dataset).stand_in_for:
        cases = cases[: STAND_IN_FEWEST if method == "MIHash" else STAND_IN_SEEDS]
        n_curves = STAND_IN_FEWEST
    if checkpoints:
        for case in cases[:n_curves]:
            case["checkpoints"] = checkpoints
    return cases


def compare(
    methods: Iterable[str],
    dataset: str | Dataset,
    bits: Iterable[int] = BITS,
    seeds: Iterable[int] = SEEDS,
    published: bool = False,
    checkpoints: bool | list[int] = False,
    **options,
) -> list[dict]:
    """Return the records of all methods, code lengths and seeds.

    Parameters
    ----------
    methods : list of str
        Names of `baselines.METHODS`, such as ``named("paper")``.
    dataset : str or Dataset
        A name that `datasets.load` knows, or data of your own: ``Dataset("digits", X, y)``.
    bits, seeds : list of int
        On a STAND-IN only the first of the seeds are used, see `STAND_IN_SEEDS`.
    published, checkpoints, **options
        As in `run`, such as ``database="labelled"``.
    """
    methods = list(methods)
    seeds = list(seeds)
    jobs = []
    for n_bits, method in itertools.product(bits, methods):
        for seed in _seeds(method, dataset, seeds, checkpoints):
            case = {"method": method, "dataset": dataset, "n_bits": n_bits}
            jobs.append(case | seed | {"published": published} | options)
    return run_all(jobs)


def sweep(
    variants: dict[str, dict] | Callable[[str], dict[str, dict]],
    dataset: str | Dataset | Iterable[str | Dataset],
    bits: int | Iterable[int] = 32,
    seeds: Iterable[int] = SEEDS,
    method: str = "HMOH",
    checkpoints: bool | list[int] = False,
    **options,
) -> list[dict]:
    """Return the records of one method with several sets of parameters: an ablation.

    Parameters
    ----------
    variants : dict, or function of a role
        The parameters of each variant by its label, as ``params`` and ``label`` of `run`. A
        function gets the role of a data set ("mnist", "places205", ..., or None) and returns such
        a dict.
    dataset : str or Dataset, or list of these
    bits : int or list of int
    seeds, checkpoints
        As in `compare`.
    method : str
    **options
        Further arguments of `run`.

    Returns
    -------
    list of dict
        In the order of the data sets, then the code lengths, the variants and the seeds.
    """
    names = [dataset] if isinstance(dataset, (str, Dataset)) else dataset
    lengths = [bits] if isinstance(bits, int) else bits
    seeds = list(seeds)
    jobs = []
    for name, n_bits in itertools.product(names, lengths):
        cases = _seeds(method, name, seeds, checkpoints)
        chosen = variants(data_of(name).role) if callable(variants) else variants
        for (label, params), seed in itertools.product(chosen.items(), cases):
            case = {"method": method, "dataset": name, "n_bits": n_bits}
            jobs.append(case | seed | {"label": label, "params": params} | options)
    return run_all(jobs)


def main() -> None:
    """Print the tables of all metrics: the command line."""
    # Not at the top: runs do not depend on tables.
    from study import tables

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", choices=datasets.NAMES)
    parser.add_argument("--bits", type=int, nargs="+", default=BITS)
    parser.add_argument("--seeds", type=int, default=1, help="how many (default 1)")
    names = named("paper")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=names)
    text = "as the published benchmark computes them, faults included"
    parser.add_argument("--published", action="store_true", help=text)
    text = "encode the database by its labels: another protocol than the paper's"
    parser.add_argument("--labelled", action="store_true", help=text)
    options = parser.parse_args()
    seeds = list(range(options.seeds))
    case = (options.methods, options.dataset, options.bits, seeds)
    database = "labelled" if options.labelled else "learned"
    records = compare(*case, published=options.published, database=database)
    for metric in ("mAP", "mAP@1000", "P@H2", "train_seconds"):
        print(f"\n{tables.table(records, metric)}")


if __name__ == "__main__":
    main()
