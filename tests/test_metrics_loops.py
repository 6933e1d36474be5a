"""The compiled loops of metrics.py against their plain-Python twins in naive.py."""

import naive
import numpy as np
import pytest

import metrics

N_BITS = [1, 8, 12, 64, 128, 136, 320]


@pytest.fixture(autouse=True)
def ignore_overflow():
    """Silence numpy with the JIT off, as the public functions do: the popcount overflows."""
    with np.errstate(over="ignore"):
        yield


def make_codes(rng, n_rows, n_bits):
    """Return rows of bytes: noisy copies of two codes that differ in every bit."""
    bits = rng.integers(0, 2, (n_rows, 1)) ^ (rng.random((n_rows, n_bits)) < 0.1)
    return np.packbits(bits, axis=1, bitorder="little")


def layouts(codes):
    """Return the forms in which the loops read codes: as rows, by bytes and by words."""
    words = next(f"u{size}" for size in (8, 4, 1) if codes.shape[1] % size == 0)
    yield codes.view(words).T
    yield np.ascontiguousarray(codes.T)
    yield np.ascontiguousarray(codes.view(words).T)


def loop_arguments(n_bits, which):
    """Return arguments of the compiled loops, made anew each time because loops write to them."""
    rng = np.random.default_rng(n_bits)
    n, m, k = 6, 25, 6
    codes = make_codes(rng, n + m, n_bits)
    D = list(layouts(codes[n:]))[which]
    Q = codes[:n].view(D.dtype)
    # The two highest bits of a word; the second query has no label in its second byte.
    ids = rng.integers(0, 4, (n + m, 1)).astype(np.uint64) << np.uint64(62)
    sets = rng.integers(0, 256, (n + m, 3)).astype(np.uint8)
    sets[1, 1] = 0
    # Queries 3, 0, 2 and 5, 4 have the same labels: a pair, one left over, and another pair.
    for labels in (ids, sets):
        labels[[0, 2]] = labels[3]
        labels[4] = labels[5]
    single = ids[:n], D, np.ascontiguousarray(ids[n:].T), False
    multi = sets[:n], D, np.ascontiguousarray(sets[n:].T), True
    queries = np.array([3, 0, 2, 5, 4]), np.array([True, False, False, True, False]), Q
    alone = np.zeros(0, np.uint32)
    weight = rng.integers(1, 1000, m).astype(np.uint32)
    # Fewer than items, so that there are three tiles.
    distance = np.zeros(10, np.min_scalar_type(n_bits))
    cells = np.zeros(10, np.uint16)
    # Not 0, because a loop continues where the last block ended.
    counts = rng.integers(0, 9, (5, n, n_bits + 1))
    two = counts[:2].copy()
    ranks = 12, distance, two[0] + two[1], two[1].copy(), np.zeros(n), np.zeros(n, np.int64)
    grade = np.zeros(20, np.uint16)
    keys = np.sort(rng.integers(0, n_bits + 1, (n, k)), axis=1) << metrics.ROW_BITS
    keys += np.arange(k)
    first_keys, all_keys = np.zeros((n, k), np.int64), np.zeros((n, 40), np.int64)
    unsorted = rng.integers(0, 4, 9) << metrics.ROW_BITS
    unsorted += np.arange(9)[::-1]
    return {
        "distances": (Q[0], D, 3, np.zeros(20, distance.dtype)),
        "grade": (ids[1], single[2], 3, False, 1, 7, grade),
        "grade by sets": (sets[1], multi[2], 3, True, 30, 7, grade),
        "grade at most": (sets[1], multi[2], 3, True, 2, 7, grade),
        "count": (*queries, *single, alone, distance, cells, two),
        "count weights": (*queries, *single, weight, distance, cells, two),
        "count sets": (*queries, *multi, alone, distance, cells, two),
        "count grades": (*queries, *multi, weight, distance, cells.astype(np.uint32), counts),
        "rank_stable": (Q, *single, *ranks),
        "rank_stable of sets": (Q, *multi, *ranks),
        "sort_by_distance": (unsorted, np.zeros(9, np.int64), np.zeros(5, np.int64)),
        "select": (Q, D, 100, n_bits, distance, keys),
        "select the first": (Q, D, 0, n_bits, distance, first_keys),
        "select more than there are": (Q, D, 4, n_bits, distance, all_keys),
    }


@pytest.mark.parametrize("n_bits", N_BITS)
@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("name", loop_arguments(8, 0))
def test_loops_agree_with_naive(name, n_bits, which):
    ours, theirs = (loop_arguments(n_bits, which)[name] for _ in range(2))
    loop = name.split()[0]
    getattr(metrics, "_" + loop)(*ours)
    getattr(naive, loop)(*theirs)
    scratch = {"count": (-2, -3), "rank_stable": (-5,), "sort_by_distance": (-1, -2)}
    scratch["select"] = (-2,)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if i - len(ours) not in scratch.get(loop, ()):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def test_two_queries_are_counted_together_where_items_outnumber_the_cells():
    rng = np.random.default_rng(0)
    n_bits, m = 3, 60  # 2 * 4**2 cells
    D = make_codes(rng, m, n_bits).T.copy()
    Q = make_codes(rng, 5, n_bits)
    Lq, Ld = np.zeros((5, 1), np.uint64), rng.integers(0, 2, (1, m)).astype(np.uint64)
    results = []
    for module in ("ours", "naive"):
        counts = np.zeros((2, 5, n_bits + 1), np.int64)
        loop = metrics._count if module == "ours" else naive.count
        order, is_new = np.array([4, 0, 1, 3, 2]), np.array([True] + 4 * [False])
        scratch = np.zeros(10, np.uint8), np.zeros(10, np.uint16)
        loop(order, is_new, Q, Lq, D, Ld, False, np.zeros(0, np.uint32), *scratch, counts)
        results.append(counts)
    np.testing.assert_array_equal(*results)


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
