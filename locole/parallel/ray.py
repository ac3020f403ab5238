"""Engine of a Ray cluster: tasks on all its nodes, what they share put into its object store once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from itertools import islice
from typing import Any, Self, TypeVar, cast

from locole._version import __version__
from locole.exceptions import LocoleError, LocoleWarning
from locole.parallel.blocks import n_threads, workers
from locole.parallel.cluster import (
    Watch,
    connected,
    first_line,
    import_ray,
    lost_contact,
    require_ray,
    require_version,
)
from locole.parallel.engine import Engine, Member
from locole.parallel.progress import count_steps, track
from locole.parallel.shared_folder import fetched, stored
from locole.parallel.worker_group import WorkerGroup

__all__ = ["RayEngine"]

R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")

# How often Ray starts a task again whose worker or node was lost.
_RETRIES = 3
# Tasks handed over at a time, for each core: enough that none is idle, few enough to be looked through.
_AHEAD = 4
_WAIT_S = 1.0


class RayEngine(Engine):
    """Cores of a Ray cluster; ``n_jobs`` is the number of tasks at a time, and None is all cores.

    Scheduling, transport and repeating of lost tasks are Ray's. Every node needs Python and locole in
    the versions that this machine has. Who can reach a Ray cluster can run programs on it: only use
    one that you trust, in a network that you trust.

    Parameters
    ----------
    address : str, optional
        ``"host:port"`` of the head; ``"auto"`` for the cluster that this machine is part of; ``"local"``
        to start one on this machine that ends with the work. By default the cluster of the environment
        variable ``RAY_ADDRESS`` or of this machine, and one of its own if there is none.
    folder : str, optional
        A folder that all nodes see under the same path, or have a copy of. Large arrays go through files
        there instead of the object store, for data that is larger than that. The files stay, to be used
        again by the next fit on the same data.
    cores : int
        Cores that a task of `map` takes.

    Examples
    --------
    >>> RayEngine("10.0.0.1:6379")
    RayEngine('10.0.0.1:6379')
    """

    def __init__(
        self, address: str | None = None, *, folder: str | None = None, cores: int = 1
    ) -> None:
        self.address = address
        self.folder = folder
        self.cores = cores

    @classmethod
    def at(cls, address: str | None, *, cores: int = 1) -> Self:
        """Return the engine of the cluster at an address."""
        return cls(address, cores=cores)

    def __repr__(self) -> str:
        said = [] if self.address is None else [repr(self.address)]
        said += [] if self.folder is None else [f"folder={self.folder!r}"]
        said += [] if self.cores == 1 else [f"cores={self.cores}"]
        return f"RayEngine({', '.join(said)})"

    def require(self) -> None:
        """Raise ImportError if Ray is not installed; importing it would take a second."""
        require_ray()

    def running(self, n_jobs: int | None = None) -> AbstractContextManager[bool]:
        """Stay in the cluster, or keep the one that was started, between one `map` and the next."""
        return connected(self.address, n_jobs)

    def map(
        self,
        function: Callable[[S, T], R],
        tasks: Sequence[T],
        *,
        shared: S,
        n_jobs: int | None = None,
        description: str | None = None,
    ) -> Iterator[tuple[int, R]]:
        """Yield places and results as tasks finish; see `Engine.map`.

        A `LocoleWarning` at the end says which tasks had to be repeated.
        """
        with self.running(n_jobs) as ends:
            common = shared if self.folder is None else stored(shared, self.folder)
            run = _Run(function, list(tasks), common, n_jobs, self.cores)
            results = run.results(cancel=not ends)
            yield from (
                results if description is None else track(results, description, total=len(tasks))
            )
            run.report()

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
        """Call ``function(shared, resume(), member)`` in workers of the cluster; see `Engine.together`.

        ``n_jobs`` is the number of workers of one core each; None or less than 0 is one worker a node,
        with all its cores. When a worker or a node is lost, all are started again on the nodes that are
        left, from what ``resume`` then returns; a `LocoleWarning` says so.
        """
        with self.running(n_jobs), count_steps(description, total) as tell:
            group = WorkerGroup(
                function,
                shared if self.folder is None else stored(shared, self.folder),
                resume,
                n_jobs,
            )
            # Closed at once on Ctrl-C, so that nothing goes on working.
            with closing(cast(Any, group.run())) as counts:
                for count in counts:
                    tell(count)
            group.report()
            return group.result


class _Run:
    """Tasks on their way through a cluster."""

    def __init__(
        self,
        function: Callable[..., Any],
        tasks: list[Any],
        shared: Any,
        n_jobs: int | None,
        cores: int,
    ) -> None:
        self._ray = ray = import_ray()
        self._watch = Watch(ray)
        self._tasks, self._again = tasks, list[int]()
        remote = ray.remote(num_cpus=cores, max_retries=_RETRIES)(_work)
        handle = ray.put(shared)
        self._submit = lambda task: remote.remote(__version__, function, handle, task)
        places = int(ray.cluster_resources().get("CPU", 1)) // cores
        if not any(node["Resources"].get("CPU", 0) >= cores for node in ray.nodes()):
            raise LocoleError(
                f"no node of the Ray cluster has {cores} cores for a task: take fewer."
            )
        everything = n_jobs is None or n_jobs < 0
        self._at_a_time = max(1, _AHEAD * places) if everything else n_threads(n_jobs)

    def results(self, *, cancel: bool) -> Iterator[tuple[int, Any]]:
        """Places and results as they come.

        If the caller stops, what is under way must be ended: by ``cancel``, unless the connection ends.
        """
        left, running = iter(range(len(self._tasks))), dict[Any, int]()
        done: Any
        try:
            while True:
                for place in islice(left, self._at_a_time - len(running)):
                    running[self._submit(self._tasks[place])] = place
                if not running:
                    return
                done, _ = self._watch.wait(list(running), timeout=_WAIT_S)
                for ticket in done:
                    place = running.pop(ticket)
                    result, attempt = self._fetched(ticket)
                    if attempt:
                        self._again.append(place)
                    yield place, result
                # Nothing may hold on to a result that has been handed over.
                done = ticket = result = None
        except self._ray.exceptions.RayError as error:
            raise LocoleError(
                f"Ray lost a task and could not repeat it ({_short(error)}): look after the cluster and "
                "repeat the call; if nodes ran out of memory, take fewer n_jobs."
            ) from error
        finally:
            if cancel and running:
                self._cancel(list(running))

    def _cancel(self, tickets: list[Any]) -> None:
        # Ray may abort this process if a task is cancelled in the moment in which it ends (its issue
        # 54846): so not those that have ended, and none at all where leaving does the same. One that is
        # just being started may escape, and runs to its end for nothing.
        _, unfinished = self._ray.wait(tickets, num_returns=len(tickets), timeout=0)
        for ticket in unfinished:
            with suppress(Exception):
                self._ray.cancel(ticket, force=True)

    def _fetched(self, ticket: Any) -> tuple[Any, int]:
        errors = self._ray.exceptions
        try:
            return self._ray.get(ticket)
        except errors.RayTaskError as error:
            # What the function raised is raised as if it had run here.
            cause = error.cause
            if isinstance(cause, Exception) and not isinstance(cause, errors.RayError):
                raise cause from error
            raise LocoleError(
                f"a node of the cluster cannot do a task, has it the same packages? ({_short(error)})."
            ) from error
        except OSError as error:
            raise lost_contact("Ray on this machine") from error

    def report(self) -> None:
        """Say what had to be repeated."""
        if not self._again:
            return
        why = self._watch.reason("lost workers")
        warnings.warn(
            f"{len(self._again)} of {len(self._tasks)} tasks were repeated because of {why}; the result "
            "is the same as without.",
            LocoleWarning,
            stacklevel=2,
        )


def _work(version: str, function: Callable[..., Any], shared: Any, task: Any) -> tuple[Any, int]:
    """Do a task in a worker of the cluster; return the result and how often it was begun before."""
    require_version(version)
    # As on a thread of its own: one thread for linear algebra, whose last bit depends on their number.
    with workers(1):
        return function(fetched(shared), task), _attempt()


def _attempt() -> int:
    """Times that Ray has begun this task before; 0 where this Ray does not tell."""
    with suppress(Exception):
        worker = import_ray()._private.worker.global_worker.core_worker
        return int(worker.get_current_task_attempt_number())
    return 0


def _short(error: BaseException) -> str:
    cause = getattr(error, "cause", None) or error
    return f"{type(cause).__name__}: {first_line(cause)}"
