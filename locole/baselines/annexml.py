"""AnnexML: nearest neighbours in spaces that are learnt for parts of the rows."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.baselines.base import Baseline
from locole.baselines.neighborhoods import MapSettings, learn_map, learn_partition
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.io.trust import check_indices, check_pointers
from locole.kernels.annexml import LANES, fill_embeddings, fill_votes, find_nearest
from locole.kernels.csr import Csr
from locole.kernels.simd import padded_width
from locole.parallel.blocks import map_blocks
from locole.parameters import COUNT, N_JOBS, NOT_NEGATIVE, PASSES, POSITIVE, SEED, VERBOSE
from locole.samples import Samples
from locole.sparse_rows import unit_rows

__all__ = ["AnnexML"]

# Rows of a part unless the number of parts is given.
_PART_ROWS = 6000
_NO_LABELS = np.empty(0, dtype=np.int64)


class _Part(NamedTuple):
    """What one part of one learner has learnt."""

    features: NDArray[np.int32]
    maps: NDArray[np.float16]
    points: NDArray[np.float32]


@saved_as("baseline.annexml")
class AnnexML(Baseline):
    r"""Vote among the nearest training rows, in spaces in which rows of one label are near.

    Each of several learners cuts the rows into parts by a linear classifier, which is taught to keep
    rows of one label together and the parts of one size. For each part it learns a linear map W
    such that the graph of nearest neighbours by label is that by the cosine of points W x:

    .. math:: \min_W -\sum_i \log \frac{e^{\gamma\cos(W x_i, W x_j)}}
              {\sum_{j' \in \{j\} \cup S_i} e^{\gamma\cos(W x_i, W x_{j'})}}

    with a neighbour j of row i, drawn anew in each epoch, and rivals :math:`S_i` of other labels: the
    neighbours of the other rows of a batch. Both are solved by AdaGrad, with one rate per
    feature. A new row goes to its part in each learner, and the nearest points there vote:

    .. math:: s_c(x) = \frac1T \sum_t \sum_{j \in \mathrm{kNN}_t(x),\, y_j = c}
              e^{4\gamma(\cos(W x, W x_j) - 1)}

    From Y. Tagami, "AnnexML: Approximate Nearest Neighbor Search for Extreme Multi-label
    Classification" (KDD 2017). A row with several labels has the rows of one of them, drawn anew in each
    epoch, as neighbours; the paper takes those with the most labels in common. There 15 learners are
    taken; 5 have most of the accuracy at a third of time and memory. Parts are small enough to compare a
    row with all their points, so the search is exact here.

    An epoch costs O(nonzeros · dim), and memory is 2·dim bytes for each feature of each part and
    4·dim bytes for each row, both times ``n_learners``: neither depends on the number of labels.
    Prefer it where rows of one label look unlike each other, so that one linear score per label does
    not do, where labels have a handful of rows, and where the memory is there.

    Parameters
    ----------
    n_learners : int
        Learners T that vote. They differ by their random numbers.
    dim : int
        Entries of a point. Multiples of 16 waste no memory.
    n_parts : int, optional
        Parts of each learner; by default one for every 6000 rows.
    n_neighbors : int
        Points that vote in each learner, and rows of a label whose scores choose its part.
    epochs : int
        Passes over the rows of a part.
    partition_epochs : int
        Passes that learn the parts.
    learning_rate : float
        AdaGrad's.
    gamma : float
        Scale of the cosines in both formulas.
    balance : float
        Penalty of a part's surplus of rows, relative to its share, in units of its scores.
    batch_size : int
        Rows that are one another's rivals.
    random_state : int
        Seed.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    partition_ : array of shape (n_features, n_learners · n_parts)
        Weights of the classifiers that choose parts, learner after learner.
    sizes_ : array of shape (n_learners, n_parts)
        Rows in each part.
    codes_ : array of shape (n_learners, n_samples)
        Codes of the rows' labels, part after part; numbers of rows if these have several labels.
    row_codes_, row_starts_ : arrays, or None
        If rows have several labels, those of row i are
        ``row_codes_[row_starts_[i] : row_starts_[i + 1]]``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> AnnexML(n_learners=2).fit(X[:1500], y[:1500]).score(X[1500:], y[1500:]) > 0.9
    True
    """

    _parameter_constraints: ClassVar = {
        "n_learners": COUNT,
        "dim": COUNT,
        "n_parts": [None, *COUNT],
        "n_neighbors": COUNT,
        "epochs": PASSES,
        "partition_epochs": PASSES,
        "learning_rate": POSITIVE,
        "gamma": POSITIVE,
        "balance": NOT_NEGATIVE,
        "batch_size": COUNT,
        "random_state": SEED,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }
    _learnt: ClassVar = {
        **Baseline._learnt,
        "partition_": np.ndarray,
        "sizes_": np.ndarray,
        "codes_": np.ndarray,
        "row_codes_": (np.ndarray, type(None)),
        "row_starts_": (np.ndarray, type(None)),
        "_n_features": np.ndarray,
        "_features": np.ndarray,
        "_maps": np.ndarray,
        "_points": np.ndarray,
    }
    _takes_several: ClassVar = True

    def __init__(
        self,
        *,
        n_learners: int = 5,
        dim: int = 50,
        n_parts: int | None = None,
        n_neighbors: int = 10,
        epochs: int = 10,
        partition_epochs: int = 10,
        learning_rate: float = 0.1,
        gamma: float = 10.0,
        balance: float = 4.0,
        batch_size: int = 256,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_learners = n_learners
        self.dim = dim
        self.n_parts = n_parts
        self.n_neighbors = n_neighbors
        self.epochs = epochs
        self.partition_epochs = partition_epochs
        self.learning_rate = learning_rate
        self.gamma = gamma
        self.balance = balance
        self.batch_size = batch_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _learn(self, samples: Samples) -> None:
        samples = samples.labelled()
        samples = samples._replace(X=unit_rows(samples.X))
        X, n_rows = samples.X, samples.n_rows
        n_parts = max(1, n_rows // _PART_ROWS) if self.n_parts is None else int(self.n_parts)
        self.partition_ = self._learn_partitions(samples, n_parts)
        every = np.ones((self.n_learners, n_parts), dtype=bool)
        part_of = _chosen(X, self.partition_, every)
        # Rows in the order of their parts.
        order = np.argsort(part_of, axis=1, kind="stable")
        self.sizes_ = np.array([np.bincount(parts, minlength=n_parts) for parts in part_of])
        has_several = samples.starts is not None
        self.codes_ = order if has_several else samples.codes[order]
        self.row_codes_ = samples.codes if has_several else None
        self.row_starts_ = samples.starts
        self._keep(self._learn_maps(samples, order))

    def _learn_partitions(self, samples: Samples, n_parts: int) -> NDArray[np.float32]:
        def learn(learner: slice) -> NDArray[np.float32]:
            return learn_partition(
                samples,
                n_parts,
                epochs=self.partition_epochs,
                learning_rate=self.learning_rate,
                balance=self.balance,
                memory=self.n_neighbors,
                rng=np.random.default_rng([self.random_state, learner.start]),
            )

        return np.concatenate(self._each(learn, self.n_learners, "partitions"), axis=1)

    def _learn_maps(self, samples: Samples, order: NDArray[np.int64]) -> list[_Part]:
        settings = MapSettings(
            self.dim, self.epochs, self.learning_rate, self.gamma, self.batch_size
        )
        n_parts = self.sizes_.shape[1]

        def learn(task: slice) -> _Part:
            learner, part = divmod(task.start, n_parts)
            stop = int(self.sizes_[learner, : part + 1].sum())
            rows = order[learner][stop - self.sizes_[learner, part] : stop]
            rng = np.random.default_rng([self.random_state, learner, part])
            return _learn_part(samples.take(rows), settings, rng)

        return self._each(learn, self.sizes_.size, "embeddings")

    def _each(self, function: Any, n_tasks: int, what: str) -> list[Any]:
        description = f"learning {what}" if self.verbose else None
        return map_blocks(function, n_tasks, block=1, n_jobs=self.n_jobs, description=description)

    def _keep(self, parts: list[_Part]) -> None:
        counts = [part.features.size for part in parts]
        self._n_features = np.array(counts, dtype=np.int64).reshape(self.sizes_.shape)
        self._features = np.concatenate([part.features for part in parts])
        self._maps = np.concatenate([part.maps for part in parts])
        self._points = np.concatenate([part.points for part in parts])

    def _rank(self, X: sp.csr_array, k: int) -> tuple[NDArray[np.int64], NDArray]:
        X = unit_rows(X)
        n_learners, width = len(self.sizes_), self._n_voters
        parts = _chosen(X, self.partition_, self.sizes_ > 0)
        codes = np.full((X.shape[0], n_learners * width), -1, dtype=np.int64)
        weights = np.zeros(codes.shape, dtype=np.float32)
        for learner in range(n_learners):
            columns = slice(learner * width, (learner + 1) * width)
            found, cosines = self._neighbors(X, learner, parts[learner])
            there = found >= 0
            codes[:, columns][there] = self.codes_[learner][found[there]]
            weights[:, columns] = np.exp(4 * self.gamma * (np.minimum(cosines, 1) - 1))
        weights /= n_learners
        codes, weights = self._votes(codes, weights)
        best = np.empty((X.shape[0], k), dtype=np.int64)
        scores = np.empty((X.shape[0], k), dtype=np.float32)
        fill_votes(codes, weights, best, scores)
        return best, scores

    def _votes(
        self, voters: NDArray[np.int64], weights: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Codes and weights of votes: a row votes for each of its labels; −1 is no vote."""
        if self.row_codes_ is None or self.row_starts_ is None:
            return voters, weights
        starts, n_labels = self.row_starts_[voters], np.diff(self.row_starts_)[voters]
        n_labels[voters < 0] = 0
        ahead = np.arange(max(1, int(n_labels.max(initial=0))))
        inside = ahead < n_labels[..., None]
        codes = self.row_codes_[np.where(inside, starts[..., None] + ahead, 0)]
        votes = np.where(inside, codes, -1).reshape(len(voters), voters.shape[1] * ahead.size)
        return votes, np.repeat(weights, ahead.size, axis=1)

    @property
    def _n_voters(self) -> int:
        """Neighbours that there can be."""
        return min(int(self.n_neighbors), int(self.sizes_.max()))

    def _neighbors(
        self, X: sp.csr_array, learner: int, parts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray]:
        """Places in ``codes_[learner]`` of the nearest rows of each row's part, and cosines.

        Where there is none, because the part is small or the row says nothing, the place is −1.
        """
        sizes = self.sizes_[learner]
        places = np.full((X.shape[0], self._n_voters), -1, dtype=np.int64)
        cosines = np.full(places.shape, -np.inf, dtype=np.float32)
        room = np.empty((1, LANES), dtype=np.float32)
        for part in np.unique(parts):
            rows = np.flatnonzero(parts == part)
            queries = self._embed(X, rows, learner, part)
            known = queries.any(axis=1)
            rows = rows[known]
            found, near = places[rows], cosines[rows]
            points = self._points[slice(*_bounds(_n_groups(self.sizes_), learner, part))]
            points = points.reshape(len(points), -1, LANES)
            find_nearest(points, sizes[part], queries[known], room, _NO_LABELS, near, found)
            found[found >= 0] += sizes[:part].sum()
            places[rows], cosines[rows] = found, near
        return places, cosines

    def _embed(
        self, X: sp.csr_array, rows: NDArray[np.int64], learner: int, part: int
    ) -> NDArray[np.float32]:
        """Points of these rows in the space of a part, of unit length."""
        first, last = _bounds(self._n_features, learner, part)
        return _embedded(X, rows, self._features, first, last, self._maps)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        self._check_parts()
        self._check_spaces()
        for array in (self.partition_, self._maps, self._points):
            if not np.isfinite(array).all():
                raise ModelFileError("its weights or points are not all finite")

    def _check_parts(self) -> None:
        sizes, codes = self.sizes_, self.codes_
        if sizes.ndim != 2 or sizes.dtype != np.int64 or not sizes.size:
            raise ModelFileError("it has no parts")
        if codes.ndim != 2 or codes.dtype != np.int64 or len(codes) != len(sizes):
            raise ModelFileError("its rows have no labels")
        n = codes.shape[1]
        if sizes.min() < 0 or sizes.max() > n or (sizes.sum(axis=1) != n).any():
            raise ModelFileError("the sizes of its parts do not add up to its rows")
        self._check_labels()
        shape = (self.n_features_in_, sizes.size)
        if self.partition_.shape != shape or self.partition_.dtype != np.float32:
            raise ModelFileError("its partition does not fit its parts and features")

    def _check_labels(self) -> None:
        codes, starts, n_classes = self.codes_, self.row_starts_, self.classes_.size
        if (self.row_codes_ is None) != (starts is None):
            raise ModelFileError("it says only in part which labels its rows have")
        if self.row_codes_ is not None and starts is not None:
            n, own = codes.shape[1], "labels of rows"
            check_indices(codes.ravel(), "rows", below=n, dtypes=("int64",))
            end = self.row_codes_.size
            check_pointers(starts, own, end=end, size=n + 1, dtypes=("int64",))
            check_indices(
                self.row_codes_, own, below=n_classes, dtypes=("int64",), rising_within=starts
            )
            return  # an indicator may have a label without rows
        if not codes.size or codes.min() < 0 or codes.max() >= n_classes:
            raise ModelFileError("its rows have labels that do not exist")
        if np.bincount(codes.ravel(), minlength=n_classes).min() == 0:
            raise ModelFileError("it has labels without a row")

    def _check_spaces(self) -> None:
        counts, features = self._n_features, self._features
        d = self.n_features_in_
        if counts.shape != self.sizes_.shape or counts.dtype != np.int64:
            raise ModelFileError("its parts have no features")
        if counts.min() < 0 or counts.max() > d or counts.sum() != features.size:
            raise ModelFileError("its parts do not have the features that they claim")
        pointers = np.append(0, np.cumsum(counts))
        check_indices(features, "features", below=d, dtypes=("int32",), rising_within=pointers)
        maps, points = self._maps, self._points
        if maps.ndim != 2 or maps.dtype != np.float16 or points.dtype != np.float32:
            raise ModelFileError("its maps or points have the wrong type")
        n_groups = int(_n_groups(self.sizes_).sum())
        if points.ndim != 2 or len(points) != n_groups or points.shape[1] % LANES:
            raise ModelFileError("its points do not fit its rows")
        dim = points.shape[1] // LANES
        if not dim or maps.shape != (features.size, padded_width(dim)):
            raise ModelFileError("its maps do not fit its features and points")


def _n_groups(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Groups of LANES points that hold so many."""
    return -(-sizes // LANES)


def _bounds(counts: NDArray[np.int64], learner: int, part: int) -> tuple[int, int]:
    """Where the items of a part begin and end, if parts have so many items one after another."""
    at = learner * counts.shape[1] + part
    first = int(counts.ravel()[:at].sum())
    return first, first + int(counts[learner, part])


def _chosen(X: sp.csr_array, weights: NDArray[np.float32], exists: NDArray) -> NDArray[np.int64]:
    """For each learner the part of each row, among those that exist; (learners, rows)."""
    scores = (X @ weights).reshape(X.shape[0], *exists.shape)
    return np.where(exists, scores, -np.inf).argmax(axis=2).T


def _learn_part(samples: Samples, settings: MapSettings, rng: np.random.Generator) -> _Part:
    X = samples.X
    # Only features that occur get a vector.
    features, places = np.unique(X.indices, return_inverse=True)
    local = sp.csr_array(
        (X.data, places.astype(np.int32), X.indptr), shape=(X.shape[0], max(1, features.size))
    )
    maps = _halved(learn_map(samples._replace(X=local), settings, rng)[: features.size])
    features = features.astype(np.int32)
    # New rows are mapped by the rounded numbers, so the old ones are too.
    points = _embedded(X, np.arange(X.shape[0]), features, 0, features.size, maps)
    return _Part(features, maps, _in_lanes(points[:, : settings.dim]))


def _halved(maps: NDArray[np.float32]) -> NDArray[np.float16]:
    """Maps in half precision; their size, which no cosine depends on, is chosen to suit it."""
    largest = np.abs(maps).max(initial=0)
    if not np.isfinite(largest):
        raise LocoleError("the maps have become infinite: take a smaller learning_rate.")
    return (maps / (largest if largest > 0 else 1)).astype(np.float16)


def _embedded(
    X: sp.csr_array, rows: NDArray, features: NDArray, first: int, last: int, maps: NDArray
) -> NDArray[np.float32]:
    out = np.empty((rows.size, maps.shape[1]), dtype=np.float32)
    fill_embeddings(
        Csr.of(X), rows, features, first, last,
        maps.view(np.uint16).reshape(-1), maps.shape[1], out.reshape(-1),
    )  # fmt: skip
    return out


def _in_lanes(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """From (n, dim) to (groups, dim · LANES), as `find_nearest` reads them."""
    n, dim = points.shape
    lanes = np.zeros((-(-n // LANES) * LANES, dim), dtype=np.float32)
    lanes[:n] = points
    return lanes.reshape(-1, LANES, dim).transpose(0, 2, 1).reshape(-1, dim * LANES)
