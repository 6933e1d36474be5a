"""Run the paper's protocol (Sec. 4.1): train on the stream, encode, measure, compare.

    python -m study.protocol mnist [--bits 32 64] [--seeds 3] [--methods HMOH HCOH] [--published]

prints mAP, mAP@1000, Precision@H2 and training time. The paper's values stand beside ours
where the data are the paper's. Finished runs are kept in build/records and are not repeated until
the code or the data change, so an interrupted comparison continues where it stopped.

`study.profile` says how large all runs are: the paper's protocol with ten seeds, or small ones.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from tqdm import tqdm

from baselines import METHODS, PUBLISHED_FAULTS, named
from study import datasets, profile
from study.features import prepare
from study.keep import code_version, plain, plain_values, run_key, write_atomically
from study.profile import BITS, SEEDS, by_profile
from study.scores import area_under_curve, headline, int8_saturated, measure
from study.training import compile_method, evaluate, fit, fit_in_steps, new_model

# What the modules scores and keep define is listed here too, for those who import it.
__all__ = ["compare", "headline", "int8_saturated", "run", "run_all"]
__all__ += ["sweep", "write_atomically"]

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "build" / "records"

# A STAND-IN decides nothing, so it gets only the first of the seeds. There MIHash, which takes many
# times as long as another method, and curves along the stream get even fewer.
STAND_IN_SEEDS, STAND_IN_FEWEST = 6, 3


# ---- data --------------------------------------------------------------------------


@cache
def _data(name: str) -> datasets.Dataset:
    """Return a data set, or a part of it in the quick profile."""
    data = datasets.load(name)
    return datasets.small_part(data) if profile.QUICK else data


def _label(method: str, published: bool) -> str:
    return f"{method}, as published" if published else method


# ---- one run -------------------------------------------------------------------------


def run(
    method: str,
    dataset: str,
    n_bits: int,
    seed: int,
    checkpoints: bool | list[int] = False,
    split: str = "paper",
    params: dict | None = None,
    n_queries: int | None = None,
    n_threads: int | None = 1,
    label: str | None = None,
    published: bool = False,
) -> dict:
    """Train on the stream, encode, evaluate.

    Parameters
    ----------
    method : str
        A name of `baselines.METHODS`.
    dataset : str
        A name that `datasets.load` knows.
    n_bits, seed : int
    checkpoints : bool or list of int
        Also measure the headline metric after these numbers of samples. True means after every
        tenth of the stream (on Places205 the paper's shares, from 5 % on).
    split : {"paper", "unseen", "test", "held-out"}
        `datasets.split`, `datasets.unseen_split` with classes that the stream never shows,
        `datasets.split` with queries from the test part only, or `datasets.held_out_split`.
    params : dict, optional
        Parameters of the model other than the paper's, such as ``{"feature_map": None}`` or
        ``{"batch_size": 2}``. `keep.plain` says which values are allowed.
    n_queries : int, optional
        A number other than the paper's.
    n_threads : int, optional
        Threads for training and evaluation; None means all cores. `run_all` runs one process on
        each core instead.
    label : str, optional
        The name of this run in tables and figures. By default it is the method's name, followed by
        ", as published" if it is.
    published : bool
        Take the method from `baselines.METHODS_AS_PUBLISHED`: what the published benchmark
        computes, faults included.

    Returns
    -------
    dict
        "method", "label", "dataset", "n_bits", "seed", "split", "n_queries", "published" as above;
        "role" and "stand_in_for" of the data (the latter is None if the data are the paper's);
        "n_stream" and "n_database"; and

        - "metric", the name of the headline metric;
        - "params" as given and "settings", all parameters of the model by scikit-learn's deep
          names such as "feature_map__n_anchors", both as values of `keep.plain`;
        - "mAP", "mAP@1000" (divided by the hits, as the paper does), "P@H2", and "mAP int8" (the
          headline metric by the published evaluation, see `int8_saturated`);
        - "train_seconds" without compilation: to fit the feature map and map the stream, and to
          learn from it. Runs that share a map share the time of mapping, measured once;
        - "K" and "P@K", the Precision@K curve, and "AUC P@K", its mean height; "precision" and
          "recall" within each radius, and "AUC PR", the area under that curve;
        - with checkpoints "samples" and "stream", the headline metric after each of them, and
          "AUC mAP", the mean height of this curve. The metric is None where a method cannot encode
          yet, and the mean is None if fewer than two values are known;
        - "per_query", the headline metric and P@H2 of every query, for paired comparisons.
    """
    data = _data(dataset)
    metric = data.metric
    model = new_model(method, data.role, n_bits, seed, params, published, n_threads)
    settings = plain_values(model.get_params())
    as_published = published and method in PUBLISHED_FAULTS
    model, parts = prepare(model, data, split, seed, n_queries, as_published)
    n_stream = len(parts.stream.X)
    record = {
        "method": method,
        "label": label or _label(method, published),
        "dataset": data.name,
        "role": data.role,
        "stand_in_for": data.stand_in_for,
        "metric": metric,
        "n_bits": n_bits,
        "seed": seed,
        "split": split,
        "published": published,
        "params": plain_values(params or {}),
        "settings": settings,
        "n_stream": n_stream,
        "n_queries": len(parts.queries.X),
        "n_database": len(parts.database.X),
    }
    compile_method(method, published)
    if checkpoints is True:
        shares = data.benchmark.checkpoints if data.benchmark else datasets.TENTHS
        checkpoints = [round(share * n_stream) for share in shares]
    if checkpoints:
        stops = [stop for stop in checkpoints if stop < n_stream]
        seconds, curve = fit_in_steps(model, parts, stops, metric, n_threads)
    else:
        seconds = fit(model, parts)
    record["train_seconds"] = parts.seconds + seconds
    histogram = evaluate(model, parts, n_threads)
    record |= measure(histogram, metric, len(parts.database.X))
    if checkpoints:
        if len(stops) < len(checkpoints):
            stops.append(checkpoints[len(stops)])
            curve.append(record[metric])
        known = [i for i, value in enumerate(curve) if value is not None]
        area = None
        if len(known) > 1:
            area = area_under_curve([stops[i] for i in known], [curve[i] for i in known])
        record |= {"samples": stops, "stream": curve, "AUC mAP": area}
    return record


# ---- many runs -----------------------------------------------------------------------


@cache
def _version() -> str:
    return code_version(ROOT)


def _place(job: dict) -> tuple[dict, Path]:
    """Return the arguments of a run without its label, and the path of its record.

    The label of a run is not kept: runs that differ only in their labels share a record. So do the
    two forms of a method whose published code has no fault.
    """
    arguments = {name: job[name] for name in job if name not in ("label", "published")}
    if job.get("published") and job["method"] in PUBLISHED_FAULTS:
        arguments["published"] = True
    fingerprint = datasets.fingerprint(job["dataset"])
    key = run_key(arguments, profile.PROFILE, fingerprint, _version())
    name = "{method}-{dataset}-{n_bits}-{seed}".format(**job)
    return arguments, RECORDS / f"{name}-{key}.json"


def _kept_run(job: dict) -> dict:
    """Return the record of `run`, read from build/records or written there."""
    arguments, path = _place(job)
    if path.exists():
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            way = "delete it, and the run is made again"
            raise ValueError(f"{path} is damaged ({error}); {way}.") from None
    else:
        record = run(**arguments)
        write_atomically(path, json.dumps(record))
    published = job.get("published", False)
    label = job.get("label") or _label(job["method"], published)
    return record | {"label": label, "published": published}


def _shared_first(jobs: list[dict]) -> list[int]:
    """Return the numbers of the jobs in the order to run them: those that share features together.

    Among these the long codes come first. They take longest, so no core waits for the last one.
    """

    def place(number: int) -> tuple:
        job = jobs[number]
        role = _data(job["dataset"]).role
        names = ("method", "n_bits", "seed", "params")
        model = new_model(role=role, **{name: job.get(name) for name in names})
        case = (job["dataset"], job["seed"], job.get("split", ""))
        return *case, json.dumps(plain(model.feature_map)), -job["n_bits"]

    return sorted(range(len(jobs)), key=place)


def run_all(jobs: Iterable[dict], n_workers: int | None = None) -> list[dict]:
    """Return the records of many runs, in order; finished ones are read from build/records.

    A kept record is used while the code, the data and the arguments are the same. The code of a
    feature map of your own does not count: only its name and its parameters do.

    Parameters
    ----------
    jobs : dicts of the arguments of `run`
    n_workers : int, optional
        Processes; by default one for each core, and one in the quick profile. With 1 the runs do
        not compete for the machine, which training times need.
    """
    # A name of the paper's data becomes that of the stand-in, if the stand-in is used.
    jobs = [job | {"dataset": _data(job["dataset"]).name} for job in jobs]
    order = _shared_first(jobs)
    if n_workers is None:
        n_workers = by_profile(os.cpu_count(), 1)
    n_missing = sum(not _place(job)[1].exists() for job in jobs)
    n_workers = min(n_missing, n_workers or 1)
    names = ", ".join(dict.fromkeys(job["dataset"] for job in jobs))
    # JupyterLab shows what goes to stderr as an error. A command's tables go to stdout alone.
    file = sys.stdout if "ipykernel" in sys.modules else sys.stderr
    bar = {"total": len(jobs), "desc": names, "unit": "run", "leave": False, "file": file}
    if n_workers <= 1:
        found = {number: _kept_run(jobs[number]) for number in tqdm(order, **bar)}
        return [found[number] for number in range(len(jobs))]
    # The new processes read these variables: one core for each run.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    with ProcessPoolExecutor(n_workers, mp_context=get_context("spawn")) as pool:
        futures = {number: pool.submit(_kept_run, jobs[number]) for number in order}
        for future in tqdm(as_completed(futures.values()), **bar):
            if future.exception():
                pool.shutdown(wait=False, cancel_futures=True)
                raise future.exception()
    return [futures[number].result() for number in range(len(jobs))]


def _seeds(
    method: str, dataset: str, seeds: Iterable[int], checkpoints: bool | list[int]
) -> list[dict]:
    """Return the seeds of a method on a data set, each with its checkpoints if it has any."""
    cases = [{"seed": seed} for seed in seeds]
    n_curves = len(cases)
    if _data(dataset).stand_in_for:
        cases = cases[: STAND_IN_FEWEST if method == "MIHash" else STAND_IN_SEEDS]
        n_curves = STAND_IN_FEWEST
    if checkpoints:
        for case in cases[:n_curves]:
            case["checkpoints"] = checkpoints
    return cases


def compare(
    methods: Iterable[str],
    dataset: str,
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
    dataset : str
    bits, seeds : list of int
        On a STAND-IN only the first of the seeds are used, see `STAND_IN_SEEDS`.
    published : bool
        As in `run`.
    checkpoints : bool or list of int
        As in `run`.
    **options
        Further arguments of `run`.
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
    dataset: str | Iterable[str],
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
        function gets the role of a data set ("mnist", "places205", ...) and returns such a dict.
    dataset : str or list of str
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
    names = [dataset] if isinstance(dataset, str) else dataset
    lengths = [bits] if isinstance(bits, int) else bits
    seeds = list(seeds)
    jobs = []
    for name, n_bits in itertools.product(names, lengths):
        cases = _seeds(method, name, seeds, checkpoints)
        chosen = variants(_data(name).role) if callable(variants) else variants
        for (label, params), seed in itertools.product(chosen.items(), cases):
            case = {"method": method, "dataset": name, "n_bits": n_bits}
            jobs.append(case | seed | {"label": label, "params": params} | options)
    return run_all(jobs)


def main() -> None:
    """Print the tables of all metrics: the command line."""
    # Not at the top: runs do not depend on tables.
    from study import tables

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = dict.fromkeys([*datasets.SHIPPED, *datasets.BENCHMARKS])
    parser.add_argument("dataset", choices=list(known))
    parser.add_argument("--bits", type=int, nargs="+", default=BITS)
    parser.add_argument("--seeds", type=int, default=1, help="how many (default 1)")
    names = named("paper")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=names)
    text = "as the published benchmark computes them, faults included"
    parser.add_argument("--published", action="store_true", help=text)
    options = parser.parse_args()
    seeds = list(range(options.seeds))
    case = (options.methods, options.dataset, options.bits, seeds)
    records = compare(*case, published=options.published)
    for metric in ("mAP", "mAP@1000", "P@H2", "train_seconds"):
        print(f"\n{tables.table(records, metric)}")


if __name__ == "__main__":
    main()
