"""Make HTML pages of the notebooks and texts: python -m tools.make_pages [NOTEBOOK.ipynb ...]

Open build/site/index.html to read them without Jupyter. The pages are the notebooks, the exercises
with their solutions, and the texts in Markdown beside them. Nothing is executed. A page shows the
last run in build/notebooks if its cells are those of the notebook now. Otherwise it shows the
outputs that are stored in the notebook.

`tools.page` makes one page. The pages lie in folders as their sources do in notebooks/.
"""

from __future__ import annotations

import argparse
import base64
import html
import io
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

from nbformat import NotebookNode
from PIL import Image

from study.claims import VERDICTS
from study.records import write_atomically
from study.scorecard import COUNTS_TYPE
from tools.page import NOTEBOOKS, headings, markdown, page, read, title, wrapped

__all__ = ["build", "latest", "links", "sources"]

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "build" / "notebooks"
SITE = ROOT / "build" / "site"
# In pixels, twice the size that the index shows, for screens of high resolution.
THUMBNAIL = (640, 400)
# The folders of the pages that are not notebooks on the paper.
TO_SOLVE = "exercises/student/"
SOLVED = "exercises/solution/"
COURSE = "exercises/"

INTRODUCTION = """<h1>hmoh: the paper, section by section</h1>
<p><em>Hadamard Matrix Guided Online Hashing</em> (Lin et al., IJCV 2020), recomputed.
A notebook on a part of the paper ends with a verdict on every claim in it.{more}</p>
<details><summary>What the verdicts mean</summary><p>{legend}.</p></details>
"""
ABOUT = """ <a href="README.html">The results</a>, and where each table and figure of the paper is,
have a page of their own."""
CARD = """<li><a href="{name}.html"><div class="thumbnail">{shown}</div>
<div class="card"><h3>{number} {title}</h3>{text}{notes}</div></a></li>"""
ROW = """<li><h3>{heading}</h3>{text}{ways}</li>"""
SECTION = """<h2 id="{name}">{heading}</h2>
<ul class="{look}">
{entries}
</ul>
"""
# The parts of the index: heading, and how the entries look. A solution stands with its exercise.
SECTIONS = {
    "notebooks": ("Notebooks", "cards"),
    "course": ("Course: plan, lecture notes, quiz, glossary", "rows"),
    "exercises": ("Exercises and their solutions", "rows"),
}


# ---- what the index shows of a notebook ----------------------------------------------


def sentence(notebook: NotebookNode) -> str:
    """Return the first sentence of the first paragraph.

    A sentence ends where a capital letter follows, so "Sec. 4" does not end it. Pictures are no
    paragraphs.
    """
    source = notebook.cells[0].source if notebook.cells else ""
    text = re.sub(r"^(#|!\[).*$", "", source, flags=re.MULTILINE).strip()
    paragraph = " ".join(text.split("\n\n")[0].split())
    first = re.split(r"(?<=[.!?]) +(?=[A-Z*`$])", paragraph)[0]
    return re.sub(r":$", " ...", first)


def results(notebook: NotebookNode, *mime_types: str) -> Iterator:
    """Yield the outputs of a notebook that have one of these types."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            for mime_type in mime_types:
                if mime_type in data:
                    yield data[mime_type]


def first_figure(notebook: NotebookNode) -> Image.Image | None:
    """Return the first picture, or None; of an animation its first frame."""
    for source in results(notebook, "image/png", "image/gif", "image/webp"):
        return Image.open(io.BytesIO(base64.b64decode(source)))
    return None


def verdicts(notebook: NotebookNode) -> dict[str, int]:
    """Return verdict -> count as the table of claims in the notebook stored them."""
    counts = next(results(notebook, COUNTS_TYPE), {})
    return {verdict: counts[verdict] for verdict in VERDICTS if counts.get(verdict)}


def state(notebook: NotebookNode) -> str:
    """Return what the index says about the run: nothing if it is complete."""
    if not any(cell.get("execution_count") for cell in notebook.cells):
        return "Not run yet."
    if notebook.metadata.get("hmoh_profile") == "quick":
        return "Run in the quick profile."
    return ""


def card(name: str, notebook: NotebookNode, folder: Path) -> str:
    """Return the entry of a notebook in the index; its thumbnail is written to the folder."""
    number = name.split("_")[0]
    shown = html.escape(number)
    picture = first_figure(notebook)
    if picture:
        picture = picture.convert("RGBA")
        picture.thumbnail(THUMBNAIL, Image.Resampling.LANCZOS)
        picture.save(folder / f"{name}.png", optimize=True)
        shown = f'<img src="{name}.png" alt=""/>'
    found = ""
    for verdict, n in verdicts(notebook).items():
        symbol, colour, _ = VERDICTS[verdict]
        style = f"color:{colour}"
        found += f'<span class="verdict" style="{style}">{symbol} {n} {verdict}</span>'
    notes = [note for note in (found, state(notebook)) if note]
    # The whole card is a link, so its text must not contain links.
    return CARD.format(
        name=name,
        shown=shown,
        number=html.escape(number),
        title=html.escape(title(notebook)),
        text=without_links(markdown(sentence(notebook))),
        notes="".join(f"<p>{note}</p>" for note in notes),
    )


def without_links(text: str) -> str:
    """Return HTML with the texts of its links only."""
    return re.sub(r"</?a\b[^>]*>", "", text)


def row(name: str, notebooks: dict[str, NotebookNode]) -> str:
    """Return the entry of a text or an exercise in the index; an exercise has its solution too."""
    notebook = notebooks[name]
    heading = html.escape(title(notebook))
    ways = ""
    if kind(name) == "exercises":
        solved = counterpart(name, notebooks)
        ways = f'<a href="{name}.html">Exercise, to solve</a>'
        ways += f'<a href="{solved}.html">Solution</a>' if solved else ""
        ways = f'<p class="ways">{ways}</p>'
    else:
        heading = f'<a href="{name}.html">{heading}</a>'
    text = without_links(markdown(sentence(notebook)))
    return ROW.format(heading=heading, text=text, ways=ways)


# ---- the site ------------------------------------------------------------------------


def kind(name: str) -> str:
    """Return what a page is: one of "notebooks", "course", "exercises", "solutions", "about"."""
    if name.startswith(TO_SOLVE):
        return "exercises"
    if name.startswith(SOLVED):
        return "solutions"
    if name.startswith(COURSE):
        return "course"
    return "about" if name == "README" else "notebooks"


def counterpart(name: str, names: Iterable[str]) -> str | None:
    """Return the solution of an exercise, or the exercise of a solution, if there is a page."""
    stem = Path(name).name
    other = TO_SOLVE + stem if kind(name) == "solutions" else SOLVED + stem
    return other if other in names else None


def index(notebooks: dict[str, NotebookNode], folder: Path) -> str:
    """Return the page that lists all pages; thumbnails are written to the folder."""
    meanings = []
    for verdict, (symbol, _, meaning) in VERDICTS.items():
        meanings.append(f"<b>{symbol} {verdict}</b>: {meaning}")
    more = ABOUT if "README" in notebooks else ""
    body = INTRODUCTION.format(more=more, legend="; ".join(meanings))
    for part, (heading, look) in SECTIONS.items():
        entries = []
        for name in notebooks:
            if kind(name) == part == "notebooks":
                entries.append(card(name, notebooks[name], folder))
            elif kind(name) == part:
                entries.append(row(name, notebooks))
        if entries:
            listed = "\n".join(entries)
            body += SECTION.format(name=part, heading=heading, look=look, entries=listed)
    return wrapped(body, "hmoh notebooks")


def note(name: str, names: Iterable[str]) -> str:
    """Return what the reader of an exercise must know first, and nothing for other pages."""
    if kind(name) not in ("exercises", "solutions"):
        return ""
    other = counterpart(name, names)
    target = f"{os.path.relpath(other, Path(name).parent)}.html" if other else ""
    if kind(name) == "solutions":
        way = f' <a href="{target}">Try the exercise first.</a>' if other else ""
        return f"<b>Solution.</b> It shows one right answer to every task.{way}"
    way = f' <a href="{target}">The solution</a> is another page.' if other else ""
    return (
        "<b>Exercise, to solve.</b> This page is to read. To work on it, open "
        f"<code>notebooks/{html.escape(name)}.ipynb</code> in Jupyter.{way}"
    )


def navigation(notebooks: dict[str, NotebookNode], name: str) -> str:
    """Return links to the index and to the pages before and after this one, of its folder."""
    here = Path(name).parent
    names = [other for other in notebooks if Path(other).parent == here]
    place = names.index(name)
    up = os.path.relpath("index.html", here)
    if here != Path():
        # To the part of the index that lists this page.
        up += "#course" if kind(name) == "course" else "#exercises"
    targets = [(up, "All pages")]
    if place > 0:
        before = names[place - 1]
        targets.append((f"{Path(before).name}.html", f"← {title(notebooks[before])}"))
    if place + 1 < len(names):
        after = names[place + 1]
        targets.append((f"{Path(after).name}.html", f"{title(notebooks[after])} →"))
    shown = []
    for target, text in targets:
        shown.append(f'<a href="{html.escape(target)}">{html.escape(text)}</a>')
    return " ".join(shown)


def plain_anchor(anchor: str) -> str:
    """Return an anchor as GitHub writes it, to compare it with those of Jupyter.

    >>> plain_anchor("Table-4:-mAP"), plain_anchor("table-4-map")
    ('table-4-map', 'table-4-map')
    """
    return re.sub(r"[^\w-]", "", unquote(anchor).lower())


def links(name: str, pages: dict[str, str], folder: Path, root: Path | None = None) -> str:
    """Return a page whose links work from its place in the folder of the site.

    Links to notebooks and texts lead to their pages, and links to other files of the clone to the
    file. A heading may be named as on GitHub or as in Jupyter. The sources of the pages are in the
    folder ``root``, by default notebooks/.
    """
    root = root or NOTEBOOKS
    source = root / Path(name).parent
    here = folder / Path(name).parent

    def moved(match: re.Match) -> str:
        target, mark, anchor = html.unescape(match[1]).partition("#")
        other = name
        if target:
            path = Path(os.path.normpath(source / unquote(target)))
            is_text = path.suffix in (".ipynb", ".md")
            other = os.path.relpath(path.with_suffix(""), root) if is_text else ""
            other = Path(other).as_posix()
            if other in pages:
                target = os.path.relpath(folder / f"{other}.html", here)
            elif path.exists():
                target = os.path.relpath(path, here)
            target = Path(target).as_posix()
        if anchor and other in pages:
            anchor = same_heading(anchor, pages[other])
        return f'href="{html.escape(target + mark + anchor)}"'

    return re.sub(r'href="(?![a-z]+:)([^"]+)"', moved, pages[name])


def same_heading(anchor: str, text: str) -> str:
    """Return the id of the heading that an anchor means, or the anchor if there is none."""
    for _, other, _ in headings(text):
        if plain_anchor(other) == plain_anchor(anchor):
            return other
    return anchor


def build(notebooks: dict[str, NotebookNode], folder: Path = SITE) -> None:
    """Write the index, and a page for each notebook or text; the folder is emptied first.

    Parameters
    ----------
    notebooks : dict
        Name, like "02_mnist" or "exercises/student/01_sylvester" -> executed notebook, in the
        order of the index.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pages = {}
    for name, notebook in notebooks.items():
        source = NOTEBOOKS / Path(name).parent
        around = navigation(notebooks, name)
        pages[name] = page(notebook, around, source, note(name, notebooks))
    for name in notebooks:
        target = folder / f"{name}.html"
        write_atomically(target, links(name, pages, folder))
    write_atomically(folder / "index.html", index(notebooks, folder))


def latest(path: Path) -> NotebookNode:
    """Return the last run of a notebook if its cells are the same, else the notebook itself."""
    notebook = read(path)
    if path.suffix == ".md" or not (RUNS / path.name).exists():
        return notebook
    ran = read(RUNS / path.name)
    sources = [cell.source for cell in notebook.cells]
    same = sources == [cell.source for cell in ran.cells]
    return ran if same else notebook


def sources(folder: Path = NOTEBOOKS) -> dict[str, Path]:
    """Return name -> file of all pages, in the order of the index.

    These are the notebooks, the texts of the course with its plan first, and the exercises.
    """
    course = folder / COURSE
    paths = [
        *sorted(folder.glob("[0-9]*.ipynb")),
        *sorted(folder.glob("*.md")),
        *sorted(course.glob("README.md")),
        *sorted(course.glob("lectures/*.md")),
        *sorted(set(course.glob("*.md")) - {course / "README.md"}, reverse=True),
        *sorted((folder / TO_SOLVE).glob("[0-9]*.ipynb")),
        *sorted((folder / SOLVED).glob("[0-9]*.ipynb")),
    ]
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}


def main() -> None:
    parser = argparse.ArgumentParser(description="Make HTML pages of the notebooks.")
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK.ipynb")
    paths = {path.stem: path for path in parser.parse_args().notebooks} or sources()
    build({name: latest(path) for name, path in paths.items()})
    print(f"{len(paths)} pages: {os.path.relpath(SITE / 'index.html')}")


if __name__ == "__main__":
    main()
