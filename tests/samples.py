"""Small files of every kind, for tests of the command line and of the documentation."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np

ANIMALS = ["cat", "cow", "dog", "duck", "goat", "goose", "hen", "horse", "pig", "sheep"]
COMMON = [f"common{i}" for i in range(30)]


def make_rows(n_rows: int, seed: int) -> list[tuple[str, str]]:
    """Labels and texts: words of the label's own among words of all."""
    rng = random.Random(seed)
    rows = []
    for _ in range(n_rows):
        animal = rng.choice(ANIMALS)
        own = [f"{animal}{rng.randrange(6)}" for _ in range(2)]
        rows.append((animal, " ".join([*own, *rng.choices(COMMON, k=4)])))
    return rows


def tagged_rows(n_rows: int, seed: int) -> list[tuple[list[str], str]]:
    """Sets of up to three labels, and texts with words of each of them."""
    rng = random.Random(seed)
    rows = []
    for _ in range(n_rows):
        animals = sorted(rng.sample(ANIMALS, rng.choice([1, 1, 2, 3])))
        own = [f"{animal}{rng.randrange(6)}" for animal in animals for _ in range(2)]
        rows.append((animals, " ".join([*own, *rng.choices(COMMON, k=3)])))
    return rows


def _indices(text: str) -> list[int]:
    """Features of a text, from 1."""
    words = [*COMMON, *(f"{animal}{i}" for animal in ANIMALS for i in range(6))]
    return sorted({1 + words.index(word) for word in text.split()})


def svm_lines(rows: list[tuple[str, str]], *, first: int = 1) -> str:
    """LIBSVM lines, features from ``first``; labels are numbers."""
    lines = []
    for animal, text in rows:
        pairs = " ".join(f"{index - 1 + first}:1" for index in _indices(text))
        lines.append(f"{10 * ANIMALS.index(animal)} {pairs}\n")
    return "".join(lines)


def write_samples(folder: Path) -> None:
    """Write train, test and new rows as the documentation calls them."""
    for name, rows in {"train": make_rows(300, 1), "test": make_rows(60, 2)}.items():
        _write(folder, f"{name}.tsv", "".join(f"{label}\t{text}\n" for label, text in rows))
        table = "".join(f'"{label}",{i},"{text}, x"\n' for i, (label, text) in enumerate(rows))
        _write(folder, f"{name}.csv", "category,price,title\n" + table)
        objects = (json.dumps({"text": text, "label": label}) for label, text in rows)
        _write(folder, f"{name}.jsonl", "".join(f"{line}\n" for line in objects))
        _write(folder, f"{name}.svm", svm_lines(rows))
        (folder / "sets" / "animals").mkdir(parents=True, exist_ok=True)
        _write(folder, f"sets/animals/{name}.csv", "category,price,title\n" + table)
    for name, pairs in {"tagged": tagged_rows(300, 4), "tagged_test": tagged_rows(60, 5)}.items():
        lines = (f"{'|'.join(labels)}\t{text}\n" for labels, text in pairs)
        _write(folder, f"{name}.tsv", "".join(lines))
    named = {**dict(zip(ANIMALS, ANIMALS, strict=True)), "donkey": "donkey or ass"}
    _write(folder, "names.tsv", "".join(f"{label}\t{name}\n" for label, name in named.items()))
    monday = [*make_rows(20, 6), *(("llama", f"spits llama{i % 3} common{i}") for i in range(6))]
    _write(folder, "monday.tsv", "".join(f"{label}\t{text}\n" for label, text in monday))
    texts = [text for _, text in make_rows(12, 3)]
    _write(folder, "new.txt", "".join(f"{text}\n" for text in texts))
    _write(folder, "new.csv", "title\n" + "".join(f"{text}\n" for text in texts))
    _write_vectors(folder, make_rows(300, 1))
    _write(folder, "margins.txt", "0.1\n0.7\n0.9\n1.0\n")
    (folder / "records").mkdir(exist_ok=True)
    _write(folder, "records/table2.jsonl", "".join(f"{json.dumps(r)}\n" for r in _records()))


def _write_vectors(folder: Path, rows: list[tuple[str, str]]) -> None:
    """Write dense rows as arrays, and a module with the function that makes such rows of texts."""
    lines = [
        "import numpy as np",
        "",
        "TABLE = np.random.default_rng(0).normal(size=(128, 32)).astype(np.float32)",
        "",
        "",
        "def letters(texts):",
        "    rows = [TABLE[[ord(c) % 128 for c in text] or [0]].mean(axis=0) for text in texts]",
        "    return np.stack(rows)",
    ]
    _write(folder, "encoders.py", "".join(f"{line}\n" for line in lines))
    made: dict[str, Any] = {}
    exec("\n".join(lines), made)  # the same function, whatever is imported under its name
    vectors = made["letters"]([text for _, text in rows])
    np.savez(folder / "vectors.npz", X=vectors, y=np.array([label for label, _ in rows]))


def _records() -> list[dict[str, object]]:
    """Records of an experiment, one of them of a run that failed."""
    same = {"experiment": "table2", "data": "animals", "status": "done", "fit_cpu_s": 0.5}
    same |= {"rows": 300, "test_rows": 60, "features": 90, "labels": 10, "peak_memory_mb": 200}
    kerdock = {"method": "elastic_net", "embedding": "kerdock", "dim": 16, "outputs": 16}
    found = [
        same | row | {"seed": seed, "accuracy": 0.75 + 0.01 * seed}
        for seed in range(3)
        for row in (kerdock | {"coherence": 0.25}, {"method": "centroids"})
    ]
    return [*found, same | {"method": "mlp_cross_entropy", "status": "failed: no torch."}]


def _write(folder: Path, name: str, content: str) -> None:
    (folder / name).write_text(content, encoding="utf-8")
