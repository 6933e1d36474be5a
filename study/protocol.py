"""Run the paper's protocol (Sec. 4.1): train on the stream, encode, measure, compare.

    python -m study.protocol mnist [--bits 32 64] [--seeds 3] [--methods HMOH HCOH]

prints mAP, mAP@1000, Precision@H2 and training time. The paper's values stand beside ours
where the data are the paper's. Finished runs are kept in build/records and are not repeated until
the code or the data change, so an interrupted comparison continues where it stopped.

The environment variable HMOH_PROFILE chooses the size of all runs. "paper" (the default) is the
paper's protocol with three seeds. "quick" uses small parts of the same data sets, two code lengths
and one seed, to try things out.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from tqdm import tqdm

from baselines import METHODS
from hmoh import NotFittedError, OnlineHasher
from metrics import HammingHistogram, area_under_curve, hamming_histogram
from study import datasets
from study.evaluation import headline, int8_saturated, mean_ap, measure
from study.records import code_version, plain_values, run_key, write_atomically

# What the modules evaluation and records define is listed here too, for those who import it.
__all__ = ["BITS", "PROFILE", "SEEDS", "compare", "headline", "int8_saturated"]
__all__ += ["run", "run_all", "sweep", "write_atomically"]

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "build" / "records"

PROFILE = os.environ.get("HMOH_PROFILE", "paper")
if PROFILE == "paper":
    BITS = [8, 16, 32, 48, 64, 128]
    SEEDS = [0, 1, 2]
elif PROFILE == "quick":
    BITS = [16, 64]
    SEEDS = [0]
else:
    raise ValueError(
        f"HMOH_PROFILE={PROFILE!r} is unknown; "
        'set it to "paper" or "quick", or unset it.'
    )

# The shares of the stream after which the headline metric is measured, by role.
TENTHS = [i / 10 for i in range(1, 11)]
CHECKPOINTS = {"places205": [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0]}


# ---- data and models -----------------------------------------------------------------


@cache
def _data(name: str) -> datasets.Dataset:
    """Return a data set, or a part of it in the quick profile."""
    data = datasets.load(name)
    return data if PROFILE == "paper" else _small_part(data)


def _small_part(data: datasets.Dataset) -> datasets.Dataset:
    n_classes = len(data.classes)
    if data.multi_label:
        n_queries = 200
    elif n_classes < 100:
        n_queries = 10 * n_classes
    else:
        n_queries = data.n_queries // 5
    notes = "A small part, for the quick profile."
    data = replace(data, n_queries=n_queries, stream_size=2500, notes=notes)
    if len(data.labels) <= 30_000:
        return data
    is_test = np.isin(np.arange(len(data.labels)), data.candidates)
    train = np.flatnonzero(~is_test)[:5000]
    test = np.flatnonzero(is_test)[:1000]
    rows = np.concatenate([train, test])
    return replace(
        data,
        features=data.features[rows],
        labels=data.labels[rows],
        candidates=np.arange(5000, 6000),
    )


def _prepare(dataset, split, seed, n_queries):
    """Return the data set and its parts: stream, database and queries."""
    splits = {"paper": datasets.split, "unseen": datasets.unseen_split}
    if split not in splits:
        raise ValueError(f'split={split!r} is unknown; pass "paper" or "unseen".')
    data = _data(dataset)
    if n_queries is not None:
        data = replace(data, n_queries=n_queries)
    return data, splits[split](data, seed)


def _new_model(method, role, n_bits, seed, params, n_threads) -> OnlineHasher:
    """Return an untrained model with the paper's parameters, except those in ``params``."""
    model = METHODS[method](role, n_bits, seed)
    if "n_threads" in model.get_params():
        model.set_params(n_threads=n_threads)
    return model.set_params(**params)


@cache
def _compile(method: str) -> None:
    """Train on a small stream, so that later training times contain no compilation."""
    rng = np.random.default_rng(0)
    X = rng.random((2500, 10), dtype=np.float32)
    y = rng.integers(3, size=2500)
    METHODS[method]("mnist", 8, 0).fit(X, y)


# ---- one run -------------------------------------------------------------------------


def _train(model, data, parts) -> float:
    """Fit the model to the stream and return the seconds that it took."""
    X = data.features[parts.stream]
    y = data.labels[parts.stream]
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def _evaluate(model, data, parts, n_threads) -> HammingHistogram:
    """Encode queries and database, and count the distances between them."""
    return hamming_histogram(
        model.transform(data.features[parts.queries]),
        model.transform(data.features[parts.database]),
        data.labels[parts.queries],
        data.labels[parts.database],
        model.n_bits,
        n_threads,
    )


def _curve(model, data, parts, checkpoints, n_threads, at_the_end) -> dict:
    """Train an untrained model in steps and return the headline metric after each.

    The metric is None while the method still collects its first samples. A checkpoint at the end
    of the stream gets the value ``at_the_end`` of the complete run.
    """
    X = data.features[parts.stream]
    y = data.labels[parts.stream]
    classes = None
    if model.needs_labels and not data.multi_label:
        classes = np.unique(y)
    curve = []
    for start, stop in itertools.pairwise([0, *checkpoints]):
        if stop >= len(X):
            curve.append(at_the_end)
            break
        model.partial_fit(X[start:stop], y[start:stop], classes=classes)
        try:
            histogram = _evaluate(model, data, parts, n_threads)
        except NotFittedError:
            curve.append(None)
        else:
            curve.append(mean_ap(histogram, headline(data.role)))
    known = [i for i, value in enumerate(curve) if value is not None]
    area = area_under_curve([checkpoints[i] for i in known], [curve[i] for i in known])
    return {"samples": checkpoints[: len(curve)], "stream": curve, "AUC mAP": area}


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
    split : {"paper", "unseen"}
        `datasets.split`, or `datasets.unseen_split` with classes that the stream never shows.
    params : dict, optional
        Parameters of the model other than the paper's, such as ``{"feature_map": None}`` or
        ``{"batch_size": 2}``. `records.plain` says which values are allowed.
    n_queries : int, optional
        A number other than the paper's.
    n_threads : int, optional
        Threads for training and evaluation; None means all cores. `run_all` runs one process on
        each core instead.
    label : str, optional
        The name of this run in tables and figures, by default the method's name.

    Returns
    -------
    dict
        "method", "label", "dataset", "n_bits", "seed", "split", "n_queries" as above; "role" and
        "stand_in_for" of the data (the latter is None if the data are the paper's); "n_stream" and
        "n_database"; and

        - "params" as given and "settings", all parameters of the model by scikit-learn's deep
          names such as "feature_map__n_anchors", both as values of `records.plain`;
        - "mAP", "mAP@1000" (divided by the hits, as the paper does), "P@H2", "train_seconds"
          (with the feature map, without compilation), and "mAP int8" (the headline metric by the
          published evaluation, see `int8_saturated`);
        - "K" and "P@K", the Precision@K curve, and "AUC P@K", its mean height; "precision" and
          "recall" within each radius, and "AUC PR", the area under that curve;
        - with checkpoints "samples" and "stream", the headline metric after each of them, and
          "AUC mAP", the mean height of this curve;
        - "per_query", the headline metric and P@H2 of every query, for paired comparisons.
    """
    if method not in METHODS:
        names = ", ".join(METHODS)
        raise ValueError(f"there is no method {method!r}; pass one of {names}.")
    data, parts = _prepare(dataset, split, seed, n_queries)
    model_arguments = (method, data.role, n_bits, seed, params or {}, n_threads)
    model = _new_model(*model_arguments)
    record = {
        "method": method,
        "label": label or method,
        "dataset": data.name,
        "role": data.role,
        "stand_in_for": data.stand_in_for,
        "n_bits": n_bits,
        "seed": seed,
        "split": split,
        "params": plain_values(params or {}),
        "settings": plain_values(model.get_params()),
        "n_stream": len(parts.stream),
        "n_queries": len(parts.queries),
        "n_database": len(parts.database),
    }
    _compile(method)
    record["train_seconds"] = _train(model, data, parts)
    histogram = _evaluate(model, data, parts, n_threads)
    record |= measure(histogram, data.role, len(parts.database))
    if checkpoints:
        if checkpoints is True:
            shares = CHECKPOINTS.get(data.role, TENTHS)
            checkpoints = [round(share * len(parts.stream)) for share in shares]
        at_the_end = record[headline(data.role)]
        model = _new_model(*model_arguments)
        record |= _curve(model, data, parts, checkpoints, n_threads, at_the_end)
    return record


# ---- many runs -----------------------------------------------------------------------


@cache
def _version() -> str:
    return code_version(ROOT)


def _kept_run(job: dict) -> dict:
    """Return the record of `run`, read from build/records or written there.

    The label of a run is not kept: runs that differ only in their labels share a record.
    """
    job = dict(job)
    label = job.pop("label", None) or job["method"]
    key = run_key(job, PROFILE, datasets.fingerprint(job["dataset"]), _version())
    name = "{method}-{dataset}-{n_bits}-{seed}".format(**job)
    path = RECORDS / f"{name}-{key}.json"
    if path.exists():
        record = json.loads(path.read_text(encoding="utf-8"))
    else:
        record = run(**job)
        write_atomically(path, json.dumps(record))
    return record | {"label": label}


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
    if n_workers is None:
        n_workers = os.cpu_count() if PROFILE == "paper" else 1
    n_workers = min(len(jobs), n_workers or 1)
    names = ", ".join(dict.fromkeys(job["dataset"] for job in jobs))
    bar = {"total": len(jobs), "desc": names, "unit": "run", "leave": False}
    if n_workers <= 1:
        return [_kept_run(job) for job in tqdm(jobs, **bar)]
    # The new processes read these variables: one core for each run.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    with ProcessPoolExecutor(n_workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_kept_run, job) for job in jobs]
        for future in tqdm(as_completed(futures), **bar):
            if future.exception():
                pool.shutdown(wait=False, cancel_futures=True)
                raise future.exception()
    return [future.result() for future in futures]


def compare(
    methods: Iterable[str],
    dataset: str,
    bits: Iterable[int] = BITS,
    seeds: Iterable[int] = SEEDS,
    **options,
) -> list[dict]:
    """Return the records of all methods, code lengths and seeds; ``options`` go to `run`."""
    # Long codes take longest. They come first, so that no core waits for the last one.
    lengths = sorted(bits, reverse=True)
    jobs = []
    for n_bits, seed, method in itertools.product(lengths, seeds, methods):
        case = {"method": method, "dataset": dataset, "n_bits": n_bits, "seed": seed}
        jobs.append(case | options)
    return run_all(jobs)


def sweep(
    variants: dict[str, dict] | Callable[[str], dict[str, dict]],
    dataset: str | Iterable[str],
    bits: int | Iterable[int] = 32,
    seeds: Iterable[int] = SEEDS,
    method: str = "HMOH",
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
    seeds : list of int
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
        chosen = variants(_data(name).role) if callable(variants) else variants
        for (label, params), seed in itertools.product(chosen.items(), seeds):
            case = {"method": method, "dataset": name, "n_bits": n_bits, "seed": seed}
            jobs.append(case | {"label": label, "params": params} | options)
    return run_all(jobs)


def main() -> None:
    """Print the tables of all metrics: the command line."""
    # Not at the top: runs do not depend on tables.
    from study import tables

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    originals = ["cifar10", "places205", "nuswide"]
    parser.add_argument("dataset", choices=[*datasets.SHIPPED, *originals])
    parser.add_argument("--bits", type=int, nargs="+", default=BITS)
    parser.add_argument("--seeds", type=int, default=1, help="how many (default 1)")
    names = list(METHODS)
    parser.add_argument("--methods", nargs="+", choices=names, default=names)
    options = parser.parse_args()
    seeds = list(range(options.seeds))
    records = compare(options.methods, options.dataset, options.bits, seeds)
    for metric in ("mAP", "mAP@1000", "P@H2", "train_seconds"):
        print(f"\n{tables.table(records, metric)}")


if __name__ == "__main__":
    main()
