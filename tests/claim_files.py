"""Entries of claims files and records of runs, for the tests of claims, measures and scorecard."""

import json

BITS = [8, 16, 32, 48, 64, 128]
ORDER = {"is": "order", "metric": "mAP", "ranking": ["HMOH", "OKH"], "bits": [32]}
VALUE = {"is": "value", "metric": "mAP", "method": "HMOH", "bits": 32}
GAIN = {"is": "gain", "metric": "mAP", "method": "HMOH", "over": ["OKH"], "bits": [32]}
CHANGE = {"is": "change", "metric": "mAP", "method": "HMOH", "bits": [16, 32], "sign": 1}


def entry(measure=None, printed=None, role="mnist", **more):
    """Return an entry of a claims file: a value if a number is printed, an order otherwise."""
    plain = {"id": "x", "section": "4", "role": role, "notebook": "n", "claim": "A < B."}
    plain |= {"printed": printed, "kind": "order" if printed is None else "value"}
    if printed is not None:
        is_gain = measure is not None and measure["is"] == "gain"
        plain["unit"] = "gain" if is_gain else "mAP"
    how = {"by_hand": "measure it"} if measure is None else {"measure": measure}
    return plain | how | more


def write(folder, monkeypatch, *entries):
    """Make these entries the claims file."""
    from study import claims

    path = folder / "paper_claims.json"
    path.write_text(json.dumps(entries))
    monkeypatch.setattr(claims, "CLAIMS", path)


def record(method, n_bits=32, seed=0, role="mnist", **more):
    """Return a record of a run with the paper's settings."""
    plain = {"method": method, "label": method, "n_bits": n_bits, "seed": seed}
    plain |= {"dataset": role, "role": role, "stand_in_for": None, "split": "paper"}
    plain |= {"published": False, "params": {}, "per_query": {}}
    plain |= {"n_stream": 100, "n_queries": 1000}
    plain["metric"] = "mAP@1000" if role == "places205" else "mAP"
    return plain | more


def seeds(method, values, metric="mAP", **more):
    """Return the records of seeds 0, 1, ... with these values of a metric."""
    return [record(method, seed=s, **{metric: x}, **more) for s, x in enumerate(values)]
