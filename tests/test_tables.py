"""Tables: means, marks, the paper's values where they belong."""

import pytest

from study import tables

RUN = {"dataset": "mnist", "role": "mnist", "metric": "mAP", "stand_in_for": None}


def records(values, metric="mAP", **more):
    """Return records of {(method, n_bits): values over seeds}."""
    found = []
    for (method, n_bits), row in values.items():
        for seed, value in enumerate(row):
            case = {"method": method, "label": method, "n_bits": n_bits, "seed": seed}
            found.append(RUN | case | {metric: value} | more)
    return found


# ---- tables --------------------------------------------------------------------------


def test_means_spreads_marks_and_the_papers_values():
    values = {
        ("HMOH", 8): [0.7, 0.8],
        ("OSH", 8): [0.2, 0.2],
        ("LSH", 8): [0.3, 0.3],
    }
    made = tables.table(records(values), "mAP")
    assert made.head == ["bits", "8"]
    assert made.rows == [
        ["HMOH", "0.750¹ ±0.071 (0.743)"],
        ["OSH", "0.200 ±0.000 (0.130)"],
        ["LSH", "0.300² ±0.000"],
    ]
    assert made.title.startswith("mAP on mnist; mean ± sd of 2 seeds")
    assert "brackets" in made.title
    assert str(made).splitlines()[1:] == [
        "bits  8",
        "HMOH  0.750¹ ±0.071 (0.743)",
        "OSH   0.200 ±0.000 (0.130)",
        "LSH   0.300² ±0.000",
    ]


def test_a_stand_in_is_called_so_and_never_stands_beside_the_paper():
    stand_in = {"dataset": "reuters10", "role": "nuswide", "stand_in_for": "nuswide"}
    made = tables.table(records({("HMOH", 8): [0.7]}, **stand_in), "mAP")
    assert "reuters10 (STAND-IN for nuswide)" in made.title
    assert "brackets" not in made.title
    assert made.rows == [["HMOH", "0.700¹"]]


def test_seconds_are_best_when_least_and_printed_at_32_bits_only():
    values = {("HMOH", 32): [0.2], ("HCOH", 32): [0.1], ("HMOH", 8): [0.1]}
    made = tables.table(records(values, "train_seconds"), "train_seconds")
    assert made.rows == [
        ["HMOH", "0.100¹", "0.200² (2.76)"],
        ["HCOH", "-", "0.100¹ (4.01)"],
    ]


def test_the_headline_metric_stands_for_both_in_one_table():
    places = {"dataset": "udhr205", "role": "places205", "stand_in_for": "places205"}
    runs = records({("HMOH", 32): [0.7]}, label="no kernel")
    more = {"label": "no kernel", "mAP": 0.9} | places
    runs += records({("HMOH", 32): [0.2]}, "mAP@1000", **more)
    runs[-1]["metric"] = "mAP@1000"
    made = tables.table(runs, "headline", column="dataset")
    assert made.title.startswith("mAP (mAP@1000) on mnist, udhr205 (STAND-IN")
    assert made.head == ["dataset", "mnist", "udhr205"]
    assert made.rows == [["no kernel", "0.700¹", "0.200¹"]]


def test_html_shows_the_marks_and_escapes_text():
    made = tables.Table("a < b", ["bits", "8"], [["x & y", "0.750¹"], ["z", "0.700²"]])
    page = made._repr_html_()
    for text in ("a &lt; b", "x &amp; y", "bold", "underline"):
        assert text in page


def test_the_title_says_how_many_seeds_the_rows_have():
    runs = records({("HMOH", 8): [0.7, 0.8, 0.9], ("MIHash", 8): [0.2, 0.2]})
    assert "mean ± sd of 2 to 3 seeds" in tables.table(runs, "mAP").title


def test_a_metric_that_only_some_seeds_have_is_a_mean_over_these():
    runs = records({("HMOH", 8): [0.7, 0.9]})
    runs[0]["AUC mAP"] = 0.5
    made = tables.table(runs, "AUC mAP")
    assert made.rows == [["HMOH", "0.500¹"]]
    assert "one seed" in made.title


def test_the_lead_is_paired_over_the_seeds_that_both_methods_have():
    runs = records({("HMOH", 8): [0.6, 0.7, 0.1], ("LSH", 8): [0.5, 0.6]})
    assert tables.lead(runs, "mAP").rows[0][-1].startswith("+0.100 [")


def test_the_lead_is_the_difference_to_the_best_other_method():
    values = {
        ("HMOH", 16): [0.5, 0.7],
        ("LSH", 16): [0.8, 0.6],
        ("OSH", 16): [0.1, 0.1],
        ("HMOH", 8): [0.6, 0.6],
        ("LSH", 8): [0.1, 0.1],
        ("OSH", 8): [0.2, 0.4],
    }
    made = tables.lead(records(values), "mAP")
    assert made.head[:2] == ["bits", "HMOH"]
    assert made.rows == [
        ["8", "0.600", "OSH", "0.300", "+0.300 [-0.971, +1.571]"],
        ["16", "0.600", "LSH", "0.700", "-0.100 [-2.641, +2.441]"],
    ]
    assert made.title.startswith("mAP on mnist; mean of 2 seeds")


def curves(values):
    """Return records of {method: curves over seeds} at 48 bits."""
    with_bits = {(method, 48): rows for method, rows in values.items()}
    stream = {"samples": [1000, 2000, 10_000], "n_stream": 10_000}
    return records(with_bits, "stream", **stream)


def test_the_early_table_says_when_a_method_has_hmohs_early_value():
    made = tables.early(
        curves(
            {
                "LSH": [[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]],
                "HCOH": [[None, 0.4, 0.6], [None, 0.4, 0.7]],
                "HMOH": [[None, 0.5, 0.8], [0.5, 0.6, 0.8]],
            }
        ),
        48,
        "mAP",
    )
    # HMOH can encode with both seeds after 20 % of the stream.
    assert made.head[1:] == ["after 20%", "at the end", "has HMOH's value after 20% at"]
    assert made.rows == [
        ["LSH", "0.200", "0.300", "never"],
        ["HCOH", "0.400", "0.650", "100%"],
        ["HMOH", "0.550", "0.800", "20%"],
    ]
    assert made.title == "mAP on mnist, 48 bits, stream of 10,000; mean of 2 seeds"


def test_the_early_table_needs_curves_of_the_headline_metric():
    with pytest.raises(ValueError, match=r"P@H2 is not measured .*; pass 'mAP' or"):
        tables.early(curves({"HMOH": [[0.5, 0.6, 0.8]]}), 48, "P@H2")
    with pytest.raises(ValueError, match=r"no checkpoints; pass checkpoints=True"):
        tables.early(records({("HMOH", 48): [0.7]}), 48)


@pytest.mark.parametrize("make", [tables.table, tables.lead, tables.early])
def test_no_records_are_refused_with_the_way_out(make):
    with pytest.raises(ValueError, match=r"no records; pass records of protocol\.compare"):
        make([], "mAP")


def test_the_step_between_two_lengths_has_both_readings():
    values = {}
    for i, method in enumerate(tables.BEST):
        values |= {(method, 64): [0.5, 0.6], (method, 128): [0.5 + 0.1 * i, 0.6 + 0.1 * i]}
    as_described = records(values)
    published = [run | {"published": True} for run in as_described if run["method"] == "HMOH"]
    rows = tables.step(as_described, published, "mAP", (64, 128)).rows
    assert [row[0] for row in rows] == list(tables.BEST)
    assert rows[0][1].startswith("+0.000 [") and rows[0][2] == "the same"
    assert rows[-1][1].startswith("+0.300 [") and rows[-1][2] == rows[-1][1]


def test_a_method_that_is_still_untrained_is_told():
    runs = records({(method, 8): [0.6, 0.7] for method in ("LSH", *tables.BEST)})
    for run in runs:
        learned = 0.2 if run["method"] == "HMOH" else 0.0
        curve = [None if run["method"] == "HMOH" else 0.1, 0.3 + learned]
        run |= {"samples": [10, 20], "n_stream": 100, "stream": curve}
    made = tables.untrained(runs, 8)
    assert made.head[1] == "after 20%"
    assert made.rows[0] == ["MIHash", "0.300", "exactly the same"]
    assert made.rows[-1][:2] == ["HMOH", "0.500"] and made.rows[-1][2].startswith("+0.200")


def test_the_report_of_a_stand_in_is_printed(capsys):
    assert tables.load_data("nuswide").stand_in_for == "nuswide"
    said = capsys.readouterr()
    assert "STAND-IN" in said.out and not said.err
