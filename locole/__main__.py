"""``locole`` and ``python -m locole``: the command line as a process of its own."""

import atexit
import os
import signal
import sys

__all__ = ["run"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run() -> None:
    """Run the command line; a signal ends it with the code that shells expect, also while it starts."""
    for number in _SIGNALS:
        # Who starts a process in the background may have it ignore Ctrl-C.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    # Registered first, so called last: from then on Python takes no handler along.
    atexit.register(_ignore_signals)
    from locole.cli import main

    sys.exit(main())


def _end(number: int, frame: object) -> None:
    """End at once: before and after `main` there is nothing to tidy up."""
    os._exit(128 + number)


def _ignore_signals() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    run()
