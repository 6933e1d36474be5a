"""Every number in the texts is found in a committed output, or the paper prints it.

A text is a README, the markdown of a notebook, or the docstring of a method. Numbers with a decimal
point and percentages are looked up. A number of the text may be rounded. By chance most numbers of
three digits are found somewhere, so a row of a table is looked up as a whole: in one line of an
output, or in the paper's row of the same method.
"""

import ast
import json
import re
from functools import cache
from pathlib import Path

import nbformat
import pytest

from baselines import METHODS
from study.tables import features_text

ROOT = Path(__file__).parents[1]
READMES = ["README.md", "notebooks/README.md"]
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))
EXERCISES = ROOT / "notebooks" / "exercises"
LESSONS = sorted([*EXERCISES.glob("*.md"), *EXERCISES.glob("lectures/*.md")])
# .847, 0.847, 12.3, 77 % and 77%, but not the 4.2 of "Sec. 4.2.1" or the 3.11 of "Python 3.11".
NUMBER = r"(?<![\w.,:])-?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?: ?%)?(?![\w:]|\.\d)"
# The margins and the level of the rule in study/statistics.py and data/paper_claims.json, and the
# 2.5 million images of Places205 (the paper's Sec. 4.1).
GIVEN = [0.02, 0.1, 1.5, 0.95, 2.5]
SECTION = r"(?:Sec|Fig|Eq)\.? \d+(?:\.\d+)*|(?:[Pp]ython|[Ff]ormat|[Vv]ersion) \d+\.\d+(?:\.\d+)?"


def numbers(text):
    """Return the numbers with a decimal point and the percentages of a text, as (value, digits)."""
    text = re.sub(r"https?://\S+|`[^`]*`|\]\([^)]*\)", " ", text)
    text = re.sub(SECTION, " ", text)
    found = []
    for match in re.finditer(NUMBER, text):
        word = match.group().replace(",", "").lstrip("-")
        is_percentage = word.endswith("%")
        word = word.rstrip("% ")
        if not word or ("." not in word and not is_percentage):
            continue
        digits = len(word.partition(".")[2])
        value = float(word)
        if is_percentage:
            value /= 100
            digits += 2
        found.append((round(value, digits), digits))
    return found


def values(text):
    """Return all numbers of an output, percentages as shares."""
    found = []
    for word, percent in re.findall(r"((?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?)( ?%)?", text):
        value = float(word.replace(",", ""))
        found.append(value / 100 if percent else value)
    return found


def is_in(number, known):
    """Tell whether a number is one of the known ones, rounded to its digits."""
    value, digits = number
    # Half a unit, and a little because halves are rounded to even.
    return any(abs(value - other) <= 0.5001 * 10**-digits for other in known)


@cache
def printed_by_the_paper():
    results = (ROOT / "data" / "paper_results.json").read_text()
    claims = json.loads((ROOT / "data" / "paper_claims.json").read_text())
    found = values(results) + GIVEN
    for claim in claims:
        found += values(claim["claim"]) + values(claim.get("note", ""))
        if claim["printed"] is not None:
            found.append(abs(claim["printed"]))
    return found


@cache
def computed_by(path):
    """Return the numbers in the code and the outputs of a notebook."""
    found = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        found += values(cell.source)
        for output in cell.outputs:
            found += values(output.get("text", ""))
            data = output.get("data", {})
            for kind in ("text/plain", "text/html", "text/markdown"):
                found += values(re.sub(r"<[^>]*>", " ", data.get(kind, "")))
    return found


# ---- rows ----------------------------------------------------------------------------


@cache
def output_lines():
    """Return (line, its numbers) for the lines of all text outputs."""
    found = []
    for path in PATHS:
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                plain = output.get("data", {}).get("text/plain", "")
                lines = (output.get("text", "") + plain).splitlines()
                found += [(line, values(line)) for line in lines]
    return found


def is_subsequence(row, known):
    """Tell whether the numbers of a row are among the known ones, in this order."""
    rest = iter(known)
    return all(any(is_in(number, [other]) for other in rest) for number in row)


def is_known(label, row, method=None):
    """Tell whether a row is in a line that begins with its method, or is the paper's row.

    Without a method in the label and without ``method``, any line will do.
    """
    if label == "the paper":
        results = json.loads((ROOT / "data" / "paper_results.json").read_text())
        printed = results["results"]["mnist"][method or "HMOH"]["mAP"]
        return [value for value, _ in row] == list(printed.values())
    if "never trained" in label:
        method = "LSH"
    named = [name for name in METHODS if label.startswith(name)]
    start = named[0] if named else method or ""
    return any(
        line.startswith(start) and is_subsequence(row, known) for line, known in output_lines()
    )


def table_rows(text):
    """Return (label, numbers) of the rows of markdown tables that have four decimals or more.

    Seconds come from another notebook than the rest of their row, and are left out.
    """
    rows = []
    head = []
    for line in text.splitlines():
        if not line.startswith("|"):
            head = []
            continue
        label, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        head = head or cells
        cells = [c for c, name in zip(cells, head, strict=False) if name != "seconds"]
        row = numbers(" ".join(cells))
        if len(row) >= 4:
            rows.append((label, row))
    return rows


def docstring_rows(text):
    """Return (label, numbers) of the rows of six numbers, which may go on in the next line."""
    found = re.findall(r"(.*?)((?:\s+\.\d{3}){6})(?!\d)", text)
    return [(label.strip(), numbers(row)) for label, row in found]


# ---- the texts -----------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_numbers_in_the_words_of_a_notebook_are_computed_in_it_or_printed(path):
    known = computed_by(path) + printed_by_the_paper()
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            unknown = [n for n in numbers(cell.source) if not is_in(n, known)]
            assert unknown == [], f"{cell.id}: {cell.source[:80]!r}"


@pytest.mark.parametrize("name", READMES)
def test_numbers_in_a_readme_are_computed_in_a_notebook_or_printed(name):
    text = (ROOT / name).read_text()
    known = [value for path in PATHS for value in computed_by(path)] + printed_by_the_paper()
    for line in text.splitlines():
        unknown = [n for n in numbers(line) if not is_in(n, known)]
        assert unknown == [], line
    # A row is that of one line of a notebook.
    rows = table_rows(text)
    assert [label for label, row in rows if not is_known(label, row)] == []
    assert len(rows) >= 3 or name != "README.md"


def test_counts_of_the_scorecard_are_the_same_everywhere():
    """13 counts; README, the list of notebooks and the report repeat it."""
    notebook = nbformat.read(ROOT / "notebooks" / "13_scorecard.ipynb", as_version=4)
    outputs = [o.get("text", "") for cell in notebook.cells for o in cell.get("outputs", [])]
    (counted,) = [text for text in outputs if text.startswith("1. Table 4:")]
    listed = (ROOT / "notebooks" / "README.md").read_text()
    rows = dict(re.findall(r"^\| ([^|]+) \| (\d+ \| [^|]+) \|$", listed, re.MULTILINE))
    rows = {name: re.findall(r"\d+", row) for name, row in rows.items()}
    for reading in ("described", "published"):
        cells = rf"(\d+) of (\d+) cells reproduced as {reading} \((\d+)"
        n, n_all, ceiling = re.search(cells, counted).groups()
        assert rows[f"cells of Table 4, as {reading}"] == [n_all, n, ceiling]
    for n, kind, verdicts in re.findall(
        r"(\d+) (orders|printed values|exact facts): (.+)", counted
    ):
        assert rows[kind] == [n, *re.findall(r"\d+", verdicts)]
    n_open = re.search(r"(\d+) claims are about data that may not be redistributed", counted)[1]
    assert rows["claims about data that may not be redistributed"] == [n_open]
    assert re.search(
        rf"\b{n_open} of \d+ claims", " ".join((ROOT / "README.md").read_text().split())
    )


def sources_of(paragraph):
    """Return the notebooks that a paragraph names: `15_live`, or exercise 6 for its solution."""
    names = re.findall(r"`(\d\d_\w+)`", paragraph)
    found = [path for path in PATHS if path.stem in names]
    for number in re.findall(r"[Ee]xercise (\d+)", paragraph):
        found += EXERCISES.glob(f"solution/{int(number):02d}_*.ipynb")
    return found


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_numbers_in_a_lesson_are_computed_by_the_notebook_that_it_names(path):
    for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
        known = printed_by_the_paper() if "the paper" in paragraph else []
        for source in sources_of(paragraph):
            known = known + computed_by(source)
        unknown = [n for n in numbers(paragraph) if not is_in(n, known)]
        assert unknown == [], paragraph


def test_rows_of_mnist_in_the_docstrings_of_methods_are_those_of_the_notebook():
    rows = []
    for path in sorted((ROOT / "baselines").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found = docstring_rows(ast.get_docstring(node))
                rows += [(node.name, label, row) for label, row in found]
    unknown = [rest for *rest, row in rows if not is_known(rest[1], row, rest[0])]
    assert unknown == []
    assert len(rows) > 20


def test_a_number_that_nobody_computed_is_found():
    text = "mAP .847, 12.5 %, Sec. 4.2, `.5`, 20,000 rows, 1,234.5"
    assert numbers(text) == [(0.847, 3), (0.125, 3), (1234.5, 1)]
    assert values("mAP 0.8471 or 77%, 1,000, 2e-3") == [0.8471, 0.77, 1000.0, 0.002]
    assert is_in((0.847, 3), [0.8471]) and not is_in((0.847, 3), [0.846])
    printed = numbers(".743 | .830 | .847 | .845 | .828 | .826")
    assert is_known("the paper", printed) and not is_known("the paper", printed[::-1])
    assert is_subsequence(printed[::2], [0.7431, 0.83, 0.847, 0.845, 0.828])
    assert not is_subsequence(printed[1::-1], [0.743, 0.83])


def test_the_verdicts_that_the_scorecard_opens_with_are_those_it_computed():
    notebook = nbformat.read(ROOT / "notebooks" / "13_scorecard.ipynb", as_version=4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = "\n".join(output.get("data", {}).get("text/plain", "") for output in outputs)
    paragraphs = notebook.cells[0].source.split("\n\n")
    items = next(part for part in paragraphs if part.startswith("- *")).split("\n- ")
    items = [" ".join(item.split()) for item in items]
    listed = [re.search(r"\*(\w+)\*: (.+?\.)(?= \(|$)", item).groups() for item in items]
    assert len(listed) == 10
    missing = [claim for verdict, claim in listed if f"{verdict}: {claim}" not in shown]
    assert missing == []


def code_of(path):
    """Return the code of a notebook's cells, or of a module."""
    if path.suffix == ".py":
        return path.read_text()
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def typed_features(code):
    """Return the labels of a program that begin with a method and name its features."""
    names = "|".join(sorted(METHODS, key=len, reverse=True))
    label = rf"({names})\b[^:\n]*\b(unit rows|raw|anchors|RBF)\b[^:\n]*"
    nodes = ast.walk(ast.parse(code))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return [text for text in texts if isinstance(text, str) and re.fullmatch(label, text)]


# The names of recipes are kept by test_recipes.
LABELLED = [*PATHS, *ROOT.glob("notebooks/*.py"), *ROOT.glob("study/*.py")]
LABELLED = sorted(path for path in LABELLED if "beyond" not in path.stem)


@pytest.mark.parametrize("path", LABELLED, ids=lambda path: path.name)
def test_no_label_types_the_features_of_a_method(path):
    assert typed_features(code_of(path)) == [], "take them from tables.features_of"


def test_the_features_of_the_ridge_in_the_report_are_those_of_its_model():
    # It was once called "the paper's features", which were not those of the model that ran.
    text = features_text(METHODS["HadamardRidge"].settings_for("mnist")["feature_map"])
    lines = [line for line, _ in output_lines() if line.startswith("HadamardRidge (ours)")]
    assert len(lines) == 3 and all(
        line.startswith(f"HadamardRidge (ours), {text}  ") for line in lines
    )


def test_a_typed_label_of_features_is_found():
    assert typed_features('label = "HadamardRidge (ours), unit rows, 1,000 centred anchors"') != []
    assert typed_features('label = f"HMOH on {features_of(record)}"') == []


def test_the_outcomes_of_cells_that_the_boxes_tell_are_those_that_03_counted():
    lines = [line for line, _ in output_lines()]
    (counted,) = [line for line in lines if line.startswith("outcomes of the 96 cells: ")]
    counts = {
        verdict: int(n) for n, verdict in re.findall(r"(\d+) (\w+)", counted.partition(": ")[2])
    }
    assert sum(counts.values()) == 96
    for name in ("03_mnist", "report"):
        first = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4).cells[0].source
        told = " ".join(first.replace(">", " ").split())
        for verdict, n in counts.items():
            assert re.search(rf"\b{n} (of the 96 cells )?(are )?{verdict}", told), (
                f"{name}: {n} {verdict}"
            )
