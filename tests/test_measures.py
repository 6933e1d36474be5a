"""Measures: samples of claims from records, paired by seed, and what the paper's tables say."""

import json
import math

import numpy as np
import pytest
from claim_files import BITS, CHANGE, GAIN, ORDER, VALUE, entry, record, seeds

from baselines import PUBLISHED_FAULTS
from study import claims, measures
from study.measures import PAPER_METHODS, Missing, agrees, from_records

ALL = claims.specs()
TABLES = json.loads(claims.PRINTED.read_text())


def gaps(measure, records, **more):
    """Return the gaps of an order with a single case."""
    (group,) = from_records(entry(measure, **more), records).values
    (found,) = group.values()
    return found


def values(measure, records, printed=0.5, **more):
    return from_records(entry(measure, printed, **more), records).values


# ---- samples -------------------------------------------------------------------------


def test_a_value_has_one_sample_for_each_seed_in_order():
    records = seeds("HMOH", [0.5, 0.7, 0.9])[::-1] + seeds("OKH", [0.1] * 3)
    assert values(VALUE, records).tolist() == [0.5, 0.7, 0.9]


def test_differences_are_paired_by_seed():
    ours = np.linspace(0.5, 0.9, 10)
    noise = 0.01 * np.array([1, -1, 2, 0, 1, -2, 0, 1, 1, -1])
    records = seeds("HMOH", ours) + seeds("OKH", ours - 0.1 + noise)[::-1]
    np.testing.assert_allclose(gaps(ORDER, records), 0.1 - noise)


def test_a_method_with_five_of_ten_seeds_is_compared_on_those():
    records = seeds("HMOH", np.arange(10) / 10)
    records += seeds("OKH", np.zeros(10)) + seeds("MIHash", np.full(5, 0.05))
    measure = ORDER | {"ranking": ["HMOH", ["OKH", "MIHash"]]}
    (group,) = from_records(entry(measure), records).values
    np.testing.assert_allclose(group["at 32 bits HMOH over OKH"], np.arange(10) / 10)
    five = group["at 32 bits HMOH over MIHash"]
    np.testing.assert_allclose(five, [-0.05, 0.05, 0.15, 0.25, 0.35] + [np.nan] * 5)


def test_seeds_that_are_not_shared_do_not_count():
    records = [record("HMOH", seed=0, mAP=0.5), record("OKH", seed=1, mAP=0.4)]
    for spec in (entry(ORDER), entry(GAIN, 0.1)):
        with pytest.raises(Missing, match="no seed that all its records share"):
            from_records(spec, records)


def test_seeds_that_one_method_lacks_are_missing():
    records = [*seeds("HMOH", [0.9, 0.8, 0.7]), record("OKH", mAP=0.5)]
    np.testing.assert_allclose(gaps(ORDER, records), [0.4])
    records += seeds("OSH", [0.1, 0.1, 0.1])
    measure = ORDER | {"ranking": ["HMOH", ["OKH", "OSH"]]}
    ours, theirs = from_records(entry(measure), records).values[0].values()
    np.testing.assert_allclose(ours, [0.4, np.nan, np.nan])
    np.testing.assert_allclose(theirs, [0.8, 0.7, 0.6])


def test_a_metric_that_only_some_seeds_have_uses_those():
    records = [*seeds("HMOH", [0.5, 0.6], "AUC mAP"), record("HMOH", seed=2, mAP=0.9)]
    found = values(VALUE | {"metric": "AUC mAP"}, records)
    assert found.tolist() == [0.5, 0.6]


def test_map_of_places_is_the_one_of_the_papers_table():
    records = seeds("HMOH", [0.3, 0.3], "mAP@1000", role="places205", mAP=0.1)
    assert values(VALUE, records, role="places205").tolist() == [0.3, 0.3]


def test_only_runs_with_the_papers_settings_and_the_claims_split_count():
    right = seeds("HMOH", [0.8, 0.8])
    others = seeds("HMOH", [0.1, 0.1], params={"codebook": "ordered"})
    others += seeds("HMOH", [0.3, 0.3], split="unseen")
    others += seeds("HMOH", [0.3, 0.3], split="test")
    others += seeds("HMOH", [0.4, 0.4], n_bits=64)
    others += seeds("HMOH", [0.5, 0.5], role="cifar10")
    assert values(VALUE, [*others, *right, *others]).tolist() == [0.8, 0.8]
    found = values(VALUE | {"split": "unseen"}, [*others, *right])
    assert found.tolist() == [0.3, 0.3]


def test_the_number_of_queries_can_be_part_of_a_claim():
    records = seeds("HMOH", [0.5, 0.5]) + seeds("HMOH", [0.6, 0.6], n_queries=50)
    assert values(VALUE | {"queries": 50}, records).tolist() == [0.6, 0.6]
    with pytest.raises(Missing, match="no record of HMOH at 32 bits with 'mAP'"):
        values(VALUE | {"queries": 51}, records)


def test_the_papers_data_are_preferred_to_a_stand_in():
    other = {"role": "cifar10", "dataset": "cifar10_vgg16", "stand_in_for": "cifar10"}
    records = seeds("HMOH", [0.1, 0.1], **other)
    spec = entry(VALUE, 0.5, role="cifar10")
    assert from_records(spec, records).data == "cifar10_vgg16"
    records += seeds("HMOH", [0.7, 0.7], role="cifar10")
    sample = from_records(spec, records)
    assert (sample.data, sample.values.tolist()) == ("cifar10", [0.7, 0.7])


def test_what_is_missing_is_named():
    records = seeds("HMOH", [0.5, 0.5])
    for spec, words in [
        (entry(ORDER), "no record of OKH at 32 bits with 'mAP'"),
        (entry(VALUE | {"bits": 8}, 0.5), "no record of HMOH at 8 bits with 'mAP'"),
        (entry(VALUE | {"samples": 0.1}, 0.5), "HMOH at 32 bits with checkpoints"),
        (entry(VALUE, 0.5, role="nuswide"), "no records of nuswide"),
    ]:
        with pytest.raises(Missing, match=words):
            from_records(spec, records)


# ---- kinds of measurement ------------------------------------------------------------


def test_the_value_at_a_share_of_the_stream_is_that_of_the_nearest_checkpoint():
    curve = {"samples": [10, 20, 40, 100], "stream": [None, 0.3, 0.6, 0.8]}
    records = [*seeds("HMOH", [0.8, 0.8], **curve), record("HMOH", seed=2, mAP=0.8)]
    for share, expected in [(0.2, 0.3), (0.38, 0.6), (1, 0.8)]:
        assert values(VALUE | {"samples": share}, records).tolist() == [expected] * 2
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


def test_the_mean_of_a_gain_is_the_ratio_of_the_means():
    ours = np.array([0.8, 0.7, 0.9, 0.75])
    theirs = np.array([0.2, 0.6, 0.4, 0.8])
    found = values(GAIN, seeds("HMOH", ours) + seeds("OKH", theirs))
    assert found.mean() == pytest.approx(ours.mean() / theirs.mean() - 1)
    # The mean of the ratios would be far too large.
    assert found.mean() < np.mean(ours / theirs) - 1.5
    # A gain that all seeds share has no spread.
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


def test_two_records_of_one_method_length_and_seed_are_refused():
    records = seeds("HMOH", [0.8, 0.8]) + seeds("OKH", [0.5, 0.5])
    again = [record("OKH", seed=1, mAP=0.9)]
    with pytest.raises(ValueError, match=r"of OKH at 32 bits have seed 1; pass each"):
        from_records(entry(ORDER), records + again)
    # The same seed with other settings is another run.
    others = [record("OKH", seed=1, mAP=0.9, published=True)]
    others += [record("OKH", n_bits=64, seed=1, mAP=0.9)]
    np.testing.assert_allclose(gaps(ORDER, records + others), [0.3, 0.3])


def test_all_others_are_the_methods_of_the_paper_that_are_not_named():
    records = []
    for place, method in enumerate(PAPER_METHODS):
        records += seeds(method, [0.1 * place] * 2)
    records += seeds("LSH", [0.99, 0.99])
    found = values(GAIN | {"over": ["*"]}, records)
    np.testing.assert_allclose(found, [0.7 / 0.6 - 1] * 2)
    pairs = measures.order_cases(["HMOH", "HCOH", "*"])
    assert pairs[0] == ("HMOH", "HCOH")
    assert pairs[1:] == [("HCOH", method) for method in PAPER_METHODS[:6]]
    pairs = measures.order_cases([["HMOH", "HCOH@0.1"], "*"])
    assert len(pairs) == 12


def test_an_order_has_a_group_for_each_length_and_a_case_for_each_pair():
    records = []
    for n_bits in (16, 32):
        for method, value in [("HMOH", 0.8), ("OKH", 0.7), ("OSH", 0.5)]:
            records += seeds(method, [value] * 2, n_bits=n_bits)
    measure = ORDER | {"ranking": ["HMOH", "OKH", "OSH"], "bits": [16, 32]}
    groups = from_records(entry(measure), records).values
    assert [list(group) for group in groups] == [
        [f"at {n} bits HMOH over OKH", f"at {n} bits OKH over OSH"] for n in (16, 32)
    ]
    np.testing.assert_allclose(groups[1]["at 32 bits OKH over OSH"], [0.2, 0.2])


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


def test_published_records_replace_those_of_the_same_method():
    records = seeds("HMOH", [0.4, 0.4]) + seeds("OKH", [0.5, 0.5])
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


def test_a_faulty_method_that_did_not_run_as_published_is_not_replaced():
    records = seeds("HMOH", [0.8, 0.8]) + seeds("OSH", [0.5, 0.5])
    spec = entry(ORDER | {"ranking": ["HMOH", "OSH"]})
    # HMOH as published is not compared with OSH as described.
    records += seeds("HMOH", [0.4, 0.4], published=True)
    assert from_records(spec, records).published is None
    records += seeds("OSH", [0.1, 0.1], published=True)
    sample = from_records(spec, records)
    np.testing.assert_allclose(*sample.published[0].values(), [0.3, 0.3])
    assert [fault.partition(":")[0] for fault in sample.faults] == ["HMOH", "OSH"]


@pytest.mark.parametrize("also_published", [False, True])
def test_methods_without_a_published_reading_have_none(also_published):
    records = seeds("OKH", [0.5, 0.5])
    if also_published:
        records += [r | {"published": True, "mAP": 0.9} for r in records]
    sample = from_records(entry(VALUE | {"method": "OKH"}, 0.5), records)
    assert (sample.published, sample.faults) == (None, ())


def test_published_runs_without_curves_say_nothing_about_curves():
    curve = {"samples": [50, 100], "stream": [0.3, 0.5]}
    records = seeds("HMOH", [0.5, 0.5], **curve)
    records += seeds("HMOH", [0.9, 0.9], published=True)
    sample = from_records(entry(VALUE | {"samples": 0.5}, 0.3), records)
    assert sample.values.tolist() == [0.3, 0.3]
    assert sample.published is None


def test_the_published_evaluation_is_a_change_of_the_measure():
    records = []
    for n_bits, cast in [(16, 0.9), (32, 0.7)]:
        records += seeds("OKH", [0.8] * 2, n_bits=n_bits, **{"mAP int8": cast})
    measure = CHANGE | {"method": "OKH", "sign": -1}
    spec = entry(measure, published={"metric": "mAP int8"})
    sample = from_records(spec, records)
    np.testing.assert_allclose(*sample.values[0].values(), [0, 0])
    np.testing.assert_allclose(*sample.published[0].values(), [0.2, 0.2])
    assert sample.faults == (measures.EVALUATION_FAULTS["mAP int8"],)
    # Records without that metric are no measurement as published.
    for r in records:
        del r["mAP int8"]
    assert from_records(spec, records).published is None


def test_a_fault_of_the_method_and_one_of_the_evaluation_are_both_named():
    cast = {"mAP int8": 0.7}
    records = seeds("HMOH", [0.8] * 2, **cast)
    spec = entry(VALUE, 0.7, published={"metric": "mAP int8"})
    assert from_records(spec, records).published is None
    sample = from_records(spec, records + seeds("HMOH", [0.9] * 2, published=True, **cast))
    assert sample.published.tolist() == [0.7, 0.7]
    method, evaluation = sample.faults
    assert method.startswith("HMOH: ")
    assert evaluation == measures.EVALUATION_FAULTS["mAP int8"]


def test_every_change_of_the_claims_file_cites_the_published_evaluation():
    for spec in ALL.values():
        for value in spec.get("published", {}).values():
            assert value in measures.EVALUATION_FAULTS


# ---- the paper's own tables ----------------------------------------------------------


def test_an_order_agrees_if_the_tables_have_it():
    spec = entry(ORDER | {"ranking": ["HCOH", "BSODH"], "bits": BITS})
    assert agrees(spec, TABLES) is False
    # HCOH is before BSODH at 16, 32, 48 and 128 bits.
    spec["measure"]["most"] = True
    assert agrees(spec, TABLES) is True
    spec = entry(ORDER | {"ranking": ["BSODH", "HCOH"], "bits": [16]})
    assert agrees(spec, TABLES) is False
    spec["measure"]["slack"] = 0.01
    assert agrees(spec, TABLES) is True
    spec = entry(ORDER | {"metric": "train_seconds", "ranking": ["HMOH", "HCOH"]})
    assert agrees(spec, TABLES) is True


def test_a_value_agrees_to_the_last_digit_of_the_tables():
    assert agrees(entry(VALUE, 0.847), TABLES) is True
    assert agrees(entry(VALUE, 0.8466), TABLES) is True
    assert agrees(entry(VALUE, 0.846), TABLES) is False
    # mAP of Places205 is that of the first 1,000 ranks.
    assert agrees(entry(VALUE, 0.305, role="places205"), TABLES) is True


def test_what_the_tables_do_not_have_neither_agrees_nor_disagrees():
    for spec in (
        entry(VALUE | {"metric": "AUC PR"}, 0.5),
        entry(VALUE | {"samples": 0.1}, 0.5),
        entry(VALUE | {"bits": 256}, 0.5),
        entry(VALUE | {"split": "unseen"}, 0.5),
        entry(VALUE | {"metric": "train_seconds", "bits": 64}, 0.5),
        entry(ORDER | {"ranking": ["HMOH@0.1", "OKH@1"]}),
        entry(printed=0.5, role=None),
        entry(),
    ):
        assert agrees(spec, TABLES) is None


def test_a_claim_measured_by_hand_can_name_its_place_in_the_tables():
    assert agrees(entry(printed=0.847, table=VALUE), TABLES) is True
    assert agrees(entry(printed=0.5, table=VALUE), TABLES) is False


def test_the_slips_of_the_papers_text_are_found():
    found = {name for name, spec in ALL.items() if agrees(spec, TABLES) is False}
    # On CIFAR-10 the table gives .10562 where the text says .10440.
    hmoh = [0.348, 0.756, 0.743, 0.729, 0.710, 0.734]
    best = [0.305, 0.673, 0.691, 0.697, 0.690, 0.602]
    assert np.mean(np.divide(hmoh, best)) - 1 == pytest.approx(0.10562, abs=5e-6)
    assert ALL["cifar10-ph2-gain"]["printed"] == 0.1044
    # On MNIST HCOH is said to be behind BSODH, but has .708 to .700 at 16 bits.
    assert TABLES["results"]["mnist"]["HCOH"]["mAP"]["16"] == 0.708
    assert TABLES["results"]["mnist"]["BSODH"]["mAP"]["16"] == 0.700
    assert found >= {
        "cifar10-ph2-gain",
        "cifar10-ph2-gain-hcoh",
        "places205-map-gain",
        "places205-map-gain-hcoh",
        "places205-ph2-8",
        "places205-ph2-best",
        "mnist-map-hcoh-behind",
        "mnist-ph2-gain",
        "mnist-ph2-gain-hcoh",
        "nuswide-map-second",
    }
    # The other gains of the text are those of the tables, to the last digit.
    gains = [s for s in ALL.values() if s.get("measure", {}).get("is") == "gain"]
    agree = [spec["id"] for spec in gains if agrees(spec, TABLES)]
    assert len(agree) >= 15
