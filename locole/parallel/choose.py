"""From the name of an engine to the engine."""

from __future__ import annotations

from locole.exceptions import LocoleError
from locole.parallel.engine import Engine
from locole.parallel.ray import RayEngine
from locole.parallel.threads import Threads

__all__ = ["ENGINES", "make_engine"]

#: Name → class; all can be made without arguments.
ENGINES: dict[str, type[Engine]] = {"threads": Threads, "ray": RayEngine}


def make_engine(engine: str | Engine, *, address: str | None = None, cores: int = 1) -> Engine:
    """Return the engine of that name, or an engine as it is, if this machine has what it needs.

    Parameters
    ----------
    engine : {"threads", "ray"} or Engine
        Name of an engine, or one that is returned as it is.
    address : str, optional
        Address of a Ray cluster, for a name.
    cores : int
        Cores that a task takes, for a name.

    Returns
    -------
    Engine
        The engine.

    Examples
    --------
    >>> make_engine("threads")
    Threads()
    """
    if isinstance(engine, str) and engine in ENGINES:
        engine = ENGINES[engine].at(address, cores=cores)
    if not isinstance(engine, Engine):
        names = ", ".join(ENGINES)
        raise LocoleError(
            f"unknown engine {engine!r}: take {names} or an engine of locole.parallel."
        )
    engine.require()
    return engine
