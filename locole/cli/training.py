"""Training for the command line: the parts of the library, one timed step after the other."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, overload

import numpy as np
from sklearn.base import clone

from locole.classifier import LocoleClassifier
from locole.cli.examples import read_training
from locole.cli.reading import Reading
from locole.cli.settings import parameters
from locole.cli.show import amount, warn
from locole.cli.steps import Steps
from locole.datasets import load_texts
from locole.exceptions import LocoleError
from locole.io import all_parts
from locole.labels import label_sets
from locole.parallel.progress import track
from locole.regressors import TargetRegressor
from locole.scoring.default import REGRESSORS
from locole.text import TextClassifier, TextFeatures

__all__ = [
    "make_classifier",
    "model_bytes",
    "read_label_texts",
    "train_model",
]


# Options of the command line → what regressors call them.
_PARAMETERS = {
    "l1": ("l1",),
    "l2": ("l2",),
    "passes": ("max_passes", "epochs"),
    "storage": ("storage",),
}


def model_bytes(path: str) -> int:
    """Size of a model on disk."""
    return sum(entry.stat().st_size for entry in os.scandir(path))


def make_classifier(
    embedding: str,
    dim: int | None,
    regressor: str,
    options: dict[str, Any],
    *,
    settings: Sequence[str] = (),
    profiles: bool | None = None,
    seed: int,
    jobs: int,
) -> LocoleClassifier:
    """Make a classifier from what was typed; options that are None are left to the regressor.

    Settings like ``hidden=64`` are the regressor's, which must be named.

    Examples
    --------
    >>> make_classifier("gold", 128, "auto", {"l2": 0.5}, seed=0, jobs=1).regressor
    ElasticNetRegressor(l2=0.5, verbose=1)
    """
    if settings and regressor == "auto":
        raise LocoleError(
            "--set is for a baseline or a regressor: name one by --model or --regressor, or leave it."
        )
    given = {name: value for name, value in options.items() if value is not None}
    return LocoleClassifier(
        embedding=embedding,
        dim=dim,
        regressor=_regressor(regressor, given, settings, seed) if given or settings else regressor,
        profiles="auto" if profiles is None else profiles,
        random_state=seed,
        n_jobs=jobs,
        verbose=1,
    )


def _regressor(name: str, given: dict[str, Any], settings: Sequence[str], seed: int) -> Any:
    """Regressor of that name with these parameters, if it has them."""
    chosen = "elastic_net" if name == "auto" else name
    if chosen not in REGRESSORS:
        return name  # the classifier says which names there are
    kind = REGRESSORS[chosen]
    known = inspect.signature(kind).parameters
    values = parameters(f"the regressor {chosen}", kind, settings, seed=seed, jobs=None)
    for option, value in given.items():
        parameter = next((name for name in _PARAMETERS[option] if name in known), None)
        if parameter is None:
            raise LocoleError(f"the regressor {chosen} has no --{option}: leave it out.")
        values[parameter] = value
    return kind(**values)


def train_model(
    path: str,
    reading: Reading,
    classifier: Any,
    features: TextFeatures,
    steps: Steps,
    *,
    encoder: Any = None,
    label_texts: str | None = None,
) -> tuple[Any, dict[str, str]]:
    """Read, vectorise where rows are texts, and train.

    Returns
    -------
    model : LocoleClassifier, TextClassifier or a baseline
    notes : dict
        For the manifest.
    """
    with steps.run("read", f"reading {path}") as record:
        batch, notes = read_training(path, reading)
        rows, labels, _ = batch
        counts = _counts(rows, labels)
        record.update(counts)
        record["summary"] = ", ".join(f"{n:,} {what}" for what, n in counts.items())
    if batch.is_empty.any():
        warn(
            f"{batch.is_empty.sum():,} of {len(batch):,} texts are empty: they say nothing of labels."
        )
    if reading.label_separator is not None and not _some_have_several(labels):
        warn(
            f"no row of {path} has more than one label: is {reading.label_separator!r} what separates "
            "them?"
        )
    if not isinstance(rows, list):
        if encoder is not None:
            raise LocoleError(f"--encoder is for texts, and {path} has numbers: leave it out.")
        if label_texts is not None:
            raise LocoleError(f"--label-texts is for texts, and {path} has numbers: leave it out.")
        _train(classifier, rows, labels, steps)
        return classifier, notes | _provenance(path, classifier)
    named = None if label_texts is None else read_label_texts(label_texts)
    with steps.run("vectorise", "vectorising") as record:
        X = features.fit_transform(_Shown(rows, "vectorising"))
        record.update(features=X.shape[1], nonzeros=int(X.nnz), chosen=_reasons(features))
        record["summary"] = f"{X.shape[1]:,} features, {X.nnz / X.shape[0]:.1f} a text"
        record["summary"] += _lines(record["chosen"])
    model = TextClassifier(clone(features), clone(classifier), encoder=encoder, label_texts=named)
    model.remember_encoder()
    if encoder is not None:
        with steps.run("encode", "encoding") as record:
            X = model.with_vectors(X, rows)
            record["summary"] = f"{X.dense.shape[1]:,} numbers a text"
    with model.naming(classifier, features):
        _train(classifier, X, labels, steps)
    model.features_, model.classifier_ = features, classifier
    return model, notes | _provenance(path, classifier)


def read_label_texts(path: str) -> dict[Any, str]:
    """Labels of a file and their texts; several of a label are joined."""
    found: dict[Any, list[str]] = {}
    texts, labels = load_texts(path)
    if labels is None:
        raise LocoleError(
            f"{path}: a file of texts alone has no labels: take .tsv, label tab text."
        )
    for text, label in zip(texts, labels, strict=True):
        found.setdefault(label, []).append(text)
    return {label: " ".join(texts) for label, texts in found.items()}


def _provenance(path: str, classifier: Any) -> dict[str, str]:
    """When and of what a model was made, and how good it was on its validation rows."""
    notes = {"date": datetime.now(UTC).isoformat(timespec="seconds")}
    if os.path.isfile(path):
        with open(path, "rb") as file:
            notes["data_sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    accuracy = getattr(classifier, "choice_", {}).get("accuracy")
    return notes if accuracy is None else {**notes, "validation_accuracy": f"{accuracy:.4f}"}


def _train(classifier: Any, X: Any, y: Any, steps: Steps) -> None:
    with steps.run("train", "training") as record:
        classifier.fit(X, y)
        record["chosen"] = {**_formula(classifier), **_reasons(classifier)}
        record["summary"] = f"{len(classifier.classes_):,} labels" + _lines(record["chosen"])


def _formula(classifier: Any) -> dict[str, Any]:
    """Which parts a classifier has; from now on they are silent."""
    _silence(*all_parts(classifier))
    if not isinstance(classifier, LocoleClassifier):
        return {"model": type(classifier).__name__}
    embedding = getattr(classifier, "embedding_", None)
    if embedding is None:
        return {"model": type(classifier.scorer_).__name__}
    regressors = [
        part for part in all_parts(classifier.scorer_) if isinstance(part, TargetRegressor)
    ]
    chosen: dict[str, Any] = {"embedding": repr(embedding), "outputs": embedding.real_dim}
    if regressors:  # which may all count for nothing
        chosen["regressor"] = ", ".join(type(regressor).__name__ for regressor in regressors)
    for regressor in regressors:
        chosen |= _reasons(regressor)
    return chosen


def _silence(*parts: Any) -> None:
    """Forget the wish for progress: a saved model should not print when it learns more."""
    for part in parts:
        if hasattr(part, "get_params") and "verbose" in part.get_params(deep=False):
            part.set_params(verbose=0)


def _counts(rows: Any, labels: Any) -> dict[str, int]:
    is_text = isinstance(rows, list)
    counts = {"texts" if is_text else "rows": len(rows) if is_text else rows.shape[0]}
    if not is_text:
        counts["features"] = rows.shape[1]
    return {**counts, "labels": _n_labels(labels)}


def _some_have_several(labels: Any) -> bool:
    """Whether a row has more than one label."""
    sets = label_sets(labels)
    return sets is not None and bool((np.diff(sets.starts) > 1).any())


def _n_labels(labels: Any) -> int:
    """Number of different labels, one for each row or several."""
    sets = label_sets(labels)
    return len(set(labels.tolist())) if sets is None else int(np.unique(sets.codes).size)


def _reasons(estimator: Any) -> dict[str, str]:
    """What an estimator chose by itself: its attributes that end in ``_reason_``, and ``choice_``."""
    said = {name: value for name, value in vars(estimator).items() if name.endswith("_reason_")}
    said = {name.removesuffix("_reason_"): value for name, value in said.items()}
    said["choice"] = str(getattr(estimator, "choice_", ""))
    return {name: value for name, value in said.items() if value and "as given" not in value}


def _lines(chosen: dict[str, Any]) -> str:
    return "".join(f"\n{'':10} {name:>10} {amount(value)}" for name, value in chosen.items())


class _Shown(Sequence[str]):
    """Texts that show progress when they are looped over."""

    def __init__(self, texts: list[str], description: str) -> None:
        self._texts, self._description = texts, description

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: Any) -> Any:
        return self._texts[place]

    def __iter__(self) -> Iterator[str]:
        return track(self._texts, self._description, unit="texts")
