"""Search in metrics.py: float queries, radius, masks and candidates against brute force."""

import warnings

import naive
import numpy as np
import pytest
from helpers import assert_helpful
from hypothesis import given
from hypothesis import strategies as st

import metrics
from metrics import hamming_histogram, nearest, nearest_by_value, pack, within

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its SWIG wrapper is deprecated from Python 3.12 on
    import faiss

N_BITS = [1, 3, 8, 12, 20, 32, 40, 64, 65, 128, 300]
CODES = np.arange(24, dtype=np.uint8).reshape(8, 3)
VALUES = np.linspace(-1, 2, 48).reshape(2, 24)


def make_codes(rng, n, n_bits):
    """Return noisy copies of two codes that differ in every bit: near and far items, and ties."""
    return pack(rng.integers(0, 2, (n, 1)) ^ (rng.random((n, n_bits)) < 0.1))


def make_values(rng, n, n_bits, kind):
    values = rng.normal(size=(n, n_bits))
    if kind == "whole":
        values = values.round()
    if kind == "heavy":
        values = values**9
    if kind == "tiny":
        values *= 1e-43
    if kind == "zero":
        values *= 0
    return values.astype(np.float32)


def brute_force(values, codes, k, allowed=None):
    """Return scores and indices by a stable sort of the twin's scores."""
    width = codes.shape[1]
    padded = np.pad(values, ((0, 0), (0, 8 * width - values.shape[1])))
    scores = np.array([[naive.value_score(v, code) for code in codes] for v in padded])
    if allowed is not None:
        scores[~np.broadcast_to(allowed, scores.shape)] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    found = np.take_along_axis(scores, order, axis=1)
    return found, np.where(found == -np.inf, -1, order)


def assert_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def naive_within(query_codes, db_codes, radius, mask):
    """Return (offsets, distances, indices) item by item."""
    offsets, hits = [0], []
    for code in query_codes:
        distances = naive.hamming(code, db_codes)
        own = [(d, j) for j, d in enumerate(distances) if d <= radius and mask[j]]
        hits += sorted(own)
        offsets.append(len(hits))
    return offsets, [d for d, _ in hits], [j for _, j in hits]


# ---- float queries -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["normal", "whole", "heavy", "tiny", "zero"])
@pytest.mark.parametrize("n_bits", N_BITS)
def test_nearest_by_value_is_a_sort_of_the_scores(n_bits, kind):
    rng = np.random.default_rng(n_bits)
    codes = make_codes(rng, 60, n_bits)
    values = make_values(rng, 3, n_bits, kind)
    for k in (1, 7, 60):
        expected = brute_force(values, codes, k)
        assert_equal(nearest_by_value(values, codes, k), expected)
        # Bits beyond n_bits do not matter.
        noisy = codes.copy()
        noisy[:, -1] |= 256 - 2 ** (1 + (n_bits - 1) % 8)
        assert_equal(nearest_by_value(values, noisy, k), expected)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_bits=st.integers(1, 80),
    n_queries=st.integers(1, 4),
    n_items=st.integers(1, 50),
    kind=st.sampled_from(["normal", "whole", "heavy"]),
    bitorder=st.sampled_from(["little", "big"]),
    share=st.sampled_from([0, 0.2, 0.9]),
    block=st.sampled_from([50, 800_000]),
)
def test_nearest_by_value_on_random_cases(
    seed, n_bits, n_queries, n_items, kind, bitorder, share, block
):
    rng = np.random.default_rng(seed)
    codes = make_codes(rng, n_items, n_bits)
    values = make_values(rng, n_queries, n_bits, kind)
    mask = rng.random(n_items) >= share
    mask[rng.integers(n_items)] = True
    k = int(rng.integers(1, mask.sum() + 1))
    stored, in_order = codes, values
    if bitorder == "big":
        stored = np.packbits(np.unpackbits(codes, axis=1, bitorder="little"), axis=1)
        # Scores are summed in the order of the bits in memory.
        in_order = np.pad(values, ((0, 0), (0, -n_bits % 8)))
        in_order = in_order.reshape(n_queries, -1, 8)[:, :, ::-1].reshape(n_queries, -1)
        codes = stored
    candidates = rng.integers(-1, n_items, (n_queries, 12))
    is_candidate = np.zeros((n_queries, n_items), bool)
    for q, row in enumerate(candidates):
        is_candidate[q, row[row >= 0]] = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "BLOCK_BYTES", block)
        found = nearest_by_value(values, stored, k, mask=mask, bitorder=bitorder)
    assert_equal(found, brute_force(in_order, codes, k, mask))
    found = nearest_by_value(values, stored, k, candidates, mask, bitorder)
    assert_equal(found, brute_force(in_order, codes, k, is_candidate & mask))


def test_both_bit_orders_find_the_same_and_mixed_ones_do_not():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(300, 60)).astype(np.float32)
    little, big = (np.packbits(vectors > 0, axis=1, bitorder=b) for b in ("little", "big"))
    _, a = nearest_by_value(vectors, little, 1)
    _, b = nearest_by_value(vectors, big, 1, bitorder="big")
    _, mixed = nearest_by_value(vectors, big, 1)
    own = np.arange(300)
    assert (a[:, 0] == own).mean() > 0.95 and (a == b).mean() > 0.99
    assert (mixed[:, 0] == own).mean() < 0.2


def test_signs_as_values_give_the_hamming_ranking():
    rng = np.random.default_rng(1)
    codes = make_codes(rng, 500, 24)
    bits = np.unpackbits(codes[:20], axis=1, bitorder="little")
    distances, indices = nearest(codes[:20], codes, 50)
    scores, rows = nearest_by_value(2 * bits.astype(np.int8) - 1, codes, 50)
    np.testing.assert_array_equal(rows, indices)
    np.testing.assert_array_equal(scores, 24 - 2 * distances)


def test_candidates_of_nearest_are_ranked_again():
    rng = np.random.default_rng(2)
    codes = make_codes(rng, 400, 32)
    values = make_values(rng, 9, 32, "normal")
    _, rows = nearest(np.packbits(values > 0, axis=1, bitorder="little"), codes, 30)
    scores, found = nearest_by_value(values, codes, 40, candidates=rows.astype(np.int32))
    assert (found[:, 30:] == -1).all() and (scores[:, 30:] == -np.inf).all()
    assert (np.diff(scores[:, :30]) <= 0).all()
    np.testing.assert_array_equal(np.sort(found[:, :30]), np.sort(rows))
    nothing = np.full((9, 3), -1)
    scores, found = nearest_by_value(values, codes, 2, candidates=nothing)
    assert (found == -1).all() and (scores == -np.inf).all() and found.shape == (9, 2)


@pytest.mark.parametrize("n_queries", [3, 40])
def test_threads_blocks_and_large_databases_do_not_matter(monkeypatch, n_queries):
    rng = np.random.default_rng(3)
    codes = rng.integers(256, size=(20_000, 8), dtype=np.uint8)
    values = make_values(rng, n_queries, 64, "normal")
    scores = values.astype(float) @ (2.0 * np.unpackbits(codes, axis=1, bitorder="little").T - 1)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :50]
    for block, n_threads in ((800_000, 1), (800_000, 2), (8000, 1), (8000, 3)):
        monkeypatch.setattr(metrics, "BLOCK_BYTES", block)
        _, rows = nearest_by_value(values, codes, 50, n_threads=n_threads)
        np.testing.assert_array_equal(rows, expected)


MOST = metrics.MOST_COPIED


# With most_copied=1 threads part the queries, else the database.
@pytest.mark.parametrize(
    ("n_queries", "is_masked", "most_copied"), [(3, False, MOST), (20, True, MOST), (20, False, 1)]
)
def test_threads_that_share_items_or_queries_find_the_same(
    monkeypatch, n_queries, is_masked, most_copied
):
    monkeypatch.setattr(metrics, "PAIRS_PER_THREAD", 1)
    monkeypatch.setattr(metrics, "MOST_COPIED", most_copied)
    monkeypatch.setattr(metrics, "BLOCK_BYTES", 8000)
    rng = np.random.default_rng(5)
    codes = rng.integers(256, size=(3000, 1), dtype=np.uint8)  # many ties
    values = make_values(rng, n_queries, 8, "normal")
    mask = rng.random(3000) < 0.5 if is_masked else None
    for search in (
        lambda n_threads: nearest(codes[:n_queries], codes, 5, mask, n_threads),
        lambda n_threads: within(codes[:n_queries], codes, 2, mask, n_threads),
        lambda n_threads: nearest_by_value(values, codes, 5, mask=mask, n_threads=n_threads),
    ):
        assert_equal(search(3), search(1))


# ---- masks ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_queries", [3, 20, 150])
@pytest.mark.parametrize("n_bits", [8, 40, 64, 320])
def test_a_mask_is_a_smaller_database(monkeypatch, n_bits, n_queries):
    rng = np.random.default_rng(n_bits)
    codes = make_codes(rng, 500, n_bits)
    values = make_values(rng, n_queries, n_bits, "normal")
    mask = rng.random(500) < 0.3
    mask[100:200] = False  # whole blocks
    rows = np.flatnonzero(mask)
    monkeypatch.setattr(metrics, "BLOCK_BYTES", 500)
    distances, indices = nearest(codes[:n_queries], codes, 9, mask=mask)
    expected, places = nearest(codes[:n_queries], codes[mask], 9)
    assert_equal((distances, indices), (expected, rows[places]))
    scores, indices = nearest_by_value(values, codes, 9, mask=mask.tolist())
    expected, places = nearest_by_value(values, codes[mask], 9)
    assert_equal((scores, indices), (expected, rows[places]))
    *found, indices = within(codes[:n_queries], codes, n_bits // 3, mask=mask)
    *expected, places = within(codes[:n_queries], codes[mask], n_bits // 3)
    assert_equal((*found, indices), (*expected, rows[places]))


# ---- radius --------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32 - 1),
    n_bits=st.sampled_from(N_BITS),
    n_queries=st.sampled_from([1, 3, 20]),
    n_items=st.integers(1, 40),
    share=st.sampled_from([0, 0.5, 1]),
    block=st.sampled_from([50, 800_000]),
)
def test_within_agrees_with_brute_force(seed, n_bits, n_queries, n_items, share, block):
    rng = np.random.default_rng(seed)
    queries, codes = (make_codes(rng, n, n_bits) for n in (n_queries, n_items))
    mask = rng.random(n_items) >= share
    radius = int(rng.integers(0, n_bits + 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "BLOCK_BYTES", block)
        found = within(queries, codes, radius, mask)
    assert_equal(found, naive_within(queries, codes, radius, mask))
    assert all(part.dtype == np.int64 for part in found)


@pytest.mark.parametrize("n_bits", [8, 64, 512])
def test_faiss_excludes_the_radius(n_bits):
    rng = np.random.default_rng(n_bits)
    codes = make_codes(rng, 300, n_bits)
    index = faiss.IndexBinaryFlat(n_bits)
    index.add(codes)
    for radius in (0, 2, n_bits // 8, n_bits):
        offsets, distances, indices = within(codes[:20], codes, radius)
        limits, theirs, rows = index.range_search(codes[:20], radius + 1)
        np.testing.assert_array_equal(offsets, limits.astype(int))
        for q in range(20):
            own = slice(offsets[q], offsets[q + 1])
            order = np.lexsort((rows[own], theirs[own]))
            np.testing.assert_array_equal(indices[own], rows[own][order])
            np.testing.assert_array_equal(distances[own], theirs[own][order])


def test_within_counts_what_the_histogram_counts():
    rng = np.random.default_rng(4)
    codes = make_codes(rng, 5000, 32)
    h = hamming_histogram(codes[:150], codes, np.zeros(150, int), np.zeros(5000, int))
    for n_threads in (1, 2):
        offsets, distances, _ = within(codes[:150], codes, 5, n_threads=n_threads)
        np.testing.assert_array_equal(np.diff(offsets), h.items[:, :6].sum(axis=1))
        assert np.bincount(distances).tolist() == h.items[:, :6].sum(axis=0).tolist()


def test_a_result_that_is_too_large_is_refused_before_memory_is_taken(monkeypatch):
    monkeypatch.setattr(metrics, "MOST_HITS", 63)
    with pytest.raises(ValueError) as caught:
        within(CODES, CODES, 24)
    assert_helpful(caught.value, "64 items", "radius=24", "63", "smaller radius", "fewer queries")
    assert len(within(CODES[:7], CODES, 24)[1]) == 56


# ---- bad input -----------------------------------------------------------------------


def with_value(value):
    values = VALUES.copy()
    values[1, 20] = value
    return values


WRONG = {
    "codes as values": (lambda: nearest_by_value(CODES, CODES, 1), TypeError, "uint8"),
    "text": (lambda: nearest_by_value([["a"]], CODES, 1), TypeError, "<U1"),
    "few values": (lambda: nearest_by_value(VALUES[:, :16], CODES, 1), ValueError, "(2, 16)", "17"),
    "one query": (lambda: nearest_by_value(VALUES[0], CODES, 1), ValueError, "(24,)"),
    "no query": (lambda: nearest_by_value(VALUES[:0], CODES, 1), ValueError, "(0, 24)"),
    "nan": (lambda: nearest_by_value(with_value(np.nan), CODES, 1), ValueError, "(1, 20)", "nan"),
    "large": (lambda: nearest_by_value(with_value(1e39), CODES, 1), ValueError, "1e+39", "float32"),
    "order": (lambda: nearest_by_value(VALUES, CODES, 1, bitorder="msb"), ValueError, "msb"),
    "k": (lambda: nearest_by_value(VALUES, CODES, 9), ValueError, "k=9", "at most 8"),
    "k zero": (lambda: nearest_by_value(VALUES, CODES, 0, [[1], [2]]), ValueError, "k=0"),
    "k of candidates": (lambda: nearest_by_value(VALUES, CODES, 9, [[1], [2]]), ValueError, "k=9"),
    "flat candidates": (lambda: nearest_by_value(VALUES, CODES, 1, [1, 2]), ValueError, "(2,)"),
    "other rows": (lambda: nearest_by_value(VALUES, CODES, 1, [[1]]), ValueError, "(1, 1)"),
    "high": (lambda: nearest_by_value(VALUES, CODES, 1, [[1], [8]]), ValueError, "1 to 8"),
    "low": (lambda: nearest_by_value(VALUES, CODES, 1, [[1], [-2]]), ValueError, "-2 to 1"),
    "floats": (lambda: nearest_by_value(VALUES, CODES, 1, [[1.0], [2.0]]), ValueError, "float64"),
    "mask of 0/1": (lambda: nearest(CODES, CODES, 1, mask=np.ones(8, int)), TypeError, "int64"),
    "mask of rows": (lambda: nearest(CODES, CODES, 1, mask=[3, 5]), TypeError, "int64"),
    "short mask": (lambda: within(CODES, CODES, 1, mask=[True] * 7), ValueError, "(7,)", "8 items"),
    "empty mask": (lambda: nearest(CODES, CODES, 1, mask=[False] * 8), ValueError, "all 8 items"),
    "k of mask": (lambda: nearest(CODES, CODES, 3, [True, True] + 6 * [False]), ValueError, "k=3"),
    "radius": (lambda: within(CODES, CODES, -1), ValueError, "radius=-1", "at least 0"),
    "half": (lambda: within(CODES, CODES, 0.5), TypeError, "radius=0.5"),
}


@pytest.mark.parametrize(
    ("call", "kind", "words"), [(c, k, w) for c, k, *w in WRONG.values()], ids=WRONG
)
def test_bad_input_is_told_with_a_way_out(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert_helpful(caught.value, *words)


def test_arrays_of_any_layout_are_read():
    expected = nearest_by_value(VALUES, CODES, 4)
    read_only = CODES.copy()
    read_only.flags.writeable = False
    for codes in (np.asfortranarray(CODES), CODES.repeat(2, axis=1)[:, ::2], read_only):
        assert_equal(nearest_by_value(VALUES.astype(np.float16), codes, 4)[1:], expected[1:])
        rows = np.arange(16).reshape(2, 8) % 8
        assert_equal(
            nearest_by_value(np.asfortranarray(VALUES), codes, 4, rows.T.copy().T), expected
        )
        assert_equal(nearest_by_value(VALUES, codes, 4, rows.astype(np.uint64)), expected)
