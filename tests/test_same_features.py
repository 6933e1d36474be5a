"""Pairs of methods on the same features: whose features, which seeds, and what is chosen."""

import pytest
import same_features
from made_up_runs import record

from study.keep import plain
from study.profile import SEEDS

USED = []


def made_up(jobs):
    """Return a record for each job, as the model of the job would have it."""
    found = []
    for job in jobs:
        params = job["params"]
        step = params.get("learning_rate", 1.0)
        settings = {"feature_map": plain(params["feature_map"]), "learning_rate": step}
        # MIHash likes a step of 3, and HMOH is better by 0.01 with every seed.
        value = 0.5 - 0.01 * abs(step - 3) + 0.001 * job["seed"]
        if job["method"] != "MIHash":
            value = 0.49 + 0.001 * job["seed"]
        case = {name: job[name] for name in ("method", "n_bits", "seed")}
        label = job.get("label", job["method"])
        found.append(record(**case, settings=settings, label=label, mAP=value))
        USED.append((job["method"], job["seed"], step))
    return found


@pytest.fixture(autouse=True)
def no_runs(monkeypatch):
    monkeypatch.setattr(same_features, "run_all", made_up)
    USED.clear()


def test_a_pair_is_named_by_the_features_that_its_models_had():
    first, *others = same_features.unseen([64])
    labels = [[runs[0]["label"] for runs in pair] for pair in (first, *others)]
    assert labels == [
        ["HMOH on RBF(300, 6)", "LSH on unit rows"],  # the protocol's own
        ["HMOH on RBF(300, 6)", "LSH on RBF(300, 6)"],
        ["HMOH on unit rows", "LSH on unit rows"],
    ]
    row = same_features.pair_row(*others[0], "mAP", 64)
    assert row[4].startswith("+0.000") and row[5] == f"0 of {len(SEEDS)}"


def test_what_is_compared_was_chosen_on_other_seeds():
    feature_map, step, _ = same_features.chosen("unit rows")
    assert (feature_map, step) == (same_features.UNIT_ROWS, 3.0)
    assert {seed for _, seed, _ in USED} == set(same_features.OTHER_SEEDS)
    assert not set(same_features.OTHER_SEEDS) & set(SEEDS)
    assert not set(same_features.OTHER_SEEDS) & set(range(20))  # seeds 10 to 19 are run once


def test_mihash_has_the_papers_step_and_the_chosen_one():
    rows = same_features.mihash().rows
    assert rows[0][:4] == ["protocol's own pair", "1", "HMOH on RBF(300, 6)", "MIHash on unit rows"]
    for what, step, ours, theirs, *_ in rows[1:-1]:
        assert ours.removeprefix("HMOH") == theirs.removeprefix("MIHash")
        assert step != "1" or what == "same features"
    assert "MIHash's bandwidth and step chosen" in rows[-2][0]
