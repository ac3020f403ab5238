"""The momentum that Adamax gives to weights without a gradient, in closed form.

Let a row of weights have its last gradient in step t, and moments m and u then. In the idle steps
s = t+1 … T dense Adamax goes on: m ← β1 m, u ← max(β2 u, eps), w ← w − c_s m/u, with
c_s = rate_s / (1 − β1^s). With j = s − t their sum is

    w ← w − m/u · S,   S = Σ_s c_s (β1/β2)^j,       as long as β2^j u ≥ eps,
    w ← w − m/eps · R, R = Σ_s c_s β1^j,            where u is eps from the start.

In each idle step 1/u is the smaller of both, so the sum is at most the smaller of both, and equal to
it except for gradients below 1e-9, where both differ by a hundredth.

The rates are known beforehand, so S and R may be taken to any step, also to one that is yet to
come: with A_t = Σ_{s>t} c_s (β1/β2)^{s−t} over all steps that there will be, S = A_t −
(β1/β2)^{T−t} A_T.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["BETAS", "EPS", "FADED", "IdleMomentum"]

#: The defaults of torch.optim.Adamax.
BETAS = (0.9, 0.999)
EPS = 1e-8
#: Idle steps after which a momentum, of which 8e-5 is left, may be given to the weights and forgotten.
FADED = 90
_FALLS = np.array([BETAS[0] / BETAS[1], BETAS[0]])
# Steps after which nothing is left of a momentum: (β1/β2)^400 is 1e-18, and smaller numbers are slow.
_VANISHED = 400


class IdleMomentum:
    """Sums S and R between any two steps, whatever the rates are.

    Parameters
    ----------
    rates : array of shape (n_steps,)
        Learning rates of all steps.

    Attributes
    ----------
    done : int
        Steps so far.
    n_steps : int
        Steps that there will be.

    Examples
    --------
    >>> idle = IdleMomentum([0.1, 0.1, 0.05])
    >>> paces = [idle.advance() for _ in range(3)]
    >>> missed = idle.between([3, 2, 1], 3)[:, 0]
    >>> fall = 0.9 / 0.999
    >>> by_hand = [0, paces[2] * fall, paces[1] * fall + paces[2] * fall**2]
    >>> bool(np.allclose(missed, by_hand))
    True
    """

    def __init__(self, rates: ArrayLike) -> None:
        self.done = 0
        rates = np.asarray(rates, dtype=np.float64)
        self.n_steps = rates.size
        self._paces = rates / (1 - BETAS[0] ** np.arange(1, rates.size + 1))
        #: Row t: S and R from step t to the last.
        self._left = np.stack([_to_come(self._paces, fall) for fall in _FALLS], axis=1)
        #: Row k: (β1/β2)^k, β1^k and β2^k.
        k = np.arange(rates.size + 1)[:, None]
        falls = np.where(k < _VANISHED, _FALLS**k, 0.0)
        self._powers = np.concatenate([falls, BETAS[1] ** k], axis=1)

    def advance(self) -> float:
        """Go on by one step; returns its c."""
        self.done += 1
        return float(self._paces[self.done - 1])

    def between(self, first: ArrayLike, last: ArrayLike) -> NDArray[np.float32]:
        """S, R/eps, β1^k and β2^k from the step ``first`` of each row to its ``last``, k steps on."""
        first, last = np.broadcast_arrays(np.atleast_1d(first), last)
        powers = self._powers[last - first]
        sums = self._left[first] - powers[:, :2] * self._left[last]
        return np.stack((sums[:, 0], sums[:, 1] / EPS, *powers[:, 1:].T), axis=1, dtype=np.float32)


def _to_come(paces: NDArray[np.float64], fall: float) -> list[float]:
    """``Σ_{s>t} c_s fall^{s−t}`` for each t."""
    sums = accumulate(paces[::-1].tolist(), lambda left, c: fall * (c + left), initial=0.0)
    return list(sums)[::-1]
