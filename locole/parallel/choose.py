"""From the name of an engine to the engine."""

from __future__ import annotations

from typing import Any

from locole.exceptions import LocoleError
from locole.parallel.cluster import require_ray
from locole.parallel.engine import Engine
from locole.parallel.ray import RayEngine
from locole.parallel.threads import Threads

__all__ = ["ENGINES", "make_engine"]

#: Name → class; all can be made without arguments.
ENGINES: dict[str, Any] = {"threads": Threads, "ray": RayEngine}


def make_engine(engine: str | Engine) -> Engine:
    """Return the engine of that name, or an engine as it is, if this machine has what it needs.

    Examples
    --------
    >>> make_engine("threads")
    Threads()
    """
    if isinstance(engine, str) and engine in ENGINES:
        engine = ENGINES[engine]()
    if isinstance(engine, RayEngine):
        require_ray()
    if not isinstance(engine, type) and isinstance(engine, Engine):
        return engine
    names = ", ".join(ENGINES)
    raise LocoleError(f"unknown engine {engine!r}: take {names} or an engine of locole.parallel.")
