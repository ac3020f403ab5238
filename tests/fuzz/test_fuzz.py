"""The fuzzer, a few thousand cases of it: no crash, no hang, no bare exception, no waste of memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def fuzz(*arguments):
    run = subprocess.run(
        [sys.executable, HERE, *arguments], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_pointers_that_wrap_around_are_refused_in_every_kind_of_model():
    """Both ends as they should be, and all differences positive, because they wrap around."""
    found = fuzz("pointers")
    n_cases, ends = found.removeprefix("pointers: ").split(" cases: ")
    assert ends == f"{n_cases} refused\n"
    assert int(n_cases) > 150
