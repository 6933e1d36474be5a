"""Check that the examples in the documents run, and that the set-up files agree."""

import doctest
import importlib
import re
import subprocess
import tomllib

import numpy as np
import pytest
from helpers import ROOT

# ---- examples ------------------------------------------------------------------------


def modules_with_examples():
    """Return the names of all modules whose docstrings have examples."""
    names = []
    folders = ("", "baselines/", "study/", "tools/")
    for folder in folders:
        for path in sorted(ROOT.glob(f"{folder}*.py")):
            if ">>> " in path.read_text():
                name = f"{folder}{path.stem}".replace("/", ".")
                names.append(name.removesuffix(".__init__"))
    return names


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_in_docstrings_run(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0 and failed == 0


def test_every_method_has_an_example():
    baselines = {path.stem for path in ROOT.glob("baselines/*.py")} - {"__init__"}
    wanted = {"hmoh", "kernels", "metrics", "baselines", "study.tables"}
    wanted |= {f"baselines.{name}" for name in baselines}
    assert len(baselines) >= 7
    assert wanted <= set(modules_with_examples())


def test_recipes_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    centers = 3 * rng.normal(size=(4, 20))
    y = rng.integers(4, size=2000)
    y_new = rng.integers(4, size=500)
    labels = rng.integers(4, size=300)
    code_of_class = rng.random((4, 16)) > 0.5
    is_wrong = rng.random((300, 16)) < 0.1
    bits = code_of_class[labels] ^ is_wrong
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
        "qB": 2.0 * bits[:50] - 1,
        "rB": 2.0 * bits[50:] - 1,
        "queryL": np.eye(4)[labels[:50]],
        "retrievalL": np.eye(4)[labels[50:]],
    }
    readme = str(ROOT / "README.md")
    failed, tried = doctest.testfile(readme, module_relative=False, globs=names)
    assert tried >= 10 and failed == 0


# ---- documents and folders -----------------------------------------------------------

DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "notebooks/README.md",
    "data/README.md",
    "notebooks/exercises/README.md",
]


def relative_links(text):
    """Return the targets of Markdown links and HTML images, without those to the web."""
    # Code blocks may hold brackets that are no links.
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)", text)
    links += re.findall(r"""(?:src|href)=["']([^"']+)["']""", text)
    return [link for link in links if not re.match(r"https?:|mailto:|#", link)]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_relative_link_leads_to_a_file(name):
    path = ROOT / name
    for link in relative_links(path.read_text()):
        target, _, _ = link.partition("#")
        assert (path.parent / target).exists(), f"{name} links to {link}"


def test_links_are_found():
    text = "[a](b.md#part) ![c](d.png) [e](https://f.g) [h](#i) <img src='j.png'>"
    assert relative_links(text) == ["b.md#part", "d.png", "j.png"]
    assert len(relative_links((ROOT / "README.md").read_text())) >= 5


TOP_LEVEL = {
    *("hmoh.py", "kernels.py", "metrics.py", "scaling.py"),
    *("baselines", "study", "tools", "notebooks", "data", "tests"),
    *("environment.yml", "pyproject.toml", "constraints.txt", "Makefile"),
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"),
    *("CITATION.cff", "LICENSE"),
}


def test_the_top_level_stays_small():
    command = ["git", "ls-files"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if listed.returncode != 0 or not listed.stdout:
        pytest.skip("this is not a git checkout")
    names = {line.split("/")[0].strip('"') for line in listed.stdout.splitlines()}
    visible = {name for name in names if not name.startswith(".")}
    assert visible - TOP_LEVEL == set()


# ---- set-up files --------------------------------------------------------------------


def test_environment_yml_has_the_bounds_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {f"python{project['requires-python']}", *project["dependencies"]}
    for name, extra in project["optional-dependencies"].items():
        # conda-forge has no sphinx-mathjax-offline.
        if name != "pages":
            wanted |= set(extra)
    # Conda has no extras, so that dask[distributed] is two packages there.
    both = next(name for name in wanted if name.startswith("dask[distributed]"))
    bound = both.removeprefix("dask[distributed]")
    wanted.remove(both)
    wanted |= {f"dask{bound}", f"distributed{bound}"}
    environment = (ROOT / "environment.yml").read_text()
    listed = set(re.findall(r"^  - (.+)$", environment, re.MULTILINE))
    assert listed - {"make"} == wanted


def test_every_bound_has_a_tested_version():
    project = (ROOT / "pyproject.toml").read_text().split("[tool.")[0]
    bounds = re.findall(r'"([A-Za-z0-9_-]+)[\[>]', project)
    constraints = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.split("==")[0].lower() for line in constraints}
    assert {name.lower() for name in bounds} - {"setuptools"} <= pinned
