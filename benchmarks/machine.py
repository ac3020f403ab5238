"""What this machine is and can do: the yardsticks of every benchmark."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np

from locole.kernels.jit import kernel
from locole.kernels.simd import WIDTH, aligned, load, store

__all__ = [
    "add_rate",
    "best_time",
    "describe",
    "gemm_rate",
    "load_rate",
    "row_update_rate",
    "triad_rate",
]


def best_time(function: Callable[[], object], *, repeats: int = 7) -> float:
    """CPU seconds of the fastest of several runs, after one to warm up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def describe() -> dict[str, object]:
    """Processor and versions, for the record."""
    model = platform.processor()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            model = next((x.split(":")[1].strip() for x in lines if "model name" in x), model)
    names = ("locole", "numpy", "scipy", "scikit-learn", "numba")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
    }


def gemm_rate() -> float:
    """Float32 operations per second of the BLAS on one thread."""
    n = 1536
    a = np.ones((n, n), dtype=np.float32)
    return 2 * n**3 / best_time(lambda: a @ a)


@kernel
def _adds(x, rounds):
    # Ten independent sums: more than enough to hide the latency of an addition.
    a = b = c = d = e = f = g = h = i = j = load(x, 0)
    k = load(x, WIDTH)
    for _ in range(rounds):
        a, b, c, d, e = a + k, b + k, c + k, d + k, e + k
        f, g, h, i, j = f + k, g + k, h + k, i + k, j + k
    store(x, 0, a + b + c + d + e + f + g + h + i + j)


def add_rate() -> float:
    """Float32 additions per second in registers: the limit of a Walsh–Hadamard transform."""
    rounds = 1_000_000
    x = np.zeros(2 * WIDTH, dtype=np.float32)
    return 10 * WIDTH * rounds / best_time(lambda: _adds(x, rounds))


@kernel
def _sum(x, rounds):
    out = aligned(WIDTH, x)
    a, b, c, d = load(x, 0), load(x, 0), load(x, 0), load(x, 0)
    for _ in range(rounds):
        for i in range(0, x.size, 4 * WIDTH):
            a, b = a + load(x, i), b + load(x, i + WIDTH)
            c, d = c + load(x, i + 2 * WIDTH), d + load(x, i + 3 * WIDTH)
    store(out, 0, a + b + c + d)
    return out[0]


def load_rate(size_bytes: int) -> float:
    """Float32 numbers per second added up from an array of that size."""
    x = np.zeros(size_bytes // 4, dtype=np.float32)
    rounds = max(1, (1 << 26) // x.size)
    return x.size * rounds / best_time(lambda: _sum(x, rounds))


@kernel
def _triad(a, b, c):
    for i in range(0, a.size, WIDTH):
        store(a, i, load(b, i) + load(c, i))


def triad_rate() -> float:
    """Bytes per second of a = b + c from main memory, on one thread."""
    a, b, c = (np.ones(1 << 25, dtype=np.float32) for _ in range(3))
    return 3 * a.nbytes / best_time(lambda: _triad(a, b, c))


@kernel
def _update_rows(rows, table, width):
    for r in rows:
        for i in range(r * width, (r + 1) * width, WIDTH):
            v = load(table, i)
            store(table, i, v + v)


def row_update_rate(width: int, n_rows: int) -> float:
    """Bytes per second read and written when random rows of ``width`` floats are updated."""
    table = np.zeros(width * n_rows, dtype=np.float32)
    rows = np.random.default_rng(0).integers(n_rows, size=1_000_000)
    return 8 * width * rows.size / best_time(lambda: _update_rows(rows, table, width))
