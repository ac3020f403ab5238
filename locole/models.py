"""Models out of their files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

# Reading needs every kind of model that there is: importing them makes their names known.
import locole.baselines
import locole.classifier
import locole.text
from locole.exceptions import LocoleError, ModelFileError
from locole.io import Verify, read_model

__all__ = ["load"]


def load(
    path: str | os.PathLike[str],
    *,
    verify: Verify = "auto",
    encoder: Callable[[list[str]], Any] | None = None,
) -> Any:
    """Load a model that ``save`` has written.

    Arrays are mapped into memory and read from disk where they are used, so that large models answer at
    once and processes that use the same model share it. No code from the file is run: a model from a
    stranger can give wrong answers but do nothing else.

    Parameters
    ----------
    path : str or path
        The folder.
    verify : bool or "auto"
        Which arrays are compared with their sha256: all (``True``), none (``False``), or by default the
        smaller ones up to 256 MB together. The manifest, and size and head of the arrays' file, are
        always checked, so a file cut short is always noticed.
    encoder : callable, optional
        The encoder that a `locole.text.TextClassifier` was trained with; another one is refused. Model
        files hold its name only, and nothing is imported by that name.

    Returns
    -------
    LocoleClassifier, TextClassifier or a baseline
        The model, which predicts as the saved one did, bit for bit, and can learn more.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from locole import LocoleClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     LocoleClassifier().fit(X, y).save(f"{folder}/digits")
    ...     classifier = load(f"{folder}/digits")
    >>> bool(classifier.score(X, y) > 0.9)
    True
    """
    model = read_model(path, verify=verify)
    if not isinstance(model, ClassifierMixin):
        kind = type(model).__name__.lstrip("_")
        raise ModelFileError(
            f"{path} holds no model but a part of one: {kind}. Give a whole model."
        )
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ModelFileError(f"the model in {path} has learnt nothing: fit it first.") from None
    if encoder is None:
        return model
    if not isinstance(model, locole.text.TextClassifier):
        raise LocoleError(f"the model in {path} takes no texts, so no encoder: leave it out.")
    return model.set_encoder(encoder)
