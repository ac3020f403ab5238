"""The contract of an engine: tasks that are done apart, and workers that do one thing together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any, NamedTuple, Self, TypeVar, cast

from numpy.typing import NDArray

from locole.exceptions import LocoleError
from locole.parallel.blocks import n_threads
from locole.parallel.progress import count_steps

__all__ = ["Engine", "LostError", "Member", "in_order", "read_only"]

A = TypeVar("A", bound=NDArray)
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


class LostError(ConnectionError):
    """A member of the group does not answer."""


def _say_nothing(done: int) -> None:
    """Nobody waits."""


class Member(NamedTuple):
    """What a worker knows about its group.

    Parameters
    ----------
    rank, size : int
        Which one it is, out of how many.
    threads : int
        Cores that it has.
    host : str
        Address of its own node.
    meeting : str
        ``host:port`` of the first, a port of which was free.
    tell : function
        Called with the number of steps done so far, for those who wait.
    """

    rank: int = 0
    size: int = 1
    threads: int = 1
    host: str = ""
    meeting: str = ""
    tell: Callable[[int], None] = _say_nothing


class Engine(ABC):
    """Something that applies a function to tasks, somewhere.

    The function must be one of a module (not a lambda or a closure), a function of its arguments only,
    and must not change what is shared: then it does not matter where, when and how often a task runs,
    and every engine gives the same results. A subclass must say how to `map`.
    """

    #: Whether tasks see the arrays of the caller itself, and so may fill those that it hands them.
    shares_memory: bool = False

    @classmethod
    def at(cls, address: str | None, *, cores: int = 1) -> Self:
        """Return the engine at an address, of whose tasks each takes some cores.

        Parameters
        ----------
        address : str, optional
            Address of a Ray cluster.
        cores : int
            Cores that a task takes.
        """
        if address is not None:
            raise LocoleError("an address is that of a Ray cluster: it needs --engine ray.")
        return cls()

    def require(self) -> None:
        """Raise ImportError if a package that the engine needs is missing."""

    def running(self, n_jobs: int | None = None) -> AbstractContextManager[object]:
        """Keep ready what is needed between one `map` and the next; `map` does so by itself.

        Parameters
        ----------
        n_jobs : int, optional
            Tasks at a time, as for `map`.
        """
        return nullcontext()

    @abstractmethod
    def map(
        self,
        function: Callable[[S, T], R],
        tasks: Sequence[T],
        *,
        shared: S,
        n_jobs: int | None = None,
        description: str | None = None,
    ) -> Iterator[tuple[int, R]]:
        """Yield ``(place, function(shared, tasks[place]))`` as results come, in any order.

        Parameters
        ----------
        function : function of two arguments
            What to do.
        tasks : sequence
            What to do it to.
        shared : object
            First argument of every call. Arrays in it may be read-only.
        n_jobs : int, optional
            Tasks at a time; each engine says what None means.
        description : str, optional
            Shown with the progress; by default none is shown.
        """

    def together(
        self,
        function: Callable[[S, Any, Member], R],
        *,
        shared: S,
        resume: Callable[[], Any],
        n_jobs: int | None = None,
        description: str | None = None,
        total: int | None = None,
    ) -> R:
        """Call ``function(shared, resume(), member)`` in workers that talk to each other.

        The result is that of the first worker. Here this process is the only one, with ``n_jobs``
        threads.

        Parameters
        ----------
        function : function of three arguments
            What to do; see `locole.parallel.Member`.
        shared : object
            First argument of every call. Arrays in it may be read-only; others may be filled.
        resume : function
            Returns the state to resume from, such as the newest checkpoint.
        n_jobs : int, optional
            Threads or workers; each engine says what None means.
        description : str, optional
            Shown with the progress; by default none is shown.
        total : int, optional
            Steps of which workers tell.
        """
        with count_steps(description, total) as tell:
            return function(shared, resume(), Member(threads=n_threads(n_jobs), tell=tell))


def in_order(
    engine: Engine,
    function: Callable[[S, T], R],
    tasks: Sequence[T],
    *,
    shared: S,
    n_jobs: int | None = None,
    description: str | None = None,
) -> list[R]:
    """Results of all tasks in the order of the tasks.

    Parameters
    ----------
    engine : Engine
        Where tasks are done.
    function, tasks, shared, n_jobs, description
        As for `Engine.map`.

    Returns
    -------
    list
        A result for each task.

    Examples
    --------
    >>> from operator import pow
    >>> from locole.parallel import Threads
    >>> in_order(Threads(), pow, [0, 1, 2, 3], shared=2)
    [1, 2, 4, 8]
    """
    results: list[Any] = [None] * len(tasks)
    found = engine.map(function, tasks, shared=shared, n_jobs=n_jobs, description=description)
    # Closed at once if an error comes between two results, so that nothing goes on working.
    with closing(cast(Any, found)):
        for place, result in found:
            results[place] = result
    return results


def read_only(array: A) -> A:
    """Return the same memory as an array that cannot be written to.

    An engine may hand arrays out like that. Kernels that always get them so are compiled once.

    Parameters
    ----------
    array : array
        Any array.

    Returns
    -------
    array
        A view of it.

    Examples
    --------
    >>> import numpy as np
    >>> read_only(np.arange(3)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view
