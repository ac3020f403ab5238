"""Seconds and peak memory of the steps of a run."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from locole.cli.show import say, size

__all__ = ["Steps", "peak_bytes"]

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Steps:
    """Runs steps one after the other and tells what each of them took.

    Parameters
    ----------
    quiet : bool
        Whether nothing is printed on standard output when a step ends.

    Attributes
    ----------
    records : list of dict
        ``step``, ``seconds``, ``peak_bytes`` (None where the system does not tell), and what the step
        itself has noted.

    Examples
    --------
    >>> steps = Steps(quiet=True)
    >>> with steps.run("read", "reading a file") as record:
    ...     record["rows"] = 12
    >>> steps.records[0]["rows"], steps.records[0]["seconds"] < 60
    (12, True)
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self.records: list[dict[str, Any]] = []

    @contextmanager
    def run(self, step: str, doing: str) -> Iterator[dict[str, Any]]:
        """Time what is done inside; text noted as ``summary`` is printed with the figures."""
        say(f"{doing} …")
        _forget_peak()
        record: dict[str, Any] = {"step": step}
        start = time.perf_counter()
        yield record
        record["seconds"] = round(time.perf_counter() - start, 3)
        record["peak_bytes"] = peak_bytes()
        self.records.append(record)
        summary = record.pop("summary", "")
        if not self._quiet:
            print(
                f"{step:10} {record['seconds']:8.1f} s {size(record['peak_bytes']):>8}  {summary}",
                flush=True,
            )


def peak_bytes() -> int | None:
    """Largest memory of this process so far, or since the last step began where Linux can tell."""
    with suppress(OSError, StopIteration, ValueError):
        lines = _STATUS.read_text().splitlines()
        found = next(line for line in lines if line.startswith("VmHWM:"))
        return int(found.split()[1]) * 1024
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _forget_peak() -> None:
    """Let the peak begin anew, where the system allows it."""
    with suppress(OSError):
        _CLEAR.write_text("5")
