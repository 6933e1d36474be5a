"""Learn codes of MNIST images online, search by them, and print each step: `make demo`.

Read it as an example: the split of the paper's protocol comes from `study.datasets`, the picture
from `study.pictures`, and the rest is what you would write for data of your own.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

from hmoh import HMOH
from kernels import RBF, Concat, UnitLength
from metrics import hamming_histogram, nearest
from ridge import HadamardRidge
from study import datasets, pictures
from tools.draw import write_page

N_BITS = 32
N_DRAWN = 10_000  # images that the page searches, none of them streamed
PAPER = 0.847  # mAP of HMOH on MNIST at 32 bits, as the paper prints it
say = partial(print, flush=True)  # at once, also into a file


def paper_model() -> HMOH:
    """Return HMOH with the paper's settings for MNIST.

    Its features are the similarities to 300 anchors, the first images of the stream.
    """
    return HMOH(N_BITS, feature_map=RBF(300, divisor=6), random_state=0)


def our_model(n_anchors: int = 1000) -> HadamardRidge:
    """Return our default, as README and 14_beyond write it.

    Its features are the pixels, scaled to unit length, beside the similarities to k-means centres.
    """
    centres = RBF(n_anchors, divisor=5.0, center=True, anchors="kmeans", random_state=0)
    features = [UnitLength(), Concat([None, centres])]
    return HadamardRidge(N_BITS, feature_map=features, codebook="spread", random_state=0)


def main(
    mnist: datasets.Dataset | None = None,
    stops: tuple[int, ...] = (1000, 5000, 20_000),
    n_anchors: int = 1000,
    picture: Path = Path("build/demo.png"),
    page: Path = Path("build/draw.html"),
) -> None:
    """Run the demo. A test passes fewer images, stops and anchors."""
    mnist = datasets.load("mnist") if mnist is None else mnist
    X, y = mnist.features, mnist.labels
    stream, database, queries = datasets.split(mnist, seed=0)  # row numbers

    on_page = slice(len(stream), len(stream) + N_DRAWN)  # of the database

    def mean_ap(query_codes: np.ndarray, codes: np.ndarray, part: slice = slice(None)) -> float:
        labels = y[queries], y[database[part]]
        return hamming_histogram(query_codes, codes[part], *labels).mean_average_precision()

    say(f"MNIST: {len(database):,} images of digits to search, {len(queries):,} others as queries.")
    say("mAP (mean average precision) is 1 if every query finds all images of its digit first,")
    say("and about 0.1 in random order.")
    say()

    say(f"HMOH, the paper's method, learns {N_BITS}-bit codes from labelled images, one by one:")
    model = paper_model()
    start = 0
    weights, says = [], []  # for the page
    for stop in stops:
        rows = stream[start:stop]
        model.partial_fit(X[rows], y[rows], classes=np.arange(10))
        asked, codes = model.transform(X[queries]), model.transform(X[database])
        score = mean_ap(asked, codes)
        weights.append(model.weights_)
        drawn = mean_ap(asked, codes, on_page)
        says.append(f"{stop:,} digits learned: mAP {drawn:.3f} ({score:.3f} in make demo)")
        paper = f"  (the paper: {PAPER}, its mean of three runs)" if stop == stops[-1] else ""
        say(f"  {stop:6,} images streamed: mAP {score:.3f}{paper}")
        start = stop
    images = database[on_page]
    anchors = stream[: model.feature_map_.n_anchors]
    write_page(page, model, y[anchors], weights, says, X[images], y[images])
    say()

    say(f"HadamardRidge, ours, uses the pixels and similarities to {n_anchors:,} typical images:")
    model = our_model(n_anchors).fit(X[stream], y[stream])
    codes = model.transform(X[database])
    score = mean_ap(model.transform(X[queries]), codes)
    say(f"  {model.n_seen_:6,} images streamed: mAP {score:.3f}")
    say(f"  Each image is stored in {codes.shape[1]} bytes instead of {X.shape[1]}.")

    nearest(codes[:1], codes, k=10)  # the first call compiles
    start = perf_counter()
    distances, found = nearest(model.transform(X[queries]), codes, k=10)
    milliseconds = 1000 * (perf_counter() - start) / len(queries)
    say(f"  Encoding a query and searching {len(codes):,} images takes {milliseconds:.2f} ms.")
    found = database[found]
    wrong = y[found] != y[queries][:, None]
    say(f"  Of the ten nearest images, {1 - wrong.mean():.1%} show the query's digit.")
    say()

    _, shown = np.unique(y[queries], return_index=True)  # the first query of each digit
    asked = X[queries[shown]]
    title = f"Ten queries and their nearest images by {N_BITS}-bit codes"
    figure = pictures.neighbours(asked, X[found[shown]], distances[shown], wrong[shown], title)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture)
    say(f"Ten queries and their nearest images: {picture}")
    say(f"Draw a digit, and teach HMOH a symbol, in a browser: {page}")


if __name__ == "__main__":
    main()
