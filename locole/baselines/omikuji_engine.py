"""Label trees by omikuji, if it is installed: the peer to compare our own trees with."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.exceptions import LocoleError
from locole.kernels.annexml import fill_votes
from locole.samples import Samples

__all__ = ["best_by_omikuji", "learn_by_omikuji"]


def learn_by_omikuji(samples: Samples, settings: Mapping[str, Any], n_threads: int) -> Any:
    """Train an ``omikuji.Model``; settings are values of omikuji's own hyper-parameters."""
    omikuji = _imported()
    chosen = omikuji.Model.default_hyper_param()
    for name, value in settings.items():
        setattr(chosen, name, value)
    samples = samples.labelled()
    n_rows, n_features = samples.X.shape
    # It learns from files only.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.txt")
        with path.open("w", encoding="ascii") as file:
            file.write(f"{n_rows} {n_features} {samples.n_classes}\n")
            file.writelines(_lines(samples))
        try:
            model = omikuji.Model.train_on_data(str(path), chosen, n_threads)
        except RuntimeError as error:
            raise LocoleError(f"omikuji cannot learn from this: {error}.") from error
    model.init_prediction_thread_pool(n_threads)
    return model


def best_by_omikuji(
    model: Any, X: sp.csr_array, k: int, beam: int
) -> tuple[NDArray[np.int64], NDArray]:
    """Codes and scores of the best k labels of each row; labels that it does not reach have 0."""
    codes = np.full((X.shape[0], k), -1, dtype=np.int64)
    scores = np.zeros((X.shape[0], k))
    pairs = list(zip(X.indices.tolist(), X.data.tolist(), strict=True))
    for i, (start, stop) in enumerate(pairwise(X.indptr.tolist())):
        for j, (code, score) in enumerate(model.predict(pairs[start:stop], beam, k)):
            codes[i, j], scores[i, j] = code, score
    best, best_scores = np.empty_like(codes), np.empty_like(scores)
    fill_votes(codes, scores, best, best_scores)
    return best, best_scores


def _imported() -> Any:
    try:
        import omikuji
    except ImportError as error:
        raise LocoleError(
            "engine='omikuji' needs the package omikuji: pip install 'locole[baselines]', or take "
            "engine='locole'."
        ) from error
    return omikuji


def _lines(samples: Samples) -> Iterator[str]:
    """``label,label index:value …``, with enough digits for float32."""
    X = samples.X
    indices, data = X.indices.tolist(), X.data.tolist()
    sets = np.split(samples.codes, np.cumsum(samples.n_labels)[:-1])
    for labels, (start, stop) in zip(sets, pairwise(X.indptr.tolist()), strict=True):
        row = zip(indices[start:stop], data[start:stop], strict=True)
        yield (
            ",".join(map(str, labels.tolist()))
            + " "
            + " ".join(f"{j}:{x:.9g}" for j, x in row)
            + "\n"
        )
