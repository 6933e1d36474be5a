"""Check that the examples in the documents run, and that the set-up files agree."""

import ast
import doctest
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from helpers import ROOT

import baselines
import study
from hmoh import HMOH
from kernels import RBF
from metrics import pack
from study import profile, protocol

# ---- examples ------------------------------------------------------------------------


def modules_with_examples():
    """Return the names of all modules whose docstrings have examples."""
    names = []
    for folder in ("", "baselines/", "study/", "tools/", "notebooks/", "notebooks/exercises/"):
        for path in sorted(ROOT.glob(f"{folder}*.py")):
            # _book is for Sphinx, and needs its packages.
            if ">>> " in path.read_text() and path.stem != "_book":
                name = f"{folder.removeprefix('notebooks/')}{path.stem}".replace("/", ".")
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


@pytest.mark.slow
def test_recipes_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = str(ROOT / "README.md")
    failed, tried = doctest.testfile(readme, module_relative=False)
    assert tried >= 10 and failed == 0


def test_the_first_snippet_of_the_readme_needs_numpy_and_numba_only():
    snippet = (ROOT / "README.md").read_text().split("```")[1]
    lines = re.findall(r"^>>> (from .+|mnist = .+|X, y = .+)$", snippet, re.MULTILINE)
    others = ("tqdm", "scipy", "sklearn", "matplotlib", "pandas", "h5py", "pooch", "joblib")
    script = f"import sys; sys.modules.update(dict.fromkeys({others})); {'; '.join(lines)}"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)
    assert len(lines) == 6


def test_the_plain_lines_of_the_readme_give_the_codes_of_hmoh():
    lines = (ROOT / "README.md").read_text().split("```python\n")[2].split("```")[0]
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=300)
    X = (rng.normal(size=(4, 8))[y] + rng.normal(size=(300, 8))).astype(np.float32)
    model = HMOH(16, RBF(30), random_state=0).fit(X, y)
    names = {"np": np, "X": X, "y": y, "new": X, "n_anchors": 30, "n_bits": 16}
    exec(lines, names | {"targets": model.targets_, "kernel": model.feature_map_}, names)
    assert (pack(names["codes"]) == model.transform(X)).all()


def test_the_example_of_contributing_shows_a_method_and_own_data(tmp_path, monkeypatch, capsys):
    text = (ROOT / "CONTRIBUTING.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(profile, "QUICK", True)  # one process
    monkeypatch.setattr(protocol, "RECORDS", tmp_path)
    with patch.dict(baselines.METHODS):
        exec(example, {"__name__": "__main__"})
    shown = capsys.readouterr().out
    for part in ("mAP on digits; mean", "\nOja ", r"\begin{tabular}", "\nOja &"):
        assert part in shown
    # Neither the paper's values nor its names stand beside own data.
    assert "(0." not in shown and "STAND-IN" not in shown and "MNIST" not in shown
    assert (tmp_path / "digits.png").stat().st_size > 10_000


# ---- the rooms of study --------------------------------------------------------------

STUDY = {path.stem: path for path in ROOT.glob("study/*.py") if path.stem != "__init__"}


def test_the_map_names_every_room_and_a_room_imports_only_rooms_before_it():
    order = re.findall(r"^    (\w+)  +\w", study.__doc__, re.MULTILINE)
    assert sorted(order) == sorted(STUDY)
    for name, path in STUDY.items():
        found = set()
        # What a function imports is needed by that function alone.
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.module == "study":
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module.startswith("study."):
                found.add(node.module.removeprefix("study."))
        assert found <= set(order[: order.index(name)]), f"{name} imports {found}"


def test_every_room_of_study_can_be_read_in_one_sitting():
    sizes = {name: len(path.read_text().splitlines()) for name, path in STUDY.items()}
    assert [name for name, size in sizes.items() if size >= 500] == []


def test_every_public_function_of_study_has_a_caller_outside_the_tests():
    folders = ("study", "notebooks", "notebooks/exercises/source", "tools", "data/make")
    used = Counter()
    for path in (path for folder in folders for path in ROOT.glob(f"{folder}/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Name | ast.Attribute):
                used[node.id if isinstance(node, ast.Name) else node.attr] += 1
    for path in ROOT.glob("notebooks/*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        code = "\n".join(line for cell in cells for line in cell["source"])
        used.update(re.findall(r"\w+", code))
    unused = []
    for room, path in STUDY.items():
        for node in ast.parse(path.read_text()).body:
            is_public = isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
            if is_public and not used[node.name]:
                unused.append(f"{room}.{node.name}")
    assert unused == []


# ---- documents and folders -----------------------------------------------------------

DOCUMENTS = ["README.md", "CONTRIBUTING.md", "data/README.md"]
DOCUMENTS += ["notebooks/README.md", "notebooks/exercises/README.md"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_relative_link_leads_to_a_file(name):
    path = ROOT / name
    # Code blocks may hold brackets that are no links.
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)", text)
    links += re.findall(r"""(?:src|href)=["']([^"']+)["']""", text)
    links = [link for link in links if not re.match(r"https?:|mailto:|#", link)]
    assert links or name != "README.md"
    for link in links:
        target, _, _ = link.partition("#")
        assert (path.parent / target).exists(), f"{name} links to {link}"


TOP_LEVEL = {
    *("hmoh.py", "kernels.py", "metrics.py", "ridge.py", "scaling.py"),
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
        # conda-forge has no sphinx-mathjax-offline; `make` installs these with pip.
        if name not in ("pages", "mutants", "classroom"):
            wanted |= set(extra)
    # Conda has no extras, so that dask[distributed] is two packages there.
    both = next(name for name in wanted if name.startswith("dask[distributed]"))
    bound = both.removeprefix("dask[distributed]")
    wanted.remove(both)
    wanted |= {f"dask{bound}", f"distributed{bound}"}
    environment = (ROOT / "environment.yml").read_text()
    listed = set(re.findall(r"^ +- (.+)$", environment, re.MULTILINE))
    assert listed - {"make", "pip", "pip:"} == wanted


def test_every_bound_has_a_tested_version():
    project = (ROOT / "pyproject.toml").read_text().split("[tool.")[0]
    bounds = re.findall(r'"([A-Za-z0-9_-]+)[\[>]', project)
    constraints = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.split("==")[0].lower() for line in constraints}
    assert {name.lower() for name in bounds} <= pinned


# ---- pip install . -------------------------------------------------------------------

# Run beside another project's modules of the same names, and with the JIT off, to be quick.
INSTALLED = """
import pickle
import kernels, metrics
assert kernels.WHOSE == metrics.WHOSE == "another project's"
import numpy as np
import hmoh
from hmoh import HMOH
from hmoh.kernels import RBF
from hmoh.metrics import hamming_histogram
from hmoh.ridge import HadamardRidge
assert hmoh.__path__ and HadamardRidge.__mro__[1] is hmoh.CodebookHasher
y = np.arange(80) % 4
X = np.eye(4)[y]
for make in (HMOH, HadamardRidge):
    model = make(n_bits=8, feature_map=RBF(8), random_state=0).fit(X, y)
    codes = pickle.loads(pickle.dumps(model)).transform(X)
    assert np.array_equal(codes, model.transform(X))
    assert hamming_histogram(codes, codes, y, y).mean_average_precision() == 1
"""
SCALING = """
import dask.array as da
import numpy as np
from hmoh.metrics import hamming_histogram
from hmoh.scaling import sharded_histogram
codes = np.arange(20, dtype=np.uint8)[:, None]
labels = np.arange(20) % 2
shards = (da.from_array(array, chunks=7) for array in (codes, labels))
task = sharded_histogram(codes, next(shards), labels, next(shards))
whole = hamming_histogram(codes, codes, labels, labels)
assert np.array_equal(task.compute(scheduler="synchronous").relevant, whole.relevant)
"""
NO_DASK = """
import sys
sys.modules["dask"] = None
try:
    import hmoh.scaling
except ImportError as error:
    print(error)
"""


def wheel_files():
    """Return {file of the clone: its place in the wheel}, as pyproject.toml says."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel = build["targets"]["wheel"]
    assert wheel.keys() == {"bypass-selection", "force-include"} and wheel["bypass-selection"]
    return wheel["force-include"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Give a folder as pip would fill it: hmoh, and another project's `kernels` and `metrics`."""
    folder = tmp_path_factory.mktemp("site")
    for source, target in wheel_files().items():
        (folder / target).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / source, folder / target)
    for name in ("kernels", "metrics"):
        (folder / f"{name}.py").write_text('WHOSE = "another project\'s"\n')
    return folder


def run_installed(folder, script):
    """Run a script that finds the modules of this folder only, and return what it printed."""
    env = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    env.pop("PYTHONPATH", None)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_of_the_top_level_is_installed_inside_hmoh():
    modules = {path.name for path in ROOT.glob("*.py")}
    wanted = {name: f"hmoh/{name}" for name in modules} | {"hmoh.py": "hmoh/__init__.py"}
    assert wheel_files() == wanted


def test_the_wheel_holds_one_package_and_nothing_else(tmp_path, monkeypatch):
    build = pytest.importorskip("hatchling.build", reason="hatchling is not installed")
    monkeypatch.chdir(ROOT)
    with zipfile.ZipFile(tmp_path / build.build_wheel(str(tmp_path))) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        assert names == set(wheel_files().values())
        for source, target in wheel_files().items():
            assert wheel.read(target) == (ROOT / source).read_bytes()


def test_the_sdist_holds_the_package_and_the_tests_of_the_core(tmp_path, monkeypatch):
    build = pytest.importorskip("hatchling.build", reason="hatchling is not installed")
    monkeypatch.chdir(ROOT)
    with tarfile.open(tmp_path / build.build_sdist(str(tmp_path))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    tests = {name for name in names if name.startswith("tests/test_")}
    wanted = [
        path
        for stem in ("hmoh", "kernels", "metrics", "ridge")
        for path in ROOT.glob(f"tests/test_{stem}*.py")
    ]
    assert tests == {f"tests/{path.name}" for path in wanted} and len(tests) >= 12
    assert set(wheel_files()) | {"tests/naive.py", "tests/helpers.py", "LICENSE"} <= names
    # What they import is there, or is a requirement.
    for name in tests:
        for node in ast.walk(ast.parse((ROOT / name).read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.module.partition(".")[0] not in ("baselines", "study", "tools"), name


def test_the_version_stands_in_one_place():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (ROOT / "CHANGELOG.md").read_text().count("\n## ") == 1
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text()
    for name in ("CITATION.cff", "README.md", "hmoh.py"):
        assert version not in (ROOT / name).read_text()


def test_the_terms_of_all_data_that_ship_are_in_one_table():
    text = (ROOT / "data" / "README.md").read_text()
    table = text.partition("\n| data | terms |")[2].partition("\n\n")[0]
    files = {path.name for path in ROOT.glob("data/*.npz")}
    assert set(re.findall(r"`([\w.]+\.npz)`", table)) == files
    # A tree with MNIST only leaves all others out.
    [command] = re.findall(r"^git archive .*$", text, re.MULTILINE)
    assert set(re.findall(r"':!data/([\w.]+)'", command)) == files - {"mnist.npz"}


def test_the_installed_package_works_beside_other_kernels_and_metrics(site):
    run_installed(site, INSTALLED)
    run_installed(site, SCALING)


def test_a_missing_dask_is_an_error_that_names_the_extra(site):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirement = project["optional-dependencies"]["scale"][0]
    message = run_installed(site, NO_DASK)
    assert '"scale"' in message and f'pip install "{requirement}"' in message
