"""The momentum that Adamax gives to weights without a gradient, in closed form.

Let a row of weights have its last gradient in step t, and moments m and u then. In the idle steps
s = t+1 … T dense Adamax goes on: m ← β1 m, u ← max(β2 u, eps), w ← w − c_s m/u, with
c_s = rate_s / (1 − β1^s). With j = s − t their sum is

    w ← w − m/u · S,   S = Σ_s c_s (β1/β2)^j,       as long as β2^j u ≥ eps,
    w ← w − m/eps · T, T = Σ_s c_s β1^j,            where u is eps from the start.

In each idle step 1/u is the smaller of both, so the sum is at most the smaller of both, and equal to
it except for gradients below 1e-9, where both differ by a hundredth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["BETAS", "EPS", "IdleMomentum"]

#: The defaults of torch.optim.Adamax.
BETAS = (0.9, 0.999)
EPS = 1e-8
# Steps after which a momentum has vanished: (β1/β2)^400 is 1e-18.
_MEMORY = 400


class IdleMomentum:
    """Sums S and T for rows by their last step, whatever the rates are.

    Parameters
    ----------
    n_steps : int
        Steps that there will be.

    Examples
    --------
    >>> import numpy as np
    >>> idle = IdleMomentum(10)
    >>> paces = [idle.advance(0.1) for _ in range(3)]
    >>> missed = idle.since(np.array([3, 2, 0]))[:, 0]
    >>> by_hand = [0, paces[2] * 0.9 / 0.999]
    >>> bool(np.allclose(missed[:2], by_hand))
    True
    """

    def __init__(self, n_steps: int) -> None:
        self.done = 0
        #: Row t: S and T of a row whose last step was t, up to step `done`.
        self.sums = np.zeros((n_steps + 1, 2))
        powers = np.arange(_MEMORY, 0, -1)[:, None]
        self._falling = np.array([BETAS[0] / BETAS[1], BETAS[0]]) ** powers

    def advance(self, rate: float) -> float:
        """Go on by one step with this learning rate; returns its c."""
        self.done += 1
        pace = rate / (1 - BETAS[0] ** self.done)
        first = max(0, self.done - _MEMORY)
        self.sums[first : self.done] += pace * self._falling[_MEMORY - (self.done - first) :]
        return pace

    def since(self, last: NDArray[np.int64]) -> NDArray[np.float32]:
        """S, T/eps, β1^k and β2^k for rows whose last step was ``last``, k steps ago."""
        k = self.done - last
        sums = self.sums[last]
        # Smaller numbers would only be slow.
        fade1 = np.where(k < _MEMORY, BETAS[0] ** np.minimum(k, _MEMORY), 0.0)
        columns = (sums[:, 0], sums[:, 1] / EPS, fade1, BETAS[1] ** k)
        return np.stack(columns, axis=1).astype(np.float32)

    def restore(self, sums: NDArray[np.float64]) -> None:
        """Go back to where ``sums[: done + 1]`` was what is given."""
        self.done = len(sums) - 1
        self.sums[:] = 0
        self.sums[: len(sums)] = sums
