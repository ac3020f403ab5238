"""Answers that the label vectors cannot have spoilt: the abstention rule of the theory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole.classifier import LocoleClassifier
from locole.exceptions import LocoleError
from locole.regressors import ElasticNetRegressor, MLPRegressor, RegressorAdapter
from locole.scoring import VectorScorer
from locole.theory.bounds import lossless_margin, posterior_error_bar
from locole.theory.coherence import coherence

__all__ = ["Certificate", "certify"]


class Certificate(NamedTuple):
    """What the coherence of the label vectors says of answers."""

    labels: NDArray
    """The answers, shape (rows,)."""
    lead: NDArray[np.float64]
    """By how much the score of each exceeds the next."""
    margin: float
    """Lead above which the label vectors cannot have changed the answer, 2λ/(1 + λ)."""
    certified: NDArray[np.bool_]
    """Whether the lead is larger than the margin."""
    low: NDArray[np.float64]
    """Lower bound of the probability of the answer, by its score."""
    high: NDArray[np.float64]
    """Upper bound of it."""


def certify(classifier: LocoleClassifier, X: Any) -> Certificate:
    r"""Tell which answers of one regressor with squared loss are beyond the error of the embedding.

    The score of label i estimates its probability η_i, with :math:`|s_i - \eta_i| \le \lambda (1 -
    \eta_i)` for the ideal regressor, λ being the largest :math:`|\mathrm{Re}\langle g_i, g_j\rangle|`.
    An answer whose score leads by more than :math:`2 \lambda / (1 + \lambda)` is then a most probable
    label (``docs/research/theory.md``). A learnt regressor adds its own error, of which this says
    nothing: see `LocoleClassifier.threshold` for a rule from validation rows.

    Parameters
    ----------
    classifier : LocoleClassifier
        Fitted, with one regressor for squared loss whose points are not normalised.
    X : array or sparse matrix of shape (n_samples, n_features)
        Rows to answer.

    Returns
    -------
    Certificate
        Answers, and which of them are certain as far as the embedding goes.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LocoleClassifier("rademacher", dim=256, regressor="elastic_net")
    >>> found = certify(model.fit(X[:1500], y[:1500]), X[1500:])
    >>> right = found.labels == y[1500:]
    >>> bool(right[found.certified].mean() > right.mean()), 0 < found.margin < 1
    (True, True)
    """
    scorer = getattr(classifier, "scorer_", None)
    regressors = list(scorer.regressors_.values()) if isinstance(scorer, VectorScorer) else []
    if len(regressors) != 1 or not _is_squared(regressors[0]):
        raise LocoleError(
            "certify needs a fitted classifier with one regressor for squared loss, such as "
            'regressor="elastic_net"; for any other take threshold(max_error=...).'
        )
    labels, scores = classifier.predict_topk(X, k=2)
    lam = coherence(classifier.embedding_).coherence_re
    lead = scores[:, 0].astype(np.float64) - scores[:, 1]
    margin = lossless_margin(lam)
    low, high = posterior_error_bar(scores[:, 0], lam)
    return Certificate(labels[:, 0], lead, margin, lead > margin, low, high)


def _is_squared(regressor: Any) -> bool:
    """Whether points estimate the mean of the label vectors."""
    if isinstance(regressor, MLPRegressor):
        return regressor.loss == "squared" and not regressor.normalise
    return isinstance(regressor, ElasticNetRegressor | RegressorAdapter)
