"""The demonstration, on few labels."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "examples/demo_unicode.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


def test_demo_beats_the_centroids_and_answers():
    result = run_demo("--labels", "1500")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    (line,) = re.findall(r"^all test queries.*$", result.stdout, flags=re.MULTILINE)
    ours, ours5, centroids, centroids5, *_ = (float(x) for x in re.findall(r"([\d.]+)%", line))
    assert centroids + 3 < ours < ours5
    assert centroids < centroids5 < ours5
    first_answer = result.stdout.split("'snowmann'\n")[1].splitlines()[0]
    assert "☃  SNOWMAN" in first_answer


def test_demo_refuses_too_few_labels():
    result = run_demo("--labels", "10")
    assert result.returncode == 2
    assert "--labels must be at least 200" in result.stderr
