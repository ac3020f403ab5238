"""Compiled kernels on disk: stale ones are never run, and a disk is not needed."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
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
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


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


def run(package: Path, **options) -> dict:
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    env |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    env |= options.pop("env", {})
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=env, cwd="/", capture_output=True, text=True, check=False,
        **options,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run_locked(package: Path) -> dict:
    """Run without a home and with a package that cannot be written, as a user who owns nothing."""
    os.chmod(package / "kernels", 0o555)
    env = {"TMPDIR": str(package.parents[1] / "tmp")}
    if os.geteuid() == 0 and _nobody_can_run():
        env |= {"HOME": "", "XDG_CACHE_HOME": ""}
        return run(package, env=env, **NOBODY)
    # Nothing can be made below a file, not even by root.
    (package / "kernels" / "__pycache__").touch()
    return run(package, env=env | {"HOME": "/dev/null", "XDG_CACHE_HOME": ""})


def _nobody_can_run() -> bool:
    command = [sys.executable, "-c", "import numba"]
    try:
        return subprocess.run(command, cwd="/", capture_output=True, **NOBODY).returncode == 0
    except PermissionError:
        return False


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
    file.write_bytes(file.read_bytes()[:1000])
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
