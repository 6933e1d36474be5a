"""What the four notebooks on the benchmarks share: tables, choices of records, measures by hand."""

import benchmark
import numpy as np
import pytest
from made_up_runs import as_published, grid, record

from study import claims
from study.datasets import load


@pytest.fixture(autouse=True)
def lengths(monkeypatch):
    monkeypatch.setattr(benchmark, "BITS", [8, 32])
    monkeypatch.setattr(benchmark, "SEEDS", [0, 1])


def runs(values, n_bits=8, metric="mAP", **more):
    """Return records of {method: values over seeds}."""
    found = []
    for method, row in values.items():
        for seed, value in enumerate(row):
            found.append(record(method, n_bits=n_bits, seed=seed, **{metric: value}, **more))
    return found


# ---- tables --------------------------------------------------------------------------


def test_the_lead_is_the_difference_to_the_best_other_method():
    shorter = {"HMOH": [0.6, 0.6], "LSH": [0.1, 0.1], "OSH": [0.2, 0.4]}
    longer = {"HMOH": [0.5, 0.7], "LSH": [0.8, 0.6], "OSH": [0.1, 0.1]}
    made = benchmark.lead(runs(longer, 16) + runs(shorter), "mAP")
    assert made.head[:2] == ["bits", "HMOH"]
    assert made.rows == [
        ["8", "0.600", "OSH", "0.300", "+0.300 [-0.971, +1.571]"],
        ["16", "0.600", "LSH", "0.700", "-0.100 [-2.641, +2.441]"],
    ]
    assert made.title.startswith("mAP on MNIST; mean of 2 seeds")


def curves(values):
    """Return records of {method: curves over seeds}."""
    return runs(values, metric="stream", samples=[1000, 2000, 10_000], n_stream=10_000)


def test_the_early_table_says_when_a_method_has_hmohs_early_value():
    made = benchmark.early(
        curves(
            {
                "LSH": [[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]],
                "HCOH": [[None, 0.4, 0.6], [None, 0.4, 0.7]],
                "HMOH": [[None, 0.5, 0.8], [0.5, 0.6, 0.8]],
            }
        ),
        8,
    )
    # HMOH can encode with both seeds after 20 % of the stream.
    assert made.head[1:] == ["after 20%", "at the end", "has HMOH's value after 20% at"]
    assert made.rows == [
        ["LSH", "0.200", "0.300", "never"],
        ["HCOH", "0.400", "0.650", "100%"],
        ["HMOH", "0.550", "0.800", "20%"],
    ]
    assert made.title == "mAP on MNIST, 8 bits, stream of 10,000; mean of 2 seeds"


def test_curves_need_checkpoints():
    with pytest.raises(ValueError, match=r"no checkpoints; pass checkpoints=True"):
        benchmark.early([{"method": "HMOH"}], 8)


def test_the_step_between_two_lengths_has_both_readings():
    shorter = {method: [0.5, 0.6] for method in benchmark.BEST}
    longer = {m: [0.5 + 0.1 * i, 0.6 + 0.1 * i] for i, m in enumerate(benchmark.BEST)}
    as_described = runs(shorter) + runs(longer, 32)
    published = [run | {"published": True} for run in as_described if run["method"] == "HMOH"]
    rows = benchmark.step(as_described, published, "mAP").rows
    assert [row[0] for row in rows] == list(benchmark.BEST)
    assert rows[0][1].startswith("+0.000 [") and rows[0][2] == "the same"
    assert rows[-1][1].startswith("+0.300 [") and rows[-1][2] == rows[-1][1]


def test_a_method_that_is_still_untrained_is_told():
    found = runs({method: [0.6, 0.7] for method in ("LSH", *benchmark.BEST)})
    for run in found:
        learned = 0.2 if run["method"] == "HMOH" else 0.0
        curve = [None if run["method"] == "HMOH" else 0.1, 0.3 + learned]
        run |= {"samples": [10, 20], "n_stream": 100, "stream": curve}
    made = benchmark.untrained(found, 8)
    assert made.head[1] == "after 20%"
    assert made.rows[0] == ["MIHash", "0.300", "exactly the same"]
    assert made.rows[-1][:2] == ["HMOH", "0.500"] and made.rows[-1][2].startswith("+0.200")


def test_cells_of_a_stand_in_are_counted_and_not_shown(capsys):
    data = load("udhr205")
    found = benchmark.cells(data, grid(datasets=["udhr205"]))
    assert f"the {len(found)} cells of Table 3 are not testable" in capsys.readouterr().out


# ---- records and measures ------------------------------------------------------------


def test_the_seeds_are_said_for_all_or_for_each_kind(capsys):
    described = grid(["HMOH", "MIHash"])
    benchmark.describe_runs(described)
    assert "seeds [0, 1] for every method" in capsys.readouterr().out
    fewer = [run for run in described if (run["method"], run["seed"]) != ("MIHash", 1)]
    benchmark.describe_runs(fewer)
    assert "2 seeds; MIHash has 1 of them, the curves have 2" in capsys.readouterr().out


def test_published_runs_replace_their_methods_or_stand_beside_them():
    described = grid(["LSH", "HCOH", "HMOH"], bits=[8], seeds=[0])
    published = as_published(described[1:])
    labels = [run["label"] for run in benchmark.as_published(described, published)]
    assert labels == ["LSH", "HCOH, as published", "HMOH, as published"]
    labels = [run["label"] for run in benchmark.both_readings(described, published)]
    assert labels == ["HCOH", "HCOH, as published", "HMOH", "HMOH, as published"]


def test_a_sample_has_both_readings_seed_by_seed():
    described = runs({"HCOH": [0.2, 0.4], "HMOH": [0.4, 0.4]})
    described += runs({"HCOH": [0.5, 0.5], "HMOH": [0.5, 0.5]}, 32)
    published = [run | {"mAP": 0.5, "published": True} for run in described]
    found = benchmark.sample(benchmark.gain_at_low_bits, described, published, "mAP")
    assert isinstance(found, claims.Sample) and found.data == "mnist"
    np.testing.assert_allclose(found.values, [1.0, 0.0])
    np.testing.assert_allclose(found.published, [0.0, 0.0])
    gap = benchmark.advantage(described[:3], "mAP", 8)
    np.testing.assert_array_equal(gap, [0.2, np.nan])


def test_checkpoints_before_a_method_can_encode_are_counted():
    assert benchmark.too_early(grid(["LSH", "HCOH"])) == {"HCOH": 1}
