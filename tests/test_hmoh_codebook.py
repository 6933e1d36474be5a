"""Target codes: the three kinds of codebooks, growing streams, and several labels per sample."""

import itertools
import pickle
import subprocess
import sys

import naive
import numpy as np
import pytest
from helpers import JIT_IS_OFF, KINDS, ROOT, feed, multi_stream, plain, quick, stream
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import hmoh
from hmoh import HMOH, Codebook


def min_distance(targets):
    """Return the least Hamming distance of two targets."""
    T = np.stack(list(targets.values())).astype(int)
    return min(np.count_nonzero(a != b) for a, b in itertools.combinations(T, 2))


# ---- codebook ------------------------------------------------------------------------


@pytest.mark.parametrize("n_bits", [*range(1, 18), 31, 32, 33, 64])
@pytest.mark.parametrize("n_labels", [None, 1, 2, 8, 9, 40])
def test_order_is_the_least_power_of_two_not_below_bits_and_labels(n_bits, n_labels):
    book = Codebook(n_bits, "random", n_labels, 0)
    assert book.order == naive.order(n_bits, n_labels or 1)


@pytest.mark.parametrize("kind", ["plotkin", "Random", "", None, 0])
def test_an_unknown_kind_is_refused_with_the_known_ones(kind):
    way = 'is unknown; pass "random", "ordered" or "spread".'
    with pytest.raises(ValueError) as caught:
        Codebook(8, kind, 10, 0)
    assert str(caught.value) == f"kind={kind!r} {way}"
    X, y = stream(n_labels=3)
    with pytest.raises(ValueError) as caught:
        HMOH(8, codebook=kind).fit(X, y)
    assert str(caught.value) == f"codebook={kind!r} {way}"


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("n_bits", [4, 5])
def test_every_label_has_its_own_column_and_growth_uses_the_upper_half(codebook, n_bits):
    book = Codebook(n_bits, codebook, None, 0)
    first = book.order
    for label in range(40):
        book = book.add([label])
    assert book.order == 64
    assert len(set(book.columns.tolist())) == 40
    assert set(book.columns[:first].tolist()) == set(range(first))
    order = first
    while order < 32:
        columns = book.columns[order : 2 * order].tolist()
        assert set(columns) == set(range(order, 2 * order))
        order *= 2


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("known", [True, False])
def test_targets_are_distinct_hadamard_columns_where_the_lengths_agree(codebook, known):
    X, y = stream(n_labels=10)
    classes = np.arange(10) if known else None
    model = HMOH(16, codebook=codebook, random_state=0).partial_fit(X, y, classes)
    targets = model.targets_
    columns = {tuple(column) for column in naive.sylvester(16).T}
    assert set(targets) == set(range(10))
    assert {target.dtype for target in targets.values()} == {np.dtype(np.int8)}
    given = {tuple(target.tolist()) for target in targets.values()}
    assert len(given) == 10 and given <= columns


@pytest.mark.parametrize("n_bits, n_labels", [(5, 3), (8, 10), (12, 10), (3, 4), (1, 2)])
def test_targets_are_signs_of_projected_columns_where_the_lengths_differ(n_bits, n_labels):
    book = Codebook(n_bits, "random", n_labels, 7).add(list(range(n_labels)))
    H = naive.sylvester(book.order)
    assert book.order != n_bits and book.lsh.shape == (book.order, n_bits)
    for label, column in zip(range(n_labels), book.columns, strict=True):
        expected = np.where(book.lsh.T @ H[:, column] > 0, 1, -1)
        assert_array_equal(book.targets[label], expected)


def test_projections_are_standard_normal():
    lsh = Codebook(60, "random", 64, 0).lsh
    assert abs(lsh.mean()) < 0.05 and abs(lsh.std() - 1) < 0.05


def test_random_columns_are_any_columns():
    targets = []
    for seed in range(200):
        book = Codebook(4, "random", 3, seed).add([0])
        targets.append(book.targets[0].tolist())
    counts = [targets.count(column) for column in naive.sylvester(4).T.tolist()]
    assert sum(counts) == 200 and min(counts) > 25


@pytest.mark.parametrize("n_bits", [16, 32, 64, 128])
def test_ordered_codes_of_ten_classes_repeat_every_16_bits(n_bits):
    X, y = stream(n_labels=10)
    targets = HMOH(n_bits, codebook="ordered").fit(X, y).targets_
    for label, column in enumerate(naive.sylvester(16)[:, :10].T):
        assert_array_equal(targets[label], np.tile(column, n_bits // 16))


def test_ordered_goes_by_sorted_order_if_classes_are_known_and_by_arrival_otherwise():
    X = np.eye(4)
    y = np.array([30, -10, 20, 10])
    H = naive.sylvester(4).T.tolist()
    by_order = dict(zip([-10, 10, 20, 30], H, strict=True))
    by_arrival = dict(zip(y.tolist(), H, strict=True))
    model = HMOH(4, codebook="ordered").fit(X, y)
    assert plain(model.targets_) == by_order
    model = HMOH(4, codebook="ordered").partial_fit(X, y, classes=y)
    assert plain(model.targets_) == by_order
    model = HMOH(4, codebook="ordered").partial_fit(X, y)
    assert plain(model.targets_) == by_arrival
    model = HMOH(4, codebook="ordered", n_classes=4).partial_fit(X, y)
    assert plain(model.targets_) == by_arrival


@pytest.mark.parametrize("known", [True, False])
def test_spread_is_random_where_the_lengths_agree(known):
    X, y = stream(n_labels=10)
    classes = np.arange(10) if known else None
    random = HMOH(16, codebook="random", random_state=3).partial_fit(X, y, classes)
    spread = HMOH(16, codebook="spread", random_state=3).partial_fit(X, y, classes)
    assert plain(spread.targets_) == plain(random.targets_)


@pytest.mark.parametrize("seed", range(10))
def test_spread_is_never_worse_than_random(seed):
    X, y = stream(n_labels=10)
    random = HMOH(8, codebook="random", random_state=seed).fit(X, y)
    spread = HMOH(8, codebook="spread", random_state=seed).fit(X, y)
    assert min_distance(spread.targets_) >= min_distance(random.targets_)
    # It is the best of 2,000 draws, most of which have 0 or 1.
    assert min_distance(spread.targets_) >= 2


# With 4 bits many draws reach the best distance.
@pytest.mark.parametrize("n_bits, n_labels", [(4, 5), (12, 6)])
def test_spread_takes_the_smaller_sum_of_squared_inner_products_among_equals(n_bits, n_labels):
    def score(kind, seed):
        book = Codebook(n_bits, kind, n_labels, seed).add(list(range(n_labels)))
        T = np.stack(list(book.targets.values())).astype(int)
        return min_distance(book.targets), -np.square(T @ T.T).sum()

    assert score("spread", 0) >= max(score("random", seed) for seed in range(300))


@pytest.mark.parametrize("n_bits", [5, 6])
def test_spread_gives_every_new_label_of_an_open_stream_the_best_target_there_is(
    n_bits,
):
    # All codes there are. 2,000 draws see all of them.
    codes = np.array(list(itertools.product([-1, 1], repeat=n_bits)))
    book = Codebook(n_bits, "spread", None, 0).add(["first"])
    for label in range(20):
        T = np.stack(list(book.targets.values())).astype(int)
        book = book.add([label])
        inner = codes @ T.T
        nearest = inner.max(axis=1).tolist()
        crowding = np.square(inner).sum(axis=1).tolist()
        best = min(zip(nearest, crowding, strict=True))
        inner = book.targets[label] @ T.T
        assert (inner.max(), np.square(inner).sum()) == best


def test_spread_compares_fewer_candidates_for_later_labels_and_then_none(monkeypatch):
    monkeypatch.setattr(hmoh, "DRAWS", 20)
    monkeypatch.setattr(hmoh, "FAR_PAIRS", 100)
    monkeypatch.setattr(hmoh, "FAR_LABELS", 12)
    drawn = []
    random_targets = Codebook._random_targets

    def noted_targets(self, n):
        drawn.append(n)
        return random_targets(self, n)

    monkeypatch.setattr(Codebook, "_random_targets", noted_targets)
    # The order is 32, and no two of 20 codes of 20 bits are equal.
    book = Codebook(20, "spread", None, 0).add(list(range(20)))
    # The first label has no other to be far from. At most 100 pairs are compared, up to label 12.
    assert drawn == [20, 20, 20, 20, 20, 16, 14, 12, 11, 10, 9, 8]
    assert len(book.targets) == 20


@pytest.mark.slow
def test_spread_of_many_classes_stays_quick():
    script = """
import time
from hmoh import Codebook
start = time.time()
Codebook(500, "spread", 1000, 0)
assert time.time() - start < 10
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_targets_do_not_depend_on_the_samples():
    X, y = stream()
    a = HMOH(6, codebook="spread", random_state=0).fit(X, y)
    b = HMOH(6, codebook="spread", random_state=0).fit(X[:, :2] ** 2, y)
    assert plain(a.targets_) == plain(b.targets_)


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("n_bits, n_labels", [(3, 8), (4, 16), (2, 4), (7, 30)])
def test_growth_keeps_old_targets_and_gives_new_ones_while_there_is_room(
    codebook, n_bits, n_labels
):
    first = naive.order(n_bits, 1)
    for seed in range(5):
        model = HMOH(n_bits, codebook=codebook, random_state=seed)
        before = {}
        for label in range(n_labels):
            model.partial_fit([[1.0, label]], [label])
            targets = plain(model.targets_)
            assert {old: targets[old] for old in before} == before
            # LSH may give two of the first labels the same target, as in the paper.
            if label >= first:
                assert targets[label] not in before.values()
            before = targets


@pytest.mark.parametrize("codebook", KINDS)
def test_open_stream_of_more_labels_than_codes_goes_on(codebook):
    X, y = stream(100, n_labels=20)
    model = HMOH(2, codebook=codebook, random_state=0).partial_fit(X, y)
    assert len(model.targets_) == len(set(y.tolist()))
    assert len({tuple(target) for target in plain(model.targets_).values()}) == 4


def test_spread_finds_a_free_target_on_a_nearly_full_open_stream(monkeypatch):
    # 20 draws miss the last free codes, as 2,000 do with 10 bits or more.
    monkeypatch.setattr(hmoh, "DRAWS", 20)
    book = Codebook(6, "spread", None, 0).add(list(range(64)))
    assert len({target.tobytes() for target in book.targets.values()}) == 64


@pytest.mark.parametrize("n_tries", [1, 16])
def test_the_last_unused_codes_are_found(n_tries, monkeypatch):
    monkeypatch.setattr(hmoh, "FREE_TRIES", n_tries)
    book = Codebook(8, "random", None, 0).add(list(range(300)))
    targets = [target.tobytes() for target in book.targets.values()]
    # LSH may give two of the first labels the same target, as in the paper.
    assert len(set(targets[8:256])) == 248
    assert len(set(targets)) == 256


@pytest.mark.parametrize("n_bits", [1, 2])
def test_the_last_unused_code_is_found_if_all_bits_differ(n_bits, monkeypatch):
    monkeypatch.setattr(hmoh, "FREE_TRIES", 1)
    n_codes = 2**n_bits
    for seed in range(30):
        book = Codebook(n_bits, "random", None, seed).add(list(range(3 * n_codes)))
        targets = {target.tobytes() for target in book.targets.values()}
        assert len(targets) == n_codes


def test_a_target_that_is_taken_does_not_change_the_alignment_of_others():
    book = Codebook(3, "random", None, 0).add(list(range(4)))
    lsh = []
    for label in range(4, 8):
        book = book.add([label])
        lsh.append(book.lsh)
    assert len({id(matrix) for matrix in lsh}) == 1


@pytest.mark.parametrize("codebook", KINDS)
def test_number_of_classes_sets_the_order_from_the_start(codebook):
    X = np.ones((10, 2))
    known = HMOH(8, codebook=codebook, random_state=0)
    known.partial_fit(X, range(10), classes=range(10))
    counted = HMOH(8, codebook=codebook, n_classes=10, random_state=0)
    counted.partial_fit(X, range(10))
    assert plain(known.targets_) == plain(counted.targets_)
    counted.partial_fit(X[:6], range(10, 16))
    targets = plain(counted.targets_)
    assert {label: targets[label] for label in range(10)} == plain(known.targets_)
    assert len(targets) == 16


@pytest.mark.parametrize("codebook", KINDS)
def test_classes_get_targets_before_they_come_and_others_may_still_come(codebook):
    X = np.ones((2, 3))
    model = HMOH(4, codebook=codebook, random_state=0)
    model.partial_fit(X, ["b", "c"], classes=["a", "b", "c"])
    before = plain(model.targets_)
    assert list(before) == ["a", "b", "c"]
    model.partial_fit(X, ["z", "y"])
    model.partial_fit(X, ["a", "b"], classes=["c", "a", "b"])
    after = plain(model.targets_)
    assert list(after) == ["a", "b", "c", "z", "y"]
    assert {label: after[label] for label in "abc"} == before


# ---- tables that codebooks share -----------------------------------------------------


def shown(book):
    """Return all that a codebook gives out, to compare with ==."""
    n_rows = len(book.targets)
    rows = book.rows(list(book.targets)).tolist()
    table = book.table[:n_rows].tolist()
    return plain(book.targets), book.columns.tolist(), rows, table, book.order


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("n_bits", [4, 6])
@pytest.mark.parametrize("n", [0, 3, 15, 16, 17])  # the first table has 16 rows
def test_adding_leaves_every_other_codebook_as_it_was(codebook, n_bits, n):
    start = Codebook(n_bits, codebook, None, 0).add(list(range(n)))
    before = shown(start)
    first = start.add([100, 101])
    first_shown = shown(first)
    # A codebook from which others were added is added to once more.
    second = start.add(["a", "b", "c"])
    assert shown(start) == before
    assert shown(first) == first_shown
    assert list(second.targets) == [*range(n), "a", "b", "c"]
    # The names differ, so the targets are the same, in the same order.
    targets = list(plain(second.targets).values())
    assert targets[: n + 2] == list(plain(first.targets).values())
    third = first.add(list(range(200, 240)))
    assert shown(first) == first_shown
    assert {label: third.targets[label].tolist() for label in first_shown[0]} == first_shown[0]
    assert shown(start.add([100, 101])) == first_shown


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("n_bits", [4, 6, 8])
@pytest.mark.parametrize("n", [3, 8, 15, 16, 31])
@pytest.mark.parametrize("n_failed", [1, 20])
def test_labels_of_a_call_that_failed_take_no_targets(codebook, n_bits, n, n_failed, monkeypatch):
    X, _ = stream(70)
    spared = HMOH(n_bits, codebook=codebook, random_state=0)
    failed = HMOH(n_bits, codebook=codebook, random_state=0)
    for model in (spared, failed):
        model.partial_fit(X[:n], range(n))

    def fail(*args):
        raise MemoryError

    before = pickle.dumps(failed)
    # The codebook is done when the rows of the labels are asked for.
    for labels in (np.arange(1000, 1000 + n_failed), [2000, 5000]):
        with monkeypatch.context() as patch:
            patch.setattr(Codebook, "rows", fail)
            with pytest.raises(MemoryError):
                failed.partial_fit(X[: len(labels)], labels)
        assert plain(failed.targets_) == plain(spared.targets_)
        assert pickle.dumps(failed) == before
    for labels in ([5000, 1000], list(range(n + 10))):
        spared.partial_fit(X[: len(labels)], labels)
        failed.partial_fit(X[: len(labels)], labels)
        assert plain(failed.targets_) == plain(spared.targets_)
        assert_array_equal(failed.weights_, spared.weights_)


@pytest.mark.parametrize("codebook", ["random", "spread"])
def test_an_error_in_the_middle_of_a_label_is_of_no_consequence(codebook, monkeypatch):
    append = Codebook._append
    book = Codebook(5, codebook, None, 0).add([0, 1, 2])
    expected = shown(book.add([3]).add([4]))
    book = Codebook(5, codebook, None, 0).add([0, 1, 2])

    def fail(self, label, target):
        if label == 9:
            raise MemoryError
        append(self, label, target)

    monkeypatch.setattr(Codebook, "_append", fail)
    with pytest.raises(MemoryError):
        book.add([7, 8, 9])
    with pytest.raises(MemoryError):
        book.add([9])  # its column is in the list, but its target is not
    assert shown(book.add([3]).add([4])) == expected


# ---- many labels ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "n_bits, n_labels", [(64, 300 if JIT_IS_OFF else 10_000), (100, 200), (7, 300)]
)
def test_many_known_labels_have_the_targets_of_a_plain_product(n_bits, n_labels):
    book = Codebook(n_bits, "random", n_labels, 0).add(list(range(n_labels)))
    assert len(book.targets) == n_labels == len(set(book.columns.tolist()))
    assert book.order == naive.order(n_bits, n_labels) != n_bits
    targets = book.targets
    for label in np.random.default_rng(0).integers(n_labels, size=50).tolist():
        which = int(book.columns[label])
        odd = [(i & which).bit_count() % 2 for i in range(book.order)]
        column = np.where(odd, -1.0, 1.0)
        assert_array_equal(targets[label], naive.sign(column @ book.lsh))


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("n_bits", [4, 7, 12])
@quick
@given(
    st.lists(st.integers(0, 120), max_size=150),
    st.sets(st.integers(0, 149), max_size=9),
)
def test_targets_do_not_depend_on_the_calls_that_bring_the_labels(codebook, n_bits, labels, cuts):
    once = Codebook(n_bits, codebook, None, 3).add(labels)
    each = Codebook(n_bits, codebook, None, 3)
    for label in labels:
        each = each.add([label])
    parts = Codebook(n_bits, codebook, None, 3)
    for start, stop in itertools.pairwise([0, *sorted(cuts), 150]):
        parts = parts.add(labels[start:stop])
    copied = Codebook(n_bits, codebook, None, 3).add(labels[:50]).copy().add(labels[50:])
    assert shown(once) == shown(each) == shown(parts) == shown(copied)


def test_a_label_of_a_long_open_stream_costs_no_more_than_one_of_a_short_one(
    monkeypatch,
):
    transformed = []
    copied = []
    product = hmoh.hadamard_product
    get_state = Codebook.get_state

    def noted_product(x):
        transformed.append(len(x))
        return product(x)

    def noted_state(self):
        copied.append(self.n_targets)
        return get_state(self)

    monkeypatch.setattr(hmoh, "hadamard_product", noted_product)
    monkeypatch.setattr(Codebook, "get_state", noted_state)
    order = 512 if JIT_IS_OFF else 1 << 15
    book = Codebook(64, "random", None, 0)
    tables = [book.table]
    dictionary = book._row_of
    n = order // 2 + 100
    for label in range(n):
        book = book.add([label])
        if book.table is not tables[-1]:
            tables.append(book.table)
    assert book.order == order
    # Orders and tables double. So all of them together are at most twice the last.
    orders = [128]
    while orders[-1] < order:
        orders.append(2 * orders[-1])
    assert transformed == orders
    sizes = [len(table) for table in tables]
    assert sizes == [16 << k for k in range(len(sizes))] and sizes[-1] == order
    assert copied == []
    assert book._row_of is dictionary
    assert np.shares_memory(book.queue, book.add(["new"]).queue)
    assert len({target.tobytes() for target in book.targets.values()}) == n


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS")
def test_spread_of_twenty_thousand_classes_needs_less_than_a_gigabyte():
    script = """
import resource
from hmoh import Codebook
book = Codebook(4, "spread", 3, 0)  # all is compiled and imported
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 1_000_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
book = Codebook(64, "spread", 20_000, 0).add(list(range(20_000)))
assert book.n_draws == 1, book.n_draws
assert len(book.targets) == 20_000
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_spread_says_how_many_draws_it_compared(monkeypatch):
    # The product, slow with the JIT off, does not matter here.
    monkeypatch.setattr(hmoh, "hadamard_product", lambda x: x)
    monkeypatch.setattr(Codebook, "_score", lambda self, targets: 0)
    assert Codebook(6, "spread", 10, 0).n_draws == hmoh.DRAWS
    assert 1 < Codebook(50, "spread", 200, 0).n_draws < hmoh.DRAWS
    assert Codebook(8, "spread", 5, 0).n_draws == 1  # nothing is drawn
    assert Codebook(6, "random", 10, 0).n_draws == 1
    assert Codebook(6, "spread", None, 0).n_draws == 1
    book = Codebook(50, "spread", 200, 0)
    assert book.add([1, 2]).copy().n_draws == book.n_draws


@pytest.mark.parametrize(
    "n_bits, n_labels, n_draws",
    [
        (50, 200, 661),  # 40 x 256 x 50 + 200^2 x 50 / 2 = 1,512,000 nanoseconds
        (100, 1000, 18),  # 40 x 1,024 x 100 + 1,000^2 x 100 / 2 = 54,096,000
        (64, 20_000, 1),  # more than a second
        (6, 10, 2000),  # never more
    ],
)
def test_spread_compares_the_draws_that_an_estimated_second_allows(
    n_bits, n_labels, n_draws, monkeypatch
):
    monkeypatch.setattr(hmoh, "hadamard_product", lambda x: x)
    monkeypatch.setattr(Codebook, "_score", lambda self, targets: 0)
    assert Codebook(n_bits, "spread", n_labels, 0).n_draws == n_draws


@pytest.mark.parametrize("n_draws", [1, 3])
def test_spread_has_all_columns_however_few_draws_it_compares(n_draws, monkeypatch):
    monkeypatch.setattr(hmoh, "DRAWS", n_draws)
    book = Codebook(6, "spread", 10, 0).add(list(range(16)))
    assert book.n_draws == n_draws
    assert book.order == 16
    assert sorted(book.columns.tolist()) == list(range(16))


@pytest.mark.parametrize(
    "scores, best", [([0, 0, 0], 1), ([0, 1], 2), ([1, 0], 1), ([0, 2, 1, 2], 2)]
)
def test_spread_keeps_the_first_of_the_best_draws(scores, best, monkeypatch):
    draws = []
    draw = Codebook._draw

    def noted_draw(self, first):
        draw(self, first)
        draws.append((self.queue.tolist(), self.lsh))

    def next_score(self, targets):
        return scores[len(draws) - 2]

    monkeypatch.setattr(Codebook, "_draw", noted_draw)
    monkeypatch.setattr(Codebook, "_score", next_score)
    monkeypatch.setattr(hmoh, "DRAWS", len(scores))
    book = Codebook(6, "spread", 10, 0)
    # Before them comes the draw that every codebook makes.
    assert len(draws) == 1 + len(scores)
    assert book.queue.tolist() == draws[best][0]
    assert_array_equal(book.lsh, draws[best][1])


def test_the_score_of_many_targets_is_that_of_all_pairs():
    rng = np.random.default_rng(0)
    book = Codebook(12, "random", 4, 0)
    for n in (2, 999, 1000, 1001, 2003):
        T = rng.choice([-1, 1], size=(n, 12)).astype(np.int8)
        if n == 2003:
            T[:, :8] = 1  # so that the last rows of a block matter
        inner = T.astype(int) @ T.T.astype(int)
        # A target is at distance n_bits from itself, by definition.
        np.fill_diagonal(inner, -12)
        least = (12 - inner.max()) // 2
        assert book._score(T) == (least, -np.square(inner).sum())


def test_bits_are_counted_also_by_a_numpy_that_has_no_function_for_it(monkeypatch):
    # numpy 1.26 has none.
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    x = np.arange(256, dtype=np.uint8).reshape(4, 64)
    expected = [[bin(value).count("1") for value in row] for row in x.tolist()]
    assert hmoh._bit_count(x).tolist() == expected


# ---- several labels per sample -------------------------------------------------------


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("n_bits, n_labels", [(8, 6), (16, 10), (64, 10)])
def test_multi_label_targets_keep_majorities_and_balance_by_their_ties(codebook, n_bits, n_labels):
    X, Y = multi_stream(200, n_labels=n_labels)
    model = HMOH(n_bits, codebook=codebook, random_state=0).fit(X, Y)
    assert list(model.targets_) == list(range(n_labels))
    sets = {tuple(np.flatnonzero(row).tolist()) for row in Y}
    assert set(model.label_set_targets_) == sets and len(sets) > 30
    for labels, target in model.label_set_targets_.items():
        assert target.dtype == np.int8
        assert naive.is_majority(target, [model.targets_[label] for label in labels])


@pytest.mark.parametrize("n_bits", [8, 16, 20])
@pytest.mark.parametrize("codebook", KINDS)
def test_target_of_a_single_label_is_the_labels_own(n_bits, codebook):
    X, Y = multi_stream(200, n_labels=10)
    model = HMOH(n_bits, codebook=codebook, random_state=0).fit(X, Y)
    singles = [labels for labels in model.label_set_targets_ if len(labels) == 1]
    assert singles
    for labels in singles:
        target = model.targets_[labels[0]]
        assert_array_equal(model.label_set_targets_[labels], target)


def test_multi_label_targets_are_aligned_as_single_ones():
    sets = [(1, 4), (0, 1, 2), (0, 1, 2, 3)]
    book = Codebook(5, "random", 6, 0).add(list(range(6))).add_sets(sets)
    H = naive.sylvester(8)[:, book.columns]
    for labels in sets:
        possible = set()
        for code in itertools.product([-1, 1], repeat=8):
            code = np.array(code)
            if naive.is_majority(code, H[:, list(labels)].T):
                possible.add(tuple(naive.sign(book.lsh.T @ code)))
        assert tuple(book.targets[labels]) in possible


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("n_bits", [3, 5, 6] if JIT_IS_OFF else [3, 5, 6, 20, 48])
def test_fused_codes_keep_majorities_of_the_aligned_targets(codebook, n_bits):
    X, Y = multi_stream(200, n_labels=10)
    params = {"codebook": codebook, "random_state": 0}
    model = HMOH(n_bits, fuse="codes", **params).fit(X, Y)
    sets = model.label_set_targets_
    assert len(sets) > 30
    for labels, target in sets.items():
        codes = [model.targets_[label] for label in labels]
        assert naive.is_majority(target, codes)
        if len(labels) == 1:
            assert_array_equal(target, codes[0])
    # The labels have the same targets in the paper's order, but many sets have others.
    paper = HMOH(n_bits, **params).fit(X, Y)
    assert plain(paper.targets_) == plain(model.targets_)
    pairs = [(target, paper.label_set_targets_[labels]) for labels, target in sets.items()]
    n_other = sum(not np.array_equal(*pair) for pair in pairs)
    assert n_other > len(sets) / 5


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("n_bits, n_labels", [(8, 6), (16, 10), (64, 10)])
def test_where_nothing_is_aligned_fused_codes_are_fused_columns(codebook, n_bits, n_labels):
    X, Y = multi_stream(200, n_labels=n_labels)
    a, b = (
        HMOH(n_bits, codebook=codebook, fuse=fuse, random_state=0).fit(X, Y)
        for fuse in ("columns", "codes")
    )
    assert plain(a.label_set_targets_) == plain(b.label_set_targets_)
    assert_array_equal(a.weights_, b.weights_)


# What the code of commit 3e1cdd1, which had no `fuse`, gave for Codebook(5, "random", 6, 0).
FUSED_BEFORE = {
    (1, 4): [-1, 1, 1, -1, -1],
    (0, 1, 2): [-1, 1, 1, -1, -1],
    (0, 1, 2, 3): [1, 1, 1, 1, -1],
    (2, 5): [1, 1, 1, 1, -1],
    (0, 3, 4, 5): [-1, -1, 1, 1, -1],
}


def test_fused_columns_are_what_they_were_before_there_was_a_choice():
    book = Codebook(5, "random", 6, 0).add(list(range(6)))
    assert plain(book.add_sets(list(FUSED_BEFORE)).targets).items() >= FUSED_BEFORE.items()
    codes = plain(book.add_sets(list(FUSED_BEFORE), "codes").targets)
    assert not codes.items() >= FUSED_BEFORE.items()


@quick
@given(
    st.permutations(range(60)),
    st.sets(st.integers(1, 59), max_size=5),
    st.sampled_from(["columns", "codes"]),
    st.sampled_from([16, 12]),
)
def test_ties_are_drawn_once_per_set_whatever_the_order_of_arrival(order, cuts, fuse, n_bits):
    X, Y = multi_stream(n_labels=10)
    params = {"n_bits": n_bits, "fuse": fuse, "random_state": 0}
    model = HMOH(**params).fit(X, Y)
    other = feed(HMOH(**params), X[order], Y[order], cuts)
    assert plain(other.label_set_targets_) == plain(model.label_set_targets_)


def test_ties_are_random():
    X, Y = multi_stream(n_labels=10)
    a = HMOH(16, codebook="ordered", random_state=0).fit(X, Y)
    b = HMOH(16, codebook="ordered", random_state=1).fit(X, Y)
    assert plain(a.label_set_targets_) != plain(b.label_set_targets_)
    pairs = np.zeros((45, 10), int)
    for row, pair in enumerate(itertools.combinations(range(10), 2)):
        pairs[row, pair] = 1
    model = HMOH(64, random_state=0).fit(np.ones((45, 2)), pairs)
    targets = model.label_set_targets_.values()
    # The published code gives 36 of the 45 pairs the same target.
    assert len({target.tobytes() for target in targets}) == 45


def test_targets_seen_stay_when_other_sets_come():
    X, Y = multi_stream(n_labels=10)
    model = HMOH(12, random_state=0).partial_fit(X[:10], Y[:10])
    before = plain(model.label_set_targets_)
    after = plain(model.partial_fit(X, Y).label_set_targets_)
    assert {labels: after[labels] for labels in before} == before
    assert len(after) > len(before)
