"""Sphinx extension: the Markdown pages, readable on their own, become pages of the site.

A folder's ``index.md`` lists its pages under headings. From that list comes the menu, so that a new
page is one line there. Pages of ``project/`` show those at the root of the project. Links to folders
of code lead to the reference and the gallery.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

#: What pages link to, from the root of the project, and where the site has it.
PLACES = {
    "README.md": "index.md",
    "docs/examples": "gallery/index.rst",
    "locole": "reference/index.rst",
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changes.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
}
_HEADING = re.compile(r"^## (.+)$", flags=re.MULTILINE)
_PAGE = re.compile(r"^- \[[^\]]+\]\(([\w/]+)\.(?:md|rst)\)", flags=re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")


def with_menu(text: str) -> str:
    """Return the text of an index with a hidden toctree for the pages under each heading."""
    first, *parts = _HEADING.split(text)
    captions, bodies = parts[::2], parts[1::2]
    sections = [_toctree(None, first)]
    sections += [_toctree(*pair) for pair in zip(captions, bodies, strict=True)]
    return text + "".join(sections)


def _toctree(caption: str | None, body: str) -> str:
    pages = _PAGE.findall(body)
    if not pages:
        return ""
    lines = ["", "```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), *pages]
    return "\n".join([*lines, "```", ""])


def relinked(text: str, source: Path, page: Path, docs: Path) -> str:
    """Return the text of ``source`` as ``page`` shows it, with links to pages of the site."""

    def link(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(source.parent / match[1]))
        place = os.path.relpath(target, docs.parent)
        target = docs / PLACES[place] if place in PLACES else target
        return os.path.relpath(target, page.parent) if target.is_relative_to(docs) else match[1]

    return _LINK.sub(link, text)


def _read_page(app: Any, docname: str, source: list[str]) -> None:
    docs = Path(app.srcdir)
    page = Path(app.env.doc2path(docname))
    if page.suffix != ".md":
        return
    stands_for = {docs / target: docs.parent / name for name, target in PLACES.items()}
    origin = stands_for[page] if page.parent.name == "project" and page in stands_for else page
    if origin != page:
        app.env.note_dependency(str(origin))
    text = relinked(origin.read_text(encoding="utf-8"), origin, page, docs)
    # Commands without a prompt, which the console lexer takes for output.
    text = text.replace("```console\n", "```sh\n")
    source[0] = with_menu(text) if page.name == "index.md" else text


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", _read_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
