"""Judge MNIST's cells and claims anew with seeds 10 to 19, and write data/results/fresh_seeds.json.

    python data/make/fresh_seeds.py

The rule, margins and readings are those of study/PROTOCOL.md, written down before this was run.
Both sets of seeds are run here and judged by the same code. The file tells how many verdicts are
reversed, and how many move to or from "undecided", beside the numbers that are expected if both
sets come from the same distribution. These are estimated by drawing two sets of ten from a normal
distribution with the mean and covariance of the first set.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from baselines import PUBLISHED_FAULTS, named  # noqa: E402
from study import claims  # noqa: E402
from study.measures import Missing, from_records  # noqa: E402
from study.protocol import compare  # noqa: E402
from study.select import PAPER_METHODS  # noqa: E402
from study.statistics import RULE_VERSION  # noqa: E402

BITS = [8, 16, 32, 48, 64, 128]
LONG = [256, 512]
FIRST, FRESH = range(10), range(10, 20)
DRAWS = 100
OPPOSITE = [{"reproduced", "different"}, {"supported", "contradicted"}]


def run(seeds: range) -> list[dict]:
    """Return the records that MNIST's cells and claims need, as the notebooks make them."""
    seeds = list(seeds)
    records = compare(named("paper"), "mnist", BITS, seeds, checkpoints=True)
    records += compare(PUBLISHED_FAULTS, "mnist", BITS, seeds, published=True, checkpoints=True)
    able = [method for method in PAPER_METHODS if method != "SketchHash"]
    for methods, published in ((able, False), ([m for m in able if m in PUBLISHED_FAULTS], True)):
        records += compare(methods, "mnist", LONG, seeds, published=published)
        unseen = {"split": "unseen", "published": published}
        chosen = named("paper") if not published else list(PUBLISHED_FAULTS)
        records += compare(chosen, "mnist", [64], seeds, **unseen)
    return records


def specs() -> dict[str, dict]:
    """Return the cells of MNIST's table, and its claims that are measured from records."""
    listed = claims.all_specs()
    return {k: s for k, s in listed.items() if s["role"] == "mnist" and "measure" in s}


def redrawn(values, rng):
    """Return a sample of the same mean and covariance: an array, or dicts of cases."""
    if not isinstance(values, list):
        values = [{"": values}]
    columns = [np.asarray(gaps, float) for group in values for gaps in group.values()]
    n = max(map(len, columns))
    G = np.array([np.pad(c, (0, n - len(c)), constant_values=np.nan) for c in columns])
    means = np.nanmean(G, axis=1, keepdims=True)
    drawn = iter(means + np.nan_to_num(G - means) @ rng.normal(size=(n, n)) / np.sqrt(n - 1))
    return [{name: next(drawn) for name in group} for group in values]


def verdict_of(spec, values) -> str:
    if spec["kind"] != "order":
        [values] = values[0].values() if isinstance(values, list) else [values]
    return claims.judge_sample(spec, values).verdict


def kind_of_move(a: str, b: str) -> str:
    if a == b:
        return "same"
    return "reversed" if {a, b} in OPPOSITE else "moved"


def main() -> None:
    first, fresh = run(FIRST), run(FRESH)
    rng = np.random.default_rng(0)
    rows = []
    expected = {"moved": 0.0, "reversed": 0.0}
    for name, spec in specs().items():
        try:
            samples = [from_records(spec, records) for records in (first, fresh)]
        except Missing as missing:
            print(f"{name}: {missing}")
            continue
        for reading in ("described", "published"):
            values = [s.values if reading == "described" else s.published for s in samples]
            if any(v is None for v in values):
                continue
            a, b = (claims.judge_sample(spec, v) for v in values)
            moves = Counter()
            for _ in range(DRAWS):
                pair = [verdict_of(spec, redrawn(values[0], rng)) for _ in range(2)]
                moves[kind_of_move(*pair)] += 1 / DRAWS
            for move in expected:
                expected[move] += moves[move]
            rows.append(
                {
                    "id": name,
                    "reading": reading,
                    "first": [a.verdict, round(a.estimate, 4), round(a.sd, 4)],
                    "fresh": [b.verdict, round(b.estimate, 4), round(b.sd, 4)],
                    "move": kind_of_move(a.verdict, b.verdict),
                }
            )
    found = Counter(row["move"] for row in rows)
    print(len(rows), dict(found), "expected", expected)
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    head = {"rule": RULE_VERSION, "seeds": [list(FIRST), list(FRESH)], "n": len(rows)}
    head |= {"moved": found["moved"], "reversed": found["reversed"]}
    head["expected"] = {move: round(n, 1) for move, n in expected.items()}
    # Claims that change or come in after this run are listed here by hand, until it is run again.
    head |= {"changed_later": [], "added_later": []}
    text = json.dumps(head)[:-1] + f',\n "rows": [\n  {lines}\n ]}}\n'
    json.loads(text)
    (ROOT / "data" / "results" / "fresh_seeds.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
