"""Softmax over all labels against the dense products it replaces: ``make bench-softmax``."""

from __future__ import annotations

import argparse
import json
import math
import tracemalloc
from pathlib import Path
from typing import Any

import machine
import numpy as np
from threadpoolctl import threadpool_limits

from locole.cross_entropy import Softmax
from locole.embeddings import make_embedding

RECORD = Path(__file__).parent / "records" / "softmax.json"
ROWS = 256
CASES = [
    ("kerdock", 1024, 103_361),
    ("kerdock", 1024, 10_000),
    ("kerdock", 1024, 500_000),
    ("gold", 512, 103_361),
    ("nelson", 509, 103_361),
    ("nelson", 509, 10_000),
]
# Arithmetic of one exponential and its sum, beside the two transforms.
_EXP_OPERATIONS = 16


def operations(embedding: Any) -> float:
    """Additions and products of the transforms of one row, forth and back, and of its exponentials."""
    n, bases = embedding.dim, embedding.n_bases
    if embedding.structure == "wht":
        return bases * n * (2 * math.log2(n) + _EXP_OPERATIONS)
    m = 1 << (2 * n - 2).bit_length()
    # Two convolutions for two bases, each two radix-4 transforms of length m.
    return bases * (2 * 4.25 * m * math.log2(m) + n * _EXP_OPERATIONS)


def dense_softmax(Z: np.ndarray, codes: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Product, softmax, product back, all at once: what a dense output layer does."""
    logits = Z @ G.T
    aim = logits[np.arange(len(Z)), codes]
    logits -= logits.max(axis=1, keepdims=True)
    top = aim - logits[np.arange(len(Z)), codes]
    np.exp(logits, out=logits)
    total = logits.sum(axis=1)
    logits /= total[:, None]
    return np.log(total) + top - aim, logits @ G - G[codes]


def bench(name: str, dim: int, n_classes: int, limit: float) -> dict[str, object]:
    embedding = make_embedding(name, n_classes, dim=dim)
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(ROWS, embedding.real_dim)).astype(np.float32)
    codes = rng.integers(0, n_classes, ROWS)
    softmax = Softmax(embedding)
    ours = machine.best_time(lambda: softmax(Z, codes))
    tracemalloc.start()
    loss, gradient = softmax(Z, codes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    record: dict[str, object] = {
        "embedding": name,
        "dim": dim,
        "n_classes": n_classes,
        "us_per_row": ours / ROWS * 1e6,
        "extra_bytes": peak,
    }
    record["fraction_of_limit"] = operations(embedding) * ROWS / ours / limit
    if n_classes * embedding.real_dim <= 2**27:
        G = embedding.real_rows(np.arange(n_classes))
        dense = machine.best_time(lambda: dense_softmax(Z, codes, G), repeats=3)
        expected = dense_softmax(Z, codes, G)
        record["dense_us_per_row"] = dense / ROWS * 1e6
        record["speedup"] = dense / ours
        record["dense_bytes"] = G.nbytes + 4 * ROWS * n_classes
        record["largest_difference"] = float(
            max(np.abs(loss - expected[0]).max(), np.abs(gradient - expected[1]).max())
        )
    return record


def show(record: dict) -> None:
    print(f"Loss and gradient of {ROWS} points on one thread, CPU time (best of several)")
    print(f"{'embedding':16}{'labels':>9}{'µs/row':>9}{'dense µs':>10}{'ratio':>7}"
          f"{'extra MB':>10}{'dense MB':>10}{'of limit':>10}")  # fmt: skip
    for r in record["runs"]:
        dense = f"{r['dense_us_per_row']:10.0f}{r['speedup']:7.1f}" if "speedup" in r else " " * 17
        size = f"{r['dense_bytes'] / 1e6:10.0f}" if "speedup" in r else " " * 10
        print(f"{r['embedding'] + '-' + str(r['dim']):16}{r['n_classes']:9d}{r['us_per_row']:9.1f}"
              f"{dense}{r['extra_bytes'] / 1e6:10.1f}{size}{r['fraction_of_limit']:10.0%}")  # fmt: skip
    print(f"Limit: {record['limits']['add_rate'] / 1e9:.0f} G additions/s in registers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=RECORD, help="where to save the record")
    output = parser.parse_args().output
    with threadpool_limits(1):
        limit = machine.add_rate()
        runs = [bench(*case, limit) for case in CASES]
    record = {"machine": machine.describe(), "limits": {"add_rate": limit}, "runs": runs}
    show(record)
    output.write_text(json.dumps(record, indent=2) + "\n")
    print(f"saved {output}")


if __name__ == "__main__":
    main()
