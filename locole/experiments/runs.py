"""What a run is: one method on one data set with one seed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from locole.experiments.records import IDENTITY, identity

__all__ = ["Run", "compact"]


@dataclass(frozen=True)
class Run:
    """One method on one data set with one seed; equal runs give equal figures.

    Attributes
    ----------
    experiment : str
        The spec's name.
    data : str
        Name of the data set; empty for pictures of vectors.
    data_options : str
        What is taken of it: a compact JSON object, or empty.
    method, settings : str
        Name in ``locole.methods.METHODS``, and parameters as a compact JSON object or empty.
    embedding : str
        Family of vectors; empty for baselines.
    dim : int or None
        Dimension of the vectors; None for baselines.
    seed : int
        Seed of everything random in the run.
    quick : bool
        Whether it is a rehearsal on little data.
    engine : str
        Where the fit runs: "threads", or "ray".
    time_limit_s : float
        Seconds that the run may take, from its start to its end; no part of what it is.

    Examples
    --------
    >>> run = Run("table2", "cve_product", "elastic_net", embedding="nelson", dim=509, seed=1)
    >>> print(run)
    cve_product elastic_net nelson-509 seed 1
    """

    experiment: str
    data: str
    method: str
    settings: str = ""
    embedding: str = ""
    dim: int | None = None
    seed: int = 0
    quick: bool = False
    engine: str = "threads"
    data_options: str = ""
    time_limit_s: float = field(default=600.0, compare=False)

    @property
    def key(self) -> tuple[Any, ...]:
        """Identity of the run's record."""
        return identity(self.record())

    def record(self) -> dict[str, Any]:
        """What the run's record says before the outcome is known."""
        return {key: getattr(self, key) for key in IDENTITY}

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings."""
        return json.loads(self.settings) if self.settings else {}

    @property
    def options(self) -> dict[str, Any]:
        """The options of the data."""
        return json.loads(self.data_options) if self.data_options else {}

    @property
    def vectors(self) -> str:
        """Family and dim, such as ``nelson-509``."""
        return self.embedding if self.dim is None else f"{self.embedding}-{self.dim}"

    @property
    def title(self) -> str:
        """Method with its settings and where it runs."""
        words = [self.method]
        words += [f"{name}={value}" for name, value in self.parameters.items()]
        return " ".join(words + ([f"on {self.engine}"] if self.engine != "threads" else []))

    def __str__(self) -> str:
        return " ".join(filter(None, (self.data, self.title, self.vectors, f"seed {self.seed}")))


def compact(options: Mapping[str, Any]) -> str:
    """One text for equal options, empty if there are none.

    Examples
    --------
    >>> compact({"max_rows": 1000, "l2": 0.5}), compact({})
    ('{"l2":0.5,"max_rows":1000}', '')
    """
    return json.dumps(options, sort_keys=True, separators=(",", ":")) if options else ""
