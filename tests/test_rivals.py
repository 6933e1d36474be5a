"""What a practitioner would try first: its codes, its search by cosine, and its records."""

import beyond
import numpy as np
import pytest
from beyond import compare, cosine_search, fit_rivals, itq, recipes

from metrics import hamming_histogram, pack
from study import profile, protocol, training
from study.scores import mean_ap


def blobs(n=400, n_classes=4, d=40, several=False, seed=0):
    """Return well separated classes; with ``several`` labels some rows have two."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    Y = np.eye(n_classes, dtype=int)[y]
    if several:
        Y[: n // 4, 0] = 1
    X = Y @ (4 * np.eye(n_classes, d)) + rng.normal(size=(n, d))
    X = (X - X.mean(axis=0)).astype(np.float32)
    return (X, Y) if several else (X, y)


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several labels"])
@pytest.mark.parametrize("metric", ["mAP", "mAP@1000"])
def test_a_search_by_cosine_averages_over_ties_as_a_search_by_codes_does(metric, several):
    # The cosine of two codes as +-1 is 1 - 2 d / r, so ranks and ties are those of distances.
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], size=(2300, 8))
    _, y = blobs(2300, several=several)
    codes = pack(signs)
    pair = codes[:50], codes[50:]
    histogram = hamming_histogram(*pair, y[:50], y[50:])
    ap, precision = cosine_search(signs[:50], signs[50:], y[:50], y[50:], metric).T
    np.testing.assert_allclose(ap, mean_ap(histogram, metric, per_query=True), rtol=1e-12)
    np.testing.assert_allclose(precision, histogram.precision_at_k(100, per_query=True))


def test_blocks_of_queries_change_nothing(monkeypatch):
    X, y = blobs(300)
    whole = cosine_search(X[:20], X[20:], y[:20], y[20:])
    monkeypatch.setattr(beyond, "BLOCK_CELLS", 280 * 7)
    np.testing.assert_array_equal(cosine_search(X[:20], X[20:], y[:20], y[20:]), whole)


def test_items_of_one_class_and_a_vector_of_zeros_are_ties():
    Q = np.array([[1.0, 0.0]])
    D = np.array([[2.0, 0.0], [1.0, 1e-9], [0.0, 0.0], [0.0, 3.0]])
    # The first two tie, and so do the last two: one of each is relevant.
    ((value, precision),) = cosine_search(Q, D, np.array([1]), np.array([1, 0, 1, 0]))
    assert precision == pytest.approx(2 / 100)
    assert value == pytest.approx((0.5 * (1 + 1 / 2) + 0.5 * (2 / 3 + 2 / 4)) / 2)


def test_itq_rotates_and_comes_nearer_to_the_signs():
    rng = np.random.default_rng(1)
    V = rng.normal(size=(500, 6)) * [5, 3, 2, 1, 0.5, 0.2]
    V -= V.mean(axis=0)
    R = itq(V, seed=0)
    np.testing.assert_allclose(R @ R.T, np.eye(6), atol=1e-12)

    def loss(Z):
        return ((np.where(Z > 0, 1, -1) - Z) ** 2).sum()

    start = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    assert loss(V @ R) < min(loss(V), loss(V @ start))


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several labels"])
def test_every_method_finds_separated_classes_in_the_bytes_that_it_states(several):
    X, y = blobs(several=several)
    if several:
        y = np.insert(y, 2, 0, axis=1)  # a label that the stream never shows
    found = {}
    for name, n_bytes, seconds, encode in fit_rivals(X[:300], y[:300], seed=0):
        items = encode(X[300:])
        if name == "logistic, class":
            n_stored = 1
            assert (np.unpackbits(items, axis=1).sum(axis=1) == 1).all()
        elif name == "logistic, probabilities":
            n_stored = items.shape[1]
            assert items.min() >= 0 and items.max() <= 255 and (items == np.rint(items)).all()
        else:
            n_stored = items.shape[1] * (1 if items.dtype == np.uint8 else 4)
        assert n_bytes == n_stored and seconds >= 0, name
        if items.dtype == np.uint8:
            labels = y[300:350], y[350:]
            found[name] = hamming_histogram(items[:50], items[50:], *labels)
            found[name] = found[name].mean_average_precision()
        else:
            found[name] = cosine_search(items[:50], items[50:], y[300:350], y[350:])[:, 0].mean()
    unsupervised = {"LSH", "PCA, signs", "PCA, floats", "ITQ"}
    learned = [found[name] for name in found if name not in unsupervised]
    assert len(learned) == 6 and min(learned) > 0.75, found
    # A code that says nothing.
    blank = np.zeros((50, 4), np.uint8)
    chance = hamming_histogram(blank, blank, y[300:350], y[350:]).mean_average_precision()
    assert min(found[name] for name in unsupervised) > chance + 0.05, found


def test_records_are_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(protocol, "RECORDS", tmp_path)
    monkeypatch.setattr(profile, "QUICK", True)  # 1,500 rows of each part
    case = {"sets": ["reuters10"], "seeds": [3], "n_anchors": 30}
    first = compare(**case)
    assert len(first) == 10 + 5
    (a, b) = sorted(path.stat().st_mtime_ns for path in tmp_path.iterdir())
    assert compare(**case) == first
    assert [a, b] == sorted(path.stat().st_mtime_ns for path in tmp_path.iterdir())
    assert compare(**case | {"split": "unseen"}) != first
    assert len(list(tmp_path.iterdir())) == 4


def test_the_toolkits_learners_are_those_of_the_protocol(monkeypatch, tmp_path):
    monkeypatch.setattr(protocol, "RECORDS", tmp_path)
    monkeypatch.setattr(profile, "QUICK", False)
    job = {"dataset": "reuters10", "seed": 3, "features": "side by side", "split": "paper"}
    records = beyond._measured(**job, n_anchors=30)
    recipe = recipes(30)
    for name in ("HMOH, side by side", "HadamardRidge .001, side by side"):
        method, params = recipe[name]
        expected = training.run(method, "reuters10", 32, 3, params=params)
        (found,) = [record for record in records if record["method"] == method]
        assert found["mAP"] == expected["mAP"] and found["bytes"] == 4
