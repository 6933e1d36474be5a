"""Check the tools that make pages of the notebooks, the exercises and the texts of the course."""

import base64
import doctest
import html
import io
import os
import re
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
from helpers import JIT_IS_OFF
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from study.claims import VERDICTS
from study.scorecard import COUNTS_TYPE
from tools import make_pages
from tools import page as pages

pytestmark = pytest.mark.skipif(JIT_IS_OFF, reason="the tool has no compiled loops")
SOURCES = make_pages.sources()
every_source = pytest.mark.parametrize("name", SOURCES)


def texts(name):
    """Return the texts of a source, in Markdown."""
    cells = pages.read(SOURCES[name]).cells
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


# ---- the texts of the clone ----------------------------------------------------------


@every_source
def test_formulas_can_be_drawn(name, monkeypatch):
    seen = []
    draw = pages.formula
    monkeypatch.setattr(pages, "formula", lambda *tex: seen.append(tex) or "")
    for text in texts(name):
        pages.markdown(text)
    assert [tex for tex in seen if draw(*tex).startswith("<code>")] == []


@pytest.fixture(scope="module")
def bodies():
    """Return name -> HTML of the texts of all sources; formulas are left out to save time."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "formula", lambda *tex: "formula")
        for name in SOURCES:
            body = "\n".join(pages.markdown(text) for text in texts(name))
            found[name] = pages.with_own_names(body)
    return found


@every_source
def test_links_and_pictures_of_the_texts_are_there(name, bodies):
    site = make_pages.SITE
    moved = make_pages.links(name, bodies, site)
    for target in re.findall(r'href="(?![a-z]+:)([^"]+)"', moved):
        path, _, anchor = html.unescape(target).partition("#")
        there = Path(os.path.normpath(site / Path(name).parent / unquote(path)))
        other = name
        if path and there.is_relative_to(site):
            other = there.relative_to(site).with_suffix("").as_posix()
            assert other in SOURCES, f"no page {target}"
        elif path:
            assert there.exists(), f"no file {target}"
            continue
        ids = [heading for _, heading, _ in pages.headings(bodies[other])]
        assert not anchor or anchor in ids, f"no heading {target}"
    body = pages.embedded(bodies[name], SOURCES[name].parent)
    assert re.findall(r'<img\b[^>]*\bsrc="(?!data:)[^"]*"', body) == []


# ---- one page ------------------------------------------------------------------------


def network(text):
    """Return what a browser would fetch from elsewhere for this page; links do not count."""
    tags = "script|link|img|iframe|source|video|object|embed"
    loading = rf"<(?:{tags})\b[^>]*(?:src|href|data)=[\"']?([^\"'> ]+)"
    fetched = re.findall(loading, text)
    fetched += re.findall(r"(?:@import|url\()\s*[\"']?([^\"') ]+)", text)
    return [url for url in fetched if re.match(r"(https?:)?//", url)] + re.findall(
        r"<script\b.*", text
    )


def test_the_check_for_network_references_finds_them():
    assert network('<script src="https://a.org/b.js">') and network(
        "<link rel=x href=//a.org/b.css>"
    )
    assert network("<style>@import 'http://a.org'</style>") and network(
        '<img alt="" src="http://a.org/b.png"/>'
    )
    assert (
        network(
            '<a href="https://a.org">a</a><img src="data:image/png;base64,aa"/><img src="b.png"/>'
        )
        == []
    )


@pytest.fixture
def two(tmp_path):
    """Return the folder of a site of two small notebooks."""
    png = io.BytesIO()
    Image.new("RGB", (1500, 900), "blue").save(png, "PNG")
    picture = new_output("display_data", {"image/png": base64.b64encode(png.getvalue()).decode()})
    counts = {"supported": 3, "contradicted": 0, "not testable here": 2}
    table = new_output("display_data", {COUNTS_TYPE: counts, "text/html": "<p>table</p>"})
    first = new_notebook(
        cells=[
            new_markdown_cell(
                "# One & only\n\nAs Sec. 4 says, $r^* \\le 8$. "
                "More is [there](02_two.ipynb#Two).\n\nEnd."
            ),
            new_markdown_cell(
                "## Deep\n\n$$\\frac1T \\sum_t W^t$$\n\n"
                "[code](../hmoh.py) and [out](https://example.org)"
            ),
            new_code_cell("x < 1", outputs=[picture, table], execution_count=1),
        ],
        metadata={"hmoh_profile": "quick"},
    )
    second = new_notebook(
        cells=[
            new_markdown_cell("# Two\n\nIt says, in short:\n\n- a"),
            new_code_cell("1"),
        ]
    )
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "old.html").write_text("of an earlier notebook")
    make_pages.build({"01_one": first, "02_two": second}, tmp_path / "site")
    return tmp_path / "site"


def test_site_has_its_pages_and_every_link_resolves(two):
    assert sorted(path.name for path in two.iterdir()) == [
        "01_one.html",
        "01_one.png",
        "02_two.html",
        "index.html",
    ]
    followed = []
    for path in two.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="(?!data:|https?:)([^"]+)"', text):
            name, _, anchor = target.partition("#")
            there = path if not name else two / name
            assert there.exists(), f"{path.name} leads to {target}"
            assert not anchor or f'id="{anchor}"' in there.read_text(encoding="utf-8")
            followed.append(name)
    assert {"index.html", "01_one.html", "02_two.html", "01_one.png"} <= set(followed)
    assert any(name.endswith("hmoh.py") for name in followed)


def test_site_needs_no_network(two):
    for path in two.glob("*.html"):
        assert network(path.read_text(encoding="utf-8")) == []


def test_index_shows_title_sentence_figure_verdicts_and_state(two):
    text = (two / "index.html").read_text(encoding="utf-8")
    cards = text.split('<ul class="cards">')[1]
    first, second = re.findall(r"<li>.*?</li>", cards, re.DOTALL)
    assert (
        "<h3>01 One &amp; only</h3>" in first
        and "As Sec. 4 says" in first
        and "More is" not in first
    )
    assert (
        "✓ 3 supported" in first and "? 2 not testable here" in first and "quick profile" in first
    )
    assert "It says, in short ..." in second and "Not run yet." in second and "<img" not in second
    assert "contradicted" not in first and "verdict" not in second
    with Image.open(two / "01_one.png") as thumbnail:
        assert thumbnail.size == (640, 384)  # in proportion


def test_index_explains_every_verdict(two):
    text = (two / "index.html").read_text(encoding="utf-8")
    for verdict, (symbol, _, meaning) in VERDICTS.items():
        assert f"<b>{symbol} {verdict}</b>: {meaning}" in text


def test_page_shows_the_table_of_verdicts_and_not_its_counts(two):
    text = (two / "01_one.html").read_text(encoding="utf-8")
    assert "<p>table</p>" in text and "vnd.hmoh" not in text


def test_printed_text_is_not_taken_for_verdicts():
    output = new_output("stream", text="5 claims: 3 supported, 2 undecided\n")
    notebook = new_notebook(cells=[new_code_cell(outputs=[output])])
    assert make_pages.verdicts(notebook) == {}


def test_page_draws_formulas_and_describes_pictures(two):
    text = (two / "01_one.html").read_text(encoding="utf-8")
    assert (
        text.count('<img alt="r^* \\le 8" class="formula"') == 1
        and "$" not in text.split("<main>")[1]
    )
    assert 'alt="Figure 1: Deep"' in text and "x <span" in text.replace(
        '<span class="n">x</span>', "x"
    )


def test_a_formula_beyond_matplotlib_stays_readable():
    assert doctest.testmod(pages) == (0, 1)
    assert (
        pages.formula(r"\begin{cases} a < b \end{cases}")
        == r"<code>\begin{cases} a &lt; b \end{cases}</code>"
    )


def test_a_run_is_shown_only_if_it_ran_these_cells(tmp_path, monkeypatch):
    monkeypatch.setattr(make_pages, "RUNS", tmp_path / "runs")
    (tmp_path / "runs").mkdir()
    path = tmp_path / "01_one.ipynb"
    ran = new_notebook(cells=[new_code_cell("print(1)")])
    nbformat.write(ran, path)
    ran.cells[0].outputs = [new_output("stream", text="1\n")]
    nbformat.write(ran, tmp_path / "runs" / path.name)
    assert make_pages.latest(path).cells[0].outputs[0].text == "1\n"
    nbformat.write(new_notebook(cells=[new_code_cell("print(2)")]), path)
    assert make_pages.latest(path).cells[0].outputs == []


# ---- contents, code, pictures --------------------------------------------------------


def picture(kind, colours=("blue",), size=(20, 10)):
    """Return the bytes of a picture with a frame for each colour."""
    file = io.BytesIO()
    first, *rest = [Image.new("RGB", size, colour) for colour in colours]
    more = {"save_all": True, "append_images": rest} if rest else {}
    first.save(file, kind, **more)
    return file.getvalue()


def shown(kind, raw):
    """Return an output with a picture."""
    data = {f"image/{kind}": base64.b64encode(raw).decode(), "text/plain": "<Figure>"}
    return new_output("display_data", data)


def main_part(text):
    return text.split("<main>")[1].split("</main>")[0]


def test_contents_list_the_headings_with_names_of_their_own():
    source = "# Title\n\n## Same\n\ntext\n\n### `x` & $y$\n\n## Same\n\n#### too deep\n\n"
    text = pages.page(new_notebook(cells=[new_markdown_cell(source)]))
    for around in (
        r"<aside class=.contents.>.*?</aside>",
        r"<details class=.contents.>.*?</details>",
    ):
        (found,) = re.findall(around, text, re.DOTALL)
        entries = re.findall(r'<li( class="deep")?><a href="#([^"]+)">(.*?)</a>', found)
        assert [bool(deep) for deep, _, _ in entries] == [False, True, False]
        first, deep, second = [name for _, name, _ in entries]
        assert (first, second) == ("Same", "Same-2")
        assert entries[1][2].startswith("<code>x</code> &amp; <img ")
        for name in (first, deep, second):
            assert main_part(text).count(f'id="{name}"') == 1
    # The mark beside a heading leads to this heading.
    assert 'href="#Same-2">¶' in text
    assert "</h1>\n<details" in text


def test_a_page_without_headings_has_no_contents():
    text = pages.page(new_notebook(cells=[new_markdown_cell("# Title\n\nwords")]))
    assert 'class="contents"' not in text and "with-contents" not in text.split("</style>")[1]


@pytest.mark.parametrize(
    "n_lines, metadata, folded, summary",
    [
        (1, {}, False, "Code, 1 line"),
        (pages.LONG, {}, False, f"Code, {pages.LONG} lines"),
        (pages.LONG + 1, {}, True, f"Code, {pages.LONG + 1} lines"),
        (2, {"jupyter": {"source_hidden": True}}, True, "Code, 2 lines"),
        (99, {"nbgrader": {"solution": True, "grade": False}}, False, "Code, 99 lines"),
        (2, {"nbgrader": {"solution": False, "grade": True}}, True, "Check, 2 lines"),
    ],
)
def test_long_and_hidden_code_is_folded(n_lines, metadata, folded, summary):
    source = "\n".join(f"x{i} = {i}" for i in range(n_lines))
    notebook = new_notebook(cells=[new_code_cell(source, metadata=metadata)])
    text = main_part(pages.page(notebook))
    (attribute,) = re.findall(r'<details class="code"([^>]*)>', text)
    assert ("open" in attribute) == (not folded)
    assert f"<summary>{summary}</summary>" in text
    # All of the code is there.
    assert f">x{n_lines - 1}<" in text
    # The notebook itself is as it was.
    assert notebook.cells[0].metadata == metadata


@pytest.mark.parametrize("kind", ["gif", "webp"])
def test_an_animation_in_an_output_moves_on_the_page(kind):
    raw = picture(kind, ["red", "green", "blue"])
    cells = [
        new_markdown_cell("## How < it moves"),
        new_code_cell(outputs=[shown(kind, raw)]),
    ]
    text = pages.page(new_notebook(cells=cells))
    pattern = rf'<img alt="Figure 1: How &lt; it moves" src="data:image/{kind};base64,([^"]+)"/>'
    (source,) = re.findall(pattern, text)
    with Image.open(io.BytesIO(base64.b64decode(source))) as animation:
        assert animation.n_frames == 3
    # The card in the index shows the first frame.
    assert (
        make_pages.first_figure(new_notebook(cells=cells)).convert("RGB").getpixel((0, 0))[0] > 200
    )


def test_pictures_of_the_text_are_in_the_page(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "lectures").mkdir()
    gif = picture("gif", ["red", "blue"])
    png = picture("png")
    (tmp_path / "figures" / "moving one.gif").write_bytes(gif)
    (tmp_path / "figures" / "still.png").write_bytes(png)
    path = tmp_path / "lectures" / "note.md"
    path.write_text(
        "# Note\n\n![moves](../figures/moving%20one.gif)\n\n"
        '<img alt="still" width="9" src="../figures/still.png">\n\n'
        "![not there](../figures/none.png) ![out](https://example.org/a.png)"
    )
    text = pages.page(pages.read(path), folder=path.parent)
    for kind, raw in [("gif", gif), ("png", png)]:
        source = f'src="data:image/{kind};base64,{base64.b64encode(raw).decode()}"'
        assert text.count(source) == 1
    assert 'src="../figures/none.png"' in text and 'src="https://example.org/a.png"' in text


def test_a_matrix_of_two_rows_stands_on_the_middle_of_the_line():
    def size(tex, alone):
        style = re.search(
            r"height:([\d.]+)em;vertical-align:(-?[\d.]+)em", pages.formula(tex, alone)
        )
        return float(style[1]), float(style[2])

    height, depth = size(r"\begin{bmatrix} a & b \\ c & -d \end{bmatrix}", True)
    assert height > 1.5 and -0.6 * height < depth < -0.2 * height
    assert size(r"\frac{a}{b}", True)[0] > 1.2 * size(r"\frac{a}{b}", False)[0]


# ---- light and dark ------------------------------------------------------------------


def colours(scheme):
    """Return the colours of the style by name."""
    light, dark = re.findall(r":root \{(.*?)\}", pages.STYLE, re.DOTALL)
    found = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+);", light))
    if scheme == "dark":
        changed = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+);", dark))
        # A colour without a dark twin would stay light.
        assert changed.keys() == found.keys()
        return changed
    return found


def luminance(colour):
    """Return the relative luminance by the Web Content Accessibility Guidelines."""
    digits = colour.lstrip("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    shares = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def brighter(colour, factor):
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{min(255, round(factor * part)):02x}" for part in parts)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read_in_both_schemes(scheme):
    colour = colours(scheme)
    used = set(re.findall(r"var\(--([a-z-]+)\)", pages.STYLE))
    assert used == set(colour)
    for ground in ("page", "panel", "note", "stderr"):
        assert contrast(colour["text"], colour[ground]) > 7
    for ink in ("link", "quiet"):
        for ground in ("page", "panel"):
            assert contrast(colour[ink], colour[ground]) > 4.5
    factor = 1.0
    if scheme == "dark":
        factor = float(re.search(r"\.verdict.*brightness\(([\d.]+)\)", pages.STYLE)[1])
    for verdict in VERDICTS.values():
        assert contrast(brighter(verdict[1], factor), colour["page"]) > 4.5
    assert contrast("#000", "#fff") == pytest.approx(21)


def test_dark_is_the_setting_of_the_reader_also_for_code():
    text = pages.page(new_notebook(cells=[new_code_cell("1")]))
    parts = text.split("@media (prefers-color-scheme: dark) {")
    assert len(parts) == 3
    assert any(".highlight .k " in part for part in parts[1:])
    assert "img.formula { filter: invert" in parts[2]


# ---- the course ----------------------------------------------------------------------


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Return the folder of a site with a notebook, exercises and texts."""
    source = tmp_path / "notebooks"
    for folder in ("student", "solution", "lectures"):
        (source / "exercises" / folder).mkdir(parents=True)
    (source / "figures").mkdir()
    (source / "figures" / "blue.png").write_bytes(picture("png"))
    written = {
        "README.md": "# About\n\nSee [results](#the-results).\n\n## The results\n\nGood.",
        "exercises/README.md": "# Plan\n\nOne lesson. More.\n\n[first](student/01_one.ipynb)",
        "exercises/quiz.md": "# Quiz\n\nTen questions.",
        "exercises/glossary.md": "# Glossary\n\nWords.\n\n## Hash function\n\nIt maps.",
        "exercises/lectures/02_b.md": "# Lesson 2\n\nNext.",
        "exercises/lectures/01_a.md": (
            "# Lesson 1\n\nA [word](../glossary.md#hash-function) and [results]"
            "(../../README.md#the-results). [Code](../check.py) "
            "[by hand](../student/01_one.ipynb#A-task)\n\n![blue](../../figures/blue.png)"
        ),
    }
    for name, text in written.items():
        (source / name).write_text(text)
    (source / "exercises" / "check.py").write_text("")
    task = new_code_cell("raise NotImplementedError", metadata={"nbgrader": {"solution": True}})
    words = new_markdown_cell(
        "# Exercise 1\n\n**You will learn** it.\n\n## A task\n\nDo [it](../../01_x.ipynb)."
    )
    for folder in ("student", "solution"):
        nbformat.write(
            new_notebook(cells=[words, task]),
            source / f"exercises/{folder}/01_one.ipynb",
        )
    nbformat.write(new_notebook(cells=[words, task]), source / "exercises/student/02_two.ipynb")
    nbformat.write(new_notebook(cells=[new_markdown_cell("# X\n\nWords.")]), source / "01_x.ipynb")
    monkeypatch.setattr(make_pages, "NOTEBOOKS", source)
    found = make_pages.sources(source)
    assert list(found) == [
        "01_x",
        "README",
        "exercises/README",
        "exercises/lectures/01_a",
        "exercises/lectures/02_b",
        "exercises/quiz",
        "exercises/glossary",
        "exercises/student/01_one",
        "exercises/student/02_two",
        "exercises/solution/01_one",
    ]
    site = tmp_path / "build" / "site"
    make_pages.build({name: make_pages.latest(path) for name, path in found.items()}, site)
    return site


def hrefs(path):
    return re.findall(r'href="([^"]+)"', path.read_text(encoding="utf-8"))


def test_every_link_of_the_course_resolves(course):
    n_followed = 0
    for path in course.rglob("*.html"):
        assert network(path.read_text(encoding="utf-8")) == []
        for target in hrefs(path):
            name, _, anchor = target.partition("#")
            there = path.parent / name if name else path
            assert there.exists(), f"{path.name} leads to {target}"
            assert not anchor or f'id="{anchor}"' in there.read_text(encoding="utf-8")
            n_followed += 1
    assert n_followed > 30


def test_links_of_a_text_lead_to_pages_and_headings(course):
    found = hrefs(course / "exercises/lectures/01_a.html")
    # GitHub names headings in small letters, Jupyter as they are written.
    assert "../glossary.html#Hash-function" in found
    assert "../../README.html#The-results" in found
    assert "../student/01_one.html#A-task" in found
    assert "../../../../notebooks/exercises/check.py" in found
    assert {"../../index.html#course", "02_b.html"} <= set(found)
    assert "#The-results" in hrefs(course / "README.html")


def test_exercises_and_solutions_are_marked_and_know_each_other(course):
    student = (course / "exercises/student/01_one.html").read_text(encoding="utf-8")
    solution = (course / "exercises/solution/01_one.html").read_text(encoding="utf-8")
    alone = (course / "exercises/student/02_two.html").read_text(encoding="utf-8")
    assert "<b>Exercise, to solve.</b>" in student and "<b>Solution.</b>" in solution
    assert "notebooks/exercises/student/01_one.ipynb" in student
    assert 'href="../solution/01_one.html"' in student
    assert 'href="../student/01_one.html"' in solution
    assert "<b>Exercise, to solve.</b>" in alone and "../solution/" not in main_part(alone)
    assert 'class="note"' not in (course / "01_x.html").read_text(encoding="utf-8")


def test_the_index_has_notebooks_course_and_exercises(course):
    text = (course / "index.html").read_text(encoding="utf-8")
    parts = re.split(r"<h2 ", main_part(text))[1:]
    notebooks, texts_part, exercises = parts
    assert 'href="01_x.html"' in notebooks
    assert re.findall(r'<h3><a href="([^"]+)"', texts_part) == [
        "exercises/README.html",
        "exercises/lectures/01_a.html",
        "exercises/lectures/02_b.html",
        "exercises/quiz.html",
        "exercises/glossary.html",
    ]
    assert "One lesson." in texts_part and "More." not in texts_part
    first, second = re.findall(r"<li>.*?</li>", exercises, re.DOTALL)
    assert '"exercises/student/01_one.html">Exercise, to solve<' in first
    assert '"exercises/solution/01_one.html">Solution<' in first
    assert "Solution" not in second and "<b>You will" not in text
    assert 'href="README.html">The results</a>' in text
    for part in ("notebooks", "course", "exercises"):
        assert f'href="#{part}"' in text


def test_all_sources_of_the_clone_have_a_page():
    root = Path(__file__).parents[1] / "notebooks"
    wanted = set(root.rglob("*.md")) | set(root.rglob("[0-9]*.ipynb"))
    wanted = {path for path in wanted if ".ipynb_checkpoints" not in path.parts}
    assert set(SOURCES.values()) == wanted
    assert sum(name.startswith("exercises/student/") for name in SOURCES) >= 9
