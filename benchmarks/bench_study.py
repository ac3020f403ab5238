"""Accuracy against time for both losses, by dims and by families: ``make bench-study``."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bench_linear
import machine

RECORD = Path(__file__).resolve().parent / "records" / "study.json"
LOSSES = ("elastic_net", "softmax")
#: Real outputs of the first part; Gold codes where the dim is an odd power of two, else Kerdock's.
DIMS = {256: "kerdock", 512: "gold", 1024: "kerdock", 2048: "gold", 4096: "kerdock"}
#: The second part: the other families at about the 512 real outputs of Gold codes.
FAMILIES = {
    "nelson": 257,
    "reed_solomon": 528,
    "rademacher": 512,
    "gaussian": 512,
    "complex_gaussian": 256,
}
#: Softmax over 59,100 labels takes minutes, and weights of 379,000 features gigabytes.
CITY_DIMS = {"elastic_net": (256, 512, 1024), "softmax": (512,)}


@dataclass(frozen=True)
class Run:
    """One loss with one embedding."""

    part: str
    loss: str
    family: str
    dim: int

    @property
    def name(self) -> str:
        """As the record and the script know it."""
        return f"{self.loss} {self.family} {self.dim}"


def runs_of(name: str) -> list[Run]:
    """Dims, then families."""
    city = name == "city_names"
    found = []
    for loss in LOSSES:
        dims = CITY_DIMS[loss] if city else tuple(DIMS)
        found += [Run("dims", loss, DIMS[dim], dim) for dim in dims]
    # Of city names, 23³ polynomials are too few, and a softmax without transforms takes an hour.
    for loss in LOSSES[:1] if city else LOSSES:
        families = {k: v for k, v in FAMILIES.items() if not (city and k == "reed_solomon")}
        found += [Run("families", loss, family, dim) for family, dim in families.items()]
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    folder = os.environ.get("LOCOLE_DATA")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else None)
    parser.add_argument(
        "--sets", nargs="+", choices=bench_linear.SETS, default=list(bench_linear.SETS)
    )
    parser.add_argument("--limit", type=float, default=900, help="seconds that a run may take")
    parser.add_argument("--rows", type=int, help="try with so many rows; saves only to --output")
    parser.add_argument("--output", type=Path, help=f"record (default: records/{RECORD.name})")
    return parser.parse_args()


def show(r: dict[str, Any]) -> None:
    line = f"{r['set']:13}{r['system']:34}"
    if r["status"] == "done":
        line += f"{100 * r['accuracy_1']:6.1f} % {r['train_cpu_s']:9.2f} CPU s"
    else:
        line += r["status"]
    print(line, flush=True)


def main() -> None:
    args = arguments()
    output = args.output or (None if args.rows else RECORD)
    bench_linear.keep_to_two_cores()
    record = bench_linear.merged(output, machine.describe()) if output else {"runs": []}
    order = list(dict.fromkeys(run.name for name in bench_linear.SETS for run in runs_of(name)))
    with tempfile.TemporaryDirectory(prefix="locole-data-") as cache:
        for name in args.sets:
            folder = Path(cache) / name
            try:
                rows = bench_linear.SETS[name](name, args.data)
            except bench_linear.MissingDataError as error:
                print(f"{name:13}missing: {error}", flush=True)
                continue
            bench_linear.convert(rows, folder, limit=args.rows)
            for run in runs_of(name):
                system = bench_linear.System(run.name, "run_locole.py", run.name)
                found = bench_linear.run(system, folder, limit_s=args.limit)
                found = {
                    "set": name, "system": run.name, "part": run.part, "loss": run.loss,
                    "family": run.family, "dim": run.dim, **found,
                }  # fmt: skip
                show(found)
                bench_linear.put(record, found, order)
                if output:
                    output.write_text(json.dumps(record, indent=2) + "\n")
    if output:
        print(f"saved {output}")


if __name__ == "__main__":
    main()
