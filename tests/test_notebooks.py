"""Check the notebooks of the clone, and the tool that runs them."""

import base64
import importlib.util
import io
import os
import re
import runpy
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image

from baselines import METHODS
from study.style import look_of
from tools import run_notebooks

ROOT = Path(__file__).parents[1]
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))
README = (ROOT / "notebooks" / "README.md").read_text()
every_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook):
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def headings(notebook):
    found = (re.findall(r"^#+ (.+)$", cell.source, re.MULTILINE) for cell in notebook.cells)
    return [heading for cell in found for heading in cell]


# ---- the notebooks of the clone ------------------------------------------------------


@every_notebook
def test_committed_notebook_is_a_run_in_the_paper_profile(path):
    notebook = nbformat.read(path, as_version=4)
    assert [cell.id for cell in notebook.cells] == [
        f"cell-{i:02d}" for i in range(len(notebook.cells))
    ]
    assert notebook.metadata.get("hmoh_profile") == "paper", "run make notebooks-update"


EXERCISES = sorted((ROOT / "notebooks" / "exercises").glob("s*/*.ipynb"))


@pytest.mark.parametrize(
    "path", [*PATHS, *EXERCISES], ids=lambda path: f"{path.parent.stem}-{path.stem}"
)
def test_committed_notebook_is_whole_valid_and_small_and_names_no_place(path):
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    if path.parent.stem != "student":
        assert_whole(notebook)
    assert "widgets" not in notebook.metadata and path.stat().st_size < 500_000
    for output in outputs(notebook):  # pictures are base64, where anything may turn up
        for kind in run_notebooks.SUFFIXES:
            output.get("data", {}).pop(kind, None)
    folder = r"[^\"]*(?:/home/|/Users/|/root/|/tmp/|/work/|[A-Z]:\\\\Users)[^\"]*"
    text = nbformat.writes(notebook)
    assert re.findall(folder, text) == [] and str(ROOT) not in text


def assert_whole(notebook):
    """Check that all cells were run in order, without an error or a warning."""
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert [output for output in outputs(notebook) if output.output_type == "error"] == []
    assert [output.text for output in outputs(notebook) if output.get("name") == "stderr"] == []


def lines_of(cell):
    lines = (line.strip() for line in cell.source.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def test_notebooks_open_shortly_and_say_little_about_the_quick_profile():
    n_about_quick = 0
    for path in PATHS:
        cells = code_cells(nbformat.read(path, as_version=4))
        first = lines_of(cells[0])
        if path.stem == "00_quickstart":  # it is the one that is opened alone
            assert first[0] == "try:" and first[2:4] and "SystemExit" in first[3]
            first = [first[1], *first[4:]]
        assert first[0] == "import start" and len(first) <= 10, path.name
        about = r"\b(quick|QUICK|PROFILE|by_profile)\b"
        n_about_quick += sum(len(re.findall(about, cell.source)) for cell in cells)
    assert n_about_quick <= 44


@every_notebook
def test_what_was_found_is_said_in_three_bullets_and_six_numbers(path):
    opening = nbformat.read(path, as_version=4).cells[0].source
    box = "\n".join(re.findall(r"^> ?(.*)$", opening, re.MULTILINE))
    box = re.sub(r"\]\([^)]*\)", "]", box)
    assert box.startswith("**What we found.**")
    assert len([word for word in box.split() if re.search(r"\w", word)]) <= 80
    assert len(re.findall(r"(?<![\w.@])\d[\d.,]*", box)) <= 6
    assert len(re.findall(r"^- ", box, re.MULTILINE)) <= 3


def test_start_says_what_to_do_when_a_package_is_missing(monkeypatch):
    # Never "No module named ...", which sends students to another package of that name.
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(ImportError, match="numba is not found: start JupyterLab"):
        runpy.run_path(ROOT / "notebooks" / "start.py")


def test_the_quickstart_alone_says_in_one_line_how_to_get_the_modules(tmp_path):
    notebook = nbformat.read(ROOT / "notebooks" / "00_quickstart.ipynb", as_version=4)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", code_cells(notebook)[0].source]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    [line] = done.stderr.splitlines()
    assert done.returncode != 0 and "clone the repository" in line


def test_start_gives_matrix_products_one_core_or_all(tmp_path):
    script = "import start, threadpoolctl as t; print(t.threadpool_info()[0]['num_threads']); "
    script += "start.all_cores(); print(t.threadpool_info()[0]['num_threads'])"
    env = os.environ | {"PYTHONPATH": str(ROOT / "notebooks")}
    said = subprocess.check_output([sys.executable, "-c", script], cwd=tmp_path, env=env, text=True)
    assert said.split() == ["1", str(os.cpu_count())]


def test_readme_lists_every_notebook_once():
    assert re.findall(r"^\| \[(\w+)\]\(\1\.ipynb\) \|", README, re.MULTILINE) == [
        path.stem for path in PATHS
    ]


def test_readme_finds_every_table_and_figure_of_the_paper():
    row = r"^\| (Table|Figure)s? ([\d, ]+) \(.+\) \| \[(\w+)\]\(\3\.ipynb\) \| (.+) \|$"
    rows = re.findall(row, README, re.MULTILINE)
    numbers = {"Table": [], "Figure": []}
    for kind, listed, *_ in rows:
        numbers[kind] += map(int, listed.split(","))
    assert numbers == {"Table": list(range(1, 8)), "Figure": list(range(2, 32))}
    for kind, listed, name, section in rows:
        there = headings(nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4))
        assert section in there, f"{kind} {listed}: no section {section!r} in {name}"


@pytest.fixture(scope="module")
def executed(request):
    """Return a function path -> notebook executed in the quick profile and the file's bytes before.

    Two notebooks are executed at a time.
    """
    wanted = [
        item.callspec.params["path"]
        for item in request.session.items
        if item.name.startswith("test_runs_from")
    ]
    before = {path: path.read_bytes() for path in wanted}
    with (
        pytest.MonkeyPatch.context() as patch,
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
    ):
        patch.setenv("HMOH_PROFILE", "quick")
        futures = {
            path: pool.submit(run_notebooks.run, path)
            for path in wanted
            if path.stem != "13_scorecard"
        }

        def result(path):
            if path not in futures:
                wait(futures.values())  # the scorecard reads what the others keep
                futures[path] = pool.submit(run_notebooks.run, path)
            return futures[path].result(), before[path]

        yield result


@pytest.mark.slow
@every_notebook
def test_runs_from_a_clean_kernel_and_leaves_the_file(path, executed):
    notebook, before = executed(path)
    assert_whole(notebook)
    assert notebook.metadata["hmoh_profile"] == "quick" and path.read_bytes() == before


# ---- run_notebooks -------------------------------------------------------------------


def write(path, *sources, tags=()):
    cells = [new_code_cell(source, id=f"cell-{i:02d}") for i, source in enumerate(sources)]
    cells[-1].metadata["tags"] = list(tags)
    nbformat.write(new_notebook(cells=cells), path)
    return path


@pytest.mark.parametrize(
    "text, left",
    [
        ("\r  0%|   | 0/3\r100%|###| 3/3\n", None),
        ("\n", None),
        (
            "\r 50%|#  | 1/2\nUserWarning: look here\n\r100%|###| 2/2\n",
            "UserWarning: look here\n",
        ),
        ("UserWarning: look here\n", "UserWarning: look here\n"),
    ],
)
def test_bars_go_and_warnings_stay(text, left):
    kept = run_notebooks.tidy([new_output("stream", name="stderr", text=text)])
    assert [output.text for output in kept] == ([left] if left else [])


def test_pictures_are_lighter_and_keep_the_colours_of_thin_lines():
    figure, file = Figure(figsize=(6, 4), dpi=100), io.BytesIO()
    axes = figure.subplots()
    # Its shades take the colours of lines in other ways of choosing.
    grey = np.random.default_rng(0).random((40, 60))
    axes.imshow(grey, cmap="gray", alpha=0.4, extent=(0, 8, 0, 1), aspect="auto")
    for i, style in enumerate(map(look_of, METHODS)):
        axes.errorbar(np.arange(9), np.random.default_rng(i).random(9), 0.1, **style)
    figure.savefig(file, format="png")
    png = base64.b64encode(file.getvalue()).decode()
    lighter = run_notebooks.lighter(png)
    assert len(lighter) < len(png) and run_notebooks.lighter(lighter) == lighter
    before, after = (
        np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGB")).astype(int)
        for text in (png, lighter)
    )
    for style in map(look_of, METHODS):
        pixels = (before == [int(style["color"][i : i + 2], 16) for i in (1, 3, 5)]).all(axis=2)
        assert pixels.any() and np.abs(before[pixels] - after[pixels]).max() <= 4


def test_run_keeps_nothing_volatile(tmp_path, monkeypatch):
    monkeypatch.setenv("HMOH_PROFILE", "quick")
    path = write(
        tmp_path / "01_bars.ipynb",
        "import sys\nfrom tqdm import tqdm\nfor i in tqdm(range(3)): pass\nprint('done')",
        "print('one', flush=True)\nsys.stderr.write('two\\n')\n6 * 7",
    )
    notebook = run_notebooks.run(path)
    first, second = code_cells(notebook)
    assert [output.text for output in first.outputs] == ["done\n"]
    texts = [output.get("text", "42") for output in second.outputs]
    assert sorted(texts) == ["42", "one\n", "two\n"]
    assert all("execution" not in cell.metadata for cell in notebook.cells)
    assert set(notebook.metadata) == {"kernelspec", "language_info", "hmoh_profile"}
    assert notebook.metadata.hmoh_profile == "quick"
    assert notebook.metadata.language_info["name"] == "python"


PICTURE = """\
import base64, io
from IPython.display import Image as Shown
from PIL import Image
file = io.BytesIO()
Image.new("RGB", (20, 10), "blue").save(file, "PNG")
Shown(file.getvalue())"""


def test_update_writes_the_figures_of_tagged_cells(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run_notebooks, "BUILD", tmp_path / "build")
    path = write(tmp_path / "01_blue.ipynb", "print('silent')", PICTURE, tags=["figure:blue"])
    before = path.read_bytes()
    assert run_notebooks.main([str(path)]) == 0
    assert path.read_bytes() == before and not (tmp_path / "figures").exists()
    assert "silent" not in capsys.readouterr().out

    assert run_notebooks.main(["--update", str(path)]) == 0
    (figure,) = (tmp_path / "figures").iterdir()
    stored = nbformat.read(path, as_version=4).cells[1].outputs[0].data["image/png"]
    assert figure.name == "blue.png" and figure.read_bytes() == base64.b64decode(stored)
    with Image.open(figure) as picture:
        assert picture.size == (20, 10) and picture.mode == "P"


def test_a_failure_is_named_and_the_next_notebook_is_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run_notebooks, "BUILD", tmp_path / "build")
    bad = write(tmp_path / "01_bad.ipynb", "x = 0", "1 / x", "print('never')")
    good = write(tmp_path / "02_good.ipynb", "print('loud')\n1", tags=["print"])
    built = tmp_path / "build" / "notebooks"
    built.mkdir(parents=True)
    (built / "01_bad.ipynb").write_bytes(bad.read_bytes())  # of an earlier run
    before = bad.read_bytes(), good.read_bytes()
    missing = str(tmp_path / "03_missing.ipynb")
    assert run_notebooks.main(["--update", str(bad), missing, str(good)]) == 1
    said = capsys.readouterr().out
    assert said.count("01_bad.ipynb, cell 1 (cell-01): ZeroDivisionError: division by zero") == 2
    assert "03_missing.ipynb" in said and "2 failed" in said and "loud\n" in said
    assert [path.name for path in built.iterdir()] == ["02_good.ipynb"]
    # --update keeps whole runs only.
    assert bad.read_bytes() == before[0] and good.read_bytes() != before[1]


def test_a_dead_kernel_is_named_too(tmp_path):
    path = write(tmp_path / "01_dead.ipynb", "x = 0", "import os\nos._exit(1)")
    with pytest.raises(
        run_notebooks.NotebookError, match=r"01_dead\.ipynb, cell 1 \(cell-01\): .*died"
    ):
        run_notebooks.run(path)
