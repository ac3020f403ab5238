"""One run: warm up, fit, predict, and what came out."""

from __future__ import annotations

import tempfile
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.exceptions import ModelFileError
from locole.experiments.data import TrainTest
from locole.experiments.machine import (
    Stopwatch,
    folder_bytes,
    forget_peak,
    megabytes,
    peak_bytes,
)
from locole.experiments.methods import make_estimator
from locole.experiments.runs import Run
from locole.metrics import (
    Propensities,
    accuracy,
    per_label_report,
    precision_recall,
    ranking_report,
    top_k_accuracy,
)

__all__ = ["measure", "scores", "several_scores"]

_K = 5
# Rows of the first fit, which compiles or loads kernels and is forgotten: enough for the iterative
# solver, and for more labels than one-hot vectors are taken for.
_WARM_UP_ROWS = 2000
_DIGITS = 6
# Names of figures of several labels in records, and in reports of metrics.
_SEVERAL = {"precision": "P", "recall": "R", "ndcg": "nDCG", "psp": "PSP"}


def measure(
    run: Run,
    rows: TrainTest,
    *,
    threads: int,
    coherence: float | None = None,
    work: str | None = None,
) -> dict[str, Any]:
    """Do a run and return the outcome's part of its record.

    Parameters
    ----------
    run : Run
    rows : TrainTest
        The data.
    threads : int
        ``n_jobs``.
    coherence : float, optional
        Of the run's vectors, if it is known already.
    work : str, optional
        Folder for a moment's copy of the model; by default the system's.

    Examples
    --------
    >>> from locole.experiments.data import load_set
    >>> rows = load_set("topics", {"n_samples": 2000, "n_classes": 50}, None)
    >>> found = measure(Run("mine", "topics", "centroids"), rows, threads=1)
    >>> 0.5 < found["accuracy"] <= found["accuracy_at_5"] <= 1
    True
    """
    with _place(run, threads):
        _warm_up(run, rows, threads)
        estimator = make_estimator(run, threads=threads)
        forget_peak()
        with Stopwatch() as fitting:
            estimator.fit(rows.X_train, rows.y_train)
    k = min(_K, len(estimator.classes_))
    with Stopwatch() as predicting:
        best, _ = estimator.predict_topk(rows.X_test, k=k)
    peak = peak_bytes()
    embedding = getattr(estimator, "embedding_", None)
    # Of other machines neither is known here.
    all_here = run.engine == "threads"
    return {
        "status": "done",
        "outputs": None if embedding is None else int(embedding.real_dim),
        **_scores(rows, best),
        "coherence": _coherence(embedding, coherence),
        "fit_wall_s": fitting.wall_s,
        "fit_cpu_s": fitting.cpu_s if all_here else None,
        "predict_wall_s": predicting.wall_s,
        "predict_cpu_s": predicting.cpu_s,
        "peak_memory_mb": megabytes(peak) if all_here else None,
        "model_mb": _model_mb(estimator, work),
        "rows": rows.X_train.shape[0],
        "test_rows": rows.X_test.shape[0],
        "features": rows.X_train.shape[1],
        "labels": len(estimator.classes_),
    }


def _scores(rows: TrainTest, best: NDArray) -> dict[str, float]:
    if not sp.issparse(rows.y_test):
        return scores(rows.y_test, best)
    return several_scores(rows.y_test, best, rows.y_train)


def several_scores(Y: Any, best: NDArray, Y_train: Any) -> dict[str, float]:
    """The same for rows with several labels; ``accuracy`` is that of the first label, P@1.

    Examples
    --------
    >>> Y = sp.csr_matrix([[1, 1, 0], [0, 0, 1]])
    >>> found = several_scores(Y, np.array([[1, 0, 2], [0, 2, 1]]), Y)
    >>> found["accuracy"], found["precision_at_3"], found["recall_at_3"]
    (0.5, 0.5, 1.0)
    """
    depths = [k for k in (1, 3, 5) if k <= best.shape[1]]
    report = ranking_report(Y, best, k=depths, propensities=Propensities(Y_train))
    found = {"accuracy": report["P@1"]}
    for name, short in _SEVERAL.items():
        found |= {f"{name}_at_{k}": report[f"{short}@{k}"] for k in depths}
    return {name: round(value, _DIGITS) for name, value in found.items()}


def scores(y: NDArray, best: NDArray) -> dict[str, float]:
    """Figures of the best labels of each row, by the names that records have.

    Examples
    --------
    >>> import numpy as np
    >>> found = scores(np.array([1, 2, 2]), np.array([[1, 0], [2, 1], [1, 2]]))
    >>> found["accuracy"], found["accuracy_at_5"], found["micro_recall"]
    (0.666667, 1.0, 0.666667)
    """
    first = best[:, 0]
    macro = precision_recall(y, first, average="macro")
    micro = precision_recall(y, first, average="micro")
    found = {
        "accuracy": accuracy(y, first),
        "accuracy_at_5": top_k_accuracy(y, best),
        "macro_precision": macro[0],
        "macro_recall": macro[1],
        "macro_f1": float(per_label_report(y, first)["f1"].mean()),
        "micro_precision": micro[0],
        "micro_recall": micro[1],
    }
    return {name: round(value, _DIGITS) for name, value in found.items()}


def _place(run: Run, threads: int) -> AbstractContextManager[Any]:
    """Where the fit runs, which is made ready before seconds count."""
    if run.engine == "threads":
        return nullcontext()
    from locole.parallel import make_engine

    return make_engine(run.engine).running(threads)


def _warm_up(run: Run, rows: TrainTest, threads: int) -> None:
    """Compile what fit and prediction will use; what goes wrong here will do so again."""
    estimator = make_estimator(run, threads=threads)
    _shorten(estimator)
    some = slice(0, _WARM_UP_ROWS)
    X = rows.X_train[some]
    # Weights of features that do not occur would take longer to clear than all the rest.
    used = np.unique(X.indices)
    with suppress(Exception):
        estimator.fit(X[:, used], rows.y_train[some])
        estimator.predict_topk(rows.X_test[:10, used], k=2)


def _shorten(estimator: Any) -> None:
    """One epoch is enough to warm up a network."""
    for part in (estimator, getattr(estimator, "regressor", estimator)):
        if hasattr(part, "hidden") and hasattr(part, "epochs"):
            part.set_params(epochs=1)


def _coherence(embedding: Any, known: float | None) -> float | None:
    if embedding is None or known is not None:
        return known
    from locole.theory import coherence

    return round(float(coherence(embedding)), _DIGITS)


def _model_mb(estimator: Any, work: str | None) -> float | None:
    """Size of the saved model; None if it cannot be saved."""
    with tempfile.TemporaryDirectory(prefix="locole-model-", dir=work) as folder:
        try:
            estimator.save(Path(folder) / "model")
        except ModelFileError:
            return None
        return megabytes(folder_bytes(Path(folder)))
