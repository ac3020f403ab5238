"""Kills updates of a model at random moments: a hundred times the old model or the new one is found.

Arguments: a folder with the files of `samples.write_samples`, and how many times. Prints what it saw.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from locole import load
from locole.cli import main


def forked(words: list[str]) -> int:
    """Run a command in a process of its own, in which everything is imported already."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        code = main(words)
    finally:
        os._exit(code)


def storm(folder: Path, n_kills: int) -> dict[str, int]:
    """Update copies of a model and kill the processes, later and later."""
    os.chdir(folder)
    assert main(["fit", "train.tsv", "-o", "storm", "-j", "1"]) == 0
    words = ["update", "model", "monday.tsv", "-j", "1", "--json"]
    old = load("storm").classes_.tolist()
    spans = []
    for _ in range(2):  # the first compiles and imports what the others find
        shutil.rmtree("model", ignore_errors=True)
        shutil.copytree("storm", "model")
        start = time.monotonic()
        assert os.waitpid(forked(words), 0)[1] == 0
        spans.append(time.monotonic() - start)
    new = load("model").classes_.tolist()
    assert new == [*old, "llama"]
    random.seed(3)
    seen = {"killed": 0, "finished": 0, "old": 0, "new": 0, "left_over": 0}
    while seen["killed"] < n_kills:
        shutil.rmtree("model")
        shutil.copytree("storm", "model")
        pid = forked(words)
        # Half of them while files are written, at the end.
        time.sleep(random.choice([random.random(), random.uniform(0.7, 1.0)]) * min(spans))
        os.kill(pid, signal.SIGKILL)
        killed = os.waitpid(pid, 0)[1] != 0
        found = load("model", verify=True).classes_.tolist()
        assert found in (old, new)
        assert killed or found == new
        seen["killed" if killed else "finished"] += 1
        seen["new" if found == new else "old"] += killed
        seen["left_over"] += len(list(Path("model").iterdir())) > 2
    # What was left over is swept away by the next update.
    assert main(words) == 0
    assert len(list(Path("model").iterdir())) == 2
    return seen


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from samples import write_samples

    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    write_samples(place)
    print(storm(place, int(sys.argv[2]) if len(sys.argv) > 2 else 100))
