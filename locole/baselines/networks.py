"""Networks with an output for each label: the paper's own baselines."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.baselines.base import Baseline, best_of
from locole.baselines.buckets import BucketTargets
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.regressors import MLPRegressor

__all__ = ["MLPCrossEntropy", "MLPSquaredError"]

#: Hidden layers of the paper's networks, and the epochs after which the rate falls to a tenth. For
#: ODP the cross-entropy network has half the units before its outputs, and points of unit length.
_HIDDEN = {"lshtc1": (4096,), "dmoz": (2500,), "odp": (1024, 16384, 8192)}
_FALLS = {"lshtc1": (3,), "dmoz": (3,), "odp": (10,)}


class _OneOutputEach(Baseline):
    """A network whose outputs are the labels."""

    _learnt: ClassVar = {**Baseline._learnt, "network_": MLPRegressor}
    #: Rows times labels exist, a block at a time.
    _block_rows: ClassVar[int] = 256

    def __init__(
        self,
        recipe: str = "lshtc1",
        *,
        hidden: Any = None,
        batch_size: int | None = None,
        epochs: int | None = None,
        learning_rate: float | None = None,
        checkpoint: Any = None,
        device: str = "auto",
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.recipe = recipe
        self.hidden = hidden
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.checkpoint = checkpoint
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _learn(self, X: sp.csr_array, codes: NDArray[np.int64]) -> None:
        if not isinstance(self.recipe, str) or self.recipe not in _HIDDEN:
            raise LocoleError(f"unknown recipe {self.recipe!r}: take one of {', '.join(_HIDDEN)}.")
        n_classes = self.classes_.size
        # One hash into as many buckets as there are labels: every label is an output of its own.
        each = np.arange(n_classes, dtype=np.int32)[:, None]
        self.network_ = MLPRegressor(**self._settings()).fit(
            X, BucketTargets(codes, each, n_classes)
        )

    def _settings(self) -> dict[str, Any]:
        """Settings of the network: the paper's, and what the user has given."""
        given = {
            name: getattr(self, name)
            for name in ("hidden", "batch_size", "epochs", "learning_rate")
            if getattr(self, name) is not None
        }
        shared = ("recipe", "checkpoint", "device", "random_state", "n_jobs", "verbose")
        settings = {name: getattr(self, name) for name in shared}
        return {**settings, "steps_at": _FALLS[self.recipe], **self._own(), **given}

    def _own(self) -> dict[str, Any]:
        raise NotImplementedError

    def _best(self, X: sp.csr_array, k: int) -> tuple[NDArray[np.int64], NDArray]:
        return best_of(self.network_.predict(X), k)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        network = self.network_
        n_features = getattr(network, "n_features_in_", None)
        if n_features != self.n_features_in_ or network.n_outputs_ != self.classes_.size:
            raise ModelFileError("its network does not fit its labels and features")


@saved_as("baseline.mlp_cross_entropy")
class MLPCrossEntropy(_OneOutputEach):
    r"""Network with an output for each label, by cross-entropy: the usual way, and the paper's "MLP CE".

    .. math:: \min_f \sum_j -\log \frac{e^{f_{y_j}(x_j)}}{\sum_i e^{f_i(x_j)}}

    The network is that of the paper's recipe, with rate 0.01 that falls to a tenth after the third
    epoch; for ODP half the units in the last hidden layer, outputs of unit length (times a factor
    that is learnt) and a fall after the tenth. Needs torch: ``pip install 'locole[mlp]'``.

    An epoch takes O(hidden · (nnz + rows · n_classes)), memory three times hidden · (n_features +
    n_classes) numbers: the output layer alone is what label embeddings do without. Prefer it where
    labels are few enough for that.

    Parameters
    ----------
    recipe : {"lshtc1", "dmoz", "odp"}
        Sizes, batches and epochs of the paper's networks; what is given below comes first.
    hidden, batch_size, epochs, learning_rate, checkpoint, device
        As for `locole.regressors.MLPRegressor`.
    random_state : int
        Seed of the first weights and of the order of rows.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    network_ : MLPRegressor
        The network, whose outputs are logits.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MLPCrossEntropy(hidden=64, batch_size=32).fit(X[:1500] / 16, y[:1500])
    >>> model.score(X[1500:] / 16, y[1500:]) > 0.85
    True
    """

    def _own(self) -> dict[str, Any]:
        hidden = _HIDDEN[self.recipe]
        own = {"loss": "softmax", "learning_rate": 0.01, "normalise": self.recipe == "odp"}
        if self.recipe == "odp":
            own["hidden"] = (*hidden[:-1], hidden[-1] // 2)
        return own


@saved_as("baseline.mlp_squared_error")
class MLPSquaredError(_OneOutputEach):
    r"""Network with an output for each label, by squared error: the paper's "MLP SE".

    .. math:: \min_f \sum_j \Big\| \frac{f(x_j)}{\|f(x_j)\|} - e_{y_j} \Big\|^2

    with the unit vector e_y of label y. This is label embedding by one-hot vectors, whose coherence is
    zero: what is left of the difference to `locole.LocoleClassifier` with the same network is the number
    of outputs. The rate is the recipe's, and falls to a tenth after the third epoch (ODP: the tenth).
    Needs torch: ``pip install 'locole[mlp]'``. Time and memory are those of `MLPCrossEntropy`.

    Parameters
    ----------
    recipe : {"lshtc1", "dmoz", "odp"}
        Sizes, batches and epochs of the paper's networks; what is given below comes first.
    hidden, batch_size, epochs, learning_rate, checkpoint, device
        As for `locole.regressors.MLPRegressor`.
    random_state : int
        Seed of the first weights and of the order of rows.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    network_ : MLPRegressor
        The network, whose points have unit length.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MLPSquaredError(hidden=64, batch_size=32, learning_rate=0.01)
    >>> model.fit(X[:1500] / 16, y[:1500]).score(X[1500:] / 16, y[1500:]) > 0.85
    True
    """

    def _own(self) -> dict[str, Any]:
        return {"loss": "squared", "normalise": True}
