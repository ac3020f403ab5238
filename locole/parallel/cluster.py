"""A Ray cluster as a place to be: joining or starting one, seeing what it lost, leaving it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from locole._version import __version__
from locole.exceptions import LocoleError
from locole.parallel.blocks import n_threads

__all__ = [
    "Watch",
    "connected",
    "first_line",
    "import_ray",
    "lost_contact",
    "require_ray",
    "require_version",
]

# Ray itself ends this process, without an error that could be caught, when the head has not answered for
# a minute, or soon after its node on this machine has died: so we look ourselves, this often, and give
# up after that long.
_LOOK_EVERY_S = 2.0
_PATIENCE_S = 15.0
_CONNECT_S = 3.0


def require_ray() -> None:
    """Say how to get the package if it is not there; importing it would take a second."""
    if importlib.util.find_spec("ray") is None:
        raise ImportError('engine="ray" needs the package ray: pip install locole[ray]')


def import_ray() -> Any:
    """Return the package, or say how to get it."""
    require_ray()
    return importlib.import_module("ray")


@contextmanager
def connected(address: str | None, n_jobs: int | None) -> Iterator[bool]:
    """Be in a cluster while the context lasts, and leave nothing behind that was not there before.

    A connection that the program has made already is used and stays. Otherwise a cluster is joined and
    left again, or started and stopped. Gives whether the connection ends with the context, which ends
    all tasks.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield False
        return
    with _own_signals():
        _connect(ray, address, n_jobs)
    try:
        yield True
    finally:
        ray.shutdown()


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the program's own way to end, if it has one: Ray puts another in its place."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if callable(before):
            signal.signal(signal.SIGTERM, before)


def _connect(ray: Any, address: str | None, n_jobs: int | None) -> None:
    if address is not None and "://" in address:
        raise LocoleError(
            f"{address} is an address for clients outside of a cluster: run on one of its machines and "
            "give HOST:PORT of the head, or 'auto'."
        )
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address != "local":
        try:
            ray.init(address=address or "auto", **quiet)
            return
        except (ConnectionError, RuntimeError, ValueError) as error:
            if address is not None or "RAY_ADDRESS" in os.environ:
                wanted = address or os.environ["RAY_ADDRESS"]
                raise LocoleError(
                    f"no Ray cluster answers at {wanted}: see `ray status` there, or leave the address "
                    f"out to start one on this machine ({first_line(error)})."
                ) from error
    # Nobody has asked for reports about the use of a cluster that lives for one fit.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    cores = n_threads(-1 if n_jobs is None else n_jobs)
    ray.init(address="local", num_cpus=cores, include_dashboard=False, **quiet)


def first_line(error: BaseException) -> str:
    """What the error says first, cut where it is long; its kind where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def require_version(version: str) -> None:
    """Raise an error in a worker whose node does not have the program's version."""
    if version != __version__:
        raise LocoleError(
            f"a node of the cluster has locole {__version__}, the program {version}: install the same."
        )


def lost_contact(name: str) -> LocoleError:
    """Error for when something of the cluster is gone that nothing can be done without."""
    return LocoleError(
        f"{name} does not answer any more: start it again and repeat the call; nothing of the old model "
        "has changed."
    )


class Watch:
    """Looks after the cluster while tasks run in it."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        context = ray.get_runtime_context()
        host, _, port = context.gcs_address.rpartition(":")
        self._nodes = self._alive()
        own = self._nodes[context.get_node_id()]
        now = self._looked = time.monotonic()
        self._ports = {
            "the head of the Ray cluster": (host.strip("[]"), int(port)),
            "Ray on this machine": (own["NodeManagerAddress"], own["NodeManagerPort"]),
        }
        self._seen = dict.fromkeys(self._ports, now)

    def look(self) -> None:
        """Raise LocoleError if the head, or this machine's own node, has been silent for too long."""
        now = time.monotonic()
        if now - self._looked < _LOOK_EVERY_S:
            return
        self._looked = now
        for name, port in self._ports.items():
            try:
                socket.create_connection(port, timeout=_CONNECT_S).close()
                self._seen[name] = now
            except OSError as error:
                if now - self._seen[name] > _PATIENCE_S:
                    raise lost_contact(f"{name}, {port[0]}:{port[1]},") from error

    def wait(self, tickets: list[Any], **options: Any) -> tuple[list[Any], list[Any]]:
        """Wait as ``ray.wait`` does, and look."""
        try:
            found = self._ray.wait(tickets, **options)
        except OSError as error:  # this machine's own node is gone, with the connection to it
            raise lost_contact("Ray on this machine") from error
        self.look()
        return found

    def reason(self, otherwise: str) -> str:
        """Why work was lost: nodes that were there at the beginning and are no longer, if any."""
        alive = self._alive()
        lost = [node["NodeManagerAddress"] for key, node in self._nodes.items() if key not in alive]
        return f"the loss of {', '.join(sorted(lost))}" if lost else otherwise

    def _alive(self) -> dict[str, dict[str, Any]]:
        return {node["NodeID"]: node for node in self._ray.nodes() if node["Alive"]}
