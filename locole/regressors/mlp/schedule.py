"""Learning rates, one for each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import LocoleError

__all__ = ["Schedule", "rates"]

Schedule = Literal["constant", "step", "cosine", "linear"]

#: What a step schedule multiplies the rate with.
_STEP = 0.1


def rates(
    schedule: Schedule,
    rate: float,
    *,
    n_epochs: int,
    n_batches: int,
    steps_at: Sequence[int] = (),
    warm_up: float = 0.0,
) -> NDArray[np.float64]:
    """Learning rate of each step.

    Parameters
    ----------
    schedule : {"constant", "step", "cosine", "linear"}
        ``"step"``: a tenth from each epoch of ``steps_at`` on. ``"cosine"`` and ``"linear"``: falling
        to zero, which the step after the last would have.
    rate : float
        The highest rate.
    n_epochs, n_batches : int
        Epochs, and steps in each of them.
    steps_at : sequence of int
        Epochs that are over when the rate falls.
    warm_up : float
        Epochs in which the rate rises from zero; any schedule is multiplied by this rise.

    Examples
    --------
    >>> rates("step", 1.0, n_epochs=3, n_batches=2, steps_at=[2])
    array([1. , 1. , 1. , 1. , 0.1, 0.1])
    >>> rates("linear", 1.0, n_epochs=2, n_batches=2, warm_up=1).round(3)
    array([0.5 , 0.75, 0.5 , 0.25])
    """
    if schedule not in get_args(Schedule):
        names = ", ".join(get_args(Schedule))
        raise LocoleError(f"unknown schedule {schedule!r}: take one of {names}.")
    step = np.arange(n_epochs * n_batches)
    done = step / max(1, step.size)
    factor = np.ones(step.size)
    if schedule == "step":
        falls = np.sort(np.asarray(steps_at, dtype=np.int64)) * n_batches
        factor = _STEP ** np.searchsorted(falls, step, side="right").astype(float)
    elif schedule == "cosine":
        factor = (1 + np.cos(np.pi * done)) / 2
    elif schedule == "linear":
        factor = 1 - done
    if warm_up > 0:
        factor = factor * np.minimum(1.0, (step + 1) / (warm_up * n_batches))
    return rate * factor
