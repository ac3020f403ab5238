"""Metrics for very many labels: counts per label, never a table of label pairs."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locole.exceptions import LocoleError

__all__ = ["accuracy", "per_label_report", "precision_recall", "top_k_accuracy"]

Array = NDArray[Any]
Floats = NDArray[np.float64]


def accuracy(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of the rows whose label is predicted.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (rows,)
        Labels, numbers or strings.
    sample_weight : array-like of shape (rows,), optional
        Weight of each row.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> accuracy(["a", "b", "b", "c"], ["a", "b", "c", "c"])
    0.75
    """
    true, pred = _labels("y_true", y_true), _labels("y_pred", y_pred)
    _check_rows(true, pred, name="y_pred")
    return _mean(true == pred, sample_weight)


def top_k_accuracy(
    y_true: ArrayLike, topk_labels: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of the rows whose label is among the k predicted ones.

    Parameters
    ----------
    y_true : array-like of shape (rows,)
        Labels, numbers or strings.
    topk_labels : array-like of shape (rows, k)
        Predicted labels, as ``predict_topk`` returns them; their order does not matter.
    sample_weight : array-like of shape (rows,), optional
        Weight of each row.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> top_k_accuracy([3, 1, 2], [[3, 0], [0, 1], [0, 1]])
    0.6666666666666666
    """
    true, topk = _labels("y_true", y_true), _labels("topk_labels", topk_labels, ndim=2)
    _check_rows(true, topk, name="topk_labels")
    return _mean((topk == true[:, None]).any(axis=1), sample_weight)


def precision_recall(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    average: Literal["macro", "micro"] = "macro",
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[float, float]:
    """Precision and recall over all labels.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (rows,)
        Labels, numbers or strings.
    average : {"macro", "micro"}
        The mean of the labels' own values, or the value of the pooled counts.
    labels : array-like, optional
        Labels to average over. Default: those that occur in ``y_true`` or ``y_pred``, so a label
        seen only in training does not count unless it is listed here.
    sample_weight : array-like of shape (rows,), optional
        Weight of each row.

    Returns
    -------
    precision, recall : float
        A label never predicted has precision 0, a label that never occurs has recall 0.

    Examples
    --------
    >>> precision_recall(["a", "a", "b", "c"], ["a", "b", "b", "b"])
    (0.4444444444444444, 0.5)
    >>> precision_recall(["a", "a", "b", "c"], ["a", "b", "b", "b"], average="micro")
    (0.5, 0.5)
    """
    if average not in ("macro", "micro"):
        raise LocoleError(f"average must be 'macro' or 'micro', not {average!r}.")
    _, support, predicted, correct = _counts(y_true, y_pred, labels, sample_weight)
    if average == "micro":
        support, predicted, correct = (x.sum(keepdims=True) for x in (support, predicted, correct))
    return float(_ratio(correct, predicted).mean()), float(_ratio(correct, support).mean())


def per_label_report(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> dict[str, Array]:
    """Counts, precision, recall and F1 of every label, as columns of equal length.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (rows,)
        Labels, numbers or strings.
    labels : array-like, optional
        Labels to report, in this order. Default: those that occur, sorted.
    sample_weight : array-like of shape (rows,), optional
        Weight of each row; the counts are then sums of weights.

    Returns
    -------
    dict of ndarray
        ``label``, ``support`` (rows of the label), ``predicted`` (rows predicted as it),
        ``correct`` (both), ``precision``, ``recall``, ``f1``; what is undefined is 0.

    Examples
    --------
    >>> report = per_label_report(["a", "a", "b", "c"], ["a", "b", "b", "b"])
    >>> report["support"].tolist(), report["predicted"].tolist()
    ([2, 1, 1], [1, 3, 0])
    >>> report["f1"].round(3).tolist()
    [0.667, 0.5, 0.0]
    """
    label, support, predicted, correct = _counts(y_true, y_pred, labels, sample_weight)
    return {
        "label": label,
        "support": support,
        "predicted": predicted,
        "correct": correct,
        "precision": _ratio(correct, predicted),
        "recall": _ratio(correct, support),
        "f1": _ratio(2 * correct, predicted + support),
    }


def _counts(
    y_true: ArrayLike, y_pred: ArrayLike, labels: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[Array, Array, Array, Array]:
    """Return labels, support, predicted and correct, one entry per label to report."""
    true, pred = _labels("y_true", y_true), _labels("y_pred", y_pred)
    _check_rows(true, pred, name="y_pred")
    wanted = true[:0] if labels is None else _labels("labels", labels)
    _check_kinds(true, wanted, name="labels")
    universe, codes = _encode(np.concatenate([true, pred, wanted]))
    code_true, code_pred, chosen = np.split(codes, [len(true), 2 * len(true)])
    if labels is None:
        chosen = np.arange(len(universe))
    elif len(np.unique(chosen)) < len(chosen):
        raise LocoleError("labels holds a label twice.")

    def count(code: Array, rows: Array | slice = slice(None)) -> Array:
        weights = None if weight is None else weight[rows]
        return np.bincount(code[rows], weights, minlength=len(universe))[chosen]

    weight = _weights(sample_weight, rows=len(true))
    hit = code_true == code_pred
    return universe[chosen], count(code_true), count(code_pred), count(code_true, hit)


def _encode(values: Array) -> tuple[Array, Array]:
    try:
        universe, codes = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise LocoleError("Labels of different types cannot be compared: use one type.") from error
    return universe, codes


def _ratio(part: Array, whole: Array) -> Floats:
    """Divide, with 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)


def _mean(hit: NDArray[np.bool_], sample_weight: ArrayLike | None) -> float:
    return float(np.average(hit, weights=_weights(sample_weight, rows=len(hit))))


def _labels(name: str, values: ArrayLike, *, ndim: int = 1) -> Array:
    array = np.asarray(values)
    if array.ndim != ndim:
        raise LocoleError(f"{name} must have {ndim} dimension(s), not the shape {array.shape}.")
    if array.size == 0:
        raise LocoleError(f"{name} is empty.")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise LocoleError(f"{name} holds NaN, which is no label.")
    return array


def _check_rows(true: Array, pred: Array, *, name: str) -> None:
    if len(true) != len(pred):
        raise LocoleError(f"y_true has {len(true)} rows, {name} has {len(pred)}.")
    _check_kinds(true, pred, name=name)


def _check_kinds(true: Array, other: Array, *, name: str) -> None:
    # NumPy would turn numbers into strings, or compare them as unequal, without a word.
    kinds = {"number" if x.dtype.kind in "biuf" else x.dtype.kind for x in (true, other)} - {"O"}
    if len(kinds) > 1:
        raise LocoleError(f"y_true holds {true.dtype} and {name} {other.dtype}: use one type.")


def _weights(sample_weight: ArrayLike | None, *, rows: int) -> Floats | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (rows,):
        raise LocoleError(f"sample_weight must have the shape ({rows},), not {weight.shape}.")
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.sum() > 0):
        raise LocoleError("sample_weight must be finite, not negative, and not all 0.")
    return weight
