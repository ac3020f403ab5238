"""``locole warm-up``, and what is said of kernels that are being compiled."""

from __future__ import annotations

import json
import subprocess
import sys

from cli_server import ENVIRONMENT

from locole.cli.compiling import told_of_compiling
from locole.kernels.cache import Compiling

# Kernels that are looked for on the disk, compiled or not, after the warm-up.
AFTER_WARM_UP = """
import json, sys
from locole.cli import main
from locole.kernels.cache import KernelCache
asked, load = [], KernelCache.load_overload
def note(cache, *arguments):
    asked.append(cache._name)
    return load(cache, *arguments)
KernelCache.load_overload = note
assert main(["warm-up", "--json"]) == 0
needed = len(asked)
for kind in ("tsv", "svm"):
    assert main(["fit", f"train.{kind}", "-o", kind, "--test", f"test.{kind}", "--json"]) == 0
    assert main(["predict", kind, f"test.{kind}", "-o", f"{kind}.jsonl"]) == 0
print(json.dumps({"needed": needed, "after": asked[needed:]}))
"""


def test_nothing_is_left_to_compile_after_it(folder):
    done = subprocess.run(
        [sys.executable, "-c", AFTER_WARM_UP], env=ENVIRONMENT, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["needed"] >= 10
    assert found["after"] == []
    report = json.loads(done.stdout.splitlines()[0])
    assert set(report) == {"kernels", "seconds", "folder"}


def compile_for(seconds, monkeypatch):
    """Two kernels that take so long each."""
    clock = iter([0.0, seconds, seconds, 2 * seconds])
    compiling = Compiling()
    monkeypatch.setattr("locole.kernels.cache.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("locole.cli.compiling.compiling", compiling)
    with told_of_compiling():
        for _ in range(2):
            compiling.begin()
            compiling.end()
    assert compiling.listener is None


def test_a_long_compilation_is_announced_and_timed(capfd, monkeypatch):
    compile_for(3, monkeypatch)
    said = capfd.readouterr().err.splitlines()
    assert said[0] == "locole: compiling kernels for the first time, up to a minute …"
    assert said[1].startswith("locole: compiled 2 kernels in 6 s, kept in ")
    assert len(said) == 2


def test_a_short_one_is_not(capfd, monkeypatch):
    compile_for(0.5, monkeypatch)
    assert capfd.readouterr().err == ""


def test_kernels_that_cannot_be_kept(capfd, monkeypatch):
    monkeypatch.setattr("locole.cli.compiling.cache_folder", lambda beside: None)
    compile_for(3, monkeypatch)
    assert "not kept: set NUMBA_CACHE_DIR to a folder" in capfd.readouterr().err
