"""Tables: means, marks, the paper's values where they belong."""

import numpy as np
import pytest

from baselines import METHODS, named
from kernels import RBF, Concat, UnitLength
from study import tables
from study.datasets import Dataset
from study.training import run

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
    assert made.title.startswith("mAP on MNIST; mean ± sd of 2 seeds")
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
    assert "reuters10 (STAND-IN for NUS-WIDE)" in made.title
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
    assert made.title.startswith("mAP (udhr205: mAP@1000) on MNIST, udhr205 (STAND-IN")
    assert made.head == ["dataset", "mnist", "udhr205"]
    assert made.rows == [["no kernel", "0.700¹", "0.200¹"]]


def test_html_marks_the_mean_alone_and_escapes_text():
    rows = [["x & y", "0.750¹ ±0.071 (0.743)"], ["z", "0.700²"]]
    page = tables.Table("a < b, ¹ best, ² second", ["bits", "8"], rows)._repr_html_()
    shown = ["a &lt; b, <b>best</b>, <u>second</u>", "x &amp; y", "<u>0.700</u></td>"]
    # A line can break before the bracket only.
    shown.append("<b>0.750</b>&nbsp;±0.071 (0.743)</td>")
    for text in shown:
        assert text in page
    assert "¹" not in page and "²" not in page


def test_the_title_says_how_many_seeds_the_rows_have():
    runs = records({("HMOH", 8): [0.7, 0.8, 0.9], ("MIHash", 8): [0.2, 0.2]})
    assert "mean ± sd of 2 to 3 seeds" in tables.table(runs, "mAP").title


def test_a_metric_that_only_some_seeds_have_is_a_mean_over_these():
    runs = records({("HMOH", 8): [0.7, 0.9]})
    runs[0]["AUC mAP"] = 0.5
    made = tables.table(runs, "AUC mAP")
    assert made.rows == [["HMOH", "0.500¹"]]
    assert "one seed" in made.title


def test_no_records_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"no records; pass records of protocol\.compare"):
        tables.table([], "mAP")


def test_own_data_have_their_name_and_no_printed_value():
    own = {"dataset": "digits", "role": None}
    made = tables.table(records({("HMOH", 8): [0.7]}, **own), "headline")
    assert made.title == "mAP on digits; one seed, ¹ best, ² second"
    assert made.rows == [["HMOH", "0.700¹"]]


def test_latex_has_the_marks_and_no_sign_that_latex_reads_otherwise():
    rows = [["x & y_1", "0.750¹ ±0.071", "5 %"], ["z", "0.700²", "~"]]
    lines = tables.Table("a {b}, ¹ best, ² second", ["bits", "8", "#"], rows).to_latex()
    assert lines.splitlines()[1:3] == [
        r"\caption{a \{b\}, \textbf{best}, \underline{second}}",
        r"\begin{tabular}{lll}",
    ]
    assert lines.splitlines()[4:8] == [
        r"bits & 8 & \# \\",
        r"\hline",
        r"x \& y\_1 & \textbf{0.750} $\pm$0.071 & 5 \% \\",
        r"z & \underline{0.700} & \textasciitilde{} \\",
    ]


def test_the_report_of_a_stand_in_is_printed(capsys):
    assert tables.load_data("nuswide").stand_in_for == "nuswide"
    said = capsys.readouterr()
    assert "STAND-IN" in said.out and not said.err


def test_an_unknown_metric_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"'P@7'; pass one of mAP"):
        tables.table(records({("HMOH", 8): [0.7]}), "P@7")


# ---- features ------------------------------------------------------------------------

CENTRED = RBF(20, 5.0, center=True, anchors="kmeans", random_state=0)
SHOWN = [
    (None, "raw features"),
    ([], "raw features"),
    (UnitLength(n_warmup=1000), "unit rows"),
    (UnitLength(), "unit rows (mean of 100)"),
    ([UnitLength(n_warmup=30), RBF(20, 6.0)], "unit rows, RBF(20, 6)"),
    (CENTRED, "RBF(20, 5, k-means, centred)"),
    (Concat([None, RBF(20)]), "raw features beside RBF(20, 10)"),
    ([UnitLength(), Concat([None, RBF(20)])], "unit rows beside their RBF(20, 10)"),
]


@pytest.mark.parametrize(("feature_map", "text"), SHOWN, ids=[text for _, text in SHOWN])
def test_the_features_in_a_label_are_those_of_the_model_that_ran(feature_map, text):
    rng = np.random.default_rng(0)
    data = Dataset("noise", rng.random((500, 4), np.float32), rng.integers(2, size=500))
    # Whatever its label says.
    record = run("HMOH", data, 8, 0, params={"feature_map": feature_map}, label="HMOH, unit rows")
    assert tables.features_of(record) == text
    assert tables.features_text(feature_map) == text
    assert tables.features_by_method([record, record]) == f"HMOH, unit rows on {text}"


def test_the_features_of_the_protocol_are_told_for_every_method():
    on_mnist = {}
    for name in named("paper"):
        settings = METHODS[name]("mnist").get_params()
        on_mnist[name] = tables.features_of({"settings": settings})
    own = {"HMOH": "RBF(300, 6)", "OKH": "unit rows and a kernel of its own"}
    assert on_mnist == dict.fromkeys(on_mnist, "unit rows") | own
