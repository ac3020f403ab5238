"""From sections to one HTML page: everything on it is escaped, nothing is fetched, nothing runs."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from locole.experiments.report.drawing import Picture
from locole.experiments.report.style import stylesheet
from locole.experiments.report.tables import Cell, Table

__all__ = ["Block", "Section", "render"]

# The browser is told, too: whatever slipped into the page could neither run nor call anyone.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True)
class Block:
    """Tables and figures of one data set, with sentences computed from them."""

    title: str = ""
    sentences: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    small: bool = False


@dataclass(frozen=True)
class Section:
    """Part of the page.

    Attributes
    ----------
    name : str
        Anchor, and name of the CSV file.
    title : str
    lead : str
        What is shown; never what follows from it.
    blocks : sequence of Block
    facts : sequence of pairs
        Names and values, listed.
    csv : str
        The figures as a CSV file; empty for none.
    """

    name: str
    title: str
    lead: str = ""
    blocks: Sequence[Block] = ()
    facts: Sequence[tuple[str, str]] = field(default=())
    csv: str = ""


def render(title: str, summary: str, sections: Sequence[Section], footer: str) -> str:
    """Page with a table of contents.

    Parameters
    ----------
    title, summary, footer : str
        Text, which is escaped here like all other.
    sections : sequence of Section
        Parts, in order.

    Returns
    -------
    str
        HTML with its styles and figures inside, no scripts and nothing to fetch.

    Examples
    --------
    >>> "<h1>a &lt; b</h1>" in render("a < b", "", [], "")
    True
    """
    contents = "\n".join(
        f'<li><a href="#{escape(s.name)}">{escape(s.title)}</a></li>' for s in sections
    )
    body = "\n".join(_section(section) for section in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(title)}</title>
<style>{stylesheet()}</style>
</head>
<body>
<div class="page">
<header>
<h1>{escape(title)}</h1>
<p>{escape(summary)}</p>
</header>
<div class="columns">
<nav aria-label="Contents">
<strong>On this page</strong>
<ol>
{contents}
</ol>
</nav>
<main>
{body}
</main>
</div>
<footer><p>{escape(footer)}</p></footer>
</div>
</body>
</html>
"""


def _section(section: Section) -> str:
    name = escape(section.name)
    parts = [f'<section id="{name}" aria-labelledby="{name}-title">']
    parts.append(f'<h2 id="{name}-title">{escape(section.title)}</h2>')
    if section.lead:
        parts.append(f'<p class="lead">{escape(section.lead)}</p>')
    if section.facts:
        parts.append(_facts(section.facts))
    parts += [_block(block) for block in section.blocks]
    if section.csv:
        parts.append(_download(section))
    return "\n".join([*parts, "</section>"])


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    pairs = "\n".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in facts)
    return f"<dl>\n{pairs}\n</dl>"


def _block(block: Block) -> str:
    parts = [f"<h3>{escape(block.title)}</h3>"] if block.title else []
    said = _said(block.sentences)
    if block.pictures:
        kind = "panels small" if block.small else "panels"
        figures = "\n".join(f"<figure>\n{p.inline}\n</figure>" for p in block.pictures)
        # Sentences fill the place beside the last figure.
        parts.append(f'<div class="{kind}">\n{figures}\n{said}\n</div>')
    parts += [_table(table) for table in block.tables if table.rows]
    return "\n".join(parts if block.pictures else [*parts, said])


def _said(sentences: Sequence[str]) -> str:
    said = "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences if sentence)
    return f'<div class="said">\n{said}\n</div>' if said else ""


def _table(table: Table) -> str:
    right = {i for row in table.rows for i, kind in enumerate(_kinds(row)) if kind == "number"}
    head = "".join(
        f'<th scope="col"{_number_class(i in right)}>{escape(name)}</th>'
        for i, name in enumerate(table.header)
    )
    body = "\n".join(map(_row, table.rows))
    caption = escape(table.caption)
    # Wide tables scroll in a box of their own, also by keys.
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}">\n'
        f"<table>\n<caption><span>{caption}</span></caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def _row(row: Sequence[Cell]) -> str:
    first, *rest = row
    if first.kind == "group":
        columns = f'class="group" colspan="{first.span}" scope="rowgroup"'
        return f"</tbody>\n<tbody>\n<tr><th {columns}>{_content(first)}</th></tr>"
    return f'<tr><th scope="row">{_content(first)}</th>{"".join(map(_cell, rest))}</tr>'


def _kinds(row: Sequence[Cell]) -> list[str]:
    return [cell.kind for cell in row for _ in range(cell.span)]


def _number_class(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _cell(cell: Cell) -> str:
    kinds = [cell.kind] if cell.kind != "text" else []
    kinds += ["best"] * cell.best + ["bar"] * (cell.share is not None)
    attributes = f' class="{" ".join(kinds)}"' if kinds else ""
    if cell.share is not None:
        attributes += f' style="--v:{min(max(cell.share, 0), 1):.4f}"'
    if cell.span > 1:
        attributes += f' colspan="{cell.span}"'
    return f"<td{attributes}>{_content(cell)}</td>"


def _content(cell: Cell) -> str:
    text = f"<strong>{escape(cell.text)}</strong>" if cell.best else escape(cell.text)
    return text + (f'<span class="note">{escape(cell.note)}</span>' if cell.note else "")


def _download(section: Section) -> str:
    data = base64.b64encode(section.csv.encode()).decode()
    name = escape(f"{section.name}.csv")
    return (
        f'<p class="download"><a download="{name}" href="data:text/csv;charset=utf-8;base64,{data}">'
        f"These figures as {name}</a></p>"
    )
