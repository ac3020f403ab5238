"""What is released: the contents of sdist and wheel, and a version that is the same everywhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from locole import __version__

ROOT = Path(__file__).parents[1]
NOT_SOURCES = shutil.ignore_patterns(
    ".git", ".venv*", ".*_cache", ".hypothesis", "__pycache__", "build", "dist", "*.egg-info",
    "gallery", "reference",
)  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folder with the sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("distribution")
    shutil.copytree(ROOT, folder / "source", ignore=NOT_SOURCES, symlinks=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "out", "source"]
    # The path of another source tree would hide what is missing in this one.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    return folder / "out"


@pytest.fixture(scope="module")
def wheel(built):
    [path] = built.glob("*.whl")
    with zipfile.ZipFile(path) as file:
        yield file


def test_the_sdist_has_sources_documentation_and_tests(built):
    [path] = built.glob("*.tar.gz")
    with tarfile.open(path) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    wanted = {
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "SECURITY.md",
        "pyproject.toml",
    }
    wanted |= {"CODE_OF_CONDUCT.md", "Makefile", "constraints.txt", "docs/conf.py", "docs/index.md"}
    wanted |= {str(p.relative_to(ROOT)) for p in ROOT.glob("docs/guide/*.md")}
    wanted |= {str(p.relative_to(ROOT)) for p in ROOT.glob("docs/examples/*.py")}
    wanted |= {str(p.relative_to(ROOT)) for p in ROOT.glob("locole/**/*.py")}
    wanted |= {"tests/test_distribution.py", "benchmarks/records/linear.json"}
    assert wanted <= names
    assert not [
        name for name in names if "__pycache__" in name or name.startswith((".venv", "build"))
    ]


def test_the_wheel_has_the_package_alone(wheel):
    names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    assert {name.split("/")[0] for name in names} == {"locole"}
    assert not [name for name in names if "test" in Path(name).name]
    modules = {str(p.relative_to(ROOT)) for p in ROOT.glob("locole/**/*.py")}
    data = {str(p.relative_to(ROOT)) for p in ROOT.glob("locole/experiments/specs/*.toml")}
    data |= {str(p.relative_to(ROOT)) for p in ROOT.glob("locole/serving/page/*.*")}
    assert modules | data | {"locole/py.typed"} <= set(names)
    assert [name for name in wheel.namelist() if name.endswith("licenses/LICENSE")]


def test_what_the_wheel_says_of_itself(wheel):
    [name] = [name for name in wheel.namelist() if name.endswith("METADATA")]
    said = Parser().parsestr(wheel.read(name).decode())
    assert said["Version"] == __version__
    assert said["License-Expression"] == "MIT"
    assert said.get_payload().startswith("# locole")
    pythons = {c.rpartition(" ")[2] for c in said.get_all("Classifier") if "Python :: 3." in c}
    assert pythons == {"3.11", "3.12", "3.13"}
    [entry] = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert b"locole = locole.__main__:run" in wheel.read(entry)


def test_the_same_pythons_are_tested_as_named():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    assert re.search(r"python: \[(.*)\]", workflow)[1].replace('"', "").split(", ") == named
    assert {"make lint", "make test"} <= set(re.findall(r"- run: (.*)", workflow))
    assert project["requires-python"] == f">={named[0]}"


def test_the_version_is_the_same_everywhere():
    """A release has its version in the citation and on top of the changelog."""
    released = __version__.partition(".dev")[0]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## \[(.+?)\](?: - (\S+))?$", changes, flags=re.MULTILINE)[0]
    if released == __version__:
        assert f"\nversion: {released}\n" in citation
        assert newest == (released, re.search(r"date-released: (\S+)", citation)[1])
    else:
        assert newest[0] == "Unreleased"
