"""Orthogonal matching pursuit: from the sum of several label vectors back to the labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locole.decoders.base import Codebook, Decoder
from locole.decoders.choose import checked_k, checked_points, decode

__all__ = ["pursue"]


def pursue(
    embedding: Codebook,
    Z: ArrayLike,
    *,
    k: int = 1,
    decoder: str | Decoder = "auto",
    n_jobs: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    r"""Labels whose vectors add up to each point, one after the other.

    The first label is the one nearest to the point. Each further one is nearest to what the labels found
    so far leave of it, the residual of a least-squares fit of their vectors:

    .. math:: i_{t+1} = \arg\max_i \mathrm{Re}\langle z - \Pi_t z, g_i \rangle

    with the projection :math:`\Pi_t` on the vectors of the first t. If the point is a sum of k of them,
    all are found if the coherence is below 1/(2k − 1); see `locole.theory.recovered_labels`. For sums
    with equal weights the k largest scores do it too, at a k-th of the cost: compare with `decode`.

    Parameters
    ----------
    embedding, Z, decoder, n_jobs
        As for `decode`.
    k : int
        Labels of each point.

    Returns
    -------
    codes : int64 array of shape (rows, k)
        Labels in the order in which they were found, all different.
    weights : array of shape (rows, k)
        Weights of their vectors in the fit.

    Examples
    --------
    >>> from locole.embeddings import Kerdock
    >>> embedding = Kerdock(10_000, dim=256)
    >>> point = np.array([[1.0, 0.5, 0.25]]) @ embedding.real_rows([7, 400, 9_999])
    >>> codes, weights = pursue(embedding, point, k=3)
    >>> codes, weights.round(3)
    (array([[   7,  400, 9999]]), array([[1.  , 0.5 , 0.25]]))
    """
    points = checked_points(Z, embedding.real_dim).astype(np.float64)
    k = checked_k(k, embedding.n_classes)
    codes = np.empty((len(points), k), dtype=np.int64)
    weights = np.empty((len(points), 0))
    residual = points
    for t in range(k):
        found, _ = decode(embedding, residual, k=t + 1, decoder=decoder, n_jobs=n_jobs)
        # Of t + 1 labels at least one is new; the best new one comes first.
        is_new = ~(found[:, :, None] == codes[:, None, :t]).any(axis=2)
        codes[:, t] = np.take_along_axis(found, is_new.argmax(axis=1)[:, None], 1)[:, 0]
        weights, residual = _fitted(embedding, points, codes[:, : t + 1])
    return codes, weights


def _fitted(
    embedding: Codebook, points: NDArray[np.float64], codes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Least-squares weights of the labels' vectors, and what they leave of the points."""
    G = embedding.real_rows(codes.ravel()).astype(np.float64)
    G = G.reshape(*codes.shape, -1)
    # Vectors may depend on each other, if there are more than dimensions.
    weights = np.linalg.pinv(G @ G.transpose(0, 2, 1), hermitian=True) @ (G @ points[:, :, None])
    return weights[:, :, 0], points - np.einsum("ijk,ij->ik", G, weights[:, :, 0])
