"""Networks with an output for each label: the paper's own baselines."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.baselines.base import Baseline
from locole.baselines.buckets import BucketTargets
from locole.exceptions import ModelFileError
from locole.io import saved_as
from locole.parameters import one_of
from locole.regressors import MLPRegressor
from locole.samples import Samples
from locole.scoring.base import best_of

__all__ = ["MLPCrossEntropy", "MLPSquaredError"]

#: By recipe: hidden layers if they differ from those of label embedding (half the units before the
#: outputs, for the sake of memory), and the epochs after which the rate falls to a tenth.
_RECIPES: dict[str, dict[str, Any]] = {
    "lshtc1": {"steps_at": (3,)},
    "dmoz": {"steps_at": (3,)},
    "odp": {"steps_at": (10,), "hidden": (1024, 16384, 4096)},
}
_LARGEST = 1e30


class _OneOutputEach(Baseline):
    """A network whose outputs are the labels."""

    _parameter_constraints: ClassVar = {
        "recipe": one_of(*_RECIPES),
        **{name: MLPRegressor._parameter_constraints[name] for name in (
            "hidden", "batch_size", "epochs", "learning_rate", "checkpoint", "device",
            "random_state", "n_jobs", "verbose",
        )},
    }  # fmt: skip
    _learnt: ClassVar = {**Baseline._learnt, "network_": MLPRegressor, "history_": list}
    _unsaved: ClassVar = ("checkpoint",)
    _passed_over: ClassVar = ("checkpoint",)
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

    def _learn(self, samples: Samples) -> None:
        X, codes = samples.X, samples.codes
        n_classes = self.classes_.size
        # One hash into as many buckets as there are labels: every label is an output of its own.
        each = np.arange(n_classes, dtype=np.int32)[:, None]
        network = MLPRegressor(**self._settings())
        network.fit(X, BucketTargets(codes, each, n_classes))
        # What was learnt stays, without how and when: the same weights are the same model.
        self.history_, network.history_ = network.history_, []
        self.network_ = network.set_params(checkpoint=None, n_jobs=None, verbose=0)

    def _settings(self) -> dict[str, Any]:
        """Settings of the network: the paper's, and what the user has given."""
        shared = ("recipe", "checkpoint", "device", "random_state", "n_jobs", "verbose")
        settings = {name: getattr(self, name) for name in shared}
        for name in ("hidden", "batch_size", "epochs", "learning_rate"):
            if getattr(self, name) is not None:
                settings[name] = getattr(self, name)
        return {**_RECIPES[self.recipe], **self._own(), **settings}

    def _check_means(self) -> None:
        MLPRegressor(**self._settings()).check_parameters()

    def _own(self) -> dict[str, Any]:
        """Settings of the network that make this method."""
        raise NotImplementedError

    def _rank(self, X: sp.csr_array, k: int) -> tuple[NDArray[np.int64], NDArray]:
        # Rows that overflow float32 must still get an answer.
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.nan_to_num(self.network_.predict(X), posinf=_LARGEST, neginf=-_LARGEST)
        return best_of(scores, k)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        network = self.network_
        n_features = getattr(network, "n_features_in_", None)
        if n_features != self.n_features_in_ or network.n_outputs_ != self.classes_.size:
            raise ModelFileError("its network does not fit its labels and features")


@saved_as("baseline.mlp_cross_entropy")
class MLPCrossEntropy(_OneOutputEach):
    r"""Network with an output for each label, by cross-entropy: the usual way, the paper's "MLP (CE)".

    .. math:: \min_f \sum_j \Big[\log \sum_i e^{f_i(x_j)} - f_{y_j}(x_j)\Big]

    The network is that of the paper's recipe for label embedding, with rate 0.01 that falls to a tenth
    after the third epoch. For ODP the last hidden layer has half the units, f is divided by its length
    before the softmax, and the rate falls after the tenth epoch. Needs torch:
    ``pip install 'locole[mlp]'``.

    An epoch takes O(h·(nnz + N·C)) for N rows, C labels and h hidden units. Training takes 12·h bytes
    for each feature and 16·h for each label (weight, two moments, gradient), and a batch 24 bytes for
    each row and label; `fit` says so at once if the machine has not so much. The model has 4·h bytes
    for each feature and label. The part that grows with C is what label embedding does without.

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
    history_ : list of dict
        Loss, rate and times of each epoch.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MLPCrossEntropy(hidden=64, batch_size=32).fit(X[:1500] / 16, y[:1500])
    >>> model.score(X[1500:] / 16, y[1500:]) > 0.85
    True
    """

    def _own(self) -> dict[str, Any]:
        return {
            "loss": "softmax",
            "learning_rate": 0.01,
            "normalise": self.recipe == "odp",
            "learn_scale": False,
        }


@saved_as("baseline.mlp_squared_error")
class MLPSquaredError(_OneOutputEach):
    r"""Network with an output for each label, by squared error: the paper's "MLP (SE)".

    .. math:: \min_f \sum_j \Big\| \frac{f(x_j)}{\|f(x_j)\|} - e_{y_j} \Big\|^2

    with the unit vector e_y of label y. This is label embedding by one-hot vectors, whose coherence is
    zero: what is left of the difference to `locole.LocoleClassifier` with the same network is the number
    of outputs. Rate 0.001, which falls to a tenth after the third epoch; ODP has the layers that
    `MLPCrossEntropy` has, and the fall after the tenth. Needs torch: ``pip install 'locole[mlp]'``.

    Time and memory are those of `MLPCrossEntropy`: O(h·(nnz + N·C)) an epoch, 12·h bytes for each
    feature and 16·h for each label.

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
    history_ : list of dict
        Loss, rate and times of each epoch.

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
