"""Settings of the softmax's descent, checked once."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np

from locole.exceptions import LocoleError

__all__ = ["STARTS", "Settings", "checked"]

#: Where the weights of the softmax may start.
STARTS = ("zeros", "elastic_net")

# Names of whole numbers with the least value, and of numbers with the bound that they stay below.
_COUNTS = {"epochs": 1, "batch_size": 1, "patience": 1}
_NUMBERS = {
    "learning_rate": np.inf,
    "l1": np.inf,
    "l2": np.inf,
    "prior": np.inf,
    "label_smoothing": 1.0,
    "validation_fraction": 1.0,
}


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
    learn_tau: bool = False
    averaging: float = 0.0
    validation_fraction: float = 0.0
    patience: int = 3
    random_state: int = 0
    n_jobs: int | None = None
    verbose: int = 0


def checked(model: Any) -> Settings:
    """Settings out of the parameters of a `SoftmaxRegressor`."""
    for name, least in _COUNTS.items():
        value = getattr(model, name)
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
            raise LocoleError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    for name, bound in _NUMBERS.items():
        value = getattr(model, name)
        if not isinstance(value, numbers.Real) or not 0 <= float(value) < np.inf:
            raise LocoleError(f"{name} must be a number of at least 0, not {value!r}.")
        if float(value) >= bound:
            raise LocoleError(f"{name} must be below 1, not {value!r}: it is a part of the whole.")
    if not isinstance(model.averaging, numbers.Real) or not 0 <= float(model.averaging) <= 1:
        raise LocoleError(f"averaging must be a number between 0 and 1, not {model.averaging!r}.")
    if float(model.averaging) > 0 and float(model.l1) > 0:
        raise LocoleError("averaging undoes the zeros of l1: set one of the two to 0.")
    if not isinstance(model.learn_tau, bool | np.bool_):
        raise LocoleError(f"learn_tau must be True or False, not {model.learn_tau!r}.")
    if model.start not in STARTS:
        raise LocoleError(f"unknown start {model.start!r}: take one of {', '.join(STARTS)}.")
    return Settings(**{name: getattr(model, name) for name in Settings._fields})
