"""Public signatures: what may be left out is given by name, but for the first."""

from __future__ import annotations

import importlib
import inspect

import pytest

PACKAGES = [
    "locole", "locole.baselines", "locole.datasets", "locole.decoders", "locole.embeddings",
    "locole.io", "locole.metrics", "locole.parallel", "locole.regressors", "locole.scoring",
    "locole.text", "locole.theory",
]  # fmt: skip
# As in scikit-learn, and two parts that make up the whole.
POSITIONAL = {
    "fit": ["sample_weight"],
    "partial_fit": ["classes", "sample_weight"],
    "VectorScorer": ["regressors", "embedding"],
    "NetworkScorer": ["regressors", "embedding"],
    "TextClassifier": ["features", "classifier"],
}


def callables():
    for name in PACKAGES:
        package = importlib.import_module(name)
        for public in package.__all__:
            found = getattr(package, public)
            is_values = inspect.isclass(found) and issubclass(found, tuple | BaseException)
            if callable(found) and not is_values and not hasattr(found, "__dataclass_fields__"):
                yield public, found
            for own, method in vars(found).items() if inspect.isclass(found) else ():
                if inspect.isfunction(method) and not own.startswith("_"):
                    yield own, method


FOUND = {(name, found.__module__, found.__qualname__): found for name, found in callables()}


@pytest.mark.parametrize("key", FOUND, ids=lambda key: f"{key[1]}.{key[2]}")
def test_what_may_be_left_out_is_given_by_name(key):
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
    parameters = inspect.signature(FOUND[key]).parameters.values()
    optional = [p.name for p in parameters if p.kind in kinds and p.default is not p.empty]
    assert len(optional) <= 1 or optional == POSITIONAL.get(key[0])


def test_the_functions_are_found():
    assert {"LocoleClassifier", "Parabel", "load_libsvm", "decode"} <= {key[0] for key in FOUND}
