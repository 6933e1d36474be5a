"""The project's own promises: documents that run, set-up files in step, data that is whole and split without leaks."""

import doctest
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import baselines
import datasets
import hmoh
import kernels
import lsh
import metrics
import mihash
import pairwise
import sketching

ROOT = Path(__file__).parents[1]
MODULES = [hmoh, kernels, metrics, lsh, mihash, pairwise, sketching, baselines]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_in_docstrings_run(module):
    failed, tried = doctest.testmod(module)
    assert tried > 0 and failed == 0


def test_recipes_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    centers = 3 * rng.normal(size=(4, 20))
    y, y_new, labels = rng.integers(4, size=2000), rng.integers(4, size=500), rng.integers(4, size=300)
    bits = (rng.random((4, 16)) > 0.5)[labels] ^ (rng.random((300, 16)) < 0.1)
    codes = np.packbits(bits, axis=1, bitorder="little")
    names = {
        "X": centers[y] + rng.normal(size=(2000, 20)),
        "y": y,
        "X_new": centers[y_new] + rng.normal(size=(500, 20)),
        "y_new": y_new,
        "query_codes": codes[:50],
        "db_codes": codes[50:],
        "query_labels": labels[:50],
        "db_labels": labels[50:],
    }
    failed, tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False, globs=names)
    assert tried >= 10 and failed == 0


def test_environment_yml_has_the_bounds_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {f"python{project['requires-python']}", *project["dependencies"]}
    for extra in project["optional-dependencies"].values():
        wanted |= set(extra)
    dask = next(name for name in wanted if name.startswith("dask"))  # conda has no extras: two packages instead
    wanted = wanted - {dask} | {dask.replace("[distributed]", ""), dask.replace("dask[distributed]", "distributed")}
    listed = set(re.findall(r"^  - (.+)$", (ROOT / "environment.yml").read_text(), re.MULTILINE))
    assert listed - {"make"} == wanted


def test_every_bound_has_a_tested_version():
    bounds = re.findall(r'"([A-Za-z0-9_-]+)[\[>]', (ROOT / "pyproject.toml").read_text().split("[tool.")[0])
    pinned = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert {name.lower() for name in bounds} - {"setuptools"} <= pinned


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_mnist_split_is_the_papers(seed):
    mnist = datasets.load("mnist")
    stream, database, queries = datasets.split(mnist, seed)
    assert mnist.features.dtype == np.float32 and mnist.features.min() == 0 and mnist.features.max() == 1
    assert len(stream) == 20_000 and len(database) == 69_000 and len(queries) == 1_000
    assert np.array_equal(np.sort(np.concatenate([database, queries])), np.arange(70_000))  # so no query is in either
    assert np.array_equal(stream, database[:20_000])
    assert np.array_equal(np.bincount(mnist.labels[queries]), np.full(10, 100)) and queries.min() >= 60_000


@pytest.mark.slow
def test_split_follows_the_seed():
    mnist = datasets.load("mnist")
    first, again, other = (datasets.split(mnist, seed) for seed in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first.stream, other.stream) and not np.array_equal(first.queries, other.queries)


@pytest.mark.parametrize("damage", ["cut", "changed", "missing"])
def test_damaged_data_file_is_named_with_the_remedy(damage, tmp_path, monkeypatch):
    raw = bytearray((datasets.FOLDER / "mnist.npz").read_bytes())
    raw[5_000_000] ^= 1
    if damage != "missing":
        (tmp_path / "mnist.npz").write_bytes(raw[:-10] if damage == "cut" else raw)
    monkeypatch.setattr(datasets, "FOLDER", tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=r"mnist\.npz.*git checkout data/mnist\.npz"):
        datasets.load("mnist")


def test_unknown_data_set_is_refused():
    with pytest.raises(ValueError, match=r"no data set .minst.; pass .mnist"):
        datasets.load("minst")
