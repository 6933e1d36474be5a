"""The demo on few images, and what it says about the paper."""

import json
import re
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from helpers import ROOT

from study import datasets
from tools import demo


@pytest.fixture(scope="module")
def few():
    """Give 3,000 images of MNIST, of which 100 are queries and 1,000 the stream."""
    mnist = datasets.load("mnist")
    rows = np.r_[:2800, 60_000:60_200]
    return replace(
        mnist,
        features=mnist.features[rows],
        labels=mnist.labels[rows],
        test_rows=np.arange(2800, 3000),
        n_queries=100,
        stream_size=1000,
    )


@pytest.mark.slow
def test_prints_a_line_for_each_step_and_writes_the_picture(few, tmp_path, capsys):
    picture = tmp_path / "build" / "demo.png"
    page = tmp_path / "draw.html"
    demo.main(few, stops=(400, 1000), n_anchors=50, picture=picture, page=page)
    plt.close("all")
    out, err = capsys.readouterr()
    assert err == ""
    assert out.isascii()
    scores = re.findall(r"([\d,]+) images streamed: mAP (0\.\d{3})", out)
    assert [seen for seen, _ in scores] == ["400", "1,000", "1,000"]
    # So few images say nothing about which method is ahead.
    first, last, ours = (float(score) for _, score in scores)
    assert 0.3 < first < last < 1
    assert 0.3 < ours < 1
    # The paper's value stands beside the last one of its method.
    assert f"mAP {last:.3f}  (the paper: 0.847" in out
    assert "4 bytes instead of 784" in out
    assert re.search(r"searching 2,900 images takes \d+\.\d\d ms", out)
    assert out.splitlines()[-2].endswith(str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert out.splitlines()[-1].endswith(str(page))
    # The page says what the model reached on its own images, beside the numbers printed here.
    said = re.findall(
        r"digits learned: mAP (0\.\d{3}) \((0\.\d{3}) in make demo\)", page.read_text()
    )
    assert [score for _, score in said] == [f"{first:.3f}", f"{last:.3f}"]
    assert all(abs(float(own) - float(other)) < 0.05 for own, other in said)


def test_the_papers_value_is_the_printed_one():
    results = json.loads((ROOT / "data" / "paper_results.json").read_text())["results"]
    assert results["mnist"]["HMOH"]["mAP"][str(demo.N_BITS)] == demo.PAPER
