"""The compiled loops of metrics.py against plain Python, and the ways to prepare a block."""

from itertools import product

import naive
import numpy as np
import pytest
from test_metrics import N_BITS, make_bits, pack

import metrics
from metrics import hamming_histogram, nearest


@pytest.fixture(autouse=True)
def ignore_overflow():
    """Silence numpy with the JIT off, as the public functions do: the popcount overflows."""
    with np.errstate(over="ignore"):
        yield


def make_words(rng, n_rows, n_bits):
    bits = make_bits(rng, n_rows, n_bits)
    return pack(np.pad(bits, ((0, 0), (0, -n_bits % 64)))).view(np.uint64)


def as_columns(rows):
    return np.ascontiguousarray(rows.T)


def make_labels(rng, n, m, n_words):
    """Return the labels of n queries in rows, and of m items in columns."""
    # The two highest bits of each word.
    words = rng.integers(0, 4, (n + m, n_words)).astype(np.uint64) << np.uint64(62)
    return words[:n], as_columns(words[n:])


def loop_arguments(n_bits):
    """Return arguments of the compiled loops, made anew each time because loops write to them."""
    rng = np.random.default_rng(n_bits)
    n, m, k = 6, 25, 6
    Q = make_words(rng, n, n_bits)
    rows = make_words(rng, m, n_bits)
    D = as_columns(rows)
    ids = make_labels(rng, n, m, n_words=1)
    # The second query has no label in the second of three words.
    sets = make_labels(rng, n, m, n_words=3)
    sets[0][1, 1] = 0
    # Queries 3, 0, 2 and 5, 4 have the same labels: a pair, one left over, and another pair.
    for labels in (ids[0], sets[0]):
        labels[[0, 2]] = labels[3]
        labels[4] = labels[5]
    order = np.array([3, 0, 2, 5, 4])
    is_new = np.array([True, False, False, True, False])
    alone = np.zeros(0, np.uint32)
    weight = rng.integers(1, 1000, m).astype(np.uint32)
    # 9 label sets of 1 to 8 items.
    edges = np.array([0, 1, 2, 5, 6, 14, 15, 16, 20, 25])
    each = np.zeros(0, np.int64)
    few_ids = ids[1][:, :9].copy()
    few_sets = sets[1][:, :9].copy()
    grade = np.zeros(m, np.uint16)
    # Not 0, because a loop continues where the last block ended.
    counts = rng.integers(0, 9, (5, n, n_bits + 1))
    two = counts[:2].copy()
    # Fewer cells than items, so that there are three tiles.
    cells = np.zeros(10, np.uint16)
    wide = np.zeros(10, np.uint32)
    scores = np.zeros(n), np.zeros(n, np.int64)
    found = np.sort(rng.integers(0, n_bits + 1, (n, k)), axis=1)
    places = np.tile(np.arange(k), (n, 1))
    queries = (order, is_new, Q)
    return {
        "add_distances": (Q[0], D, 3, rng.integers(0, 9, 20).astype(np.uint32)),
        "grade": (ids[0][1], ids[1], False, 1, grade),
        "grade of sets": (sets[0][1], sets[1], True, 1, grade),
        "grade by numbers": (sets[0][1], sets[1], True, 3, grade),
        "count": (*queries, ids[0], D, alone, ids[1], each, False, cells, two),
        "count sets": (*queries, sets[0], D, alone, sets[1], each, True, cells, two),
        "count weights": (*queries, ids[0], D, weight, ids[1], each, False, cells, two),
        "count runs": (*queries, ids[0], D, alone, few_ids, edges, False, cells, two),
        "count grades": (
            *queries,
            sets[0],
            D,
            weight,
            few_sets,
            edges,
            True,
            wide,
            counts,
        ),
        "rank_stable": (Q, rows, *ids, False, 12, two[0] + two[1], two[1], *scores),
        "rank_stable of sets": (
            Q,
            rows,
            *sets,
            True,
            12,
            two[0] + two[1],
            two[1],
            *scores,
        ),
        "select": (Q, D, 100, n_bits, found, places),
        "select of the first": (Q, D, 0, n_bits, *np.zeros((2, n, k), np.int64)),
        "select more than there are": (
            Q,
            D,
            4,
            n_bits,
            *np.zeros((2, n, 40), np.int64),
        ),
    }


@pytest.mark.parametrize("n_bits", N_BITS)
@pytest.mark.parametrize("name", loop_arguments(1))
def test_loops_agree_with_naive(name, n_bits):
    ours, theirs = loop_arguments(n_bits)[name], loop_arguments(n_bits)[name]
    loop = name.split()[0]
    getattr(metrics, "_" + loop)(*ours)
    getattr(naive, loop)(*theirs)
    for a, b in zip(ours, theirs, strict=True):
        if a is not ours[-2] or loop != "count":
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def test_popcount_agrees_with_naive():
    single = [1 << k for k in range(64)]
    below = [x - 1 for x in single]
    inverted = [2**64 - 1 - x for x in single]
    for x in [*single, *below, *inverted, 2**64 - 1]:
        assert metrics._popcount(np.uint64(x)) == naive.popcount(x)


@pytest.mark.parametrize("n_items", [0, 1, 3, 4, 5, 11])
@pytest.mark.parametrize("n_tables", [2, 4])
def test_the_tables_add_up_to_the_counts(n_items, n_tables):
    rng = np.random.default_rng(n_items)
    cells = rng.integers(0, 5, n_items).astype(np.uint32)
    tables = np.zeros((n_tables, 6), np.uint32)
    metrics._add_ones(cells, tables)
    assert tables.sum(axis=0).tolist() == naive.histogram(cells, 5)
    weight = rng.integers(1, 1000, n_items).astype(np.uint32)
    tables[:] = 0
    metrics._add_weights(cells, weight, tables)
    expected = naive.histogram(np.repeat(cells, weight), 5)
    assert tables.sum(axis=0).tolist() == expected


def test_counts_of_two_queries_are_taken_apart():
    n, first = 4, 4
    tables = np.arange(2 * 2 * n * n, dtype=np.uint32).reshape(2, -1)
    n_first = np.ones(n, np.int64)
    n_second = np.full(n, 2)
    metrics._add_pairs(tables, first, n_first, n_second)
    # The second grade, because a grade has n * n cells.
    pairs = tables.sum(axis=0)[n * n :].reshape(n, n)
    assert n_first.tolist() == (1 + pairs.sum(axis=1)).tolist()
    assert n_second.tolist() == (2 + pairs.sum(axis=0)).tolist()


@pytest.mark.parametrize("n_different", [1, 4, 30])
@pytest.mark.parametrize("n_words", [1, 3])
def test_rows_are_numbered_as_they_appear(n_different, n_words):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2**62, (n_different, n_words)).astype(np.uint64)
    rows = rows[rng.integers(n_different, size=40)]
    number, first = metrics._number_rows(rows)
    expected = np.zeros((2, 40), np.int64)
    n = naive.number(rows, *expected)
    assert number.tolist() == expected[0].tolist()
    assert first.tolist() == expected[1, :n].tolist()


def test_rows_that_begin_at_the_same_place_are_told_apart():
    """With this shift all rows begin their search at one of the first two places."""
    rows = np.arange(20, dtype=np.uint64)[:, None] >> np.uint64(1)
    slots = np.full(16, -1, np.int32)
    number, first = np.empty((2, 20), np.int64)
    assert metrics._number(rows, slots, np.uint64(63), number, first) == 10
    assert number.tolist() == [j // 2 for j in range(20)]
    assert first[:10].tolist() == list(range(0, 20, 2))


def test_rows_that_differ_in_their_highest_bits_do_not_share_a_place():
    """A search along shared places would still be right, but slow."""
    rows = np.arange(256, dtype=np.uint64)[:, None] << np.uint64(56)
    slots = np.full(512, -1, np.int32)
    number, first = np.empty((2, 256), np.int64)
    metrics._number(rows, slots, np.uint64(64 - 9), number, first)
    # Without a search, a row is at the place that the hash value of it alone has.
    alone = []
    for row in rows:
        own = np.full(512, -1, np.int32)
        metrics._number(row[None], own, np.uint64(64 - 9), number[:1], first[:1])
        alone.append(own.argmax())
    assert len(set(alone)) > 128


@pytest.mark.parametrize("n", [0, 1, 5, 9])
def test_candidates_are_sorted_stably_and_cut(n):
    rng = np.random.default_rng(n)
    distance, row = rng.integers(0, 4, (2, 2, 10))
    ranking = naive.stable_ranking(distance[0, :n])[:6]
    expected = distance[0, ranking].tolist(), row[0, ranking].tolist()
    kept = metrics._sort_near(distance, row, n, 6, np.empty(6, np.int64))
    assert kept == len(ranking)
    assert (distance[0, :kept].tolist(), row[0, :kept].tolist()) == expected


def prepared(D, Ld, merges, sorts):
    """Return the code, the label set and the weight of each column that `_prepare` made."""
    D, weight, sets, edges = metrics._prepare(D, Ld, merges, sorts)
    n = D.shape[1]
    set_of = np.arange(n)
    if len(edges):
        set_of = np.repeat(np.arange(sets.shape[1]), np.diff(edges))
    weight = weight.tolist() if len(weight) else [1] * n
    rows = np.vstack([D, sets[:, set_of]]).T.tolist()
    return list(map(tuple, rows)), weight


@pytest.mark.parametrize("merges, sorts", [*product([False, True], repeat=2)])
@pytest.mark.parametrize("n_sets", [2, 40])
def test_a_prepared_block_has_the_same_items(merges, sorts, n_sets):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (60, 2)).astype(np.uint64)
    labels = rng.integers(0, n_sets, (3, 60)).astype(np.uint64)
    rows, weight = prepared(codes, labels, merges, sorts)
    given = list(map(tuple, np.vstack([codes.T, labels]).T.tolist()))
    items = [row for row, times in zip(rows, weight, strict=True) for _ in range(times)]
    assert sorted(items) == sorted(given)
    assert len(rows) == (len(set(given)) if merges else 60)
    if not merges and not sorts:
        assert rows == given


def random_case(n_bits, n_codes, n_sets, n_queries=8, n_items=70):
    """Return codes and label sets, each drawn from a few, of queries and items."""
    rng = np.random.default_rng([n_bits, n_codes, n_sets])
    codes = pack(rng.integers(0, 2, (n_codes, n_bits)))
    sets = rng.random((n_sets, 70)) < 0.05
    n = n_queries + n_items
    codes = codes[rng.integers(n_codes, size=n)]
    sets = sets[rng.integers(n_sets, size=n)]
    return codes[:n_queries], codes[n_queries:], sets[:n_queries], sets[n_queries:]


@pytest.mark.parametrize("many", [1, 1000])
@pytest.mark.parametrize("n_codes, n_sets", [*product([3, 200], repeat=2)])
def test_the_number_of_shared_labels_is_counted(monkeypatch, n_codes, n_sets, many):
    monkeypatch.setattr(metrics, "MANY", many)
    case = random_case(9, n_codes, n_sets)
    scan = metrics._DatabaseScan(*case[:2], case[2:], n_bits=9)
    counts = metrics._count_grades(scan, n_grades=4)
    shared = np.minimum(case[2].astype(int) @ case[3].T.astype(int), 3)
    for q, g in product(range(8), range(4)):
        distances = naive.hamming(case[0][q], case[1][shared[q] == g])
        assert counts[g, q].tolist() == naive.histogram(distances, 9)


@pytest.mark.parametrize("kind", ["single", "sets"])
@pytest.mark.parametrize("n_bits", [9, 64, 70, 300])
def test_preparing_a_block_does_not_matter(monkeypatch, n_bits, kind):
    query_codes, db_codes, *labels = random_case(n_bits, 9, 5)
    if kind == "single":
        labels = [rows.argmax(axis=1) for rows in labels]
    results = []
    for many in (1, 1000):
        monkeypatch.setattr(metrics, "MANY", many)
        h = hamming_histogram(query_codes, db_codes, *labels, n_bits)
        results.append(np.stack([h.items, h.relevant]))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
@pytest.mark.parametrize("k", [1, 2, 40, 600])
def test_nearest_finds_ties_in_database_order_in_any_database(monkeypatch, order, k):
    """In a descending database every item is nearer than all before it."""
    monkeypatch.setattr(metrics, "BLOCK_WORDS", 250)
    distances = np.random.default_rng(k).integers(0, 65, 600)
    if order != "random":
        distances.sort()
    if order == "descending":
        distances = distances[::-1]
    items = pack(np.arange(64) < distances[:, None])
    queries = pack(np.zeros((2, 64), int))
    found, indices = nearest(queries, items, k, n_threads=2)
    ranking = naive.stable_ranking(distances)[:k]
    assert indices.tolist() == [ranking] * 2
    assert found.tolist() == [distances[ranking].tolist()] * 2


def test_nearest_finds_an_item_behind_many_candidates_and_a_tile_without_one():
    # The first 110 items are more than are kept, so that they are sorted in between.
    distances = np.full(1200, 9)
    distances[:110] = 5
    distances[3:5] = 0
    distances[1100] = 3
    items = pack(np.arange(64) < distances[:, None])
    found, indices = nearest(pack(np.zeros((1, 64), int)), items, 3)
    assert found.tolist() == [[0, 0, 3]]
    assert indices.tolist() == [[3, 4, 1100]]


@pytest.mark.parametrize("offset", [0, 1])
def test_codes_at_any_address_are_read(offset):
    """Whole words are read in place only if they begin at the address of a word."""
    rng = np.random.default_rng(0)
    data = rng.integers(256, size=offset + 20 * 16, dtype=np.uint8)
    codes = data[offset:].reshape(20, 16)
    words = metrics._as_words(codes)
    np.testing.assert_array_equal(words.view(np.uint8), codes)
    assert np.shares_memory(words, codes) == (offset == 0)
    h = hamming_histogram(codes, codes, range(20), range(20))
    assert (h.items[:, 0] == 1).all()
    assert (h.items.sum(axis=1) == 20).all()


def test_codes_with_more_cells_than_two_bytes_number():
    n_bits = 40_000
    distances = [0, 5, 32_000, 40_000, 40_000]
    items = pack(np.arange(n_bits) < np.array(distances)[:, None])
    h = hamming_histogram(items[:1], items, [1], [1, 0, 1, 0, 1])
    assert h.items[0].nonzero()[0].tolist() == [0, 5, 32_000, 40_000]
    assert h.items[0, 40_000] == 2
    assert h.relevant[0].nonzero()[0].tolist() == [0, 32_000, 40_000]


def test_the_last_cell_is_counted_where_there_are_few_more_than_two_bytes_number():
    # 16 grades at 4,097 distances are 65,552 cells.
    codes = pack(np.repeat([[0], [1], [1]], 4096, axis=1))
    labels = np.ones((3, 15), int)
    h = metrics.graded_histogram(codes[:1], codes[1:], labels[:1], labels[1:])
    assert np.argwhere(h.grades).tolist() == [[15, 0, 4096]]
    assert h.grades[15, 0, 4096] == 2


@pytest.mark.parametrize("n_bytes", [1, 8, 20])
def test_equal_codes_are_noticed_wherever_they_are(n_bytes):
    rng = np.random.default_rng(0)
    codes = rng.permuted(np.arange(200, dtype=np.uint8))[:, None]
    codes = np.hstack([np.full((200, n_bytes - 1), 7, np.uint8), codes])
    assert not metrics._has_equal(codes)
    codes[190] = codes[3]
    assert metrics._has_equal(codes)


def test_only_a_sample_of_many_codes_is_compared():
    n = 5 * metrics.SAMPLE
    codes = np.arange(n, dtype=np.uint64)[:, None].view(np.uint8)
    assert not metrics._has_equal(codes)
    assert metrics._has_equal(codes // 16 * 16)
