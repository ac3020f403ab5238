"""scikit-learn's own checks, all of them, for every embedding."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from locole import LocoleClassifier
from locole.embeddings import FAMILIES

NAMES = ["auto", *FAMILIES]
# Looks at the environment when scikit-learn is imported: run in a process of its own below.
ARRAY_API = "check_array_api_input"


def check_name(check: partial) -> str:
    return getattr(check, "func", check).__name__


CHECKS = [
    pytest.param(estimator, check, id=f"{name}-{check_name(check)}")
    for name in NAMES
    for estimator, check in estimator_checks_generator(LocoleClassifier(embedding=name))
    if check_name(check) != ARRAY_API
]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learns_check(estimator, check):
    check(estimator)


# A check that skips itself raises, so the process fails.
SCRIPT = f"""
import sys
from sklearn.utils.estimator_checks import estimator_checks_generator
from locole import LocoleClassifier

for name in sys.argv[1:]:
    for estimator, check in estimator_checks_generator(LocoleClassifier(embedding=name)):
        if getattr(check, "func", check).__name__ == "{ARRAY_API}":
            check(estimator)
            print(name)
"""
# scikit-learn 1.7 has that check only for estimators that say that they support all arrays.
HAS_ARRAY_API = any(
    check_name(check) == ARRAY_API for _, check in estimator_checks_generator(LocoleClassifier())
)


def test_array_api_inputs():
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, *NAMES],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == (NAMES if HAS_ARRAY_API else [])
