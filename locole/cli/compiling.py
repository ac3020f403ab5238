"""Says on standard error that kernels are being compiled, which is the wait of a first run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from locole.cli.show import say
from locole.kernels.cache import KERNELS, cache_folder, compiling

__all__ = ["compiled_where", "told_of_compiling"]

# Shorter compilation is not spoken of.
_PATIENCE_S = 2.0


@contextmanager
def told_of_compiling() -> Iterator[None]:
    """Within this, say that kernels are compiled once it has taken two seconds, and how long it took."""
    count, seconds = compiling.count, compiling.seconds
    told = False

    def tell(total: float) -> None:
        nonlocal told
        if not told and total - seconds >= _PATIENCE_S:
            told = True
            say("locole: compiling kernels for the first time, up to a minute …")

    compiling.listener = tell
    try:
        yield
    finally:
        compiling.listener = None
        if told:
            number, time = compiling.count - count, compiling.seconds - seconds
            say(f"locole: compiled {number} kernels in {time:.0f} s, {compiled_where()}")


def compiled_where() -> str:
    """Where compiled kernels are kept, as part of a sentence."""
    folder = cache_folder(KERNELS)
    if folder is None:
        return "not kept: set NUMBA_CACHE_DIR to a folder that can be written."
    return f"kept in {folder}."
