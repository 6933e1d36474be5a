"""Measures: samples of claims from records, paired by seed."""

import math

import numpy as np
import pytest
from claim_files import CHANGE, GAIN, ORDER, VALUE, entry, record, seeds

from baselines import PUBLISHED_FAULTS
from study import measures
from study.measures import Missing, from_records
from study.select import PAPER_METHODS


def gaps(measure, records, **more):
    """Return the gaps of an order with a single case."""
    (group,) = from_records(entry(measure, **more), records).values
    (found,) = group.values()
    return found


def values(measure, records, printed=0.5, **more):
    return from_records(entry(measure, printed, **more), records).values


# ---- samples -------------------------------------------------------------------------


# What claims of one value take from these records: other runs of the same method do not count.
OWN = seeds("HMOH", [0.5, 0.7, 0.9])[::-1]


OTHERS = seeds("OKH", [0.1] * 3) + seeds("HMOH", [0.1] * 2, params={"codebook": "ordered"})
OTHERS += seeds("HMOH", [0.3, 0.3], split="unseen") + seeds("HMOH", [0.2, 0.2], split="test")
OTHERS += seeds("HMOH", [0.4, 0.4], n_bits=64) + seeds("HMOH", [0.5, 0.5], role="cifar10")
OTHERS += seeds("HMOH", [0.6] * 2, n_bits=64, n_queries=50) + seeds("HMOH", [0.5, 0.6], "AUC mAP")
OTHERS += seeds("HMOH", [0.35, 0.3], "mAP@1000", role="places205", mAP=0.1)


@pytest.mark.parametrize(
    "change, role, expected",
    [
        ({}, "mnist", [0.5, 0.7, 0.9]),
        ({"split": "unseen"}, "mnist", [0.3, 0.3]),
        ({"bits": 64, "queries": 50}, "mnist", [0.6, 0.6]),
        ({"metric": "AUC mAP"}, "mnist", [0.5, 0.6]),
        ({}, "places205", [0.35, 0.3]),  # the one of the paper's table
    ],
)
def test_a_value_has_one_sample_for_each_seed_of_the_claims_runs(change, role, expected):
    assert values(VALUE | change, OTHERS + OWN, role=role).tolist() == expected


def test_differences_are_paired_by_seed():
    ours = np.linspace(0.5, 0.9, 10)
    noise = 0.01 * np.array([1, -1, 2, 0, 1, -2, 0, 1, 1, -1])
    records = seeds("HMOH", ours) + seeds("OKH", ours - 0.1 + noise)[::-1]
    records += seeds("MIHash", ours[:5] - 0.3)
    measure = ORDER | {"ranking": ["HMOH", ["OKH", "MIHash"]]}
    (group,) = from_records(entry(measure), records).values
    np.testing.assert_allclose(group["at 32 bits HMOH over OKH"], 0.1 - noise)
    # Seeds that one method lacks are missing.
    five = group["at 32 bits HMOH over MIHash"]
    np.testing.assert_allclose(five, [0.3] * 5 + [np.nan] * 5)
    records = [record("HMOH", seed=0, mAP=0.5), record("OKH", seed=1, mAP=0.4)]
    for spec in (entry(ORDER), entry(GAIN, 0.1)):
        with pytest.raises(Missing, match="no seed that all its records share"):
            from_records(spec, records)


def test_the_papers_data_are_preferred_to_a_stand_in():
    other = {"role": "cifar10", "dataset": "cifar10_vgg16", "stand_in_for": "cifar10"}
    records = seeds("HMOH", [0.1, 0.1], **other)
    spec = entry(VALUE, 0.5, role="cifar10")
    assert from_records(spec, records).data == "cifar10_vgg16"
    records += seeds("HMOH", [0.7, 0.7], role="cifar10")
    sample = from_records(spec, records)
    assert (sample.data, sample.values.tolist()) == ("cifar10", [0.7, 0.7])


def test_what_is_missing_is_named():
    for spec, words in [
        (entry(ORDER), "no record of OKH at 32 bits with 'mAP'"),
        (entry(VALUE | {"bits": 8}, 0.5), "no record of HMOH at 8 bits with 'mAP'"),
        (entry(VALUE | {"queries": 51}, 0.5), "no record of HMOH at 32 bits with 'mAP'"),
        (entry(VALUE | {"samples": 0.1}, 0.5), "HMOH at 32 bits with checkpoints"),
        (entry(VALUE, 0.5, role="nuswide"), "no records of nuswide"),
    ]:
        with pytest.raises(Missing, match=words):
            from_records(spec, seeds("HMOH", [0.5, 0.5]))


# ---- kinds of measurement ------------------------------------------------------------


def test_values_and_orders_can_be_those_after_a_share_of_the_stream():
    curve = {"samples": [10, 20, 40, 100], "stream": [None, 0.3, 0.6, 0.8]}
    records = [*seeds("HMOH", [0.8, 0.8], **curve), record("HMOH", seed=2, mAP=0.8)]
    assert values(VALUE | {"samples": 0.2}, records).tolist() == [0.3, 0.3]
    sample = from_records(entry(VALUE | {"samples": 0.1}, 0.5), records)
    assert np.isnan(sample.values).all()
    assert sample.why == "it cannot encode yet"
    records += seeds("OKH", [0.5, 0.5], **(curve | {"stream": [0.1, 0.2, 0.3, 0.5]}))
    found = gaps(ORDER | {"ranking": ["HMOH@0.4", "OKH@1"]}, records)
    np.testing.assert_allclose(found, [0.1, 0.1])


def test_a_gain_is_the_mean_over_lengths_over_the_best_at_each():
    records = seeds("HMOH", [0.6, 0.66], n_bits=8) + seeds("HMOH", [0.9] * 2, n_bits=16)
    records += seeds("MIHash", [0.5] * 2, n_bits=8) + seeds("BSODH", [0.4] * 2, n_bits=8)
    records += seeds("MIHash", [0.5] * 2, n_bits=16)
    # The best by its mean is the best for all seeds.
    records += seeds("BSODH", [0.4, 0.8], n_bits=16)
    found = values(GAIN | {"over": ["MIHash", "BSODH"], "bits": [8, 16]}, records)
    at_8 = np.array([0.6 / 0.5, 0.66 / 0.5]) - 1
    # The ratio of the means is 1.5. The seeds add (0.9 - 1.5 * 0.4) / 0.6 and its opposite.
    at_16 = np.array([1.5 + 0.5, 1.5 - 0.5]) - 1
    np.testing.assert_allclose(found, (at_8 + at_16) / 2)
    # A gain that all seeds share has no spread.
    theirs = np.array([0.2, 0.6, 0.4, 0.8])
    found = values(GAIN, seeds("HMOH", 1.25 * theirs) + seeds("OKH", theirs))
    np.testing.assert_allclose(found, 0.25)


def test_a_method_without_codes_of_a_length_is_left_out_there():
    records = []
    for n_bits in (16, 32):
        records += seeds("HMOH", [0.8] * 2, n_bits=n_bits)
        records += seeds("OKH", [0.5] * 2, n_bits=n_bits)
    records += seeds("SketchHash", [0.64] * 2, n_bits=16)
    order = ORDER | {"ranking": ["HMOH", ["OKH", "SketchHash"]], "bits": [16, 32]}
    groups = from_records(entry(order), records).values
    assert [[case.split()[-1] for case in group] for group in groups] == [
        ["OKH", "SketchHash"],
        ["OKH"],
    ]
    gain = GAIN | {"over": ["OKH", "SketchHash"], "bits": [16, 32]}
    mean = (0.8 / 0.64 + 0.8 / 0.5) / 2 - 1
    np.testing.assert_allclose(values(gain, records), [mean] * 2)
    change = CHANGE | {"method": ["HMOH", "SketchHash"]}
    groups = from_records(entry(change), records).values
    assert [len(group) for group in groups] == [1, 0]
    # A method that was not run at any length is missing, and so is the better one.
    for ranking in (["HMOH", "OSH"], ["SketchHash", "OKH"]):
        with pytest.raises(Missing, match="no record of"):
            from_records(entry(order | {"ranking": ranking}), records)


def test_all_others_are_the_methods_of_the_paper_that_are_not_named():
    records = seeds("LSH", [0.99, 0.99])
    for place, method in enumerate(PAPER_METHODS):
        records += seeds(method, [0.1 * place] * 2)
    found = values(GAIN | {"over": ["*"]}, records)
    np.testing.assert_allclose(found, [0.7 / 0.6 - 1] * 2)
    pairs = measures.order_cases(["HMOH", "HCOH", "*"])
    assert pairs == [("HMOH", "HCOH"), *[("HCOH", method) for method in PAPER_METHODS[:6]]]
    assert len(measures.order_cases([["HMOH", "HCOH@0.1"], "*"])) == 12


def test_the_shorter_time_is_better_and_times_are_compared_by_ratio():
    records = seeds("HMOH", [1.0, 2.0], "train_seconds")
    records += seeds("OKH", [2.0, 4.0], "train_seconds")
    found = gaps(ORDER | {"metric": "train_seconds"}, records)
    np.testing.assert_allclose(found, [math.log(2)] * 2)


def test_a_change_has_a_case_for_each_step_and_a_group_for_each_method():
    records = []
    for method, by_length in {"HMOH": [0.5, 0.6, 0.7], "OSH": [0.5, 0.4, 0.2]}.items():
        for n_bits, value in zip([8, 16, 32], by_length, strict=True):
            records += seeds(method, [value] * 2, n_bits=n_bits)
    measure = CHANGE | {"method": ["HMOH", "OSH"], "bits": [8, 16, 32]}
    rises = from_records(entry(measure), records).values
    np.testing.assert_allclose(rises[0]["HMOH rises from 16 to 32 bits"], [0.1] * 2)
    np.testing.assert_allclose(rises[1]["OSH rises from 16 to 32 bits"], [-0.2] * 2)
    falls = from_records(entry(measure | {"sign": -1}), records).values
    np.testing.assert_allclose(falls[1]["OSH falls from 8 to 16 bits"], [0.1] * 2)


# ---- as published --------------------------------------------------------------------


def test_published_records_replace_those_of_all_faulty_methods():
    records = seeds("HMOH", [0.4, 0.4]) + seeds("OKH", [0.5, 0.5]) + seeds("OSH", [0.5, 0.5])
    assert from_records(entry(ORDER), records).published is None
    records += seeds("HMOH", [0.9, 0.8], published=True)
    sample = from_records(entry(ORDER), records)
    np.testing.assert_allclose(*sample.values[0].values(), [-0.1, -0.1])
    np.testing.assert_allclose(*sample.published[0].values(), [0.4, 0.3])
    assert sample.faults == (f"HMOH: {PUBLISHED_FAULTS['HMOH']}",)
    # They are no measurement of the method as described, at another length neither.
    with pytest.raises(Missing, match="HMOH"):
        from_records(entry(ORDER), records[2:])
    elsewhere = seeds("HMOH", [0.9, 0.8], published=True, n_bits=64)
    assert from_records(entry(ORDER), records[:4] + elsewhere).published is None
    # HMOH as published is not compared with OSH as described.
    spec = entry(ORDER | {"ranking": ["HMOH", "OSH"]})
    assert from_records(spec, records).published is None
    records += seeds("OSH", [0.1, 0.1], published=True)
    sample = from_records(spec, records)
    np.testing.assert_allclose(*sample.published[0].values(), [0.8, 0.7])
    assert [fault.partition(":")[0] for fault in sample.faults] == ["HMOH", "OSH"]


def test_runs_without_a_published_reading_or_a_curve_have_no_published_sample():
    records = seeds("OKH", [0.5, 0.5]) + seeds("OKH", [0.9, 0.9], published=True)
    sample = from_records(entry(VALUE | {"method": "OKH"}, 0.5), records)
    assert (sample.published, sample.faults) == (None, ())
    curve = {"samples": [50, 100], "stream": [0.3, 0.5]}
    records = seeds("HMOH", [0.5, 0.5], **curve) + seeds("HMOH", [0.9, 0.9], published=True)
    sample = from_records(entry(VALUE | {"samples": 0.5}, 0.3), records)
    assert sample.values.tolist() == [0.3, 0.3]
    assert sample.published is None


def test_the_published_evaluation_is_a_change_of_the_measure():
    cast = {"mAP int8": 0.7}
    records = seeds("OKH", [0.8] * 2, **cast) + seeds("HMOH", [0.8] * 2, **cast)
    okh, hmoh = (
        entry(VALUE | {"method": method}, 0.7, published={"metric": "mAP int8"})
        for method in ("OKH", "HMOH")
    )
    sample = from_records(okh, records)
    assert (sample.values.tolist(), sample.published.tolist()) == ([0.8] * 2, [0.7] * 2)
    assert sample.faults == (measures.EVALUATION_FAULTS["mAP int8"],)
    assert from_records(okh, seeds("OKH", [0.8] * 2)).published is None
    # A fault of the method comes first.
    assert from_records(hmoh, records).published is None
    sample = from_records(hmoh, records + seeds("HMOH", [0.9] * 2, published=True, **cast))
    assert sample.published.tolist() == [0.7, 0.7]
    method, evaluation = sample.faults
    assert method.startswith("HMOH: ")
    assert evaluation == measures.EVALUATION_FAULTS["mAP int8"]


# ---- peaks and streams ---------------------------------------------------------------


def test_a_peak_is_compared_with_every_other_length_of_each_method():
    records = []
    for method, by_length in {"HMOH": [0.5, 0.7, 0.6], "OSH": [0.5, 0.4, 0.2]}.items():
        for n_bits, value in zip([64, 128, 256], by_length, strict=True):
            records += seeds(method, [value] * 2, n_bits=n_bits)
    measure = {"is": "peak", "metric": "mAP", "method": ["HMOH", "OSH"], "at": 128}
    hmoh, osh = from_records(entry(measure | {"bits": [64, 128, 256]}), records).values
    assert [*hmoh] == ["HMOH at 128 over 64 bits", "HMOH at 128 over 256 bits"]
    np.testing.assert_allclose([*hmoh.values()], [[0.2] * 2, [0.1] * 2])
    np.testing.assert_allclose([*osh.values()], [[-0.1] * 2, [0.2] * 2])


@pytest.mark.parametrize("sign", [1, -1])
def test_the_end_of_the_stream_is_compared_with_a_part_of_it(sign):
    curve = {"samples": [10, 50, 100], "stream": [0.2, 0.4, 0.7], "mAP": 0.7}
    records = [record("HMOH", seed=s, **curve) for s in range(2)]
    measure = {"is": "stream", "metric": "mAP", "method": "HMOH", "bits": [32], "from": 0.1}
    found = gaps(measure | {"sign": sign}, records)
    np.testing.assert_allclose(found, [sign * 0.5] * 2)
