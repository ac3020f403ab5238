"""What is done to a forged model: load it, ask it everything, let it learn, save it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS), str(TESTS / "io")]

from forgery import Forgery, wrapped  # noqa: E402
from golden_cases import Data, case_of  # noqa: E402
from mutations import mutate  # noqa: E402
from runner import folder  # noqa: E402

from locole import load  # noqa: E402
from locole.exceptions import LocoleError  # noqa: E402
from locole.io import outline  # noqa: E402
from locole.text import TextClassifier  # noqa: E402

__all__ = ["KINDS", "check_model", "honest", "use", "warm_up", "wrapped"]

GOLDEN = TESTS / "io" / "golden"
#: Kinds of models, by the folders of golden ones; some of an old format, which is translated first.
KINDS = sorted(f"format2/{folder.name}" for folder in (GOLDEN / "format2").glob("*/"))
KINDS += ["format1/default", "format1/network_profiles", "format1/texts"]
# Rows that a model is asked about, and that it learns.
_ROWS = 5
# Methods that some kinds of models lack.
_NOT_OF_ALL = (
    "decision_function",
    "partial_fit",
    "explain",
    "merge_labels",
    "retire_labels",
    "forget",
)


@cache
def honest(kind: str) -> Forgery:
    return Forgery.of(GOLDEN / kind)


@cache
def questions(kind: str) -> Data:
    """A few rows of the case, and a new label."""
    data = case_of(kind.rpartition("/")[2]).data()
    y = data.y[:_ROWS] if isinstance(data.y, list) else np.array(data.y[:_ROWS])
    return Data(data.X[:_ROWS], y, data.questions[:_ROWS])


def check_model(case: tuple[int, int]) -> str:
    """Use the forged model of that seed and number."""
    seed, number = case
    kind = KINDS[number % len(KINDS)]
    forged = honest(kind).copy()
    mutate(forged, np.random.default_rng([seed, number]))
    return use(forged, kind)


def use(forged: Forgery, kind: str) -> str:
    """Write, load and use a forged model; say how far it came."""
    path = folder() / "model"
    forged.write(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with np.errstate(all="ignore"):
            return _use(path, questions(kind))


def _use(path: Path, data: Data) -> str:
    model = load(path, verify=True)
    try:
        check_is_fitted(model)
    except (NotFittedError, TypeError):
        return "no fitted model"
    if isinstance(model, TextClassifier) != isinstance(data.questions, list):
        return "of another kind"
    answers: list[Any] = [
        lambda: model.predict(data.questions),
        lambda: model.predict_topk(data.questions, k=2),
        lambda: model.decision_function(data.questions),
        lambda: model.partial_fit(data.X, data.y),
        lambda: model.predict(data.questions),
        lambda: model.save(path.with_name("saved")),
    ]
    refused = sum(not _does(ask) for ask in answers)
    # What not every honest model does.
    for ask in (
        lambda: model.predict_topk(data.questions, k=2, proba=True),
        lambda: model.predict_set(data.questions),
        lambda: model.explain(data.questions[:2]),
        lambda: model.merge_labels({model.classes_[0]: model.classes_[1]}),
        lambda: model.retire_labels([model.classes_[-1]]),
        lambda: model.forget(data.X, data.y),
        lambda: model.predict(data.questions),
        lambda: str(getattr(getattr(model, "classifier_", model), "choice_", "")),
        lambda: outline(model).to_dict(),
        lambda: model.save(path.with_name("saved")),
    ):
        _does(ask)
    return "used" if not refused else "partly used"


def _does(ask: Callable[[], Any]) -> bool:
    """Whether a model does what it is asked, or has no such method; errors but ours are raised."""
    try:
        ask()
    except LocoleError:
        return False
    except AttributeError as error:
        if error.name not in _NOT_OF_ALL:
            raise
    return True


def warm_up() -> None:
    """Use every honest model once, so that forked processes find all kernels compiled."""
    for kind in KINDS:
        assert use(honest(kind), kind).endswith("used"), kind
