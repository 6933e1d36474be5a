"""Target codes: the three kinds of codebooks, growing streams, and several labels per sample."""

import itertools

import naive
import numpy as np
import pytest
from helpers import (
    JIT_IS_OFF,
    KINDS,
    assert_helpful,
    feed,
    multi_stream,
    plain,
    quick,
    stream,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import hmoh
from hmoh import HMOH, Codebook


def shown(book):
    """Return all that a codebook gives out, to compare with ==."""
    return plain(book.targets), list(book.columns), book.rows, book.table.tolist(), book.order


# ---- columns and alignment -----------------------------------------------------------


@pytest.mark.parametrize("n_bits", [1, 2, 3, 7, 8, 9, 32, 33])
@pytest.mark.parametrize("n_labels", [None, 1, 2, 8, 9, 40])
def test_the_order_is_the_least_power_of_two_not_below_bits_and_labels(n_bits, n_labels):
    assert Codebook(n_bits, "random", n_labels, 0).order == naive.order(n_bits, n_labels or 1)


@pytest.mark.parametrize("kind", ["plotkin", "Random", "", None, 0, ["random"]])
def test_an_unknown_kind_is_refused_with_the_known_ones(kind):
    X, y = stream()
    for make in (lambda: Codebook(8, kind, 10), lambda: HMOH(8, codebook=kind).fit(X, y)):
        with pytest.raises(ValueError) as caught:
            make()
        assert_helpful(caught.value, repr(kind), *KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_bits", [4, 5])
def test_every_label_has_its_own_column_and_growth_uses_the_upper_half(kind, n_bits):
    book = Codebook(n_bits, kind)
    order = book.order
    for label in range(40):
        book = book.add([label])
    assert book.order == 64
    assert len(set(book.columns)) == 40
    assert set(book.columns[:order]) == set(range(order))
    while order < 32:
        assert set(book.columns[order : 2 * order]) == set(range(order, 2 * order))
        order *= 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_labels", [10, None])
def test_targets_are_distinct_hadamard_columns_where_the_lengths_agree(kind, n_labels):
    book = Codebook(16, kind, n_labels).add(list(range(10)))
    targets = book.targets
    H = naive.sylvester(16)
    assert list(targets) == list(range(10)) == list(book.rows)
    for label, column in zip(range(10), book.columns, strict=True):
        assert targets[label].dtype == np.int8
        assert_array_equal(targets[label], H[:, column])
        assert_array_equal(book.table[book.rows[label]], H[:, column])
    assert len(set(book.columns)) == 10


@pytest.mark.parametrize("n_bits, n_labels", [(12, 400 if JIT_IS_OFF else 4000), (60, 64)])
def test_targets_are_signs_of_gaussian_projections_where_the_lengths_differ(n_bits, n_labels):
    book = Codebook(n_bits, "random", n_labels, 7).add(list(range(n_labels)))
    T = np.stack(list(book.targets.values())).astype(float)
    assert book.order == naive.order(n_bits, n_labels) != n_bits
    # Orthogonal columns have independent projections: bits are fair, and pairs of bits too.
    n = len(T)
    assert abs(T.mean(axis=0)).max() < 5 / np.sqrt(n)
    products = T.T @ T / n - np.eye(n_bits)
    assert abs(products).max() < 6 / np.sqrt(n)


@pytest.mark.parametrize("kind", ["random", "ordered"])
def test_an_aligned_target_is_the_sign_of_its_column_times_wlsh(kind):
    book = Codebook(24, kind, seed=3).add(list(range(9)))
    for _ in range(2):  # before and after the order doubles
        label = len(book.columns) - 1
        column = naive.sylvester(book.order)[:, book.columns[label]]
        assert_array_equal(book.targets[label], np.where(column @ book._lsh > 0, 1, -1))
        book = book.add(list(range(9, 40)))


@pytest.mark.parametrize("n_bits", [16, 32, 64, 128])
def test_ordered_codes_of_ten_classes_repeat_every_16_bits(n_bits):
    targets = Codebook(n_bits, "ordered", 10).add(list(range(10))).targets
    for label, column in enumerate(naive.sylvester(16)[:, :10].T):
        assert_array_equal(targets[label], np.tile(column, n_bits // 16))


def test_ordered_goes_by_sorted_order_if_classes_are_known_and_by_arrival_otherwise():
    X = np.eye(4)
    y = np.array([30, -10, 20, 10])
    H = naive.sylvester(4).T.tolist()
    model = HMOH(4, codebook="ordered")
    by_order = dict(zip([-10, 10, 20, 30], H, strict=True))
    assert plain(model.fit(X, y).targets_) == by_order
    known = HMOH(4, codebook="ordered").partial_fit(X, y, classes=y)
    assert plain(known.targets_) == by_order
    for n_classes in (None, 4):
        model = HMOH(4, codebook="ordered", n_classes=n_classes).partial_fit(X, y)
        assert plain(model.targets_) == dict(zip(y.tolist(), H, strict=True))


# ---- spread --------------------------------------------------------------------------


@pytest.mark.parametrize("n_labels", [10, None])
def test_spread_is_random_where_the_lengths_agree(n_labels):
    books = [Codebook(16, kind, n_labels, 3).add(list(range(10))) for kind in ("random", "spread")]
    assert shown(books[0]) == shown(books[1])


@pytest.mark.parametrize("n_bits", [5, 6])
def test_spread_gives_every_new_label_of_an_open_stream_the_best_target_there_is(n_bits):
    # All codes there are. 2,000 draws see all of them.
    codes = np.array(list(itertools.product([-1, 1], repeat=n_bits)))
    book = Codebook(n_bits, "spread").add(["first"])
    for label in range(20):
        T = np.stack(list(book.targets.values())).astype(int)
        book = book.add([label])

        def crowding(target, T=T):
            products = T @ target
            return products.max(), np.square(products).sum()

        assert crowding(book.targets[label]) == min(map(crowding, codes))


@pytest.mark.parametrize("n", [0, 1, 99, 100, 5000, 300_000])
def test_the_work_of_spread_is_bounded_for_every_label(n):
    class Recorder:
        def integers(self, high, size):
            self.n_codes = size[0]
            return np.zeros(size, int)

    book = Codebook(6, "spread", n)
    book._rng = Recorder()
    assert book._far_from(np.ones((n, 6), np.float32)).shape == (6,)
    assert 1 <= book._rng.n_codes <= 2000
    assert book._rng.n_codes * n <= 200_000 + n


# ---- growth --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_bits, n_labels", [(1, 4), (2, 9), (3, 8), (4, 16), (7, 30), (8, 300)])
def test_growth_keeps_old_targets_and_gives_new_ones_while_there_is_room(
    kind, n_bits, n_labels, monkeypatch
):
    # 20 draws of "spread" miss the last free codes, as 2,000 do with 10 bits or more.
    monkeypatch.setattr(hmoh, "DRAWS", 20)
    for seed in range(3):
        book = Codebook(n_bits, kind, None, seed)
        first = book.order
        given = set()
        before = {}
        for label in range(n_labels):
            book = book.add([label])
            targets = plain(book.targets)
            assert before.items() <= targets.items()
            # LSH may give two of the first labels the same target, as in the paper.
            new = tuple(targets[label])
            assert label < first or new not in given or len(given) == 2**n_bits
            given.add(new)
            before = targets


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_bits", [4, 6])
@pytest.mark.parametrize("n", [0, 3, 16])
def test_adding_leaves_every_other_codebook_as_it_was(kind, n_bits, n):
    start = Codebook(n_bits, kind).add(list(range(n)))
    before = shown(start)
    first = start.add([100, 101])
    first_shown = shown(first)
    # A codebook from which others were added is added to once more, and forgets what failed.
    with pytest.raises(TypeError):
        start.add(["d", "e", []])
    second = start.add(["a", "b", "c"])
    first.add(list(range(200, 240)))
    assert shown(start) == before
    assert shown(first) == first_shown
    # The names differ, so the targets are the same, in the same order.
    targets = list(plain(second.targets).values())
    assert targets[: n + 2] == list(plain(first.targets).values())
    assert first.add([100, 101]) is first


@pytest.mark.parametrize("kind", KINDS)
def test_known_labels_set_the_order_and_have_targets_before_they_come(kind):
    X = np.ones((10, 2))
    y = np.array(list("abcdefghij"))
    known = HMOH(8, codebook=kind, random_state=0).partial_fit(X[:2], y[:2], classes=y)
    before = plain(known.targets_)
    assert list(before) == y.tolist()
    counted = HMOH(8, codebook=kind, n_classes=10, random_state=0).partial_fit(X, y)
    assert plain(counted.targets_) == before
    # Others may still come.
    known.partial_fit(X[:2], ["z", "y"]).partial_fit(X, y, classes=y[::-1])
    after = plain(known.targets_)
    assert list(after) == [*y.tolist(), "z", "y"]
    assert before.items() <= after.items()
    assert plain(counted.partial_fit(X[:2], ["z", "y"]).targets_) == after


# ---- several labels per sample -------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_bits, n_labels", [(8, 6), (16, 10), (64, 10)])
def test_multi_label_targets_keep_majorities_and_balance_by_their_ties(kind, n_bits, n_labels):
    X, Y = multi_stream(200, n_labels=n_labels)
    model = HMOH(n_bits, codebook=kind, random_state=0).fit(X, Y)
    assert list(model.targets_) == list(range(n_labels))
    sets = {tuple(np.flatnonzero(row).tolist()) for row in Y}
    assert set(model.label_set_targets_) == sets and len(sets) > 30
    for labels, target in model.label_set_targets_.items():
        assert target.dtype == np.int8
        assert naive.is_majority(target, [model.targets_[label] for label in labels])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_bits", [16, 20])
def test_the_target_of_a_single_label_is_the_label_s_own(n_bits, kind):
    sets = [(label,) for label in range(10)]
    book = Codebook(n_bits, kind, 10).add([*range(10), *sets])
    for label in range(10):
        assert_array_equal(book.targets[label,], book.targets[label])


def test_multi_label_targets_are_fused_and_then_aligned():
    sets = [(1, 4, 5), (0, 1, 2), (0, 2, 5), (0, 1, 2, 3, 4)]  # an odd number of labels never ties
    book = Codebook(5, "random", 6, 0).add([*range(6), *sets])
    H = naive.sylvester(8)
    for labels in sets:
        majority = naive.sign(H[:, [book.columns[label] for label in labels]].sum(axis=1))
        assert_array_equal(book.targets[labels], naive.sign(majority @ book._lsh))


@quick
@given(
    st.permutations(range(60)),
    st.sets(st.integers(1, 59), max_size=5),
    st.sampled_from([16, 12]),
)
def test_ties_are_drawn_once_per_set_whatever_the_order_of_arrival(order, cuts, n_bits):
    X, Y = multi_stream(n_labels=10)
    model = HMOH(n_bits, random_state=0).fit(X, Y)
    other = feed(HMOH(n_bits, random_state=0), X[order], Y[order], cuts)
    assert plain(other.label_set_targets_) == plain(model.label_set_targets_)


def test_ties_are_random():
    X, Y = multi_stream(n_labels=10)
    first, second = (
        HMOH(16, codebook="ordered", random_state=seed).fit(X, Y).label_set_targets_
        for seed in (0, 1)
    )
    assert plain(first) != plain(second)
    pairs = list(itertools.combinations(range(10), 2))
    targets = Codebook(64, "random", 10).add([*range(10), *pairs]).targets
    # The published code gives 36 of the 45 pairs the same target.
    assert len({targets[pair].tobytes() for pair in pairs}) == 45
