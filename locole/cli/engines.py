"""Engines as they are named on the command line."""

from __future__ import annotations

from typing import Any

from locole.classifier import LocoleClassifier
from locole.exceptions import LocoleError
from locole.parallel import Engine, RayEngine, make_engine

__all__ = ["engine_of", "set_engine"]


def engine_of(name: str, address: str | None, *, cores: int = 1) -> Engine:
    """Return the engine that --engine and --address ask for, of whose tasks each takes some cores.

    Examples
    --------
    >>> engine_of("threads", None)
    Threads()
    """
    engine = make_engine(name)
    if isinstance(engine, RayEngine):
        return RayEngine(address, cores=cores)
    if address is not None:
        raise LocoleError("--address is that of a Ray cluster: it needs --engine ray.")
    return engine


def set_engine(classifier: Any, name: str, address: str | None) -> None:
    """Let a classifier learn there, if it can; otherwise say so before anything is read."""
    engine = engine_of(name, address)
    if name == "threads":
        return
    if "engine" not in classifier._unsaved:
        kind = type(classifier).__name__
        raise LocoleError(f"{kind} learns on one machine only: leave --engine out.")
    classifier.set_params(engine=engine)
    if isinstance(classifier, LocoleClassifier):
        classifier._plan()  # refuses regressors that cannot
