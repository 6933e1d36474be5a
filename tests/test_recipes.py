"""Recipes for data of your own: what they are, and how they are chosen."""

import inspect
import re

import beyond
import nbformat
import numpy as np
import pytest
from beyond import CANDIDATES, Recipe, choose, chosen_without
from helpers import ROOT

from hmoh import HMOH
from kernels import RBF, Concat, UnitLength
from ridge import HadamardRidge
from study.tables import features_text
from study.training import new_model
from tools import demo

K_MEANS = "RBF(30, 5, k-means, centred)"
FEATURES = {
    "unit rows": "unit rows (mean of 100)",
    "kernel": "unit rows, RBF(30, 10, centred)",
    "k-means kernel": f"unit rows, {K_MEANS}",
    "side by side": f"unit rows beside their {K_MEANS}",
}


def small(*names):
    return {name: beyond.recipes(20)[name] for name in names or CANDIDATES}


def sectors(n, seed=0):
    """Return points of two classes in four quadrants, which no line separates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_recipes_are_all_pairs_of_learners_and_features():
    found = beyond.recipes(30)
    assert len(found) == 12
    assert set(CANDIDATES) <= set(found)
    for name, recipe in found.items():
        assert name.startswith(recipe.method)
        model = recipe.model(n_bits=16, random_state=3)
        assert isinstance(model, {"HMOH": HMOH, "HadamardRidge": HadamardRidge}[recipe.method])
        assert (model.n_bits, model.random_state, model.codebook) == (16, 3, "spread")
        if recipe.method == "HadamardRidge":
            assert f" {model.ridge:g},".replace(" 0.", " .") in name
        # A name of features stands for one map.
        assert features_text(recipe.params["feature_map"]) == FEATURES[name.partition(", ")[2]]
        # The protocol makes the same model.
        same = new_model(recipe.method, "mnist", 16, 3, recipe.params)
        assert repr(same.get_params()["feature_map"]) == repr(model.feature_map)


def test_models_of_a_recipe_share_no_map():
    recipe = beyond.recipes(30)["HMOH, kernel"]
    first, second = (recipe.model() for _ in range(2))
    assert first.feature_map[1] is not second.feature_map[1]
    first.feature_map[1].n_anchors = 7
    assert recipe.model().feature_map[1].n_anchors == 30


def test_the_choice_is_the_kernel_where_no_line_separates():
    X, y = sectors(800)
    candidates = small("HMOH, unit rows", "HadamardRidge .001, side by side")
    scores = choose(X, y, candidates, n_bits=8)
    assert list(scores) == ["HadamardRidge .001, side by side", "HMOH, unit rows"]
    assert scores["HadamardRidge .001, side by side"] > 0.9
    assert scores["HMOH, unit rows"] < 0.7
    assert choose(X, y, candidates, n_bits=8) == scores


def test_a_choice_learns_from_no_query_and_from_half_of_the_others():
    X, y = sectors(200)
    X[:, 0] = np.arange(200)
    seen = {}

    class Spy(HMOH):
        def fit(self, X, y):
            seen["learned"] = set(X[:, 0].tolist())
            return super().fit(X, y)

        def transform(self, X):
            seen.setdefault("encoded", []).append(set(X[:, 0].tolist()))
            return super().transform(X)

    class SpyRecipe(Recipe):
        def model(self, n_bits, random_state, n_samples):
            assert n_samples == 90
            return Spy(n_bits, random_state=random_state)

    choose(X, y, {"spy": SpyRecipe("HMOH", {})}, n_bits=8)
    queries, database = seen["encoded"]
    assert (len(queries), len(database)) == (20, 180)
    assert not queries & database
    assert seen["learned"] <= database
    assert len(seen["learned"]) == 90


def test_lists_and_text_labels_are_taken():
    X, y = sectors(100)
    names = np.array(["odd", "even"])[y]
    scores = choose(X.tolist(), names.tolist(), small("HMOH, unit rows"), n_bits=8)
    assert scores == choose(X, y, small("HMOH, unit rows"), n_bits=8)


def test_columns_of_labels_are_taken():
    X, y = sectors(100)
    columns = np.eye(2, dtype=int)[y]
    some = small("HadamardRidge .03, side by side")
    scores = choose(X, columns, some, n_bits=8)
    assert scores == choose(X.tolist(), columns.tolist(), some, n_bits=8)
    assert scores == choose(X, columns.astype(bool), some, n_bits=8)


@pytest.mark.parametrize("n", [40, 300])
def test_fewer_samples_than_anchors_are_enough(n):
    """Go through the five lines of 14_beyond."""
    X, y = sectors(n)
    scores = choose(X, y, n_bits=8)
    assert set(scores) == set(CANDIDATES)
    best = beyond.recipes()[next(iter(scores))]
    with pytest.raises(ValueError, match=f"{n} samples are too few for 1000 anchors"):
        best.model(n_bits=8).fit(X, y)
    model = best.model(n_bits=8, n_samples=len(X)).fit(X, y)
    assert len(model.transform(X)) == n


def test_anchors_are_limited_in_all_kernels_of_a_recipe_and_nowhere_else():
    for name, recipe in beyond.recipes(30).items():
        before = repr(recipe)
        for n_samples, n_anchors in ((7, 7), (30, 30), (100, 30), (None, 30)):
            text = repr(recipe.model(n_samples=n_samples).feature_map)
            is_kernel = "unit rows" not in name
            assert text.count(f"n_anchors={n_anchors},") == is_kernel
            assert text.count("n_anchors") == is_kernel
        assert repr(recipe) == before
    alone = Recipe("HMOH", {"feature_map": RBF(30)})
    assert alone.model(n_samples=7).feature_map.n_anchors == 7
    assert Recipe("HMOH", {}).model(n_samples=7).feature_map is None
    with pytest.raises(ValueError, match="n_samples=1 "):
        alone.model(n_samples=1)


def test_a_label_that_occurs_once_is_no_obstacle():
    X, y = sectors(100)
    y[0] = 7
    # Among these draws it is a query, learned from, and only searched.
    rows = [np.random.default_rng(seed).permutation(100) for seed in range(30)]
    places = {np.searchsorted([10, 55], np.flatnonzero(r == 0)[0], "right") for r in rows}
    assert places == {0, 1, 2}
    for seed in range(30):
        [score] = choose(X, y, small("HMOH, unit rows"), 8, seed).values()
        assert 0 < score < 1


X0, Y0 = sectors(100)
WITH_NAN = X0.copy()
WITH_NAN[7, 1] = np.nan


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": X0[:39], "y": Y0[:39]}, ValueError, "39 samples are too few .* pass 40 or"),
        # The number of the row is that of the caller.
        ({"X": WITH_NAN}, ValueError, r"X\[7, 1\] is nan"),
        ({"y": Y0[:99]}, ValueError, r"y has shape \(99,\) for 100 samples"),
        ({"y": Y0 * 0}, ValueError, "all 100 samples have the label 0, .* two classes"),
        ({"y": np.ones((100, 2), int)}, ValueError, r"have the label \[1 1\], .* two classes"),
        ({"y": np.arange(100)}, ValueError, "none of the 10 queries has a relevant"),
        ({"candidates": CANDIDATES}, TypeError, "candidates=.* pass a dict"),
        ({"candidates": {}}, TypeError, "candidates={} are no recipes by name; pass a dict"),
        ({"random_state": -1}, ValueError, "random_state=-1 "),
    ],
)
def test_what_cannot_be_chosen_from_is_refused(change, error, message):
    given = {"X": X0, "y": Y0, "candidates": small("HMOH, unit rows"), "n_bits": 8}
    with pytest.raises(error, match=message):
        choose(**given | change)


def test_the_best_recipe_of_the_other_sets_is_chosen():
    scores = {}
    for label, of_a, of_b, of_c in [
        ("paper", 0.5, 0.5, 0.5),
        ("good on a", 0.9, 0.4, 0.5),
        ("good on b and c", 0.3, 0.6, 0.6),
    ]:
        for name, score in zip("abc", (of_a, of_b, of_c), strict=True):
            scores[name, label] = np.full((2, 3), score)
    chosen = {name: chosen_without(scores, name, "paper") for name in "abc"}
    assert chosen == {"a": "good on b and c", "b": "good on a", "c": "good on a"}
    # Scores of the set itself have no effect.
    scores["c", "good on a"] -= 10
    assert chosen_without(scores, "c", "paper") == "good on a"
    with pytest.raises(ValueError, match="there is no data set but a"):
        alone = {key: value for key, value in scores.items() if key[0] == "a"}
        chosen_without(alone, "a", "paper")
    with pytest.raises(ValueError, match="baseline='papers' has no scores; pass one of paper"):
        chosen_without(scores, "a", "papers")


def test_cases_are_matrices_of_lengths_and_seeds():
    runs = []
    for n_bits, row in {16: [0.9, 0.8], 8: [0.1, 0.3]}.items():
        for seed, value in enumerate(row):
            case = {"dataset": "mnist", "label": "LSH", "n_bits": n_bits, "seed": seed}
            runs.append(case | {"mAP": value})
    found = beyond.by_case(runs[::-1], "mAP")
    assert {case: matrix.tolist() for case, matrix in found.items()} == {
        ("mnist", "LSH"): [[0.1, 0.3], [0.9, 0.8]]
    }
    with pytest.raises(ValueError, match=r"no record with 'mAP' has .*'n_bits': 16"):
        beyond.by_case([*runs, runs[2] | {"label": "OSH"}], "mAP")


# ---- one recipe, one number ----------------------------------------------------------

LINES = r"^(?:>>> )?((?:centres|features|model) = .+)$"


def model_of(text):
    """Return the model that the lines of a text make."""
    lines = re.findall(LINES, text, re.MULTILINE)
    names = {"RBF": RBF, "UnitLength": UnitLength, "Concat": Concat, "N_ANCHORS": 1000}
    names["HadamardRidge"] = HadamardRidge
    exec("\n".join(lines), names)
    return names["model"]


def test_readme_demo_and_14_beyond_use_one_model_and_print_one_number():
    readme = (ROOT / "README.md").read_text()
    notebook = nbformat.read(ROOT / "notebooks" / "14_beyond.ipynb", as_version=4)
    (cell,) = [c for c in notebook.cells if c.cell_type == "code" and "centres = " in c.source]
    (snippet,) = [part for part in readme.split("```") if "centres = " in part]
    recipe = beyond.recipes()[CANDIDATES[0]].model(32)
    models = [model_of(snippet), model_of(cell.source), demo.our_model(), recipe]
    assert len({str(model) for model in models}) == 1
    # All take the split of seed 0; `test_recipes_of_the_readme_run` runs the snippet.
    sources = [snippet, cell.source, inspect.getsource(demo.main)]
    assert all(re.search(r"split\(\w+, seed=0\)", source) for source in sources)
    printed = [
        re.findall(r"^mAP (0\.\d{3})$", text, re.MULTILINE)[0]
        for text in (snippet, cell.outputs[0].text)
    ]
    assert printed[0] == printed[1]


def test_readme_and_14_beyond_quote_one_mean_of_ten_seeds():
    readme = (ROOT / "README.md").read_text()
    notebook = nbformat.read(ROOT / "notebooks" / "14_beyond.ipynb", as_version=4)
    outputs = [o for c in notebook.cells for o in c.get("outputs", [])]
    shown = [o.get("data", {}).get("text/plain", "") for o in outputs]
    (row,) = re.findall(r"^\| `HadamardRidge`, ours \|(.+)\|$", readme, re.MULTILINE)
    quoted = [cell.strip() for cell in row.split("|")]
    (lengths,) = [text for text in shown if text.startswith("mAP on MNIST by code length")]
    (line,) = [line for line in lengths.splitlines() if line.startswith(CANDIDATES[0])]
    n_seeds, *means = re.findall(r"(?<![±\d.])\d+(?:\.\d+)?", line.removeprefix(CANDIDATES[0]))
    assert n_seeds == "10" and means == quoted
    # The rivals' table of 4 bytes is of the same model.
    (table,) = [text for text in shown if text.startswith("Hamming only")]
    (line,) = re.findall(r"^HadamardRidge, side by side +4 +(0\.\d{3})", table, re.MULTILINE)
    assert line == quoted[2]
    assert line in notebook.cells[0].source
