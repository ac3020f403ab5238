"""Helpers of the tests of experiments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

#: The command of a run that answers at once.
STUB = [sys.executable, "-S", "-E", str(Path(__file__).with_name("stub_run.py"))]


class Watched:
    """Keeps what a bench has told."""

    def __init__(self) -> None:
        self.plans: list[list[Any]] = []
        self.began: list[Any] = []
        self.records: list[Any] = []
        self.notes: list[str] = []

    def planned(self, runs: Any) -> None:
        self.plans.append(list(runs))

    def started(self, run: Any) -> None:
        self.began.append(run)

    def ended(self, run: Any, record: Any) -> None:
        self.records.append(record)

    def note(self, message: str) -> None:
        self.notes.append(message)


SMALL = {"topics": {"n_samples": 60, "n_classes": 5, "n_features": 50}}


def method(act: str = "", **fields: Any) -> dict[str, Any]:
    """An entry whose runs do as ``act`` says."""
    settings = {"act": act} if act else {}
    return {"method": "wltls", "settings": settings, **fields}
