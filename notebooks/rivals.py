"""What a practitioner would try first: its codes, its search by floats, and its records.

14_beyond compares them with the codes of this project at the same bytes.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import faiss
import numpy as np
from beyond import recipes
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import normalize

from baselines import LSH
from baselines.linear import share_label
from hmoh import HMOH, Codebook, compiled
from kernels import UnitLength
from metrics import HammingHistogram, hamming_histogram, pack
from ridge import HadamardRidge
from study import datasets, profile, protocol
from study.features import prepare
from study.keep import code_version, kept, make_all, run_key
from study.profile import by_profile
from study.scores import mean_ap

__all__ = ["Rival", "compare", "fit_rivals", "float_search", "itq", "quantiser"]

N_BITS = 32
N_ITERATIONS = 50  # of ITQ, as in its paper, and of logistic regression at most
N_TREES = 100
SHARPNESS = (
    10  # of class scores; of 2, 5, 10 and 20 best at 4 bytes, on held-out parts of three sets
)
N_POINTS = 40  # of k-means for each of 256 centroids; FAISS warns of fewer than 39
N_ROTATIONS = 10  # of OPQ; 50, the default of FAISS, take long
LEVELS = 1 << 20  # what agrees to a millionth is a tie, as equal items must be
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


class Rival(NamedTuple):
    """Hold what a method of `fit_rivals` has learned.

    `encode` makes packed codes, which are compared by their Hamming distance, or rows of floats,
    which are compared by their cosine. With `store`, that is what the database holds of an item,
    and the query stays as `encode` makes it. Without `n_bytes` the floats are only quantised.
    """

    method: str
    n_bytes: int | None
    seconds: float
    encode: Callable
    store: Callable | None = None


def fit_rivals(
    X: np.ndarray,
    y: np.ndarray,
    seed: int,
    features: str,
    sizes: Sequence[int] = (4,),
    classifiers: bool = True,
) -> Iterator[Rival]:
    """Learn from a stream; yield each method with the CPU seconds that it took.

    On "unit rows" they are those that use no labels, and trees; on "side by side" our codes of
    these sizes in bytes, class scores and logistic regression. LDA is slow with many features, and
    learns there only if there are several sizes. Without `classifiers`, it takes the place of trees
    and logistic regression, on unit rows.
    """
    if features == "unit rows":
        yield Rival("rows", None, 0.0, lambda Z: Z)
        yield from _fit_unlabelled(X, seed)
    else:
        yield from _fit_codes(X, y, seed, sizes)
    slow = features == "side by side" and len(sizes) > 1
    if slow or (features == "unit rows" and not classifiers):
        begin = time.process_time()
        rows, labels = (np.arange(len(y)), y) if y.ndim == 1 else np.nonzero(y)  # once for each
        # Some pixels are constant, so LDA needs a little shrinkage.
        lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.001).fit(X[rows], labels)
        A = lda.scalings_[:, : len(lda.classes_) - 1].astype(np.float32)
        yield Rival("LDA", None, time.process_time() - begin, lambda Z: Z @ A)
    if classifiers and features == "unit rows":
        begin = time.process_time()
        trees = ExtraTreesClassifier(N_TREES, random_state=seed).fit(X, y)
        seconds = time.process_time() - begin
        yield Rival("trees", None, seconds, lambda Z: _probabilities(trees, Z))
    elif classifiers:
        yield from _fit_logistic(X, y, seed)


def _fit_unlabelled(X: np.ndarray, seed: int) -> Iterator[Rival]:
    n_bytes = N_BITS // 8
    yield Rival("LSH", n_bytes, 0.0, LSH(N_BITS, random_state=seed).fit(X).transform)
    begin = time.process_time()
    pca = PCA(N_BITS, svd_solver="covariance_eigh").fit(X)
    seconds = time.process_time() - begin
    yield Rival("PCA, signs", n_bytes, seconds, lambda Z: pack(pca.transform(Z) > 0))
    yield Rival("PCA, floats", 4 * N_BITS, seconds, pca.transform)
    R = itq(pca.transform(X), seed)
    seconds = time.process_time() - begin
    yield Rival("ITQ", n_bytes, seconds, lambda Z: pack(pca.transform(Z) @ R > 0))


def _fit_codes(X: np.ndarray, y: np.ndarray, seed: int, sizes: Sequence[int]) -> Iterator[Rival]:
    """Yield HMOH of 4 bytes and the ridge of all sizes, with either query, and its class scores."""
    begin = time.process_time()
    hmoh = HMOH(N_BITS, codebook="spread", random_state=seed).fit(X, y)
    seconds = [time.process_time() - begin]
    begin = time.process_time()
    ridge = HadamardRidge(N_BITS, codebook="spread", random_state=seed).fit(X, y)
    ridge.transform(X[:1])  # here it solves its equations
    seconds += [time.process_time() - begin] * len(sizes)
    models = [hmoh] + [ridge.recoded(n_bits=8 * n_bytes) for n_bytes in sizes]
    for model, spent in zip(models, seconds, strict=True):
        name, n_bytes = type(model).__name__, model.n_bits // 8
        yield Rival(name, n_bytes, spent, model.transform)

        def signs(Z: np.ndarray) -> np.ndarray:
            return 2.0 * np.unpackbits(model.transform(Z), axis=1, bitorder="little") - 1

        yield Rival(f"{name}, float query", n_bytes, spent, model.decision_function, signs)
    sharper = _sharpened if y.ndim == 1 else np.asarray
    yield Rival("class scores", None, spent, lambda Z: sharper(ridge.class_scores(Z)))


def _sharpened(scores: np.ndarray) -> np.ndarray:
    """Return the softmax of scores of targets 0 and 1; as they are, their cosines say less."""
    shares = np.exp(SHARPNESS * (scores - scores.max(axis=1, keepdims=True)))
    return shares / shares.sum(axis=1, keepdims=True)


def _fit_logistic(X: np.ndarray, y: np.ndarray, seed: int) -> Iterator[Rival]:
    """Yield what logistic regression stores; each of several labels is learned against the rest."""
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
    proba = logistic.predict_proba
    signs = "logistic, Hadamard signs"
    # A bit for each class ties the items of a class, as comparing a byte with its number does.
    one = pack(np.eye(L) > 0)
    yield Rival("logistic, class", 1, seconds, lambda Z: one[proba(Z).argmax(axis=1)])
    yield Rival("logistic, probabilities", L, seconds, lambda Z: np.rint(255 * proba(Z)))
    yield Rival(signs, N_BITS // 8, seconds, lambda Z: pack(proba(Z) @ targets > 0))
    yield Rival("logistic", None, seconds, proba)


def _probabilities(trees: ExtraTreesClassifier, Z: np.ndarray) -> np.ndarray:
    """Return (n, classes); of several labels the probability of each, (n, labels)."""
    found = trees.predict_proba(Z)
    if not isinstance(found, list):
        return found
    # A label that was never seen has one column: its absence.
    return np.stack([p[:, -1] * (p.shape[1] > 1) for p in found], axis=1)


def quantiser(V: np.ndarray, n_bytes: int, rotate: bool = False) -> tuple[Callable, Callable]:
    """Learn product quantisation (Jegou, TPAMI 2011) of rows, a byte for each part of a row.

    Rows are centred and scaled to unit length, and zeros fill up the last part. OPQ (Ge, CVPR 2013)
    rotates them first.

    Returns
    -------
    to_query, to_item : functions
        What a query becomes, and the centroids by which the stored bytes of an item stand for it.
    """
    unit = UnitLength().fit(V)
    width = -(-V.shape[1] // n_bytes) * n_bytes
    faiss.omp_set_num_threads(1)

    def padded(Z: np.ndarray) -> np.ndarray:
        return np.pad(unit.transform(Z), ((0, 0), (0, width - V.shape[1])))

    pq = faiss.ProductQuantizer(width, n_bytes, 8)
    pq.cp.min_points_per_centroid = 1  # no warning on small streams
    pq.cp.max_points_per_centroid = N_POINTS
    opq = faiss.OPQMatrix(width, n_bytes)
    opq.pq = pq
    opq.niter = N_ROTATIONS
    if rotate:
        opq.train(padded(V))

    def to_query(Z: np.ndarray) -> np.ndarray:
        return opq.apply(padded(Z)) if rotate else padded(Z)

    pq.train(to_query(V))
    return to_query, lambda Z: pq.decode(pq.compute_codes(to_query(Z)))


def float_search(Q, D, y, db_y, metric="mAP", decoded=False):
    """Return the average precision and P@100 of each row of Q in a search of D, (n, 2) float64.

    Items are ranked by their cosine, or, if a quantiser has `decoded` them, by their distance from
    a query of unit length, as an index of FAISS does. Both are expectations over all orders of
    ties, as for codes; nan for a query without a relevant item.
    """
    Q = normalize(Q).astype(np.float32)  # a row of zeros stays zero
    D = (D if decoded else normalize(D)).astype(np.float32)
    # Half the squared distance; it is 1 minus the cosine if both rows have unit length.
    offset = (1 + (D**2).sum(axis=1)) / 2 if decoded else np.float32(1)
    found = []
    for part in np.array_split(np.arange(len(Q)), -(-len(Q) * len(D) // BLOCK_CELLS)):
        shared = share_label(y[part], db_y)
        ranks = Q[part] @ D.T
        np.subtract(offset, ranks, out=ranks)
        ranks *= LEVELS
        keys = np.rint(ranks, out=ranks).astype(np.int32)
        keys <<= 1
        keys |= shared
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


def _run(place: tuple[dict, Path]) -> list[dict]:
    """Return a record of each method on one split, read from build/records or written there."""
    job, path = place
    return kept(path, lambda: _measured(**job))


def _measured(
    dataset: str, seed: int, features: str, split: str, n_anchors: int, sizes: Sequence[int]
) -> list[dict]:
    job = {"dataset": dataset, "seed": seed, "features": features, "split": split}
    data = _load(dataset)
    model = recipes(n_anchors)[f"HMOH, {features}"].model(N_BITS, seed)
    parts = prepare(model, data, split, seed)
    n = by_profile(None, 1500)
    (X, y), (D, db_y), (Q, query_y) = ((part.X[:n], part.y[:n]) for part in parts[:3])
    # Beside the paper's database, one without streamed items, which lead it.
    n_learned = len(X) if np.array_equal(X, D[: len(X)]) and len(X) < len(D) else 0
    records = []

    def add(rival: Rival, n_bytes: int, query: np.ndarray, items: np.ndarray, decoded=False):
        record = job | {"n_anchors": n_anchors, "role": data.role, "metric": data.metric}
        record |= {"method": rival.method, "label": f"{rival.method}, {features}"}
        record |= {"bytes": n_bytes, "seconds": rival.seconds}
        starts = {"": 0, ", fresh": n_learned} if len(sizes) > 1 and n_bytes == 4 else {"": 0}
        for name, start in starts.items():
            case = query, items[start:], query_y, db_y[start:]
            if items.dtype == np.uint8:
                histogram = hamming_histogram(*case, n_threads=1)
                found = mean_ap(histogram, data.metric), histogram.precision_at_k(100)
            else:
                each = float_search(*case, data.metric, decoded)
                found = np.nanmean(each, axis=0).tolist()
            record |= {data.metric + name: found[0], "P@100" + name: found[1]}
        records.append(record)

    for rival in fit_rivals(X, y, seed, features, sizes, classifiers=split != "unseen"):
        query, items = rival.encode(Q), (rival.store or rival.encode)(D)
        if rival.n_bytes is not None:
            add(rival, rival.n_bytes, query, items)
            continue
        seen = rival.encode(X)
        for n_bytes, rotate in itertools.product(sizes, (False, True)):
            # OPQ costs most; it is tried at 4 bytes.
            if rotate and (n_bytes != 4 or len(sizes) == 1 or rival.method == "rows"):
                continue
            begin = time.process_time()
            to_query, to_item = quantiser(seen, n_bytes, rotate)
            spent = rival.seconds + time.process_time() - begin
            name = f"{rival.method} + {'OPQ' if rotate else 'PQ'}"
            named = rival._replace(method=name, seconds=spent)
            add(named, n_bytes, to_query(query), to_item(items), decoded=True)
    return records


def compare(
    sets: Iterable[str],
    seeds: Iterable[int],
    split: str = "paper",
    n_anchors: int = 1000,
    sizes: Sequence[int] = (4,),
    features: Sequence[str] = ("unit rows", "side by side"),
) -> list[dict]:
    """Return a record of each method on all sets, seeds and features; finished runs are kept.

    Splits are those of `protocol.run`, features those of `recipes`, sizes in bytes. A record of 4
    bytes among several sizes has its metrics also with ", fresh": without streamed items in the
    database. Quick takes 1,500 rows of each part.
    """
    code = code_version(
        protocol.ROOT, "notebooks/beyond.py", "notebooks/rivals.py", "study/training.py"
    )
    code += version("faiss-cpu")
    places = []
    for name, seed, kind in itertools.product(sets, seeds, features):
        job = {"dataset": name, "seed": seed, "features": kind, "split": split}
        job |= {"n_anchors": n_anchors, "sizes": list(sizes)}
        key = run_key(job, profile.PROFILE, datasets.fingerprint(name), code)
        places.append((job, protocol.RECORDS / f"rivals-{name}-{seed}-{key}.json"))
    found = make_all(_run, places, by_profile(None, 1))
    return list(itertools.chain.from_iterable(found))
