"""Selection from records: values per seed in order, the best other method, matrices."""

import numpy as np
import pytest

from study import selection


def runs(values, metric="mAP", role="mnist", **more):
    """Return records of {(method, n_bits): values over seeds}."""
    records = []
    for (method, n_bits), row in values.items():
        for seed, value in enumerate(row):
            case = {"method": method, "label": method, "n_bits": n_bits, "seed": seed}
            records.append({"role": role, metric: value} | case | more)
    return records


RECORDS = runs(
    {
        ("LSH", 8): [0.1, 0.3],
        ("HMOH", 8): [0.6, 0.8],
        ("HCOH", 8): [0.4, 0.6],
        ("LSH", 16): [0.9, 0.9],
        ("HMOH", 16): [0.7, 0.7],
        ("HCOH", 16): [0.5, 0.5],
    }
)


def test_there_is_one_value_per_seed_in_order_of_seeds():
    found = selection.values(RECORDS[::-1], "mAP", method="HMOH", n_bits=8)
    assert found.tolist() == [0.6, 0.8]
    by_label = selection.values(iter(RECORDS), "mAP", label="LSH", n_bits=16)
    assert by_label.tolist() == [0.9, 0.9]


def test_the_headline_metric_is_that_of_the_role():
    places = {"mAP@1000": 0.2, "role": "places205"}
    records = runs({("HMOH", 8): [0.5]}) + runs({("HMOH", 16): [0.4]}, **places)
    assert selection.values(records, "headline", n_bits=8) == 0.5
    assert selection.values(records, "headline", n_bits=16) == 0.2
    found = selection.summary(records, "headline")
    assert {key: mean for key, (mean, _) in found.items()} == {
        ("HMOH", 8): 0.5,
        ("HMOH", 16): 0.2,
    }


def test_curves_are_a_row_for_each_seed_with_nan_where_nothing_is_known():
    records = runs({("HMOH", 8): [[None, 0.5], [0.25, 0.75]]}, "stream")
    found = selection.values(records, "stream", n_bits=8)
    np.testing.assert_array_equal(found, [[np.nan, 0.5], [0.25, 0.75]])


def test_values_need_one_record_for_each_seed():
    with pytest.raises(ValueError, match=r"two records .* have seed 0; pass more fields"):
        selection.values(RECORDS, "mAP", method="HMOH")
    with pytest.raises(ValueError, match=r"no record with 'mAP' has .*'OSH'.*; pass fields"):
        selection.values(RECORDS, "mAP", method="OSH")
    with pytest.raises(ValueError, match=r"no record with 'mAP' has .*'colour'.*; pass fields"):
        selection.values(RECORDS, "mAP", colour="red")


def test_records_without_the_metric_are_left_out():
    curves = [RECORDS[2] | {"AUC mAP": 0.4}, *RECORDS]
    found = selection.values(curves, "AUC mAP", method="HMOH", n_bits=8)
    assert found.tolist() == [0.4]
    assert list(selection.summary(curves, "AUC mAP")) == [("HMOH", 8)]
    with pytest.raises(ValueError, match=r"no record with 'AUC mAP' has .*'LSH'"):
        selection.values(curves, "AUC mAP", method="LSH", n_bits=8)


def test_differences_are_paired_by_seed():
    records = runs({("HMOH", 8): [0.5, 0.7, 0.9], ("HCOH", 8): [0.4, 0.5]})[::-1]
    ours = {"method": "HMOH"}
    theirs = {"method": "HCOH"}
    found = selection.differences(iter(records), "mAP", ours, theirs)
    np.testing.assert_allclose(found, [0.1, 0.2])
    first = runs({("HMOH", 8): [0.5]})
    apart = [*first, first[0] | {"method": "HCOH", "seed": 1}]
    with pytest.raises(ValueError, match=r"share no seed; run both with the same"):
        selection.differences(apart, "mAP", ours, theirs)


def test_the_best_rival_has_the_best_mean_of_the_others():
    assert selection.best_rival(RECORDS, "mAP", 8) == "HCOH"
    assert selection.best_rival(RECORDS, "mAP", 16) == "LSH"
    assert selection.best_rival(RECORDS, "mAP", 16, ["HCOH", "HMOH"]) == "HCOH"
    assert selection.best_rival(RECORDS, "mAP", 16, to="LSH") == "HMOH"
    with pytest.raises(ValueError, match=r"no method but HMOH; add records"):
        selection.best_rival(RECORDS, "mAP", 8, ["HMOH"])


def test_a_rival_without_codes_of_this_length_is_left_out():
    records = RECORDS + runs({("SketchHash", 8): [0.65, 0.65]})
    assert selection.best_rival(records, "mAP", 8) == "SketchHash"
    assert selection.best_rival(records, "mAP", 16) == "LSH"
    among = ["SketchHash", "HCOH"]
    assert selection.best_rival(records, "mAP", 16, among) == "HCOH"
    with pytest.raises(ValueError, match=r"no method but HMOH; add records"):
        selection.best_rival(records, "mAP", 16, ["SketchHash"])


def test_the_least_time_is_the_best():
    seconds = {("HMOH", 8): [1], ("LSH", 8): [0.1], ("OSH", 8): [9]}
    records = runs(seconds, "train_seconds")
    assert selection.best_rival(records, "train_seconds", 8) == "LSH"


def test_a_summary_has_mean_and_deviation_by_label_and_column():
    found = selection.summary(RECORDS, "mAP")
    assert found["HMOH", 8] == pytest.approx((0.7, 0.02**0.5))
    assert list(found)[:3] == [("LSH", 8), ("HMOH", 8), ("HCOH", 8)]
    renamed = [record | {"label": "ours"} for record in RECORDS[2:3]]
    mean, deviation = selection.summary(renamed, "mAP", "role")["ours", "mnist"]
    assert mean == 0.6
    assert np.isnan(deviation)


def test_cases_are_matrices_of_lengths_and_seeds():
    found = selection.by_case(RECORDS[::-1], "mAP")
    assert set(found) == {("mnist", "LSH"), ("mnist", "HMOH"), ("mnist", "HCOH")}
    np.testing.assert_array_equal(found["mnist", "LSH"], [[0.1, 0.3], [0.9, 0.9]])
    by_label = selection.by_case(RECORDS, "headline", case=("label",))
    np.testing.assert_array_equal(by_label[("HCOH",)], [[0.4, 0.6], [0.5, 0.5]])
    with pytest.raises(ValueError, match=r"no record with 'mAP' has .*'n_bits': 16"):
        selection.by_case(RECORDS[:-2], "mAP")
