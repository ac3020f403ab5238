"""A group of workers on the nodes of a Ray cluster that do one thing together."""

from __future__ import annotations

import socket
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from locole._version import __version__
from locole.exceptions import LocoleError, LocoleWarning
from locole.parallel.cluster import (
    Watch,
    first_line,
    import_ray,
    lost_contact,
    require_version,
)
from locole.parallel.engine import LostError, Member
from locole.parallel.shared_folder import fetched

__all__ = ["WorkerGroup"]

# How often a group is restarted after one of it was lost; a dead node may be found out by trying it.
_RETRIES = 5
# How long others may take to say what was wrong, once one has noticed that something is.
_GRACE_S = 3.0
_WAIT_S = 0.5
# Workers are there after some seconds, if there is a place for them.
_LONG_S = 60.0


class WorkerGroup:
    """Workers for one function, restarted on the nodes that are left whenever one is lost.

    Parameters
    ----------
    function : function of three arguments
        Called in each worker with what is shared, the state to resume from, and a `Member`. All
        return; the result is that of the first.
    shared : object
        The first argument, which is put into the object store once.
    resume : function
        Returns the second argument, asked before every start.
    n_jobs : int, optional
        Workers of one core each; None or less than 0 is one worker a node, with all its cores.
    """

    def __init__(
        self,
        function: Callable[[Any, Any, Member], Any],
        shared: Any,
        resume: Callable[[], Any],
        n_jobs: int | None,
    ) -> None:
        self._ray = ray = import_ray()
        self._function, self._resume, self._n_jobs = function, resume, n_jobs
        self._shared = ray.put(shared)
        self._watch = Watch(ray)
        self.result: Any = None
        self.restarts = 0

    def run(self) -> Iterator[int]:
        """Work to the end; yields the number of steps done now and then. Then there is a `result`."""
        while True:
            try:
                yield from self._attempt()
                return
            except LostError as error:
                self.restarts += 1
                if self.restarts > _RETRIES:
                    raise LocoleError(
                        f"workers of the cluster were lost {self.restarts} times ({error}): look after "
                        "the cluster and repeat the call; it resumes from a checkpoint."
                    ) from error

    def report(self) -> None:
        """Say what had to be repeated."""
        if not self.restarts:
            return
        why = self._watch.reason("a lost worker")
        warnings.warn(
            f"work was taken up again {self.restarts} times because of {why}, from the last checkpoint "
            "if there was one; the result is the same as without.",
            LocoleWarning,
            stacklevel=2,
        )

    def _attempt(self) -> Iterator[int]:
        ray, errors = self._ray, self._ray.exceptions
        workers: list[Any] = []
        try:
            cores = self._hire(workers)
            hosts = self._all([worker.where.remote() for worker in workers], self._say_who_waits)
            meeting = f"{hosts[0][0]}:{hosts[0][1]}"
            state = ray.put(self._resume())
            tickets = []
            for rank, worker in enumerate(workers):
                member = Member(rank, len(workers), cores[rank], hosts[rank][0], meeting)
                tickets.append(
                    worker.run.remote(__version__, self._function, self._shared, state, member)
                )
            yield from self._followed(workers[0], tickets)
            self.result, said = self._all(tickets)[0]
            for text, kind in said:
                warnings.warn(text, kind, stacklevel=2)
        except errors.RayError as error:
            raise LostError(first_line(error)) from error
        finally:
            for worker in workers:
                with suppress(Exception):
                    ray.kill(worker)

    def _hire(self, workers: list[Any]) -> list[int]:
        """Add the workers to the list, the first on this machine if it can be; return their cores."""
        ray = self._ray
        here = ray.get_runtime_context().get_node_id()
        nodes = [n for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) >= 1]
        nodes.sort(key=lambda node: (node["NodeID"] != here, node["NodeID"]))
        sizes = [int(node["Resources"]["CPU"]) for node in nodes]
        if not nodes:
            raise LocoleError("no node of the Ray cluster has a core: add one and repeat the call.")
        whole_nodes = self._n_jobs is None or self._n_jobs < 0
        if whole_nodes:
            places, cores = list(range(len(nodes))), sizes
        else:
            # One after the other on each node, until all are placed or all cores taken.
            seats = sorted((seat, i) for i, size in enumerate(sizes) for seat in range(size))
            places = [i for _, i in seats[: self._n_jobs]]
            cores = [1] * len(places)
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        for place, number in zip(places, cores, strict=True):
            gpus = int(whole_nodes and nodes[place]["Resources"].get("GPU", 0) >= 1)
            actor = ray.remote(
                num_cpus=number,
                num_gpus=gpus,
                max_concurrency=2,
                scheduling_strategy=strategy(nodes[place]["NodeID"], soft=False),
            )(_Worker)
            workers.append(actor.remote())
        return cores

    def _followed(self, first: Any, tickets: list[Any]) -> Iterator[int]:
        """Yield how far the first worker is, until all have ended or one is in trouble."""
        left, steps = list(tickets), 0
        while left:
            done, left = self._watch.wait(left, timeout=_WAIT_S)
            if any(self._trouble(ticket) for ticket in done):
                self._raise(tickets)
            with suppress(self._ray.exceptions.RayError, OSError):
                steps = self._ray.get(first.done.remote())
            yield steps

    def _trouble(self, ticket: Any) -> BaseException | None:
        errors = self._ray.exceptions
        try:
            self._ray.get(ticket)
            return None
        except errors.RayTaskError as error:
            cause = error.cause
            return cause if isinstance(cause, Exception) else error
        except errors.RayError as error:
            return error
        except OSError:
            return lost_contact("Ray on this machine")

    def _raise(self, tickets: list[Any]) -> None:
        """Raise what went wrong: what one has found rather than that others miss him."""
        done, _ = self._watch.wait(tickets, num_returns=len(tickets), timeout=_GRACE_S)
        found = [error for error in map(self._trouble, done) if error is not None]
        errors = self._ray.exceptions
        for error in found:
            is_own = isinstance(error, errors.RayTaskError)
            if is_own or not isinstance(error, LostError | errors.RayError):
                raise error
        raise LostError(first_line(found[0])) from found[0]

    def _all(self, tickets: list[Any], when_long: Callable[[], None] | None = None) -> list[Any]:
        """Results of all; looks after the cluster while it waits."""
        left, start = tickets, time.monotonic()
        while left:
            _, left = self._watch.wait(left, num_returns=len(left), timeout=_WAIT_S)
            if left and when_long is not None and time.monotonic() - start > _LONG_S:
                when_long()
                when_long = None
        return self._ray.get(tickets)

    def _say_who_waits(self) -> None:
        warnings.warn(
            "workers are waiting for cores that others use: see `ray status`, or take fewer n_jobs.",
            LocoleWarning,
            stacklevel=2,
        )


class _Worker:
    """What runs in a process of the cluster."""

    def __init__(self) -> None:
        self._done = 0

    def where(self) -> tuple[str, int]:
        """Address of this node, and a port that is free."""
        host = import_ray().util.get_node_ip_address()
        with socket.socket() as asked:
            asked.bind(("", 0))
            return host, asked.getsockname()[1]

    def done(self) -> int:
        """Steps so far."""
        return self._done

    def run(
        self, version: str, function: Any, shared: Any, state: Any, member: Member
    ) -> tuple[Any, list[tuple[str, Any]]]:
        """Do the work; return its result, from the first worker only, and what was warned of."""
        require_version(version)
        member = member._replace(tell=self._tell)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", LocoleWarning)
            result = function(fetched(shared), state, member)
        if member.rank:
            return None, []
        said = [
            (str(w.message), w.category) for w in caught if issubclass(w.category, LocoleWarning)
        ]
        return result, said

    def _tell(self, done: int) -> None:
        self._done = done
