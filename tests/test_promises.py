"""PROMISES.md names the tests that keep each promise: they exist, and no test file is left out."""

import re

from helpers import ROOT

TESTS = ROOT / "tests"


def promises():
    """Return the lines of PROMISES.md with their tests, by the file that has them."""
    by_file = {}
    for line in (TESTS / "PROMISES.md").read_text().splitlines():
        if line.startswith("## "):
            lines = by_file.setdefault(line.removeprefix("## "), [])
        elif line.startswith("- "):
            text, _, names = line.rpartition(": ")
            lines.append((text, re.findall(r"`(test_\w+)`", names)))
    return by_file


def test_every_test_that_a_promise_names_is_in_its_file():
    for file, lines in promises().items():
        defined = re.findall(r"^def (test_\w+)", (TESTS / f"{file}.py").read_text(), re.MULTILINE)
        assert lines, f"{file} keeps no promise"
        for text, names in lines:
            assert names, text
            missing = set(names) - set(defined)
            assert not missing, f"{file}.py has no {missing}, which PROMISES.md names for {text}"


def test_every_test_file_keeps_a_promise_and_every_promise_has_one_home():
    files = {path.stem for path in TESTS.glob("test_*.py")}
    assert set(promises()) == files
    texts = [text for lines in promises().values() for text, _ in lines]
    assert len(texts) == len(set(texts))
    for lines in promises().values():
        names = [name for _, names in lines for name in names]
        assert len(names) == len(set(names))
