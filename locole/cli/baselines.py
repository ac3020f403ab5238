"""Baselines for the command line, with their settings as they are typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import locole.baselines
from locole.cli.settings import parameters
from locole.exceptions import LocoleError
from locole.methods import METHODS, names_of

__all__ = ["make_baseline"]


def make_baseline(
    name: str, settings: Sequence[str], typed: dict[str, Any], *, seed: int, jobs: int
) -> Any:
    """Make one of `locole.baselines` by its name in `locole.methods`, with settings like ``passes=3``.

    Parameters
    ----------
    name : str
        Such as "centroids".
    settings : list of str
        Names of parameters and values; values are JSON, or else texts.
    typed : dict
        Options of locole's own model, which a baseline does not have.

    Examples
    --------
    >>> make_baseline("centroids", [], {"embedding": "auto"}, seed=0, jobs=2)
    Centroids(n_jobs=2)
    """
    if name not in names_of("baseline"):
        names = ", ".join(names_of("baseline"))
        raise LocoleError(f"unknown model {name!r}: take locole or one of {names}.")
    for option, value in typed.items():
        if value not in (None, "auto"):
            raise LocoleError(f"the model {name} has no --{option}: leave it out.")
    made = getattr(locole.baselines, METHODS[name].made)
    return made(**parameters(f"the model {name}", made, settings, seed=seed, jobs=jobs))
