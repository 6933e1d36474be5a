"""Check the Jupyter Book: its table of contents, and the pages that `make site` builds."""

import html
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
import yaml

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
TOC = (NOTEBOOKS / "_toc.yml").read_text()
TEACHERS = TOC + (NOTEBOOKS / "_toc_teacher.yml").read_text()  # as `make site TEACHER=1` joins them


def listed(entry):
    """Yield the files of an entry of the table of contents, in reading order."""
    if isinstance(entry, str):
        entry = yaml.safe_load(entry)
    yield from (entry[key] for key in ("root", "file") if key in entry)
    for path in sorted(NOTEBOOKS.glob(entry["glob"])) if "glob" in entry else ():
        yield path.relative_to(NOTEBOOKS).with_suffix("").as_posix()
    for key in ("parts", "chapters", "sections"):
        for part in entry.get(key, []):
            yield from listed(part)


# ---- the table of contents -----------------------------------------------------------


def test_the_contents_list_every_notebook_text_lecture_and_exercise_once():
    paths = [*NOTEBOOKS.rglob("*.ipynb"), *NOTEBOOKS.rglob("*.md")]
    there = [
        path.relative_to(NOTEBOOKS).with_suffix("").as_posix()
        for path in paths
        if ".ipynb_checkpoints" not in path.parts
    ]
    assert sorted(listed(TEACHERS)) == sorted(there)


def test_only_teachers_get_solutions_and_answers():
    apart = set(listed(TEACHERS)) - set(listed(TOC))
    assert {path.stem for path in NOTEBOOKS.glob("exercises/solution/*")} < {
        name.rpartition("/")[2] for name in apart
    }
    assert not [name for name in listed(TOC) if re.search("solution|answers|teachers", name)]


# ---- what is prepared for the pages --------------------------------------------------


@pytest.fixture
def book():
    pytest.importorskip("myst_parser")
    spec = importlib.util.spec_from_file_location("_book", NOTEBOOKS / "_book.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "n_lines, metadata, is_folded",
    [
        (14, {}, False),
        (15, {"tags": ["print"]}, True),
        (2, {"jupyter": {"source_hidden": True}}, True),
        (99, {"nbgrader": {"solution": True}}, False),
        (99, {"nbgrader": {"solution": False}}, True),
    ],
)
def test_long_and_hidden_code_is_folded(book, n_lines, metadata, is_folded):
    output = {"data": {"text/html": ['<a href="01_method.ipynb">', "b"]}}
    cell = {"cell_type": "code", "metadata": metadata, "source": ["x\n"] * n_lines}
    source = [json.dumps({"cells": [cell | {"outputs": [output]}]})]
    app = SimpleNamespace(env=SimpleNamespace(doc2path=lambda name: f"{name}.ipynb"))
    book.read_page(app, "01_method", source)
    (found,) = json.loads(source[0])["cells"]
    tags = metadata.get("tags", [])
    assert found["metadata"].get("tags", []) == tags + ["hide-input"] * is_folded
    assert found["outputs"][0]["data"]["text/html"] == ['<a href="01_method.html">', "b"]


# ---- the pages -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the pages as `make site` does, where a missing reference is an error."""
    pytest.importorskip("jupyter_book")
    folder = tmp_path_factory.mktemp("book")
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build"]
    command += [NOTEBOOKS, "--path-output", folder, "--all", "--quiet", "-W", "-n", "--keep-going"]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    pages = folder / "_build" / "html"
    (pages / "draw.html").touch()  # `make site` copies the page of `make demo`
    return pages


@pytest.mark.slow
def test_pages_need_no_network_and_their_links_lead_somewhere(site):
    assert {f"{name}.html" for name in listed(TOC)} <= {
        path.relative_to(site).as_posix() for path in site.rglob("*.html")
    }
    texts = {path: path.read_text() for path in site.rglob("*.html") if "_static" not in path.parts}
    ids = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in texts.items()}
    n_links = 0
    for path, text in texts.items():
        for tag, url in re.findall(r'<(\w+)\b[^>]*?\b(?:href|src)="([^"]*)"', text):
            if re.match(r"\w+:|//", url):
                assert tag == "a" or url.startswith("data:"), f"{path.name} loads {url}"
                continue
            target, _, anchor = html.unescape(url).partition("#")
            there = (path.parent / unquote(target.partition("?")[0])).resolve() if target else path
            assert there.exists(), f"{path.name} leads to {url}"
            assert not anchor or unquote(anchor) in ids[there], f"{path.name} leads to {url}"
            n_links += 1
    assert n_links > 1000


@pytest.mark.slow
def test_pages_have_formulas_figures_and_search(site):
    text = (site / "01_method.html").read_text()
    assert 'src="_static/mathjax/' in text and "math notranslate" in text
    assert 'src="searchindex.js' in text and (site / "searchindex.js").exists()
    assert re.search(r'src="_images/\w+\.gif"', text)


@pytest.mark.slow
def test_pages_for_students_hold_no_solution(site):
    names = {path.relative_to(site).as_posix() for path in site.rglob("*")}
    assert "exercises/student/03_perceptron.html" in names
    assert not [name for name in names if re.search("solution|answers|teachers", name)]
    for path in sorted((NOTEBOOKS / "exercises" / "source").glob("*.py")):
        page = (site / "exercises" / "student" / f"{path.stem}.html").read_text()
        blocks = re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)
        code = html.unescape(re.sub(r"<[^>]+>", "", "\n".join(blocks)))
        assert "YOUR CODE HERE" in code and "HIDDEN TESTS" not in code
        for hidden in re.findall(r"### BEGIN SOLUTION\n(.*?)### END", path.read_text(), re.DOTALL):
            assert max((line.strip() for line in hidden.splitlines()), key=len) not in code


@pytest.mark.slow
def test_without_a_remote_no_page_has_a_button_to_a_repository(site):
    text = (site / "01_method.html").read_text()
    assert "OWNER" not in text
    origin = subprocess.run(
        ["git", "remote", "get-url", "origin"], cwd=NOTEBOOKS, capture_output=True, text=True
    )
    is_public = origin.stdout.startswith(("https://", "git@"))
    assert ("Source repository" in text) == is_public
    is_github = is_public and "github.com" in origin.stdout
    assert ("mybinder.org" in text) == is_github


@pytest.mark.parametrize(
    "remote",
    ["https://github.com/a/b.git", "git@github.com:a/b.git", "https://name:key@github.com/a/b/"],
)
def test_buttons_lead_to_the_remote_and_show_no_key(book, remote):
    options = book.buttons(remote)
    assert options["repository_url"] == "https://github.com/a/b"
    assert options["launch_buttons"]["colab_url"] and "key" not in str(options)


@pytest.mark.parametrize(
    "remote", ["", "/home/a/b", "../b", "file:///a/b", "http://a/b", "ssh://a/b"]
)
def test_a_remote_that_readers_cannot_open_gives_no_button(book, remote):
    assert book.buttons(remote) == {}
