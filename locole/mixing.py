"""Points, label profiles and nearest rows together: one score, and how much each counts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize

from locole.decoders import Decoder, all_scores, decode
from locole.neighbours import EXAMINED, Neighbours
from locole.parallel.blocks import one_blas_thread
from locole.profiles import Profiles

__all__ = ["CANDIDATES", "Mixture", "choose_weights", "point_scores", "repeated"]

#: Candidates taken from each side.
CANDIDATES = 32
# Rows whose candidates' vectors exist at a time.
_ROWS = 32
# Of weights of either sign, beside the mean loss of a row.
_PENALTY = 1e-3

Codes = NDArray[np.int64]


def point_scores(embedding: Any, Z: NDArray, codes: Codes) -> NDArray[np.float64]:
    """``Re⟨z_i, g⟩`` for the labels ``codes[i]`` of each row."""
    out = np.empty(codes.shape)
    for first in range(0, len(Z), _ROWS):
        rows = slice(first, first + _ROWS)
        some = codes[rows]
        G = embedding.real_rows(some.ravel()).reshape(*some.shape, -1)
        out[rows] = np.einsum("ikj,ij->ik", G, Z[rows])
    return out


class Mixture(NamedTuple):
    """All that scores labels: points, label profiles, and the nearest training rows."""

    embedding: Any
    decoder: Decoder
    profiles: Profiles | None = None
    weight: float = 0.0
    """Of the profiles, beside points."""
    neighbours: Neighbours | None = None

    def best(self, X: Any, Z: NDArray, k: int) -> tuple[Codes, NDArray[np.float64]]:
        """Codes of the best k labels of rows X with points Z, best first, and their scores."""
        if self.neighbours is None:
            return self._best(X, Z, k)
        wanted = min(max(k, EXAMINED), self.embedding.n_classes)
        codes, scores = self.neighbours.rescored(sp.csr_array(X), *self._best(X, Z, wanted))
        return codes[:, :k], scores[:, :k]

    def every(self, X: Any, Z: NDArray) -> NDArray[np.float64]:
        """Scores of all labels."""
        scores = all_scores(self.embedding, Z, self.decoder)
        if self.profiles is not None:
            codes = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
            scores += self.weight * self.profiles.scan(sp.csr_array(X), 1, found=codes).at
        if self.neighbours is None:
            return scores
        order = np.argsort(-scores, axis=1, kind="stable")
        found = order, np.take_along_axis(scores, order, 1)
        codes, new = self.neighbours.rescored(sp.csr_array(X), *found)
        np.put_along_axis(scores, codes, new, 1)
        return scores

    def _best(self, X: Any, Z: NDArray, k: int) -> tuple[Codes, NDArray[np.float64]]:
        """Best labels by ``Re⟨z, g⟩ + weight · profile`` among the candidates of both.

        A label can be missed only if it is neither among the best 32 (or 2k) by its vector nor among
        those by its profile.
        """
        embedding, profiles, weight = self.embedding, self.profiles, self.weight
        if profiles is None:
            return decode(embedding, Z, k=k, decoder=self.decoder)
        X = sp.csr_array(X)
        if not Z.any():
            # All labels tie by their vectors: the profiles decide alone.
            scan = profiles.scan(X, k)
            return scan.codes, weight * scan.scores.astype(np.float64)
        wanted = min(max(2 * k, CANDIDATES), embedding.n_classes)
        codes, scores = decode(embedding, Z, k=wanted, decoder=self.decoder)
        scan = profiles.scan(X, wanted, found=codes)
        more = point_scores(embedding, Z, scan.codes) + weight * scan.scores
        codes = np.hstack([codes, scan.codes])
        scores = np.hstack([scores + weight * scan.at, more])
        scores[repeated(codes)] = -np.inf
        order = np.lexsort((codes, -scores), axis=1)[:, :k]
        return np.take_along_axis(codes, order, 1), np.take_along_axis(scores, order, 1)


def repeated(codes: Codes) -> NDArray[np.bool_]:
    """Which candidates of a row stand further left in it as well."""
    order = np.argsort(codes, axis=1, kind="stable")
    ordered = np.take_along_axis(codes, order, 1)
    again = np.zeros(codes.shape, dtype=bool)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], 1)
    return again


def choose_weights(
    scores: NDArray[np.float64],
    right: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    sample_weight: NDArray | None = None,
    *,
    signed: int = 0,
) -> NDArray[np.float64]:
    """Non-negative weights under which the right candidates are most likely.

    Minimises the mean of ``−log softmax(scores @ weights)[right]`` over the rows that have their label
    among the candidates, a convex problem; the weighted scores are then calibrated logits.

    Parameters
    ----------
    scores : array of shape (rows, candidates, sources)
    right, valid : arrays of shape (rows, candidates)
        Which candidate is the label; which count at all.
    sample_weight : array of shape (rows,), optional
    signed : int
        How many sources, the last, may have negative weights; they are held back by a slight penalty,
        because there may be few rows to which they make a difference.
    """
    use = (right & valid).any(axis=1)
    scores, right, valid = scores[use], (right & valid)[use], valid[use]
    sure = scores.shape[2] - signed
    if not use.any():
        return np.repeat([1.0, 0.0], [sure, signed])
    share = np.ones(len(scores)) if sample_weight is None else sample_weight[use]
    share = share / share.sum()
    spread = scores[valid].std(axis=0)
    # A source that says the same of every candidate says nothing.
    silent = spread <= 1e-9 * np.abs(scores[valid]).max(axis=0)
    spread = np.where(silent, np.inf, spread)
    flat = (scores / spread).reshape(-1, spread.size)
    penalty = np.repeat([0.0, _PENALTY], [sure, signed])

    def objective(weights: NDArray) -> tuple[float, NDArray]:
        logits = np.where(valid, (flat @ weights).reshape(valid.shape), -np.inf)
        logits -= logits.max(axis=1, keepdims=True)
        odds = np.exp(logits)
        p = odds / odds.sum(axis=1, keepdims=True)
        loss = -share @ np.log(np.maximum(p[right], 1e-300))
        slope = (share[:, None] * (p - right)).ravel() @ flat
        return loss + penalty @ weights**2 / 2, slope + penalty * weights

    start = np.repeat([0.5, 0.0], [sure, signed])
    bounds = [(0.0, None)] * sure + [(None, None)] * signed
    with one_blas_thread():
        found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return found.x / spread
