"""Check that the peers of the benchmark do the same work as the code they are compared with."""

import numpy as np
import pytest

from hmoh import HMOH
from kernels import RBF, UnitLength
from metrics import mean_average_precision, nearest_by_value
from tools import bench


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=300)
    centres = rng.normal(size=(4, 12))
    Z = centres[y] + rng.normal(size=(300, 12))
    return Z.astype(np.float32), y


def test_the_perceptrons_of_numpy_and_scikit_learn_learn_the_weights_of_hmoh(samples):
    Z, y = samples
    model = HMOH(8, random_state=0).fit(Z, y)
    C = np.stack([model.targets_[label] for label in y.tolist()])
    np.testing.assert_allclose(bench.numpy_perceptron(Z, C), model.weights_, rtol=1e-4)
    # At W = 0 scikit-learn always updates, but HMOH does not where the target is -1. A bit that
    # is equal for all classes cannot be given to scikit-learn.
    comparable = (C[0] == 1) & (C.min(axis=0) == -1)
    assert comparable.sum() >= 2
    weights = bench.sklearn_perceptron(Z, C[:, comparable])
    np.testing.assert_allclose(weights, model.weights_[:, comparable], rtol=1e-4)


def test_numpy_learns_and_encodes_one_sample_as_hmoh_does(samples):
    Z, y = samples
    model = HMOH(8, random_state=0)
    W = np.zeros((12, 8), np.float32)
    total = np.zeros_like(W)
    for i in range(len(Z)):
        model.partial_fit(Z[i : i + 1], y[i : i + 1], classes=None if i else range(4))
        bench.numpy_update(Z[i], model.targets_[int(y[i])], W, total)
    np.testing.assert_allclose(total / len(Z), model.weights_, rtol=1e-4)
    codes = [bench.numpy_codes(z, model.weights_) for z in Z]
    np.testing.assert_array_equal(codes, model.transform(Z))


def test_the_features_of_numpy_are_those_of_the_maps(samples):
    Z, _ = samples
    unit = UnitLength().fit(Z)
    rbf = RBF(20).fit(unit.transform(Z))
    expected = rbf.transform(unit.transform(Z))
    found = [bench.numpy_features(z, [unit, rbf]) for z in Z]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_the_numpy_loop_gives_the_exact_map_where_no_items_tie():
    rng = np.random.default_rng(0)
    # Item k differs from the query in its first k bits, so all distances are different.
    signs = np.ones((65, 64), np.float32)
    for k in range(65):
        signs[k, :k] = -1
    codes = np.packbits(signs > 0, axis=1, bitorder="little")
    np.testing.assert_array_equal(bench.as_signs(codes), signs)
    labels = rng.integers(3, size=65)
    query = slice(1)
    loop = bench.numpy_map(signs[query], signs, labels[query], labels)
    exact = mean_average_precision(codes[query], codes, labels[query], labels)
    assert loop == pytest.approx(exact)


def test_the_product_over_tiles_finds_what_float_queries_find():
    rng = np.random.default_rng(0)
    codes = rng.integers(256, size=(5000, 4), dtype=np.uint8)
    values = rng.normal(size=(6, 32)).astype(np.float32)
    scores, rows = bench.product_search(values, codes, 20)
    expected = nearest_by_value(values, codes, 20)
    np.testing.assert_allclose(scores, expected[0], rtol=1e-5)
    assert (rows == expected[1]).mean() > 0.95


def test_the_shortest_time_of_each_call_counts(monkeypatch):
    monkeypatch.setattr(bench.time, "sleep", lambda seconds: None)
    durations = iter([5, 3, 4, 8, 7, 9, 6, 2, 6, 7, 7, 8])
    monkeypatch.setattr(bench, "duration", lambda call: next(durations))
    assert bench.shortest(lambda: None, lambda: None, turns=2) == [2, 7]
