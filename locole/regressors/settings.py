"""Settings of the softmax's descent."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Settings"]


class Settings(NamedTuple):
    """What `Descent` goes by; see `SoftmaxRegressor`, whose parameters they are."""

    epochs: int
    learning_rate: float
    batch_size: int
    l1: float = 0.0
    l2: float = 0.0
    label_smoothing: float = 0.0
    prior: float = 0.5
    n_sampled: int | None = None
    validation_fraction: float = 0.0
    patience: int = 3
    random_state: int = 0
    n_jobs: int | None = None
    verbose: int = 0
