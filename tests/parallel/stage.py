"""Plays scenes on real clusters, each in a process of its own, and sees that nothing of them is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

HERE = Path(__file__).parent


def processes(token: str) -> list[str]:
    """Command lines of all processes whose environment has the token."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:80])
        except OSError:
            continue
    return found


def play(file: str, scene: str) -> dict:
    """Report of a scene, after which none of its processes is left."""
    token = f"scene-{uuid.uuid4()}"
    environment = {
        **os.environ,
        "LOCOLE_SCENE": token,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, str(HERE / file), scene],
        env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    # Killed processes may take a moment to go.
    deadline = time.monotonic() + 10
    while processes(token) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert processes(token) == []
    return json.loads(done.stdout.splitlines()[-1])
