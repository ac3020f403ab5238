"""The documentation's tables are those of the committed records."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tables, plots = script("tables"), script("plots")


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_are_up_to_date(page):
    text = page.read_text()
    assert text == tables.filled(text), "run python benchmarks/tables.py"


def test_every_table_is_shown_somewhere():
    text = "".join(page.read_text() for page in tables.PAGES)
    assert all(f"<!-- table: {name} -->" in text for name in tables.TABLES)


def test_the_pictures_are_of_the_records():
    assert all(plots.figures().values())
    for path, figures in (
        (plots.IMAGES / "study.svg", plots.figures()),
        (plots.LANDING, plots.accuracies()),
    ):
        assert f"figures {plots.digest(figures)}" in path.read_text(), "run make plots"


def test_the_recorded_goals():
    """What the decoders were built for, as last measured."""
    record = json.loads((tables.RECORDS / "core.json").read_text())
    rows = {(r["embedding"], r["dim"]): r for r in record["decoding"]}
    assert rows["kerdock", 1024]["speedup"] >= 5
    assert rows["nelson", 509]["speedup"] >= 2
    assert all(r["extra_bytes"] < 64e6 for r in record["decoding"])
    assert all(r["agreement"] > 0.999 for r in record["decoding"])
    assert all(r["cpu_s"] < 1 and r["method"] == "structure" for r in record["coherence"])
