"""``make fuzz``: forged models in processes with limits of memory and time."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import model_cases
import numpy as np
import reader_cases
from model_cases import KINDS, check_model, honest, use, wrapped
from reader_cases import READERS, check_file
from runner import run

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
    parser.add_argument("what", nargs="*", default=["pointers", "models", *READERS])
    parser.add_argument("--models", type=int, default=20_000, help="number of forged models")
    parser.add_argument("--files", type=int, default=5_000, help="number of files for each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args(arguments)
    n_findings = 0
    for what in options.what:
        report = run(*_cases(what, options), show=_show)
        print(f"{what}: {report}", flush=True)
        n_findings += len(report.findings)
    return 1 if n_findings else 0


def _cases(what: str, options: argparse.Namespace) -> tuple[list[Any], Any]:
    """Cases, and the function that checks one of them."""
    first, seed = options.first, options.seed
    if what in READERS:
        reader_cases.warm_up()
        return [(what, seed, first + i) for i in range(options.files)], check_file
    model_cases.warm_up()
    if what == "pointers":
        return pointer_cases(), check_pointers
    return [(seed, first + i) for i in range(options.models)], check_model


def _show(line: Any) -> None:
    if sys.stderr.isatty():
        print(f"\r{line}", end="", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
