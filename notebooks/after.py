"""Compare what came after HMOH: one training, then both protocols. The notebook is 19_after_hmoh.

    from after import FEATURES, compare
    records = compare(["HMOH", "LEMON"], ["mnist"], [32], seeds=[0, 1, 2])

gives two records of each run, told apart by "database": "learned" is the paper's protocol, and in
"labelled" the database has the codes of its labels (`study.training.code_by_labels`). All methods
get the same features and parts, which are those of `study.protocol`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from hmoh import OnlineHasher
from kernels import RBF, UnitLength
from metrics import HammingHistogram, hamming_histogram, pack
from study import datasets, profile, protocol
from study.features import Part, Parts, prepare
from study.keep import code_version, kept, make_all, plain, plain_values, run_key
from study.profile import by_profile
from study.scores import mean_ap
from study.training import (
    code_by_labels,
    compile_method,
    data_of,
    evaluate,
    fit,
    method_of,
    new_model,
)

__all__ = ["CLASS_NUMBER", "CODEBOOKS", "FEATURES", "PUBLISHED", "codebooks", "compare"]
__all__ += ["run_all"]

FEATURES = {
    "unit rows": UnitLength(),
    "RBF": [UnitLength(), RBF(by_profile(1000, 100), divisor=10.0, center=True)],
    "300 anchors": [UnitLength(), RBF(by_profile(300, 50), divisor=10.0, center=True)],
    "100 anchors": [UnitLength(), RBF(by_profile(100, 25), divisor=10.0, center=True)],
}
PUBLISHED = ("BSODH",)  # as its published program, because what came later is
CLASS_NUMBER = "class number"  # the class that the ridge predicts, as a code
CODEBOOKS = ("random", "spread", "learned")


def _stream(parts: Parts, n_stream: int | None, n_late: int) -> Part:
    """Return the first samples; the last classes have none in the first half of these."""
    X, y = (array[:n_stream] for array in parts.stream)
    if n_late:
        late = np.isin(y, np.unique(y)[-n_late:])
        late[len(y) // 2 :] = False
        X, y = X[~late], y[~late]
    return Part(X, y)


def _measured(
    method: str,
    dataset: str,
    features: str,
    n_bits: int,
    seed: int,
    params: dict | None = None,
    n_stream: int | None = None,
    n_late: int = 0,
) -> list[dict]:
    """Return the records of a run by both protocols, and of the class number if it has one."""
    data = data_of(dataset)
    given = {"feature_map": FEATURES[features]} | (params or {})
    model = new_model(method, data.role, n_bits, seed, given, method in PUBLISHED)
    parts = prepare(model, data, "paper", seed)
    if parts.mapped:
        model.set_params(feature_map=None)
    parts = parts._replace(stream=_stream(parts, n_stream, n_late))
    compile_method(method, method in PUBLISHED)
    start = time.process_time()
    fit(model, parts)
    model.transform(parts.queries.X[:1])  # here the ridge solves its equations
    seconds = time.process_time() - start
    by_label, has_code = code_by_labels(model, parts)
    facts = {"role": data.role, "metric": data.metric, "stand_in_for": data.stand_in_for}
    facts |= {"dataset": data.name, "features": features, "n_bits": n_bits, "seed": seed}
    facts |= {"n_without_code": int((~has_code).sum()), "params": plain_values(params or {})}
    facts |= {"n_database": len(has_code), "seconds": seconds / len(parts.stream.y)}
    label = f"{method}, as published" if method in PUBLISHED else method
    found = {}
    for database, codes in (("learned", None), ("labelled", by_label)):
        found[label, database] = evaluate(model, parts, 1, codes)
    if method == "HadamardRidge" and not data.multi_label:
        asked, items = (_class_code(model, part) for part in (parts.queries, parts.database))
        known = pack(np.eye(len(model.classes_)) > 0)
        known = known[np.searchsorted(model.classes_, parts.database.y)]
        labels = parts.queries.y, parts.database.y
        for database, codes in (("learned", items), ("labelled", known)):
            found[CLASS_NUMBER, database] = hamming_histogram(asked, codes, *labels, n_threads=1)
    late = np.isin(parts.queries.y, np.unique(parts.queries.y)[-n_late:]) if n_late else None
    return [
        facts | {"method": name, "label": name, "database": database} | _scores(h, data, late)
        for (name, database), h in found.items()
    ]


def _class_code(model: OnlineHasher, part: Part) -> np.ndarray:
    """Return the predicted class, packed: a bit for each class, so that classes are equally far."""
    which = model.class_scores(part.X).argmax(axis=1)
    return pack(np.eye(len(model.classes_)) > 0)[which]


def _scores(histogram: HammingHistogram, data: datasets.Dataset, late) -> dict:
    per_query = mean_ap(histogram, data.metric, per_query=True)
    found = {data.metric: float(np.nanmean(per_query))}
    return found if late is None else found | {"late": float(np.nanmean(per_query[late]))}


def _codebooks(dataset: str, features: str, seed: int, bits: Sequence[int]) -> list[dict]:
    """Return a record of the ridge for each codebook and length, all from one pass."""
    data = data_of(dataset)
    first = new_model("HadamardRidge", data.role, 32, seed, {"feature_map": FEATURES[features]})
    parts = prepare(first, data, "paper", seed)
    if parts.mapped:
        first.set_params(feature_map=None)
    fit(first, parts)
    records = []
    for n_bits, codebook in itertools.product(bits, CODEBOOKS):
        model = first.recoded(n_bits=n_bits, codebook=codebook)
        record = {"dataset": data.name, "features": features, "seed": seed, "n_bits": n_bits}
        record |= {"role": data.role, "metric": data.metric, "stand_in_for": data.stand_in_for}
        record |= {"label": codebook, "method": "HadamardRidge"}
        records.append(record | _scores(evaluate(model, parts, 1), data, None))
    return records


# ---- kept runs -----------------------------------------------------------------------

DOERS = {"run": _measured, "codebooks": _codebooks}


_version = cache(code_version)


def _place(kind: str, job: dict) -> Path | None:
    """Return the file of a run; None if its method is not defined in a file of the project."""
    method = job.get("method", "HadamardRidge")
    module = getattr(method_of(method), "make", method_of(method)).__module__
    file = f"{module.replace('.', '/')}.py"
    if not (protocol.ROOT / file).exists():
        return None
    code = _version(protocol.ROOT, "notebooks/after.py", "study/training.py", file)
    versions = (kind, str(plain(FEATURES[job["features"]])), profile.PROFILE, code)
    key = run_key(job, datasets.fingerprint(job["dataset"]), *versions)
    return protocol.RECORDS / f"after-{method}-{job['dataset']}-{job['seed']}-{key}.json"


def _do(group: list[tuple[str, dict, Path | None]]) -> list[list[dict]]:
    found = []
    for kind, job, path in group:
        make = lambda kind=kind, job=job: DOERS[kind](**job)  # noqa: E731
        found.append(make() if path is None else kept(path, make))
    return found


def run_all(jobs: Iterable[dict], kind: str = "run") -> list[dict]:
    """Return the records of all jobs, arguments of `_measured`; finished ones are kept.

    Jobs with the same set, seed and features share the mapped features, in one process.
    """
    groups: dict[tuple, list] = {}
    for job in jobs:
        case = (job["dataset"], job["features"], job["seed"])
        groups.setdefault(case, []).append((kind, job, _place(kind, job)))
    is_own = any(path is None for group in groups.values() for *_, path in group)
    n_workers = 1 if is_own else by_profile(None, 1)
    missing = [case for case in groups if any(not (p and p.exists()) for *_, p in groups[case])]
    found = dict(zip(missing, make_all(_do, [groups[c] for c in missing], n_workers), strict=True))
    for case in groups.keys() - found:
        found[case] = _do(groups[case])
    return [record for case in groups for records in found[case] for record in records]


def compare(
    methods: Iterable[str],
    sets: Iterable[str],
    bits: Iterable[int],
    seeds: Iterable[int],
    features: Iterable[str] = ("unit rows", "RBF"),
    **options,
) -> list[dict]:
    """Return the records of all cases by both protocols; options are those of `_measured`."""
    cases = itertools.product(sets, features, seeds, bits, methods)
    names = ("dataset", "features", "seed", "n_bits", "method")
    return run_all(dict(zip(names, case, strict=True)) | options for case in cases)


def codebooks(
    sets: Iterable[str], features: Iterable[str], seeds: Iterable[int], bits: Sequence[int]
) -> list[dict]:
    """Return the records of the ridge with each of `CODEBOOKS`."""
    cases = itertools.product(sets, features, seeds)
    names = ("dataset", "features", "seed")
    jobs = (dict(zip(names, case, strict=True)) | {"bits": list(bits)} for case in cases)
    return run_all(jobs, "codebooks")
