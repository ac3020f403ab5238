"""Which decoder for which embedding, and the public `decode`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locole.decoders.argmax import ArgmaxDecoder
from locole.decoders.base import Codebook, Decoder
from locole.decoders.candidates import CandidateDecoder
from locole.decoders.dense import DenseDecoder
from locole.decoders.exact_ranking import decode_block
from locole.decoders.fft import FourierDecoder
from locole.decoders.fwht import WalshHadamardDecoder
from locole.decoders.gather import GatherDecoder
from locole.exceptions import LocoleError
from locole.io import saved_as
from locole.parallel.blocks import map_blocks

__all__ = ["DECODERS", "checked_k", "checked_points", "choose_decoder", "decode", "recall"]

DECODERS: dict[str, type[Decoder]] = {
    kind.name: kind
    for kind in (
        DenseDecoder,
        WalshHadamardDecoder,
        FourierDecoder,
        GatherDecoder,
        ArgmaxDecoder,
        CandidateDecoder,
    )
}

for _name, _decoder in DECODERS.items():
    saved_as(f"decoder.{_name}")(_decoder)


def choose_decoder(embedding: Codebook, decoder: str | Decoder = "auto") -> Decoder:
    """Return the decoder of that name; ``"auto"`` is the fastest exact one for the embedding.

    Parameters
    ----------
    embedding : Embedding
        Where the labels' vectors are.
    decoder : str or Decoder
        Name of a decoder, or one that is returned if it fits.

    Returns
    -------
    Decoder
        The decoder.

    Examples
    --------
    >>> from locole.embeddings import Kerdock, Rademacher
    >>> choose_decoder(Kerdock(10_000, dim=256)).name, choose_decoder(Rademacher(9, dim=8)).name
    ('fwht', 'dense')
    """
    if isinstance(decoder, Decoder):
        chosen = decoder
    elif decoder == "auto":
        fast = [d for d in DECODERS.values() if d.structure is not None and d.exhaustive]
        chosen = next((d() for d in fast if d.structure == embedding.structure), DenseDecoder())
    elif decoder in DECODERS:
        chosen = DECODERS[decoder]()
    else:
        raise LocoleError(f"unknown decoder {decoder!r}: take one of {', '.join(DECODERS)}, auto.")
    if not chosen.fits(embedding):
        name = type(embedding).__name__
        raise LocoleError(f"decoder {chosen.name!r} cannot decode {name}: take 'auto' or 'dense'.")
    return chosen


def decode(
    embedding: Codebook,
    Z: ArrayLike,
    *,
    k: int = 1,
    decoder: str | Decoder = "auto",
    n_jobs: int | None = None,
) -> tuple[NDArray[np.int64], NDArray]:
    """Labels whose vectors are nearest to the points Z.

    All vectors have unit length, so nearest means largest ``Re⟨z, g_i⟩``, the *score*. The answer is
    that of brute force in exact arithmetic for every decoder: scores within ``2^-40 ‖z‖`` of each
    other are ties, and ties go to the smaller label.

    Parameters
    ----------
    embedding : Embedding
        Where the labels' vectors are.
    Z : array of shape (rows, real_dim)
        Points in the real view, float32 or float64.
    k : int
        How many labels to return for each point.
    decoder : str or Decoder
        auto, dense, fwht, fft, gather, argmax, or candidates, which is not exact.
    n_jobs : int, optional
        Threads; −1 for all cores. The answer does not depend on it.

    Returns
    -------
    codes : int64 array of shape (rows, k)
        Best label first.
    scores : array of shape (rows, k)
        Their scores, in the precision of Z.

    Examples
    --------
    >>> from locole.embeddings import Kerdock
    >>> embedding = Kerdock(10_000, dim=256)
    >>> codes, scores = decode(embedding, embedding.real_rows([7, 9_999]), k=1)
    >>> codes.ravel(), scores.ravel()
    (array([   7, 9999]), array([1., 1.], dtype=float32))
    """
    points = checked_points(Z, embedding.real_dim)
    k = checked_k(k, embedding.n_classes)
    chosen = choose_decoder(embedding, decoder)

    def one_block(rows: slice) -> tuple[NDArray, NDArray]:
        codes, scores = decode_block(embedding, points[rows], k, chosen)
        return codes, scores.astype(points.dtype, copy=False)

    parts = map_blocks(one_block, points.shape[0], block=chosen.block_rows, n_jobs=n_jobs)
    if not parts:
        return np.empty((0, k), dtype=np.int64), np.empty((0, k), dtype=points.dtype)
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def recall(embedding: Codebook, Z: ArrayLike, *, decoder: str | Decoder, k: int = 1) -> float:
    """Fraction of the exact best ``k`` labels that another decoder finds among its best ``k``.

    Parameters
    ----------
    embedding : Embedding
        Where the labels' vectors are.
    Z : array of shape (rows, real_dim)
        Points in the real view.
    decoder : str or Decoder
        The decoder that may miss labels.
    k : int
        Number of labels for each row.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from locole.embeddings import Kerdock
    >>> embedding = Kerdock(2048, dim=64)
    >>> recall(embedding, embedding.real_rows(range(100)), decoder="candidates")
    1.0
    """
    exact, _ = decode(embedding, Z, k=k)
    found, _ = decode(embedding, Z, k=k, decoder=decoder)
    return float((exact[:, :, None] == found[:, None, :]).any(axis=2).mean())


def checked_points(Z: ArrayLike, real_dim: int) -> NDArray:
    """Return points of the real view as an array of floats."""
    points = np.asarray(Z)
    if points.ndim != 2 or points.shape[1] != real_dim:
        raise LocoleError(
            f"Z must have the shape (rows, real_dim) = (rows, {real_dim}), not {points.shape}."
        )
    if points.dtype.kind not in "iuf":
        raise LocoleError("Z must be real: give complex points as [real parts, imaginary parts].")
    if points.dtype not in (np.float32, np.float64):
        points = points.astype(np.float64)
    if not np.isfinite(points).all():
        raise LocoleError("Z contains NaN or infinity: look at the regressor that made it.")
    return np.ascontiguousarray(points)


def checked_k(k: int, n_classes: int) -> int:
    """Return ``k`` if there are so many labels."""
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
        raise LocoleError(f"k must be a whole number of at least 1, not {k!r}.")
    if k > n_classes:
        raise LocoleError(f"k={k} is more than the {n_classes} labels there are: take a smaller k.")
    return int(k)
