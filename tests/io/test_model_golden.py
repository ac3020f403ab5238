"""Models saved by every format there has been load and answer as they did; fitted anew, as of late.

``golden/formatN/answers.json`` are the answers of saved models, and never change. ``golden/fitted.json``
are those of models fitted by this version: ``python tests/io/test_model_golden.py`` writes them anew
when a change of an algorithm is meant to change them, so that the difference shows which. It also saves
models of cases that have no folder in the present format, or of the names given to it: what is saved in
another form needs a folder of its own. The cases are in ``golden_cases.py``.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_cases import CASES, Case, case_of

from locole import load
from locole.io import FORMAT, outline, read_manifest
from locole.io.state import _CLASSES

GOLDEN = Path(__file__).parent / "golden"
# Where two scores are closer, relative to the largest, another processor may order them otherwise.
_CLEAR = 1e-3
# Rows whose answers are kept, and those with the scores of all labels.
_MAX_ROWS, _MAX_WHOLE_ROWS = 8, 2


def answers_of(where: str) -> dict[str, Any]:
    """Golden answers, of the saved models of a format or of ``fitted`` ones."""
    path = GOLDEN / f"{where}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def saved(number: int) -> dict[str, Any]:
    """Golden answers of the models saved in a format."""
    return answers_of(f"format{number}/answers")


FILES = [(number, name) for number in range(1, FORMAT + 1) for name in saved(number)]


@cache
def fitted(name: str) -> Any:
    return CASES[name].fitted()


def assert_answers(case: Case, model: Any, expected: dict[str, Any]) -> None:
    """Labels as in the golden answers, and scores up to another order of summation."""
    found = case.ask(model)
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
    assert_answers(case_of(name), model, saved(number)[name])


@pytest.mark.parametrize("name", CASES)
def test_a_model_fitted_anew_answers_as_of_late(name):
    assert_answers(CASES[name], fitted(name), answers_of("fitted")[name])


@pytest.mark.parametrize("name", [name for number, name in FILES if number == FORMAT])
def test_the_sizes_of_its_parts_are_those_of_its_arrays(name, tmp_path):
    model = load(GOLDEN / f"format{FORMAT}" / name)
    model.save(tmp_path / "m")  # as parts are written now, which may be shorter
    n_bytes = sum(entry.nbytes for entry in read_manifest(tmp_path / "m").arrays.values())
    # An array that is the same in two parts is written once and counts in both.
    assert n_bytes <= outline(load(tmp_path / "m")).n_bytes < 1.5 * n_bytes
    if name.startswith("baseline_"):
        assert outline(load(tmp_path / "m")).n_bytes == n_bytes


@pytest.mark.parametrize(("number", "name"), FILES)
def test_a_golden_model_is_of_its_format(number, name):
    folder = GOLDEN / f"format{number}" / name
    assert json.loads((folder / "manifest.json").read_text())["format"] == number
    assert read_manifest(folder).made_by["locole"]
    assert sum(file.stat().st_size for file in folder.iterdir()) < case_of(name).max_bytes


def test_every_case_is_saved_and_every_folder_has_answers():
    folders = {path.name for path in (GOLDEN / f"format{FORMAT}").iterdir() if path.is_dir()}
    assert folders == set(saved(FORMAT))
    assert {name for name, case in CASES.items() if case.has_file} <= folders
    assert set(answers_of("fitted")) == set(CASES)


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


def golden_answers(case: Case, model: Any) -> dict[str, Any]:
    """Answers about some rows that are clear, with eight digits."""
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


def write(where: str, answers: dict[str, Any]) -> None:
    lines = (
        f"{json.dumps(name)}: {json.dumps(found, ensure_ascii=False)}"
        for name, found in answers.items()
    )
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (GOLDEN / f"{where}.json").write_text(text, encoding="utf-8")


def as_of_late(name: str) -> dict[str, Any]:
    """Answers of a model fitted anew: the golden ones, unless they are others now."""
    expected = answers_of("fitted").get(name)
    if expected is not None:
        try:
            assert_answers(CASES[name], fitted(name), expected)
        except AssertionError:
            print(f"{name}: other answers")
        else:
            return expected
    return golden_answers(CASES[name], fitted(name))


def make(new_folders: list[str]) -> None:
    """Write the answers of models fitted anew, and save those that are not saved yet."""
    write("fitted", {name: as_of_late(name) for name in CASES})
    there = saved(FORMAT)
    missing = [name for name, case in CASES.items() if case.has_file and name not in there]
    for name in [*missing, *(name for name in new_folders if name not in there)]:
        model = case_of(name).fitted()
        there[name] = golden_answers(case_of(name), model)
        (GOLDEN / f"format{FORMAT}").mkdir(parents=True, exist_ok=True)
        model.save(GOLDEN / f"format{FORMAT}" / name)
        print(f"{name}: saved")
    write(f"format{FORMAT}/answers", there)


if __name__ == "__main__":
    make(sys.argv[1:])
