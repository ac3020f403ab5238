"""The page in a real browser: a text, a file, labels, the card; keyboard, phone, dark; no network."""

from __future__ import annotations

import time

import pytest
from browser import Browser

from locole import load


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture
def page(browser, server):
    def at(width=1000, *, dark=False, path="/"):
        browser.open(server.url + path, width=width, dark=dark)
        return browser

    return at


def text_of(selector):
    return f"document.querySelector('{selector}')?.textContent ?? ''"


def write(page, text):
    page.wait("document.title.includes('locole') && document.querySelector('#model').value")
    page.ask("document.querySelector('#text').focus()")
    page.type(text)


def test_a_text_is_answered_as_it_is_typed(page, models, texts, server):
    here = page()
    write(here, texts[0])
    here.wait("document.querySelectorAll('.ranked').length == 5")
    labels, proba = load(models / "animals").predict_topk([texts[0]], k=5, proba=True)
    rows = here.ask("[...document.querySelectorAll('.ranked')].map(x => x.innerText)")
    shown = [" ".join(row.split()) for row in rows]
    assert shown == [f"{a} {100 * p:.1f} %" for a, p in zip(labels[0], proba[0], strict=True)]
    bars = here.ask("[...document.querySelectorAll('.ranked i')].map(x => x.style.width)")
    assert [float(bar[:-1]) for bar in bars] == pytest.approx(100 * proba[0], rel=1e-3)
    # What speaks for the label: its own words more than the others.
    marks = here.ask(
        "[...document.querySelectorAll('mark')].map(x => [x.title, x.querySelector('bdi').textContent])"
    )
    assert [word for _, word in marks] == texts[0].split()
    own = [float(adds.replace("−", "-")) for adds, word in marks if word.startswith(labels[0, 0])]
    assert min(own) > 0
    # Another label is explained when it is chosen.
    here.ask("document.querySelectorAll('.ranked')[1].click()")
    assert here.ask(text_of(".answer h2")) == f"What speaks for {labels[0, 1]}"
    assert "In 90 % of cases" in here.ask(text_of('[aria-label="Label set"]'))
    # Told to screen readers.
    assert labels[0, 0] in here.ask(text_of("[role=status]"))
    assert here.troubles == []
    assert all(url.startswith((server.url, "data:")) for url in here.requests)


def test_not_sure(page):
    here = page()
    here.wait("document.querySelector('#max-error').options.length > 1")
    write(here, "common1 common2")
    here.ask(
        "(() => { const e = document.querySelector('#max-error'); e.selectedIndex = 1;"
        "e.dispatchEvent(new Event('change')); })()"
    )
    assert "Not sure" in here.wait(text_of(".not-sure strong"))
    assert here.ask(text_of("[role=status]")).startswith("Not sure")


def test_what_is_typed_is_never_html(page):
    here = page()
    evil = "<img src=x onerror=document.title='hacked'> <script>document.title='hacked'</script>"
    write(here, evil)
    here.wait("document.querySelectorAll('.ranked').length == 5")
    assert here.ask("document.querySelectorAll('main img, main script').length") == 0
    assert "<img" in here.ask(text_of(".marked"))
    assert "hacked" not in here.ask("document.title")


def test_a_file_of_lines(page, models, texts, tmp_path):
    lines = [text for text in texts if text] * 8
    file = tmp_path / "lines.txt"
    file.write_text("\n".join(lines) + "\n\n")
    here = page()
    here.wait("document.querySelector('#model').value")
    here.ask("document.querySelector('#tab-lines').click()")
    here.upload("#file", file)
    here.wait("!document.querySelector('#downloads').hidden")
    bar = "document.querySelector('#progress-bar')"
    assert here.ask(f"[{bar}.value, {bar}.max]") == [len(lines)] * 2
    assert here.ask("document.querySelectorAll('#table tbody tr').length") == 200
    labels, _ = load(models / "animals").predict_topk(lines, k=3, proba=True)
    cells = "[...document.querySelectorAll('#table tbody tr')].map(x => x.cells[2].textContent)"
    assert here.ask(cells) == labels[:200, 0].tolist()
    link = "document.querySelector('#download')"
    assert here.ask(f"{link}.download") == "answers.tsv"
    here("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    here.ask(f"{link}.click()")
    answers = tmp_path / "answers.tsv"
    while not answers.exists():
        time.sleep(0.02)
    rows = [line.split("\t") for line in answers.read_text().splitlines()]
    assert [row[0] for row in rows] == lines
    assert [row[1::2] for row in rows] == labels.tolist()
    assert here.troubles == []


def test_labels_and_card(page, models):
    here = page()
    here.wait("document.querySelectorAll('#labels-list li').length == 10")
    here.ask(
        "(() => { const q = document.querySelector('#query'); q.value = 'CO';"
        "q.dispatchEvent(new Event('input')); })()"
    )
    here.wait("document.querySelectorAll('#labels-list li').length == 1")
    assert here.ask(text_of("#labels-list bdi")) == "cow"
    model = load(models / "animals")
    right = (model.calibration_.evidence_[:, 2] == 0).mean()
    assert f"Accuracy{100 * right:.1f} %" in here.ask(text_of("#card .figures"))
    assert here.ask("document.querySelectorAll('#card svg .dot').length") == 10
    assert "right" in here.ask("document.querySelector('#card svg').getAttribute('aria-label')")


def test_by_keyboard_alone(page, texts):
    here = page()
    here.wait("document.querySelector('#model').value")
    here.ask("document.querySelector('.skip').focus()")
    seen = []
    while "tab-ask" not in seen:
        here.press("Tab")
        seen.append(here.ask("document.activeElement.id"))
        assert len(seen) < 10
    here.press("ArrowRight")
    assert here.ask("document.activeElement.id") == "tab-lines"
    assert here.ask("document.querySelector('#ask').hidden") is True
    here.press("End")
    assert here.ask("document.activeElement.getAttribute('aria-selected')") == "true"
    assert here.ask("document.querySelector('#card').hidden") is False
    here.press("Home")
    here.press("Tab")
    assert here.ask("document.activeElement.id") == "text"
    here.type(texts[0])
    here.press("Enter", control=True)
    here.wait("document.querySelectorAll('.ranked').length == 5")
    while here.ask("document.activeElement.className") != "ranked":
        here.press("Tab")
    here.press("Tab")
    here.press("Enter")
    assert here.ask("document.activeElement.getAttribute('aria-pressed')") == "true"
    # Whatever has the focus is seen to have it.
    assert here.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"


@pytest.mark.parametrize("dark", [False, True])
def test_on_a_phone(page, texts, dark):
    here = page(360, dark=dark)
    write(here, " ".join(texts[:8]))
    here.wait("document.querySelectorAll('.ranked').length == 5")
    for tab in ("ask", "lines", "labels", "card"):
        here.ask(f"document.querySelector('#tab-{tab}').click()")
        assert here.ask("document.documentElement.scrollWidth") == 360, tab
        heights = here.ask(
            "[...document.querySelectorAll('button, select')].map(x => x.offsetHeight)"
        )
        assert min(height for height in heights if height) >= 40
    # Words of a table stay whole: it is scrolled where it is too wide.
    here.ask("document.querySelector('#tab-lines').click()")
    here.ask(
        "document.querySelector('#table').replaceChildren(document.createElement('table'));"
        "document.querySelector('#table').hidden = false;"
        "document.querySelector('#table table').insertRow().insertCell().textContent = 'W'.repeat(60)"
    )
    assert here.ask("document.querySelector('#table tr').offsetHeight") < 50
    assert here.ask("document.documentElement.scrollWidth") == 360
    paper = here.ask("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, paper[4:-1].split(","))) < 200) is dark


def test_a_model_of_numbers(page):
    here = page()
    here.wait("document.querySelector('#model').options.length == 2")
    here.ask(
        "(() => { const m = document.querySelector('#model'); m.value = 'numbers';"
        "m.dispatchEvent(new Event('change')); })()"
    )
    here.wait("document.title.startsWith('numbers')")
    write(here, "3:1 40:2.5")
    here.wait("document.querySelectorAll('.ranked').length == 5")
    write(here, " x:y")
    assert "INDEX:VALUE" in here.wait(text_of("#trouble"))


def test_every_field_has_a_name(page):
    here = page()
    here.wait("document.querySelector('#model').value")
    nameless = here.ask(
        "[...document.querySelectorAll('input, select, textarea, button, progress, [role=tabpanel]')]"
        ".filter(x => !(x.labels?.length || x.textContent.trim() || x.ariaLabel"
        " || x.getAttribute('aria-labelledby'))).map(x => x.id)"
    )
    assert nameless == []
    assert here.ask("document.documentElement.lang") == "en"


def test_the_description_of_the_api_needs_no_network(page, server):
    here = page(path="/docs")
    here.wait("document.querySelectorAll('.endpoint').length > 10")
    assert "/api/models/{model}/predict-batch" in here.ask(text_of("main"))
    assert all(url.startswith(server.url) for url in here.requests)
    assert here.troubles == []
