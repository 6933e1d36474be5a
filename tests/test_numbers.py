"""Every number in the texts is found in a committed output, or the paper prints it.

A text is a README, the markdown of a notebook, or the docstring of a method. Numbers with a decimal
point and percentages are looked up. A number of the text may be rounded.
"""

import ast
import json
import re
from functools import cache
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
PATHS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
# .847, 0.847, 12.3, 77 % and 77%, but not the 4.2 of "Sec. 4.2.1" or the 3.11 of "Python 3.11".
NUMBER = r"(?<![\w.,:])-?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?: ?%)?(?![\w:]|\.\d)"
# The margins and the level of the rule in study/statistics.py and data/paper_claims.json.
RULE = [0.02, 0.1, 1.5, 0.95]
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
    for word, percent in re.findall(
        r"(\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?( ?%)?", text
    ):
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
    found = values(results) + RULE
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


@cache
def computed():
    return [value for path in PATHS for value in computed_by(path)]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_numbers_in_the_words_of_a_notebook_are_computed_in_it_or_printed(path):
    known = computed_by(path) + printed_by_the_paper()
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            unknown = [n for n in numbers(cell.source) if not is_in(n, known)]
            assert unknown == [], f"{cell.id}: {cell.source[:80]!r}"


@pytest.mark.parametrize("name", ["README.md", "notebooks/README.md"])
def test_numbers_in_a_readme_are_computed_in_a_notebook_or_printed(name):
    known = computed() + printed_by_the_paper()
    for line in (ROOT / name).read_text().splitlines():
        unknown = [n for n in numbers(line) if not is_in(n, known)]
        assert unknown == [], line


def test_rows_of_mnist_in_the_docstrings_of_methods_are_those_of_the_notebook():
    known = computed_by(ROOT / "notebooks" / "02_mnist.ipynb") + printed_by_the_paper()
    n_rows = 0
    for path in sorted((ROOT / "baselines").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                for row in re.findall(r".*(?: \.\d{3}){6}", ast.get_docstring(node)):
                    n_rows += 1
                    unknown = [n for n in numbers(row) if not is_in(n, known)]
                    assert unknown == [], f"{node.name}: {row}"
    assert n_rows > 10


def test_a_number_that_nobody_computed_is_found():
    assert numbers("mAP .847, 12.5 %, Sec. 4.2, `.5`, 20,000 rows, 1,234.5") == [
        (0.847, 3),
        (0.125, 3),
        (1234.5, 1),
    ]
    assert values("mAP 0.8471 or 77%, 1,000") == [0.8471, 0.77, 1000.0]
    assert is_in((0.847, 3), [0.8471]) and not is_in((0.847, 3), [0.846])
