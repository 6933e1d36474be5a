"""What a practitioner would try first: its codes, its search by floats, and its records."""

import faiss
import numpy as np
import pytest
import rivals
from beyond import recipes
from rivals import compare, fit_rivals, float_search, itq, quantiser

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
    ap, precision = float_search(signs[:50], signs[50:], y[:50], y[50:], metric).T
    np.testing.assert_allclose(ap, mean_ap(histogram, metric, per_query=True), rtol=1e-12)
    np.testing.assert_allclose(precision, histogram.precision_at_k(100, per_query=True))


def test_blocks_of_queries_change_nothing(monkeypatch):
    X, y = blobs(300)
    whole = float_search(X[:20], X[20:], y[:20], y[20:])
    monkeypatch.setattr(rivals, "BLOCK_CELLS", 280 * 7)
    np.testing.assert_array_equal(float_search(X[:20], X[20:], y[:20], y[20:]), whole)


def test_items_of_one_class_and_a_vector_of_zeros_are_ties():
    Q = np.array([[1.0, 0.0]])
    D = np.array([[2.0, 0.0], [1.0, 1e-9], [0.0, 0.0], [0.0, 3.0]])
    # The first two tie, and so do the last two: one of each is relevant.
    ((value, precision),) = float_search(Q, D, np.array([1]), np.array([1, 0, 1, 0]))
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


@pytest.mark.parametrize("n_bytes", [1, 4])
def test_decoded_items_are_found_as_an_index_of_faiss_finds_them(n_bytes):
    X, _ = blobs(600, d=10)
    to_query, to_item = quantiser(X, n_bytes)
    Q, items = to_query(X[:20]), to_item(X)
    # Ten columns are not divisible by four: zeros fill up the last part.
    assert Q.shape == (20, 12 if n_bytes == 4 else 10) and items.shape == (600, Q.shape[1])
    np.testing.assert_allclose(np.linalg.norm(Q, axis=1), 1, rtol=1e-5)
    index = faiss.IndexPQ(Q.shape[1], n_bytes, 8)
    index.pq.cp.min_points_per_centroid = 1
    index.train(to_query(X))
    index.add(to_query(X))
    distances, rows = index.search(Q, 600)
    expected = np.take_along_axis(((Q[:, None] - items) ** 2).sum(axis=2), rows, axis=1)
    np.testing.assert_allclose(distances, expected, atol=1e-5)
    # Each item alone is relevant to a query: its precision is 1 / its rank, ties averaged.
    labels = np.arange(600)
    found = float_search(Q[:1], items, labels[:1], labels, decoded=True)[0, 0]
    first = expected[0][rows[0] == 0]
    close, tied = expected[0] < first - 4e-6, abs(expected[0] - first) < 4e-6
    ranks = np.arange(close.sum() + 1, close.sum() + tied.sum() + 1)
    assert found == pytest.approx((1 / ranks).mean(), rel=1e-9)


def test_opq_rotates_and_loses_less():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 16)) * np.repeat([1, 0.1], [4, 12])  # one part has it all
    losses = []
    for rotate in (False, True):
        to_query, to_item = quantiser(X.astype(np.float32), 4, rotate)
        losses.append(((to_query(X) - to_item(X)) ** 2).sum())
    assert losses[1] < losses[0]


def stored_bytes(rival, seen, items):
    """Return a query's side and what the database knows of items, and the bytes that it keeps."""
    if rival.n_bytes is None:
        to_query, to_item = quantiser(rival.encode(seen), 4)
        return to_query(rival.encode(items)), to_item(rival.encode(items)), 4
    queries = rival.encode(items)
    kept = queries if rival.store is None else rival.store(items)
    if rival.store:
        assert set(np.unique(kept)) <= {-1.0, 1.0}
        return queries, kept, kept.shape[1] // 8
    if rival.method == "logistic, class":
        assert (np.unpackbits(kept, axis=1).sum(axis=1) == 1).all()
        return queries, kept, 1
    if rival.method == "logistic, probabilities":
        assert kept.min() >= 0 and kept.max() <= 255 and (kept == np.rint(kept)).all()
        return queries, kept, kept.shape[1]
    return queries, kept, kept.shape[1] * (1 if kept.dtype == np.uint8 else 4)


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several labels"])
def test_every_method_finds_separated_classes_in_the_bytes_that_it_states(several):
    X, y = blobs(several=several)
    if several:
        y = np.insert(y, 2, 0, axis=1)  # a label that the stream never shows
    found = {}
    cases = [("unit rows", (4,), True), ("unit rows", (4,), False)]
    for case in [*cases, ("side by side", (1, 4), True)]:
        for rival in fit_rivals(X[:300], y[:300], 0, *case):
            queries, items, n_stored = stored_bytes(rival, X[:300], X[300:])
            assert rival.n_bytes in (None, n_stored) and rival.seconds >= 0, rival.method
            labels = y[300:350], y[350:]
            if items.dtype == np.uint8:
                histogram = hamming_histogram(queries[:50], items[50:], *labels)
                value = histogram.mean_average_precision()
            else:
                decoded = rival.n_bytes is None
                value = float_search(queries[:50], items[50:], *labels, decoded=decoded)
                value = value[:, 0].mean()
            found[rival.method, n_stored] = value
    unsupervised = {"LSH", "PCA, signs", "PCA, floats", "ITQ", "rows"}
    learned = [value for (method, _), value in found.items() if method not in unsupervised]
    assert len(learned) == 13 and min(learned) > 0.7, found
    # A code that says nothing.
    blank = np.zeros((50, 4), np.uint8)
    chance = hamming_histogram(blank, blank, y[300:350], y[350:]).mean_average_precision()
    assert min(found[case] for case in found if case[0] in unsupervised) > chance + 0.05, found


def test_records_are_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(protocol, "RECORDS", tmp_path)
    monkeypatch.setattr(profile, "QUICK", True)  # 1,500 rows of each part
    case = {"sets": ["reuters10"], "seeds": [3], "n_anchors": 30}
    first = compare(**case)
    (a, b) = sorted(path.stat().st_mtime_ns for path in tmp_path.iterdir())
    assert compare(**case) == first
    assert [a, b] == sorted(path.stat().st_mtime_ns for path in tmp_path.iterdir())
    assert compare(**case | {"split": "unseen"}) != first
    assert len(list(tmp_path.iterdir())) == 4
    several = compare(**case, sizes=[1, 4])
    assert {record["bytes"] for record in several} == {1, 4, 10, 128}
    # What one size finds, several find too, and beside it a database without streamed items.
    shared = [
        record for record in several if record["bytes"] == 4 and "OPQ" not in record["method"]
    ]
    again = {record["label"]: record["mAP"] for record in first if record["bytes"] == 4}
    again["LDA + PQ, side by side"] = pytest.approx(0.9, abs=0.1)
    assert {record["label"]: record["mAP"] for record in shared} == again
    assert all(0 < record["mAP, fresh"] < 1 for record in shared)
    assert not any("mAP, fresh" in record for record in first)


def test_the_toolkits_learners_are_those_of_the_protocol(monkeypatch, tmp_path):
    monkeypatch.setattr(protocol, "RECORDS", tmp_path)
    monkeypatch.setattr(profile, "QUICK", False)
    job = {"dataset": "reuters10", "seed": 3, "features": "side by side", "split": "paper"}
    records = rivals._measured(**job, n_anchors=30, sizes=(4, 8))
    recipe = recipes(30)
    cases = [("HMOH, side by side", 4), ("HadamardRidge .001, side by side", 4)]
    for name, n_bytes in [*cases, ("HadamardRidge .001, side by side", 8)]:
        method, params = recipe[name]
        expected = training.run(method, "reuters10", 8 * n_bytes, 3, params=params)
        found = [r for r in records if (r["method"], r["bytes"]) == (method, n_bytes)]
        assert [record["mAP"] for record in found] == [expected["mAP"]]
