"""Checkpoints: the state of a fit or of its parts in a folder, replaced as a whole; and whose it is."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any, Self

import numpy as np

from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, saved_as, write_model
from locole.regressors.problem import Problem

__all__ = ["Checkpoints", "fingerprint"]


def fingerprint(problem: Problem, *settings: Any) -> str:
    """Hash of the data, of some outputs of its targets, and of all else that decides what is learnt."""
    X, n_outputs = problem.X, problem.targets.shape[1]
    digest = hashlib.sha256(json.dumps([str(item) for item in (n_outputs, *settings)]).encode())
    table = problem.targets.table(0, min(16, n_outputs))
    arrays = [X.indptr, X.indices, X.data, problem.codes, table]
    arrays += [] if problem.weight is None else [problem.weight]
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


@saved_as("checkpoint")
class _Checkpoint:
    """A state and the fingerprint of the fit that it belongs to."""

    def __init__(self, owner: str, state: dict[str, Any]) -> None:
        self.owner, self.state = owner, state

    def _state(self) -> dict[str, Any]:
        return {"owner": self.owner, "state": self.state}

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        if set(values) != {"owner", "state"} or not isinstance(values["state"], dict):
            raise ModelFileError("it is no checkpoint")
        return cls(str(values["owner"]), values["state"])


class Checkpoints:
    """A folder that holds the newest state of one fit, or of parts of it.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    owner : str
        Fingerprint of the fit; a state of another one is refused.
    every_s : float
        Seconds between two checkpoints.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Checkpoints(folder, owner="me").write({"done": 3}, "first")
    ...     Checkpoints(folder, owner="me").read("first"), Checkpoints(folder, owner="me").read("second")
    ({'done': 3}, None)
    """

    def __init__(self, folder: Any, *, owner: str, every_s: float = 0.0) -> None:
        self.folder, self.owner, self.every_s = Path(folder), owner, every_s
        self._last = time.monotonic()

    def read(self, part: str = "") -> dict[str, Any] | None:
        """State in the folder, or of a part, if there is one."""
        if not (self.folder / part / "manifest.json").exists():
            return None
        found = read_model(self.folder / part)
        if not isinstance(found, _Checkpoint) or found.owner != self.owner:
            raise LocoleError(
                f"the checkpoint in {self.folder} belongs to other data or settings: take another "
                "folder, or remove it."
            )
        return found.state

    def write(self, state: dict[str, Any], part: str = "") -> None:
        """Replace the state in the folder, or of a part."""
        if part:
            self.folder.mkdir(parents=True, exist_ok=True)
        write_model(self.folder / part, _Checkpoint(self.owner, state))
        self._last = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self._last >= self.every_s
