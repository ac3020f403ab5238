"""Records of runs: a file of JSON lines for each experiment, which only grows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from locole.exceptions import LocoleError

try:
    import fcntl
except ImportError:  # not on Windows, where two writers of one file are on their own
    fcntl = None  # type: ignore[assignment]

__all__ = ["IDENTITY", "KEYS", "SEVERAL", "Store", "identity", "is_done", "latest", "read"]

Record = dict[str, Any]

#: What tells runs apart.
IDENTITY = (
    "experiment",
    "data",
    "data_options",
    "method",
    "settings",
    "embedding",
    "dim",
    "seed",
    "quick",
    "engine",
)
#: Figures of rows with several labels.
SEVERAL = tuple(
    f"{name}_at_{k}" for name in ("precision", "recall", "ndcg", "psp") for k in (1, 3, 5)
)
_OUTCOME = (
    "status",
    "outputs",
    "accuracy",
    "accuracy_at_5",
    "macro_precision",
    "macro_recall",
    "macro_f1",
    "micro_precision",
    "micro_recall",
    *SEVERAL,
    "coherence",
    "fit_wall_s",
    "fit_cpu_s",
    "predict_wall_s",
    "predict_cpu_s",
    "peak_memory_mb",
    "model_mb",
    "points",
    "copied_from",
)
_CONTEXT = (
    "rows",
    "test_rows",
    "features",
    "labels",
    "data_version",
    "threads",
    "locole",
    "python",
    "numpy",
    "scipy",
    "numba",
    "machine",
    "started",
)
#: All keys of a record, in the order in which they are written.
KEYS = (*IDENTITY, *_OUTCOME, *_CONTEXT)

_SUFFIX = ".jsonl"


def read(folder: str | os.PathLike[str]) -> list[Record]:
    """All records of a folder: of a run that was repeated only the last.

    A last line that is not complete, because its writer was killed, is left out.

    Parameters
    ----------
    folder : str or path
        Where ``locole bench`` has left its files.

    Returns
    -------
    list of dict
        With the keys ``KEYS``, in the order of the files' names and of their lines.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store(folder, "table2") as store:
    ...         store.append({"experiment": "table2", "method": "centroids", "status": "done"})
    ...     [record] = read(folder)
    >>> record["method"], record["accuracy"]
    ('centroids', None)
    """
    path = Path(folder)
    if not path.is_dir():
        raise LocoleError(f"{path} is no folder of records: make one by locole bench.")
    records = [record for file in sorted(path.glob(f"*{_SUFFIX}")) for record in _lines(file)[0]]
    return list(latest(records).values())


def identity(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells the record's run from others.

    Examples
    --------
    >>> identity({"experiment": "table2", "method": "centroids", "accuracy": 0.5})[:4]
    ('table2', '', '', 'centroids')
    """
    return tuple(
        record.get(key) if key == "dim" else record.get(key) or _EMPTY.get(key, "")
        for key in IDENTITY
    )


_EMPTY: dict[str, Any] = {"seed": 0, "quick": False, "engine": "threads"}


def latest(records: Iterable[Record]) -> dict[tuple[Any, ...], Record]:
    """The last record of each run, in the order in which runs came first."""
    return {identity(record): record for record in records}


def is_done(record: Mapping[str, Any]) -> bool:
    """Whether the run has figures."""
    return record.get("status") == "done"


class Store:
    """The file of one experiment, open for one writer.

    What a killed writer has left of a line is cut off. A record is on disk when `append` returns.

    Parameters
    ----------
    folder : str or path
        Made if it is not there.
    experiment : str
        The file's name.

    Attributes
    ----------
    records : dict
        Identity → the run's last record.
    """

    def __init__(self, folder: str | os.PathLike[str], experiment: str) -> None:
        self.path = Path(folder) / f"{experiment}{_SUFFIX}"
        self.records: dict[tuple[Any, ...], Record] = {}

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            self._lock()
            found, complete = _lines(self.path)
            os.truncate(self.path, complete)
        except BaseException:
            os.close(self._file)
            raise
        self.records = latest(found)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record as a line of its own."""
        whole = {key: record.get(key) for key in KEYS}
        # Figures of several labels are not written where there is one.
        said = {k: value for k, value in whole.items() if k not in SEVERAL or value is not None}
        line = json.dumps(said, ensure_ascii=False, allow_nan=False) + "\n"
        raw = line.encode()
        while raw:
            raw = raw[os.write(self._file, raw) :]
        os.fsync(self._file)
        self.records[identity(whole)] = whole

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LocoleError(
                f"{self.path} is being written by another process: wait for it or take another folder."
            ) from None


def _lines(path: Path) -> tuple[list[Record], int]:
    """Records of a file, and how many bytes of it are complete lines."""
    raw = path.read_bytes()
    complete = raw.rfind(b"\n") + 1
    records = []
    for number, line in enumerate(raw[:complete].split(b"\n")[:-1], start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise LocoleError(f"{path}, line {number}: this is no record: remove the line.")
        records.append({**dict.fromkeys(KEYS), **record})
    return records, complete
