"""Models that change in one step: for who interrupts a fit, and for other threads that ask meanwhile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

__all__ = ["all_or_nothing", "of_one_moment"]

M = TypeVar("M", bound=Callable[..., Any])


def all_or_nothing(method: M) -> M:
    """Decorate a method that learns: all it changes appears at once, at its end.

    It works on a draft, so that the model stays as it was if it fails or is interrupted, and answers
    that are given meanwhile are those of the old model.

    Examples
    --------
    >>> class Model:
    ...     @all_or_nothing
    ...     def fit(self):
    ...         self.a = 1
    ...         raise ValueError
    >>> model = Model()
    >>> try:
    ...     model.fit()
    ... except ValueError:
    ...     vars(model)
    {}
    """

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        draft = _copy(self)
        result = method(draft, *args, **kwargs)
        # One assignment: an update of many attributes could be seen half done.
        self.__dict__ = vars(draft)
        return self if result is draft else result

    return cast(M, guarded)


def of_one_moment(method: M) -> M:
    """Decorate a method that answers: it sees the model as it was when it was called."""

    @functools.wraps(method)
    def asked(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(_copy(self), *args, **kwargs)

    return cast(M, asked)


def _copy(model: Any) -> Any:
    """Shallow copy. Its attributes are read in one step, which `copy.copy` does not promise."""
    copied = object.__new__(type(model))
    copied.__dict__ = vars(model).copy()
    return copied
