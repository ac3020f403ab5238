"""The lowest versions that are tested are those that are promised."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
#: Tested in another version than the lowest, or needed by others only.
OTHERS = {"torch", "click", "pyparsing"}


def test_constraints_are_the_lower_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    asked = [Requirement(line) for lines in lists for line in lines]
    bounds = {r.name: str(r.specifier) for r in asked if r.name not in {"locole", *OTHERS}}
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    tested = {r.name: str(r.specifier).replace("==", ">=") for r in pins if r.name not in OTHERS}
    assert tested == bounds
