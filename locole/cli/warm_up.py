"""``locole warm-up``: compile before somebody waits for it."""

from __future__ import annotations

import random
import tempfile
from typing import Any

from locole.cli.options import Json

__all__ = ["EXAMPLES", "warm_up"]

EXAMPLES = ("locole warm-up", "locole warm-up --json")

# A single elastic net, and every part of an ensemble; few labels take other kernels than many.
_PROBLEMS = ((300, 10), (1_100, 40), (3_300, 300))
_WORDS = 400


def warm_up(json: Json = False) -> None:
    """Compile the kernels that fit and predict need, so that no later command waits for it.

    The default model is trained on made-up texts and numbers, few and many labels. Compiled kernels are
    kept beside the package, or where that cannot be written in the user's cache folder or the one for
    temporary files; NUMBA_CACHE_DIR names another. In an image, run this as the user who installs.
    """
    from locole.cli.compiling import compiled_where
    from locole.cli.show import print_json
    from locole.kernels.cache import KERNELS, cache_folder, compiling

    for n_rows, n_labels in _PROBLEMS:
        _try_texts(n_rows, n_labels)
        _try_numbers(n_rows, n_labels)
    if json:
        folder = cache_folder(KERNELS)
        found: dict[str, Any] = {"kernels": compiling.count, "seconds": compiling.seconds}
        print_json({**found, "folder": None if folder is None else str(folder)})
    else:
        print(f"compiled {compiling.count} kernels, {compiled_where()}")


def _try_texts(n_rows: int, n_labels: int) -> None:
    from locole.text import TextClassifier

    rng = random.Random(0)
    labels = [str(i % n_labels) for i in range(n_rows)]
    texts = [
        f"{label} " + " ".join(f"word{rng.randrange(_WORDS)}" for _ in range(8)) for label in labels
    ]
    _use(TextClassifier().fit(texts, labels), texts)


def _try_numbers(n_rows: int, n_labels: int) -> None:
    from locole.classifier import LocoleClassifier
    from locole.datasets import load_libsvm, make_topics, save_libsvm

    data = make_topics(n_rows, _WORDS, n_labels)
    with tempfile.TemporaryDirectory() as folder:
        save_libsvm(f"{folder}/rows.svm", data.X_train, data.y_train)
        X, y = load_libsvm(f"{folder}/rows.svm")
    _use(LocoleClassifier().fit(X, y), X)


def _use(model: Any, rows: Any) -> None:
    """Predict with a model and with what is loaded from its file."""
    from locole.models import load

    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model")
        for each in (model, load(f"{folder}/model")):
            each.predict_topk(rows[:100], k=5)
