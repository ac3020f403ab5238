"""A bench whose runs are done by a stub."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stubs import SMALL, STUB, Watched

from locole.experiments import children
from locole.experiments.runner import run_spec
from locole.experiments.spec import parse_spec


@pytest.fixture
def stubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs answer at once."""
    monkeypatch.setattr(children, "_COMMAND", STUB)


@pytest.fixture
def bench(stubbed: None, tmp_path: Path) -> Callable[..., tuple[list[Any], Watched]]:
    """Run a spec given as a table, in the same folder each time."""

    def run(content: dict[str, Any], **options: Any) -> tuple[list[Any], Watched]:
        watched = Watched()
        content = {"name": "mine", "data": ["topics"], "data_options": SMALL, **content}
        records = run_spec(parse_spec(content), tmp_path / "out", watcher=watched, **options)
        return records, watched

    return run
