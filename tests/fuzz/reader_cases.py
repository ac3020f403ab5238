"""Mutated files of every format that there is a reader for, read whole and in batches."""

from __future__ import annotations

import gzip
import io
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from mutations import mutated_array
from runner import folder

from locole.datasets import iter_examples, load_xmc, read_examples
from locole.exceptions import LocoleError

__all__ = ["READERS", "check_file", "warm_up"]

Rng = np.random.Generator
# Pieces that mean something in a format.
_TOKENS = [
    b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b'"', b"-", b"1e999", b"nan", b"inf", b"-1", b"0",
    b"2147483648", b"99999999999999999999", b"\xff", b"\xed\xa0\x80", b"{", b"}", b"[" * 2000,
    b"\\u0000", b"#",
]  # fmt: skip


# Honest files -------------------------------------------------------------------------------------


@cache
def _matrix(kind: str) -> sp.spmatrix:
    X = sp.random_array((12, 30), density=0.2, rng=np.random.default_rng(0), dtype=np.float32)
    return sp.csr_matrix(X) if kind == "csr" else sp.csc_matrix(X)


def _svm_lines() -> list[str]:
    X = _matrix("csr")
    rows = [zip(X[i].indices, X[i].data, strict=True) for i in range(X.shape[0])]
    return [f"{i % 4} " + " ".join(f"{j + 1}:{v:.4g}" for j, v in r) for i, r in enumerate(rows)]


def _libsvm(rng: Rng) -> bytes:
    return "".join(f"{line}\n" for line in _svm_lines()).encode()


def _xmc(rng: Rng) -> bytes:
    return "".join(f"{line}\n" for line in ["12 31 4", *_svm_lines()]).encode()


def _tsv(rng: Rng) -> bytes:
    return "".join(f"label {i % 3}\tsome text é {i}\n" for i in range(9)).encode()


def _csv(rng: Rng) -> bytes:
    lines = ["label,text", *(f'l{i % 3},"some ""text"", é\n{i}"' for i in range(9))]
    return "".join(f"{line}\n" for line in lines).encode()


def _jsonl(rng: Rng) -> bytes:
    return b"".join(b'{"text": "a \\u00e9 %d", "label": "l%d"}\n' % (i, i % 3) for i in range(9))


def _txt(rng: Rng) -> bytes:
    return "".join(f"some text é {i}\n" for i in range(9)).encode()


def _npz(rng: Rng) -> bytes:
    """A matrix whose arrays may be changed; the archive and its checksums are right."""
    X = _matrix("csr" if rng.random() < 0.5 else "csc")
    arrays = {"indices": X.indices, "indptr": X.indptr, "format": np.array(X.format.encode()),
              "shape": np.array(X.shape), "data": X.data}  # fmt: skip
    if rng.random() < 0.7:
        name = list(arrays)[rng.integers(len(arrays))]
        if name != "format":
            arrays[name] = mutated_array(arrays[name], rng)
        else:
            arrays[name] = np.array(["csr", "csc", "coo", "bsr", "", "é"][rng.integers(6)])
    members = {f"{name}.npy": _npy(array, rng) for name, array in arrays.items()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if rng.random() < 0.5 else 0) as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)
    return out.getvalue()


def _npy(array: np.ndarray, rng: Rng) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    raw = out.getvalue()
    return _changed(raw, rng) if rng.random() < 0.1 else raw


def _parquet(rng: Rng) -> bytes:
    """A table of texts, in one of several encodings, and sometimes of other types."""
    n = 40
    texts: list = [f"some text é {i % 7}" * int(rng.integers(1, 40)) for i in range(n)]
    labels: list = [f"l{i % 3}" for i in range(n)] if rng.random() < 0.7 else list(range(n))
    if rng.random() < 0.2:
        texts[int(rng.integers(n))] = None
    if rng.random() < 0.1:
        labels = [0.5] * n
    table = pa.table({"text": texts, "label": labels})
    if rng.random() < 0.1:
        table = table.append_column("text", pa.array(texts))
    out = io.BytesIO()
    pq.write_table(
        table, out,
        compression=["none", "snappy", "zstd", "gzip"][rng.integers(4)],
        use_dictionary=bool(rng.random() < 0.5),
        row_group_size=int(rng.integers(1, n + 1)),
        store_schema=bool(rng.random() < 0.5),
    )  # fmt: skip
    return out.getvalue()


#: Honest files by the name of their format.
READERS: dict[str, Callable[[Rng], bytes]] = {
    "libsvm": _libsvm,
    "xmc": _xmc,
    "npz": _npz,
    "tsv": _tsv,
    "csv": _csv,
    "jsonl": _jsonl,
    "txt": _txt,
    "parquet": _parquet,
}


# Changes ------------------------------------------------------------------------------------------


def _changed(raw: bytes, rng: Rng) -> bytes:
    """Bytes with a few of them flipped, put in, taken out, repeated or cut off."""
    out = bytearray(raw)
    for _ in range(rng.choice([1, 1, 2, 5])):
        place, way = int(rng.integers(len(out) + 1)), rng.integers(7)
        size = int(rng.choice([1, 2, 4, 8, 40]))
        if way == 0 and place < len(out):
            out[place] ^= 1 << int(rng.integers(8))
        elif way == 1:
            out[place : place + size] = rng.bytes(size)
        elif way == 2:
            out[place:place] = _TOKENS[rng.integers(len(_TOKENS))]
        elif way == 3:
            del out[place : place + size]
        elif way == 4:
            out[place:place] = out[place : place + size] * int(rng.choice([1, 2, 100]))
        elif way == 5:
            out[place : place + size] = [b"\xff", b"\0", b"\x7f"][rng.integers(3)] * size
        elif rng.random() < 0.3:
            del out[place:]
    return bytes(out)


def check_file(case: tuple[str, int, int]) -> str:
    """Read the file of that format, seed and number in every way."""
    format, seed, number = case
    rng = np.random.default_rng([seed, number, len(format)])
    raw = READERS[format](rng)
    if format not in ("npz", "parquet") or rng.random() < 0.5:
        raw = _changed(raw, rng)
    packed = format not in ("npz", "parquet") and rng.random() < 0.1
    if packed:
        raw = gzip.compress(raw)
        raw = _changed(raw, rng) if rng.random() < 0.5 else raw
    path = folder() / f"file.{format}{'.gz' if packed else ''}"
    path.write_bytes(raw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _read(path, format, rng)


def _read(path: Path, format: str, rng: Rng) -> str:
    refused = 0
    labelled = format != "txt" and bool(rng.random() < 0.7)
    if format == "npz":
        y = np.arange(12) if rng.random() < 0.8 else mutated_array(np.arange(12), rng)
        np.save(path.with_name("file_y.npy"), y)
    options = {"format": format, "labelled": labelled}
    ways = [
        lambda: read_examples(path, **options),
        lambda: list(iter_examples(path, batch_rows=4, n_features=30, **options)),
    ]
    ways += [lambda: load_xmc(path)] if format == "xmc" else []
    for read in ways:
        try:
            read()
        except LocoleError:
            refused += 1
    return ["read", "partly read", "refused", "refused"][refused]


def warm_up() -> None:
    """Read an honest file by compiled loops, so that forked processes find them compiled."""
    for format in ("libsvm", "xmc"):
        path = folder() / f"honest.{format}"
        path.write_bytes(READERS[format](np.random.default_rng(0)))
        for _ in iter_examples(path):
            pass
        read_examples(path)
