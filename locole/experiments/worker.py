"""``python -m locole.experiments.worker``: one run in a process of its own.

A line of JSON on standard input says what to do, a line of JSON on standard output what came out. A
process of its own can be ended when its time is up, has its own peak of memory and its own seconds, and
takes nobody along when it crashes. It ends itself when standard input does: whoever asked is gone then.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from locole.experiments.runs import Run

__all__ = ["main", "reply", "sentence"]

_LONGEST = 300
_ORPHANED = 3


def main() -> None:
    """Read a request, do the run, write the reply."""
    request = json.loads(_line(0))
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    # What libraries print must not come between reply and reader.
    channel = os.dup(1)
    os.dup2(2, 1)
    answer = json.dumps(reply(request))
    os.write(channel, answer.encode() + b"\n")
    sys.stderr.flush()
    # Nothing is left to tidy up that the system would not.
    os._exit(0)


def reply(request: dict[str, Any]) -> dict[str, Any]:
    """Outcome of a run; whatever goes wrong is a status.

    Parameters
    ----------
    request : dict
        ``run``, the fields of a `Run`; ``rows``, the folder of its data; ``threads``; ``folder`` for
        pictures; ``coherence`` and ``work`` as for `locole.experiments.measure.measure`.

    Examples
    --------
    >>> run = {"experiment": "x", "data": "y", "method": "centroids"}
    >>> reply({"run": run, "rows": "no such folder", "threads": 1})["status"][:26]
    'failed: FileNotFoundError:'
    """
    try:
        run = Run(**request["run"])
        if run.method == "tsne":
            from locole.experiments.tsne import draw

            return draw(run, Path(request["folder"]))
        from locole.experiments.data import open_kept
        from locole.experiments.measure import measure

        rows = open_kept(request["rows"])
        known = {key: request[key] for key in ("coherence", "work") if key in request}
        return measure(run, rows, threads=request["threads"], **known)
    except MemoryError as error:
        return {"status": sentence(f"not enough memory. {error}")}
    except Exception as error:
        from locole.exceptions import LocoleError

        traceback.print_exc()
        kind = "" if isinstance(error, LocoleError | ImportError) else f"{type(error).__name__}: "
        return {"status": sentence(f"{kind}{error}")}


def sentence(reason: str) -> str:
    r"""Status of a run that failed, on one line.

    Examples
    --------
    >>> sentence("there are\nno rows")
    'failed: there are no rows'
    """
    words = " ".join(reason.split())
    return f"failed: {words if len(words) <= _LONGEST else words[:_LONGEST] + '…'}"


def _line(file: int) -> bytes:
    """One line, read byte by byte from the file itself: nothing of it may be left in a buffer."""
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(file, 1)
        if not part:
            os._exit(_ORPHANED)
        line += part
    return line


def _end_with_stdin() -> None:
    while os.read(0, 1):
        pass
    os._exit(_ORPHANED)


if __name__ == "__main__":
    main()
