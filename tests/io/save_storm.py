"""Saves that are killed, interrupted and read at random moments; run by test_model_atomic.

Runs in a process of its own, which forks: a child starts in a millisecond with all imports done.
Prints one line of JSON with what was seen.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from bags import letter_bag, letter_of

from locole.io import read_model, write_model

A, B = letter_bag("a"), letter_bag("b", size=5000)
LONGEST_S = 0.012
# Looks at a process that should stop, before it is given up.
PATIENCE = 20_000


def start_saving(folder: Path, *bags) -> int:
    """Process that saves these bags in turn for ever; it is about to when this returns."""
    ready, tell = os.pipe()
    pid = os.fork()
    if pid:
        # A signal would be lost while Python puts itself in order after the fork.
        os.close(tell)
        os.read(ready, 1)
        os.close(ready)
        return pid
    try:
        os.write(tell, b"!")
        while True:
            for bag in bags:
                write_model(folder, bag)
    except KeyboardInterrupt:
        os._exit(0)
    finally:
        os._exit(1)


def stop(pid: int, kind: int) -> int:
    os.kill(pid, kind)
    for _ in range(PATIENCE):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        time.sleep(0.0005)
    os.kill(pid, signal.SIGKILL)
    raise RuntimeError("a save did not stop")


def read_letter(folder: Path) -> str:
    return letter_of(read_model(folder, verify=True))


def stopped_saves(folder: Path, kind: int, times: int) -> dict[str, int]:
    """Stop saves at random moments; after each, the folder holds one whole model."""
    write_model(folder, A)
    rng = random.Random(0)
    seen = {"a": 0, "b": 0, "litter": 0, "clean_exits": 0}
    for _ in range(times):
        pid = start_saving(folder, B, A)
        time.sleep(rng.uniform(0, LONGEST_S))
        seen["clean_exits"] += stop(pid, kind) == 0
        seen[read_letter(folder)] += 1
        seen["litter"] += len(os.listdir(folder)) > 2
    write_model(folder, A)
    seen["left_at_the_end"] = len(os.listdir(folder)) - 2
    return seen


def killed_at_every_call(folder: Path) -> dict[str, int]:
    """Kill a save before its first call of the system, then before its second, and so on to its end.

    Every call of Python's modules for files counts, which are more than those of the system.
    """
    seen = {"a": 0, "b": 0, "litter": 0, "turns": 0}
    before = "a"
    for number in itertools.count():
        write_model(folder, A)
        if not _killed_at(folder, number):
            break
        letter = read_letter(folder)
        seen[letter] += 1
        seen["turns"] += letter != before
        seen["litter"] += len(os.listdir(folder)) > 2
        before = letter
    seen["left_at_the_end"] = len(os.listdir(folder)) - 2
    return seen


def _killed_at(folder: Path, number: int) -> bool:
    """Whether a save has come so far as to be killed before its call of that number."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1] == signal.SIGKILL
    left = itertools.count(number, -1)

    def on_call(frame, event, called):
        if event == "c_call" and _is_of_files(called) and next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(on_call)
    write_model(folder, B)
    os._exit(0)


def _is_of_files(function) -> bool:
    owner = type(function.__self__).__module__ if function.__module__ is None else ""
    return (function.__module__ or owner) in ("posix", "fcntl", "_io", "io")


def reads_during_saves(folder: Path, times: int, savers: int) -> dict[str, int]:
    """Read while one or several processes save; every read gets one whole model."""
    write_model(folder, A)
    pids = [start_saving(folder, *pair) for pair in ([B, A], [A, B])[:savers]]
    seen = {"a": 0, "b": 0}
    try:
        for _ in range(times):
            seen[read_letter(folder)] += 1
    finally:
        for pid in pids:
            stop(pid, signal.SIGKILL)
    write_model(folder, A)
    seen["left_at_the_end"] = len(os.listdir(folder)) - 2
    return seen


if __name__ == "__main__":
    # A shell in the background has its children ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    root, kills = Path(sys.argv[1]), int(sys.argv[2])
    found = {
        "each": killed_at_every_call(root / "each"),
        "killed": stopped_saves(root / "killed", signal.SIGKILL, kills),
        "interrupted": stopped_saves(root / "interrupted", signal.SIGINT, kills // 10),
        "read": reads_during_saves(root / "read", kills // 2, savers=1),
        "contended": reads_during_saves(root / "contended", kills // 3, savers=2),
    }
    print(json.dumps(found))
