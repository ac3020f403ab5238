"""The log: one JSON object a line on standard error."""

from __future__ import annotations

import json
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

__all__ = ["log", "log_error"]


def log(event: str, **about: Any) -> None:
    """Write a line: the time, what happened, and more about it."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = json.dumps({"time": now, "event": event, **about}, default=str)
    # In one piece: several threads write.
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def log_error(event: str, error: BaseException, **about: Any) -> None:
    """Write what went wrong and where."""
    log(event, **about, error=repr(error), trace="".join(traceback.format_exception(error)))
