"""A server in a process of its own, for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any


class Server:
    """A server in a process of its own."""

    def __init__(self, *words: object) -> None:
        self.words = [str(word) for word in words]
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-W", "error", "-m", "locole", "serve", *self.words]
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [*command, "--port", "0", "--json", "-j", "1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **single},
        )
        self.log: list[dict[str, Any]] = []
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr and self.process.stderr.read()
        self.url = json.loads(line)["url"]
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(json.loads(line))

    def end(self, *, kill: bool = False) -> int:
        (self.process.kill if kill else self.process.terminate)()
        code = self.process.wait(120)
        self._reader.join(60)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        return code
