"""The paper's protocol (Sec. 4.1): train a method on the stream, encode queries and database, measure, compare.

    python experiments.py mnist [--bits 32 64] [--seeds 3] [--methods HMOH HCOH]

prints the methods' mAP, Precision@H2 and training time, beside the paper's where the data are the paper's. Finished
runs are kept in build/records and not repeated until the code or the data changes, so that an interrupted comparison
goes on where it stopped.

The environment variable HMOH_PROFILE chooses the size of everything: "paper" (the default) is the paper's protocol with
three seeds, "quick" is small parts of the same sets, two code lengths and one seed, to try things out.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from tqdm import tqdm

import datasets
import tables
from baselines import METHODS
from hmoh import NotFittedError, OnlineHasher
from metrics import HammingHistogram, area_under_curve, hamming_histogram

__all__ = ["BITS", "PROFILE", "SEEDS", "compare", "headline", "int8_saturated", "run", "run_all", "sweep"]

HERE = Path(__file__).parent
RECORDS = HERE / "build" / "records"
NOT_IN_RECORDS = ("bench", "claims", "plots", "scaling", "tables")  # modules that no record depends on

PROFILE = os.environ.get("HMOH_PROFILE", "paper")
if PROFILE not in ("paper", "quick"):
    raise ValueError(f'HMOH_PROFILE={PROFILE!r} is unknown; set it to "paper" or "quick", or leave it out.')
BITS = [8, 16, 32, 48, 64, 128] if PROFILE == "paper" else [16, 64]
SEEDS = [0, 1, 2] if PROFILE == "paper" else [0]
TOP_K = [1, 5, *range(10, 101, 10)]  # of the Precision@K curves
CHECKPOINTS = {"places205": [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0]}  # shares of the stream; elsewhere every tenth


def headline(role: str) -> str:
    """The metric that the paper's tables call mAP: over all ranks, but on Places205 over the first 1,000."""
    return "mAP@1000" if role == "places205" else "mAP"


# ---- one run ------------------------------------------------------------------------------------------------------


@cache
def _data(name: str) -> datasets.Dataset:
    """A data set, or in the quick profile a part of it."""
    data = datasets.load(name)
    if PROFILE == "paper":
        return data
    n_queries = 200 if data.multi_label else 10 * len(data.classes) if len(data.classes) < 100 else data.n_queries // 5
    data = replace(data, n_queries=n_queries, stream_size=2500, notes="A small part, for the quick profile.")
    if len(data.labels) <= 30_000:
        return data
    is_test = np.isin(np.arange(len(data.labels)), data.candidates)
    rows = np.concatenate([np.flatnonzero(~is_test)[:5000], np.flatnonzero(is_test)[:1000]])
    part = {"features": data.features[rows], "labels": data.labels[rows], "candidates": np.arange(5000, 6000)}
    return replace(data, **part)


@cache
def _compile(method: str) -> None:
    """Make a method's compiled loops ready, so that training times do not contain it."""
    rng = np.random.default_rng(0)
    model = METHODS[method]("mnist", 8, 0)
    model.fit(rng.random((2500, 10), dtype=np.float32), rng.integers(3, size=2500))


def int8_saturated(histogram: HammingHistogram) -> HammingHistogram:
    """The histogram as the published evaluation sees it, with similarities r - 2 d cast to int8.

    MATLAB's cast saturates at -128 and 127, so that of a code longer than 128 bits all near distances are one tie, and
    so are all far ones. They are counted at the first of their distances here.
    """
    similarity = histogram.n_bits - 2 * np.arange(histogram.n_bits + 1)
    _, first, tie = np.unique(-np.clip(similarity, -128, 127), return_index=True, return_inverse=True)
    items, relevant = np.zeros_like(histogram.items), np.zeros_like(histogram.relevant)
    for distance, place in enumerate(first[tie]):
        items[:, place] += histogram.items[:, distance]
        relevant[:, place] += histogram.relevant[:, distance]
    return HammingHistogram(items, relevant)


def _evaluate(model: OnlineHasher, data: datasets.Dataset, parts: datasets.Split, n_threads) -> HammingHistogram:
    queries, database = model.transform(data.features[parts.queries]), model.transform(data.features[parts.database])
    labels = data.labels[parts.queries], data.labels[parts.database]
    return hamming_histogram(queries, database, *labels, model.n_bits, n_threads)


def _mean_ap(histogram: HammingHistogram, metric: str, per_query: bool = False) -> float | np.ndarray:
    options = {"top": 1000, "normalize": "retrieved"} if metric == "mAP@1000" else {}
    return histogram.mean_average_precision(per_query=per_query, **options)


def _stream_curve(model: OnlineHasher, data, parts, checkpoints: list[int], n_threads) -> Iterable[float | None]:
    """The headline metric after each number of samples; None while a method still waits for its first ones."""
    X, y = data.features[parts.stream], data.labels[parts.stream]
    known = None if data.multi_label or not model._supervised else np.unique(y)
    for start, stop in itertools.pairwise([0, *checkpoints]):
        model.partial_fit(X[start:stop], y[start:stop], classes=known)
        try:
            yield _mean_ap(_evaluate(model, data, parts, n_threads), headline(data.role))
        except NotFittedError:
            yield None


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
        Also measure mAP on the way, after these numbers of samples; True: after every tenth of the stream (on
        Places205 as the paper, from 5 % on).
    split : {"paper", "unseen"}
        `datasets.split`, or `datasets.unseen_split` with classes that the stream never shows.
    params : dict, optional
        Parameters of the model other than the paper's, such as ``{"feature_map": None}`` or ``{"batch_size": 2}``.
    n_queries : int, optional
        Other than the paper's.
    n_threads : int, optional
        For training and evaluation; None: all cores. `run_all` has a run for each core instead.
    label : str, optional
        What tables and figures call this run; by default the method's name.

    Returns
    -------
    dict
        All of the above, "role" and "stand_in_for" of the data (the latter None where they are the paper's), and

        - "mAP", "mAP@1000" (divided by the hits, as the paper does), "P@H2", "train_seconds" (feature map included,
          compilation excluded), "mAP int8" (the headline metric by the published evaluation, see `int8_saturated`);
        - "K" and "P@K", the Precision@K curve, and "AUC P@K", its mean height; "precision" and "recall" within each
          radius, and "AUC PR", the area under that curve;
        - with checkpoints "samples" and "stream", the headline metric on the way, and "AUC mAP", its mean height;
        - "per_query", the headline metric and P@H2 of every query, for paired comparisons of methods.
    """
    data = _data(dataset)
    if n_queries is not None:
        data = replace(data, n_queries=n_queries)
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; pass one of {', '.join(METHODS)}.")
    if split not in ("paper", "unseen"):
        raise ValueError(f'split={split!r} is unknown; pass "paper" or "unseen".')
    parts = (datasets.split if split == "paper" else datasets.unseen_split)(data, seed)
    _compile(method)

    def new_model() -> OnlineHasher:
        return METHODS[method](data.role, n_bits, seed).set_params(n_threads=n_threads, **(params or {}))

    model, n_stream = new_model(), len(parts.stream)
    X, y = data.features[parts.stream], data.labels[parts.stream]
    start = time.perf_counter()
    model.fit(X, y)
    train_seconds = time.perf_counter() - start

    result, metric = _evaluate(model, data, parts, n_threads), headline(data.role)
    top_k = [k for k in TOP_K if k <= len(parts.database)]
    precision_at_k = result.precision_at_k(top_k)
    precision, recall = result.precision_recall()
    per_query = {metric: _mean_ap(result, metric, per_query=True), "P@H2": result.precision_at_radius(2, True)}
    per_query = {name: [None if np.isnan(v) else round(float(v), 6) for v in row] for name, row in per_query.items()}
    record = {
        "method": method,
        "label": label or method,
        "dataset": data.name,
        "role": data.role,
        "stand_in_for": data.stand_in_for,
        "n_bits": n_bits,
        "seed": seed,
        "split": split,
        "params": {name: repr(value) for name, value in (params or {}).items()},
        "n_stream": n_stream,
        "n_queries": len(parts.queries),
        "n_database": len(parts.database),
        "mAP": _mean_ap(result, "mAP"),
        "mAP@1000": _mean_ap(result, "mAP@1000"),
        "mAP int8": _mean_ap(int8_saturated(result), metric),
        "P@H2": result.precision_at_radius(2),
        "AUC P@K": area_under_curve(top_k, precision_at_k),
        "AUC PR": float(np.trapezoid([precision[0], *precision], [0.0, *recall])),
        "train_seconds": train_seconds,
        "K": top_k,
        "P@K": precision_at_k.tolist(),
        "precision": precision.tolist(),
        "recall": recall.tolist(),
        "per_query": per_query,
    }
    if checkpoints:
        if checkpoints is True:
            shares = CHECKPOINTS.get(data.role, [i / 10 for i in range(1, 11)])
            checkpoints = [round(share * n_stream) for share in shares]
        curve = list(_stream_curve(new_model(), data, parts, [c for c in checkpoints if c < n_stream], n_threads))
        curve += [record[metric]] if checkpoints[-1] >= n_stream else []
        seen = [(n, value) for n, value in zip(checkpoints, curve, strict=True) if value is not None]
        record |= {"samples": list(checkpoints), "stream": curve, "AUC mAP": area_under_curve(*zip(*seen, strict=True))}
    return record


# ---- many runs ----------------------------------------------------------------------------------------------------


@cache
def _version() -> str:
    """A name for the code and the data (whose checksums are part of the code) that a record depends on."""
    modules = (path for path in sorted(HERE.glob("*.py")) if path.stem not in NOT_IN_RECORDS)
    return hashlib.sha256(b"".join(path.read_bytes() for path in modules)).hexdigest()


def _kept_run(job: dict) -> dict:
    """`run`, read from or written to build/records; what a run is called is no part of its record."""
    job = dict(job)
    label = job.pop("label", None) or job["method"]
    key = hashlib.sha256(repr([sorted(job.items()), PROFILE, _version()]).encode()).hexdigest()[:20]
    path = RECORDS / f"{job['method']}-{job['dataset']}-{job['n_bits']}-{job['seed']}-{key}.json"
    if path.exists():
        return json.loads(path.read_text()) | {"label": label}
    record = run(**job)
    RECORDS.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(record))
    os.replace(temporary, path)  # so that a killed process leaves no half-written record
    return record | {"label": label}


def run_all(jobs: Iterable[dict], n_workers: int | None = None) -> list[dict]:
    """The records of many runs, in order; finished ones are read from build/records.

    Parameters
    ----------
    jobs : dicts of the arguments of `run`
    n_workers : int, optional
        Processes; by default one for each core, and none in the quick profile. With 1 the runs do not compete for the
        machine: for training times.
    """
    jobs = [job | {"dataset": _data(job["dataset"]).name} for job in jobs]  # the paper's data or a stand-in
    n_workers = min(len(jobs), n_workers or (os.cpu_count() if PROFILE == "paper" else 1) or 1)
    names = ", ".join(dict.fromkeys(job["dataset"] for job in jobs))
    bar = {"total": len(jobs), "desc": names, "unit": "run", "leave": False}
    if n_workers <= 1:
        return [_kept_run(job) for job in tqdm(jobs, **bar)]
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # read by the new processes: one core for each run
    with ProcessPoolExecutor(n_workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_kept_run, job) for job in jobs]
        for future in tqdm(as_completed(futures), **bar):
            if future.exception():
                pool.shutdown(wait=False, cancel_futures=True)
            future.result()
    return [future.result() for future in futures]


def compare(
    methods: Iterable[str], dataset: str, bits: Iterable[int] = BITS, seeds: Iterable[int] = SEEDS, **options
) -> list[dict]:
    """The records of all methods, code lengths and seeds; ``options`` go to `run`."""
    cases = itertools.product(sorted(bits, reverse=True), seeds, methods)  # long ones first, so that no core waits
    return run_all({"method": m, "dataset": dataset, "n_bits": b, "seed": s} | options for b, s, m in cases)


def sweep(
    variants: dict[str, dict], dataset: str, n_bits: int = 32, seeds: Iterable[int] = SEEDS, method="HMOH", **options
) -> list[dict]:
    """The records of a method with one set of parameters after another, by their names: an ablation."""
    job = {"method": method, "dataset": dataset, "n_bits": n_bits} | options
    cases = itertools.product(variants.items(), seeds)
    return run_all(job | {"seed": s, "label": label, "params": params} for (label, params), s in cases)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", choices=[*datasets.SHIPPED, "cifar10", "places205", "nuswide"])
    parser.add_argument("--bits", type=int, nargs="+", default=BITS)
    parser.add_argument("--seeds", type=int, default=1, help="how many (default 1)")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    options = parser.parse_args()
    records = compare(options.methods, options.dataset, options.bits, list(range(options.seeds)))
    for metric in ("mAP", "mAP@1000", "P@H2", "train_seconds"):
        print(f"\n{tables.table(records, metric)}")


if __name__ == "__main__":
    main()
