"""The contract of an engine: a function, tasks and what they share in, results out as they finish."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from numpy.typing import NDArray

__all__ = ["Engine", "in_order", "read_only"]

A = TypeVar("A", bound=NDArray)
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


@runtime_checkable
class Engine(Protocol):
    """Something that applies a function to tasks, somewhere.

    The function must be one of a module (not a lambda or a closure), a function of its arguments only,
    and must not change what is shared: then it does not matter where, when and how often a task runs,
    and every engine gives the same results.
    """

    #: Whether tasks see the arrays of the caller itself, and so may fill those that it hands them.
    shares_memory: bool

    def running(self, n_jobs: int | None = None) -> AbstractContextManager[object]:
        """Keep ready what is needed between one `map` and the next; `map` does so by itself."""

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

    Examples
    --------
    >>> import numpy as np
    >>> read_only(np.arange(3)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view
