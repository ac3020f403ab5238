"""The documentation: its snippets run, its commands and links exist, nothing is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from samples import write_samples

from locole.decoders import DECODERS
from locole.embeddings import FAMILIES

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
# tests/theory/test_bounds.py runs the blocks of this page.
RUN_ELSEWHERE = {ROOT / "docs" / "research" / "theory.md"}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def python_blocks(page: Path) -> list[str]:
    """Python blocks, each moved down to its own line so that errors point into the page."""
    text = read(page)
    found = re.finditer(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return ["\n" * text[: match.start(1)].count("\n") + match.group(1) for match in found]


def prose(page: Path) -> str:
    """The text without fenced blocks."""
    return re.sub(r"^```.*?^```", "", read(page), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Anchors that a renderer makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_pages_are_found():
    names = {name_of(page) for page in PAGES}
    assert {"README.md", "ARCHITECTURE.md", "docs/index.md", "docs/guide/embeddings.md"} <= names
    assert all(python_blocks(page) for page in RUN_ELSEWHERE)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if python_blocks(page) and page not in RUN_ELSEWHERE],
    ids=name_of,
)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    # Pages read files by the names that the samples have, and may save models.
    write_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__docs__"}
    for block in python_blocks(page):
        exec(compile(block, str(page), "exec"), namespace)


@each_page
def test_make_targets_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", read(ROOT / "Makefile"), flags=re.MULTILINE))
    text = read(page)
    named = re.findall(r"`make ([a-z-]+)|^make ([a-z-]+)", text, flags=re.MULTILINE)
    named += [(word, "") for word in re.findall(r"made by make ([a-z-]+)", text)]
    assert {a or b for a, b in named} <= targets


@each_page
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("name", [*FAMILIES, "Explicit"])
def test_every_embedding_is_described(name):
    assert re.search(rf"`{name}\b", read(ROOT / "docs" / "guide" / "embeddings.md"))


@pytest.mark.parametrize("name", DECODERS)
def test_every_decoder_is_described(name):
    assert f"`{name}`" in read(ROOT / "docs" / "guide" / "decoding.md")


@pytest.mark.parametrize("folder", ["guide", "research"])
def test_the_index_leads_to_every_page(folder):
    """The menu of the site comes from the index of the folder."""
    index = read(ROOT / "docs" / folder / "index.md")
    pages = {page.name for page in ROOT.glob(f"docs/{folder}/*.md")} - {"index.md"}
    assert set(re.findall(r"^- \[[^\]]+\]\((\w+\.md)\)", index, flags=re.MULTILINE)) == pages
    assert f"({folder}/index.md)" in read(ROOT / "docs" / "index.md")
