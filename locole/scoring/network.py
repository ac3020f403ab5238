"""A network beside the default model, in which it has to earn its place."""

from __future__ import annotations

from typing import Self

from locole.io import saved_as
from locole.samples import Samples
from locole.scoring.vectors import VectorScorer

__all__ = ["NetworkScorer"]


@saved_as("scorer.network")
class NetworkScorer(VectorScorer):
    """`VectorScorer` of a network, fitted when all others are.

    Validation rows decide about it three times: which epoch's weights are kept, what it weighs, and
    whether it stays. It is left out if the ensemble puts more of them right without it, or if it makes
    their labels hardly more likely. What remains is the ensemble as it is without a network, to the bit.

    Examples
    --------
    >>> from locole.embeddings import OneHot
    >>> from locole.regressors import MLPRegressor
    >>> NetworkScorer({"mlp": MLPRegressor()}, OneHot(3, dim=3)).stage
    3
    """

    name = "network"
    stage = 3

    @property
    def optional_sources(self) -> list[str]:
        """All regressors: those of other scorers are what they have to improve on."""
        return self.sources

    def watching(self, validation: Samples) -> Self:
        """Itself, with validation rows for regressors that stop early."""
        self._validation = validation
        return self

    def sketch(self, samples: Samples) -> None:
        """None: nothing shorter than a fit says what a network is worth."""
