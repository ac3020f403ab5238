"""Parameters as they are typed behind ``--set``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

from locole.exceptions import LocoleError

__all__ = ["parameters"]


def parameters(
    what: str, made: Any, settings: Sequence[str], *, seed: int, jobs: int | None
) -> dict[str, Any]:
    """Parameters of a class: seed, threads and progress if it has them, and settings like ``passes=3``.

    Parameters
    ----------
    what : str
        How errors name it.
    made : class
        What has the parameters.
    settings : list of str
        Names of parameters and values; values are JSON, or else texts.
    seed, jobs : int
        What ``--seed`` and ``--jobs`` say.

    Examples
    --------
    >>> from locole.regressors import ElasticNetRegressor
    >>> parameters("the elastic net", ElasticNetRegressor, ["l2=0.5"], seed=0, jobs=2)
    {'random_state': 0, 'n_jobs': 2, 'verbose': 1, 'l2': 0.5}
    """
    known = inspect.signature(made).parameters
    ready = {"random_state": seed, "n_jobs": jobs, "verbose": 1}
    values = {key: value for key, value in ready.items() if key in known}
    for setting in settings:
        key, value = _setting(setting)
        if key in ready:
            raise LocoleError(f"{key} is no setting: there are --seed and --jobs for it.")
        if key not in known:
            names = ", ".join(key for key in known if key not in ready) or "none"
            raise LocoleError(f"{what} has no setting {key!r}; it has {names}.")
        values[key] = value
    return values


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise LocoleError(f"--set takes NAME=VALUE, not {text!r}.")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value
