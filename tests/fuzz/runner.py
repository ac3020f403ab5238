"""Cases in forked processes with a limit of memory and time each: what goes wrong ends that process."""

from __future__ import annotations

import atexit
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from locole.exceptions import LocoleError

__all__ = ["Finding", "Report", "folder", "run"]

#: Bytes that a case may take beyond what the process had, and seconds it may last.
MEMORY_BYTES, TIME_S = 1 << 31, 60.0
#: Cases of one process; a fork costs as much as dozens of cases.
BATCH = 500

Check = Callable[[Any], str]


@cache
def folder() -> Path:
    """Where cases are written, one after the other; in memory if there is such a place."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="fuzz", dir=memory if memory.is_dir() else None))
    # Forked processes end without this.
    atexit.register(shutil.rmtree, made)
    return made


class Finding(NamedTuple):
    """A case that did what no case may do."""

    case: Any
    what: str

    def __str__(self) -> str:
        return f"{self.case}: {self.what}"


class Report(NamedTuple):
    """How the cases ended."""

    outcomes: Counter[str]
    findings: list[Finding]

    def __str__(self) -> str:
        ends = ", ".join(f"{count:,} {what}" for what, count in sorted(self.outcomes.items()))
        lines = [f"{sum(self.outcomes.values()):,} cases: {ends}", *map(str, self.findings)]
        return "\n".join(lines)


def run(
    cases: Sequence[Any], check: Check, *, show: Callable[[str], None] = lambda _: None
) -> Report:
    """Run ``check`` on every case; it says how a case ended, or raises.

    Of what it may raise only the package's own errors are in order. A process that dies is followed by
    another one, which goes on with the next case.
    """
    report, left = Report(Counter(), []), list(cases)
    while left:
        batch, left = left[:BATCH], left[BATCH:]
        done = _run_batch(batch, check, report)
        left = batch[done:] + left
        show(f"{len(cases) - len(left):,} of {len(cases):,} cases, {len(report.findings)} findings")
    return report


def _run_batch(batch: list[Any], check: Check, report: Report) -> int:
    """How many cases were dealt with; all, or those up to the one that ended the process."""
    receive, send = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(receive)
        _work(batch, check, send)
    os.close(send)
    done, how = 0, ""
    for line in _lines(receive):
        if line is None:
            how = f"no answer after {TIME_S:.0f} s"
            os.kill(pid, signal.SIGKILL)
            break
        _count(report, batch[done], *json.loads(line))
        done += 1
    os.close(receive)
    _, status = os.waitpid(pid, 0)
    if done < len(batch):
        _count(report, batch[done], "ended the process", how or _end_of(status))
        done += 1
    return done


def _lines(pipe: int) -> Iterator[bytes | None]:
    """Lines as they come; None if one does not come in time."""
    rest = b""
    while select.select([pipe], [], [], TIME_S)[0]:
        more = os.read(pipe, 1 << 16)
        if not more:
            return
        *lines, rest = (rest + more).split(b"\n")
        yield from lines
    yield None


def _count(report: Report, case: Any, outcome: str, what: str | None) -> None:
    report.outcomes[outcome] += 1
    if what is not None:
        report.findings.append(Finding(case, what))


def _end_of(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exit code {os.waitstatus_to_exitcode(status)}"


def _work(batch: list[Any], check: Check, send: int) -> None:
    """Run cases in this process, which ends here; a line for each."""
    try:
        limit = _bytes_of_addresses() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for case in batch:
            os.write(send, (json.dumps(_outcome(case, check)) + "\n").encode())
    finally:
        os._exit(0)


def _outcome(case: Any, check: Check) -> tuple[str, str | None]:
    """How a case ended, and what is wrong about that."""
    before = _peak_bytes()
    try:
        outcome = check(case)
    except LocoleError as error:
        if isinstance(error.__cause__, MemoryError):
            return "raised", f"too much memory: {error}"
        outcome = "refused"
    except BaseException as error:
        return "raised", f"{type(error).__name__}: {str(error)[:300]} ({_place_of(error)})"
    grown = _peak_bytes() - before
    if grown > MEMORY_BYTES // 2:
        return "grew", f"took {grown >> 20} MB"
    return outcome, None


def _place_of(error: BaseException) -> str:
    """Last line of the package that led to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if f"{os.sep}locole{os.sep}" in frame.filename] or frames
    return f"{own[-1].filename.rpartition(os.sep)[2]}:{own[-1].lineno}"


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _bytes_of_addresses() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
