"""Stands in for ``locole.experiments.worker``: answers at once, by what the run's settings ask for.

Each call leaves a file with its process number in the folder of records.
"""

import hashlib
import json
import os
import signal
import sys
import time


def main():
    request = json.loads(sys.stdin.readline())
    run = request["run"]
    act = json.loads(run["settings"] or "{}").get("act", "")
    with open(f"{request['folder']}/pid-{os.getpid()}", "w") as file:
        file.write(str(os.getppid()))
    if act == "hang":
        time.sleep(60)
    if act == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if act == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if act == "exit":
        sys.exit("first line\nthe last line says why")
    if act == "garbage":
        print("[1, 2")
        sys.exit(0)
    time.sleep(0.01)
    what = json.dumps([run[key] for key in ("data", "method", "dim", "seed", "data_options")])
    figure = int(hashlib.sha256(what.encode()).hexdigest()[:4], 16) / 65536
    if act == "grow":
        # Accuracy by dim: 0.5, 0.6, then nothing more.
        figure = {32: 0.5, 64: 0.6, 128: 0.6005, 256: 0.9}[run["dim"]]
    reply = {
        "status": "done", "accuracy": figure, "coherence": 0.5, "fit_wall_s": time.time() % 1,
        "peak_memory_mb": 1.0, "labels": 3,
    }  # fmt: skip
    if act == "fails":
        reply = {"status": "failed: there are no rows"}
    print(json.dumps(reply))


if __name__ == "__main__":
    main()
