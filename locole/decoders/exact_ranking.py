"""From fast float32 scans to the exact answer, ties included; the same for every decoder.

A scan errs by at most ε‖z‖. Labels whose scanned score lies within 2ε‖z‖ of the k-th best are scored
again in double precision against their own vectors; if the scan's list may have missed one, all
labels are. Scores that differ by no more than 2^-40 ‖z‖, far above double precision's own error and
far below any difference that data can carry, count as equal, and the smaller label comes first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from locole.decoders.base import Best, Codebook, Decoder

__all__ = ["all_scores", "decode_block", "near_labels"]

#: Scores closer than this fraction of ‖z‖ are ties.
TIE = 2.0**-40
# List entries beyond k that let the scan show that nothing else comes near.
_SPARE = 8
# Lists longer than this are slower to keep than to sort.
_LONGEST_LIST = 256
_BLOCK_BYTES = 32 << 20


def decode_block(
    embedding: Codebook, Z: NDArray, k: int, decoder: Decoder
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Best ``k`` labels of each row of Z and their scores, best first."""
    unit, exponent = _scaled(Z)
    size = k + _SPARE
    if decoder.exhaustive and (size >= embedding.n_classes or size > _LONGEST_LIST):
        codes, scores = _rank_all(embedding, unit, k, decoder)
    else:
        codes, scores = _rank_scanned(embedding, unit, k, decoder)
    with np.errstate(over="ignore"):  # a score beyond the largest float is infinite
        return codes, np.ldexp(scores, exponent[:, None])


def near_labels(embedding: Codebook, Z: NDArray, k: int, decoder: Decoder) -> NDArray[np.int64]:
    """Best ``k`` labels of each row of Z as the scan finds them: those at the end may err.

    For callers that score them again; a label that is missing repeats the first.

    Parameters
    ----------
    embedding : Embedding
        Where the labels' vectors are.
    Z : array of shape (rows, real_dim)
        Points in the real view.
    k : int
        Number of labels for each row.
    decoder : Decoder
        One that fits the embedding.

    Returns
    -------
    array of shape (rows, k)
        Codes of labels, best first.

    Examples
    --------
    >>> from locole.decoders import choose_decoder
    >>> from locole.embeddings import Kerdock
    >>> embedding = Kerdock(64, dim=16)
    >>> near_labels(embedding, embedding.real_rows([3]), 2, choose_decoder(embedding))[:, 0]
    array([3])
    """
    best = Best.empty(len(Z), k)
    decoder.scan(embedding, np.ascontiguousarray(Z, dtype=np.float32), best)
    return np.where(best.codes < 0, best.codes[:, :1], best.codes)


def all_scores(embedding: Codebook, Z: NDArray, decoder: Decoder) -> NDArray[np.float64]:
    """Scores of all labels, shape (rows, n_classes); labels tied with the best share its score.

    Parameters
    ----------
    embedding : Embedding
        Where the labels' vectors are.
    Z : array of shape (rows, real_dim)
        Points in the real view.
    decoder : Decoder
        One that fits the embedding.

    Returns
    -------
    array of shape (rows, n_classes)
        Scores ``Re⟨z, g_i⟩``.

    Examples
    --------
    >>> from locole.decoders import choose_decoder
    >>> from locole.embeddings import Kerdock
    >>> embedding = Kerdock(64, dim=16)
    >>> scores = all_scores(embedding, embedding.real_rows([3]), choose_decoder(embedding))
    >>> scores.shape, int(scores.argmax())
    ((1, 64), 3)
    """
    Z = Z.astype(np.float64, copy=False)
    scores = decoder.scores(embedding, Z)
    best = scores.max(axis=1, keepdims=True)
    tied = best - scores <= TIE * np.linalg.norm(Z, axis=1, keepdims=True)
    return np.where(tied, best, scores)


def _scaled(Z: NDArray) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Scale rows by powers of two (which is exact) so that their largest entry is near 1."""
    largest = np.maximum(Z.max(axis=1, initial=0.0), -Z.min(axis=1, initial=0.0))
    _, exponent = np.frexp(largest.astype(np.float64))
    if np.abs(exponent).max(initial=0) > 1000:  # the power of two itself would overflow
        return np.ldexp(Z.astype(np.float64), -exponent[:, None]), exponent
    power = np.ldexp(1.0, -exponent)
    return np.multiply(Z, power[:, None], dtype=np.float64), exponent


def _rank_scanned(
    embedding: Codebook, Z: NDArray[np.float64], k: int, decoder: Decoder
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    best = Best.empty(Z.shape[0], k + _SPARE)
    decoder.scan(embedding, Z.astype(np.float32), best)
    norms = np.sqrt(np.einsum("ij,ij->i", Z, Z))
    doubt = (2 * decoder.scan_error(embedding) + TIE) * norms
    near = best.scores >= (best.scores[:, k - 1].astype(np.float64) - doubt)[:, None]
    near &= best.codes >= 0
    scores = _exact_scores(embedding, Z, best.codes, near)
    codes, scores = _ranked(scores, best.codes, TIE * norms)
    codes, scores = codes[:, :k], scores[:, :k]
    # The list's last entry is still near: there may be more such labels than it holds. A shortlist
    # decoder may miss labels, but not leave places empty.
    unsure = np.flatnonzero(near[:, -1] if decoder.exhaustive else (codes < 0).any(axis=1))
    if unsure.size:
        codes[unsure], scores[unsure] = _rank_all(embedding, Z[unsure], k, decoder)
    return codes, scores


def _exact_scores(
    embedding: Codebook, Z: NDArray[np.float64], codes: NDArray[np.int64], wanted: NDArray
) -> NDArray[np.float64]:
    """Products in double precision where wanted, −inf elsewhere."""
    out = np.full(codes.shape, -np.inf)
    rows, places = np.nonzero(wanted)
    step = max(1, _BLOCK_BYTES // (16 * embedding.real_dim))
    for start in range(0, rows.size, step):
        r, p = rows[start : start + step], places[start : start + step]
        vectors = embedding.real_rows(codes[r, p], np.float64)
        out[r, p] = np.einsum("ij,ij->i", Z[r], vectors)
    return out


def _rank_all(
    embedding: Codebook, Z: NDArray[np.float64], k: int, decoder: Decoder
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Score and sort every label, a few rows at a time."""
    n = embedding.n_classes
    codes = np.empty((Z.shape[0], k), dtype=np.int64)
    scores = np.empty((Z.shape[0], k))
    # Columns without a label are scored, too, by all who rely on a structure.
    n_scored = n if embedding.structure is None else embedding.n_columns
    step = max(1, _BLOCK_BYTES // (48 * n_scored))
    for start in range(0, Z.shape[0], step):
        part = Z[start : start + step]
        exact = decoder.scores(embedding, part)
        tie = TIE * np.linalg.norm(part, axis=1)
        labels = np.broadcast_to(np.arange(n), exact.shape)
        ranked_codes, ranked_scores = _ranked(exact, labels, tie)
        codes[start : start + step] = ranked_codes[:, :k]
        scores[start : start + step] = ranked_scores[:, :k]
    return codes, scores


def _ranked(
    scores: NDArray[np.float64], codes: NDArray[np.int64], tie: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Sort each row by falling score; runs of ties by rising label, all with the run's best score."""
    order = np.argsort(-scores, axis=1, kind="stable")
    scores = np.take_along_axis(scores, order, axis=1)
    codes = np.take_along_axis(codes, order, axis=1)
    new_run = np.ones(scores.shape, dtype=bool)
    with np.errstate(invalid="ignore"):  # −inf − (−inf): entries that nobody asked for
        new_run[:, 1:] = ~(scores[:, :-1] - scores[:, 1:] <= tie[:, None])
    run = np.cumsum(new_run, axis=1)
    codes = np.take_along_axis(codes, np.lexsort((codes, run), axis=1), axis=1)
    starts = np.maximum.accumulate(np.where(new_run, np.arange(scores.shape[1]), 0), axis=1)
    return codes, np.take_along_axis(scores, starts, axis=1)
