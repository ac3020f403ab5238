"""``locole fit`` on raw texts, and on the features beside them, part by part: ``make bench-fit``.

The verb runs in a process of its own, after one on a few rows that compiles the kernels. Every part has
wall seconds, CPU seconds of all threads, and the largest memory of the process meanwhile; those within
another one count there, too.
"""

from __future__ import annotations

import argparse
import functools
import json
import lzma
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine

RECORD = Path(__file__).parent / "records" / "end_to_end.json"
FILES = ("train.tsv", "train.svm")
SMALL_ROWS = 3_000


class Meter:
    """Seconds and memory of functions, by the names of their parts."""

    def __init__(self) -> None:
        self.parts: dict[str, dict[str, float]] = {}
        self._open: list[dict[str, float]] = []

    def watch(self, part: str, owner: Any, name: str) -> None:
        """Measure every call of ``owner.name``; what several calls take is added up."""
        setattr(owner, name, self.measured(part, getattr(owner, name)))

    def measured(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, measured as this part."""

        @functools.wraps(function)
        def run(*args: Any, **options: Any) -> Any:
            figures = self.parts.setdefault(part, {"seconds": 0.0, "cpu_s": 0.0, "peak_bytes": 0})
            self._note_peak()
            self._open.append(figures)
            wall, cpu = time.perf_counter(), time.process_time()
            try:
                return function(*args, **options)
            finally:
                figures["seconds"] += time.perf_counter() - wall
                figures["cpu_s"] += time.process_time() - cpu
                self._note_peak()
                self._open.pop()

        return run

    def _note_peak(self) -> None:
        """Give the peak since the last look to all parts that are being measured, and begin anew."""
        from locole.cli.steps import peak_bytes

        for figures in self._open:
            figures["peak_bytes"] = max(figures["peak_bytes"], peak_bytes() or 0)
        if os.access("/proc/self/clear_refs", os.W_OK):
            Path("/proc/self/clear_refs").write_text("5")


def child(words: list[str], output: Path) -> int:
    """Run ``locole`` with these words in this process, and write down what its parts took."""
    import locole.io
    from locole import LocoleClassifier
    from locole.calibration import Calibration
    from locole.cli import app, training
    from locole.scoring.factors import FactorScorer
    from locole.scoring.profiles import ProfileScorer
    from locole.scoring.vectors import VectorScorer
    from locole.text import TextFeatures

    meter = Meter()
    meter.watch("read", training, "read_training")
    meter.watch("vectorise", TextFeatures, "fit_transform")
    meter.watch("fit", LocoleClassifier, "fit")
    meter.watch("fit: profiles", ProfileScorer, "fit")
    meter.watch("fit: label vectors", VectorScorer, "fit")
    meter.watch("fit: factors", FactorScorer, "fit")
    meter.watch("calibrate", Calibration, "fit")
    meter.watch("save", locole.io, "write_model")
    status = app.main(words)
    output.write_text(json.dumps(meter.parts))
    return status


def fitted(path: Path, folder: Path, n_jobs: int) -> dict[str, Any]:
    """Fit to a file in a process of its own."""
    output = folder / "parts.json"
    words = [
        "fit",
        str(path),
        "-o",
        str(folder / "model"),
        "--jobs",
        str(n_jobs),
        "--json",
        "--force",
    ]
    wall, cpu = time.perf_counter(), _children_cpu_s()
    done = subprocess.run(
        [sys.executable, __file__, "--child", str(output), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        text=True,
    )
    whole = {"seconds": time.perf_counter() - wall, "cpu_s": _children_cpu_s() - cpu}
    parts = json.loads(output.read_text())
    whole["peak_bytes"] = max(figures["peak_bytes"] for figures in parts.values())
    said = json.loads(done.stdout.splitlines()[-1])
    steps = {name: value for step in said["steps"] for name, value in step.items()}
    shape = {
        name: steps[name] for name in ("texts", "rows", "features", "nonzeros") if name in steps
    }
    chosen = next(step["chosen"]["choice"] for step in said["steps"] if step["step"] == "train")
    return {
        **shape,
        "labels": steps["labels"],
        "choice": chosen,
        "model_bytes": said["model_bytes"],
        "parts": {**parts, "all": whole},
    }


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def unpacked(source: Path, folder: Path) -> Path:
    """Plain copy of a packed file, and its first rows beside it."""
    path = folder / source.stem
    with lzma.open(source, "rb") as packed, path.open("wb") as plain:
        for number, line in enumerate(packed):
            plain.write(line)
            if number + 1 == SMALL_ROWS:
                plain.flush()
                path.with_name(f"small{path.suffix}").write_bytes(path.read_bytes())
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with <set>/train.tsv.xz and train.svm.xz")
    parser.add_argument("--set", default="cve_product", help="name of the set")
    parser.add_argument("--files", nargs="+", choices=FILES, default=FILES)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RECORD, help="where to save the record")
    args = parser.parse_args()
    runs = []
    for name in args.files:
        with tempfile.TemporaryDirectory(prefix="locole-fit-") as folder:
            path = unpacked(args.data / args.set / f"{name}.xz", Path(folder))
            fitted(path.with_name(f"small{path.suffix}"), Path(folder), args.n_jobs)
            found = fitted(path, Path(folder), args.n_jobs)
        runs.append({"set": args.set, "file": name, **found})
        print(json.dumps(runs[-1], indent=1), flush=True)
        record = {"machine": machine.describe(), "threads": args.n_jobs, "runs": runs}
        args.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.exit(child(sys.argv[3:], Path(sys.argv[2])))
    main()
