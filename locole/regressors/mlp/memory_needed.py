"""How much memory the training of a network takes, asked before it begins."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import LocoleError
from locole.parallel.memory import available_bytes
from locole.regressors.mlp.momentum import FADED
from locole.regressors.mlp.shape import Shape

__all__ = ["momenta", "require_room", "training_bytes"]

# Arrays of a number for each row and unit, or output, that exist at a time in a step.
_PER_ROW = 6


def training_bytes(
    shape: Shape,
    *,
    n_met: int | None = None,
    n_momenta: int | None = None,
    n_entries: int = 0,
    batch_size: int = 256,
    half: bool = False,
    row_moment: bool = False,
    copy: bool = False,
) -> int:
    """Bytes that a fit takes beside its data.

    The first layer has 4 bytes for each weight (2 in half precision), 4 for the second moments of
    features that occur (none to speak of if that is one of the whole row) and 4 for the first
    moments of those that occur often, see `momenta`; all other weights have 16, for themselves, two
    moments and a gradient. A batch has six numbers for each unit and output, and 4 bytes for each
    entry of the rows say when its feature is next met. Weights of less than 1 GB are kept a second
    time, which is not in it.

    Parameters
    ----------
    shape : Shape
        The network.
    n_met : int, optional
        Features that occur in the rows; all by default.
    n_momenta : int, optional
        Features that have a first moment at a time; those that occur by default.
    n_entries : int
        Entries of the rows that are learnt.
    batch_size : int
        Rows of a step.
    half, row_moment : bool
        Whether the first layer is in half precision, and has one second moment for each feature.
    copy : bool
        Whether there is a copy of all weights, as with validation rows.

    Examples
    --------
    A network of 4,096 units from 300,000 features to an output for each of 100,000 labels:

    >>> round(training_bytes(Shape(300_000, (4096,), 100_000)) / 1e9, 1)
    21.9
    """
    n_met = shape.n_features if n_met is None else n_met
    n_momenta = n_met if n_momenta is None else n_momenta
    copies = 2 if copy else 1
    first = copies * (2 if half else 4) * shape.n_features * shape.width
    first += 4 * (n_momenta * shape.width + n_met * (1 if row_moment else shape.width))
    dense = (12 + 4 * copies) * sum(math.prod(size) for size in shape.arrays().values())
    batch = 4 * _PER_ROW * batch_size * (sum(shape.hidden) + shape.n_outputs + shape.n_learnt)
    return first + dense + batch + 4 * n_entries


def momenta(counts: NDArray[np.int64], n_batches: int, *, settles: bool = False) -> int:
    """Features that have a first moment at a time: those between two steps that are near each other.

    Let a batch have a feature with probability p. A step is between two that have it and are less than
    K = `FADED` apart with probability 1 − (1 + Kp) e^{−Kp}, and less than K after one with 1 − e^{−Kp}.

    Parameters
    ----------
    counts : array of shape (n_features,)
        Rows that have each feature.
    n_batches : int
        Batches of an epoch.
    settles : bool
        Whether weights are asked for at the end of an epoch: nothing is known there of what comes after.

    Examples
    --------
    Of 1,000 features in one row each and 10 in every second row, with 500 steps an epoch:

    >>> momenta(np.array([1] * 1000 + [25_000] * 10), 500)
    25
    """
    x = FADED * -np.expm1(-counts / n_batches)
    there = -np.expm1(-x) if settles else 1 - (1 + x) * np.exp(-x)
    return math.ceil(there.sum())


def require_room(n_bytes: int, shape: Shape) -> None:
    """Raise an error where the machine has not so much memory left."""
    left = available_bytes()
    if left is None or n_bytes <= left:
        return
    units = ", ".join(f"{size:,}" for size in shape.hidden)
    raise LocoleError(
        f"training a network of {shape.n_features:,} features, {units} hidden units and "
        f"{shape.n_outputs:,} outputs takes about {n_bytes / 1e9:,.1f} GB of memory, but only "
        f"{left / 1e9:,.1f} GB are left: take fewer hidden units, or label vectors with fewer outputs."
    )
