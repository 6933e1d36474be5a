"""notebooks/published_evaluators.py against small twins of the published evaluators."""

import evaluators
import numpy as np
import published_evaluators as conventions
import pytest
from helpers import JIT_IS_OFF
from published_evaluators import EVALUATORS, mean_average_precision

from metrics import pack

N_CASES = 60 if JIT_IS_OFF else 300


def make_labels(rng, n_rows, kind):
    """Return rows of 0 and 1 as floats, as a loader of published code gives them."""
    if kind == "one":
        # The last class is rare, so that it is often missing.
        return np.eye(4)[rng.choice(4, n_rows, p=[0.5, 0.3, 0.19, 0.01])]
    return (rng.random((n_rows, 5)) < 0.15).astype(float)


def make_case(seed):
    """Return codes of -1 and 1, labels, and a top, with many ties and some empty queries."""
    rng = np.random.default_rng([7, seed])
    # From 17 items on numpy's argsort is not stable.
    n_items = int(rng.integers(300, 700) if seed % 20 == 0 else rng.integers(2, 60))
    n_bits = int(rng.choice([2, 3, 8, 12, 33, 65, 128]))
    kind = ["one", "several"][seed % 2]
    codes = []
    for n_rows in (int(rng.integers(1, 6)), n_items):
        flips = rng.random((n_rows, n_bits)) < 0.2
        bits = rng.integers(0, 2, (n_rows, 1)) ^ flips
        codes.append(np.where(bits, 1, -1).astype(np.float32))
    labels = [make_labels(rng, len(rows), kind) for rows in codes]
    top = int(rng.integers(1, n_items))
    return (*codes, *labels), top


def ours(case, **options):
    """Return our number from the same arrays, or NaN if there is no query to take a mean over."""
    queries, database, *labels = case
    n_bits = queries.shape[1]
    try:
        return mean_average_precision(
            pack(queries), pack(database), *labels, n_bits=n_bits, **options
        )
    except ValueError as error:
        assert "none of the" in str(error)
        return np.nan


def only_queries(case, kept):
    queries, database, query_labels, db_labels = case
    return queries[kept], database, query_labels[kept], db_labels


DEEP = {"ties": "argsort", "normalize": "retrieved"}
# The twin of each program that counts all queries, and the name of the program.
TWINS = {
    "deephash_pytorch": "DeepHash-pytorch",
    "hashnet_pytorch": "HashNet (PyTorch)",
    "matlab_map_at": "MIHash and HMOH (MATLAB), mAP_k",
    "matlab_map": "MIHash and HMOH (MATLAB), mAP",
    "oasis": "OASIS (MATLAB)",
}


@pytest.mark.parametrize("twin", TWINS)
def test_our_number_is_that_of_the_evaluator(twin):
    name = TWINS[twin]
    n_empty = 0
    for seed in range(N_CASES):
        case, top = make_case(seed)
        k = top if EVALUATORS[name].top == "k" else None
        theirs = getattr(evaluators, twin)(*case, k)
        codes = pack(case[0]), pack(case[1])
        try:
            found = conventions.evaluate(name, *codes, *case[2:], top, case[0].shape[1])
        except ValueError:
            found = np.nan
        assert found == pytest.approx(theirs, abs=1e-12, nan_ok=True)
        n_empty += np.isnan(theirs) or theirs == 0
    # The cases contain what the conventions differ in.
    assert 0 < n_empty < N_CASES / 2


def test_an_unknown_evaluator_is_told_the_known_ones():
    codes = np.zeros((2, 1), np.uint8)
    with pytest.raises(ValueError, match=r"name='mine'.*OASIS"):
        conventions.evaluate("mine", codes, codes, [0, 1], [0, 1])


@pytest.mark.parametrize("name", ["csq", "hashnet_caffe"])
def test_our_number_is_that_of_the_evaluator_for_the_queries_that_it_counts(name):
    n_left_out = 0
    for seed in range(N_CASES):
        case, top = make_case(seed)
        kept = case[2].any(axis=1)
        if name == "hashnet_caffe":
            kept = evaluators.relevance(*case[2:]).any(axis=1)
        n_left_out += np.count_nonzero(~kept)
        if kept.any():
            theirs = getattr(evaluators, name)(*case, top)
            found = ours(only_queries(case, kept), top=top, empty="zero", **DEEP)
            assert found == pytest.approx(theirs, abs=1e-12)
    assert n_left_out > N_CASES / 20


def test_a_top_of_minus_one_in_deephash_pytorch_drops_the_last_item():
    for seed in range(100):
        case, _ = make_case(seed)
        theirs = evaluators.deephash_pytorch(*case, top=-1)
        top = len(case[1]) - 1
        found = ours(case, top=top, empty="zero", **DEEP)
        assert found == pytest.approx(theirs, abs=1e-12)


def test_ranx_and_torchmetrics_differ_from_ours_only_in_their_order_of_ties():
    for seed in range(N_CASES):
        case, top = make_case(seed)
        # torchmetrics takes items with a score of 0 or less for irrelevant.
        scores = 1 + case[0].shape[1] - evaluators.distances(*case[:2])
        is_relevant = evaluators.relevance(*case[2:])
        options = {"top": top, "ties": "stable", "empty": "zero"}
        theirs = evaluators.torchmetrics_map(scores, is_relevant, top)
        found = ours(case, normalize="retrieved", **options)
        assert found == pytest.approx(theirs, abs=1e-12)
        theirs = evaluators.ranx_map(scores, is_relevant, top)
        assert ours(case, **options) == pytest.approx(theirs, abs=1e-12)


def reverse(values):
    """Return the order of increasing values, ties in reverse."""
    return len(values) - 1 - np.argsort(values[::-1], kind="stable")


@pytest.mark.parametrize("ties", ["expected", "stable", "argsort"])
def test_without_ties_every_order_gives_the_same_number(ties):
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n_items = int(rng.integers(2, 40))
        n_queries = 3
        # All queries have the same code, and each item its own distance.
        bits = np.arange(n_items) < rng.permutation(n_items)[:, None]
        database = np.where(bits, 1, -1).astype(np.float32)
        queries = np.full((n_queries, n_items), -1, np.float32)
        labels = [make_labels(rng, n_rows, "several") for n_rows in (n_queries, n_items)]
        case = (queries, database, *labels)
        top = int(rng.integers(1, n_items))
        scores = 1 + n_items - evaluators.distances(queries, database)
        is_relevant = evaluators.relevance(*labels)
        found = ours(case, top=top, ties=ties, normalize="retrieved", empty="zero")
        theirs = evaluators.orthohash(*case, top, order=reverse)
        assert found == pytest.approx(theirs, abs=1e-12)
        theirs = evaluators.torchmetrics_map(scores, is_relevant, top, order=reverse)
        assert found == pytest.approx(theirs, abs=1e-12)
        found = ours(case, top=top, ties=ties, empty="zero")
        theirs = evaluators.ranx_map(scores, is_relevant, top, order=reverse)
        assert found == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("cut", [False, True])
def test_trec_eval_is_the_stable_order_of_a_database_sorted_by_name(cut):
    for seed in range(N_CASES):
        case, top = make_case(seed)
        queries, database, query_labels, db_labels = case
        top = top if cut else None
        rng = np.random.default_rng(seed)
        names = np.array([f"doc{name}" for name in rng.permutation(len(database))])
        similarities = -evaluators.distances(queries, database)
        is_relevant = evaluators.relevance(query_labels, db_labels)
        theirs = evaluators.trec_eval_map(similarities, is_relevant, names, top)
        order = np.argsort(names)[::-1]
        by_name = (queries, database[order], query_labels, db_labels[order])
        found = ours(by_name, top=top, ties="stable", empty="zero")
        assert found == pytest.approx(theirs, abs=1e-12)
        # Here the row numbers are the names.
        backwards = [by_name[0], by_name[1][::-1], by_name[2], by_name[3][::-1]]
        found = ours(backwards, top=top, ties="by name", empty="zero")
        assert found == pytest.approx(theirs, abs=1e-12)


def test_the_int8_of_the_matlab_evaluators_changes_the_number_beyond_128_bits_only():
    rng = np.random.default_rng(0)
    options = {"ties": "stable"}
    for n_bits, is_same in [(128, True), (256, False)]:
        # Items at all small distances, in reverse order of the distance.
        bits = np.arange(n_bits) < np.arange(60)[::-1, None]
        database = np.where(bits, 1, -1).astype(np.float32)
        queries = np.full((1, n_bits), -1, np.float32)
        labels = make_labels(rng, 1, "one"), make_labels(rng, 60, "one")
        labels[0][:] = labels[1][0]
        case = (queries, database, *labels)
        theirs = evaluators.matlab_map(*case)
        assert (ours(case, **options) == pytest.approx(theirs, abs=1e-12)) == is_same
