"""What a part of a model gives to a file and is made from again."""

from __future__ import annotations

from collections.abc import Callable
from reprlib import repr  # short, whatever a file says
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast

import numpy as np

from locole.exceptions import LocoleError, ModelFileError
from locole.parameters import check_values

__all__ = ["Part", "SavedEstimator", "bytes_to_make", "class_of", "kind_of", "saved_as"]

# Left behind by scikit-learn's own checks of X, where there was something to leave.
_FROM_SKLEARN: dict[str, Any] = {"n_features_in_": int, "feature_names_in_": np.ndarray}


class Part(Protocol):
    """A part of a model: an embedding, a decoder, a regressor, a whole classifier.

    Values may be None, bool, int, float, str, arrays of numbers or strings, CSR arrays, other
    parts, and lists, tuples and dicts of all these.
    """

    def _state(self) -> dict[str, Any]:
        """Values by name."""

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        """Make the part from what a file says; the values are not to be trusted."""


_CLASSES: dict[str, type[Part]] = {}
# What any part is taken to cost: models have dozens of parts, not thousands.
_PART_BYTES = 1 << 20

P = TypeVar("P", bound=type)


def saved_as(kind: str) -> Callable[[P], P]:
    """Class decorator: instances are written to model files under this name.

    Files hold the name and never an import path, so that reading one runs no code but ours. A
    subclass does not inherit the name: it would be read as its parent.

    Parameters
    ----------
    kind : str
        Such as ``"embedding.kerdock"``. A name is never given to another class later on.
    """

    def register(cls: P) -> P:
        _CLASSES[kind] = cls
        return cls

    return register


def kind_of(part: Any) -> str | None:
    """Name under which this very class is saved, or None."""
    return next((kind for kind, cls in _CLASSES.items() if cls is type(part)), None)


def class_of(kind: str) -> type[Part]:
    """Class behind a name that was read from a file."""
    if kind not in _CLASSES:
        raise ModelFileError(f"it has a part of the unknown kind {repr(kind)}: upgrade locole")
    return _CLASSES[kind]


def bytes_to_make(cls: type[Part], values: dict[str, Any]) -> int:
    """Bytes that a part takes beside its arrays; `_bytes_to_make` counts those of its tables."""
    needs = getattr(cls, "_bytes_to_make", None)
    return _PART_BYTES + (0 if needs is None else needs(values))


class SavedEstimator:
    """What estimators with a name add to scikit-learn's BaseEstimator.

    The state is the constructor's parameters and, if fitted, the attributes listed in ``_learnt``. An
    author declares what the former may be, lists the latter with their types, and overrides
    ``_check_learnt``:

    >>> from sklearn.base import BaseEstimator
    >>> from locole.parameters import NOT_NEGATIVE
    >>> class Mean(SavedEstimator, BaseEstimator):
    ...     _parameter_constraints: ClassVar = {"prior": NOT_NEGATIVE}
    ...     _learnt: ClassVar = {"mean_": float}
    ...
    ...     def __init__(self, prior=0.0):
    ...         self.prior = prior
    ...
    ...     def fit(self, y):
    ...         self.check_parameters()
    ...         self.mean_ = float(sum(y)) / (len(y) + self.prior)
    ...         return self
    >>> Mean().fit([1, 2])._state()
    {'params': {'prior': 0.0}, 'learnt': {'mean_': 1.5}}
    """

    #: What each parameter may be; see `locole.parameters`.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    #: Attributes that `fit` leaves and that make up the model: name → type, or tuple of types.
    _learnt: ClassVar[dict[str, Any]] = {}

    #: Parameters that are not written, and refused in files: where a model learns is the user's to say,
    #: and no file's.
    _unsaved: ClassVar[tuple[str, ...]] = ()

    #: Those of them that were written once: passed over in old files, whatever they say.
    _passed_over: ClassVar[tuple[str, ...]] = ()

    #: Parameters that had another name in old files: old name → name.
    _renamed: ClassVar[dict[str, str]] = {}

    def check_parameters(self) -> None:
        """Raise LocoleError if a fit would refuse a parameter, whatever the data; nothing is learnt."""
        self._check_values()
        self._check_means()
        for value in self._params().values():
            for part in value if isinstance(value, list | tuple) else [value]:
                if isinstance(part, SavedEstimator):
                    part.check_parameters()

    def _check_values(self) -> None:
        """Raise LocoleError if a parameter is not what it may be, alone or beside the others."""
        check_values(self._parameter_constraints, self._params())

    def _check_means(self) -> None:
        """Raise LocoleError if a fit needs what is not installed here."""

    def _params(self) -> dict[str, Any]:
        return cast(dict[str, Any], cast(Any, self).get_params(deep=False))

    def _check_learnt(self) -> None:
        """Raise ModelFileError where the attributes that a file gave do not fit together.

        Kernels trust their arrays, so whatever they rely on has to be checked here.
        """

    def _state(self) -> dict[str, Any]:
        own = vars(self)
        names = (*self._learnt, *_FROM_SKLEARN)
        params = {
            name: value for name, value in self._params().items() if name not in self._unsaved
        }
        return {"params": params, "learnt": {name: own[name] for name in names if name in own}}

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        params, learnt = values["params"], values["learnt"]
        if not isinstance(params, dict) or not isinstance(learnt, dict):
            raise ModelFileError("it has a part without parameters or attributes")
        params = {name: value for name, value in params.items() if name not in cls._passed_over}
        params = {cls._renamed.get(name, name): value for name, value in params.items()}
        known = set(cast(Any, cls)._get_param_names()).difference(cls._unsaved)
        _refuse_unknown(params, known, "parameter")
        _refuse_unknown(learnt, {*cls._learnt, *_FROM_SKLEARN}, "attribute")
        made = cls(**params)
        try:
            made._check_values()
        except LocoleError as error:
            raise ModelFileError(f"its parameter {error}".rstrip(".")) from error
        if learnt:
            _check_types(learnt, cls._learnt)
            vars(made).update(learnt)
            made._check_learnt()
        return made


def _refuse_unknown(values: dict[str, Any], known: set[str], what: str) -> None:
    for name in values:
        if name not in known:
            raise ModelFileError(f"it has the unknown {what} {repr(name)}: upgrade locole")


def _check_types(values: dict[str, Any], types: dict[str, Any]) -> None:
    for name, kinds in types.items():
        if name in values:
            continue
        if not isinstance(None, kinds):
            raise ModelFileError(f"its attribute {name} is missing")
        # A part that was not there yet when the file was written.
        values[name] = None
    for name, value in values.items():
        wanted = types[name] if name in types else _FROM_SKLEARN[name]
        # True is an int to Python, but no number of outputs.
        is_bool = isinstance(value, bool) and wanted is not bool
        if is_bool or not isinstance(value, wanted):
            raise ModelFileError(f"its attribute {name} is a {type(value).__name__}")
