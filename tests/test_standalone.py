"""Files that can be copied into another project, copied into an empty folder and used there.

hmoh.py, kernels.py and metrics.py work alone; where numba's cache fails, they say nothing.
"""

import ast
import importlib
import inspect
import os
import shutil
import subprocess
import sys

import pytest
from helpers import ROOT, needs_jit

OTHERS = {path.stem for path in ROOT.glob("*.py")} | {"baselines", "study", "tools"}
SCRIPTS = {
    "hmoh": """
import numpy as np
from hmoh import HMOH
y = np.arange(40) % 4
X = np.eye(4)[y]
model = HMOH(n_bits=4, random_state=0).fit(X, y)
bits = np.unpackbits(model.transform(X[:4]), axis=1, bitorder="little", count=4)
targets = [model.targets_[label] for label in range(4)]
assert np.array_equal(2 * bits.astype(int) - 1, targets)
model.save("model.npz")
loaded = HMOH.load("model.npz").partial_fit(X, y)
assert np.array_equal(loaded.weights_, model.partial_fit(X, y).weights_)
""",
    "kernels": """
import numpy as np
from kernels import RBF, UnitLength
X = np.random.default_rng(0).normal(size=(50, 4))
Z = UnitLength().fit_transform(X)
Z = RBF(n_anchors=5, center=True).fit_transform(Z)
assert Z.shape == (50, 5) and np.isfinite(Z).all()
rbf = RBF(n_anchors=5).fit(X)
assert np.allclose(rbf.transform(X[:1]), rbf.transform(X)[:1], atol=1e-5)
""",
    "metrics": """
import numpy as np
from metrics import hamming_histogram, mean_average_precision, nearest
codes = np.array([[0], [1], [7]], np.uint8)
labels = np.array([0, 0, 1])
histogram = hamming_histogram(codes, codes, labels, labels, n_bits=8)
assert histogram.items.sum() == 9
assert mean_average_precision(codes, codes, labels, labels) == 1
distances, indices = nearest(codes[:1], codes, 2)
assert indices.tolist() == [[0, 1]]
""",
}


def run(folder, script, **more):
    """Run a script in a folder, where it finds no module of this project but those in it."""
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | more
    env.pop("PYTHONPATH", None)
    env.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.split()


def imports(tree, inside=""):
    """Yield the top-level module of every import, and the name of the function around it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.split(".")[0], inside
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".")[0]
            yield "." * node.level + module, inside
        else:
            is_function = isinstance(node, ast.FunctionDef)
            yield from imports(node, node.name if is_function else inside)


@pytest.mark.parametrize("name", SCRIPTS)
def test_imports_numpy_numba_and_the_standard_library_only(name):
    found = set(imports(ast.parse((ROOT / f"{name}.py").read_text())))
    # Only scikit-learn itself calls this function.
    found.discard(("sklearn", "__sklearn_tags__"))
    modules = {module for module, _ in found}
    assert "numpy" in modules
    assert modules <= {"numpy", "numba"} | set(sys.stdlib_module_names)


@pytest.mark.parametrize(
    "files, ours",
    [("baselines/*.py", {"hmoh", "kernels", "ridge"}), ("scaling.py", {"hmoh", "metrics"})],
)
def test_other_files_import_no_more_of_this_project_than_is_copied_with_them(files, ours):
    modules = set()
    for path in ROOT.glob(files):
        modules |= {module for module, _ in imports(ast.parse(path.read_text()))}
    assert OTHERS & modules == ours


@pytest.mark.parametrize("name", SCRIPTS)
def test_works_alone_in_an_empty_folder(name, tmp_path):
    shutil.copy(ROOT / f"{name}.py", tmp_path)
    check = f"""
import importlib.util
for other in {sorted(OTHERS - {name})}:
    assert importlib.util.find_spec(other) is None, other
"""
    run(tmp_path, check + SCRIPTS[name], NUMBA_DISABLE_JIT="1")


@pytest.mark.parametrize("name", ["kernels", "metrics"])
def test_checks_of_what_is_given_are_called_as_those_of_hmoh(name):
    """Whoever copies two of the files need not learn two orders of arguments."""
    names = ["check_number", "check_choice"]
    public, ours = (vars(importlib.import_module(module)) for module in ("hmoh", name))
    own = {key for key in ours if key.lstrip("_").startswith(("check_number", "check_integer"))}
    own |= {key for key in ours if key.lstrip("_").startswith("check_choice")}
    assert own == set(names)
    for key in names:
        theirs = inspect.signature(public[key]).parameters
        mine = inspect.signature(ours[key]).parameters
        assert [*mine][:2] == [*theirs][:2] == ["value", "name"]
        for parameter in mine.values():
            assert parameter.default == theirs[parameter.name].default


# ---- numba's cache -------------------------------------------------------------------

# Something that compiles a loop of each file.
LOOPS = {
    "hmoh": "module.HMOH(4).fit(np.eye(3), np.arange(3))",
    "kernels": "module.RBF(2).fit(np.eye(3)).transform(np.eye(3)[:1])",
    "metrics": "module.nearest(np.eye(3, dtype=np.uint8), np.eye(3, dtype=np.uint8), 1)",
}


@needs_jit
@pytest.mark.parametrize("name", SCRIPTS)
def test_works_under_two_names(name, tmp_path):
    shutil.copy(ROOT / f"{name}.py", tmp_path)
    script = f"""
import importlib.util, sys
import numpy as np
for known_as in ({name!r}, "another"):
    spec = importlib.util.spec_from_file_location(known_as, "{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[known_as] = module
    spec.loader.exec_module(module)
    {LOOPS[name]}
"""
    for _ in range(2):  # the second time there is a cache
        run(tmp_path, script)
    assert list(tmp_path.glob("__pycache__/*.nbi"))


@needs_jit
@pytest.mark.parametrize("name", SCRIPTS)
def test_works_where_numba_finds_no_folder_for_its_cache(name, tmp_path):
    # Code that is in no file has no cache folder. Numba refuses to cache it, as it does in a
    # read-only installation. (root may write into a read-only folder.)
    script = f"""
import sys, types
import numpy as np
code = compile(open({str(ROOT / name) + ".py"!r}).read(), "<nowhere>", "exec")
sys.modules[{name!r}] = module = types.ModuleType({name!r})
exec(code, vars(module))
{LOOPS[name]}
"""
    run(tmp_path, script)
    assert not list(tmp_path.glob("**/*.nbi"))


# Two loops, one of which calls the other. The number is another one in a newer version.
PAIR = """
from hmoh import compiled

@compiled
def inner(x):
    return x + {number}

@compiled
def outer(x):
    return 2 * inner(x)
"""
# Do something between import and first call, then print the results, and how many of the two loops
# came from the cache.
CALL = """
import os, shutil, signal, sys
import loops
{prepare}
print(loops.outer(10), loops.inner(10.0))
print(sum(sum(loop.stats.cache_hits.values()) for loop in (loops.outer, loops.inner)))
"""
FULL = """
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
"""


def call(folder, prepare="", number=None):
    """Call the loops in a new process: return results, and the number of loops from the cache."""
    if number is not None:
        shutil.copy(ROOT / "hmoh.py", folder)
        (folder / "loops.py").write_text(PAIR.format(number=number))
    return " ".join(run(folder, CALL.format(prepare=prepare)))


def cut(folder, suffix):
    for path in folder.glob(f"__pycache__/loops.*{suffix}"):
        path.write_bytes(path.read_bytes()[:500] if suffix == ".nbc" else b"")


@needs_jit
def test_a_cache_is_used_and_a_damaged_one_costs_a_compilation_without_a_word(tmp_path):
    assert call(tmp_path, number=1) == "22 11.0 0"
    assert call(tmp_path) == "22 11.0 2"
    for suffix in (".nbc", ".nbi"):
        cut(tmp_path, suffix)
        assert call(tmp_path) == "22 11.0 0"
    # The damaged index was removed, and the next call writes a new one.
    call(tmp_path)
    assert call(tmp_path) == "22 11.0 2"


@needs_jit
def test_a_loop_of_another_file_is_compiled_and_cached(tmp_path, monkeypatch):
    (tmp_path / "loops.py").write_text(PAIR.format(number=1))
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.import_module("loops").outer(10) == 22
    monkeypatch.delitem(sys.modules, "loops")
    assert len(list(tmp_path.glob("__pycache__/*.nbc"))) == 2


@needs_jit
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit for the size of a file")
@pytest.mark.parametrize(
    "prepare", [FULL, "shutil.rmtree('__pycache__'); open('__pycache__', 'w').close()"]
)
def test_a_full_disk_or_a_folder_that_is_gone_costs_a_compilation(prepare, tmp_path):
    assert call(tmp_path, prepare, number=1) == "22 11.0 0"


@needs_jit
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit for the size of a file")
def test_code_of_an_older_source_is_never_run(tmp_path):
    assert call(tmp_path, number=1) == "22 11.0 0"
    # The new index has room, the new code has not.
    assert call(tmp_path, FULL, number=5) == "30 15.0 0"
    assert call(tmp_path) == "30 15.0 0"
