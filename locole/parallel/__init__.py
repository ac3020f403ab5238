"""Where the work is done: ``map(function, tasks)`` on threads of this machine or on a Ray cluster."""

from locole.parallel.choose import ENGINES, make_engine
from locole.parallel.engine import Engine, LostError, Member, in_order, read_only
from locole.parallel.ray import RayEngine
from locole.parallel.threads import THREADS, Threads

__all__ = [
    "ENGINES",
    "THREADS",
    "Engine",
    "LostError",
    "Member",
    "RayEngine",
    "Threads",
    "in_order",
    "make_engine",
    "read_only",
]
