"""Annif asks `locole serve`, and gets what the library says: ``make check-annif``.

Learns the names of some cities, serves the model, and lets Annif from PyPI, in an environment of its
own, ask it through its ``http`` backend: ``load-vocab``, ``list-projects``, ``suggest`` and ``eval``, of
a project that is the model and of an ensemble that has it in it. Scores and figures must be those that
the library gives for the same texts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import numpy as np

from locole.datasets import load_city_names
from locole.serving.labels import uri_of
from locole.text import TextClassifier

PROJECTS = """\
[cities]
name=City names by locole
language=en
backend=http
vocab=cities
limit=10
endpoint={url}/v1/projects/cities/suggest

[together]
name=An ensemble
language=en
backend=ensemble
vocab=cities
sources=cities
limit=10
"""
ASKED, LIMIT = 5, 10
# Annif prints four digits.
PRECISION = 5.1e-5


def learnt(folder: Path, n_cities: int) -> tuple[TextClassifier, list[str], list[str]]:
    """Model, saved in the folder, and test texts with their labels."""
    data = load_city_names(min_population=300_000, max_cities=n_cities)
    names = np.array(data.label_names)
    model = TextClassifier().fit(data.text_train, names[data.y_train])
    model.save(folder / "cities")
    return model, list(data.text_test or []), names[data.y_test].tolist()


class Annif:
    """Annif in a folder of its own."""

    def __init__(self, command: str, folder: Path) -> None:
        self._command, self._folder = command, folder

    def __call__(self, *words: str, stdin: str = "") -> str:
        """What a command prints."""
        done = subprocess.run(
            [self._command, *words],
            cwd=self._folder,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "ANNIF_DATADIR": str(self._folder / "data")},
        )
        if done.returncode:
            raise SystemExit(f"annif {' '.join(words)} failed:\n{done.stdout}\n{done.stderr}")
        return done.stdout


def check_suggestions(annif: Annif, project: str, model: TextClassifier, texts: list[str]) -> None:
    for text in texts[:ASKED]:
        shown = [line.split("\t") for line in annif("suggest", project, stdin=text).splitlines()]
        labels, proba = model.predict_topk([text], k=LIMIT, proba=True)
        # Annif leaves out what rounds to nothing.
        found = {uri.strip("<>"): float(score) for uri, _, score in shown}
        wanted = {uri_of(a): p for a, p in zip(labels[0], proba[0], strict=True)}
        assert set(found) <= set(wanted), (text, found, wanted)
        for uri, score in wanted.items():
            assert abs(found.get(uri, 0.0) - score) <= PRECISION, (text, uri, score, found)


def check_evaluation(
    annif: Annif, project: str, model: TextClassifier, texts: list[str], labels: list[str]
) -> dict[str, float]:
    """Annif's figures, which must be ours, of texts whose labels have no equal scores in float32."""
    best, proba = model.predict_topk(texts, k=LIMIT, proba=True)
    clear = np.flatnonzero((np.diff(proba.astype(np.float32), axis=1) < 0).all(axis=1))
    assert clear.size > len(texts) / 2, "too many ties to compare"
    best, texts, labels = best[clear], [texts[i] for i in clear], [labels[i] for i in clear]
    lines = [f"{text}\t<{uri_of(label)}>\n" for text, label in zip(texts, labels, strict=True)]
    corpus = annif._folder / "documents.tsv"
    corpus.write_text("".join(lines), encoding="utf-8")
    metrics = annif._folder / f"{project}.json"
    annif("eval", project, str(corpus), "--limit", str(LIMIT), "--metrics-file", str(metrics))
    found = json.loads(metrics.read_text())
    right = best == np.array(labels)[:, None]
    discount = 1 / np.log2(np.arange(LIMIT) + 2)
    wanted = {
        "Precision@1": right[:, 0].mean(),
        "Precision@3": right[:, :3].sum(axis=1).mean() / 3,
        "NDCG@5": (right[:, :5] * discount[:5]).sum(axis=1).mean(),
        "NDCG@10": (right * discount).sum(axis=1).mean(),
    }
    shown = {name: found[name] for name in wanted}
    for name, value in wanted.items():
        assert abs(shown[name] - value) < 1e-6, (project, name, shown[name], value)
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--annif", default=".venv-annif/bin/annif", help="Annif's command")
    parser.add_argument("--cities", type=int, default=300)
    parser.add_argument("--documents", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="locole-annif-") as name:
        folder = Path(name)
        model, texts, labels = learnt(folder, args.cities)
        command = [sys.executable, "-m", "locole", "serve", str(folder / "cities"), "--port", "0"]
        with subprocess.Popen(
            [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as server:
            try:
                assert server.stdout is not None
                url = json.loads(server.stdout.readline())["url"]
                annif = Annif(str(Path(args.annif).resolve()), folder)
                (folder / "projects.cfg").write_text(PROJECTS.format(url=url))
                with urllib.request.urlopen(f"{url}/api/models/cities/vocabulary.tsv") as answer:
                    (folder / "cities.tsv").write_bytes(answer.read())
                annif("load-vocab", "--language", "en", "cities", "cities.tsv")
                (line,) = [x for x in annif("list-projects").splitlines() if x.startswith("cities")]
                assert "True" in line, line
                some, true = texts[: args.documents], labels[: args.documents]
                for project in ("cities", "together"):
                    check_suggestions(annif, project, model, some)
                    print(project, check_evaluation(annif, project, model, some, true))
            finally:
                server.terminate()
    print("Annif gets what the library says.")


if __name__ == "__main__":
    main()
