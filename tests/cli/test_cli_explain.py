"""explain: what adds up to a score, for people and for machines."""

from __future__ import annotations

import pytest

import locole
from locole.cli.examples import FIRST_INDEX
from locole.io import write_model


def test_words_and_terms_add_up(run, folder):
    found = run("explain", "texts", "a Cat1 of common3 cat2", "--json").json
    assert found["label"] == "cat"
    assert [word["word"] for word in found["words"]] == ["a", "Cat1", "of", "common3", "cat2"]
    total = sum(term["adds"] for term in found["features"]) + sum(found["others"].values())
    assert total == pytest.approx(found["score"])
    _, scores = locole.load("texts").predict_topk(["a Cat1 of common3 cat2"], k=1)
    assert found["score"] == pytest.approx(scores[0, 0], abs=1e-5)
    assert 0 < found["probability"] <= 1


def test_people_see_it(run, folder):
    shown = run("explain", "texts", "a cat1 of common3 cat2")
    assert shown.code == 0
    assert shown.out.startswith("cat: +")
    assert "a cat1 of common3 cat2" in shown.out
    assert "\x1b" not in shown.out  # no terminal, no colours
    lead = run("explain", "texts", "a cat1 of dog2", "--label", "dog", "--against", "cat").out
    assert lead.startswith("dog against cat: ")


def test_a_row_of_numbers(run, folder):
    run("fit", "train.svm", "-o", "rows")
    found = run("explain", "rows", "31:1 32:1", "--label", "0", "--json").json
    assert found["label"] == 0
    assert [term["name"] for term in found["features"]] in (["30", "31"], ["31", "30"])


def test_a_note_on_the_first_index_may_be_anything(run, folder):
    write_model(folder / "odd", locole.load("numbers"), notes={FIRST_INDEX: "x"})
    assert run("explain", "odd", "1:1").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["texts", "cat1", "--label", "yak"], "does not know the label 'yak'"),
        (["rows", "1:x"], "INDEX:VALUE"),
        (["rows", "100000:1"], "features 1 to"),
        (["rows", "1:1", "--label", "x"], "labels of the model are numbers"),
        (["rows", "1:1", "--label", "9" * 30], "labels of the model are numbers"),
        (["plain", "cat1"], "scores of Parabel are not sums over features"),
    ],
)
def test_what_cannot_be_explained(run, folder, arguments, message):
    run("fit", "train.svm", "-o", "rows")
    run("fit", "train.tsv", "-o", "plain", "--model", "parabel")
    found = run("explain", *arguments)
    assert found.code == 2
    assert message in found.err
