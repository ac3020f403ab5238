"""One system on dense rows, or on texts, in a process of its own; see bench_dense.py.

Runs in the peers' environment too, so each system imports what it needs.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import traceback
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from measure import K, Stopwatch, accuracy, folder_bytes, forget_peak, peak_bytes

# Rows and settings with which a peer's setting is chosen, on a fifth of them, before it is timed.
_SEARCH_ROWS = 20_000
_BLOCK = 1024


class Rows:
    """Training and test rows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.X, self.y, self.X_test, self.y_test = (
            np.load(folder / f"{name}.npy") for name in ("X_train", "y_train", "X_test", "y_test")
        )
        self.n_classes = int(self.y.max()) + 1

    def texts(self, part: str) -> list[str]:
        """Texts of a part."""
        return (self.folder / f"{part}.txt").read_text(encoding="utf-8").split("\n")[:-1]


def unit(X: np.ndarray) -> np.ndarray:
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


def best(X: np.ndarray, score: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Best K columns of the scores of each row, a block of rows after the other."""
    found = []
    for start in range(0, len(X), _BLOCK):
        scores = score(X[start : start + _BLOCK])
        top = np.argpartition(-scores, min(K, scores.shape[1] - 1), axis=1)[:, :K]
        order = np.argsort(-np.take_along_axis(scores, top, 1), axis=1, kind="stable")
        found.append(np.take_along_axis(top, order, 1))
    return np.concatenate(found)


class System:
    """What is measured: `train` and `predict` are timed, `search` is not."""

    packages: tuple[str, ...] = ()
    settings: tuple[Any, ...] = (None,)

    def __init__(self, threads: int) -> None:
        self.threads, self.setting = threads, self.settings[0]

    def train(self, X: np.ndarray, y: np.ndarray, n_classes: int) -> None:
        """Learn; timed."""
        raise NotImplementedError

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Best labels of each row; timed."""
        raise NotImplementedError

    def model_bytes(self) -> int:
        """Size of the model."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    def search(self, rows: Rows) -> None:
        """Take the setting that is best on validation rows."""
        if len(self.settings) == 1:
            return
        order = np.random.default_rng(0).permutation(len(rows.y))[:_SEARCH_ROWS]
        held, used = np.split(order, [len(order) // 5])
        right = []
        for setting in self.settings:
            self.setting = setting
            self.train(rows.X[used], rows.y[used], rows.n_classes)
            right.append((self.predict(rows.X[held])[:, 0] == rows.y[held]).mean())
        self.setting = self.settings[int(np.argmax(right))]


class Centroids(System):
    """Cosine with the labels' means."""

    def train(self, X: np.ndarray, y: np.ndarray, n_classes: int) -> None:
        """Learn; timed."""
        sums = np.zeros((n_classes, X.shape[1]), dtype=np.float32)
        np.add.at(sums, y, unit(X))
        self.means = unit(sums)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Best labels of each row; timed."""
        return best(X, lambda some: some @ self.means.T)


class Neighbours(System):
    """Labels of the nearest rows by cosine, each with the weight ``exp(20 cosine)``."""

    packages = ("scikit-learn",)
    settings = (1, 5, 10, 20)

    def train(self, X: np.ndarray, y: np.ndarray, n_classes: int) -> None:
        """Learn; timed."""
        self.y, self.n_classes = y, n_classes
        self.index(unit(X))

    def index(self, X: np.ndarray) -> None:
        """Index the rows."""
        from sklearn.neighbors import NearestNeighbors

        self.found = NearestNeighbors(n_neighbors=self.setting, algorithm="brute").fit(X)
        self.kept = X

    def near(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and places of the nearest rows."""
        distances, places = self.found.kneighbors(X)
        return 1 - distances**2 / 2, places

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Best labels of each row; timed."""

        def scores(some: np.ndarray) -> np.ndarray:
            cosines, places = self.near(some)
            out = np.zeros((len(some), self.n_classes), dtype=np.float32)
            np.add.at(
                out, (np.arange(len(some))[:, None], self.y[places]), np.exp(20 * (cosines - 1))
            )
            return out

        return best(unit(X), scores)


class Faiss(Neighbours):
    """The same by an inverted-file index of faiss."""

    packages = ("faiss-cpu",)

    def index(self, X: np.ndarray) -> None:
        """Index the rows."""
        import faiss

        faiss.omp_set_num_threads(self.threads)
        cells = int(max(1, 4 * len(X) ** 0.5 // 4))
        quantizer = faiss.IndexFlatIP(X.shape[1])
        self.found = faiss.IndexIVFFlat(quantizer, X.shape[1], cells, faiss.METRIC_INNER_PRODUCT)
        self.found.train(X)
        self.found.add(X)
        self.found.nprobe = max(8, cells // 16)
        self.kept = X

    def near(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and places of the nearest rows."""
        cosines, places = self.found.search(np.ascontiguousarray(X), self.setting)
        return np.where(places < 0, -np.inf, cosines), places


class Logistic(System):
    """scikit-learn's multinomial logistic regression."""

    packages = ("scikit-learn",)
    settings = (10.0, 1.0, 100.0)

    def search(self, rows: Rows) -> None:
        """As for others, where a trial takes seconds."""
        if rows.n_classes <= 1000:
            super().search(rows)

    def train(self, X: np.ndarray, y: np.ndarray, n_classes: int) -> None:
        """Learn; timed."""
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=self.setting, max_iter=1000).fit(X, y)
        self.weights, self.bias, self.classes = model.coef_, model.intercept_, model.classes_

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Best labels of each row; timed."""
        return self.classes[best(X, lambda some: some @ self.weights.T + self.bias)]


class Head(System):
    """A linear softmax head in torch by Adam: rows of unit length, ten epochs, batches of 256."""

    packages = ("torch",)
    settings = (0.01, 0.003, 0.03)
    sampled: int | None = None
    epochs = 10

    def train(self, X: np.ndarray, y: np.ndarray, n_classes: int) -> None:
        """Learn; timed."""
        import torch

        torch.set_num_threads(self.threads)
        torch.manual_seed(0)
        rows, codes = torch.from_numpy(X), torch.from_numpy(y.astype(np.int64))
        table = torch.nn.Embedding(n_classes, X.shape[1], sparse=self.sampled is not None)
        torch.nn.init.zeros_(table.weight)
        kind = torch.optim.Adam if self.sampled is None else torch.optim.SparseAdam
        optimizer = kind(list(table.parameters()), lr=self.setting)
        total = self.epochs * -(-len(y) // 256)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / total)
        for _ in range(self.epochs):
            for some in torch.randperm(len(y)).split(256):
                Z = torch.nn.functional.normalize(rows[some], dim=1)
                if self.sampled is None:
                    logits, target = 20 * Z @ table.weight.T, codes[some]
                else:
                    drawn = torch.randint(n_classes, (self.sampled,))
                    labels = torch.unique(torch.cat([codes[some], drawn]))
                    logits = 20 * Z @ table(labels).T
                    target = torch.searchsorted(labels, codes[some])
                loss = torch.nn.functional.cross_entropy(logits, target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
        self.weights = table.weight.detach().numpy()

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Best labels of each row; timed."""
        return best(unit(X), lambda some: some @ self.weights.T)


class SampledHead(Head):
    """The same head with 1,024 drawn labels and those of the batch."""

    sampled = 1024


class Locole(System):
    """The default model."""

    packages = ("locole",)

    def make(self) -> Any:
        """Model to be fitted."""
        from locole import LocoleClassifier

        return LocoleClassifier(n_jobs=self.threads)

    def train(self, X: Any, y: np.ndarray, n_classes: int) -> None:
        """Learn; timed."""
        self.model = self.make().fit(X, y)

    def predict(self, X: Any) -> np.ndarray:
        """Best labels of each row; timed."""
        return self.model.predict_topk(X, k=K)[0]

    def model_bytes(self) -> int:
        """Size of the model."""
        with tempfile.TemporaryDirectory() as folder:
            self.model.save(f"{folder}/model")
            return folder_bytes(Path(folder))


class Words(Locole):
    """`TextClassifier` with the words of the texts alone."""

    def make(self) -> Any:
        """Model to be fitted."""
        from locole import LocoleClassifier
        from locole.text import TextClassifier

        return TextClassifier(classifier=LocoleClassifier(n_jobs=self.threads))


class Both(Words):
    """`TextClassifier` with words and vectors; the encoder looks up what is encoded already."""

    def make(self) -> Any:
        """Model to be fitted."""
        return super().make().set_params(encoder=self.encoder)


SYSTEMS: dict[str, type[System]] = {
    "centroids": Centroids,
    "knn": Neighbours,
    "faiss": Faiss,
    "logistic": Logistic,
    "head": Head,
    "sampled_head": SampledHead,
    "locole": Locole,
    "words": Words,
    "both": Both,
}


def measure(name: str, rows: Rows, threads: int) -> dict[str, Any]:
    """Choose a setting, train, predict; one flat record."""
    system = SYSTEMS[name](threads)
    X, X_test = rows.X, rows.X_test
    if isinstance(system, Words):
        X, X_test = rows.texts("train"), rows.texts("test")
        table = dict(zip([*X, *X_test], np.concatenate([rows.X, rows.X_test]), strict=True))
        nothing = np.zeros(rows.X.shape[1], dtype=np.float32)
        system.encoder = lambda texts: np.stack([table.get(t, nothing) for t in texts])
    else:
        system.search(rows)
    if isinstance(system, Locole):  # compile
        few = slice(0, min(1200, len(rows.y)))
        known = np.unique(rows.y[few], return_inverse=True)[1]
        system.train(X[few], known, int(known.max()) + 1)
        system.predict(X_test[:4])
    before = forget_peak()
    with Stopwatch() as training:
        system.train(X, rows.y, rows.n_classes)
    peak = peak_bytes()
    with Stopwatch() as prediction:
        answer = system.predict(X_test)
    return {
        "status": "done",
        **accuracy(list(answer), rows.y_test),
        "train_wall_s": training.wall_s,
        "train_cpu_s": training.cpu_s,
        "predict_wall_s": prediction.wall_s,
        "predict_cpu_s": prediction.cpu_s,
        "memory_before_bytes": before,
        "memory_peak_bytes": peak,
        "model_bytes": system.model_bytes(),
        "setting": system.setting,
        "package": ", ".join(f"{name} {version(name)}" for name in system.packages),
        "n_train": len(rows.y),
        "n_test": len(rows.y_test),
        "n_features": rows.X.shape[1],
        "n_classes": rows.n_classes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", type=float, default=14, help="gigabytes")
    args = parser.parse_args()
    # What needs more fails by itself, instead of being killed with others beside it.
    resource.setrlimit(resource.RLIMIT_DATA, (int(args.memory * 1e9),) * 2)
    try:
        record = measure(args.system, Rows(args.data), args.threads)
    except ImportError as error:
        record = {"status": f"not installed: {error}"}
    except Exception as error:
        traceback.print_exc()
        record = {"status": f"failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    args.output.write_text(json.dumps(record))


if __name__ == "__main__":
    main()
