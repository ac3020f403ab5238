"""Figures: what is drawn, how it fits into a page, and names and files that mean harm."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import baseline, embedded, points, record

from locole.experiments.report import figures, panels, series
from locole.experiments.report.axes import curve_name, file_name
from locole.experiments.report.drawing import spread
from locole.experiments.report.entries import entries, printable
from locole.experiments.report.groups import groups
from locole.experiments.report.names import FAMILIES, INK, PALETTE
from locole.experiments.report.points import clark_evans, read_points

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '<script>alert("x")</script> & $\\frac{1}{$ -->' + chr(0) + chr(0xD800) + "中文"


def words(inline: str) -> list[str]:
    """Texts of an SVG element, which must be well-formed."""
    return ["".join(node.itertext()) for node in ET.fromstring(inline).iter(f"{SVG}text")]


def some_runs():
    runs = [
        embedded("table2", "cve_product", "nelson", dim, seed)
        for dim in (113, 251)
        for seed in (0, 1)
    ]
    runs += [embedded("table2", "cve_product", "kerdock", 256, 0)]
    return groups(entries([*runs, baseline("table2", "cve_product", "mach", 0)]))


def test_accuracy_against_coherence():
    found = figures.against_coherence("cve_product", some_runs())
    shown = words(found.inline)
    assert {"Nelson", "Kerdock", "MACH", "coherence", "accuracy, %"} <= set(shown)
    places = {}
    for node in ET.fromstring(found.inline).iter(f"{SVG}text"):
        if node.text in ("0.0", "0.2", "1.0"):
            places[node.text] = float(node.get("x"))
    # Coherence falls to the right, as in the paper.
    assert places["1.0"] < places["0.2"] < places["0.0"]
    assert found.png.startswith(b"\x89PNG")
    ET.fromstring(found.svg)


def test_a_figure_takes_the_colours_of_the_page_and_has_words():
    found = figures.against_outputs("cve_product", some_runs())
    root = ET.fromstring(found.inline)
    assert root.get("role") == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert title.text == "Accuracy against real outputs on cve_product"
    assert description.text == "2 curves with 3 points, and 1 other methods."
    for value in (*INK.values(), *(pair[0] for pair in PALETTE.values())):
        assert value not in found.inline
    assert "var(--purple)" in found.inline
    assert "var(" not in found.svg.decode()
    ids = [node.get("id") for node in root.iter() if node.get("id")]
    assert all(name.startswith("figure1_outputs_cve_product-") for name in ids)
    for node in root.iter():
        href = node.get("href")
        assert href is None or href[1:] in ids


def test_the_same_runs_give_the_same_bytes():
    assert figures.against_time("d", some_runs()) == figures.against_time("d", some_runs())


def test_no_two_families_look_alike():
    looks = [(look.marker,) for look in FAMILIES.values()]
    assert len(set(looks)) == len(looks)


@pytest.mark.parametrize(
    "draw",
    [
        figures.against_coherence, figures.against_outputs, figures.against_time,
        figures.metrics_against_coherence, panels.equal_outputs,
        lambda name, some: panels.front(name, some, series.pareto(some)),
    ],
)  # fmt: skip
def test_too_little_to_draw(draw):
    one = embedded("table2", "cve_product", "nelson", 113, 0)
    for runs in (
        [],
        [one],
        [one | {"status": "timeout"}, baseline("table2", "cve_product", "mach", 0)],
    ):
        assert draw("cve_product", groups(entries(runs))) is None


def test_one_number_of_seconds_and_zero_seconds_can_be_drawn():
    runs = [
        embedded("table2", "cve_product", "nelson", dim, 0) | {"fit_cpu_s": 2.0}
        for dim in (113, 127)
    ]
    assert figures.against_time("cve_product", groups(entries(runs))) is not None
    idle = [run | {"fit_cpu_s": 0.0} for run in runs]
    assert figures.against_time("cve_product", groups(entries(idle))) is None
    some = groups(entries(idle))
    assert panels.front("cve_product", some, series.pareto(some)) is None


def test_the_default_model_is_a_line_whatever_it_chose():
    chosen = baseline("table2", "cve_product", "auto", 0) | {"embedding": "kerdock", "dim": 256}
    (entry,) = entries([chosen | {"outputs": 256}])
    assert (entry.embedding, entry.dim, entry.outputs) == ("", None, 256)
    found = figures.against_outputs("cve_product", [*some_runs(), *groups([entry])])
    assert "locole, defaults" in words(found.inline)


def test_curves_are_named_by_what_tells_them_apart():
    nelson = {"embedding": "nelson", "dim": 127}
    runs = [record("table2", "d", "mlp", **nelson, settings=s) for s in ("", '{"hidden":8}')]
    runs.append(record("table2", "d", "elastic_net", **nelson))
    some = groups(entries(runs))
    assert [curve_name(group, some) for group in some] == [
        "elastic net, Nelson", "network, Nelson (plain)", "network, Nelson (hidden=8)",
    ]  # fmt: skip
    assert curve_name(some[0], some[:1]) == "Nelson"


@given(st.text(), st.text())
def test_files_of_different_sets_have_different_names(a, b):
    names = [file_name("figure1", printable(text)) for text in (a, b)]
    assert all(re.fullmatch(r"[A-Za-z0-9_]{1,130}", name) for name in names)
    usual = [re.sub(", |=", "_", printable(text)) for text in (a, b)]
    assert (names[0] == names[1]) == (usual[0] == usual[1])


def test_hostile_names_are_text():
    runs = [
        embedded("table2", "cve_product", "nelson", dim, 0)
        | {"data": HOSTILE, "embedding": HOSTILE, "method": HOSTILE}
        for dim in (113, 251)
    ]
    runs.append(record("table2", HOSTILE, HOSTILE + "2", fit_cpu_s=1.0, peak_memory_mb=1.0))
    some = groups(entries(runs))
    name = some[0].set_name
    drawn = [figures.against_outputs(name, some), panels.front(name, some, series.pareto(some))]
    for found in drawn:
        root = ET.fromstring(found.inline)
        ET.fromstring(found.svg)
        assert not list(root.iter(f"{SVG}script"))
        assert any("<script>alert(" in text for text in words(found.inline))
        assert found.name.isascii()
        assert found.name.replace("_", "").isalnum()


def test_the_front_names_its_marks():
    runs = [
        record("table2", "d", method, accuracy=a, fit_cpu_s=s, peak_memory_mb=100)
        for method, a, s in (("mach", 0.9, 100), ("centroids", 0.1, 1), ("parabel", 0.5, 200))
    ]
    some = groups(entries(runs))
    shown = words(panels.front("d", some, series.pareto(some)).inline)
    assert "MACH" in shown
    assert "class centroids" in shown
    assert "Parabel" not in shown


@given(st.lists(st.floats(0, 10), min_size=1, max_size=12), st.floats(0.01, 0.8))
def test_spread_labels_do_not_touch(places, apart):
    moved = spread(places, apart, 0.0, 10.0)
    order = np.argsort(places, kind="stable")
    gaps = np.diff(np.array(moved)[order])
    assert (gaps >= apart - 1e-6).all()
    assert min(moved) >= -1e-6
    assert max(moved) <= 10 + 1e-6
    if len(places) > 1 and np.diff(np.sort(places)).min() >= apart:
        assert moved == pytest.approx(places, abs=1e-6)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install locole\[plots\]"):
        figures.against_outputs("cve_product", some_runs())


def test_pictures_of_vectors(tmp_path):
    (entry,) = entries(points(tmp_path, families=["gaussian"]))
    found = read_points(tmp_path, entry)
    assert found.shape == (2048, 3)
    assert found[:, 2].tolist() == list(range(2048))
    drawn = panels.vectors(entry, found)
    # Points are one image, not thousands of elements.
    assert len(drawn.inline) < 300_000
    assert "Gaussian-128" in words(drawn.inline)
    assert clark_evans(found) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../secret.csv",
        "/etc/passwd",
        "a/../secret.csv",
        "..",
        "..\\secret.csv",
        "nowhere.csv",
        ".",
    ],
)
def test_points_are_read_beside_the_records_only(tmp_path, name):
    (tmp_path / "secret.csv").write_text("1,2,3\n4,5,6\n7,8,9\n")
    folder = tmp_path / "records"
    folder.mkdir()
    (entry,) = entries([record("tsne", "", "tsne", accuracy=None, embedding="nelson", points=name)])
    assert entry.is_done
    assert read_points(folder, entry) is None


@pytest.mark.parametrize(
    "text", ["", "x,y\n", "nan,1\ninf,2\n", "1,2\n", "\x00\xff", "a,b,c\n1\n2\n"]
)
def test_files_without_points(tmp_path, text):
    (tmp_path / "p.csv").write_bytes(text.encode("latin-1"))
    (entry,) = entries([record("tsne", "", "tsne", accuracy=None, points="p.csv")])
    assert read_points(Path(tmp_path), entry) is None


def test_points_on_a_line_have_no_area():
    line = np.stack([np.arange(50.0), np.zeros(50)], axis=1)
    assert clark_evans(line) is None
    assert clark_evans(line[:5]) is None
