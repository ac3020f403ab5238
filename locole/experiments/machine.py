"""What a record says of where it was made, and how seconds and memory are measured."""

from __future__ import annotations

import gc
import os
import platform
import sys
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

__all__ = ["Stopwatch", "describe", "folder_bytes", "forget_peak", "peak_bytes"]

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_CPUS = Path("/proc/cpuinfo")


def describe() -> dict[str, str]:
    """Versions and processor.

    Examples
    --------
    >>> sorted(describe())
    ['locole', 'machine', 'numba', 'numpy', 'python', 'scipy']
    """
    from locole._version import __version__

    model = platform.processor() or platform.machine()
    with suppress(OSError, StopIteration):
        lines = _CPUS.read_text().splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return {
        "locole": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba")},
        "machine": model,
    }


class Stopwatch:
    """Wall seconds, and CPU seconds of this process with its children.

    Examples
    --------
    >>> with Stopwatch() as watch:
    ...     total = sum(range(1000))
    >>> 0 <= watch.wall_s < 60
    True
    """

    wall_s: float
    cpu_s: float

    def __enter__(self) -> Self:
        self._wall, self._cpu = time.perf_counter(), _cpu_s()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_s = round(time.perf_counter() - self._wall, 4)
        self.cpu_s = round(_cpu_s() - self._cpu, 4)


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def peak_bytes() -> int | None:
    """Largest resident memory since `forget_peak`, or since the start where that does nothing."""
    with suppress(OSError, StopIteration, ValueError):
        lines = _STATUS.read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def forget_peak() -> None:
    """Let the peak begin anew, where the system allows it."""
    gc.collect()
    with suppress(OSError):
        _CLEAR.write_text("5")


def folder_bytes(folder: Path) -> int:
    """Size of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def megabytes(n_bytes: int | None) -> Any:
    """Bytes in millions, with a tenth."""
    return None if n_bytes is None else round(n_bytes / 1e6, 1)
