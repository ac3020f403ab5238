"""Checkpoints: the state of a fit in a folder, replaced as a whole, and whose it is."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any, Self

import numpy as np

from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, saved_as, write_model
from locole.regressors.mlp.training import Rows

__all__ = ["Checkpoints", "fingerprint"]


def fingerprint(rows: Rows, *settings: Any) -> str:
    """Hash of the data and of everything else that decides what is learnt from it."""
    digest = hashlib.sha256(json.dumps([str(item) for item in settings]).encode())
    X, targets = rows.X, rows.targets
    some = np.linspace(0, len(rows.which) - 1, 16).astype(np.int64)
    arrays = [X.indptr, X.indices, X.data, targets.codes[rows.which]]
    arrays += [targets.rows(rows.which[some]), *([] if rows.weight is None else [rows.weight])]
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


@saved_as("mlp.checkpoint")
class _Checkpoint:
    """A state and the fingerprint of the fit that it belongs to."""

    def __init__(self, owner: str, state: dict[str, Any]) -> None:
        self.owner, self.state = owner, state

    def _state(self) -> dict[str, Any]:
        return {"owner": self.owner, "state": self.state}

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        if set(values) != {"owner", "state"} or not isinstance(values["state"], dict):
            raise ModelFileError("it is no checkpoint of a network")
        return cls(str(values["owner"]), values["state"])


class Checkpoints:
    """A folder that holds the newest state of one fit.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    owner : str
        Fingerprint of the fit; a state of another one is refused.
    every_s : float
        Seconds between two checkpoints.
    """

    def __init__(self, folder: Any, *, owner: str, every_s: float) -> None:
        self.folder, self.owner, self.every_s = Path(folder), owner, every_s
        self._last = time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """State in the folder, if there is one."""
        if not (self.folder / "manifest.json").exists():
            return None
        found = read_model(self.folder)
        if not isinstance(found, _Checkpoint) or found.owner != self.owner:
            raise LocoleError(
                f"the checkpoint in {self.folder} belongs to other data or settings: take another "
                "folder, or remove it."
            )
        return found.state

    def write(self, state: dict[str, Any]) -> None:
        """Replace the state in the folder."""
        write_model(self.folder, _Checkpoint(self.owner, state))
        self._last = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self._last >= self.every_s
