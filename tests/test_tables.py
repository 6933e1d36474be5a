"""Tables: means, spreads, marks, and the paper's values only where they belong."""

import pytest

import tables

RUN = {"dataset": "mnist", "role": "mnist", "stand_in_for": None}


def records(values, metric="mAP", **more):
    """{(method, n_bits): values over seeds} as records."""
    return [
        RUN | {"method": m, "n_bits": b, "seed": seed, metric: v} | more
        for (m, b), row in values.items()
        for seed, v in enumerate(row)
    ]


def test_means_spreads_marks_and_the_papers_values():
    made = tables.table(records({("HMOH", 8): [0.7, 0.8], ("OSH", 8): [0.2, 0.2], ("LSH", 8): [0.3, 0.3]}), "mAP")
    assert made.head == ["bits", "8"]
    assert made.rows == [["HMOH", ".750¹ ±.071 (.743)"], ["OSH", ".200 ±.000 (.130)"], ["LSH", ".300² ±.000"]]
    assert made.title.startswith("mAP on mnist; mean ± sd of 2 seeds") and "brackets" in made.title
    assert str(made).splitlines()[1:] == [
        "bits  8",
        "HMOH  .750¹ ±.071 (.743)",
        "OSH   .200 ±.000 (.130)",
        "LSH   .300² ±.000",
    ]


def test_a_stand_in_is_called_so_and_never_stands_beside_the_paper():
    stand_in = {"dataset": "reuters10", "role": "nuswide", "stand_in_for": "nuswide"}
    made = tables.table(records({("HMOH", 8): [0.7]}, **stand_in), "mAP")
    assert "reuters10 (STAND-IN for nuswide)" in made.title and "brackets" not in made.title
    assert made.rows == [["HMOH", ".700¹"]]


@pytest.mark.parametrize("change", [{"params": {"codebook": "'spread'"}}, {"split": "unseen"}, {"label": "ours"}])
def test_another_protocol_does_not_stand_beside_the_paper(change):
    assert tables.paper_value(RUN | {"method": "HMOH", "n_bits": 8}, "mAP") == 0.743
    assert tables.paper_value(RUN | {"method": "HMOH", "n_bits": 8} | change, "mAP") is None


def test_small_parts_of_the_data_do_not_stand_beside_the_paper(monkeypatch):
    monkeypatch.setenv("HMOH_PROFILE", "quick")
    assert tables.paper_value(RUN | {"method": "HMOH", "n_bits": 8}, "mAP") is None


def test_seconds_are_best_when_least_and_printed_at_32_bits_only():
    made = tables.table(records({("HMOH", 32): [0.2], ("HCOH", 32): [0.1], ("HMOH", 8): [0.1]}, "train_seconds"),
                        "train_seconds")  # fmt: skip
    assert made.rows == [["HMOH", ".100¹", ".200² (2.76)"], ["HCOH", "-", ".100¹ (4.01)"]]


def test_html_shows_the_marks_and_escapes_text():
    made = tables.Table("a < b", ["bits", "8"], [["x & y", ".750¹"], ["z", ".700²"]])
    page = made._repr_html_()
    assert "a &lt; b" in page and "x &amp; y" in page and "bold" in page and "underline" in page


def test_no_records_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"no records; pass what experiments\.compare"):
        tables.table([], "mAP")
