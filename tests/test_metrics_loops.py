"""The compiled loops of metrics.py against their plain-Python twins in naive.py."""

import naive
import numpy as np
import pytest

import metrics

# The forms of codes for few queries, and for many with up to 128 bits and with more.
LAYOUTS = [("rows", n_bits) for n_bits in (12, 136, 320)]
LAYOUTS += [("known", n_bits) for n_bits in (1, 12, 64, 128, 256)]
LAYOUTS += [("bytes", n_bits) for n_bits in (1, 12, 128)]
LAYOUTS += [("words", n_bits) for n_bits in (136, 320)]


@pytest.fixture(autouse=True)
def ignore_overflow():
    """Silence numpy with the JIT off, as the public functions do: the popcount overflows."""
    with np.errstate(over="ignore"):
        yield


def make_codes(rng, n_rows, n_bits):
    """Return rows of bytes: noisy copies of two codes that differ in every bit."""
    bits = rng.integers(0, 2, (n_rows, 1)) ^ (rng.random((n_rows, n_bits)) < 0.1)
    return np.packbits(bits, axis=1, bitorder="little")


def as_layout(which, queries, codes):
    """Return queries and codes in one of the forms that the loops read.

    For few queries, codes are rows, which follow each other in one array where queries are tuples.
    For many, all first bytes or words stand together, then all second ones, and their number is a
    multiple of four.
    """
    n_bytes = codes.shape[1]
    if which in ("rows", "known"):
        words = next(f"u{size}" for size in (8, 4, 1) if n_bytes % size == 0)
        Q, D = queries.view(words), codes.view(words)
        is_known = which == "known" and D.shape[1] <= 4
        return (tuple(map(tuple, Q)), D.ravel()) if is_known else (Q, D)
    word = np.dtype("u1" if which == "bytes" else "u8")
    padding = (0, 0), (0, -n_bytes % (4 * word.itemsize))
    Q, D = (np.pad(rows, padding).view(word) for rows in (queries, codes))
    return Q, D.T.copy()[None]


def loop_arguments(n_bits, which):
    """Return arguments of the compiled loops, made anew each time because loops write to them."""
    rng = np.random.default_rng(n_bits)
    n, m, k = 6, 25, 6
    codes = make_codes(rng, n + m, n_bits)
    Q, D = as_layout(which, codes[:n], codes[n:])
    # The two highest bits of a word; three queries have no label in their second byte.
    ids = rng.integers(0, 4, (n + m, 1)).astype(np.uint64) << np.uint64(62)
    sets = rng.integers(0, 256, (n + m, 3)).astype(np.uint8)
    sets[2, 1] = 0
    # Queries 0, 1, 2 and 4, 5 have the same labels: a pair, one left over, and another pair.
    for labels in (ids, sets):
        labels[:2] = labels[2]
        labels[4] = labels[5]
    single = ids[:n], D, np.ascontiguousarray(ids[n:].T), False
    multi = sets[:n], D, np.ascontiguousarray(sets[n:].T), True
    queries = np.array([True, False, False, True, True, False]), Q
    alone = np.zeros(0, np.uint32)
    # Equal codes are merged for many queries only.
    weight = rng.integers(1, 1000, m).astype(np.uint32) if D.ndim == 3 else alone
    # Fewer than items, so that there are three tiles.
    distance = np.zeros(10, np.min_scalar_type(n_bits))
    cells = np.zeros(10, np.uint16)
    grade_cells = cells.astype(np.uint32 if which == "words" else np.uint16)
    # Not 0, because a loop continues where the last block ended.
    counts = rng.integers(0, 9, (5, n, n_bits + 1))
    two = counts[:2].copy()
    grade = np.zeros(20, np.uint16)
    keys = rng.integers(0, n_bits + 1, (n, k + metrics.CHUNK)) << metrics.ROW_BITS
    keys += np.arange(k + metrics.CHUNK)
    # At the beginning, every key has a distance that no item has.
    none = np.full((n, k + metrics.CHUNK), (n_bits + 1) << metrics.ROW_BITS)
    none_of_40 = np.full((n, 40 + metrics.CHUNK), (n_bits + 1) << metrics.ROW_BITS)
    some = rng.integers(0, 4, 9) << metrics.ROW_BITS
    some += np.arange(9)
    scratch = distance, np.zeros(n_bits + 2, np.int64)
    radius = n_bits // 2
    found = naive.as_rows(D, Q[0])
    hits = [[naive.distance(x, found, j) for j in range(m)] for x in Q]
    hits = np.array([np.bincount(row, minlength=radius + 1)[: radius + 1] for row in hits])
    places = (hits.cumsum() - hits.ravel()).reshape(hits.shape)
    return {
        "distance": (Q[0], naive.as_rows(D, Q[0]), 3),
        "distances": (Q[0], D, 3, np.zeros(20, distance.dtype)),
        "grade": (ids[1], single[2], 3, False, 1, 7, grade),
        "grade by sets": (sets[1], multi[2], 3, True, 30, 7, grade),
        "grade at most": (sets[1], multi[2], 3, True, 2, 7, grade),
        "count": (*queries, *single, alone, distance, cells, two),
        "count weights": (*queries, *single, weight, distance, cells, two),
        "count sets": (*queries, *multi, alone, distance, cells, two),
        "count grades": (*queries, *multi, weight, distance, grade_cells, counts),
        "lowest": (rng.integers(3, 200, 20).astype(distance.dtype),),
        "keep_nearest": (some, 5, np.zeros(5, np.int64)),
        "keep_nearest of all": (some, 9, np.zeros(5, np.int64)),
        "collect": (Q, D, 200, radius, distance, places, np.zeros(hits.sum(), np.int64)),
        "collect none": (Q, D, 0, -1, distance, places, np.zeros(0, np.int64)),
        "select": (Q, D, 200, k, *scratch, keys),
        "select the first": (Q, D, 0, k, *scratch, none),
        "select more than there are": (Q, D, 0, 40, *scratch, none_of_40),
    }


@pytest.mark.parametrize("which, n_bits", LAYOUTS)
@pytest.mark.parametrize("name", loop_arguments(8, "rows"))
def test_loops_agree_with_naive(name, which, n_bits):
    ours, theirs = (loop_arguments(n_bits, which)[name] for _ in range(2))
    loop = name.split()[0]
    assert getattr(metrics, "_" + loop)(*ours) == getattr(naive, loop)(*theirs)
    scratch = {"count": (-2, -3), "keep_nearest": (-1, -3), "select": (-1, -2, -3)}
    scratch["collect"] = (-3,)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if i - len(ours) not in scratch.get(loop, ()):
            np.testing.assert_array_equal(a, b)
    if loop in ("keep_nearest", "select"):
        # Keys beyond the first k are scratch.
        place, k = (0, ours[1]) if loop == "keep_nearest" else (-1, ours[3])
        np.testing.assert_array_equal(ours[place][..., :k], theirs[place][..., :k])


def test_two_queries_are_counted_together_where_items_outnumber_the_cells():
    rng = np.random.default_rng(0)
    n_bits, m = 3, 60  # 2 * 4**2 cells
    Q, D = as_layout("bytes", make_codes(rng, 5, n_bits), make_codes(rng, m, n_bits))
    Lq, Ld = np.zeros((5, 1), np.uint64), rng.integers(0, 2, (1, m)).astype(np.uint64)
    results = []
    for module in ("ours", "naive"):
        counts = np.zeros((2, 5, n_bits + 1), np.int64)
        loop = metrics._count if module == "ours" else naive.count
        is_new = np.array([True] + 4 * [False])
        scratch = np.zeros(10, np.uint8), np.zeros(10, np.uint16)
        loop(is_new, Q, Lq, D, Ld, False, np.zeros(0, np.uint32), *scratch, counts)
        results.append(counts)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("tile", [10, 500])
@pytest.mark.parametrize("which", ["rows", "known", "bytes"])
def test_select_passes_over_items_and_makes_room_when_its_keys_are_full(which, tile):
    """Items come nearer until there are too many keys; the last ones are no candidates."""
    n_bits, k = 128, 2
    distances = np.concatenate([np.arange(n_bits, 0, -1).repeat(3), np.full(300, n_bits)])
    bits = np.arange(n_bits) < distances[:, None]
    items = np.packbits(bits, axis=1, bitorder="little")
    Q, D = as_layout(which, np.zeros((1, n_bits // 8), np.uint8), items)
    ours, theirs = np.full((2, 1, k + metrics.CHUNK), (n_bits + 1) << metrics.ROW_BITS)
    for loop, keys in ((metrics._select, ours), (naive.select, theirs)):
        loop(Q, D, 0, k, np.zeros(tile, np.uint8), np.zeros(n_bits + 2, np.int64), keys)
    np.testing.assert_array_equal(ours[:, :k], theirs[:, :k])
    rows = ours[:, :k] & (2**metrics.ROW_BITS - 1)
    assert rows.tolist() == [[3 * n_bits - 3, 3 * n_bits - 2]]


def test_popcount_agrees_with_naive():
    single = [1 << k for k in range(64)]
    inverted = [2**64 - 1 - x for x in single]
    for x in [*single, *(x - 1 for x in single), *inverted, 2**64 - 1]:
        assert metrics._popcount(np.uint64(x)) == naive.popcount(x)
    for x in range(256):
        assert metrics._popcount(np.uint8(x)) == naive.popcount(x)


@pytest.mark.parametrize("n_different", [1, 4, 30])
@pytest.mark.parametrize("n_bytes", [1, 8, 13])
def test_equal_rows_are_merged_as_they_appear(n_different, n_bytes):
    rng = np.random.default_rng(0)
    rows = rng.integers(256, size=(n_different, n_bytes), dtype=np.uint8)
    rows = rows[rng.integers(n_different, size=40)]
    first, weight = metrics._merged(rows)
    expected = np.zeros((2, 40), np.int64)
    n = naive.merge(rows, None, None, *expected)
    assert [first.tolist(), weight.tolist()] == expected[:, :n].tolist()
    both = metrics._merged(rows[:, :1], rows[:, 1:])
    np.testing.assert_array_equal(both, [first, weight])


def test_rows_that_begin_at_the_same_place_are_told_apart():
    """With this shift all rows begin their search at one of the first two places."""
    rows = np.arange(20, dtype=np.uint64)[:, None] >> np.uint64(1)
    slots = np.full(16, -1, np.int32)
    first, weight = np.empty(20, np.int64), np.zeros(20, np.uint32)
    assert metrics._merge(rows, slots, np.uint64(63), first, weight) == 10
    assert first[:10].tolist() == list(range(0, 20, 2))
    assert weight[:10].tolist() == [2] * 10


def test_rows_that_differ_in_their_highest_bits_do_not_share_a_place():
    """A search along shared places would still be right, but slow."""
    places = set()
    for row in np.arange(256, dtype=np.uint64)[:, None, None] << np.uint64(56):
        slots = np.full(512, -1, np.int32)
        scratch = np.empty(1, np.int64), np.zeros(1, np.uint32)
        metrics._merge(row, slots, np.uint64(64 - 9), *scratch)
        places.add(slots.argmax())
    assert len(places) > 128


# ---- float queries -------------------------------------------------------------------


def value_arguments(n_bits, word, k=3, kind="normal"):
    """Return arguments of the loops for float queries: values, codes (w, m), and the rest."""
    rng = np.random.default_rng([n_bits, k])
    n, m, width = 3, 70, -(-n_bits // 8)
    v = np.zeros((n, 8 * width), np.float32)
    v[:, :n_bits] = rng.normal(size=(n, n_bits))
    if kind == "whole":  # many scores are equal
        v = np.sign(v)
    if kind == "zero":
        v *= 0
    signs = np.packbits(v > 0, axis=1, bitorder="little")
    codes = np.concatenate([make_codes(rng, m - 4, 8 * width), signs[:1].repeat(4, axis=0)])
    planes, bounds = metrics._rounded(v)
    padding = (0, 0), (0, -width % np.dtype(word).itemsize)
    Q, planes, D = (np.pad(rows, padding).view(word) for rows in (signs, planes, codes))
    planes = planes.reshape(n, metrics.PLANES, -1)
    return v, Q, planes, bounds, D.T.copy(), codes


@pytest.mark.parametrize("word", ["u1", "u4", "u8"])
@pytest.mark.parametrize("n_bits", [1, 12, 64, 136, 320])
def test_scores_and_estimates_agree_with_naive(n_bits, word):
    v, Q, planes, bounds, D, codes = value_arguments(n_bits, word)
    ours, theirs = np.zeros((2, Q.itemsize * Q.shape[1], 256))
    metrics._sum_bytes(v[0], ours)
    naive.sum_bytes(v[0], theirs)
    np.testing.assert_array_equal(ours, theirs)
    scores = [naive.value_score(v[0], code) for code in codes]
    D_bytes = D.view(np.uint8).reshape(*D.shape, D.itemsize)
    assert [metrics._score(ours, D_bytes, j) for j in range(len(codes))] == scores
    assert [naive.score(ours, D_bytes, j) for j in range(len(codes))] == scores
    for loop in (metrics._score_all, naive.score_all):
        out = np.empty(len(codes))
        loop(v[0], D_bytes, ours, out)
        assert out.tolist() == scores
    most = 8 * codes.shape[1] * (2**metrics.PLANES - 1)
    ours, theirs = np.zeros((2, 60), np.min_scalar_type(most))
    metrics._estimate(Q[0], planes[0], D, 3, ours)
    naive.estimate(Q[0], planes[0], D, 3, theirs)
    np.testing.assert_array_equal(ours, theirs)
    # What an estimate promises of the score.
    top, unit, slack, excess = bounds[0]
    costs = (top - np.array(scores[3:63])) / 2
    assert (costs >= unit * ours - slack).all() and (costs <= unit * ours + excess).all()
    assert top == max(scores)


@pytest.mark.parametrize("kind", ["normal", "whole", "zero"])
@pytest.mark.parametrize("k", [1, 3, 70, 100])
@pytest.mark.parametrize("n_bits, word", [(8, "u1"), (12, "u8"), (64, "u8"), (136, "u1")])
@pytest.mark.parametrize("tile", [10, 500])
def test_select_by_value_agrees_with_naive(n_bits, word, k, kind, tile):
    *parts, D, codes = value_arguments(n_bits, word, k, kind)
    most = 8 * codes.shape[1] * (2**metrics.PLANES - 1)
    results = []
    for loop in (metrics._select_by_value, naive.select_by_value):
        scores = np.full((3, k + metrics.CHUNK + 5), -np.inf)
        rows = np.full(scores.shape, -1)
        estimate = np.empty(tile, np.min_scalar_type(most))
        for first in (0, 1000):  # the second time, none is better
            sums = np.zeros((D.itemsize * len(D), 256))
            loop(*parts, D, first, k, estimate, sums, scores, rows)
        results.append((scores[:, :k].copy(), rows[:, :k].copy()))
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_keep_best_keeps_the_first_of_equal_scores():
    rng = np.random.default_rng(0)
    for k in (1, 4, 9, 30):
        scores = rng.integers(0, 4, 30).astype(float)
        scores[:3] = -np.inf
        ours, theirs = ((scores.copy(), np.arange(30)) for _ in range(2))
        assert metrics._keep_best(*ours, k) == naive.keep_best(*theirs, k)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a[:k], b[:k])
