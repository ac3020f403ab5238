"""Records as the report reads them: types checked, texts made harmless, repeated runs taken once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from locole.experiments.records import SEVERAL
from locole.experiments.report.names import settings_text

__all__ = ["Entry", "entries", "pool", "printable"]

_TEXTS = (
    "engine", "locole", "python", "numpy", "scipy", "numba", "machine", "started", "points",
)  # fmt: skip
_SHARES = (
    "accuracy", "accuracy_at_5", "macro_precision", "macro_recall", "macro_f1", "micro_precision",
    "micro_recall", *SEVERAL, "coherence",
)  # fmt: skip
_AMOUNTS = (
    "fit_wall_s", "fit_cpu_s", "predict_wall_s", "predict_cpu_s", "peak_memory_mb", "model_mb",
    "rows", "test_rows", "features", "labels", "threads",
)  # fmt: skip
_LONGEST = 300
# Rounding may take a coherence of 1 or a share a little above it.
_SLACK = 1e-6


@dataclass(frozen=True)
class Entry:
    """One run: what was run, how it ended, and its figures as far as they are numbers."""

    experiment: str
    data: str
    data_options: str
    method: str
    settings: str
    embedding: str
    dim: int | None
    outputs: int | None
    seed: int | None
    quick: bool
    status: str
    values: Mapping[str, float]
    texts: Mapping[str, str]

    @property
    def is_done(self) -> bool:
        """Whether there are figures."""
        return self.status == "done"

    @property
    def set_name(self) -> str:
        """The data set and what was taken of it; quick runs never stand beside the others."""
        parts = (self.data, settings_text(self.data_options), "quick" if self.quick else "")
        return ", ".join(part for part in parts if part)

    @property
    def engine(self) -> str:
        """What the run was spread over; threads unless the record says otherwise."""
        return self.texts.get("engine") or "threads"

    @property
    def identity(self) -> tuple[Any, ...]:
        """All that tells runs apart, but for the experiment that asked for them."""
        what = (self.set_name, self.method, self.settings, self.embedding, self.dim)
        return (*what, self.seed, self.engine)


def entries(records: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Read records; of a run that was recorded twice the later record counts.

    Parameters
    ----------
    records : iterable of mappings
        As `locole.experiments.records.read` gives them. Anything may be missing or of a wrong type.

    Returns
    -------
    list of Entry
        In the order of the records.

    Examples
    --------
    >>> done = {"experiment": "table2", "data": "city_names", "method": "mach", "status": "done"}
    >>> entries([done | {"accuracy": 0.5}, done | {"seed": 1}])[1].status
    'failed: the record has no accuracy.'
    """
    found: dict[tuple[Any, ...], Entry] = {}
    for record in records:
        entry = _entry(record)
        found[(entry.experiment, *entry.identity)] = entry
    return list(found.values())


def pool(found: Iterable[Entry], *experiments: str) -> list[Entry]:
    """Runs of these experiments; a run that several of them have is taken from the first.

    Examples
    --------
    >>> records = [{"experiment": name, "data": "d", "method": "m"} for name in ("b", "a", "c")]
    >>> [entry.experiment for entry in pool(entries(records), "a", "b")]
    ['a']
    """
    kept: dict[tuple[Any, ...], Entry] = {}
    for entry in sorted(
        (entry for entry in found if entry.experiment in experiments),
        key=lambda entry: experiments.index(entry.experiment),
    ):
        # A run that failed here may have been done there.
        before = kept.get(entry.identity)
        if before is None or (entry.is_done and not before.is_done):
            kept[entry.identity] = entry
    return list(kept.values())


def printable(value: Any) -> str:
    r"""Text on one line of a sensible length, without characters that steer or break what shows it.

    Examples
    --------
    >>> printable("a" + chr(0) + "b"), printable(None), printable(3)
    ('a\\x00b', '', '3')
    """
    words = "" if value is None else " ".join(str(value)[: 2 * _LONGEST].split())
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in words)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def _entry(record: Mapping[str, Any]) -> Entry:
    values = {name: _number(record.get(name), top=1 + _SLACK) for name in _SHARES}
    values |= {name: _number(record.get(name)) for name in _AMOUNTS}
    numbers = {name: value for name, value in values.items() if value is not None}
    experiment = printable(record.get("experiment")) or "unnamed"
    method = printable(record.get("method")) or "unnamed method"
    # The default model chooses its vectors, and is not one of a family's points.
    chooses = method == "auto"
    return Entry(
        experiment=experiment,
        data=printable(record.get("data")),
        data_options=printable(record.get("data_options")),
        method=method,
        settings=printable(record.get("settings")),
        embedding="" if chooses else printable(record.get("embedding")),
        dim=None if chooses else _whole(record.get("dim")),
        outputs=_whole(record.get("outputs")),
        seed=_whole(record.get("seed")),
        quick=record.get("quick") is True,
        status=_status(record.get("status"), needs_accuracy=experiment != "tsne", found=numbers),
        values=numbers,
        texts={name: printable(record.get(name)) for name in _TEXTS},
    )


def _status(given: Any, *, needs_accuracy: bool, found: Mapping[str, float]) -> str:
    status = printable(given)
    if status == "done" and needs_accuracy and "accuracy" not in found:
        return "failed: the record has no accuracy."
    if status in ("done", "timeout") or status.startswith("failed: "):
        return status
    return f"failed: the record has the unknown status {status!r}."


def _number(value: Any, *, top: float = math.inf) -> float | None:
    """Finite number from 0 to top, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and 0 <= number <= top else None


def _whole(value: Any) -> int | None:
    number = _number(value)
    # 0 is a seed, and larger numbers than this count nothing.
    return int(number) if number is not None and number.is_integer() and number < 2**53 else None
