"""``make fuzz``: forged models in processes with limits of memory and time."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from model_cases import KINDS, honest, use, warm_up, wrapped
from runner import Report, run

# Places of an array of pointers that are made to wrap around, one after the other.
_PLACES = 6


def pointer_cases() -> list[tuple[str, str, int]]:
    """Every array of pointers of every kind of model, and some places of it."""
    return [
        (kind, name, place)
        for kind in KINDS
        for name in honest(kind).pointers()
        for place in np.unique(
            np.linspace(1, honest(kind).arrays[name].size - 3, _PLACES, dtype=int)
        ).tolist()
    ]


def check_pointers(case: tuple[str, str, int]) -> str:
    """Use a model whose pointers wrap around."""
    kind, name, place = case
    forged = honest(kind).copy()
    forged.arrays[name] = wrapped(forged.arrays[name], place)
    return use(forged, kind)


def main(arguments: list[str]) -> int:
    """Run what is asked for; 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("what", choices=["pointers"])
    options = parser.parse_args(arguments)
    warm_up()
    report: Report = {"pointers": lambda: run(pointer_cases(), check_pointers)}[options.what]()
    print(report)
    return 1 if report.findings else 0


def _show(line: Any) -> None:
    print(f"\r{line}", end="", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
