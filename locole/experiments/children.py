"""Processes that do runs: started, waited for, and ended whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from locole.experiments.machine import describe
from locole.experiments.worker import sentence

__all__ = ["Children", "run_alone"]

_COMMAND = [sys.executable, "-m", "locole.experiments.worker"]
# The root of the package, for processes that start in another folder.
_ROOT = str(Path(__file__).resolve().parents[2])


class Children:
    """Runs requests, each in a process of its own; none of them outlives the context.

    Examples
    --------
    >>> with Children() as children:
    ...     children.run({"run": {"experiment": "x", "data": "y", "method": "z"}, "limit_s": 0.001})
    {'status': 'timeout'}
    """

    def __init__(self) -> None:
        self._live: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes; none starts any more."""
        with self._lock:
            self._closed = True
            live = list(self._live)
        for child in live:
            _end(child)

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do one run; the outcome always has a status.

        Parameters
        ----------
        request : dict
            See `locole.experiments.worker.reply`, with ``limit_s``, seconds after which the process is
            ended.
        """
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = self._start(out, err)
            try:
                _hand_over(child, request)
                child.wait(timeout=request["limit_s"])
            except subprocess.TimeoutExpired:
                return {"status": "timeout"}
            finally:
                _end(child)
                with self._lock:
                    self._live.discard(child)
            return _outcome(child.returncode, _content(out), _content(err))

    def _start(self, out: Any, err: Any) -> subprocess.Popen[bytes]:
        # A group of its own: Ctrl-C reaches us alone, and its own children end with it.
        with self._lock:
            if self._closed:
                raise RuntimeError("no run may start any more")
            child = subprocess.Popen(
                _COMMAND,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env=_environment(),
                start_new_session=True,
            )
            self._live.add(child)
        return child


def run_alone(_: None, request: dict[str, Any]) -> dict[str, Any]:
    """Do one run on whatever node this is, which is then part of its outcome; for engines."""
    with Children() as children:
        return {**describe(), **children.run(request)}


def _environment() -> dict[str, str]:
    paths = [_ROOT, os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _hand_over(child: subprocess.Popen[bytes], request: dict[str, Any]) -> None:
    """Write the request; standard input stays open, as its end is a signal."""
    assert child.stdin is not None
    with suppress(BrokenPipeError):  # a process that has ended says why below
        child.stdin.write(json.dumps(request).encode() + b"\n")
        child.stdin.flush()


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a process and those that it has started, if it is still there."""
    if child.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(child.pid, signal.SIGKILL)
            else:
                child.kill()
    child.wait()
    if child.stdin is not None and not child.stdin.closed:
        with suppress(BrokenPipeError):
            child.stdin.close()


def _content(file: Any) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _outcome(code: int, out: str, err: str) -> dict[str, Any]:
    """The reply, or a status that says how the process ended without one."""
    with suppress(ValueError):
        found = json.loads(out)
        if isinstance(found, dict) and isinstance(found.get("status"), str):
            return found
    if code == -9:
        return {"status": sentence("the process was killed, most likely because memory ran out")}
    if code < 0:
        return {"status": sentence(f"the process ended by {_name(-code)}")}
    last = (err.strip().splitlines() or ["nothing was said"])[-1]
    return {"status": sentence(f"the process ended with code {code}: {last}")}


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
