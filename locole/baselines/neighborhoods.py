"""What AnnexML learns: parts of rows with like labels, and maps in which like labels are near."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.kernels.annexml import AdaGrad, Balance, descend, learn_parts
from locole.kernels.csr import Csr
from locole.kernels.product import NO_SCALES, add_dense_product
from locole.kernels.simd import padded_width
from locole.samples import Samples

__all__ = [
    "MapSettings",
    "cosine_softmax",
    "draw_labels",
    "draw_neighbors",
    "learn_map",
    "learn_partition",
]

# Rows over which the loads of parts are averaged.
_LOAD_ROWS = 1000
# Starting vectors are so many steps long: shorter ones would be forgotten at once, and from longer
# ones it would be far to go.
_START_STEPS = 3.0


def learn_partition(
    samples: Samples,
    n_parts: int,
    *,
    epochs: int,
    learning_rate: float,
    balance: float,
    memory: int,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Weights (n_features, n_parts): a row belongs to the part of its largest score.

    In each visit of a row its part is pulled towards the one that its neighbours, the rows of its
    label, score highest, less ``balance`` times the part's surplus of rows. The first choices are
    made by the balance alone, and the classifier's own scores take over. A row with several labels is
    met as one of another of them in each epoch.
    """
    X = samples.X
    n, d = X.shape
    weights = np.zeros((d, padded_width(n_parts)), dtype=np.float32)
    if n_parts == 1:
        return weights[:, :1].copy()
    n_labels = int(samples.codes.max()) + 1
    squares = np.zeros(d, dtype=np.float32)
    means = np.zeros((n_labels, n_parts), dtype=np.float32)
    seen = np.zeros(n_labels, dtype=np.int64)
    loads = np.full(n_parts, 1 / n_parts)
    scores = np.zeros(weights.shape[1], dtype=np.float32)
    ada = AdaGrad(weights.reshape(-1), squares, np.float32(learning_rate), scores.size)
    sizes = Balance(means, seen, loads, memory, 1 / _LOAD_ROWS, float(balance))
    for _ in range(epochs):
        order = rng.permutation(n)
        learn_parts(Csr.of(X), samples.codes[draw_labels(samples, rng)], order, ada, sizes, scores)
    return weights[:, :n_parts].copy()


class MapSettings(NamedTuple):
    """How a map is learnt; see `locole.baselines.AnnexML`."""

    dim: int
    epochs: int
    learning_rate: float
    gamma: float
    batch_size: int


def learn_map(
    samples: Samples, settings: MapSettings, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Vectors of the features, (n_features, dim padded by zeros), by AdaGrad on `cosine_softmax`.

    Rows are met in batches, each with a neighbour; the neighbours of the others serve as rivals, unless
    they have the label that makes the row and its neighbour neighbours.
    """
    X = samples.X
    n, d = X.shape
    W = np.zeros((d, padded_width(settings.dim)), dtype=np.float32)
    length = _START_STEPS * settings.learning_rate / np.sqrt(settings.dim)
    W[:, : settings.dim] = length * rng.standard_normal((d, settings.dim), dtype=np.float32)
    squares = np.zeros(d, dtype=np.float32)
    ada = AdaGrad(W.reshape(-1), squares, np.float32(settings.learning_rate), W.shape[1])
    for _ in range(settings.epochs):
        order, drawn = rng.permutation(n), draw_labels(samples, rng)
        neighbors, codes = draw_neighbors(samples, drawn, rng), samples.codes[drawn]
        for start in range(0, n, settings.batch_size):
            rows = order[start : start + settings.batch_size]
            others = neighbors[rows]
            A, B = _points(X, rows, W), _points(X, others, W)
            asked = np.broadcast_to(codes[rows], (rows.size, rows.size))
            same = samples.has(asked, others).T
            _, slope_a, slope_b = cosine_softmax(A, B, same, settings.gamma)
            for which, slope in ((rows, slope_a), (others, slope_b)):
                descend(Csr.of(X), which, slope.reshape(-1), ada)
    return W


def _points(X: sp.csr_array, rows: NDArray, W: NDArray[np.float32]) -> NDArray[np.float32]:
    Z = np.zeros((rows.size, W.shape[1]), dtype=np.float32)
    width = W.shape[1]
    add_dense_product(Csr.of(X), rows, W.reshape(-1), NO_SCALES, width, 0, width, Z.reshape(-1))
    return Z


def draw_labels(samples: Samples, rng: np.random.Generator) -> NDArray[np.int64]:
    """For each row the place in ``samples.codes`` of one of its labels, drawn at random."""
    if samples.starts is None:
        return np.arange(samples.n_rows)
    among = rng.random(samples.n_rows) * samples.n_labels
    return samples.starts[:-1] + among.astype(np.int64)


def draw_neighbors(
    samples: Samples, drawn: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """For each row another row of its drawn label, drawn at random; itself where there is none.

    Label vectors of single labels are equal or orthogonal, so all rows of a label are neighbours.

    Parameters
    ----------
    samples : Samples
    drawn : array of shape (n_rows,)
        What `draw_labels` has found.
    rng : Generator
    """
    codes = samples.codes
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    first = np.cumsum(counts) - counts
    place = np.empty(codes.size, dtype=np.int64)
    place[order] = np.arange(codes.size)
    start, among = first[codes[drawn]], counts[codes[drawn]]
    ahead = 1 + (rng.random(drawn.size) * (among - 1)).astype(np.int64)
    return samples.owners[order[start + (place[drawn] - start + ahead) % among]]


def cosine_softmax(
    A: NDArray, B: NDArray, same: NDArray[np.bool_], gamma: float
) -> tuple[float, NDArray, NDArray]:
    r"""Loss of points A by their neighbours B, summed over rows, and its gradients by A and B.

    .. math:: -\sum_i \log \frac{e^{\gamma\cos(a_i, b_i)}}
              {\sum_{j: j = i \text{ or } y_j \neq y_i} e^{\gamma\cos(a_i, b_j)}}

    with ``same[i, j]`` for :math:`y_j = y_i`.
    """
    U, a = _unit(A)
    V, b = _unit(B)
    S = U @ V.T
    S *= gamma
    # Other neighbours of the same label are no rivals.
    same = same & ~np.eye(len(same), dtype=bool)
    S[same] = -np.inf
    S -= S.max(axis=1, keepdims=True)
    own = S.diagonal().astype(np.float64)
    np.exp(S, out=S)
    mass = S.sum(axis=1, keepdims=True)
    loss = float(np.log(mass[:, 0]).sum(dtype=np.float64) - own.sum())
    S /= mass
    S[np.diag_indices_from(S)] -= 1
    S *= gamma
    return loss, _tangent(S @ V, U, a), _tangent(S.T @ U, V, b)


def _unit(Z: NDArray) -> tuple[NDArray, NDArray]:
    """Unit rows, and their lengths; zeros stay zeros."""
    length = np.sqrt(np.einsum("ij,ij->i", Z, Z))[:, None]
    length[length == 0] = 1
    return Z / length, length


def _tangent(slope: NDArray, unit: NDArray, length: NDArray) -> NDArray:
    """Gradient by a point from that by its direction: a cosine does not change along the point."""
    slope -= unit * np.einsum("ij,ij->i", slope, unit)[:, None]
    slope /= length
    return np.ascontiguousarray(slope)
