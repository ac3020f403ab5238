"""Models saved by every format there has been load and answer as they did; fitted again, they do too.

``python tests/io/test_model_golden.py`` makes the golden models of the present format that are missing,
and their answers; it never changes one that exists. The cases themselves are in ``golden_cases.py``.
"""

from __future__ import annotations

import json
import re
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_cases import (
    BY_NEWTON,
    CASES,
    FROM_TABLE,
    IN_BYTES,
    IN_VIEWS,
    RESERVOIR,
    SCALED_ONCE,
)

from locole import load
from locole.io import FORMAT, outline, read_manifest
from locole.io.state import _CLASSES

GOLDEN = Path(__file__).parent / "golden"
# Where two scores are closer, relative to the largest, another processor may order them otherwise.
_CLEAR = 1e-3
# Rows whose answers are kept, and those with the scores of all labels.
_MAX_ROWS, _MAX_WHOLE_ROWS = 8, 2


def answers_of(number: int) -> dict[str, Any]:
    """Golden answers of a format, by the name of the case."""
    return json.loads((GOLDEN / f"format{number}" / "answers.json").read_text(encoding="utf-8"))


EVERY = [
    (number, name)
    for number in range(1, FORMAT + 1)
    if (GOLDEN / f"format{number}").exists()
    for name in answers_of(number)
]
FILES = [(number, name) for number, name in EVERY if CASES[name].has_file]
# Since format 2 every random family has a stream of its own: other vectors are drawn.
REDRAWN = {"elastic_net_gaussian", "elastic_net_complex_gaussian", "network_vectors"}
# Since then the default model has no softmax.
OTHER_PARTS = {
    f"default{part}"
    for part in ("", "_profiles", "_one_hot", "_signed", "_weighted", "_grown", "_texts")
}
# Fitted with options that are gone; its files still load.
RETIRED = {"softmax_options"}
# Before the softmax learnt later rows at a rate for each feature.
RETIRED |= {"softmax_grown", "default_softmax_profiles"}
# Before the default model kept its weights in bytes and was weighed on the last rows of each label.
RETIRED |= set(IN_BYTES)
# Before learning more fitted the weights of an ensemble anew.
RETIRED |= {*RESERVOIR, "default_grown_bytes", "default_dense_grown_bytes"}
# Before dense rows with many rows for each label were seen in two views and reranked.
RETIRED |= {*(f"{name}_bytes" for name in IN_VIEWS), "default_dense_grown_reservoir"}
# Before prototypes learnt all rows again once weights were fitted.
RETIRED |= {f"{name}_views" for name in IN_VIEWS}
# Before weights depended on how many rows a label has.
RETIRED |= {*(f"{name}_bytes" for name in IN_BYTES), "default_several_labels", "default_network"}
# Before weights were fitted by Newton's method, and factors in four epochs.
RETIRED |= set(BY_NEWTON)
# Before the first vectors of factors were drawn from a table.
RETIRED |= {*FROM_TABLE, "default_name_vectors"}
# Before rows of words and characters were scaled once.
RETIRED |= set(SCALED_ONCE)
REFITTED = [
    (number, name)
    for number, name in EVERY
    if name not in RETIRED and (number > 1 or name not in REDRAWN | OTHER_PARTS)
]


@cache
def fitted(name: str) -> Any:
    return CASES[name].fitted()


def assert_as_ever(number: int, name: str, model: Any) -> None:
    """Labels as in the golden answers, and scores up to another order of summation."""
    expected = answers_of(number)[name]
    found = CASES[name].ask(model)
    rows = expected.get("rows", slice(None))
    assert found["labels"][rows].tolist() == expected["labels"]
    # Another processor may add up in another order.
    close = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)
    close(found["scores"][rows], expected["scores"])
    if "all_scores" in expected:
        close(found["all_scores"][rows][:_MAX_WHOLE_ROWS], expected["all_scores"])
    if "proba" in expected:
        np.testing.assert_allclose(found["proba"][rows], expected["proba"], atol=1e-3)


@pytest.mark.parametrize(("number", "name"), FILES)
def test_a_golden_model_answers_as_ever(number, name):
    model = load(GOLDEN / f"format{number}" / name, verify=True)
    assert_as_ever(number, name, model)


@pytest.mark.parametrize(("number", "name"), REFITTED)
def test_a_model_fitted_again_answers_as_ever(number, name):
    assert_as_ever(number, name, fitted(name))


@pytest.mark.parametrize("name", [name for number, name in FILES if number == FORMAT])
def test_the_sizes_of_its_parts_are_those_of_its_arrays(name):
    folder = GOLDEN / f"format{FORMAT}" / name
    n_bytes = sum(entry.nbytes for entry in read_manifest(folder).arrays.values())
    # An array that is the same in two parts is written once and counts in both.
    assert n_bytes <= outline(load(folder)).n_bytes < 1.5 * n_bytes
    if name.startswith("baseline_"):
        assert outline(load(folder)).n_bytes == n_bytes


@pytest.mark.parametrize(("number", "name"), FILES)
def test_a_golden_model_is_of_its_format(number, name):
    folder = GOLDEN / f"format{number}" / name
    assert json.loads((folder / "manifest.json").read_text())["format"] == number
    assert read_manifest(folder).made_by["locole"]
    assert sum(file.stat().st_size for file in folder.iterdir()) < CASES[name].max_bytes


def test_every_case_has_answers_in_the_present_format():
    assert sorted(answers_of(FORMAT)) == sorted(CASES)
    folders = [path.name for path in (GOLDEN / f"format{FORMAT}").iterdir() if path.is_dir()]
    assert sorted(folders) == sorted(name for name, case in CASES.items() if case.has_file)


def test_every_kind_of_part_is_in_a_golden_model():
    """So it is fuzzed, too; checkpoints have tests of their own."""
    manifests = (GOLDEN / f"format{FORMAT}").glob("*/manifest.json")
    text = "".join(path.read_text(encoding="utf-8") for path in manifests)
    ours = {kind for kind, cls in _CLASSES.items() if cls.__module__.startswith("locole.")}
    assert ours - set(re.findall('"kind": "([^"]+)"', text)) == {"checkpoint"}


def clear_rows(scores: np.ndarray) -> np.ndarray:
    """Rows whose scores, of one label more than is asked for, are equal or far from each other."""
    gaps = -np.diff(scores.astype(np.float64), axis=1)
    return np.flatnonzero(((gaps == 0) | (gaps > _CLEAR * np.abs(scores).max())).all(axis=1))


def golden_answers(name: str, model: Any) -> dict[str, Any]:
    """Answers about some rows that are clear, with eight digits."""
    case = CASES[name]
    found = case.ask(model)
    k = min(case.k + 1, model.classes_.size)
    rows = clear_rows(model.predict_topk(case.data().questions, k=k)[1])[:_MAX_ROWS]
    answers = {"rows": rows.tolist(), "labels": found["labels"][rows].tolist()}
    answers["scores"] = rounded(found["scores"][rows])
    if case.has_all_scores:
        answers["all_scores"] = rounded(found["all_scores"][rows[:_MAX_WHOLE_ROWS]])
    if case.has_proba:
        answers["proba"] = rounded(found["proba"][rows])
    return answers


def rounded(scores: np.ndarray) -> list[list[float]]:
    return [[float(f"{score:.8g}") for score in row] for row in scores]


def make() -> None:
    """Add the models and answers of the present format that are missing."""
    folder = GOLDEN / f"format{FORMAT}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "answers.json"
    answers = answers_of(FORMAT) if path.exists() else {}
    for name, case in CASES.items():
        if name not in answers:
            model = fitted(name)
            answers[name] = golden_answers(name, model)
            if case.has_file:
                model.save(folder / name)
            print(f"{name}: {len(answers[name]['rows'])} rows")
    lines = (
        f"{json.dumps(name)}: {json.dumps(found, ensure_ascii=False)}"
        for name, found in answers.items()
    )
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    make()
