r"""Metrics for rows with any number of labels, by the definitions of the field.

The labels of row i are a set :math:`Y_i`, the answers a list, best first, in which
:math:`h_{ij} = 1` if the j-th answer is in :math:`Y_i`. Y may be an indicator matrix, sparse or not,
or a collection of labels for each row; answers are labels as ``predict_topk`` returns them, which for
an indicator are the numbers of its columns. Memory is that of the labels and answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locole.exceptions import LocoleError
from locole.labels import LabelSets, codes_of, label_sets

__all__ = [
    "Propensities",
    "coverage_at_k",
    "f1_at_k",
    "f1_score",
    "ndcg_at_k",
    "precision_at_k",
    "ps_ndcg_at_k",
    "ps_precision_at_k",
    "ranking_report",
    "recall_at_k",
]

Floats = NDArray[np.float64]


def precision_at_k(Y_true: Any, ranked: ArrayLike, *, k: int = 5) -> float:
    r"""Share of the first k answers that are right: mean of :math:`\sum_{j\le k} h_{ij}/k`.

    Parameters
    ----------
    Y_true : indicator matrix or sequence of collections
        Labels of each row.
    ranked : array-like of shape (rows, at least k)
        Answers, best first.
    k : int
        Answers that count.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> precision_at_k([["a", "b"], ["c"]], [["a", "c"], ["b", "c"]], k=1)
    0.5
    """
    found = _Ranking.of(Y_true, ranked, k)
    return float(found.hits.sum(axis=1).mean() / k)


def recall_at_k(Y_true: Any, ranked: ArrayLike, *, k: int = 5) -> float:
    r"""Share of a row's labels among its first k answers: mean of :math:`\sum_{j\le k} h_{ij}/|Y_i|`.

    Rows without labels are left out.

    Parameters
    ----------
    Y_true : indicator matrix or sequence of collections
        Labels of each row.
    ranked : array-like of shape (rows, at least k)
        Answers, best first.
    k : int
        Answers that count.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> recall_at_k([["a", "b"], ["c"]], [["a", "c"], ["b", "c"]], k=2)
    0.75
    """
    found = _Ranking.of(Y_true, ranked, k).labelled()
    return float((found.hits.sum(axis=1) / found.counts).mean())


def f1_at_k(Y_true: Any, ranked: ArrayLike, *, k: int = 5) -> float:
    r"""F1 of each row's first k answers: mean of :math:`2\sum_{j\le k} h_{ij}/(k + |Y_i|)`.

    Parameters
    ----------
    Y_true : indicator matrix or sequence of collections
        Labels of each row.
    ranked : array-like of shape (rows, at least k)
        Answers, best first.
    k : int
        Answers that count.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> f1_at_k([["a", "b"], ["c"]], [["a", "b"], ["b", "a"]], k=2)
    0.5
    """
    found = _Ranking.of(Y_true, ranked, k)
    return float((2 * found.hits.sum(axis=1) / (k + found.counts)).mean())


def ndcg_at_k(Y_true: Any, ranked: ArrayLike, *, k: int = 5) -> float:
    r"""Normalised discounted cumulative gain of the first k answers.

    .. math:: \frac{\sum_{j \le k} h_{ij} / \log_2(j + 1)}{\sum_{j \le \min(k, |Y_i|)} 1 / \log_2(j + 1)}

    averaged over the rows that have labels.

    Parameters
    ----------
    Y_true : indicator matrix or sequence of collections
        Labels of each row.
    ranked : array-like of shape (rows, at least k)
        Answers, best first.
    k : int
        Answers that count.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> round(ndcg_at_k([["a", "b"], ["c"]], [["b", "a"], ["a", "c"]], k=2), 4)
    0.8155
    """
    found = _Ranking.of(Y_true, ranked, k).labelled()
    return float((found.hits @ _discounts(k) / found.ideal).mean())


def coverage_at_k(Y_true: Any, ranked: ArrayLike, *, k: int = 5) -> float:
    """Share of the labels that occur which are found at least once among the first k answers.

    Parameters
    ----------
    Y_true : indicator matrix or sequence of collections
        Labels of each row.
    ranked : array-like of shape (rows, at least k)
        Answers, best first.
    k : int
        Answers that count.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> coverage_at_k([["a", "b"], ["a"]], [["a", "c"], ["a", "c"]], k=2)
    0.5
    """
    found = _Ranking.of(Y_true, ranked, k)
    return np.unique(found.codes[found.hits]).size / max(np.unique(found.owned).size, 1)


class Propensities:
    r"""How probable it is that a label of a row is noted, from how often it is in the training rows.

    .. math:: p_l = \frac{1}{1 + C (N_l + B)^{-A}}, \qquad C = (\ln N - 1)(B + 1)^A

    for a label with :math:`N_l` of N rows, from H. Jain, Y. Prabhu and M. Varma, "Extreme Multi-label
    Loss Functions for Recommendation, Tagging, Ranking & Other Missing Label Applications" (KDD 2016).

    Parameters
    ----------
    Y_train : indicator matrix or sequence of collections
        Labels of the training rows.
    A, B : float
        The field takes 0.55 and 1.5, for Wikipedia 0.5 and 0.4, for Amazon 0.6 and 2.6.

    Examples
    --------
    >>> p = Propensities([["a", "b"], ["a"], ["a"], ["c"]])
    >>> p.of(["a", "c", "z"]).round(3)
    array([0.782, 0.721, 0.662])
    """

    def __init__(self, Y_train: Any, *, A: float = 0.55, B: float = 1.5) -> None:
        sets = _sets("Y_train", Y_train)
        counts = np.bincount(_pairs(sets, sets.labels.size)[1], minlength=sets.labels.size)
        self._set(sets.labels, counts, sets.n_rows, A, B)

    def _set(self, labels: NDArray, counts: NDArray, n_rows: int, A: float, B: float) -> None:
        self.labels = labels
        self._factor = max(np.log(n_rows) - 1, 0) * (B + 1) ** A
        self._A, self._B = A, B
        self.values = self._from_counts(counts)

    @classmethod
    def of_counts(
        cls, labels: ArrayLike, counts: ArrayLike, n_rows: int, *, A: float = 0.55, B: float = 1.5
    ) -> Self:
        """Propensities of labels whose training rows have been counted.

        Parameters
        ----------
        labels : array of shape (n_labels,)
            Sorted and different.
        counts : array of shape (n_labels,)
            Training rows of each.
        n_rows : int
            All training rows.
        A, B : float
            As above.

        Returns
        -------
        Propensities
            As if made of the labels of the rows.

        Examples
        --------
        >>> Propensities.of_counts(["a", "b", "c"], [3, 1, 1], 4).of(["a", "c", "z"]).round(3)
        array([0.782, 0.721, 0.662])
        """
        made = cls.__new__(cls)
        made._set(np.asarray(labels), np.asarray(counts), n_rows, A, B)
        return made

    def of(self, labels: ArrayLike) -> Floats:
        """Propensities of these labels; one that was never seen has a count of 0.

        Parameters
        ----------
        labels : array-like
            Labels, known or not.
        """
        codes = codes_of(np.asarray(labels), self.labels)
        return np.where(codes < 0, self._from_counts(np.zeros(1)), self.values[codes])

    def _from_counts(self, counts: NDArray) -> Floats:
        return 1 / (1 + self._factor * (counts + self._B) ** -self._A)


def ps_precision_at_k(
    Y_true: Any, ranked: ArrayLike, propensities: Propensities, *, k: int = 5
) -> float:
    r"""Propensity-scored precision, as a share of the best that any answers could have.

    .. math:: \sum_i \sum_{j \le k} h_{ij} / p_{ij} \Big/ \max \sum_i \sum_{j \le k} h_{ij} / p_{ij}

    Rare labels count more, because they are missing more often.

    Parameters
    ----------
    Y_true : indicator matrix or sequence of collections
        Labels of each row.
    ranked : array-like of shape (rows, at least k)
        Answers, best first.
    propensities : Propensities
        How likely it is that each label is observed.
    k : int
        Answers that count.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> p = Propensities([["a", "b"], ["a"], ["a"], ["c"]])
    >>> round(ps_precision_at_k([["a", "c"]], [["a", "b"]], p, k=1), 3)
    0.923
    """
    found = _Ranking.of(Y_true, ranked, k)
    return _share_of_best(found, propensities, np.ones(k), np.ones(len(found.hits)))


def ps_ndcg_at_k(
    Y_true: Any, ranked: ArrayLike, propensities: Propensities, *, k: int = 5
) -> float:
    r"""Propensity-scored nDCG: gains :math:`h_{ij} / p_{ij}`, as a share of the best possible.

    Numerator and denominator are sums over rows of gains that are discounted and divided as in
    `ndcg_at_k`.

    Parameters
    ----------
    Y_true : indicator matrix or sequence of collections
        Labels of each row.
    ranked : array-like of shape (rows, at least k)
        Answers, best first.
    propensities : Propensities
        How likely it is that each label is observed.
    k : int
        Answers that count.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> p = Propensities([["a", "b"], ["a"], ["a"], ["c"]])
    >>> round(ps_ndcg_at_k([["a", "c"]], [["a", "c"]], p, k=2), 3)
    0.982
    """
    found = _Ranking.of(Y_true, ranked, k).labelled()
    return _share_of_best(found, propensities, _discounts(k), 1 / found.ideal)


def f1_score(
    Y_true: Any, Y_pred: Any, *, average: Literal["micro", "macro", "samples"] = "micro"
) -> float:
    r"""F1 of predicted sets of labels, :math:`2 |Y \cap \hat Y| / (|Y| + |\hat Y|)`.

    Parameters
    ----------
    Y_true, Y_pred : indicator matrices or sequences of collections
        Labels of each row, and those that were predicted.
    average : {"micro", "macro", "samples"}
        Of the pooled counts; the mean over labels that occur on either side; the mean over rows, where
        a row without labels and without predictions counts 0.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> f1_score([["a", "b"], ["c"]], [["a"], ["b"]])
    0.4
    >>> f1_score([["a", "b"], ["c"]], [["a"], ["b"]], average="macro")
    0.3333333333333333
    """
    true, pred = _sets("Y_true", Y_true), _sets("Y_pred", Y_pred)
    if true.n_rows != pred.n_rows:
        raise LocoleError(f"Y_true has {true.n_rows} rows, Y_pred has {pred.n_rows}.")
    labels, codes = np.unique(np.concatenate([true.labels, pred.labels]), return_inverse=True)
    known, given = (
        _pairs(sets._replace(codes=numbers[sets.codes]), labels.size)
        for sets, numbers in zip((true, pred), np.split(codes, [true.labels.size]), strict=True)
    )
    both = np.intersect1d(*(pairs[0] * labels.size + pairs[1] for pairs in (known, given)))
    if average == "micro":
        return 2 * both.size / max(known.shape[1] + given.shape[1], 1)
    if average not in ("macro", "samples"):
        raise LocoleError(f"average must be 'micro', 'macro' or 'samples', not {average!r}.")
    by_row = average == "samples"
    size = true.n_rows if by_row else labels.size
    correct = np.bincount(both // labels.size if by_row else both % labels.size, minlength=size)
    place = 0 if by_row else 1
    total = sum(np.bincount(pairs[place], minlength=size) for pairs in (known, given))
    scores = 2 * correct / np.maximum(total, 1)
    return float(scores.mean() if by_row else scores[total > 0].mean())


def ranking_report(
    Y_true: Any,
    ranked: ArrayLike,
    *,
    k: Sequence[int] = (1, 3, 5),
    propensities: Propensities | None = None,
) -> dict[str, float]:
    """Metrics of ranked answers by name, such as ``"P@1"``: P, R, nDCG, F1 and, with propensities, PSP.

    Parameters
    ----------
    Y_true, ranked
        As for `precision_at_k`.
    k : sequence of int
        Numbers of answers.
    propensities : Propensities, optional
        For PSP@k and PSnDCG@k.

    Returns
    -------
    dict of str to float
        The figures by name, each between 0 and 1.

    Examples
    --------
    >>> ranking_report([["a"], ["b"]], [["a"], ["c"]], k=[1])
    {'P@1': 0.5, 'R@1': 0.5, 'nDCG@1': 0.5, 'F1@1': 0.5, 'coverage@1': 0.5}
    """
    metrics: dict[str, Callable[..., float]] = {
        "P": precision_at_k, "R": recall_at_k, "nDCG": ndcg_at_k, "F1": f1_at_k,
        "coverage": coverage_at_k,
    }  # fmt: skip
    report = {f"{name}@{n}": f(Y_true, ranked, k=n) for name, f in metrics.items() for n in k}
    if propensities is not None:
        scored = {"PSP": ps_precision_at_k, "PSnDCG": ps_ndcg_at_k}
        for name, metric in scored.items():
            report |= {f"{name}@{n}": metric(Y_true, ranked, propensities, k=n) for n in k}
    return report


class _Ranking(NamedTuple):
    """Which of the first k answers are right, beside what the rows have."""

    hits: NDArray[np.bool_]
    codes: NDArray[np.int64]
    """Number of each answer among ``labels``, −1 if no row has it."""
    counts: NDArray[np.int64]
    """Labels of each row."""
    owners: NDArray[np.int64]
    owned: NDArray[np.int64]
    """Each label of each row: the row, and the number of the label."""
    labels: NDArray

    @classmethod
    def of(cls, Y_true: Any, ranked: ArrayLike, k: int) -> _Ranking:
        sets, answers = _sets("Y_true", Y_true), np.asarray(ranked)
        if answers.ndim != 2 or answers.shape[0] != sets.n_rows:
            raise LocoleError(
                f"answers must be of shape ({sets.n_rows}, k), not {answers.shape}: a line for each row."
            )
        if not 1 <= k <= answers.shape[1]:
            raise LocoleError(f"k must be between 1 and the {answers.shape[1]} answers of a row.")
        _check_kinds(sets.labels, answers)
        n_labels = max(sets.labels.size, 1)
        owners, owned = _pairs(sets, n_labels)
        codes = np.full((sets.n_rows, k), -1)
        if owned.size:
            codes = codes_of(answers[:, :k].ravel(), sets.labels).reshape(-1, k)
        asked = np.arange(sets.n_rows)[:, None] * n_labels + codes
        hits = (codes >= 0) & np.isin(asked, owners * n_labels + owned)
        ordered = np.sort(codes, axis=1)
        if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
            raise LocoleError("a row has an answer twice: give different labels.")
        counts = np.bincount(owners, minlength=sets.n_rows)
        return cls(hits, codes, counts, owners, owned, sets.labels)

    def labelled(self) -> _Ranking:
        """Rows that have labels."""
        rows = self.counts > 0
        if not rows.any():
            raise LocoleError("no row has a label.")
        number = np.cumsum(rows) - 1
        return self._replace(
            hits=self.hits[rows],
            codes=self.codes[rows],
            counts=self.counts[rows],
            owners=number[self.owners],
        )

    @property
    def ideal(self) -> Floats:
        """Discounted gain of each row if all of its answers were right."""
        k = self.hits.shape[1]
        return np.cumsum(_discounts(k))[np.minimum(self.counts, k) - 1]


def _share_of_best(
    found: _Ranking, propensities: Propensities, discounts: Floats, factors: Floats
) -> float:
    """``Σ_i factor_i Σ_j discount_j · gain_ij``, divided by what the best answers would have."""
    k = discounts.size
    gains = 1 / propensities.of(found.labels)
    total = factors @ (np.where(found.hits, gains[found.codes], 0) @ discounts)
    # Each row's labels by falling gain: place j of the first k has the discount j.
    order = np.lexsort((-gains[found.owned], found.owners))
    owners, owned = found.owners[order], found.owned[order]
    starts = np.append(0, np.cumsum(found.counts))
    place = np.arange(owners.size) - starts[owners]
    first = place < k
    best = factors[owners[first]] * gains[owned[first]] @ discounts[place[first]]
    return float(total / best) if best > 0 else 0.0


def _discounts(k: int) -> Floats:
    return 1 / np.log2(np.arange(2, k + 2))


def _sets(name: str, Y: Any) -> LabelSets:
    """Any number of labels for each row; a plain list of labels is one for each."""
    sets = label_sets(Y)
    if sets is None:
        flat = np.asarray(Y)
        if flat.ndim != 1:
            raise LocoleError(
                f"{name} must be an indicator, or a collection of labels for each row."
            )
        labels, codes = np.unique(flat, return_inverse=True)
        sets = LabelSets(labels, codes, np.arange(flat.size + 1), "lists")
    if sets.n_rows == 0:
        raise LocoleError(f"{name} is empty.")
    return sets


def _pairs(sets: LabelSets, n_labels: int) -> NDArray[np.int64]:
    """Row and label of each different pair, shape (2, pairs)."""
    owners = np.repeat(np.arange(sets.n_rows), np.diff(sets.starts))
    return np.stack(np.divmod(np.unique(owners * n_labels + sets.codes), n_labels))


def _check_kinds(known: NDArray, answers: NDArray) -> None:
    # NumPy would compare numbers and texts as unequal, without a word.
    kinds = {"number" if x.dtype.kind in "biuf" else x.dtype.kind for x in (known, answers)} - {"O"}
    if known.size and len(kinds) > 1:
        raise LocoleError(
            f"Y_true holds {known.dtype} and the answers {answers.dtype}: use one type."
        )
