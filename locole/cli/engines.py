"""Where a classifier learns that the command line makes."""

from __future__ import annotations

from typing import Any

from locole.exceptions import LocoleError
from locole.parallel import make_engine

__all__ = ["set_engine"]


def set_engine(classifier: Any, name: str, address: str | None) -> None:
    """Let a classifier learn there, if it can; otherwise say so before anything is read."""
    engine = make_engine(name, address=address)
    if engine.shares_memory:
        return
    if "engine" not in classifier._unsaved:
        kind = type(classifier).__name__
        raise LocoleError(f"{kind} learns on one machine only: leave --engine out.")
    classifier.set_params(engine=engine)
    classifier.check_parameters()  # refuses regressors that cannot
