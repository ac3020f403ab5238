"""Files, models and ways to run commands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cli_server import ENVIRONMENT, write_command
from samples import write_samples

from locole.cli import main

SERVER = Path(__file__).with_name("cli_server.py")


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on standard output."""
        (line,) = self.out.splitlines()
        return json.loads(line)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the samples and the models "texts" and "numbers"."""
    folder = tmp_path_factory.mktemp("models")
    write_samples(folder)
    assert main(["fit", str(folder / "train.tsv"), "-o", str(folder / "texts"), "-j", "1"]) == 0
    assert main(["fit", str(folder / "train.svm"), "-o", str(folder / "numbers"), "-j", "1"]) == 0
    return folder


@pytest.fixture
def folder(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the samples and models to work in."""
    work = tmp_path / "work"
    shutil.copytree(models, work)
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run a command in this process."""

    def run_here(*words: object) -> Result:
        capfd.readouterr()
        code = main([str(word) for word in words])
        out, err = capfd.readouterr()
        return Result(code, out, err)

    return run_here


@pytest.fixture(scope="session")
def command_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder with the command ``locole``, for PATH."""
    folder = tmp_path_factory.mktemp("bin")
    # Paths of sockets must be short.
    with tempfile.TemporaryDirectory(prefix="locole") as short:
        path = f"{short}/socket"
        write_command(folder, path)
        server = subprocess.Popen(
            [sys.executable, "-W", "error", SERVER, path],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        yield folder
        server.kill()
        server.wait()
        server.stdout.close()


@pytest.fixture
def shell(command_folder: Path) -> Callable[[str], Result]:
    """Run lines of a shell in the current folder."""

    def run_shell(script: str) -> Result:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            env={**ENVIRONMENT, "PATH": f"{command_folder}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return run_shell
