"""Recipes for data of your own: what they are, and how they are chosen."""

import numpy as np
import pytest

from baselines import HadamardRidge
from hmoh import HMOH
from study import recipes
from study.protocol import new_model
from study.recipes import CANDIDATES, Recipe, choose, chosen_without


def small(*names):
    return {name: recipes.recipes(20)[name] for name in names or CANDIDATES}


def sectors(n, seed=0):
    """Return points of two classes in four quadrants, which no line separates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_recipes_are_all_pairs_of_learners_and_features():
    found = recipes.recipes(30)
    assert len(found) == 12
    assert set(CANDIDATES) <= set(found)
    for name, recipe in found.items():
        assert name.startswith(recipe.method)
        model = recipe.model(n_bits=16, random_state=3)
        assert isinstance(
            model, {"HMOH": HMOH, "HadamardRidge": HadamardRidge}[recipe.method]
        )
        assert (model.n_bits, model.random_state, model.codebook) == (16, 3, "spread")
        if recipe.method == "HadamardRidge":
            assert f" {model.ridge:g},".replace(" 0.", " .") in name
        # The protocol makes the same model.
        same = new_model(recipe.method, "mnist", 16, 3, recipe.params)
        assert repr(same.get_params()["feature_map"]) == repr(model.feature_map)


def test_models_of_a_recipe_share_no_map():
    recipe = recipes.recipes(30)["HMOH, kernel"]
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
        def model(self, n_bits, random_state):
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


@pytest.mark.parametrize(
    ("n", "n_labels", "message"),
    [
        (100, 99, "X has 100 rows and y has 99; pass a label for each row"),
        (39, 39, "39 samples are too few to hold some out; pass 40 or more"),
    ],
)
def test_samples_that_cannot_be_held_out_are_refused(n, n_labels, message):
    with pytest.raises(ValueError, match=message):
        choose(np.zeros((n, 2)), np.zeros(n_labels, int))


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
