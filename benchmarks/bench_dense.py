"""Dense rows against softmax heads, neighbours and centroids: ``make bench-dense``."""

from __future__ import annotations

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
import numpy as np
from bench_linear import (
    PEERS,
    THREADS,
    _environment,
    keep_to_two_cores,
    merged,
    put,
    show,
    show_head,
)

HERE = Path(__file__).resolve().parent
RECORD = HERE / "records" / "dense.json"
LIMIT_S, LIMIT_GB = 1800, 14
# Of the names of sets, when they are printed.
WIDTH = 24
#: system → label; whether it runs in the peers' environment
SYSTEMS = {
    "centroids": ("class centroids", False),
    "knn": ("scikit-learn k-NN", False),
    "faiss": ("faiss IVF k-NN", True),
    "logistic": ("scikit-learn logistic regression", False),
    "head": ("torch softmax head", False),
    "sampled_head": ("torch sampled softmax head", False),
    "locole": ("locole, defaults", False),
    "words": ("locole, words", False),
    "both": ("locole, words and vectors", False),
}
# Without texts.
DENSE = tuple(name for name in SYSTEMS if name not in ("words", "both"))


def write(folder: Path, **arrays: np.ndarray) -> None:
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def clinc(folder: Path, data: Path, python: str) -> None:
    """Requests by all-MiniLM-L6-v2, and their texts."""
    for part in ("train", "test"):
        with np.load(data / "clinc150_minilm" / f"{part}.npz") as arrays:
            write(
                folder,
                **{
                    f"X_{part}": arrays["X"].astype(np.float32),
                    f"y_{part}": arrays["y"].astype(np.int64),
                },
            )
        write_texts(folder, data / "clinc150", part)


def wordllama(name: str) -> Callable[[Path, Path, str], None]:
    def make(folder: Path, data: Path, python: str) -> None:
        for part in ("train", "test"):
            write(folder, **{f"y_{part}": write_texts(folder, data / name, part)})
            command = [python, str(HERE / "peers" / "encode_wordllama.py")]
            command += [str(folder / f"{part}.txt"), str(folder / f"X_{part}.npy")]
            subprocess.run(command, check=True)

    return make


def write_texts(folder: Path, data: Path, part: str) -> np.ndarray:
    """Write the texts of a part, a line each; return the labels."""
    with lzma.open(data / f"{part}.tsv.xz", "rt", encoding="utf-8", newline="\n") as file:
        rows = [line.rstrip("\n").split("\t", 1) for line in file]
    lines = [" ".join(text.split()) + "\n" for _, text in rows]
    (folder / f"{part}.txt").write_text("".join(lines), encoding="utf-8")
    return np.array([int(label) for label, _ in rows])


def synthetic(n_rows: int, n_classes: int) -> Callable[[Path, Path, str], None]:
    """Noisy copies of label vectors, which are noisy copies of those of a thousand topics."""

    def make(folder: Path, data: Path, python: str) -> None:
        rng = np.random.default_rng(0)
        topics = rng.standard_normal((1000, 384), dtype=np.float32)
        labels = 0.7 * rng.standard_normal((n_classes, 384), dtype=np.float32)
        labels += topics[rng.integers(1000, size=n_classes)]
        spread = (np.arange(1, 385) ** -0.3).astype(np.float32)
        for part, size in (("train", n_rows), ("test", 10_000)):
            y = rng.integers(n_classes, size=size)
            X = np.lib.format.open_memmap(folder / f"X_{part}.npy", "w+", np.float32, (size, 384))
            for start in range(0, size, 10_000):
                some = y[start : start + 10_000]
                noise = rng.standard_normal((some.size, 384), dtype=np.float32)
                block = (labels[some] + 2.2 * noise) * spread
                X[start : start + 10_000] = block / np.linalg.norm(block, axis=1, keepdims=True)
            write(folder, **{f"y_{part}": y})

    return make


SETS: dict[str, tuple[Callable[[Path, Path, str], None], tuple[str, ...]]] = {
    "clinc150_minilm": (clinc, tuple(SYSTEMS)),
    "cve_product_wordllama": (wordllama("cve_product"), tuple(SYSTEMS)),
    "clinc150_wordllama": (wordllama("clinc150"), ("locole", "words", "both")),
    "synthetic_100k": (synthetic(100_000, 10_000), DENSE),
    "synthetic_1m": (synthetic(1_000_000, 100_000), DENSE),
}


def run(system: str, data: Path, *, python: str, limit_s: float, limit_gb: float) -> dict[str, Any]:
    """Measure one system in a process of its own, which ends when its time or memory is used up."""
    with tempfile.TemporaryDirectory(prefix="locole-run-") as scratch:
        output = Path(scratch) / "record.json"
        command = [python if SYSTEMS[system][1] else sys.executable]
        command += [str(HERE / "peers" / "run_dense.py"), system, str(data), str(output)]
        try:
            done = subprocess.run(
                [*command, "--threads", str(THREADS), "--memory", str(limit_gb)],
                env=_environment(),
                timeout=limit_s,
                capture_output=True,
                text=True,
            )
        except subprocess.TimeoutExpired:
            return {"status": f"timeout: not done after {limit_s:g} s"}
        if output.exists():
            return json.loads(output.read_text())
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return {"status": f"failed: process ended with {done.returncode}: {last[:200]}"}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    folder = os.environ.get("LOCOLE_DATA")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else None)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds of a run")
    parser.add_argument("--memory", type=float, default=LIMIT_GB, help="gigabytes of a run")
    parser.add_argument("--peers", default=str(PEERS / "bin" / "python"), help="their interpreter")
    parser.add_argument("--again", action="store_true", help="measure again what is recorded")
    parser.add_argument("--output", type=Path, default=RECORD)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    keep_to_two_cores()
    record = merged(args.output, machine.describe())
    limits = {"limit_s": args.limit, "limit_gb": args.memory}
    show_head(WIDTH)
    for name in args.sets:
        make, systems = SETS[name]
        known = {r["system"] for r in record["runs"] if r["set"] == name}
        wanted = [s for s in systems if s in args.systems and (args.again or s not in known)]
        if not wanted:
            continue
        with tempfile.TemporaryDirectory(prefix="locole-data-") as scratch:
            try:
                make(Path(scratch), args.data or Path(), args.peers)
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"{name:{WIDTH}}missing: {error}", flush=True)
                continue
            for system in wanted:
                found = run(system, Path(scratch), python=args.peers, **limits)
                found = {"set": name, "system": system, "label": SYSTEMS[system][0], **found}
                show(found, WIDTH)
                put(record, found, SYSTEMS, SETS)
                args.output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
