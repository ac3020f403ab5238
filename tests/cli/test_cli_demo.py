"""The demonstration: its baseline, what it measures, and a page that says what was measured."""

from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser

import httpx
import pytest
from cli_server import ENVIRONMENT

from locole.cli.cities import QUERIES, Demo, answer_queries
from locole.cli.page import render
from locole.datasets import load_city_names


class Page(HTMLParser):
    """Tags that are open, what is fetched, and the text."""

    VOID = ("meta", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.attributes, self.words = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def make_demo(ours: float, theirs: float, answers=()) -> Demo:
    def system(accuracy: float) -> dict:
        figures = {"accuracy": accuracy, "top_k_accuracy": (1 + accuracy) / 2}
        return {**figures, "train_s": 1.25, "predict_s": 0.5, "bytes": 123_000_000}

    return Demo(
        data={"train": 4321, "test": 1000, "labels": 530, "features": 52_247},
        systems={"locole": system(ours), "centroids": system(theirs)},
        answers=list(answers),
        steps=[{"step": "train", "seconds": 2.0, "peak_bytes": None}],
        setting={
            "locole": "1", "python": "3", "cores": 2, "embedding": "<b>", "scorers": "a, b", "seed": 0,
        },
    )  # fmt: skip


ANSWERS = [
    {
        "query": "<i>لش",
        "meant": "A & B",
        "answers": ["A & B", "C"],
        "scores": [1.0, 0.1],
        "place": 1,
    },
    {"query": "x", "meant": "D", "answers": ["E", "F"], "scores": [0.2, 0.1], "place": None},
]


@pytest.mark.parametrize(
    ("ours", "theirs", "says"),
    [
        (0.365, 0.303, "6.2 points more than class centroids"),
        (0.268, 0.303, "3.5 points fewer than class centroids"),
        (0.3031, 0.303, "as many as class centroids"),
    ],
)
def test_the_page_says_who_was_better(ours, theirs, says):
    text = render(make_demo(ours, theirs, ANSWERS))
    page = Page(text)
    words = " ".join(" ".join(page.words).split())
    assert page.open == []
    assert says in words
    for figure in (f"{ours:.1%}", f"{theirs:.1%}", "530", "4,321", "1,000", "52,247", "123 MB"):
        assert figure in words
    assert "the first answer is right for 1, one of the first three for 1" in words


def test_the_page_needs_no_network_and_runs_nothing():
    text = render(make_demo(0.4, 0.3, ANSWERS))
    page = Page(text)
    assert "http" not in text
    assert "url(" not in text
    assert not [a for a in page.attributes if a[1] in ("src", "href") or a[1].startswith("on")]
    assert not [a for a in page.attributes if a[0] in ("script", "link", "img", "iframe")]
    assert ("meta", "name", "viewport") in page.attributes
    assert "prefers-color-scheme: dark" in text
    # What was typed is text, whatever it looks like.
    assert "<i>لش" in page.words
    assert "A & B" in page.words


def test_the_page_without_answers():
    assert "None of the cities asked for" in render(make_demo(0.4, 0.3))


def test_the_demonstration(run, tmp_path):
    page = tmp_path / "cities.html"
    words = ["--min-population", "2000000", "--max-cities", "150", "--html", page]
    found = run("demo", *words, "--json").json
    assert set(found) == {"data", "systems", "answers", "steps", "setting", "page"}
    data = load_city_names(min_population=2_000_000, max_cities=150)
    assert found["data"]["labels"] == len(data.label_names)
    assert found["data"]["test"] == len(data.text_test)
    for figures in found["systems"].values():
        assert 0.2 < figures["accuracy"] < figures["top_k_accuracy"] < 1
        assert figures["bytes"] > 1000
    assert [step["step"] for step in found["steps"]] == [
        "data", "vectorise", "train", "save", "test", "centroids",
    ]  # fmt: skip
    assert {answer["query"] for answer in found["answers"]} <= set(QUERIES)
    text = page.read_text(encoding="utf-8")
    assert Page(text).open == []
    assert f"{found['systems']['locole']['accuracy']:.1%}" in text
    for answer in found["answers"]:
        meant, answers = answer["meant"], answer["answers"]
        assert answer["place"] == (answers.index(meant) + 1 if meant in answers else None)
    # A misspelt name is not one of the names.
    assert not set(QUERIES) & {*data.text_train, *data.text_test}
    assert {answer["meant"] for answer in found["answers"]} <= set(data.label_names)


def test_a_demonstration_too_small_for_several_scorers(run, tmp_path):
    """There are no validation rows, so there is no choice to tell of."""
    words = ["--min-population", "2000000", "--max-cities", "20", "--html", tmp_path / "page.html"]
    found = run("demo", *words, "--json").json
    assert found["data"]["train"] < 1000
    assert found["setting"]["scorers"] == "elastic_net"


def test_queries_for_cities_that_are_not_there():
    assert answer_queries(None, {"Atlantis"}) == []


def test_the_demonstration_is_served(tmp_path):
    words = ["--min-population", "2000000", "--max-cities", "20", "--html", tmp_path / "page.html"]
    command = [
        sys.executable,
        "-m",
        "locole",
        "demo",
        "--serve",
        "--port",
        "0",
        "--json",
        "-j",
        "1",
    ]
    with subprocess.Popen(
        [*command, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT
    ) as process:
        try:
            labels = json.loads(process.stdout.readline())["data"]["labels"]
            url = json.loads(process.stdout.readline())["url"]
            card = httpx.get(f"{url}/api/models/cities").json()
            assert card["labels"] == labels
            assert "<textarea" in httpx.get(url).text
        finally:
            process.terminate()
    assert process.returncode == 0
