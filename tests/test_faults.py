"""Faults on purpose: processes that are killed or interrupted, disks that are full.

tests/test_cache.py has those of numba's cache, tests/test_scaling.py kills a worker of Dask, and
tests/test_hmoh_live.py interrupts calls by a timer.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time

import nbformat
import pytest
from helpers import JIT_IS_OFF, ROOT

pytestmark = [
    pytest.mark.skipif(
        sys.platform == "win32", reason="Windows has neither these signals nor limits"
    ),
    pytest.mark.skipif(JIT_IS_OFF, reason="files and signals need one run of the tests"),
]
# From here on, no file can grow beyond so many bytes, as on a full disk. Without SIG_IGN the
# process would be killed. The output of these processes is a pipe, which has no limit.
LIMIT = """
import resource, signal
def limit(size):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
"""


def options(**more):
    """Return how a script of these tests is run."""
    # As in a terminal: a process in the background of a shell may ignore SIGINT.
    start = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    environment = os.environ | {"PYTHONPATH": path, "HMOH_PROFILE": "quick"}
    return start, {"env": environment, "cwd": ROOT, "text": True} | more


def run(script, *arguments):
    """Run a script to its end, and return what it printed."""
    start, how = options(capture_output=True)
    command = [sys.executable, "-c", start + script, *map(str, arguments)]
    done = subprocess.run(command, **how)
    assert done.returncode == 0, done.stderr
    return done.stdout


def begin(script, *arguments):
    """Start a script whose output goes into a pipe."""
    start, how = options(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    command = [sys.executable, "-c", start + script, *map(str, arguments)]
    return subprocess.Popen(command, **how)


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.communicate()


def leftovers(folder):
    """Return the names of temporary files and folders."""
    names = [path.name for path in folder.rglob("*")]
    return [name for name in names if name.endswith(".tmp") or ".writing-" in name]


# ---- models --------------------------------------------------------------------------

# A process that saves two models in turn is killed again and again.
KILLED_SAVES = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
from hmoh import HMOH
folder = Path(sys.argv[1])
path = folder / "model.npz"
X = np.random.default_rng(0).normal(size=(8, 400))
models = [HMOH(64, random_state=0).fit(X[:n], np.arange(n) % 4) for n in (4, 8)]
weights = {model.n_seen_: model.weights_ for model in models}
models[0].save(path)
rng = random.Random(0)
found = []
for _ in range(40):
    child = os.fork()
    if child == 0:
        while True:
            for model in models:
                model.save(path)
    time.sleep(rng.uniform(0.001, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    loaded = HMOH.load(path)
    assert np.array_equal(loaded.weights_, weights[loaded.n_seen_])
    found.append(loaded.n_seen_)
n_broken = 0
for temporary in folder.glob("*.tmp"):
    try:
        HMOH.load(temporary)
    except ValueError:
        n_broken += 1
assert [file.name for file in folder.glob("*.npz")] == ["model.npz"]
print(len(set(found)), n_broken)
"""


def test_a_save_that_is_killed_leaves_the_old_or_the_new_model(tmp_path):
    n_models, n_broken = map(int, run(KILLED_SAVES, tmp_path).split())
    # Both models were found. Some kills came in the middle of a file.
    assert n_models == 2
    assert n_broken > 0


FULL_SAVES = """
import sys
from pathlib import Path
import numpy as np
from hmoh import HMOH
folder = Path(sys.argv[1])
path = folder / "model.npz"
X = np.random.default_rng(0).normal(size=(8, 400))
y = np.arange(8) % 4
model = HMOH(64, random_state=0).partial_fit(X[:4], y[:4])
model.save(path)
old = path.read_bytes()
model.partial_fit(X[4:], y[4:])
weights = model.weights_
for size in (0, 100, 10_000, len(old) // 2, len(old) - 300, len(old) - 10):
    limit(size)
    try:
        model.save(path)
    except OSError as error:
        print(error)
    assert path.read_bytes() == old
    assert list(folder.iterdir()) == [path]
limit(resource.RLIM_INFINITY)
model.save(path)
assert np.array_equal(HMOH.load(path).weights_, weights)
"""


def test_a_full_disk_leaves_the_old_model_and_says_what_to_do(tmp_path):
    errors = run(LIMIT + FULL_SAVES, tmp_path).splitlines()
    assert len(errors) == 6
    for error in errors:
        for part in (str(tmp_path / "model.npz"), "too large", "free space"):
            assert part in error


# Send SIGINT at random times, and find the state between two calls. The calls are single samples,
# or one with many samples.
INTERRUPTED = """
import os, pickle, random, sys, threading, time
import numpy as np
from hmoh import HMOH
kind, n_threads = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 64)).astype(np.float32)
y = rng.integers(10, size=20_000)
first = HMOH(64, n_threads=n_threads, random_state=0).partial_fit(X[:100], y[:100] % 5)
before = pickle.dumps(first)

def calls(model):
    if kind == "fit":
        yield model.fit(X, y)
    elif kind == "block":
        yield model.partial_fit(X, y)
    else:
        for i in range(200):
            yield model.partial_fit(X[i : i + 1], y[i : i + 1])

def state(model):
    return {name: np.asarray(value).tobytes() for name, value in model._state().items()}

# All states that may be found, by the number of samples; the loops are compiled here.
states = {first.n_seen_: state(first)}
for model in calls(first):
    states[model.n_seen_] = state(model)
start = time.perf_counter()
list(calls(pickle.loads(before)))
duration = time.perf_counter() - start
moments = random.Random(1)
found = []
for _ in range(60):
    model = pickle.loads(before)
    # From a fiftieth of the time to five times as long, because the machine may be busy.
    delay = duration * 5 * 250 ** -moments.random()

    def send():
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    try:
        thread.start()
        list(calls(model))
        thread.join()
        time.sleep(1)
    except KeyboardInterrupt:
        pass
    thread.join()
    assert state(model) == states[model.n_seen_]
    found.append(model.n_seen_)
    # It learns on like a copy of it.
    copy = pickle.loads(pickle.dumps(model))
    for part in (model, copy):
        part.partial_fit(X[:7], y[:7])
    assert state(model) == state(copy)
print(*found)
"""


@pytest.mark.parametrize(("kind", "n_threads"), [("single", 1), ("block", 1), ("fit", 2)])
def test_a_sigint_finds_the_state_between_two_calls(kind, n_threads):
    found = [int(word) for word in run(INTERRUPTED, kind, n_threads).split()]
    assert len(found) == 60
    assert min(found) < max(found)
    if kind == "single":
        assert len(set(found)) > 3


# ---- kept runs -----------------------------------------------------------------------

# A comparison on a small set that is made up. Its records are kept in a folder.
COMPARISON = """
import sys
from pathlib import Path
import numpy as np
from study import datasets, protocol, tables
rng = np.random.default_rng(0)
y = rng.integers(8, size=700)
X = 2 * rng.normal(size=(8, 12))[y] + rng.normal(size=(700, 12))
data = datasets.Dataset(
    "mnist", X.astype(np.float32), y, np.arange(0), 40, 300, role="mnist"
)
protocol._data = lambda name: data
protocol.compile_method = lambda *method: None
protocol.RECORDS = Path(sys.argv[1])
records = protocol.compare(["LSH", "HCOH", "HMOH"], "mnist", [8, 16], range(8))
print(tables.table(records, "mAP"))
"""
N_RECORDS = 3 * 2 * 8


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return the table of a comparison that nothing disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    text = run(COMPARISON, folder)
    assert len(list(folder.glob("*.json"))) == N_RECORDS
    assert "HMOH" in text
    return text


def read_records(folder):
    return {path.name: json.loads(path.read_text()) for path in folder.glob("*.json")}


@pytest.mark.slow
def test_a_comparison_that_is_killed_goes_on_to_the_same_table(tmp_path, table):
    rng = random.Random(0)
    folder = tmp_path / "records"
    kept = {}
    for n_more in (1, 10):
        process = begin(COMPARISON, folder)
        deadline = time.monotonic() + 60
        needed = len(kept) + n_more
        while time.monotonic() < deadline and len(read_records(folder)) < needed:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.02))
        kill(process)
        found = read_records(folder)
        assert needed <= len(found) < N_RECORDS
        assert kept.items() <= found.items()
        kept = found
    assert run(COMPARISON, folder) == table
    found = read_records(folder)
    assert len(found) == N_RECORDS
    # What was finished was not done again.
    assert kept.items() <= found.items()


@pytest.mark.slow
def test_two_comparisons_at_once_give_the_same_table(tmp_path, table):
    folder = tmp_path / "records"
    processes = [begin(COMPARISON, folder) for _ in range(2)]
    for process in processes:
        printed, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert printed == table
    assert len(read_records(folder)) == N_RECORDS
    assert leftovers(folder) == []
    assert run(COMPARISON, folder) == table


FULL_RECORDS = """
import sys
from pathlib import Path
from study import datasets, protocol
protocol.RECORDS = folder = Path(sys.argv[1])
job = {"method": "LSH", "dataset": "mnist", "n_bits": 8, "seed": 0}
n_runs = []

def long_record(**job):
    n_runs.append(job)
    return {"mAP": 0.5, "curve": [0.5] * 1000}

protocol.run = long_record
limit(3000)
try:
    protocol._kept_run(job)
except OSError as error:
    print(error)
assert list(folder.iterdir()) == []
limit(resource.RLIM_INFINITY)
record = protocol._kept_run(job)
assert protocol._kept_run(job) == record
assert len(n_runs) == 2
(path,) = folder.iterdir()
print(path)
"""


def test_a_full_disk_keeps_no_part_of_a_record(tmp_path):
    error, path = run(LIMIT + FULL_RECORDS, tmp_path).splitlines()
    for part in (path, "too large", "free 5,"):
        assert part in error


# ---- notebooks -----------------------------------------------------------------------

SOURCES = [
    "numbers = [n * n for n in range(5)]\nprint(numbers)",
    """\
import io, random
from IPython.display import Image as Shown
from PIL import Image
file = io.BytesIO()
pixels = random.Random(0).randbytes(300 * 100)
Image.frombytes("L", (300, 100), pixels).save(file, "PNG")
Shown(file.getvalue())""",
]
RUN_NOTEBOOK = """
import sys
from pathlib import Path
from tools import run_notebooks
path = Path(sys.argv[1])
run_notebooks.BUILD = path.parent / "build"
sys.exit(run_notebooks.main(["--update", str(path)]))
"""


def write_notebook(folder):
    """Write a notebook without outputs whose second cell draws a figure; return its path."""
    folder.mkdir()
    cells = [nbformat.v4.new_code_cell(source) for source in SOURCES]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    cells[1].metadata["tags"] = ["figure:noise"]
    path = folder / "01_small.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.mark.slow
def test_a_notebook_run_that_is_killed_leaves_the_old_or_the_new_notebook(tmp_path):
    calm = write_notebook(tmp_path / "calm")
    path = write_notebook(tmp_path / "killed")
    old = path.read_bytes()
    start = time.monotonic()
    run(RUN_NOTEBOOK, calm)
    duration = time.monotonic() - start
    new = calm.read_bytes()
    assert old != new
    assert "[0, 1, 4, 9, 16]" in new.decode()
    process = begin(RUN_NOTEBOOK, path)
    time.sleep(random.Random().uniform(0.5, 1) * duration)
    kill(process)
    assert path.read_bytes() in (old, new)
    nbformat.validate(nbformat.read(path, as_version=4))
    run(RUN_NOTEBOOK, path)
    assert path.read_bytes() == new
    figures = [folder / "figures" / "noise.png" for folder in (calm.parent, path.parent)]
    assert figures[0].read_bytes() == figures[1].read_bytes()


# Kill a process at each replacement of a file, before or after it. The notebook is not run, because
# that takes long: an executed one is read.
KILLED_WRITES = """
import os, signal, sys
from pathlib import Path
import nbformat
from tools import run_notebooks
path = Path(sys.argv[1])
run_notebooks.BUILD = path.parent / "build"
run_notebooks.run = lambda path: nbformat.read(sys.argv[2], as_version=4)
old = path.read_bytes()
new = Path(sys.argv[2]).read_bytes()
figure = path.parent / "figures" / "noise.png"
replace = os.replace

def update_and_die(number, when):
    done = []

    def killing(source, target):
        is_last = len(done) == number
        if is_last and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        done.append(target)

    os.replace = killing
    run_notebooks.main(["--update", str(path)])

for number in range(3):
    for when in ("before", "after"):
        path.write_bytes(old)
        figure.write_bytes(b"old")
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            update_and_die(number, when)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL
        kinds = {old: "old", new: "new", b"old": "old", b"had" * 8000: "new"}
        print(kinds[path.read_bytes()], kinds[figure.read_bytes()])
"""
FULL_NOTEBOOKS = """
import sys
from pathlib import Path
import nbformat
from tools import run_notebooks
path = Path(sys.argv[1])
run_notebooks.BUILD = path.parent / "build"
run_notebooks.run = lambda path: nbformat.read(sys.argv[2], as_version=4)
old = path.read_bytes()
figure = path.parent / "figures" / "noise.png"
for size in (0, 10_000):
    limit(size)
    assert run_notebooks.main(["--update", str(path)]) == 1
    assert path.read_bytes() == old
    assert figure.read_bytes() == b"old"
# Now the notebook has room, and the figure has not.
limit(10_000)
run_notebooks.figures = lambda notebook: {"noise.png": b"new" * 8000}
try:
    run_notebooks.update(path, nbformat.v4.new_notebook())
except OSError as error:
    print(error)
assert path.read_bytes() != old
assert figure.read_bytes() == b"old"
"""


@pytest.fixture
def executed(tmp_path):
    """Give a notebook with an old figure, and the same notebook with outputs."""
    path = write_notebook(tmp_path / "notebooks")
    notebook = nbformat.read(path, as_version=4)
    # Any bytes do, because nothing reads the picture here.
    picture = nbformat.v4.new_output("display_data", {"image/png": "aGFk" * 8000})
    notebook.cells[1].outputs = [picture]
    target = tmp_path / "executed.ipynb"
    nbformat.write(notebook, target)
    (path.parent / "figures").mkdir()
    (path.parent / "figures" / "noise.png").write_bytes(b"old")
    return path, target


def test_each_file_of_a_notebook_is_the_old_or_the_new_one(executed):
    found = run(KILLED_WRITES, *executed).splitlines()
    # First comes the executed notebook in build/, then the notebook and its figure.
    assert found[:3] == ["old old"] * 3
    assert found[3:] == ["new old", "new old", "new new"]


def test_a_full_disk_leaves_the_old_notebook_and_figure(executed):
    path, target = executed
    printed = run(LIMIT + FULL_NOTEBOOKS, path, target)
    assert printed.count("FAILED 01_small.ipynb: OSError") == 2
    assert printed.count("could not be written and is as before (File too large)") == 3
    assert f"{path.parent / 'figures' / 'noise.png'} could not be written" in printed
    assert leftovers(path.parent) == []
