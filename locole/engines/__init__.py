"""Where the work is done: ``map(function, tasks)`` on threads of this machine or on a Ray cluster."""

from locole.engines.base import Engine, in_order, read_only
from locole.engines.choose import ENGINES, make_engine
from locole.engines.crew import LostError, Member
from locole.engines.ray import RayEngine
from locole.engines.threads import THREADS, Threads

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
