"""One system on one data set, in a process of its own: what is timed, and what the record holds.

Runs in the peers' environment too, so it knows the standard library, numpy and scipy only.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import resource
import sys
import time
import traceback
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

K = 5
_CLEAR_REFS = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


@dataclass
class Part:
    """Rows of a data set: float32 features by rows, label codes, and the raw text if there is one."""

    X: Any
    y: Any
    """Label code of each row; an indicator (CSR) if rows have several labels."""
    text: list[str] | None

    @property
    def Y(self) -> Any:
        """Labels as an indicator."""
        return indicator(self.y)


@dataclass
class Data:
    """Training and test part; labels are codes below n_classes (−1 in the test part: never seen)."""

    train: Part
    test: Part
    n_classes: int


class System:
    """A classifier to be measured. Only `train` and `predict` are timed.

    The constructor imports the package. What `prepare` and `ready` do is not timed: writing the
    tool's file format and warming up, reading a saved model back.
    """

    #: distributions whose versions go into the record
    packages: tuple[str, ...] = ()
    #: what differs from the package's defaults, and what is timed besides learning
    notes = ""

    def __init__(
        self,
        folder: Path,
        threads: int,
        setting: str,
        seed: int = 0,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.folder = folder
        self.threads = threads
        self.setting = setting
        self.seed = seed
        #: parameters in place of those of the setting
        self.options = options or {}

    def prepare(self, data: Data) -> None:
        """Write files, warm up."""

    def train(self, data: Data) -> None:
        """Learn; timed."""
        raise NotImplementedError

    def ready(self, data: Data) -> None:
        """Save and load the model, shape the test rows."""

    def predict(self, data: Data) -> Any:
        """Best five labels of each test row, in the package's own form; timed."""
        raise NotImplementedError

    def codes(self, answer: Any) -> list[Any]:
        """Turn the answer into one list of label codes per row, best first."""
        return list(answer)

    def model_bytes(self) -> int:
        """Size of the model as its package saves it."""
        raise NotImplementedError


class Stopwatch:
    """Wall seconds, and CPU seconds (user and system) of this process and its children."""

    def __enter__(self) -> Stopwatch:
        self._wall, self._cpu = time.perf_counter(), _cpu_s()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_s = time.perf_counter() - self._wall
        self.cpu_s = _cpu_s() - self._cpu


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(x.ru_utime + x.ru_stime for x in used)


def _status_bytes(field: str) -> int | None:
    if not _STATUS.exists():
        return None
    lines = [x for x in _STATUS.read_text().splitlines() if x.startswith(field + ":")]
    return int(lines[0].split()[1]) * 1024 if lines else None


def peak_bytes() -> int:
    """Highest resident memory since `forget_peak`; since the start where that is impossible."""
    peak = _status_bytes("VmHWM")
    if peak is not None:
        return peak
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget_peak() -> int:
    """Start a new high-water mark (Linux); return the resident memory now."""
    gc.collect()
    if os.access(_CLEAR_REFS, os.W_OK):
        _CLEAR_REFS.write_text("5")
    return _status_bytes("VmRSS") or peak_bytes()


def load(folder: Path) -> Data:
    """Read what bench_linear.py has written."""

    def part(name: str) -> Part:
        text, several = folder / f"{name}.txt", folder / f"Y_{name}.npz"
        lines = text.read_text(encoding="utf-8").split("\n")[:-1] if text.exists() else None
        y = sp.load_npz(several) if several.exists() else np.load(folder / f"y_{name}.npy")
        return Part(sp.load_npz(folder / f"X_{name}.npz"), y, lines)

    train = part("train")
    n_classes = train.y.shape[1] if sp.issparse(train.y) else int(train.y.max()) + 1
    return Data(train, part("test"), n_classes)


def indicator(y: Any) -> Any:
    """Codes of labels as a matrix; several labels as they are."""
    if sp.issparse(y):
        return y
    ones = np.ones(y.size, dtype=np.float32)
    return sp.csr_matrix((ones, y, np.arange(y.size + 1)), shape=(y.size, int(y.max()) + 1))


def accuracy(found: list[Any], y: np.ndarray) -> dict[str, float]:
    """Fraction of rows whose label comes first, and is among the first five."""
    table = np.full((len(found), K), -2, dtype=np.int64)
    for row, codes in zip(table, found, strict=True):
        best = list(codes)[:K]
        row[: len(best)] = best
    hits = table == y[:, None]
    return {"accuracy_1": float(hits[:, 0].mean()), "accuracy_5": float(hits.any(axis=1).mean())}


def _answers(found: list[Any], y: Any) -> dict[str, Any]:
    """Figures; of several labels the answers, to be measured by who has the metrics."""
    if not sp.issparse(y):
        return accuracy(found, y)
    return {"answers": [[int(code) for code in list(row)[:K]] for row in found]}


def folder_bytes(path: Path) -> int:
    """Size of a file, or of all files below a folder."""
    files = [path] if path.is_file() else [x for x in path.rglob("*") if x.is_file()]
    return sum(x.stat().st_size for x in files)


def measure(system: System, data: Data) -> dict[str, Any]:
    """Prepare, train, predict; one flat record."""
    system.prepare(data)
    before = forget_peak()
    with Stopwatch() as training:
        system.train(data)
    peak = peak_bytes()
    system.ready(data)
    forget_peak()
    with Stopwatch() as prediction:
        answer = system.predict(data)
    predict_peak = peak_bytes()
    return {
        "status": "done",
        **_answers(system.codes(answer), data.test.y),
        "train_wall_s": training.wall_s,
        "train_cpu_s": training.cpu_s,
        "predict_wall_s": prediction.wall_s,
        "predict_cpu_s": prediction.cpu_s,
        "memory_before_bytes": before,
        "memory_peak_bytes": peak,
        "memory_training_bytes": peak - before,
        "memory_predict_peak_bytes": predict_peak,
        "model_bytes": system.model_bytes(),
        "package": ", ".join(f"{name} {version(name)}" for name in system.packages),
        "python": platform.python_version(),
        "notes": system.notes,
        "n_train": data.train.X.shape[0],
        "n_test": data.test.X.shape[0],
        "n_features": data.train.X.shape[1],
        "n_classes": data.n_classes,
        "nnz": int(data.train.X.nnz),
    }


def main(make: type[System]) -> None:
    """Measure one system as the command line says; the outcome is always a record with a status."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("data", type=Path, help="folder with X_train.npz, y_train.npy and so on")
    parser.add_argument("folder", type=Path, help="empty folder for the model and other files")
    parser.add_argument("output", type=Path, help="JSON file for the record")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--setting", default="", help="which of the system's settings")
    parser.add_argument("--seed", type=int, default=0, help="for systems that draw random numbers")
    parser.add_argument("--options", type=json.loads, help="parameters as JSON")
    args = parser.parse_args()
    try:
        system = make(args.folder, args.threads, args.setting, args.seed, args.options)
    except ImportError as error:
        record: dict[str, Any] = {"status": f"not installed: {error}"}
    else:
        try:
            record = measure(system, load(args.data))
        except Exception as error:
            traceback.print_exc()
            reason = " ".join(str(error).split())[:200]
            record = {"status": f"failed: {type(error).__name__}: {reason}"}
    args.output.write_text(json.dumps(record))
