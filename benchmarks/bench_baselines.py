"""Every baseline beside locole and the original programs' figures: ``make bench-baselines``.

Each system runs alone in its process, as in bench_linear.py, whose parts are used here.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import bench_linear
import machine
from bench_linear import HERE, LIMIT_S, MissingDataError, System

import locole.baselines

RECORD = HERE / "records" / "baselines.json"
SETS = ("cve_product", "clinc150")


def systems() -> dict[str, System]:
    """Locole with defaults, and every class of `locole.baselines` with its own."""
    names = [name for name in locole.baselines.__all__ if name != "Baseline"]
    ours = {"locole": System("locole, defaults", "run_locole.py", "defaults")}
    return {**ours, **{name: System(name, "run_baseline.py", name) for name in sorted(names)}}


SYSTEMS = systems()

#: What the programs of others reached on the very same files with two cores, each run once: those of
#: the authors, for Parabel and Bonsai omikuji's. For the rest there is no original to compare with.
ORIGINALS: dict[tuple[str, str], dict[str, Any]] = {
    ("cve_product", "PDSparse"): {"accuracy_1": 0.837, "train_cpu_s": 796, "model_bytes": 112e6},
    ("cve_product", "PPDSparse"): {"status": "not done after 600 s"},
    ("cve_product", "Parabel"): {"accuracy_1": 0.791, "train_cpu_s": 38, "model_bytes": 71e6},
    ("cve_product", "Bonsai"): {"accuracy_1": 0.811, "train_cpu_s": 188, "model_bytes": 51e6},
    ("cve_product", "WLTLS"): {"accuracy_1": 0.741, "train_cpu_s": 270, "model_bytes": 59e6},
    ("cve_product", "AnnexML"): {"status": "not done after 900 s"},
    ("clinc150", "Parabel"): {"accuracy_1": 0.919, "train_cpu_s": 3.15, "model_bytes": 3.0e6},
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    folder = os.environ.get("LOCOLE_DATA")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(folder) if folder else None,
        help="folder with <set>/train.svm.xz and test.svm.xz (default: LOCOLE_DATA)",
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET",
                        help=f"of {', '.join(SETS)} (default: all)")  # fmt: skip
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS),
                        metavar="SYSTEM", help=f"of {', '.join(SYSTEMS)} (default: all)")  # fmt: skip
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds a run may take")
    parser.add_argument(
        "--rows", type=int, help="try with so many training rows; saves only to --output"
    )
    parser.add_argument("--output", type=Path, help=f"record (default: records/{RECORD.name})")
    return parser.parse_args()


def measured(name: str, key: str, data: Path, *, limit_s: float) -> dict[str, Any]:
    """One run, with the figures of the original program beside it."""
    found = bench_linear.run(SYSTEMS[key], data, limit_s=limit_s)
    found = {"set": name, "system": key, "label": SYSTEMS[key].label, **found}
    if (name, key) in ORIGINALS:
        found["original"] = ORIGINALS[name, key]
    return found


def main() -> None:
    args = arguments()
    output = args.output or (None if args.rows else RECORD)
    bench_linear.keep_to_two_cores()
    here = machine.describe()
    record = bench_linear.merged(output, here) if output else {"runs": []}
    bench_linear.show_head()
    with tempfile.TemporaryDirectory(prefix="locole-data-") as cache:
        for name in args.sets:
            folder = Path(cache) / name
            try:
                rows = bench_linear.SETS[name](name, args.data)
                bench_linear.convert(rows, folder, limit=args.rows)
            except MissingDataError as error:
                print(f"{name:13}missing: {error}", flush=True)
                continue
            for key in args.systems:
                found = measured(name, key, folder, limit_s=args.limit)
                bench_linear.show(found)
                bench_linear.put(record, found, SYSTEMS)
                if output:
                    output.write_text(json.dumps(record, indent=2) + "\n")
    if output:
        print(f"saved {output}")


if __name__ == "__main__":
    main()
