"""Settings of a network by name: the paper's, and ours for any targets and for labels."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

from locole.exceptions import LocoleError
from locole.parameters import COUNT, FRACTION, NOT_NEGATIVE, PASSES, SWITCH, check_values, one_of
from locole.regressors.mlp.schedule import Schedule

__all__ = ["CONSTRAINTS", "RECIPES", "Settings", "resolve"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """All that decides what a network learns; see `MLPRegressor` for the meaning of each."""

    hidden: tuple[int, ...] = (512,)
    batch_size: int = 256
    #: None is decided by the number of rows.
    epochs: int | None = None
    learning_rate: float = 1e-3
    schedule: Schedule = "cosine"
    steps_at: tuple[int, ...] = ()
    warm_up: float = 0.0
    loss: Literal["squared", "softmax"] = "squared"
    normalise: bool = True
    learn_scale: bool = True
    batch_norm: bool = False
    dropout: float = 0.0
    feature_dropout: float = 0.0
    label_smoothing: float = 0.0
    skip: bool = False
    start: Literal["random", "linear"] = "random"
    embedding_rate: float = 0.0
    #: None is decided by the loss.
    coherence_penalty: float | None = None

    @property
    def penalty(self) -> float:
        """Weight of the coherence of learnt vectors: the softmax keeps labels apart by itself."""
        if self.coherence_penalty is None:
            return 1.0 if self.loss == "squared" else 0.0
        return self.coherence_penalty

    def for_rows(self, n_rows: int) -> Settings:
        """Decide on the epochs, if that is left open: four, or as many as some hundred steps take."""
        if self.epochs is not None:
            return self
        n_batches = math.ceil(n_rows / self.batch_size)
        epochs = max(_EPOCHS, math.ceil(_MIN_STEPS / max(1, n_batches)))
        return dataclasses.replace(self, epochs=epochs)


_EPOCHS, _MIN_STEPS = 4, 500
_OURS = Settings(skip=True, start="linear")
_PAPER = Settings(schedule="step")

#: The paper's networks and ours. ODP was run with 2^10 units in the first layer by the paper, and
#: with 2^11 by its authors' code, which has 16 and 8 times as many in the next two.
RECIPES: dict[str, Settings] = {
    "default": _OURS,
    "labels": dataclasses.replace(
        _OURS, loss="softmax", learning_rate=3e-3, feature_dropout=0.3, label_smoothing=0.2
    ),
    "lshtc1": dataclasses.replace(
        _PAPER, hidden=(4096,), batch_size=128, epochs=5, steps_at=(2,)
    ),
    "dmoz": dataclasses.replace(
        _PAPER, hidden=(2500,), batch_size=256, epochs=5, steps_at=(2, 4)
    ),
    "odp": dataclasses.replace(
        _PAPER, hidden=(1024, 16384, 8192), batch_size=2048, epochs=20, steps_at=(10,),
        batch_norm=True,
    ),
    "odp_code": dataclasses.replace(
        _PAPER, hidden=(2048, 32768, 16384), batch_size=2048, epochs=20, steps_at=(10,),
        batch_norm=True,
    ),
}  # fmt: skip

#: What each may be; None leaves it to the recipe.
CONSTRAINTS: dict[str, list[Any]] = {
    "hidden": [None, *COUNT, list, tuple],
    "batch_size": [None, *COUNT],
    "epochs": [None, *PASSES],
    "learning_rate": [None, *NOT_NEGATIVE],
    "schedule": [None, *one_of(*get_args(Schedule))],
    "steps_at": [None, *COUNT, list, tuple],
    "warm_up": [None, *NOT_NEGATIVE],
    "loss": [None, *one_of("squared", "softmax")],
    "normalise": [None, *SWITCH],
    "learn_scale": [None, *SWITCH],
    "batch_norm": [None, *SWITCH],
    "dropout": [None, *FRACTION],
    "feature_dropout": [None, *FRACTION],
    "label_smoothing": [None, *FRACTION],
    "skip": [None, *SWITCH],
    "start": [None, *one_of("random", "linear")],
    "embedding_rate": [None, *NOT_NEGATIVE],
    "coherence_penalty": [None, *NOT_NEGATIVE],
}


def resolve(recipe: str, given: Mapping[str, Any]) -> Settings:
    """Settings of a recipe, with what is given (not None) in their place; all are checked.

    Examples
    --------
    >>> resolve("lshtc1", {"epochs": 2}).epochs
    2
    """
    check_values({"recipe": one_of(*RECIPES), **CONSTRAINTS}, {"recipe": recipe, **given})
    changes = {name: value for name, value in given.items() if value is not None}
    for name in ("hidden", "steps_at"):
        if name in changes:
            changes[name] = _whole_numbers(name, changes[name])
    if changes.get("skip") is False:
        # Without a linear part there is nothing that a recipe could start from.
        changes.setdefault("start", "random")
    settings = dataclasses.replace(RECIPES[recipe], **changes)
    if settings.start == "linear" and not settings.skip:
        raise LocoleError('start="linear" fills the linear part: take skip=True with it.')
    return settings


def _whole_numbers(name: str, value: Any) -> tuple[int, ...]:
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    for item in values:
        check_values({name: COUNT}, {name: item})
    if name == "hidden" and not values:
        raise LocoleError("hidden is empty: give the size of at least one hidden layer.")
    return tuple(int(item) for item in values)
