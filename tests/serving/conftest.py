"""Models of animals, of two versions that tell themselves apart, and clients of servers."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from samples import make_rows, svm_lines, tagged_rows
from served_process import Server

from locole import LocoleClassifier
from locole.cli.examples import open_model
from locole.datasets import load_libsvm
from locole.serving.app import make_app
from locole.serving.registry import Registry
from locole.serving.settings import Settings
from locole.text import TextClassifier

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer versions prefer a package of another name to httpx
    from starlette.testclient import TestClient

open_here = partial(open_model, jobs=1)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the models ``animals`` and ``beasts``, ``tags`` of several labels, and ``numbers``."""
    folder = tmp_path_factory.mktemp("served")
    rows = make_rows(1200, 1)
    # A fifth of the texts say nothing of their animal, so that a model learns not to be sure.
    rng = random.Random(0)
    texts = [text if rng.random() < 0.8 else " ".join(text.split()[2:]) for _, text in rows]
    labels = [label for label, _ in rows]
    _fit(texts, labels).save(folder / "animals")
    _fit(texts, [label.upper() for label in labels]).save(folder / "beasts")
    tagged = tagged_rows(1200, 4)
    _fit([text for _, text in tagged], [tags for tags, _ in tagged]).save(folder / "tags")
    (folder / "rows.svm").write_text(svm_lines(rows))
    X, y = load_libsvm(folder / "rows.svm")
    LocoleClassifier().fit(X, y).save(folder / "numbers")
    return folder


def _fit(texts: list[str], labels: Any) -> TextClassifier:
    """A model with room for more labels."""
    return TextClassifier(classifier=LocoleClassifier("gaussian", dim=32)).fit(texts, labels)


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Forty texts, three of which could be of any animal."""
    unclear = ["common1 common2", "cat1 dog2 pig3 cow4", ""]
    return [*(text for _, text in make_rows(37, 9)), *unclear]


@pytest.fixture
def client(models: Path) -> Iterator[Callable[..., TestClient]]:
    """Make clients of apps: names of models, and settings."""
    opened = []

    def make(*names: str, folder: Path = models, **settings: Any) -> TestClient:
        places = {name: str(folder / name) for name in names or ("animals",)}
        registry = Registry(places, open_here)
        registry.load()
        app = make_app(registry, Settings(**{"reload_s": 0, **settings}))
        opened.append(TestClient(app, raise_server_exceptions=False).__enter__())
        return opened[-1]

    yield make
    for one in opened:
        one.__exit__(None, None, None)


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[Server]:
    """A server of ``animals`` and ``numbers``."""
    started = Server(models / "animals", models / "numbers")
    yield started
    started.end()
