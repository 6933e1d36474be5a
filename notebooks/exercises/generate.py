"""Make the notebooks of all exercises from their sources.

    python notebooks/exercises/generate.py [--run] [NN ...]
    python notebooks/exercises/generate.py --zip build/student.zip
    python notebooks/exercises/generate.py --classroom build/classroom

Edit only source/NN_name.py. It has task, hints, solution and checks in cells. A cell begins with
one of these lines:

    # %% [markdown]                  text, every line a comment
    # %%                             code that is given
    # %% solution NAME               code to write
    # %% check NAME POINTS           code that tests it, for points
    # %% [markdown] answer NAME POINTS    text to write, graded by hand

A solution or an answer is hidden between ### BEGIN SOLUTION and ### END SOLUTION. In text these
markers are <!-- comments -->. What a check tries only while grading, so that an answer which lists
the right values fails, is hidden between ### BEGIN HIDDEN TESTS and ### END HIDDEN TESTS.

A source makes two notebooks: student/NN_name.ipynb without the solutions, and
solution/NN_name.ipynb, executed. Both have nbgrader's cell metadata. The second is what nbgrader
takes as source. A solution whose cells did not change keeps its outputs, so that a second run
changes no file. --run executes all of them again.

--zip writes what students unpack and work in without the clone; --classroom the folders of a course
for nbgrader. Neither needs Jupyter.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"
HIDDEN = re.compile(r"^ *### BEGIN HIDDEN TESTS\n(?:.*\n)*? *### END HIDDEN TESTS\n", re.MULTILINE)
TO_WRITE = ("solution", "answer")
GRADED = ("check", "answer")
HEADER = re.compile(
    r"# %%(?P<text> \[markdown\])?"
    r"(?: (?P<kind>solution|check|answer) (?P<name>[\w-]+)(?: (?P<points>\d+))?)?"
)

# What students get beside their notebooks and the modules that these import.
SHIPPED = (
    *("data/mnist.npz", "data/paper_results.json", "data/README.md", "LICENSE"),
    *("notebooks/LICENSE", "notebooks/01_method.ipynb", "notebooks/figures/walking_code.gif"),
    *(f"notebooks/exercises/{name}.md" for name in ("glossary", "letters", "quiz")),
    "notebooks/exercises/check_environment.py",
)
ZIP_README = """# Exercises: online hashing

You need Python 3.11 or newer. In this folder:

    python -m venv .venv
    .venv/bin/pip install -r requirements.txt       # on Windows: .venv\\Scripts\\pip
    .venv/bin/python notebooks/exercises/check_environment.py       # prints OK, or what to do
    .venv/bin/jupyter lab

With conda: `conda env create -f environment.yml`, `conda activate hmoh-exercises`, `jupyter lab`.

Read `notebooks/01_method.ipynb`, which shows the method in pictures. Then open
`notebooks/exercises/student/01_sylvester.ipynb`, and leave the notebooks in that folder.
`notebooks/exercises` also has a glossary, a table of the letters and a quiz. Open `draw.html` in a
browser to draw a digit, see its code, and teach the model a symbol.

Where a text mentions other notebooks or the clone, it means the whole project. You can do all
exercises without it. Code is under the MIT licence, texts under CC BY 4.0 (`LICENSE`,
`notebooks/LICENSE`); MNIST has its own terms (`data/README.md`, which describes other files too).
"""
# nbgrader runs every cell in a kernel that gets the environment of this process.
CLASSROOM_CONFIG = """import os

os.environ["PYTHONPATH"] = {folder!r}  # where start.py is
os.environ["HMOH_PROFILE"] = "quick"
c = get_config()
c.CourseDirectory.course_id = "hashing"
c.CourseDirectory.root = os.path.dirname(os.path.abspath(__file__))
c.ExecutePreprocessor.timeout = 300
c.Execute.timeout = 300
"""


class Cell(NamedTuple):
    """A cell of a source. ``kind`` is "" for text that is only read and code that is given."""

    is_text: bool
    kind: str
    name: str
    points: int
    source: str


def read_source(path: Path) -> list[Cell]:
    """Return the cells of a source in percent format."""
    cells: list[Cell] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        place = f"{path.name}, line {number}: {line!r}"
        if line.startswith("# %%"):
            cells.append(_new_cell(line, place))
            continue
        if not cells:
            raise ValueError(f"{place} stands before the first cell; begin with `# %%`.")
        last = cells[-1]
        if last.is_text:
            if line not in ("", "#") and not line.startswith("# "):
                raise ValueError(f"{place} is text; begin it with `# `.")
            line = line[2:]
        cells[-1] = last._replace(source=last.source + line + "\n")
    return [cell._replace(source=cell.source.strip("\n")) for cell in cells]


def _new_cell(line: str, place: str) -> Cell:
    header = HEADER.fullmatch(line)
    if header is None:
        raise ValueError(f"{place} is not a header; see the top of generate.py.")
    return Cell(
        is_text=bool(header["text"]),
        kind=header["kind"] or "",
        name=header["name"] or "",
        points=int(header["points"] or 0),
        source="",
    )


def without_solution(cell: Cell) -> Cell:
    """Return the cell as a student gets it."""
    if cell.kind == "check":
        cell = cell._replace(source=HIDDEN.sub("", cell.source))
    stub = ["# YOUR CODE HERE", 'raise NotImplementedError("not answered yet")']
    if cell.is_text:
        stub = ["*Your answer here.*"]
    kept = []
    inside = False
    n_hidden = 0
    for line in cell.source.split("\n"):
        if BEGIN in line:
            if inside or cell.kind not in TO_WRITE:
                raise ValueError(
                    f"{line!r} stands inside another solution, or in a cell that is not one; "
                    f"put it into a cell of kind solution or answer, after {END}."
                )
            inside = True
            n_hidden += 1
            indent = line[: len(line) - len(line.lstrip())]
            kept += [indent + part for part in stub]
        elif END in line:
            inside = False
        elif not inside:
            kept.append(line)
    if inside or (cell.kind in TO_WRITE and n_hidden == 0):
        raise ValueError(f"cell {cell.name!r} needs {BEGIN} and {END}.")
    return cell._replace(source="\n".join(kept))


def notebook(number: str, cells: list[Cell]) -> dict:
    """Return a notebook (nbformat 4.5) of these cells, not executed."""
    made = []
    for place, cell in enumerate(cells):
        entry = {
            "cell_type": "markdown" if cell.is_text else "code",
            "id": f"exercise-{number}-{place:02d}",
            "metadata": {},
            "source": cell.source.splitlines(keepends=True),
        }
        if cell.kind:
            entry["metadata"]["nbgrader"] = _grading(number, cell)
        if cell.kind == "check":
            # Folded. A check is long, and may tell how the task can be solved.
            entry["metadata"]["jupyter"] = {"source_hidden": True}
        if not cell.is_text:
            entry["execution_count"] = None
            entry["outputs"] = []
        made.append(entry)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _grading(number: str, cell: Cell) -> dict:
    """Return nbgrader's metadata of a cell."""
    grading = {
        "cell_type": "markdown" if cell.is_text else "code",
        "grade": cell.kind in GRADED,
        "grade_id": f"{number}-{cell.kind}-{cell.name}",
        "locked": cell.kind == "check",
        "schema_version": 3,
        "solution": cell.kind in TO_WRITE,
        "task": False,
    }
    if cell.kind in GRADED:
        grading["points"] = cell.points
    return grading


def without_outputs(given: dict) -> dict:
    """Return the same notebook before it is executed."""
    cells = []
    for cell in given["cells"]:
        if cell["cell_type"] == "code":
            cell = cell | {"outputs": [], "execution_count": None}
        cells.append(cell)
    return given | {"cells": cells}


def is_executed(path: Path, solution: dict) -> bool:
    """Tell whether a file holds this notebook with the outputs of a complete run."""
    if not path.exists():
        return False
    kept = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    if any(cell["execution_count"] is None for cell in code):
        return False
    return without_outputs(kept) == solution


def to_text(made: dict) -> str:
    """Return the notebook as the text of its file."""
    return json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def generate(path: Path) -> tuple[dict, dict]:
    """Return the student's notebook and the solution of a source, not executed."""
    number = path.name[:2]
    cells = read_source(path)
    visible = [without_solution(cell) for cell in cells]
    return notebook(number, visible), notebook(number, cells)


def execute(path: Path, solution: dict) -> None:
    """Write the solution, run it, and write it again with its outputs."""
    # Only this function needs Jupyter, and the folder of the clone on the path.
    sys.path.insert(0, str(ROOT))
    import nbformat

    from tools.run_notebooks import run

    path.write_text(to_text(solution), encoding="utf-8")
    executed = json.loads(nbformat.writes(run(path)))
    executed["metadata"] = solution["metadata"]
    path.write_text(to_text(executed), encoding="utf-8")


def imported(source: str, package: str = "") -> set[Path]:
    """Return the files of the clone that a module's source imports, each with its package."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = f"{package}.{node.module}" if node.level else node.module
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    folders = (ROOT, ROOT / "notebooks")
    places = [folder / name.replace(".", "/") for folder in folders for name in names]
    files = [place.with_suffix(".py") for place in places]
    files += [folder / "__init__.py" for place in places for folder in (place, place.parent)]
    return {file for file in files if file.is_file()}


def code_of(path: Path) -> str:
    """Return the code of a script or notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def write_zip(path: Path) -> None:
    """Write all that students need: notebooks, the modules that these import, data, packages."""
    notebooks = [*(HERE / "student").glob("*.ipynb"), ROOT / "notebooks" / "01_method.ipynb"]
    new = set().union(*(imported(code_of(notebook)) for notebook in notebooks))
    modules = set()
    while new:
        modules |= new
        new = set().union(*(imported(code_of(file), file.parent.name) for file in new)) - modules
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    packages = project["dependencies"] + project["optional-dependencies"]["notebooks"]
    lines = ["name: hmoh-exercises", "channels: [conda-forge]", "dependencies:"]
    lines += [f"  - {package}" for package in ["python>=3.11", *packages]]
    texts = {
        "README.md": ZIP_README,
        "requirements.txt": "\n".join(packages) + "\n",
        "environment.yml": "\n".join(lines) + "\n",
    }
    files = {*modules, *notebooks, *(ROOT / name for name in SHIPPED)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(files):
            archive.write(file, f"hmoh-exercises/{file.relative_to(ROOT).as_posix()}")
        for name, text in texts.items():
            archive.writestr(f"hmoh-exercises/{name}", text)
        page = ROOT / "build" / "draw.html"
        if page.exists():  # `make student-zip` makes it first
            archive.write(page, "hmoh-exercises/draw.html")


def write_classroom(folder: Path) -> None:
    """Write a course for nbgrader: what to hand out and its source, one assignment an exercise."""
    for path in sorted((HERE / "source").glob("[0-9][0-9]_*.py")):
        student, solution = generate(path)
        for kind, made in (("release", student), ("source", solution)):
            place = folder / kind / path.stem / f"{path.stem}.ipynb"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(to_text(made), encoding="utf-8")
    config = CLASSROOM_CONFIG.format(folder=str(ROOT / "notebooks"))
    (folder / "nbgrader_config.py").write_text(config, encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Make the notebooks of the exercises that are named, or of all; or what a class gets."""
    if arguments[:1] == ["--zip"]:
        path = Path(arguments[1])
        write_zip(path)
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
        return
    if arguments[:1] == ["--classroom"]:
        write_classroom(Path(arguments[1]))
        print(f"{arguments[1]}: see notebooks/exercises/teachers.md")
        return
    run_all = "--run" in arguments
    wanted = [name for name in arguments if name != "--run"]
    for folder in ("student", "solution"):
        (HERE / folder).mkdir(exist_ok=True)
    for path in sorted((HERE / "source").glob("[0-9][0-9]_*.py")):
        if wanted and path.name[:2] not in wanted:
            continue
        student, solution = generate(path)
        student_path = HERE / "student" / f"{path.stem}.ipynb"
        student_path.write_text(to_text(student), encoding="utf-8")
        solution_path = HERE / "solution" / f"{path.stem}.ipynb"
        if run_all or not is_executed(solution_path, solution):
            print(f"running {path.stem} ...", flush=True)
            execute(solution_path, solution)
        print(f"{path.stem}: student and solution are up to date", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
