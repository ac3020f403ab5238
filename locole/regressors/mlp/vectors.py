"""Label vectors that are learnt with the network: their losses, and what keeps them apart.

With vectors G of unit length, a point z and its label y,

    squared   ½ ‖z − g_y‖²
    softmax   log Σ_i exp⟨z, g_i⟩ − ⟨z, g_y⟩

The first is smallest where all vectors, and all points, are one: nothing in it asks for labels to be
told apart. What does is the penalty, the label's coherence with all others as a smooth maximum,

    c_y = 1/s · log( 1/(C−1) Σ_{i≠y} exp(s ⟨g_y, g_i⟩) ),

which is between the mean and the largest of ⟨g_y, g_i⟩, and nearer to the largest the larger s is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from locole.regressors.mlp.recipes import Settings

__all__ = ["JointLoss"]

#: s: two labels of the same vector cost 1 − log(C)/s.
SHARPNESS = 32.0

#: ``H @ V.T`` as the network computes it.
Product = Callable[[Any, Any], Any]


class JointLoss:
    """Losses of points and vectors together, as torch's functions of both.

    Parameters
    ----------
    settings : Settings
        Which loss, and the weight of the penalty.
    codes : array of shape (rows,)
        Label of each row.
    weight : array of shape (rows,), optional
        Weight of each row.
    """

    def __init__(
        self,
        settings: Settings,
        codes: NDArray[np.int64],
        weight: NDArray[np.float32] | None = None,
    ) -> None:
        self.settings, self.codes, self.weight = settings, codes, weight

    def losses(self, Z: Any, G: Any, rows: NDArray[np.int64], product: Product) -> Any:
        """Losses of these rows, whose points are Z."""
        codes = torch.from_numpy(self.codes[rows]).to(Z.device)
        if self.settings.loss == "softmax":
            losses = functional.cross_entropy(
                product(Z, G),
                codes,
                reduction="none",
                label_smoothing=self.settings.label_smoothing,
            )
        else:
            losses = (Z - G[codes]).square().sum(dim=1) / 2
        if self.weight is None:
            return losses
        return losses * torch.from_numpy(self.weight[rows]).to(Z.device)

    def penalty(self, G: Any, rows: NDArray[np.int64], product: Product) -> Any:
        """Mean coherence of the labels of these rows with all others, times its weight."""
        if self.settings.penalty == 0 or len(G) < 2:
            return 0.0
        codes = torch.from_numpy(self.codes[rows]).to(G.device)
        scores = SHARPNESS * product(G[codes], G)
        # Every label is coherent with itself.
        scores = scores.scatter(1, codes[:, None], -torch.inf)
        most = torch.logsumexp(scores, dim=1) - math.log(len(G) - 1)
        return self.settings.penalty / SHARPNESS * most.mean()
