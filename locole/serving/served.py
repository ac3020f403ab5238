"""A model as it is served: of one version from beginning to end."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from locole.exceptions import LocoleError, ModelFileError
from locole.serving.labels import LabelIndex

__all__ = ["OpenModel", "ServedModel", "load_served", "stamp_of"]

#: From the path of a model to the model and the notes in its manifest.
OpenModel = Callable[[str], tuple[Any, dict[str, str]]]
#: What changes when a model is replaced.
Stamp = tuple[int, int, int]

_MANIFEST = "manifest.json"
# How often a model may be replaced while it is read.
_ATTEMPTS = 20
# Thresholds that are remembered.
_REMEMBERED = 64
# Note in a manifest: what the training file called its first feature.
_FIRST_INDEX = "libsvm_first_index"


@dataclass(eq=False)
class ServedModel:
    """A loaded model that never changes; another version is another object.

    Attributes
    ----------
    id : str
        Name in addresses.
    model : TextClassifier, LocoleClassifier or a baseline
    notes : dict of str
        From the manifest: how the model was made.
    version : str
        Beginning of the hash of the manifest: equal versions give equal answers.
    modified : datetime
        When the model was written.
    n_bytes : int
        Size of its files.
    """

    id: str
    model: Any
    notes: dict[str, str]
    version: str
    modified: datetime
    n_bytes: int
    loaded_at: float = field(default_factory=time.time)
    _thresholds: dict[float, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def takes_texts(self) -> bool:
        """Whether rows are texts, not numbers."""
        return hasattr(self.model, "features_")

    @property
    def classifier(self) -> Any:
        """Classifier of rows: the model, or what is behind its text features."""
        return getattr(self.model, "classifier_", self.model)

    @property
    def has_several(self) -> bool:
        """Whether rows have several labels."""
        return getattr(self.classifier, "multilabel_", None) is not None

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.model.classes_)

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return int(self.classifier.n_features_in_)

    @property
    def first_index(self) -> int:
        """Number of the first feature, as the training file counted."""
        return 1 if self.notes.get(_FIRST_INDEX) == "1" else 0

    @cached_property
    def has_probabilities(self) -> bool:
        """Whether the model says how likely a label is."""
        try:
            self.model.predict_topk(self._some_rows(), k=1, proba=True)
        except LocoleError:
            return False
        return True

    @cached_property
    def labels(self) -> LabelIndex:
        """Labels, to be searched."""
        counts = getattr(self.classifier, "label_rows_", None)
        calibration = getattr(self.model, "calibration_", None)
        if counts is None and calibration is not None:  # in old model files
            counts = calibration.counts_
        return LabelIndex(self.model.classes_, counts)

    def least_proba(self, max_error: float) -> float:
        """Probability below which answers are held back for this share of errors."""
        with self._lock:
            if max_error not in self._thresholds:
                if len(self._thresholds) >= _REMEMBERED:
                    self._thresholds.clear()
                found = float(self.model.threshold(max_error=max_error))
                self._thresholds[max_error] = found
            return self._thresholds[max_error]

    def warm_up(self) -> None:
        """Answer once, so that the first client does not wait for kernels to be loaded."""
        self.model.predict_topk(self._some_rows(), k=min(5, self.n_labels))
        assert self.has_probabilities in (True, False)
        assert self.labels is not None

    def _some_rows(self) -> Any:
        if self.takes_texts:
            return ["a text"]
        import numpy as np

        return np.zeros((1, self.n_features), dtype=np.float32)


def stamp_of(path: str) -> Stamp | None:
    """What the file system says of a model's manifest; None if there is none."""
    try:
        found = (Path(path) / _MANIFEST).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def load_served(name: str, path: str, open_model: OpenModel) -> ServedModel:
    """Load the model of a folder, and answer once.

    The version is that of the manifest before and after: if they differ, the model was replaced
    meanwhile and is loaded again.
    """
    for _ in range(_ATTEMPTS):
        before = _digest(path)
        model, notes = open_model(path)
        folder = Path(path)
        modified = datetime.fromtimestamp((folder / _MANIFEST).stat().st_mtime, UTC)
        n_bytes = sum(_size(file) for file in folder.iterdir())
        if _digest(path) == before:
            found = ServedModel(name, model, notes, before[:12], modified, n_bytes)
            found.warm_up()
            return found
    raise ModelFileError(f"the model in {path} is being replaced all the time: load it later.")


def _digest(path: str) -> str:
    try:
        return hashlib.sha256((Path(path) / _MANIFEST).read_bytes()).hexdigest()
    except OSError as error:
        raise ModelFileError(f"there is no model in {path}: {error.strerror}.") from None


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:  # swept away by a save
        return 0
