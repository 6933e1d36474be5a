"""The paper's protocol (Sec. 4.1): train a method on the stream, encode queries and database, measure, compare.

    python experiments.py mnist [--bits 32 64] [--seeds 3] [--methods HMOH HCOH]

prints the methods' mAP, Precision@H2 and training time, beside the paper's where the data are the paper's. Finished
runs are kept in build/records and not repeated until the code or the data changes, so that an interrupted comparison
goes on where it stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

import datasets
from baselines import METHODS
from metrics import hamming_histogram

__all__ = ["BITS", "compare", "run", "summary", "table"]

HERE = Path(__file__).parent
RECORDS = HERE / "build" / "records"
BITS = [8, 16, 32, 48, 64, 128]


@cache
def _version() -> str:
    """A name for the code and the data (whose checksums are part of the code) that a record depends on."""
    modules = (path for path in sorted(HERE.glob("*.py")) if path.stem not in ("bench", "plots"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in modules)).hexdigest()


@cache
def _data(name: str) -> datasets.Dataset:
    return datasets.load(name)


@cache
def _compile(method: str) -> None:
    """Make a method's compiled loops ready, so that training times do not contain it."""
    rng = np.random.default_rng(0)
    model = METHODS[method]("mnist", 8, 0)
    model.fit(rng.random((2500, 10), dtype=np.float32), rng.integers(3, size=2500))


def run(method: str, dataset: str, n_bits: int, seed: int, n_threads: int | None = None) -> dict:
    """Train on the stream, encode, evaluate.

    Parameters
    ----------
    method : str
        A name of `baselines.METHODS`.
    dataset : str
        A name that `datasets.load` knows.
    n_bits, seed : int
    n_threads : int, optional
        For training; by default all cores.

    Returns
    -------
    dict
        "method", "dataset", "stand_in_for" (None where the data are the paper's), "n_bits", "seed", the metrics "mAP",
        "mAP@1000" (divided by the hits, as the paper does) and "P@H2", and "train_seconds" (feature map included,
        compilation excluded).
    """
    data = _data(dataset)
    parts = datasets.split(data, seed)
    _compile(method)
    model = METHODS[method](data.role, n_bits, seed).set_params(n_threads=n_threads)
    X, y = data.features[parts.stream], data.labels[parts.stream]
    start = time.perf_counter()
    model.fit(X, y)
    train_seconds = time.perf_counter() - start
    queries, database = model.transform(data.features[parts.queries]), model.transform(data.features[parts.database])
    result = hamming_histogram(queries, database, data.labels[parts.queries], data.labels[parts.database], n_bits)
    return {
        "method": method,
        "dataset": data.name,
        "stand_in_for": data.stand_in_for,
        "n_bits": n_bits,
        "seed": seed,
        "mAP": result.mean_average_precision(),
        "mAP@1000": result.mean_average_precision(top=1000, normalize="retrieved"),
        "P@H2": result.precision_at_radius(2),
        "train_seconds": train_seconds,
    }


def _kept_run(*job) -> dict:
    """`run`, read from or written to build/records."""
    key = hashlib.sha256(json.dumps([*job, _version()]).encode()).hexdigest()[:20]
    path = RECORDS / f"{'-'.join(map(str, job[:4]))}-{key}.json"
    if path.exists():
        return json.loads(path.read_text())
    record = run(*job)
    RECORDS.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(record))
    os.replace(temporary, path)  # so that a killed process leaves no half-written record
    return record


def compare(methods: list[str], dataset: str, bits: list[int], seeds: list[int]) -> list[dict]:
    """The records of all methods, code lengths and seeds, one run per core at a time, with a progress bar."""
    dataset = _data(dataset).name  # what is really there: the paper's data or a stand-in
    jobs = [
        (method, dataset, n_bits, seed, 1)
        for n_bits in sorted(bits, reverse=True)
        for seed in seeds
        for method in methods
    ]
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # read by the new processes: one core for each run
    n_workers = min(len(jobs), os.cpu_count() or 1)
    with ProcessPoolExecutor(n_workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_kept_run, *job) for job in jobs]
        for _ in tqdm(as_completed(futures), total=len(jobs), desc=dataset, unit="run"):
            pass
    return [future.result() for future in futures]


def summary(records: list[dict], metric: str) -> dict[tuple[str, int], tuple[float, float]]:
    """(method, n_bits) -> mean and standard deviation over seeds."""
    values: dict = {}
    for record in records:
        values.setdefault((record["method"], record["n_bits"]), []).append(record[metric])
    return {
        key: (float(np.mean(v)), float(np.std(v, ddof=1)) if len(v) > 1 else float("nan")) for key, v in values.items()
    }


def table(records: list[dict], metric: str, printed: dict[str, dict[str, float]] | None = None) -> str:
    """Means and spreads of one metric as text, the paper's values under each method's."""
    cells = summary(records, metric)
    bits = sorted({n_bits for _, n_bits in cells})
    lines = [f"{'bits':<14}" + "".join(f"{n_bits:<13}" for n_bits in bits)]
    for method in dict.fromkeys(record["method"] for record in records):
        row = [f"{mean:.3f}" + ("" if np.isnan(sd) else f" ±{sd:.3f}") for mean, sd in (cells[method, b] for b in bits)]
        lines.append(f"{method:<14}" + "".join(f"{cell:<13}" for cell in row))
        if printed and method in printed:
            row = [f"{printed[method][str(b)]:.3f}" if str(b) in printed[method] else "-" for b in bits]
            lines.append(f"{'  the paper':<14}" + "".join(f"{cell:<13}" for cell in row))
    return "\n".join(line.rstrip() for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", choices=[*datasets.SHIPPED, "cifar10", "places205", "nuswide"])
    parser.add_argument("--bits", type=int, nargs="+", default=BITS)
    parser.add_argument("--seeds", type=int, default=1, help="how many (default 1)")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    options = parser.parse_args()
    records = compare(options.methods, options.dataset, options.bits, list(range(options.seeds)))
    data = _data(records[0]["dataset"])
    paper = json.loads((HERE / "data" / "paper_results.json").read_text())
    printed, seconds = {}, {}
    if data.stand_in_for is None:  # only then do the paper's numbers stand beside ours
        printed = paper["results"][data.role]
        seconds = {method: {"32": row[data.role]} for method, row in paper["training_seconds_32bit"].items()}
    what = data.name + (f", STAND-IN for {data.stand_in_for}" if data.stand_in_for else ", the paper's row below ours")
    for metric in ("mAP", "mAP@1000", "P@H2"):
        print(f"\n{metric} on {what}; {options.seeds} seed(s)")
        print(table(records, metric, {method: row[metric] for method, row in printed.items() if metric in row}))
    print(f"\ntraining seconds on {what}; one core for each run of ours")
    print(table(records, "train_seconds", seconds))


if __name__ == "__main__":
    main()
