"""Fuzz metrics.py: every metric against exact fractions."""

import itertools
import math
from fractions import Fraction
from functools import cache, lru_cache, partial
from typing import NamedTuple

import naive
import numpy as np
from fuzz_common import near, refused, same, setting

import metrics

# ---- metrics against exact fractions -------------------------------------------------

METRICS = {
    "n_queries": range(1, 5),
    "n_items": range(1, 12),
    "n_codes": range(1, 9),  # different codes, few of them for many ties
    "n_bits": (1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 31, 33, 64, 65, 100, 128, 129, 300),
    "labels": ("integers", "strings", "sets", "wide sets"),
    "n_labels": range(1, 5),
    "n_threads": (None, 1, 2, 3),
    "pairs_per_thread": (metrics.PAIRS_PER_THREAD,) * 9 + (1,),  # 1 starts threads
    "block_bytes": (metrics.BLOCK_BYTES,) * 3 + (1, 50),  # 1 reads row by row
    "copies": (1,) * 9 + (250,),  # of the queries; many make equal codes be merged
}
NORMALIZE = ("relevant", "min", "retrieved")


@cache
def places_of_hits(size, good):
    """Return all sets of places that the good items of a tie can have; all are as likely."""
    return list(itertools.combinations(range(size), good))


@lru_cache(100_000)
def expected_sum(N, N_hits, size, good, last):
    """Return the expected sum of the precisions at the hits of a tie, up to rank `last`."""
    total = Fraction(0)
    for places in places_of_hits(size, good):
        for number, place in enumerate(places, start=1):
            if N + place < last:
                total += Fraction(N_hits + number, N + place + 1)
    return total / len(places_of_hits(size, good))


def ap_of_cut(before, N, N_hits, size, good, last):
    """Return the expected AP divided by the hits up to rank `last`, which cuts the last tie."""
    scores = []
    for places in places_of_hits(size, good):
        total = before
        n_hits = N_hits
        for place in places:
            if N + place < last:
                n_hits += 1
                total += Fraction(n_hits, N + place + 1)
        scores.append(total / n_hits if n_hits else None)
    if all(score is None for score in scores):
        return None
    return sum(score or 0 for score in scores) / len(scores)


@lru_cache(100_000)
def expected_ap(ties, normalize, top):
    """Return the expected AP of ties (size, good), nearest first, or None."""
    last = sum(size for size, _ in ties) if top is None else top
    n_relevant = sum(good for _, good in ties)
    total = Fraction(0)
    N = N_hits = 0
    for size, good in ties:
        if normalize == "retrieved" and N + size >= last:
            return ap_of_cut(total, N, N_hits, size, good, last)
        total += expected_sum(N, N_hits, size, good, last)
        N += size
        N_hits += good
    divisor = min(n_relevant, last) if normalize == "min" else n_relevant
    return total / divisor if divisor else None


@lru_cache(100_000)
def expected_precision(ties, k):
    """Return the expected share of relevant items among the first k."""
    N = N_hits = 0
    for size, good in ties:
        if N + size >= k:
            places = places_of_hits(size, good)
            hits = sum(N + place < k for chosen in places for place in chosen)
            return (N_hits + Fraction(hits, len(places))) / k
        N += size
        N_hits += good


@lru_cache(100_000)
def expected_ndcg(ties, k):
    """Return the expected NDCG of the first k, or None."""
    shares = [good / size for size, good in ties for _ in range(size)]
    n_best = min(k, sum(good for _, good in ties))
    best = sum(1 / math.log2(2 + i) for i in range(n_best))
    found = sum(share / math.log2(2 + i) for i, share in enumerate(shares[:k]))
    return found / best if best else None


stable_ap = lru_cache(100_000)(naive.average_precision)


class Query(NamedTuple):
    """The items of a query: in database order, and as ties (distance, size, good)."""

    distances: list
    relevances: list

    @property
    def ties(self):
        counts = {}
        for d, hit in sorted(zip(self.distances, self.relevances, strict=True)):
            size, good = counts.get(d, (0, 0))
            counts[d] = (size + 1, good + hit)
        return tuple(counts.values())

    @property
    def ranked(self):
        return tuple(self.relevances[j] for j in naive.stable_ranking(self.distances))

    def within(self, radius):
        ball = naive.within(self.distances, self.relevances, radius)
        return len(ball), sum(ball)


def make_labels(rng, n, case):
    """Return labels of the form that the case wants; a row of a matrix may be empty."""
    if case["labels"] in ("integers", "strings"):
        names = {"integers": (-5, 10**12, 0, 7), "strings": ("ant", "", "bee", "ü")}
        return np.array(names[case["labels"]])[rng.integers(case["n_labels"], size=n)]
    n_columns = 70 if case["labels"] == "wide sets" else case["n_labels"] + 1
    return (rng.random((n, n_columns)) < 1.5 / n_columns).astype(int)


def make_queries(codes, labels, db_codes, db_labels):
    """Return distances and relevances by Python's integers and loops."""
    numbers = [int.from_bytes(row.tobytes()) for row in db_codes]
    queries = []
    for code, label in zip(codes, labels.tolist(), strict=True):
        number = int.from_bytes(code.tobytes())
        distances = [(number ^ other).bit_count() for other in numbers]
        queries.append(Query(distances, naive.relevances(label, db_labels.tolist())))
    return queries


def histograms(queries, n_bits):
    """Return items and relevant items at each distance."""
    items = np.zeros((len(queries), n_bits + 1), np.int64)
    relevant = np.zeros((len(queries), n_bits + 1), np.int64)
    for q, query in enumerate(queries):
        for d, hit in zip(query.distances, query.relevances, strict=True):
            items[q, d] += 1
            relevant[q, d] += hit
    return items, relevant


def check_metrics(case):
    """Check all metrics of a few queries; a new metric is one more `yield` below."""
    rng = np.random.default_rng(case["seed"])
    n_bits = case["n_bits"]
    pool = rng.integers(0, 2, (case["n_codes"], n_bits), np.uint8)
    pool = np.packbits(pool, axis=1, bitorder="little")
    codes = pool[rng.integers(len(pool), size=case["n_queries"])]
    db_codes = pool[rng.integers(len(pool), size=case["n_items"])]
    labels = make_labels(rng, len(codes), case)
    db_labels = make_labels(rng, len(db_codes), case)
    data = (codes, db_codes, labels, db_labels)
    queries = make_queries(codes, labels, db_codes, db_labels)
    options = {"n_bits": n_bits, "n_threads": case["n_threads"]}
    sizes = {
        "BLOCK_BYTES": case["block_bytes"],
        "PAIRS_PER_THREAD": case["pairs_per_thread"],
    }
    k = int(rng.integers(1, len(db_codes) + 1))
    top = int(rng.integers(1, len(db_codes) + 3))
    with setting(metrics, **sizes):
        h = metrics.hamming_histogram(*data, **options)
        yield same((h.items, h.relevant), histograms(queries, n_bits))
        yield from check_histogram(h, queries, k, top)
        yield from check_functions(data, queries, k, top, n_bits)
        yield from check_parts(data, queries, options, case["copies"])
        everything = make_queries(db_codes, db_labels, db_codes, db_labels)
        whole = metrics.hamming_histogram(db_codes, db_codes, db_labels, db_labels, **options)
        yield from check_without_self(whole, everything, top)


def check_mean_ap(function, scores):
    """Check a mean average precision; there is none if no query has a score."""
    if all(score is None for score in scores):
        refused(function)
    else:
        near(function(), naive.mean(scores))


def check_histogram(h, queries, k, top):
    """Check the metrics that are methods of the histogram."""
    ties = [query.ties for query in queries]
    for normalize, last in itertools.product(NORMALIZE, (None, top)):
        scores = [expected_ap(tie, normalize, last) for tie in ties]
        yield near(h.mean_average_precision(last, normalize, per_query=True), scores)
        yield check_mean_ap(lambda: h.mean_average_precision(last, normalize), scores)
    ks = [k, 1, k]
    shares = [[expected_precision(tie, value) for value in ks] for tie in ties]
    yield near(h.precision_at_k(ks, per_query=True), shares)
    yield near(h.precision_at_k(ks), np.mean(shares, axis=0))
    yield near(h.precision_at_k(k), np.mean(shares, axis=0)[0])
    one = metrics.HammingHistogram(h.items[:1], h.relevant[:1])
    yield near(one.precision_at_k(k), shares[0][0])
    radius = min(top, h.n_bits)
    n_items, n_hits = np.array([query.within(radius) for query in queries]).T
    shares = n_hits / np.maximum(n_items, 1)
    yield near(h.precision_at_radius(radius, per_query=True), shares)
    yield near(h.precision_at_radius(radius), shares.mean())
    yield from check_more(h, queries, k)
    some = [query for query in queries if any(query.relevances)]
    yield same(h.n_empty, len(queries) - len(some))
    if not some:
        yield refused(h.precision_recall)
        return
    # Between the distances at which there are items, nothing changes.
    places = sorted({0, *(d for query in some for d in query.distances)})
    precision = []
    recall = []
    for radius in places:
        found = [(query, *query.within(radius)) for query in some]
        shares = [Fraction(good, max(size, 1)) for _, size, good in found]
        precision.append(naive.mean(shares))
        shares = [Fraction(good, sum(query.relevances)) for query, _, good in found]
        recall.append(naive.mean(shares))
    which = np.searchsorted(places, range(h.n_bits + 1), side="right") - 1
    expected = np.array([precision, recall])[:, which]
    yield near(h.precision_recall(), expected)


def check_more(h, queries, k):
    """Check the metrics of each query that follow from the same counts."""
    recall = []
    ndcg = []
    for query in queries:
        R = sum(query.relevances)
        recall.append(k * expected_precision(query.ties, k) / R if R else None)
        ndcg.append(expected_ndcg(query.ties, k))
    yield near(h.recall_at_k(k, per_query=True), recall)
    yield near(h.ndcg_at_k(k, per_query=True), ndcg)


def check_functions(data, queries, k, top, n_bits):
    """Check the functions that need no histogram, also with ties in database order."""
    for normalize, last in itertools.product(NORMALIZE, (None, top)):
        options = {"top": last, "normalize": normalize, "n_bits": n_bits}
        mean_ap = partial(metrics.mean_average_precision, *data, **options)
        scores = [stable_ap(query.ranked, normalize, last) for query in queries]
        yield check_mean_ap(lambda: mean_ap(ties="stable"), scores)
        zeros = [score or 0 for score in scores]
        yield near(mean_ap(ties="stable", empty="zero", per_query=True), zeros)
        scores = [expected_ap(query.ties, normalize, last) for query in queries]
        yield check_mean_ap(mean_ap, scores)
    rows = [naive.stable_ranking(query.distances)[:k] for query in queries]
    pairs = zip(queries, rows, strict=True)
    distances = [[query.distances[j] for j in row] for query, row in pairs]
    yield same(metrics.nearest(*data[:2], k), (distances, rows))


def check_parts(data, queries, options, copies):
    """Check the sum of two shards, and the same queries many times."""
    codes, db_codes, labels, db_labels = data
    expected = histograms(queries, options["n_bits"])
    cut = len(db_codes) // 2
    if cut:
        parts = []
        for rows in (slice(cut), slice(cut, None)):
            shard = (codes, db_codes[rows], labels, db_labels[rows])
            parts.append(metrics.hamming_histogram(*shard, **options))
        total = sum(parts)
        yield same((total.items, total.relevant), expected)
    if copies > 1:
        many = [np.concatenate([part] * copies) for part in (codes, labels)]
        h = metrics.hamming_histogram(many[0], db_codes, many[1], db_labels, **options)
        repeated = [np.concatenate([part] * copies) for part in expected]
        yield same((h.items, h.relevant), repeated)


def check_without_self(whole, everything, top):
    """Check a set of codes evaluated against itself, without each query's own item."""
    others = []
    for j, query in enumerate(everything):
        distances = query.distances[:j] + query.distances[j + 1 :]
        others.append(Query(distances, query.relevances[:j] + query.relevances[j + 1 :]))
    h = whole.without_self()
    yield same((h.items, h.relevant), histograms(others, whole.n_bits))
    if others[0].distances:
        scores = [expected_ap(query.ties, "min", top) for query in others]
        yield near(h.mean_average_precision(top, "min", per_query=True), scores)
