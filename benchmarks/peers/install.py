"""Install each line of requirements.txt by itself; say in installed.json how it went.

Run by the interpreter of the peers' own environment; no failure ends it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONSTRAINTS = HERE.parent.parent / "constraints.txt"


def install(line: str) -> str:
    """Return "installed" or why not."""
    requirement, _, comment = (part.strip() for part in line.partition("#"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["-c", str(CONSTRAINTS), requirement]
    if comment.startswith("no-deps"):
        command.append("--no-deps")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return "installed"
    errors = [x for x in done.stderr.splitlines() if x.startswith("ERROR")] or [done.stderr[-200:]]
    return errors[-1].removeprefix("ERROR: ").strip() or f"pip ended with {done.returncode}"


def main() -> None:
    outcome = {}
    for line in (HERE / "requirements.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name = line.split("==")[0]
            outcome[name] = install(line)
            print(f"{name}: {outcome[name]}", flush=True)
    (Path(sys.prefix) / "installed.json").write_text(json.dumps(outcome, indent=2) + "\n")


if __name__ == "__main__":
    main()
