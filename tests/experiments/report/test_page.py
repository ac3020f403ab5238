"""The page in a real browser: phone, desk, dark and paper; and what it must never do."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from browser import Browser, find_browser
from made import FAILURE, all_experiments, points, record, without_figures
from PIL import Image

from locole.exceptions import LocoleError
from locole.experiments.report import write_report
from locole.experiments.report.page import Block, Section, render
from locole.experiments.report.style import _DARK, _LIGHT
from locole.experiments.report.tables import Cell, Table

HOSTILE = "</td></svg><script>document.title='bad'</script><img src=x onerror=alert(1)>\"' & {x}"
WIDTHS = (360, 768, 1280)


class Page(HTMLParser):
    """Tags that are open, attributes, and the text."""

    VOID = ("meta", "br", "img", "path", "use", "rect", "image")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.attributes, self.words = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A report of everything: all experiments, failures, time limits, the paper's own data."""
    folder = tmp_path_factory.mktemp("report")
    records = all_experiments(folder, sets=("cve_product",), seeds=2)
    records += [
        record("table2", "lshtc1", "mlp", embedding="nelson", dim=509, outputs=1018, accuracy=0.31),
        without_figures(record("table2", "lshtc1", "parabel"), "timeout"),
        record("mine", "d", "mach"),
    ]
    return write_report(records, folder / "report.html", folder=folder)


@pytest.fixture(scope="module")
def browser():
    with Browser() as started:
        yield started


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_screen(browser, written, width):
    browser.open(written.page, width=width)
    assert browser.ask("document.documentElement.scrollWidth") == width
    assert browser.ask("document.body.scrollWidth") == width
    # Wide tables scroll inside their own boxes, also by keys.
    boxes = browser.ask(
        "[...document.querySelectorAll('.scroll')].map(b => [b.tabIndex, b.scrollWidth > b.clientWidth])"
    )
    assert all(index == 0 for index, _ in boxes)
    if width == 360:
        assert any(scrolls for _, scrolls in boxes)


@pytest.mark.parametrize(("width", "dark"), [(360, False), (1280, False), (1280, True)])
def test_nothing_is_fetched_and_nothing_is_blank(browser, written, width, dark):
    browser.open(written.page, width=width, dark=dark)
    fetched = [url for url in browser.requests if not url.startswith("data:image/png")]
    assert fetched == [written.page.as_uri()]
    assert browser.troubles == []
    seen = pixels(browser.screenshot())
    assert seen.shape[1] == width
    paper = (_DARK if dark else _LIGHT)["paper"]
    assert seen[3, 3].tolist() == [int(paper[i : i + 2], 16) for i in (1, 3, 5)]
    assert 0.01 < (seen != seen[3, 3]).any(axis=2).mean() < 0.6


def test_figures_are_drawn_in_light_and_dark(browser, written):
    for dark in (False, True):
        browser.open(written.page, width=1280, dark=dark)
        browser.ask("document.querySelector('#figure1 figure').scrollIntoView()")
        seen = pixels(browser.screenshot())
        # Curves, markers and text: many more colours than a page of text in one colour.
        colourful = (seen.max(axis=2).astype(int) - seen.min(axis=2)) > 60
        assert colourful.mean() > 0.001


def test_what_is_said_and_shown(browser, written):
    browser.open(written.page, width=360)
    text = browser.ask("document.body.innerText")
    for words in (
        "Accuracy on cve_product", "Nelson-509", "locole, defaults", FAILURE, "time limit reached",
        "On cve_product the most accurate is locole, defaults", "31.08 ± 0.15", "not run",
        "the rank correlation of accuracy with coherence is −", "are on the front",
        "points between the best and the worst family", "growing Kerdock ended at dim 1,024",
        "divided by that of as many points thrown at random", "PD-Sparse", "Some CPU @ 2.50GHz",
        "failed: engine ray is not there yet.", "1 of 2 runs: failed: the process was killed",
    ):  # fmt: skip
        assert words in text, words
    assert browser.ask("document.querySelectorAll('strong').length") > 5


def test_figures_can_be_read_and_stay_in_their_place(browser, written):
    measure = """[...document.querySelectorAll('figure svg')].map(svg => {
        const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
        const texts = [...svg.querySelectorAll('text')];
        return [Math.min(...texts.map(t => parseFloat(getComputedStyle(t).fontSize) * scale)),
                Math.min(...texts.map(t => t.getBoundingClientRect().left - box.left)),
                Math.max(...texts.map(t => t.getBoundingClientRect().right - box.right)),
                svg.querySelector('title').textContent.length]})"""
    for width in WIDTHS:
        browser.open(written.page, width=width)
        found = browser.ask(measure)
        assert len(found) == 6 + 4
        for size, left, right, words in found:
            assert size >= 8
            assert left >= -4
            assert right <= 12
            assert words > 10


def test_anchors_ids_and_headings(browser, written):
    browser.open(written.page, width=1280)
    anchors = browser.ask("[...document.querySelectorAll('nav a')].map(a => a.hash.slice(1))")
    assert anchors == list(written.sections)
    assert browser.ask(
        "[...document.querySelectorAll('nav a')].every(a => document.querySelector(a.hash))"
    )
    ids = browser.ask("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    levels = browser.ask("[...document.querySelectorAll('h1,h2,h3')].map(e => +e.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert browser.ask("[...document.querySelectorAll('table')].every(t => t.caption.textContent)")
    assert browser.ask("[...document.querySelectorAll('tbody tr')].every(r => r.cells[0].scope)")


def test_paper(browser, written):
    browser.open(written.page, width=1280, dark=True)
    pdf = browser.pdf()
    assert pdf.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 20
    browser("Emulation.setEmulatedMedia", media="print", features=[])
    assert browser.ask("getComputedStyle(document.querySelector('nav')).display") == "none"
    # White, whatever the screen was.
    assert browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_hostile_records_stay_text(browser, tmp_path):
    bad = {"data": HOSTILE, "method": HOSTILE, "embedding": HOSTILE, "settings": HOSTILE}
    runs = [
        record(HOSTILE, HOSTILE, HOSTILE, machine=HOSTILE) | bad,
        record("table2", HOSTILE, HOSTILE, status=f"failed: {HOSTILE}") | bad,
        record("table2", HOSTILE, "x" * 5000),
        record("tsne", HOSTILE, HOSTILE, accuracy=None, points=HOSTILE) | bad,
        record("dimension", HOSTILE, HOSTILE, dim=2, started=HOSTILE) | bad,
    ]
    written = write_report(runs, tmp_path / "bad.html", folder=tmp_path)
    assert Page(written.page.read_text(encoding="utf-8")).open == []
    browser.open(written.page, width=360)
    assert browser.ask("document.title") == "Label embeddings: experiments"
    assert browser.ask("document.querySelectorAll('script, img, iframe, object, link').length") == 0
    assert browser.requests == [written.page.as_uri()]
    assert HOSTILE in browser.ask("document.body.textContent")
    assert browser.ask("document.documentElement.scrollWidth") == 360
    assert browser.troubles == []


def test_the_page_says_that_nothing_may_run_or_be_fetched(written):
    text = written.page.read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert ("meta", "content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:") in (
        page.attributes
    )
    for tag, name, value in page.attributes:
        assert tag not in ("script", "link", "iframe", "img")
        assert not name.startswith("on")
        if name in ("src", "href"):
            assert value.startswith(("#", "data:"))
    assert "url(http" not in text
    assert "@import" not in text


def test_without_a_browser_these_tests_fail_and_say_why(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(AssertionError, match="apt-get install chromium"):
        find_browser()


def test_every_text_has_contrast():
    for colours in (_LIGHT, _DARK):
        for text in ("ink", "soft", "trouble", "link"):
            for ground in ("paper", "shade"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def test_files_beside_the_page(written):
    names = {path.name for path in written.files.iterdir()}
    for section in (
        "table2",
        "figure1",
        "figure3",
        "equal_outputs",
        "table3",
        "pareto",
        "dimension",
    ):
        assert f"{section}.csv" in names
    pictures = {name for name in names if name.endswith(".svg")}
    assert len(pictures) == 6 + 4
    assert {name.replace(".svg", ".png") for name in pictures} <= names
    assert not [name for name in names if name.startswith(".")]


def test_the_same_records_give_the_same_bytes_and_old_files_go(tmp_path):
    first = [record("table2", "d", "mach"), record("table2", "d", "parabel", status="timeout")]
    one = write_report(first, tmp_path / "r.html")
    before = one.page.read_bytes()
    (one.files / "mine.csv").write_text("kept")
    assert write_report(first, tmp_path / "r.html").page.read_bytes() == before
    assert (one.files / "trouble.csv").exists()
    write_report(first[:1], tmp_path / "r.html")
    assert not (one.files / "trouble.csv").exists()
    assert (one.files / "mine.csv").read_text() == "kept"
    assert one.page.read_bytes() != before


def test_a_list_of_files_cannot_reach_elsewhere(tmp_path):
    (tmp_path / "r_files").mkdir()
    (tmp_path / "keep.csv").write_text("kept")
    (tmp_path / "r_files" / "files.txt").write_text("../keep.csv\n..\n\n/etc/x.csv\nfiles.txt\n")
    write_report([record("table2", "d", "mach")], tmp_path / "r.html")
    assert (tmp_path / "keep.csv").read_text() == "kept"


def test_an_interrupted_report_leaves_the_old_page(tmp_path, monkeypatch):
    page = tmp_path / "r.html"
    write_report([record("table2", "d", "mach")], page)
    before = page.read_bytes()

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("locole.experiments.report.writing.render", stop)
    with pytest.raises(KeyboardInterrupt):
        write_report([record("table2", "d", "mach", accuracy=0.9)], page)
    assert page.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [("", "is a folder"), ("no/r.html", "there is no folder"), ("r.txt", r"ends in \.html")],
)
def test_bad_places_for_a_page(tmp_path, name, reason):
    with pytest.raises(LocoleError, match=reason):
        write_report([record("table2", "d", "mach")], tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_no_records(tmp_path):
    with pytest.raises(LocoleError, match="there are no records: make some by locole bench"):
        write_report([], tmp_path / "r.html")


def test_one_seed_and_nothing_but_failures(tmp_path):
    runs = [record("table2", "d", m, status="failed: x") for m in ("mach", "parabel")]
    text = write_report(runs, tmp_path / "r.html").page.read_text()
    assert text.count("failed: x") >= 4
    assert "most accurate" not in text
    one = write_report([record("figure1", "d", "mach")], tmp_path / "s.html")
    assert one.sections == ("setting",)
    assert "±" not in one.page.read_text().split("± is the standard")[0].split("</style>")[1]


def test_quick_pictures_give_way_to_whole_ones(tmp_path):
    (whole,) = points(tmp_path, families=["gaussian"])
    quick = whole | {"quick": True}
    both = write_report([quick, whole], tmp_path / "r.html", folder=tmp_path)
    assert both.page.read_text().count("<svg") == 1
    alone = write_report(
        [quick, whole | {"status": "timeout"}], tmp_path / "r.html", folder=tmp_path
    )
    text = alone.page.read_text()
    assert text.count("<svg") == 1
    assert "Without a picture: tsne, Gaussian-128." in text


def test_empty_blocks_say_nothing():
    text = render("t", "", [Section("s", "S", blocks=[Block("b", ["", ""])])], "")
    assert '<div class="said">' not in text
    assert "<table>" not in render(
        "t", "", [Section("s", "S", blocks=[Block(tables=[Table("c", ("h",), ())])])], ""
    )


def test_cells():
    row = (
        Cell("a<b"),
        Cell("1", "number", best=True, share=2.0, note="n&m"),
        Cell("x", "trouble", span=2),
    )
    text = render(
        "t",
        "",
        [Section("s", "S", blocks=[Block(tables=[Table("c", ("h", "i", "j", "k"), (row,))])])],
        "",
    )
    assert '<th scope="row">a&lt;b</th>' in text
    assert '<td class="number best bar" style="--v:1.0000"><strong>1</strong>' in text
    assert '<span class="note">n&amp;m</span>' in text
    assert '<td class="trouble" colspan="2">x</td>' in text
