"""What the parameters of an estimator may be: declared as in scikit-learn, checked without data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Integral, Real
from reprlib import repr  # short, whatever a file says
from typing import Any

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions, make_constraint

from locole.exceptions import LocoleError
from locole.parallel import Engine

__all__ = [
    "COUNT",
    "ENGINE",
    "FOLDER",
    "FRACTION",
    "NOT_NEGATIVE",
    "N_JOBS",
    "PASSES",
    "POSITIVE",
    "PROPORTION",
    "SEED",
    "SWITCH",
    "SWITCH_OR_AUTO",
    "VERBOSE",
    "at_least",
    "check_values",
    "has",
    "one_of",
]

#: A parameter may be whatever satisfies one of its constraints, which are scikit-learn's.
Constraints = list[Any]


def at_least(least: int, most: int | None = None) -> Constraints:
    """Whole numbers from ``least``, to ``most`` if that is given."""
    return [Interval(Integral, least, most, closed="left" if most is None else "both")]


def one_of(*names: str) -> Constraints:
    """One of these words."""
    return [StrOptions(set(names))]


def has(*methods: str) -> Constraints:
    """Objects with these methods."""
    return [HasMethods(list(methods))]


COUNT = at_least(1)
#: Passes over the rows. A model's file has them too, and must not decide that `partial_fit` never ends.
PASSES = at_least(1, 10_000)
NOT_NEGATIVE: Constraints = [Interval(Real, 0, np.inf, closed="left")]
POSITIVE: Constraints = [Interval(Real, 0, np.inf, closed="neither")]
FRACTION: Constraints = [Interval(Real, 0, 1, closed="left")]
PROPORTION: Constraints = [Interval(Real, 0, 1, closed="neither")]
SWITCH: Constraints = ["boolean"]
SWITCH_OR_AUTO: Constraints = [*SWITCH, *one_of("auto")]
SEED = at_least(0, 2**32 - 1)
N_JOBS: Constraints = [None, *COUNT, Interval(Integral, None, -1, closed="right")]
VERBOSE: Constraints = [*at_least(0), *SWITCH]
ENGINE: Constraints = [*one_of("threads", "ray"), Engine]
FOLDER: Constraints = [None, str, os.PathLike]


def check_values(constraints: Mapping[str, Constraints], values: Mapping[str, Any]) -> None:
    """Raise LocoleError at the first value that its constraints do not allow.

    NumPy's numbers are numbers; NaN is none, and True and False are only where they are asked for.

    Examples
    --------
    >>> check_values({"epochs": COUNT}, {"epochs": np.int64(3)})
    >>> check_values({"epochs": COUNT}, {"epochs": True})
    Traceback (most recent call last):
        ...
    locole.exceptions.LocoleError: epochs must be a whole number of at least 1, not True.
    """
    for name, value in values.items():
        allowed = constraints.get(name)
        if allowed is None:  # of somebody who declares nothing
            continue
        if not any(_is_satisfied(constraint, value) for constraint in allowed):
            words = [word for constraint in allowed for word in _described(constraint)]
            listed = " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
            raise LocoleError(f"{name} must be {listed}, not {repr(value)}.")


def _is_satisfied(constraint: Any, value: Any) -> bool:
    if isinstance(constraint, Interval) and isinstance(value, bool | np.bool_):
        return False  # an int to Python, but no number of anything
    return bool(make_constraint(constraint).is_satisfied_by(value))


def _described(constraint: Any) -> list[str]:
    """What a constraint allows, one way after the other."""
    if isinstance(constraint, Interval):
        return [_described_interval(constraint)]
    if isinstance(constraint, StrOptions):
        return [f"'{name}'" for name in sorted(constraint.options)]
    if isinstance(constraint, HasMethods):
        return [f"an object with {' and '.join(constraint.methods)}"]
    if constraint == "boolean":
        return ["True", "False"]
    if constraint is None:
        return ["None"]
    name = constraint.__name__
    return [f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"]


def _described_interval(interval: Interval) -> str:
    kind = "a whole number" if interval.type is Integral else "a number"
    left, right, closed = interval.left, interval.right, interval.closed
    if right is None or right == np.inf:
        return f"{kind} above {left}" if closed == "neither" else f"{kind} of at least {left}"
    if left is None:
        return f"{kind} of at most {right}"
    if closed == "both":
        return f"{kind} from {left} to {right}"
    if closed == "neither":
        return f"{kind} above {left} and below {right}"
    return (
        f"{kind} above {left} and at most {right}"
        if closed == "right"
        else (f"{kind} of at least {left} and below {right}")
    )
