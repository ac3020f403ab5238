"""The demonstration: learn the names of cities, compare with centroids, answer misspelt names."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole._version import __version__
from locole.baselines import Centroids
from locole.classifier import LocoleClassifier
from locole.cli.show import size
from locole.cli.steps import Steps
from locole.cli.training import model_bytes
from locole.datasets import Dataset, load_city_names
from locole.io import outline
from locole.metrics import accuracy, top_k_accuracy
from locole.models import load
from locole.text import TextClassifier, TextFeatures

__all__ = ["QUERIES", "Demo", "run_demo"]

#: Spellings of the training part with a letter wrong, in a dozen scripts, and the cities they mean.
QUERIES = {
    "Constantinopel TR": "Istanbul (TR)",
    "Warszawwa PL": "Warsaw (PL)",
    "Копенхагин DK": "Copenhagen (DK)",
    "Νέα Υόρκι US": "New York City (US)",
    "لشبونا PT": "Lisbon (PT)",
    "טוקיוו JP": "Tokyo (JP)",
    "दिल्लि IN": "Delhi (IN)",
    "โกลกาต้า IN": "Kolkata (IN)",
    "პრაგა CZ": "Prague (CZ)",
    "서울시이 KR": "Seoul (KR)",
    "ニュウヨーク US": "New York City (US)",
    "聖彼德堡 RU": "Saint Petersburg (RU)",
}
_K = 5


class Demo(NamedTuple):
    """What the demonstration measured."""

    data: dict[str, int]
    """Numbers of training rows, test rows, labels and features."""
    systems: dict[str, dict[str, Any]]
    """For locole and for centroids ``accuracy``, ``top_k_accuracy``, ``train_s``, ``predict_s`` and
    ``bytes``."""
    answers: list[dict[str, Any]]
    """``query``, ``meant``, ``answers``, ``scores`` and ``place`` of the right one, or None."""
    steps: list[dict[str, Any]]
    """Seconds and peak memory."""
    setting: dict[str, Any]
    """Versions, cores, and what the model consists of."""


def run_demo(
    steps: Steps,
    *,
    min_population: int,
    max_cities: int | None,
    seed: int,
    jobs: int,
    folder: str | None = None,
) -> Demo:
    """Load, train, compare, answer; every step is timed. The model is kept in ``folder``, if any."""
    with steps.run("data", "loading the names of cities") as record:
        data = load_city_names(
            min_population=min_population, max_cities=max_cities, random_state=seed
        )
        record["summary"] = (
            f"{len(data.text_train or ()):,} training and {len(data.text_test or ()):,} test names of "
            f"{len(data.label_names):,} cities"
        )
    names = np.array(data.label_names, dtype=object)
    y_train, y_test = names[data.y_train], names[data.y_test]
    ours, model, X = _locole(data, y_train, y_test, steps, folder, seed=seed, jobs=jobs)
    theirs = _centroids(X, y_train, model.features_.transform(data.text_test), y_test, steps)
    classifier = model.classifier_
    return Demo(
        data={
            "train": len(y_train),
            "test": len(y_test),
            "labels": len(names),
            "features": X.shape[1],
        },
        systems={"locole": ours, "centroids": theirs},
        answers=answer_queries(model, set(data.label_names)),
        steps=steps.records,
        setting={
            "locole": __version__,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "embedding": repr(classifier.embedding_),
            "scorers": ", ".join(classifier.choice_.get("sources", classifier.scorer_.sources)),
            "seed": seed,
        },
    )


def _locole(
    data: Dataset,
    y_train: NDArray,
    y_test: NDArray,
    steps: Steps,
    folder: str | None,
    *,
    seed: int,
    jobs: int,
) -> tuple[dict[str, Any], TextClassifier, Any]:
    """Figures, the model as it was loaded from its file, and the training rows."""
    features = TextFeatures()
    with steps.run("vectorise", "vectorising") as record:
        X = features.fit_transform(data.text_train)
        record["summary"] = f"{X.shape[1]:,} features, {features.analyzer_reason_}"
    classifier = LocoleClassifier(random_state=seed, n_jobs=jobs, verbose=1)
    with steps.run("train", "training") as trained:
        classifier.fit(X, y_train)
        said = repr(classifier.embedding_), str(classifier.choice_)
        trained["summary"] = "; ".join(filter(None, said))
    fitted = TextClassifier()
    fitted.features_, fitted.classifier_ = features, classifier
    with steps.run("save", "saving and loading") as saved:
        model, n_bytes, saved["load_s"] = _round_trip(fitted, folder)
        saved["summary"] = f"{size(n_bytes)} on disk, loaded in {saved['load_s']:.2f} s"
    with steps.run("test", "answering the test names") as tested:
        best, _ = model.predict_topk(data.text_test, k=_K)
        figures = _figures(y_test, best)
        tested["summary"] = _summary(figures)
    figures.update(train_s=trained["seconds"], predict_s=tested["seconds"], bytes=n_bytes)
    return figures, model, X


def _round_trip(model: TextClassifier, folder: str | None) -> tuple[TextClassifier, int, float]:
    """The model out of its file, the size of the file, and the seconds to load it."""
    with tempfile.TemporaryDirectory() as temporary:
        path = folder or os.path.join(temporary, "model")
        model.save(path)
        start = time.perf_counter()
        # Mapped arrays outlive the names of their files.
        loaded = load(path) if os.name == "posix" else model
        return loaded, model_bytes(path), time.perf_counter() - start


def _centroids(
    X: Any, y_train: NDArray, X_test: Any, y_test: NDArray, steps: Steps
) -> dict[str, Any]:
    with steps.run("centroids", "the same with class centroids") as record:
        start = time.perf_counter()
        baseline = Centroids().fit(X, y_train)
        trained = time.perf_counter()
        figures = _figures(y_test, baseline.predict_topk(X_test, k=_K)[0])
        done = time.perf_counter()
        record["summary"] = _summary(figures)
    return {
        **figures,
        "train_s": trained - start,
        "predict_s": done - trained,
        "bytes": outline(baseline).n_bytes,
    }


def _figures(y_test: NDArray, best: NDArray) -> dict[str, Any]:
    return {
        "accuracy": accuracy(y_test, best[:, 0]),
        "top_k_accuracy": top_k_accuracy(y_test, best),
    }


def _summary(figures: dict[str, Any]) -> str:
    return f"{figures['accuracy']:.1%} right, {figures['top_k_accuracy']:.1%} in the first {_K}"


def answer_queries(model: Any, cities: set[str]) -> list[dict[str, Any]]:
    """Answers to the misspelt names, of cities that the model knows."""
    asked = {query: meant for query, meant in QUERIES.items() if meant in cities}
    if not asked:
        return []
    labels, scores = model.predict_topk(list(asked), k=min(3, len(model.classes_)))
    return [
        {
            "query": query,
            "meant": meant,
            "answers": found.tolist(),
            "scores": [float(score) for score in values],
            "place": found.tolist().index(meant) + 1 if meant in found else None,
        }
        for (query, meant), found, values in zip(asked.items(), labels, scores, strict=True)
    ]
