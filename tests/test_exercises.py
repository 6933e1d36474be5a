"""Check the exercises: their notebooks, their solutions, and that checks catch wrong answers."""

import ast
import functools
import json
import os
import re
import subprocess
import sys
import zipfile
from inspect import signature
from pathlib import Path
from typing import NamedTuple

import nbformat
import numba
import numpy as np
import pytest
from exercises import check_environment, generate
from exercises.checks import switched_off
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks" / "exercises"
SOURCES = sorted((FOLDER / "source").glob("*.py"))
each_exercise = pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)

# Answers to the checks of NN_name are in tests/answers/NN_name.py. A cell begins with one of
#     # %% wrong CHECK: PATTERN     the check fails with a message that matches PATTERN
#     # %% right CHECK: TITLE       the check passes
# and holds what a student writes instead of the solution. A cell of swap(OLD, NEW) is the last
# whole answer above it, with OLD replaced by NEW.
ANSWER = re.compile(r"# %% (?P<kind>wrong|right) (?P<check>[\w-]+): (?P<text>.+)")


class Answer(NamedTuple):
    """An answer of a student. ``text`` is a pattern of the message, or a title."""

    kind: str
    check: str
    text: str
    source: str


def answers_of(path):
    """Return the answers to an exercise."""
    text = (ROOT / "tests" / "answers" / path.name).read_text(encoding="utf-8")
    found = []
    whole = ""
    for cell in re.split(r"^(?=# %%)", text, flags=re.MULTILINE)[1:]:
        header, _, source = cell.partition("\n")
        if source.startswith("swap("):
            source = swapped(whole, source)
        else:
            whole = source
        found.append(Answer(*ANSWER.fullmatch(header).groups(), source))
    return found


def swapped(answer, swaps):
    """Return an answer with the texts of all calls swap(OLD, NEW) replaced."""
    for call in ast.parse(swaps).body:
        old, new = map(ast.literal_eval, call.value.args)
        assert answer.count(old) == 1, f"{old!r} is not there once:\n{answer}"
        answer = answer.replace(old, new)
    return answer


def parts_of(path, kind):
    return [cell for cell in generate.read_source(path) if cell.kind == kind]


# ---- files ---------------------------------------------------------------------------


def test_sources_are_numbered_and_each_has_its_two_notebooks():
    numbers = [path.name[:2] for path in SOURCES]
    assert numbers == [f"{i:02d}" for i in range(1, len(SOURCES) + 1)]
    for folder in ("student", "solution"):
        notebooks = sorted((FOLDER / folder).glob("*.ipynb"))
        assert [path.stem for path in notebooks] == [path.stem for path in SOURCES]


@each_exercise
def test_notebooks_are_what_the_source_makes(path):
    student, solution = generate.generate(path)
    remedy = "run `python notebooks/exercises/generate.py`"
    text = (FOLDER / "student" / f"{path.stem}.ipynb").read_text(encoding="utf-8")
    assert text == generate.to_text(student), remedy
    text = (FOLDER / "solution" / f"{path.stem}.ipynb").read_text(encoding="utf-8")
    written = generate.without_outputs(json.loads(text))
    assert generate.to_text(written) == generate.to_text(solution), remedy


@each_exercise
def test_nbgrader_metadata(path):
    text = (FOLDER / "solution" / f"{path.stem}.ipynb").read_text(encoding="utf-8")
    metadata = [cell["metadata"] for cell in json.loads(text)["cells"]]
    grading = [part["nbgrader"] for part in metadata if "nbgrader" in part]
    assert len({cell["grade_id"] for cell in grading}) == len(grading)
    assert sum(cell.get("points", 0) for cell in grading) == 10
    for cell in grading:
        assert cell["schema_version"] == 3
        assert not cell["task"]
        assert cell["locked"] != cell["solution"]
        assert cell["grade"] == (cell.get("points", 0) > 0)
        assert cell["solution"] or cell["grade"]


def parts_of_code(source):
    """Return the statements and expressions of code that are long enough to be told apart."""
    found = {ast.unparse(node) for node in ast.walk(ast.parse(source)) if hasattr(node, "lineno")}
    return {part for part in found if len(part) > 40 and "\n" not in part}


@functools.cache
def parts_of_solutions():
    """Return what only the solutions and the hidden tests of the exercises say."""
    found, shown = set(), set()
    for path in SOURCES:
        for cell in generate.read_source(path):
            if not cell.is_text:
                found |= parts_of_code(cell.source)
                shown |= parts_of_code(generate.without_solution(cell).source)
    assert len(found - shown) > 100
    return found - shown


def assert_no_solution(path):
    """Check the code cells of a notebook, whatever its name and that of its folder is."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        source = "".join(cell["source"])
        marks = (generate.BEGIN, generate.END, "BEGIN HIDDEN TESTS", "END HIDDEN TESTS")
        assert not [mark for mark in marks if mark in source], path
        if cell["cell_type"] == "code":
            assert not parts_of_code(source) & parts_of_solutions(), path
            assert not cell["outputs"], path
    tasks = [cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("solution")]
    stubs = ("raise NotImplementedError", "*Your answer here.*")
    assert tasks and all(any(stub in "".join(c["source"]) for stub in stubs) for c in tasks)


@each_exercise
def test_the_code_cells_of_students_hold_no_solution(path):
    assert_no_solution(FOLDER / "student" / f"{path.stem}.ipynb")
    with pytest.raises(AssertionError):
        assert_no_solution(FOLDER / "solution" / f"{path.stem}.ipynb")


@each_exercise
def test_hints_hold_at_most_half_of_a_solution(path):
    cells = generate.read_source(path)
    shown = [generate.without_solution(cell).source for cell in cells if cell.is_text]
    text = "".join("".join(shown).split())
    for cell in parts_of(path, "solution"):
        hidden = cell.source.partition(generate.BEGIN)[2].partition(generate.END)[0]
        lines = ["".join(line.split()) for line in hidden.splitlines()]
        lines = [line for line in lines if len(line) > 12 and not line.startswith("#")]
        assert sum(line in text for line in lines) <= len(lines) / 2, cell.name


@each_exercise
def test_opening_says_what_is_needed(path):
    opening = generate.read_source(path)[0].source
    for part in (
        "# Exercise",
        "**You will learn**",
        "**Time:**",
        "**Before you start:**",
        "**In the paper:**",
    ):
        assert part in opening
    cells = generate.read_source(path)
    text = "\n".join(cell.source for cell in cells if cell.is_text)
    n_hints = text.count("<details><summary>Hint")
    n_answers = text.count("<details><summary>Answer")
    assert n_hints + n_answers == text.count("</details>")
    assert n_hints >= len(parts_of(path, "solution"))
    assert n_answers >= text.count("**Predict before you run.**") >= 1
    assert "(optional, hard)" in text  # in the heading of the part


@each_exercise
def test_first_cell_is_short_and_names_what_is_not_answered(path):
    cell = next(cell for cell in generate.read_source(path) if not cell.is_text)
    lines = [line for line in cell.source.splitlines() if line and not line.startswith("#")]
    assert len(lines) <= 11 and "import start" in lines and "one_line_errors()" in lines


# ---- texts for teachers --------------------------------------------------------------

TEXTS = [*FOLDER.glob("*.md"), *FOLDER.glob("lectures/*.md")]
each_text = pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)


def rows_of(head, name="README.md"):
    """Return the cells of the rows of a text's table whose first line begins so."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    table = text.partition(f"\n{head}")[2].partition("\n\n")[0]
    lines = [line.strip("|").split("|") for line in table.splitlines()[2:]]
    return [[cell.strip() for cell in cells] for cells in lines]


def minutes_of(path):
    """Return the least and the largest number of minutes that an exercise asks for."""
    opening = generate.read_source(path)[0].source
    least, most = re.search(r"\*\*Time:\*\* (\d+)(?: to (\d+))? minutes", opening).groups()
    return int(least), int(most or least)


def exercises_in(rows):
    """Return (number, minutes) for the rows of a plan that name an exercise first."""
    found = [(re.match(r"exercise (\d+)\b", row[1]), int(row[2])) for row in rows]
    return [(int(match[1]), minutes) for match, minutes in found if match]


def test_minutes_in_the_table_are_those_that_the_exercises_say():
    rows = rows_of("| | exercise |")
    assert [row[1] for row in rows] == [f"`{path.stem}`" for path in SOURCES]
    for row, path in zip(rows, SOURCES, strict=True):
        least, most = minutes_of(path)
        assert row[0] == str(int(path.name[:2]))
        assert row[3] == (f"{least}-{most}" if most > least else str(most)), path.stem
        assert 30 <= least <= most <= 60


def test_lessons_fit_into_ninety_minutes_and_have_a_note_each():
    rows = rows_of("| lesson |")
    lessons = sorted({int(row[0]) for row in rows})
    assert lessons == list(range(1, len(lessons) + 1)) and len(lessons) >= 4
    notes = sorted((FOLDER / "lectures").glob("*.md"))
    for lesson, note in zip(lessons, notes, strict=True):
        parts = [row for row in rows if int(row[0]) == lesson]
        assert sum(int(minutes) for _, _, minutes in parts) <= 90
        [(_, part, minutes)] = [row for row in parts if "](lectures/" in row[1]]
        assert f"](lectures/{note.name})" in part
        assert f"({minutes} minutes" in note.read_text(encoding="utf-8")
        assert len(exercises_in(parts)) == 1


def test_the_plan_for_one_lesson_fits_into_ninety_minutes():
    assert sum(int(minutes) for _, minutes in rows_of("| part of the one lesson |")) <= 90


def test_quiz_has_three_questions_a_lesson_and_its_answers_stand_apart():
    lessons = sorted({row[0] for row in rows_of("| lesson |")})
    sections = {}
    for name in ("quiz.md", "quiz_answers.md"):
        parts = (FOLDER / name).read_text(encoding="utf-8").split("\n## Lesson ")[1:]
        sections[name] = [re.findall(r"^\*\*(\d+)\.\*\*", part, re.MULTILINE) for part in parts]
        assert [part[0] for part in parts] == lessons
        assert all(len(numbers) == 3 for numbers in sections[name])
    assert sections["quiz.md"] == sections["quiz_answers.md"]
    assert "Answer" not in (FOLDER / "quiz.md").read_text(encoding="utf-8")


def test_plan_has_every_exercise_once_with_its_time():
    most = {int(path.name[:2]): minutes_of(path)[1] for path in SOURCES}
    planned = exercises_in(rows_of("| lesson |")) + exercises_in(rows_of("| after lesson |"))
    # The project goes on after the last lesson.
    assert sorted(set(planned)) == sorted(most.items())
    numbers = [number for number, _ in planned]
    assert [number for number in numbers if numbers.count(number) > 1] == [9, 9]


def test_rubric_has_every_answer_that_is_graded_by_hand():
    rows = rows_of("| cell |", "teachers.md")
    found = {row[0].strip("`"): (int(row[1]), row[2].count(";") + 1) for row in rows}
    expected = {}
    for path in SOURCES:
        for cell in parts_of(path, "answer"):
            points = (cell.points, cell.points)  # a criterion for each point
            expected[f"{path.name[:2]}-answer-{cell.name}"] = points
    assert found == expected


@each_text
def test_links_pictures_and_folds_of_a_text(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        file = (path.parent / target).resolve()
        assert file.is_file(), f"{path.name}: {target} is missing"
        assert file.suffix != ".png" or file.stat().st_size < 80_000
    assert text.count("<details>") == text.count("</details>")
    assert text.count("<details>") == text.count("<summary>Answer</summary>")
    assert max(map(len, re.findall(r"^[^|\n].*", text, flags=re.MULTILINE))) <= 140


# ---- running -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clean():
    """Run cells in the folder of solutions, in the quick profile, with a copy of METHODS.

    MNIST is read once.
    """
    import matplotlib.pyplot as plt

    import baselines
    from study import datasets, profile, training

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        patch.chdir(FOLDER / "solution")
        patch.setattr(datasets, "load", functools.cache(datasets.load))
        patch.setattr(baselines, "METHODS", dict(baselines.METHODS))  # exercise 9 adds to it
        patch.setattr(profile, "QUICK", True)
        training._loaded.cache_clear()
        plt.switch_backend("agg")
        with plt.rc_context():
            yield
        plt.close("all")
        training._loaded.cache_clear()


def run(cell, path, names):
    where = f"{path.stem}, {cell.kind} {cell.name}"
    exec(compile(cell.source, where, "exec"), names)


@pytest.fixture(scope="module", params=SOURCES, ids=lambda path: path.stem)
def solved(request, clean):
    """Return an exercise and the names that its solution defines, run from top to bottom."""
    import matplotlib.pyplot as plt

    names = {"__name__": "__main__"}
    for cell in generate.read_source(request.param):
        if not cell.is_text:
            run(cell, request.param, names)
    plt.close("all")
    return request.param, names


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the mean makes up")  # exercise 10 has wide kernels
def test_answers_of_students(solved):
    path, names = solved
    checks = {cell.name: cell for cell in parts_of(path, "check")}
    for answer in answers_of(path):
        attempt = dict(names)
        exec(compile(answer.source, f"{answer.kind}: {answer.text}", "exec"), attempt)
        if answer.kind == "right":
            run(checks[answer.check], path, attempt)
            continue
        with pytest.raises(AssertionError, match=answer.text) as caught:
            run(checks[answer.check], path, attempt)
        message = str(caught.value)
        assert len(message) > 40 and ":" in message and "\n" not in message, (
            f"{answer.check}: {message!r} does not say what to do in one line"
        )


def functions_in(cell):
    return [node.name for node in ast.parse(cell.source).body if isinstance(node, ast.FunctionDef)]


def tasks_of(path):
    """Return (name of a function to write, check) of an exercise."""
    tasks, names = [], []
    for cell in generate.read_source(path):
        if cell.kind == "solution":
            names = functions_in(cell)
        elif cell.kind == "check":
            tasks += [(name, cell) for name in names]
    return tasks


@pytest.mark.slow
def test_a_function_that_returns_nothing_is_told_so(solved):
    path, names = solved
    for name, check in tasks_of(path):
        # What is compiled or entered into a table is found by other checks.
        if hasattr(names[name], "py_func") or name == "make_ridge":
            continue

        def nothing(*arguments, **options):
            return None

        nothing.__name__ = name
        with pytest.raises(AssertionError, match=r"None|nothing|see the check above"):
            run(check, path, names | {name: nothing})


@pytest.mark.slow
def test_no_function_that_a_student_is_given_passes_as_an_answer(solved):
    path, names = solved
    seen = [generate.without_solution(cell) for cell in generate.read_source(path)]
    given = [cell for cell in seen if not cell.is_text and cell.kind != "solution"]
    given = [names[name] for cell in given for name in functions_in(cell)]
    for name, check in tasks_of(path):
        if name == "make_ridge":  # its cell enters it into METHODS
            continue
        task = names[name]
        plain = getattr(task, "py_func", task)
        for function in given:
            function = getattr(function, "py_func", function)
            if len(signature(function).parameters) != len(signature(plain).parameters):
                continue
            answer = numba.njit(function) if plain is not task else function
            with pytest.raises(Exception):  # noqa: B017 - it may fail in any way
                run(check, path, names | {name: answer})


@pytest.mark.slow
def test_a_choice_that_uses_the_future_is_found_whatever_the_window_is(clean):
    [path] = [path for path in SOURCES if path.stem == "11_drift"]
    [check] = [check for name, check in tasks_of(path) if name == "choose"]
    cells = [cell for cell in generate.read_source(path) if not cell.is_text]
    names = {"__name__": "__main__"}
    run(cells[0], path, names)  # the imports
    for first, last in [(0, 1), (0, 2), (-1, 1), (-2, 1), (-1, 2), (0, 9), (-9, 9), (1, 2)]:

        def choose(accuracy, window, first=first, last=last):
            blocks = range(1, accuracy.shape[1])
            past = [accuracy[:, max(0, b + first) : b + last] for b in blocks]
            sums = [part.sum(axis=1).argmax() if part.size else 0 for part in past]
            return np.array([0, *sums])

        with pytest.raises(AssertionError, match="may use the blocks before it, and no other"):
            run(check, path, names | {"choose": choose})


@each_exercise
def test_every_check_has_a_wrong_answer(path):
    found = {answer.check for answer in answers_of(path) if answer.kind == "wrong"}
    assert found == {check.name for check in parts_of(path, "check")}


@pytest.mark.slow
@each_exercise
def test_student_meets_the_missing_solution_first_and_no_check_passes_without_it(path, clean):
    cells = [generate.without_solution(cell) for cell in generate.read_source(path)]
    names = {"__name__": "__main__"}
    errors = []
    for cell in cells:
        if cell.is_text:
            continue
        if cell.kind == "check":
            with pytest.raises(NotImplementedError):
                run(cell, path, names)
            errors.append(NotImplementedError)
            continue
        try:
            run(cell, path, names)
        # Later cells may miss anything that an earlier one did not make.
        except Exception as error:
            errors.append(type(error))
    assert errors[0] is NotImplementedError and len(errors) >= len(parts_of(path, "check"))


@pytest.mark.slow
def test_jupyter_shows_what_a_check_finds_in_one_line():
    student, _ = generate.generate(SOURCES[0])
    notebook = nbformat.reads(json.dumps(student), as_version=4)
    # A wrong answer, one that stops, one that the check cannot use, and one that is missing.
    answers = {
        "sylvester": (
            "return np.ones((2**k, 2**k), int)",
            "only the lower right block has a minus sign",
        ),
        "entry": ("return i & too", "`entry` stops at `return i & too`: NameError: name 'too'"),
        "distances": ("return 'no'", "distances of 3 codes of 5 places has shape ()"),
        "plotkin": (None, "`plotkin` is not answered yet: "),
    }
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "").rpartition("-")[2]
        if cell.metadata.get("nbgrader", {}).get("solution") and answers[name][0]:
            cell.source = re.sub(r"raise NotImplementedError.*", answers[name][0], cell.source)
    notebook.cells.append(nbformat.v4.new_code_cell("entry(1, 2)"))
    resources = {"metadata": {"path": FOLDER / "student"}}
    NotebookClient(notebook, resources=resources, allow_errors=True).execute()
    graded = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    checks = [cell for cell in graded if cell.cell_type == "code"]
    for cell, part in zip(checks, parts_of(SOURCES[0], "check"), strict=True):
        [output] = cell.outputs
        assert output.output_type == "error"
        [line] = output.traceback
        assert answers[part.name][1] in line and "\n" not in line
    [own] = notebook.cells[-1].outputs
    assert len(own.traceback) > 1  # in a cell of one's own a traceback helps


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Make the zip as a teacher does, and unpack it as a student does."""
    folder = tmp_path_factory.mktemp("zip")
    # The page to draw on is not made anew: that needs the set-up of `make`.
    command = ["make", "-o", "build/draw.html", "student-zip", f"PYTHON={sys.executable}"]
    command.append(f"STUDENT_ZIP={folder}/student.zip")
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    with zipfile.ZipFile(folder / "student.zip") as archive:
        archive.extractall(folder)
    return folder / "hmoh-exercises"


@pytest.mark.slow
def test_unpacked_zip_has_all_that_the_first_cells_need(unpacked):
    notebooks = sorted((unpacked / "notebooks" / "exercises" / "student").glob("*.ipynb"))
    first = ["import sys; sys.path.insert(0, '../..'); import start, method_pictures"]
    for path in notebooks:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = next(cell for cell in cells if cell["cell_type"] == "code")
        first.append("".join(code["source"]))
    # A solution and its check run there too.
    first += [cell.source for cell in generate.read_source(SOURCES[0])[:6] if not cell.is_text]
    first.append("import hmoh, study; print(hmoh, study)")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(first)],
        cwd=notebooks[0].parent,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1].count("hmoh-exercises") == 2


@pytest.mark.slow
def test_unpacked_zip_has_the_lesson_the_tables_and_the_terms_but_no_solution(unpacked):
    names = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*")}
    assert {
        "environment.yml",
        "requirements.txt",
        "kernels.py",
        "LICENSE",
        "data/README.md",
    } <= names
    texts = ("01_method.ipynb", *(f"exercises/{n}.md" for n in ("glossary", "letters", "quiz")))
    assert {f"notebooks/{text}" for text in texts} <= names
    assert not [name for name in names if re.search(r"solution|source|answers|teachers", name)]
    notebooks = sorted(unpacked.glob("notebooks/exercises/**/*.ipynb"))
    assert [path.stem for path in notebooks] == [path.stem for path in SOURCES]
    for path in notebooks:
        assert_no_solution(path)


def test_folders_for_nbgrader_hand_out_no_solution_and_keep_what_grades(tmp_path):
    command = [sys.executable, FOLDER / "generate.py", "--classroom", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    for kind in ("release", "source"):
        assert sorted(path.name for path in (tmp_path / kind).iterdir()) == [
            path.stem for path in SOURCES
        ]
    for path in SOURCES:
        assert_no_solution(tmp_path / "release" / path.stem / f"{path.stem}.ipynb")
        source = (tmp_path / "source" / path.stem / f"{path.stem}.ipynb").read_text("utf-8")
        text = path.read_text(encoding="utf-8")
        for mark in (generate.BEGIN, "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"):
            assert source.count(mark) == text.count(mark)
    compile((tmp_path / "nbgrader_config.py").read_text(), "nbgrader_config.py", "exec")


@pytest.mark.slow
def test_environment_check_prints_ok():
    script = [sys.executable, str(FOLDER / "check_environment.py")]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("OK") and not done.stderr


@pytest.mark.slow
def test_environment_check_names_what_is_missing(monkeypatch):
    from study import datasets

    def broken(name):
        way = "restore it with `git checkout data/mnist.npz`"
        raise FileNotFoundError(f"mnist.npz is missing; {way}.")

    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(datasets, "load", broken)
    [line] = check_environment.problems()
    assert "git checkout data/mnist.npz" in line
    monkeypatch.setitem(sys.modules, "numba", None)
    [line] = check_environment.problems()
    assert line.startswith("numba is missing; run `make lab`")


def test_a_call_is_switched_off_by_any_name_and_comes_back():
    names = {"switched_off": switched_off, "np": np, "ones": np.ones}
    source = """
with switched_off(globals(), "numpy.ones"):
    kept = 1
    for call in (np.ones, ones):
        try:
            call(2)
        except AssertionError as error:
            message = str(error)
        else:
            raise RuntimeError("it was not switched off")
"""
    exec(source, names)
    assert names["message"].startswith("numpy.ones does the whole task")
    assert names["kept"] == 1  # what the block assigns stays
    assert names["ones"] is np.ones and np.ones(2).sum() == 2


def test_a_call_that_this_numpy_does_not_have_needs_no_switch():
    with switched_off({}, "numpy.no_such_call"):
        assert not hasattr(np, "no_such_call")


def test_library_agrees_on_the_saturated_histogram():
    """Exercise 8 merges columns and study/scores.py keeps them empty, with the same mAP."""
    from metrics import HammingHistogram
    from study import scores

    path = FOLDER / "source" / "08_int8.py"
    names = {"np": np, "HammingHistogram": HammingHistogram}
    for cell in parts_of(path, "solution"):
        run(cell, path, names)
    rng = np.random.default_rng(0)
    items = rng.integers(1, 9, size=(5, 257))
    h = HammingHistogram(items, rng.integers(0, items + 1))
    expected = scores.int8_saturated(h).mean_average_precision()
    assert names["saturate"](h).mean_average_precision() == pytest.approx(expected, abs=1e-12)
    assert abs(h.mean_average_precision() - expected) > 1e-3
