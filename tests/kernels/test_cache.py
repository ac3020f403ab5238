"""Compiled kernels on disk: stale ones are never run, and a disk is not needed."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

import locole
from locole.kernels.cache import Compiling

INLINED = """
from locole.kernels.jit import inline

@inline
def step(x):
    return x + 1
"""
USER = """
from locole.kernels.jit import kernel
from locole.kernels.inlined import step

@kernel
def walk(x):
    return step(x)
"""
RUN = """
import json
from pathlib import Path
from locole.kernels import cache
from locole.kernels.user import walk
folder = cache.cache_folder(cache.KERNELS)
print(json.dumps({"answer": walk(1), "compiled": cache.compiling.count, "folder": str(folder)}))
"""
FIT = """
import json, os
from pathlib import Path
import numpy as np
from locole import LocoleClassifier, load
from locole.kernels import cache
X, y = np.eye(12), np.arange(12) % 3
LocoleClassifier().fit(X, y).save("model")
right = (load("model").predict(X) == y).all()
folder = cache.cache_folder(cache.KERNELS)
print(json.dumps({"right": bool(right), "user": os.geteuid(), "folder": str(folder)}))
"""
# A user who owns nothing, and may read what is closed to others: Python may be in root's home.
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
NOBODY += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]


@pytest.fixture
def package():
    """A small copy of the package with two more kernels, in a folder that everybody can reach."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy = Path(folder) / "site" / "locole"
        source = Path(locole.__file__).parent
        shutil.copytree(
            source / "kernels", copy / "kernels", ignore=shutil.ignore_patterns("__pycache__")
        )
        (copy / "__init__.py").touch()
        (copy / "kernels" / "inlined.py").write_text(INLINED)
        (copy / "kernels" / "user.py").write_text(USER)
        (Path(folder) / "tmp").mkdir()
        os.chmod(Path(folder) / "tmp", 0o1777)
        yield copy


def run(package: Path, script: str = RUN, *, prefix=(), cwd: Path = Path("/"), **options) -> dict:
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    env |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    env |= options.pop("env", {})
    command = [*prefix, sys.executable, "-c", script]
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run_locked(package: Path, script: str = RUN) -> dict:
    """Run without a home and with a package that cannot be written, as a user who owns nothing."""
    for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
        os.chmod(folder, 0o555)
    temporary = package.parents[1] / "tmp"
    env = {"TMPDIR": str(temporary), "HOME": "", "XDG_CACHE_HOME": ""}
    if nobody_can_run():
        return run(package, script, prefix=NOBODY, cwd=temporary, env=env)
    if os.geteuid() == 0:  # nothing can be made below a file, not even by root
        (package / "kernels" / "__pycache__").touch()
    return run(package, script, cwd=temporary, env=env | {"HOME": "/dev/null"})


@cache
def nobody_can_run() -> bool:
    """Whether this process may become another user; otherwise it is most likely not root."""
    command = [*NOBODY, sys.executable, "-c", "import numba"]
    return shutil.which("setpriv") is not None and subprocess.run(command).returncode == 0


def test_an_edit_of_an_inlined_function_is_seen(package):
    assert run(package) == {"answer": 2, "compiled": 1, "folder": f"{package}/kernels/__pycache__"}
    assert run(package)["compiled"] == 0
    (package / "kernels" / "inlined.py").write_text(INLINED.replace("x + 1", "x + 5"))
    again = run(package)
    assert (again["answer"], again["compiled"]) == (6, 1)
    # What nobody can load any more is gone.
    assert len(list(package.glob("kernels/__pycache__/user.walk-*.nbc"))) == 1


def test_an_edit_elsewhere_compiles_nothing(package):
    run(package)
    with (package / "kernels" / "arow.py").open("a") as file:
        file.write("# more\n")
    assert run(package)["compiled"] == 0


def test_a_torn_file_is_compiled_again(package):
    run(package)
    (file,) = package.glob("kernels/__pycache__/user.walk-*.nbc")
    for damaged in (file.read_bytes()[:1000], b"", b"cno_such\nmodule\n.", b"\x80\x04K\x07."):
        file.write_bytes(damaged)
        again = run(package)
        assert (again["answer"], again["compiled"]) == (2, 1)
    assert run(package)["compiled"] == 0


def test_checked_and_unchecked_code_are_kept_apart(package):
    run(package)
    assert run(package, env={"NUMBA_BOUNDSCHECK": "1"})["compiled"] == 1
    assert run(package)["compiled"] == 0


def test_a_chosen_folder_is_used(package):
    chosen = package.parents[1] / "chosen"
    found = run(package, env={"NUMBA_CACHE_DIR": str(chosen)})
    assert Path(found["folder"]).parent == chosen
    assert len(list(chosen.glob("*/user.walk-*.nbc"))) == 1


def test_without_home_and_with_a_package_that_cannot_be_written(package):
    first = run_locked(package)
    assert (first["answer"], first["compiled"]) == (2, 1)
    folder = Path(first["folder"])
    assert folder.parent == package.parents[1] / "tmp"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert run_locked(package)["compiled"] == 0


def test_a_model_in_a_container(package):
    """The whole package, read-only; a user without a home fits, saves and loads a model."""
    source = Path(locole.__file__).parent
    shutil.rmtree(package)
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    found = run_locked(package, FIT)
    assert found["right"]
    assert found["user"] == (65534 if nobody_can_run() else os.geteuid())
    assert Path(found["folder"]).parent == package.parents[1] / "tmp"
    assert not list(package.rglob("*.nbc"))


def test_kernels_that_were_compiled_at_installation_are_used(package):
    run(package)
    assert run_locked(package)["compiled"] == 0


def test_a_folder_that_others_can_write_is_not_trusted(package):
    name = Path(run_locked(package)["folder"])
    shutil.rmtree(name)
    name.mkdir()
    os.chmod(name, 0o777)
    assert run_locked(package) == {"answer": 2, "compiled": 1, "folder": "None"}
    assert list(name.iterdir()) == []


def test_a_link_in_place_of_the_folder_is_not_followed(package):
    name = Path(run_locked(package)["folder"])
    elsewhere = name.rename(name.with_name("elsewhere"))
    name.symlink_to(elsewhere)
    assert run_locked(package)["folder"] == "None"


def test_kernels_compiled_within_another_are_counted_but_their_time_only_once(monkeypatch):
    clock = iter([0.0, 1.0, 4.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    compiling, told = Compiling(), []
    compiling.listener = told.append
    compiling.begin()
    compiling.begin()
    compiling.end()
    compiling.end()
    assert (compiling.count, compiling.seconds, told) == (2, 4.0, [0.0, 1.0])
