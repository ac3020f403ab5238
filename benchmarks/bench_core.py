"""Decoding against the BLAS product it replaces, and exact coherence: ``make bench``."""

from __future__ import annotations

import argparse
import json
import math
import time
import tracemalloc
from pathlib import Path

import machine
import numpy as np
from threadpoolctl import threadpool_limits

from locole.decoders import choose_decoder, decode
from locole.embeddings import Embedding, make_embedding
from locole.theory import coherence

RECORD = Path(__file__).parent / "records" / "core.json"
N_CLASSES = 103_361
ROWS = 256

DECODING = [
    ("kerdock", 256),
    ("kerdock", 1024),
    ("gold", 512),
    ("nelson", 509),
    ("nelson", 1021),
    ("reed_solomon", 2208),
]
COHERENCE = [("kerdock", 4096), ("nelson", 1021), ("gold", 2048), ("reed_solomon", 10200)]


def operations(embedding: Embedding) -> tuple[float, str]:
    """Count the arithmetic of one decoded point, and name the yardstick it is held against."""
    n = embedding.dim
    bases = -(-embedding.n_classes // n)
    if embedding.structure == "wht":
        return bases * n * math.log2(n), "add_rate"
    if embedding.structure == "dft":
        m = 1 << (2 * n - 2).bit_length()
        # Two transforms of length m, 4.25 m log2 m each, for two bases; folding and phases.
        return bases / 2 * (2 * 4.25 * m * math.log2(m) + 6 * m + 40 * n), "gemm_rate"
    q = math.isqrt(n + 1)
    return embedding.n_classes * (q + 1), "load_rate"


def bench_decoding(name: str, dim: int, limits: dict[str, float]) -> dict[str, object]:
    embedding = make_embedding(name, dim_classes(name, dim), dim=dim)
    Z = np.random.default_rng(0).normal(size=(ROWS, embedding.real_dim)).astype(np.float32)
    ours = machine.best_time(lambda: decode(embedding, Z))
    tracemalloc.start()
    codes, _ = decode(embedding, Z)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    vectors = embedding.real_rows(np.arange(embedding.n_classes))
    blas = machine.best_time(lambda: (Z @ vectors.T).argmax(axis=1), repeats=3)
    agree = float(np.mean((Z @ vectors.T).argmax(axis=1) == codes[:, 0]))
    work, limit = operations(embedding)
    return {
        "embedding": name,
        "dim": dim,
        "real_dim": embedding.real_dim,
        "n_classes": embedding.n_classes,
        "decoder": choose_decoder(embedding).name,
        "us_per_point": ours / ROWS * 1e6,
        "blas_us_per_point": blas / ROWS * 1e6,
        "speedup": blas / ours,
        "agreement": agree,
        "extra_bytes": peak,
        "blas_bytes": vectors.nbytes + 4 * ROWS * embedding.n_classes,
        "limit": limit,
        "fraction_of_limit": work * ROWS / ours / limits[limit],
    }


def dim_classes(name: str, dim: int) -> int:
    """C = 103,361, or the capacity where that is smaller (Kerdock-256)."""
    return min(N_CLASSES, int(make_embedding(name, 1, dim=dim).capacity))


def bench_coherence(name: str, dim: int) -> dict[str, object]:
    start = time.process_time()
    found = coherence(make_embedding(name, 10**6, dim=dim))
    return {
        "embedding": name,
        "dim": dim,
        "n_classes": 10**6,
        "coherence": found.coherence,
        "method": found.method,
        "cpu_s": time.process_time() - start,
    }


def show(record: dict) -> None:
    print(f"\nDecoding {ROWS} points on one thread, CPU time (best of several)")
    print(f"{'embedding':16}{'outputs':>8}{'labels':>9}{'µs/point':>10}{'BLAS µs':>9}"
          f"{'ratio':>7}{'extra MB':>10}{'BLAS MB':>9}{'of limit':>10}")  # fmt: skip
    for r in record["decoding"]:
        print(f"{r['embedding'] + '-' + str(r['dim']):16}{r['real_dim']:8d}{r['n_classes']:9d}"
              f"{r['us_per_point']:10.1f}{r['blas_us_per_point']:9.1f}{r['speedup']:7.1f}"
              f"{r['extra_bytes'] / 1e6:10.1f}{r['blas_bytes'] / 1e6:9.0f}"
              f"{r['fraction_of_limit']:8.0%} {r['limit']}")  # fmt: skip
    print("\nExact coherence of a million labels")
    for r in record["coherence"]:
        print(f"{r['embedding'] + '-' + str(r['dim']):16}{r['coherence']:10.5f}"
              f"{r['cpu_s']:10.4f} CPU s  by {r['method']}")  # fmt: skip
    print("\nLimits: " + ", ".join(f"{k} {v / 1e9:.0f} G/s" for k, v in record["limits"].items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=RECORD, help="where to save the record")
    output = parser.parse_args().output
    with threadpool_limits(1):
        limits = {
            "add_rate": machine.add_rate(),
            "gemm_rate": machine.gemm_rate(),
            "load_rate": machine.load_rate(144 << 10),
        }
        record = {
            "machine": machine.describe(),
            "limits": limits,
            "decoding": [bench_decoding(name, dim, limits) for name, dim in DECODING],
            "coherence": [bench_coherence(name, dim) for name, dim in COHERENCE],
        }
    show(record)
    output.write_text(json.dumps(record, indent=2) + "\n")
    print(f"saved {output}")


if __name__ == "__main__":
    main()
