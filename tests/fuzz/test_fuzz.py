"""The fuzzer, a few thousand cases of it: no crash, no hang, no bare exception, no waste of memory."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODELS, FILES = 2_000, 200
READERS = ("libsvm", "xmc", "npz", "tsv", "csv", "jsonl", "txt", "parquet")


@pytest.fixture(scope="module")
def reports():
    """Counts of all ends of cases, by what was fuzzed; one process, because it has to warm up."""
    run = subprocess.run(
        [sys.executable, HERE, f"--models={MODELS}", f"--files={FILES}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    lines = re.findall(r"^(\w+): ([\d,]+) cases: (.*)$", run.stdout, re.MULTILINE)
    return {what: (int(count.replace(",", "")), ends) for what, count, ends in lines}


def test_pointers_that_wrap_around_are_refused_in_every_kind_of_model(reports):
    """Both ends as they should be, and all differences positive, because they wrap around."""
    n_cases, ends = reports["pointers"]
    assert n_cases > 150
    assert ends == f"{n_cases} refused"


def test_forged_models_are_refused_or_used(reports):
    n_cases, ends = reports["models"]
    assert n_cases == MODELS
    # Many come through to the kernels, else this would show nothing.
    assert int(re.search(r"(\d+) used", ends)[1]) > MODELS // 10


@pytest.mark.parametrize("format", READERS)
def test_mutated_files_are_refused_or_read(reports, format):
    n_cases, ends = reports[format]
    assert n_cases == FILES
    assert "refused" in ends
    assert " read" in ends
