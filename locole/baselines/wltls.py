"""W-LTLS: labels are paths of a small graph, and every edge has a binary classifier."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.baselines.base import Baseline
from locole.baselines.dense_linear import check_weights, linear_outputs
from locole.baselines.online import Learner, OnlineSettings, learn_online
from locole.baselines.similarity import similar_order
from locole.baselines.trellis import Trellis
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.io.trust import check_permutation
from locole.parameters import (
    N_JOBS,
    PASSES,
    POSITIVE,
    SEED,
    SWITCH_OR_AUTO,
    VERBOSE,
    at_least,
    one_of,
)
from locole.samples import Samples
from locole.sparse_rows import with_constant

__all__ = ["WLTLS"]

Loss = Literal["exponential", "squared_hinge", "squared"]
Assignment = Literal["random", "similar", "index"]

# exp(±300) is still a number; by then the exponential loss sees one edge only.
_LARGEST_MARGIN = 300.0


@saved_as("baseline.wltls")
class WLTLS(Baseline):
    r"""Wide Log-Time Log-Space classification: a label is a path through a trellis.

    A graph of slices with ``width`` states each has exactly as many paths from source to sink as there
    are labels (see ``trellis_``). Every edge e has a linear classifier f_e, which learns whether the
    label's path goes through it. The answer is the path of least total loss,

    .. math:: \hat y(x) = \arg\min_y \sum_{e \in y} L(f_e(x)) + \sum_{e \notin y} L(-f_e(x)),

    with L(z) = e^{−z}, max(0, 1 − z)² or (1 − z)². The sum over all edges of L(−f_e) is the same for all
    labels, so this is the heaviest path for edge weights L(−f_e) − L(f_e), found by dynamic programming.
    Scores are minus the total loss.

    From Evron, Moroshko, Crammer, "Efficient Loss-Based Decoding on Graphs for Extreme Classification"
    (2018); width 2 is the graph of Jasinska, Karampatziakis, "Log-time and Log-space Extreme
    Classification" (2016). Learners are AROW with a diagonal Σ (Crammer, Kulesza, Dredze, "Adaptive
    Regularization of Weight Vectors", 2009) or averaged perceptrons. Placing similar labels on similar
    paths follows Evron and others, "The Role of Codeword-to-Class Assignments in Error-Correcting Codes"
    (2023).

    There are E ≈ width²·log(n_classes)/log(width) edges. Training takes O(E) for each feature of each
    row and epoch, and beside the model two numbers for each feature and each of 32 edges per thread.
    Prediction takes O(E) for each feature of a row and O(E·k) for the search. The model has
    n_features·E numbers. Take it where model and time must hardly grow with the number of labels;
    where labels have few rows each, most other methods are more accurate.

    Parameters
    ----------
    width : int
        States of a slice. More make easier binary problems, a larger model and better answers.
    learner : {"arow", "perceptron"}
        How the edges' classifiers learn.
    epochs : int
        Passes over the rows.
    r : float
        AROW's parameter: larger means smaller steps.
    loss : {"exponential", "squared_hinge", "squared"}
        L of the decoding. It may be changed after training.
    assignment : {"random", "similar", "index"}
        Which label gets which path: at random, labels with similar centroids on paths that share many
        edges, or in the order of ``classes_``.
    fit_intercept : bool or "auto"
        Whether a constant feature is added. ``"auto"``: if at least a quarter of X is not zero.
    random_state : int
        Seed of the assignment and of the order of rows.
    n_jobs : int, optional
        Threads; the answer does not depend on it. Training can use one for every 32 edges.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    coef_ : array of shape (n_edges, n_features)
        Weights of each edge.
    intercept_ : array of shape (n_edges,)
        Intercept of each edge.
    n_edges_ : int
        Number of edges.
    paths_ : array of shape (n_classes,)
        Number of each label's path.
    trellis_ : Trellis
        The graph: what an edge's number means, and which edges a path has.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> WLTLS(width=3).fit(X[:1500] / 16, y[:1500]).score(X[1500:] / 16, y[1500:]) > 0.8
    True
    """

    _parameter_constraints: ClassVar = {
        "width": at_least(2),
        "learner": one_of(*get_args(Learner)),
        "epochs": PASSES,
        "r": POSITIVE,
        "loss": one_of(*get_args(Loss)),
        "assignment": one_of(*get_args(Assignment)),
        "fit_intercept": SWITCH_OR_AUTO,
        "random_state": SEED,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }
    _learnt: ClassVar = {
        **Baseline._learnt,
        "paths_": np.ndarray,
        "width_": int,
        "n_edges_": int,
        "_weights": np.ndarray,
        "_constant": np.ndarray,
    }

    def __init__(
        self,
        *,
        width: int = 2,
        learner: Learner = "arow",
        epochs: int = 5,
        r: float = 1.0,
        loss: Loss = "exponential",
        assignment: Assignment = "random",
        fit_intercept: bool | Literal["auto"] = "auto",
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.width = width
        self.learner = learner
        self.epochs = epochs
        self.r = r
        self.loss = loss
        self.assignment = assignment
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def trellis_(self) -> Trellis:
        """The graph."""
        return Trellis(self.classes_.size, width=self.width_)

    @property
    def coef_(self) -> NDArray[np.float32]:
        """Weights of the edges' classifiers."""
        return self._weights[:, : self.n_edges_].T

    @property
    def intercept_(self) -> NDArray[np.float32]:
        """Constant parts of the edges' classifiers."""
        return self._constant[: self.n_edges_]

    def _learn(self, samples: Samples) -> None:
        X, codes = samples.X, samples.codes
        self.width_ = int(self.width)
        self.n_edges_ = self.trellis_.n_edges
        self.paths_ = self._assigned(X, codes)
        constant = self._wants_constant(X)
        if constant:
            X = with_constant(X)
        W = self._trained(X, codes)
        if not np.isfinite(W).all():
            raise LocoleError(
                "the weights have become infinite: scale the rows of X to about unit length."
            )
        n = W.shape[0] - constant
        self._weights = W[:n]
        self._constant = W[n].copy() if constant else np.zeros(W.shape[1], dtype=np.float32)

    def _assigned(self, X: sp.csr_array, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Path of each label."""
        n = self.classes_.size
        if self.assignment == "index":
            return np.arange(n)
        if self.assignment == "random":
            return np.random.default_rng(self.random_state).permutation(n)
        paths = np.empty(n, dtype=np.int64)
        paths[similar_order(X, codes, n, seed=self.random_state)] = np.arange(n)
        return paths

    def _wants_constant(self, X: sp.csr_array) -> bool:
        if self.fit_intercept == "auto":
            return bool(4 * X.count_nonzero() >= X.shape[0] * X.shape[1])
        return bool(self.fit_intercept)

    def _trained(self, X: sp.csr_array, codes: NDArray[np.int64]) -> NDArray[np.float32]:
        trellis = self.trellis_
        settings = OnlineSettings(
            learner=self.learner,
            epochs=int(self.epochs),
            r=float(self.r),
            seed=self.random_state,
            n_jobs=self.n_jobs,
            description="learning edges" if self.verbose else None,
        )
        return learn_online(
            X, codes, lambda a, b: trellis.signs(self.paths_, a, b), trellis.n_edges, settings
        )

    def _rank(self, X: sp.csr_array, k: int) -> tuple[NDArray[np.int64], NDArray]:
        margins = linear_outputs(X, self._weights, self._constant, self.n_edges_)
        off, gains = _losses(margins, self.loss)
        codes, weights = self.trellis_.heaviest(gains, k, self.paths_)
        return codes, weights - off.sum(axis=1, keepdims=True)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        if self.width_ < 2 or self.n_edges_ != self.trellis_.n_edges:
            raise ModelFileError("its trellis does not match its number of labels")
        check_permutation(self.paths_, "paths of labels", size=self.classes_.size)
        check_weights(
            self._weights,
            self._constant,
            n_features=self.n_features_in_,
            n_outputs=self.n_edges_,
        )


def _losses(margins: NDArray[np.float32], loss: str) -> tuple[NDArray, NDArray]:
    """``L(−f)`` and ``L(−f) − L(f)`` of each margin f: the loss off the path, the gain on it."""
    # Rows that overflow float32 must still get an answer.
    f = np.clip(np.nan_to_num(margins.astype(np.float64)), -1e38, 1e38)
    if loss == "squared":
        return (1 + f) ** 2, 4 * f
    if loss == "squared_hinge":
        off = np.maximum(1 + f, 0) ** 2
        return off, off - np.maximum(1 - f, 0) ** 2
    f = np.clip(f, -_LARGEST_MARGIN, _LARGEST_MARGIN)
    return np.exp(f), 2 * np.sinh(f)
