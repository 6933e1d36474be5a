"""Convert a notebook, or a text in Markdown, to one HTML page.

A page needs no network: it has no scripts, it contains its style and its pictures, and its formulas
are pictures drawn by matplotlib. Long code is folded, and the headings are listed.
"""

from __future__ import annotations

import base64
import html
import io
import mimetypes
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import nbformat
from jinja2 import pass_context
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook
from pygments.formatters import HtmlFormatter

__all__ = ["formula", "headings", "markdown", "page", "read", "title", "wrapped"]

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
STYLE = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
# Code of more lines is folded.
LONG = 14
# Pictures that may move, which nbconvert does not know.
ANIMATIONS = ("image/gif", "image/webp")

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{title}</title>
<style>{style}</style>
</head>
<body{kind}>
<nav class="top">{navigation}</nav>
<div class="sheet">{aside}
<main>
{body}
</main>
</div>
</body>
</html>
"""
# Around a table.
WIDE = r'<div class="wide">\g<0></div>'
# Around the code of a cell. The rest is nbconvert's template.
CELLS = """{%- extends 'index.html.j2' -%}
{% block input %}
<details class="code"{{ '' if cell.metadata.is_folded else ' open' }}>
<summary>{{ cell.metadata.summary }}</summary>
<div class="input_area">
{{ cell.source | highlight_code(metadata=cell.metadata) }}
</div>
</details>
{%- endblock input %}
"""


# ---- formulas ------------------------------------------------------------------------

# A row of a matrix: up to the mark of the next row, or the end.
ROW = r"((?:(?!\\\\|\\end).)*)"
# LaTeX commands that matplotlib spells differently: pattern and replacement.
REWRITTEN = [
    (r"\\(le|ge)(?![A-Za-z])", r"\\\1q"),
    (r"\\[lr]vert(?![A-Za-z])", "|"),
    (r"\\[lr]Vert(?![A-Za-z])", r"\\|"),
    (r"\\[td]?frac *(\w) *(\w)", r"\\frac{\1}{\2}"),
    (r"\\[td]frac", r"\\frac"),
    # A matrix of two rows is a fraction without its line. With more rows it has no brackets.
    (
        rf"\\begin{{bmatrix}}{ROW}\\\\{ROW}\\end{{bmatrix}}",
        r"\\genfrac{[}{]}{0}{0}{\1}{\2}",
    ),
    (
        rf"\\begin{{smallmatrix}}{ROW}\\\\{ROW}\\end{{smallmatrix}}",
        r"\\genfrac{}{}{0}{}{\1}{\2}",
    ),
    (r"\\begin\{[a-z]*matrix\}", r"\\substack{"),
    (r"\\end\{[a-z]*matrix\}", "}"),
    # Between the columns of a matrix.
    (r"(?<!\\)&", r"\\;\\;"),
    (r"\\&", "&"),
]
# In formulas on a line of their own.
LARGER = (r"\\frac(?![A-Za-z])", r"\\dfrac")
# At this size a point is a hundredth of an em.
FONT = FontProperties(size=100, math_fontfamily="stix")


@cache
def formula(tex: str, alone: bool = False) -> str:
    """Return a formula as an image that needs neither fonts nor scripts.

    A formula that matplotlib cannot draw stays as text. Fractions are larger if it stands alone on
    a line.

    >>> formula("r^*")[:31], formula(r"\\unheard{of}")
    ('<img class="formula" alt="r^*" ', '<code>\\\\unheard{of}</code>')
    """
    drawn = " ".join(tex.split())
    for pattern, other in REWRITTEN:
        drawn = re.sub(pattern, other, drawn)
    if alone:
        drawn = re.sub(*LARGER, drawn)
    drawn = f"${drawn}$"
    try:
        box = MathTextParser("path").parse(drawn, dpi=72, prop=FONT)
    except ValueError:
        return f"<code>{html.escape(tex)}</code>"
    width, height, depth, *_ = box
    figure = Figure(figsize=(width / 72, height / 72))
    figure.text(0, depth / height, drawn, fontproperties=FONT)
    file = io.BytesIO()
    # Without the date, equal formulas give equal files.
    metadata = {"Date": None, "Creator": None}
    figure.savefig(file, format="svg", transparent=True, metadata=metadata)
    source = base64.b64encode(file.getvalue()).decode()
    style = (
        f"width:{width / 100:.2f}em;height:{height / 100:.2f}em;vertical-align:{-depth / 100:.2f}em"
    )
    return (
        f'<img class="formula" alt="{html.escape(tex)}" style="{style}" '
        f'src="data:image/svg+xml;base64,{source}"/>'
    )


class Renderer(IPythonRenderer):
    """Convert Markdown to HTML, with formulas as images."""

    def inline_math(self, body: str) -> str:
        return formula(body)

    def block_math(self, body: str) -> str:
        return f'<span class="display">{formula(body, True)}</span>'

    def latex_environment(self, name: str, body: str) -> str:
        if not name.startswith("equation"):
            body = rf"\begin{{{name}}}{body}\end{{{name}}}"
        return self.block_math(body)


def markdown(source: str) -> str:
    """Return Markdown as HTML."""
    return MarkdownWithMath(renderer=Renderer(escape=False)).render(source)


# ---- the cells -----------------------------------------------------------------------


class Exporter(HTMLExporter):
    """Convert cells to plain HTML: the template "basic" has neither head nor scripts."""

    template_name = "basic"
    raw_template = CELLS

    @pass_context
    def markdown2html(self, context, source):
        return markdown(source)


def read(path: Path) -> NotebookNode:
    """Return a notebook; a text in Markdown becomes a notebook of one cell."""
    if path.suffix == ".md":
        return new_notebook(cells=[new_markdown_cell(path.read_text(encoding="utf-8"))])
    return nbformat.read(path, as_version=4)


def title(notebook: NotebookNode) -> str:
    """Return the first heading, without the marks of code."""
    for cell in notebook.cells:
        match = re.search(r"^# +(.+)$", cell.source, re.MULTILINE)
        if match:
            return match[1].replace("`", "")
    return "Notebook"


def fold_code(notebook: NotebookNode) -> None:
    """Note in every cell of code whether it is folded: long code, checks, and what Jupyter hides.

    Code that a student writes is never folded.
    """
    for cell in notebook.cells:
        if cell.cell_type == "code":
            n_lines = cell.source.count("\n") + 1
            is_hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False)
            grading = cell.metadata.get("nbgrader", {})
            is_task = grading.get("solution", False)
            is_check = grading.get("grade", False) and not is_task
            is_long = n_lines > LONG and not is_task
            cell.metadata["is_folded"] = is_hidden or is_check or is_long
            what = "Check" if is_check else "Code"
            plural = "" if n_lines == 1 else "s"
            cell.metadata["summary"] = f"{what}, {n_lines} line{plural}"


def describe_pictures(notebook: NotebookNode) -> None:
    """Give every picture a text for readers who cannot see it: number and last heading.

    An animation becomes an HTML output, which nbconvert shows.
    """
    heading = ""
    count = 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            found = re.findall(r"^#+ +(.+)$", cell.source, re.MULTILINE)
            heading = found[-1] if found else heading
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            moving = [kind for kind in ANIMATIONS if kind in data]
            if not moving and "image/png" not in data:
                continue
            count += 1
            text = f"Figure {count}: {heading}"
            if moving:
                source = f"data:{moving[0]};base64,{''.join(data[moving[0]].split())}"
                picture = f'<img alt="{html.escape(text)}" src="{source}"/>'
                output["data"] = {"text/html": picture}
            else:
                metadata = output.setdefault("metadata", {})
                metadata.setdefault("image/png", {})["alt"] = text


# ---- the page ------------------------------------------------------------------------


def embedded(body: str, folder: Path) -> str:
    """Return HTML that contains its pictures; files are looked for from the folder."""

    def contained(match: re.Match) -> str:
        path = folder / unquote(html.unescape(match[2]))
        if not path.is_file():
            return match[0]
        kind = mimetypes.guess_type(path.name)[0]
        source = base64.b64encode(path.read_bytes()).decode()
        return f'{match[1]}data:{kind};base64,{source}"'

    return re.sub(r'(<img\b[^>]*?\bsrc=")(?![a-z]+:|//)([^"]+)"', contained, body)


def with_own_names(body: str) -> str:
    """Return HTML in which headings of the same text have different ids."""
    seen: dict[str, int] = {}

    def renamed(match: re.Match) -> str:
        name = match[2]
        seen[name] = seen.get(name, 0) + 1
        if seen[name] == 1:
            return match[0]
        other = f"{name}-{seen[name]}"
        return (
            match[0]
            .replace(f'id="{name}"', f'id="{other}"')
            .replace(f'href="#{name}"', f'href="#{other}"')
        )

    return re.sub(r'<h([1-6]) id="([^"]+)">.*?</h\1>', renamed, body, flags=re.DOTALL)


def headings(body: str) -> Iterator[tuple[int, str, str]]:
    """Yield level, id and text of the headings of a page."""
    found = re.findall(r'<h([1-6]) id="([^"]+)">(.*?)</h\1>', body, re.DOTALL)
    for level, name, text in found:
        text = re.sub(r'<a class="anchor-link".*?</a>', "", text, flags=re.DOTALL)
        yield int(level), name, re.sub(r"</?a\b[^>]*>", "", text)


def contents(body: str) -> str:
    """Return the list of the headings of the second and third level, if there are any."""
    entries = []
    for level, name, text in headings(body):
        if level in (2, 3):
            kind = ' class="deep"' if level == 3 else ""
            entries.append(f'<li{kind}><a href="#{name}">{text}</a></li>')
    return f"<ul>{''.join(entries)}</ul>" if entries else ""


@cache
def style() -> str:
    """Return the style of the pages with the colours of code, light and dark."""
    light = HtmlFormatter(style="default").get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".highlight")
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n{STYLE}"


def wrapped(body: str, name: str, navigation: str = "") -> str:
    """Return a whole page with this body, and the contents beside it.

    Parameters
    ----------
    body : str
        HTML.
    name : str
        The title of the page.
    navigation : str
        Links to other pages, in HTML.
    """
    listed = contents(body)
    aside = ""
    if listed:
        aside = f'\n<aside class="contents">{listed}</aside>'
        # After the first heading.
        folded = f'<details class="contents"><summary>Contents</summary>{listed}</details>'
        body = body.replace("</h1>", f"</h1>\n{folded}", 1)
    return PAGE.format(
        title=html.escape(name),
        style=style(),
        kind=' class="with-contents"' if listed else "",
        navigation=navigation,
        aside=aside,
        body=body,
    )


def page(
    notebook: NotebookNode,
    navigation: str = "",
    folder: Path = NOTEBOOKS,
    note: str = "",
) -> str:
    """Return a notebook with its outputs as one HTML file.

    Parameters
    ----------
    notebook : NotebookNode
    navigation : str
        Links to other pages, in HTML.
    folder : Path
        Where the pictures of the texts are looked for: the folder of the notebook.
    note : str
        What a reader must know first, in HTML.
    """
    # A copy, because it is changed.
    notebook = nbformat.from_dict(notebook)
    fold_code(notebook)
    describe_pictures(notebook)
    body, _ = Exporter().from_notebook_node(notebook)
    body = with_own_names(embedded(body, folder))
    body = re.sub(r"<table\b.*?</table>", WIDE, body, flags=re.DOTALL)
    if note:
        body = f'<p class="note">{note}</p>\n{body}'
    return wrapped(body, title(notebook), navigation)
