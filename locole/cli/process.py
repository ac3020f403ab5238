"""What surrounds a command: signals, warnings, and output whose reader may leave."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any
from unicodedata import category

from locole.cli.words import in_our_words

__all__ = ["as_a_process", "drop_output", "one_line", "visible"]

# Zero-width joiner and non-joiner.
_JOINERS = "\u200c\u200d"


@contextlib.contextmanager
def as_a_process() -> Iterator[None]:
    """Let warnings be one line, closed pipes harmless, and a polite kill unwind as an error does."""
    with (
        open(os.devnull, "w") as nowhere,  # for streams that the shell has closed
        contextlib.redirect_stdout(_Outlet(sys.stdout or nowhere)),
        contextlib.redirect_stderr(_Outlet(sys.stderr or nowhere)),
        _plain_warnings(),
        _clean_end(),
    ):
        yield


class _Outlet:
    """Standard output or error; once its reader has left, the work goes on and prints to nobody.

    What is written to its ``buffer`` is the work itself, so there a closed pipe is an error.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        # Names of labels are in any script, which not every terminal can show.
        with contextlib.suppress(AttributeError):
            self._stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        try:
            return int(self._stream.write(text))
        except BrokenPipeError:
            drop_output(self._stream)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            drop_output(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def drop_output(stream: Any) -> None:
    """Send to nowhere what is written from now on, and what Python flushes at its end."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def one_line(message: str) -> str:
    r"""Message without ends of lines, and without what could steer a terminal.

    Examples
    --------
    >>> print(one_line("two\nlines, \x1b[31mred"))
    two lines, \x1b[31mred
    """
    return visible(" ".join(message.split()))


def visible(text: str) -> str:
    r"""Text with its control characters written out: a terminal would obey them.

    Blanks of all widths and joiners, which some scripts need, stay.

    Examples
    --------
    >>> print(visible("\x1b[31mred, \u202edeb, 東京\u3000タワー"))
    \x1b[31mred, \u202edeb, 東京　タワー
    """
    return "".join(c if _is_harmless(c) else repr(c)[1:-1] for c in text)


def _is_harmless(character: str) -> bool:
    return character.isprintable() or character in _JOINERS or category(character) == "Zs"


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show a warning as one line, without the place in the source."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        print(f"locole: warning: {one_line(in_our_words(str(message)))}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def _clean_end() -> Iterator[None]:
    """Let Ctrl-C and a polite kill unwind as errors do, so that nothing half-written stays."""
    told: list[int] = []

    def end(number: int, frame: object) -> None:
        told.append(128 + number)
        raise SystemExit(told[0])

    try:
        before = {signal.SIGTERM: signal.signal(signal.SIGTERM, end)}
    except ValueError:  # not in the main thread, which alone gets signals
        yield
        return
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except SystemExit as error:
        # Ray raises one of its own, with another code, when a signal comes while it waits.
        raise SystemExit(told[0]) if told else error from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
