"""Encoders by the name under which Python finds them."""

from __future__ import annotations

import importlib
import os
import sys
from functools import reduce
from typing import Any

from locole.exceptions import LocoleError

__all__ = ["find_encoder"]


def find_encoder(name: str | None) -> Any:
    """Import ``module:function``, also from the present folder; None stays None.

    What a model file says is never imported: names come from the command line alone.

    Examples
    --------
    >>> find_encoder("math:sqrt")(4)
    2.0
    """
    if name is None:
        return None
    module, _, path = name.partition(":")
    if not module or not path:
        raise LocoleError(f"--encoder must be module:function, not {name!r}.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = reduce(getattr, path.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise LocoleError(f"--encoder {name}: {error}.") from None
    if not callable(found):
        raise LocoleError(f"--encoder {name} is a {type(found).__name__}, not a function.")
    return found
