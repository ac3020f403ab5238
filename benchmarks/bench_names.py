"""Labels known by their texts, seen and never seen: ``make bench-names``.

Six systems answer the same rows in the same run: TF-IDF cosine of rows and label texts, by the defaults
of scikit-learn and in the features of the model; the default model without and with label texts, and
both with an encoder beside. Labels are counted by their training rows.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import bench_multilabel
import machine
import numpy as np
import scipy.sparse as sp
from bench_linear import PEERS, MissingDataError
from sklearn.feature_extraction.text import TfidfVectorizer

from locole import LocoleClassifier
from locole.datasets import load_city_names
from locole.text import TextClassifier, TextFeatures

RECORD = Path(__file__).resolve().parent / "records" / "names.json"
#: Answers for each row.
K = 20
#: Training rows of labels: from, to.
BANDS = {"unseen": (0, 0), "1-2 rows": (1, 2), "more": (3, 1 << 60)}
#: Cities of which no spelling is learnt.
UNSEEN_CITIES = 0.1


class Data(NamedTuple):
    """Texts with one or more labels each, what labels are called, and how features are made."""

    train: tuple[list[str], list[list[Any]]]
    test: tuple[list[str], list[list[Any]]]
    label_texts: dict[Any, str]
    features: TextFeatures
    single: bool = False

    def held_back(self, n_rows: int) -> Data:
        """Training rows alone, with some of them in place of the test rows, to choose settings by."""
        texts, labels = self.train
        order = np.random.default_rng(0).permutation(len(texts))
        parts = [np.sort(order[n_rows:]), np.sort(order[:n_rows])]
        train, test = (([texts[i] for i in p], [labels[i] for i in p]) for p in parts)
        return self._replace(train=train, test=test)


def tibkat_gnd(folder: Path) -> Data:
    """Titles and abstracts, German and English, with subject headings, most of which have a name."""
    home = folder / "tibkat_gnd"
    (train, texts), (test, test_texts) = (
        bench_multilabel._read(home / f"{part}.tsv.xz") for part in ("train", "test")
    )
    with lzma.open(home / "label_names.tsv.xz", "rt", encoding="utf-8", newline="\n") as file:
        names = dict(line.rstrip("\n").split("\t", 1) for line in file)
    features = TextFeatures("word", min_df=2)
    return Data((texts, train), (test_texts, test), names, features)


def city_names(folder: Path) -> Data:
    """Spellings of cities, and their names; of a tenth of the cities no spelling is learnt."""
    cities = load_city_names(min_population=15_000)
    assert cities.label_names is not None
    n_labels = len(cities.label_names)
    rng = np.random.default_rng(0)
    unseen = rng.permutation(n_labels)[: round(UNSEEN_CITIES * n_labels)]
    kept = np.flatnonzero(~np.isin(cities.y_train, unseen))
    train = [cities.text_train[i] for i in kept], [[int(cities.y_train[i])] for i in kept]
    test = cities.text_test, [[int(label)] for label in cities.y_test]
    texts = {i: name.replace("(", "").replace(")", "") for i, name in enumerate(cities.label_names)}
    return Data(train, test, texts, TextFeatures("both"), single=True)


SETS: dict[str, Callable[[Path], Data]] = {"tibkat_gnd": tibkat_gnd, "city_names": city_names}


def words(data: Data) -> tuple[Any, dict[str, float]]:
    """TF-IDF cosine by scikit-learn's defaults: single words, of training texts and label texts."""
    return cosine(data, TfidfVectorizer(), [*data.train[0], *data.label_texts.values()])


def same_features(data: Data) -> tuple[Any, dict[str, float]]:
    """TF-IDF cosine in the features of the model."""
    return cosine(data, TextFeatures(**data.features.get_params()), data.train[0])


def cosine(data: Data, features: Any, texts: list[str]) -> tuple[Any, dict[str, float]]:
    """Labels whose texts have the largest cosine, by features fitted to texts; ties go to the first."""
    start = time.process_time()
    features.fit(texts)
    labels = np.array(list(data.label_texts))
    names = sp.csr_array(features.transform(list(data.label_texts.values()))).T.tocsr()
    fitted = time.process_time()
    X, found = sp.csr_array(features.transform(data.test[0])), []
    for first in range(0, X.shape[0], 256):
        scores = (X[first : first + 256] @ names).toarray()
        best = np.argpartition(-scores, K, axis=1)[:, : K + 1]
        order = np.lexsort((best, -np.take_along_axis(scores, best, 1)), axis=1)[:, :K]
        found.append(np.take_along_axis(best, order, 1))
    seconds = {"train_cpu_s": fitted - start, "predict_cpu_s": time.process_time() - fitted}
    return labels[np.concatenate(found)], seconds


def wordllama(texts: list[str]) -> np.ndarray:
    """Mean token vectors, by the environment of the peers."""
    script = Path(__file__).parent / "peers" / "encode_wordllama.py"
    with tempfile.TemporaryDirectory() as folder:
        lines, found = Path(folder, "texts.txt"), Path(folder, "vectors.npy")
        lines.write_text("".join(f"{' '.join(text.split())}\n" for text in texts), encoding="utf-8")
        subprocess.run([PEERS / "bin" / "python", script, lines, found], check=True)
        return np.load(found)


def locole(data: Data, *, named: bool, encoder: Any = None) -> tuple[Any, dict[str, float]]:
    """Answers of the default model."""
    start = time.process_time()
    texts, labels = data.train
    classifier = TextClassifier(
        data.features,
        LocoleClassifier(n_jobs=1),
        encoder=encoder,
        label_texts=data.label_texts if named else None,
    ).fit(texts, [own[0] for own in labels] if data.single else labels)
    fitted = time.process_time()
    found, _ = classifier.predict_topk(data.test[0], k=K)
    seconds = {"train_cpu_s": fitted - start, "predict_cpu_s": time.process_time() - fitted}
    return found, seconds


SYSTEMS: dict[str, tuple[str, Callable[[Data], tuple[Any, dict[str, float]]]]] = {
    "words": ("TF-IDF cosine, scikit-learn's defaults", words),
    "cosine": ("TF-IDF cosine, features of the model", same_features),
    "plain": ("locole, defaults", lambda data: locole(data, named=False)),
    "names": ("locole, label texts", lambda data: locole(data, named=True)),
    "dense": ("locole, wordllama", lambda data: locole(data, named=False, encoder=wordllama)),
    "both": (
        "locole, label texts and wordllama",
        lambda data: locole(data, named=True, encoder=wordllama),
    ),
}


def metrics(answers: Any, data: Data) -> dict[str, float]:
    """P@1 of all rows, and recall of labels that have a text, by their training rows."""
    counts = Counter(label for own in data.train[1] for label in own)
    sets = [set(own) for own in data.test[1]]
    hits = [
        [label in own for label in row] for row, own in zip(answers.tolist(), sets, strict=True)
    ]
    found = {"P@1": float(np.mean([row[0] for row in hits]))}
    found["P@5"] = float(np.mean([row[:5] for row in hits]))
    for band, (least, most) in BANDS.items():
        places = [
            row.index(label) if label in row else K
            for row, own in zip(answers.tolist(), data.test[1], strict=True)
            for label in own
            if label in data.label_texts and least <= counts[label] <= most
        ]
        found[f"{band}: labels of rows"] = len(places)
        for k in (1, 5, K):
            found[f"{band}: R@{k}"] = float(np.mean(np.array(places) < k)) if places else 0.0
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    folder = os.environ.get("LOCOLE_DATA")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else Path("data"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument(
        "--held-back", type=int, help="training rows in place of the test rows; nothing is recorded"
    )
    parser.add_argument("--output", type=Path, default=RECORD)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    old = json.loads(args.output.read_text())["runs"] if args.output.exists() else []
    done = {(r["set"], r["system"]): r for r in old}
    for name in args.sets:
        try:
            data = SETS[name](args.data)
        except (MissingDataError, FileNotFoundError) as error:
            print(f"{name}: missing: {error}", flush=True)
            continue
        if args.held_back is not None:
            data = data.held_back(args.held_back)
        for key in args.systems:
            label, run = SYSTEMS[key]
            answers, seconds = run(data)
            found = {"set": name, "system": key, "label": label, **seconds}
            done[name, key] = {**found, "metrics": metrics(answers, data)}
            print(json.dumps(done[name, key]), flush=True)
            if args.held_back is None:
                order = [
                    done[pair] for pair in ((s, y) for s in SETS for y in SYSTEMS) if pair in done
                ]
                record = {"machine": machine.describe(), "runs": order}
                args.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
