"""Forks benches, kills them at random points and lets others go on; prints what there was to see.

The runs are done by stub_run.py. First argument: a folder; second: options of the data as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from locole.experiments import children
from locole.experiments.runner import run_spec
from locole.experiments.spec import parse_spec

HERE = Path(__file__).parent
TRIALS = 2


def spec(options: dict, hang: bool = False):
    entries = [
        {"method": "wltls", "seeds": [0, 1, 2, 3]},
        {"method": "parabel", "settings": {"act": "fails"}, "seeds": [0, 1]},
        {"method": "elastic_net", "embeddings": {"gaussian": [32, 64, 128]}, "seeds": [0, 1]},
    ]
    if hang:
        entries = [entries[1], {"method": "wltls", "settings": {"act": "hang"}}]
    return parse_spec(
        {"name": "storm", "data": ["topics"], "data_options": options, "methods": entries}
    )


def forked(made, folder: Path) -> int:
    """Start a bench in a process of its own."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        run_spec(made, folder, at_once=2 if folder.name.endswith("1") else 1)
        code = 0
    except KeyboardInterrupt:
        code = 130
    finally:
        os._exit(code)


def lines(folder: Path) -> int:
    path = folder / "storm.jsonl"
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def main() -> None:
    folder, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    children._COMMAND = [sys.executable, "-S", "-E", str(HERE / "stub_run.py")]
    whole = spec(options)
    random.seed(5)
    folders, kills = ["undisturbed"], 0
    started = time.monotonic()
    assert os.waitpid(forked(whole, folder / "undisturbed"), 0)[1] == 0
    span = time.monotonic() - started
    for trial in range(TRIALS):
        name = f"trial{trial}"
        folders.append(name)
        for _ in range(200):
            pid = forked(whole, folder / name)
            time.sleep(random.uniform(0, span / 4))
            os.kill(pid, signal.SIGKILL)
            killed = os.waitpid(pid, 0)[1] != 0
            kills += killed
            path = folder / name / "storm.jsonl"
            if killed and path.exists() and random.random() < 0.5:
                # What a write that was cut off leaves.
                with open(path, "ab") as file:
                    file.write(b'{"experiment": "storm", "da')
            if not killed:
                break
        else:
            sys.exit("the bench never came to its end")
    # Ctrl-C while the second run hangs: the first is kept, the second is ended.
    last = folder / "interrupted"
    pid = forked(spec(options, hang=True), last)
    for _ in range(1000):
        if lines(last) == 2 and len(list(last.glob("pid-*"))) == 3:
            break
        time.sleep(0.01)
    os.kill(pid, signal.SIGINT)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert lines(last) == 2
    # A stub does not watch its standard input, as real runs do: only those of Ctrl-C must be gone.
    left = [int(file.name.removeprefix("pid-")) for file in last.glob("pid-*")]
    print(json.dumps({"folders": folders, "kills": kills, "interrupted": code, "left": left}))


if __name__ == "__main__":
    main()
