"""With NUMBA_BOUNDSCHECK=1, as the fuzzer sets it, vectors outside their array are an error."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import numpy as np
from numba import njit
from locole.kernels.simd import WIDTH, load, store

@njit
def copy(x, y, i, j):
    store(y, j, load(x, i))

for places in [(0, WIDTH), (-1, 0), (WIDTH + 1, 0), (0, -WIDTH), (0, WIDTH + 1), (2**62, 0)]:
    try:
        copy(np.ones(2 * WIDTH, np.float32), np.ones(2 * WIDTH, np.float32), *places)
        print("copied")
    except IndexError as error:
        print(error)
"""


def test_vectors_outside_their_array():
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.splitlines() == ["copied"] + ["vector out of bounds"] * 5, run.stderr
