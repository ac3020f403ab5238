"""Which character does a sloppy query mean? A search log over all named Unicode characters.

Labels are the characters whose names are words. The log is simulated, with a seed: a few characters
are asked for very often and most of them hardly ever (a Zipf law over a random order), there are
words around the name, words of it are left out or swapped, letters are wrong. The model is trained on
the official names and on past queries, and tested on queries that are not among them.

Run it with ``make demo``, or ``python examples/demo_unicode.py --labels 2000`` for a quick look.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
import unicodedata
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from locole import LocoleClassifier
from locole.metrics import accuracy, top_k_accuracy
from locole.regressors import ElasticNetRegressor

# Ideographs, Hangul syllables and catalogue numbers: names that are made by a rule.
RULE_MADE = re.compile(r"-[0-9A-F]{4,5}$|^HANGUL SYLLABLE|\d{2,}")
QUESTIONS = {
    "greek smal leter alfa": "α",
    "cyrilic capital zhe": "Ж",
    "snowmann": "☃",
    "black hart suit": "♥",
    "rightwards arow": "→",
}
BEFORE = [
    "how do i type",
    "what is the code for",
    "please show me",
    "i need",
    "where do i find",
    "the character",
    "can you paste",
    "symbol for",
    "looking for",
    "what is the html entity of",
    "copy and paste",
    "unicode for",
    "find the",
    "is there a",
    "my font lacks",
    "how to write",
]
AFTER = [
    "in latex",
    "on a mac",
    "please",
    "symbol",
    "in word",
    "on my phone",
    "in html",
    "for a logo",
    "thanks",
    "character",
    "with the keyboard",
    "in python",
    "in a spreadsheet",
    "on windows",
    "as an emoji",
    "for my thesis",
]
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
TEST_QUERIES = 5000


# Data -------------------------------------------------------------------------------------------


def character_names(n_labels: int, rng: random.Random) -> dict[str, str]:
    """Names of ``n_labels`` characters, most popular first; the answers to QUESTIONS are popular."""
    names = {}
    for character in map(chr, range(sys.maxunicode + 1)):
        name = unicodedata.name(character, "")
        if name and not RULE_MADE.search(name):
            names[character] = name.lower().replace("-", " ")
    asked = list(QUESTIONS.values())
    others = [character for character in names if character not in asked]
    rng.shuffle(others)
    order = [*others[:100], *asked, *others[100:]][:n_labels]
    return {character: names[character] for character in order}


def misspell(word: str, rng: random.Random) -> str:
    """Drop, double or replace a letter, or swap two."""
    i = rng.randrange(len(word))
    before, letter, after = word[:i], word[i], word[i + 1 :]
    return rng.choice(
        [
            before + after or word,
            before + letter + letter + after,
            before + rng.choice(ALPHABET) + after,
            before + after[:1] + letter + after[1:],
        ]
    )


def make_query(name: str, n_typos: int, rng: random.Random) -> str:
    """About two thirds of the words of a name, often with a phrase before or after it, with typos."""
    words = name.split()
    words = [word for word in words if rng.random() > 0.3] or [rng.choice(words)]
    if len(words) > 1 and rng.random() < 0.3:
        i = rng.randrange(len(words) - 1)
        words[i : i + 2] = words[i + 1], words[i]
    for _ in range(n_typos):
        i = rng.choices(range(len(words)), [len(word) for word in words])[0]
        words[i] = misspell(words[i], rng)
    before = [rng.choice(BEFORE)] if rng.random() < 0.7 else []
    after = [rng.choice(AFTER)] if rng.random() < 0.7 else []
    return " ".join(before + words + after)


def make_log(
    names: dict[str, str], n_queries: int, typos: tuple[int, ...], rng: random.Random
) -> list[tuple[str, str]]:
    """Pairs of query and character; the character of rank i is asked for ∝ (i + 20)^-1.2."""
    weights = [(rank + 20) ** -1.2 for rank in range(len(names))]
    asked_for = rng.choices(list(names), weights, k=n_queries)
    return [(make_query(names[c], rng.choice(typos), rng), c) for c in asked_for]


def make_data(names: dict[str, str], rng: random.Random) -> tuple[list, list]:
    """Official names and a log to train on; a log to test on without queries seen in training."""
    train = [(name, character) for character, name in names.items()]
    train += make_log(names, int(3.5 * len(names)), (0, 1), rng)
    seen = {query for query, _ in train}
    fresh = [row for row in make_log(names, 3 * TEST_QUERIES, (1,), rng) if row[0] not in seen]
    return train, fresh[:TEST_QUERIES]


def features(query: str) -> list[str]:
    """Words, their trigrams, and pairs of words, also by their first and last two letters.

    A name is a conjunction of words ("small" and "alpha"), which a linear model cannot express
    unless pairs are features.
    """
    words = sorted(set(query.split()))
    found = list(words)
    for word in words:
        padded = f" {word} "
        found += [padded[i : i + 3] for i in range(len(word))]
    for a, b in combinations(words, 2):
        found += [f"{a} {b}", f"{a[:2]}~{b[:2]}", f"{a[-2:]}_{b[-2:]}"]
    return found


# Baseline ---------------------------------------------------------------------------------------


def centroid_topk(
    X: sp.csr_matrix, y: np.ndarray, X_test: sp.csr_matrix, *, k: int, bonus: float = 0.0
) -> np.ndarray:
    """Labels of the k class centroids with the largest ``cosine + bonus·log(rows of the class)``."""
    classes, codes, rows = np.unique(y, return_inverse=True, return_counts=True)
    members = sp.csr_array((np.ones(y.size, np.float32), (codes, np.arange(y.size))))
    sums = members @ sp.csr_array(X)
    norms = np.sqrt(sums.multiply(sums).sum(axis=1))
    centroids = sp.csr_array((sp.diags_array(1 / np.maximum(norms, 1e-9)) @ sums).T)
    popularity = (bonus * np.log(rows)).astype(np.float32)
    best = []
    for start in range(0, X_test.shape[0], 250):
        scores = (sp.csr_array(X_test[start : start + 250]) @ centroids).toarray() + popularity
        top = np.argpartition(-scores, k, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1)
        best.append(np.take_along_axis(top, order, axis=1))
    return classes[np.concatenate(best)]


def best_popular_topk(X, y: np.ndarray, X_test, y_test: np.ndarray, *, k: int) -> np.ndarray:
    """Centroids with the bonus that suits the test queries best, which a user could not know."""
    answers = [centroid_topk(X, y, X_test, k=k, bonus=bonus) for bonus in (0.02, 0.04, 0.06)]
    return max(answers, key=lambda labels: accuracy(y_test, labels[:, 0]))


# Report -----------------------------------------------------------------------------------------


def print_accuracy(y_train: np.ndarray, y_test: np.ndarray, answers: dict[str, np.ndarray]) -> None:
    """Accuracy @1 / @5 over all test queries, and by how many training rows a character has."""
    classes, counts = np.unique(y_train, return_counts=True)
    rows = counts[np.searchsorted(classes, y_test)]
    print(f"\n{'accuracy @1 / @5':28}" + "".join(f"{name:>24}" for name in answers))
    for title, low, high in (
        ("all test queries", 0, np.inf),
        ("characters of 1-5 rows", 1, 5),
        ("characters of 6-99 rows", 6, 99),
        ("characters of 100 or more", 100, np.inf),
    ):
        part = (rows >= low) & (rows <= high)
        if part.any():
            cells = [f"{title:28}"]
            for labels in answers.values():
                first = accuracy(y_test[part], labels[part, 0])
                five = top_k_accuracy(y_test[part], labels[part])
                cells.append(f"{f'{first:.1%} / {five:.1%}':>24}")
            print("".join(cells))
    print(
        "Centroids: cosine to the mean row of each label. Popularity: plus a multiple of log(rows),\n"
        "the best of three tried on the test queries themselves. Among very many labels, those with a\n"
        "few rows only are better found by similarity: a least-squares fit needs more examples."
    )


def print_model(classifier: LocoleClassifier, n_features: int) -> None:
    """Sizes of the model and coherence of the embedding."""
    embedding = classifier.embedding_
    products = embedding.inner_products()
    weights = classifier.regressor_.coef_.nbytes / 1e6
    one_vs_rest = 4 * n_features * embedding.n_classes / 1e6
    print(f"embedding      {embedding!r}, room for {embedding.capacity:,} labels")
    print(f"coherence      {products.coherence:.4f} (exact); RMS inner product {products.rms:.4f}")
    print(f"model          {weights:,.0f} MB of weights and no label vectors;")
    print(f"               a weight for each feature and label would take {one_vs_rest:,.0f} MB")


def print_answers(classifier: LocoleClassifier, vectorizer: TfidfVectorizer, y_train) -> None:
    """Top three characters for the questions, with scores and training rows."""
    labels, scores = classifier.predict_topk(vectorizer.transform(QUESTIONS), k=3)
    for question, row, row_scores in zip(QUESTIONS, labels, scores, strict=True):
        print(f"\n{question!r}")
        for character, score in zip(row, row_scores, strict=True):
            name, times = unicodedata.name(character), int((y_train == character).sum())
            print(f"  {score:6.3f}  {character}  {name} (training rows: {times})")


def main(n_labels: int) -> None:
    """Make the data, train, compare, answer."""
    rng = random.Random(0)
    names = character_names(n_labels, rng)
    train, test = make_data(names, rng)
    y_train, y_test = (np.array([label for _, label in part]) for part in (train, test))
    vectorizer = TfidfVectorizer(analyzer=features, min_df=2, sublinear_tf=True, dtype=np.float32)
    X_train = vectorizer.fit_transform(query for query, _ in train)
    X_test = vectorizer.transform(query for query, _ in test)
    print(f"labels         {len(names):,} Unicode {unicodedata.unidata_version} characters")
    print(f"training rows  {X_train.shape[0]:,} with {X_train.shape[1]:,} features")
    print(f"test queries   {len(test):,}, for example {test[0][0]!r} for {names[test[0][1]]!r}")

    regressor = ElasticNetRegressor(l2=1.0, max_passes=5, n_jobs=-1)
    classifier = LocoleClassifier("kerdock", dim=256, regressor=regressor, n_jobs=-1)
    start = time.perf_counter()
    classifier.fit(X_train, y_train)
    print(f"training       {time.perf_counter() - start:.1f} s, compilation of kernels included")
    print_model(classifier, X_train.shape[1])
    answers = {
        "locole": classifier.predict_topk(X_test, k=5)[0],
        "centroids": centroid_topk(X_train, y_train, X_test, k=5),
        "centroids + popularity": best_popular_topk(X_train, y_train, X_test, y_test, k=5),
    }
    print_accuracy(y_train, y_test, answers)
    print_answers(classifier, vectorizer, y_train)


def parse_labels() -> int:
    """Return ``--labels``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    # Kerdock vectors of dim 256 serve 32,768 labels.
    parser.add_argument("--labels", type=int, default=30_000, help="at most so many characters")
    n_labels = parser.parse_args().labels
    if n_labels < 200:
        parser.error("--labels must be at least 200, to hold the answers to the questions.")
    return n_labels


if __name__ == "__main__":
    # A terminal that lacks a character shows a question mark.
    sys.stdout.reconfigure(errors="replace")
    main(parse_labels())
