"""What a practitioner would try first instead of codes of this toolkit, on the protocol's splits.

All learn from the same features of the same stream. An item is a packed code, searched by Hamming
distance, or a vector, searched by cosine.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import normalize
from tqdm import tqdm

from baselines import LSH
from baselines.linear import share_label
from hmoh import HMOH, Codebook, compiled
from metrics import HammingHistogram, hamming_histogram, pack
from ridge import HadamardRidge
from study import datasets, protocol
from study.evaluation import headline, mean_ap
from study.features import prepare
from study.recipes import recipes
from study.records import code_version, run_key, write_atomically

__all__ = ["compare", "cosine_search", "fit_rivals", "itq"]

N_BITS = 32
N_ITERATIONS = 50  # of ITQ, as in its paper, and of logistic regression at most
LEVELS = 1 << 20  # cosines that agree to a millionth are a tie, as those of equal items must be
BLOCK_CELLS = 1 << 24  # queries times items that are ranked at a time
_load = cache(datasets.load)


def itq(V: np.ndarray, seed: int) -> np.ndarray:
    """Return a rotation R that brings centred rows V near to their signs (Gong, CVPR 2011).

    The signs B of V R and the best R for them, U W^T of V^T B = U S W^T, alternate.
    """
    R = np.linalg.qr(np.random.default_rng(seed).normal(size=(V.shape[1], V.shape[1])))[0]
    for _ in range(N_ITERATIONS):
        U, _, Wt = np.linalg.svd(V.T @ np.where(V @ R > 0, 1.0, -1.0))
        R = U @ Wt
    return R


def fit_rivals(
    X: np.ndarray, y: np.ndarray, seed: int, supervised: bool = False
) -> Iterator[tuple[str, int, float, Callable]]:
    """Learn from a stream; yield the name, bytes per item, CPU seconds and encoder of each method.

    Of several labels, logistic regression learns each against the rest, and LDA takes a row once
    for each. ``supervised`` leaves out LDA, slow with many features, and what uses no labels.
    """
    n_bytes = N_BITS // 8
    for make, settings in ((HMOH, {}), (HadamardRidge, {"ridge": 0.001})):
        begin = time.process_time()
        model = make(N_BITS, codebook="spread", random_state=seed, **settings).fit(X, y)
        model.transform(X[:1])  # here the ridge solves its equations
        yield make.__name__, n_bytes, time.process_time() - begin, model.transform

    begin = time.process_time()
    logistic = LogisticRegression(C=10, max_iter=N_ITERATIONS)
    if y.ndim == 2:
        logistic = OneVsRestClassifier(logistic)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # more steps take long and gain little
        logistic.fit(X, y if y.ndim == 1 else y[:, y.any(axis=0)])
    seconds = time.process_time() - begin
    L = len(logistic.classes_)
    book = Codebook(N_BITS, "spread", n_labels=L, seed=seed).add(range(L))
    targets = np.array([book.targets[label] for label in range(L)])
    # A bit for each class ties the items of a class, as comparing a byte with its number does.
    proba = logistic.predict_proba
    yield "logistic, class", 1, seconds, lambda Z: pack(np.eye(L) > 0)[proba(Z).argmax(axis=1)]
    yield "logistic, probabilities", L, seconds, lambda Z: np.rint(255 * proba(Z))
    yield "logistic, Hadamard signs", n_bytes, seconds, lambda Z: pack(proba(Z) @ targets > 0)
    if supervised:
        return
    yield "LSH", n_bytes, 0.0, LSH(N_BITS, random_state=seed).fit(X).transform
    begin = time.process_time()
    pca = PCA(N_BITS, svd_solver="covariance_eigh").fit(X)
    seconds = time.process_time() - begin
    yield "PCA, signs", n_bytes, seconds, lambda Z: pack(pca.transform(Z) > 0)
    yield "PCA, floats", 4 * N_BITS, seconds, pca.transform
    begin = time.process_time() - seconds
    R = itq(pca.transform(X), seed)
    yield "ITQ", n_bytes, time.process_time() - begin, lambda Z: pack(pca.transform(Z) @ R > 0)
    begin = time.process_time()
    rows, labels = (np.arange(len(y)), y) if y.ndim == 1 else np.nonzero(y)
    # Some pixels are constant, so LDA needs a little shrinkage.
    lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.001).fit(X[rows], labels)
    A = lda.scalings_[:, : L - 1].astype(np.float32)
    yield "LDA, floats", 4 * A.shape[1], time.process_time() - begin, lambda Z: Z @ A


def cosine_search(Q: np.ndarray, D: np.ndarray, y: np.ndarray, db_y: np.ndarray, metric="mAP"):
    """Return the average precision and P@100 of each row of Q in a search of D, (n, 2) float64.

    They are expectations over all orders of ties, as for codes; nan for a query without relevant.
    """
    Q, D = (normalize(A).astype(np.float32) for A in (Q, D))  # a row of zeros stays zero
    found = []
    for part in np.array_split(np.arange(len(Q)), -(-len(Q) * len(D) // BLOCK_CELLS)):
        shared = share_label(y[part], db_y)
        keys = 2 * np.rint((1 - Q[part] @ D.T) * LEVELS).astype(np.int32) + shared
        keys.sort(axis=1)
        # Each tie with a relevant item, and those between them.
        shape = (len(keys), 2 * int(shared.sum(axis=1).max()) + 1)
        ties = HammingHistogram(np.zeros(shape, np.int64), np.zeros(shape, np.int64))
        found.append(_count_ties(keys, ties.items, ties.relevant))
        if metric != "mAP":
            found[-1][:, 0] = mean_ap(ties, metric, per_query=True)
    return np.concatenate(found)


@compiled
def _count_ties(keys, items, relevant):
    """Count items by ties of sorted keys, 2 * rank + relevance; return expected AP and P@100."""
    values = np.zeros((len(keys), 2))
    for q in range(len(keys)):
        tie, start, hits = -1, 0, 0
        while start < keys.shape[1]:
            end, good = start, 0
            while end < keys.shape[1] and keys[q, end] >> 1 == keys[q, start] >> 1:
                good += keys[q, end] & 1
                end += 1
            n = end - start
            for i in range(n if good else 0):
                inner = hits + 1 + i * (good - 1) / max(n - 1, 1)
                values[q, 0] += good / n * inner / (start + i + 1)
            values[q, 1] += good / n * max(0, min(end, 100) - start) / 100
            if tie < 0 or good or relevant[q, tie]:
                tie += 1
            items[q, tie] += n
            relevant[q, tie] += good
            start = end
            hits += good
        values[q, 0] = values[q, 0] / hits if hits else np.nan
    return values


def _run(job: dict, code: str) -> list[dict]:
    """Return a record of each method on one split, read from build/records or written there."""
    name, seed, features, split, n_anchors = job.values()
    key = run_key(job, protocol.PROFILE, datasets.fingerprint(name), code)
    path = protocol.RECORDS / f"rivals-{name}-{seed}-{key}.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    data = _load(name)
    metric = headline(data.role)
    model = recipes(n_anchors)[f"HMOH, {features}"].model(N_BITS, seed)
    _, parts = prepare(model, data, split, seed)
    n = 1500 if protocol.PROFILE == "quick" else None
    (X, y), (D, db_y), (Q, query_y) = ((part.X[:n], part.y[:n]) for part in parts[:3])
    records = []
    for method, n_bytes, seconds, encode in fit_rivals(X, y, seed, features != "unit rows"):
        codes, db_codes = encode(Q), encode(D)
        if codes.dtype == np.uint8:
            histogram = hamming_histogram(codes, db_codes, query_y, db_y, n_threads=1)
            ap, p100 = mean_ap(histogram, metric), histogram.precision_at_k(100)
        else:
            found = cosine_search(codes, db_codes, query_y, db_y, metric)
            ap, p100 = np.nanmean(found, axis=0).tolist()
        record = job | {"role": data.role, "method": method, "label": f"{method}, {features}"}
        records.append(record | {"bytes": n_bytes, "seconds": seconds, metric: ap, "P@100": p100})
    write_atomically(path, json.dumps(records))
    return records


def compare(sets: Iterable[str], seeds: Iterable[int], split="paper", n_anchors=1000) -> list[dict]:
    """Return a record of each method on all sets, seeds and features; finished runs are kept.

    Splits are those of `protocol.run`, features those of `recipes`. Quick takes 1,500 rows of each.
    """
    code = code_version(protocol.ROOT) + hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    jobs = []
    for name, seed, kind in itertools.product(sets, seeds, ("unit rows", "side by side")):
        job = {"dataset": name, "seed": seed, "features": kind, "split": split}
        jobs.append(job | {"n_anchors": n_anchors})
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        each = pool.map if protocol.PROFILE == "paper" else map
        found = each(_run, jobs, itertools.repeat(code))
        bar = tqdm(found, total=len(jobs), leave=False, file=sys.stdout)
        return list(itertools.chain.from_iterable(bar))
