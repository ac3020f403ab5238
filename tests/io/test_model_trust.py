"""Forged models whose hashes are right: refused before they crash a kernel or ask for large work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from forgery import Forgery, wrapped
from golden_cases import CASES
from sklearn.datasets import load_digits

from locole import LocoleClassifier, load
from locole.baselines import Centroids
from locole.embeddings import Kerdock, Nelson, ReedSolomonSimplex
from locole.exceptions import DimensionError, LocoleError, ModelFileError
from locole.io.trust import check_indices, check_permutation, check_pointers

GOLDEN = Path(__file__).parent / "golden" / "format2"


def part_of(forged, *names):
    """Values of a part of the tree, on the way of these attributes."""
    values = forged.content["model"]["$part"]["values"]
    for name in names:
        inner = values["learnt"][name]
        values = inner["$part"]["values"]
    return values


def refused(forged, tmp_path, match):
    forged.write(tmp_path / "forged")
    with pytest.raises(ModelFileError, match=match):
        load(tmp_path / "forged", verify=True)


# --- pointers and indices ---


def test_the_smallest_file_that_crashed(tmp_path):
    """In a process of its own, because it was a segmentation fault."""
    X, y = load_digits(return_X_y=True)
    Centroids().fit(X, y).save(tmp_path / "m")
    forged = Forgery.of(tmp_path / "m")
    indptr = forged.arrays["model.centroids_.indptr"]
    forged.arrays["model.centroids_.indptr"] = wrapped(indptr, 5)
    forged.write(tmp_path / "m")
    script = (
        "import sys, locole; from sklearn.datasets import load_digits; "
        "locole.load(sys.argv[1], verify=True).predict(load_digits().data[:9])"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "m"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "its rows of a sparse matrix do not rise from 0 to the end" in run.stderr


TOP = 2**62
POINTERS = {
    "wrap around": ([0, TOP + TOP // 2, -TOP, 5], "do not rise"),
    "fall": ([0, 3, 2, 5], "do not rise"),
    "begin late": ([1, 2, 3, 5], "do not rise"),
    "end early": ([0, 2, 3, 4], "do not rise"),
    "too few": ([0, 2, 5], "2 rows instead of 3"),
    "floats": ([0.0, 1.0, 2.0, 5.0], "no beginnings"),
    "a table": ([[0, 1, 2, 5]], "no beginnings"),
}


@pytest.mark.parametrize("name", POINTERS)
def test_pointers(name):
    numbers, part = POINTERS[name]
    with pytest.raises(ModelFileError, match=part):
        check_pointers(np.array(numbers), "rows", end=5, size=4)


def test_pointers_in_order_may_be_equal_unless_lists_must_have_something():
    check_pointers(np.array([0, 2, 2, 5], dtype=np.int32), "rows", end=5)
    with pytest.raises(ModelFileError, match="do not rise"):
        check_pointers(np.array([0, 2, 2, 5]), "rows", end=5, rise=True)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("bad", [-1, 5, "least", "most"])
def test_indices(dtype, bad):
    limits = {"least": np.iinfo(dtype).min, "most": np.iinfo(dtype).max}
    indices = np.array([0, 4, limits.get(bad, bad)], dtype=dtype)
    check_indices(indices[:2], "columns", below=5)
    with pytest.raises(ModelFileError, match="lie outside 0 … 4"):
        check_indices(indices, "columns", below=5)
    with pytest.raises(ModelFileError, match="no whole numbers"):
        check_indices(indices.astype(np.int8), "columns", below=5)


def test_indices_that_must_rise_within_lists():
    pointers = np.array([0, 0, 2, 2, 4, 4])
    check_indices(np.array([3, 4, 0, 1]), "nodes", below=5, rising_within=pointers)
    for bad in ([4, 3, 0, 1], [3, 3, 0, 1], [3, 4, 1, 1]):
        with pytest.raises(ModelFileError, match="not sorted"):
            check_indices(np.array(bad), "nodes", below=5, rising_within=pointers)


def test_permutations():
    check_permutation(np.array([2, 0, 1]), "paths", size=3)
    for bad in ([0, 0, 1], [0, 1], [0, 1, 2, 2]):
        with pytest.raises(ModelFileError, match="its paths do not occur once each"):
            check_permutation(np.array(bad), "paths", size=3)
    with pytest.raises(ModelFileError, match="its paths lie outside 0 … 2"):
        check_permutation(np.array([0, 1, 3]), "paths", size=3)


# --- what kernels take for granted ---


def test_a_model_says_how_many_features_it_takes(tmp_path):
    """Otherwise rows of any width would reach the kernels."""
    forged = Forgery.of(GOLDEN / "default")
    del part_of(forged)["learnt"]["n_features_in_"]
    refused(forged, tmp_path, "does not say how many features")


def test_softmax_weights_are_whole_vectors(tmp_path):
    forged = Forgery.of(GOLDEN / "softmax")
    for name, array in forged.arrays.items():
        if array.shape[-1:] == (16,) and "regressor" in name:
            forged.arrays[name] = np.concatenate([array, array[..., :1]], axis=-1)
    refused(forged, tmp_path, "no whole number of vectors")


def test_weights_of_more_outputs_than_are_counted(tmp_path):
    """The rest of them is not passed on to the decoder."""
    forged = Forgery.of(GOLDEN / "numbers")
    for name in ("_weights", "_constant"):
        full = f"model.scorer_.regressors_.regressor.{name}"
        forged.arrays[full] = np.concatenate([forged.arrays[full]] * 2, axis=-1)
    forged.write(tmp_path / "m")
    honest, X = load(GOLDEN / "numbers"), CASES["numbers"].data().questions
    found = load(tmp_path / "m").decision_function(X)
    np.testing.assert_array_equal(found, honest.decision_function(X))


# --- paths ---


def test_no_path_in_a_file_is_followed(tmp_path):
    """Old files have a checkpoint, which is passed over; a fit of the loaded model writes nowhere."""
    forged = Forgery.of(GOLDEN / "network")
    evil = str(tmp_path / "evil")
    part_of(forged)["params"]["regressor"]["$part"]["values"]["params"]["checkpoint"] = evil
    forged.write(tmp_path / "m")
    data = CASES["network"].data()
    model = load(tmp_path / "m")
    assert model.regressor.checkpoint is None
    model.fit(data.X, data.y)
    assert not Path(evil).exists()


def test_a_network_with_a_checkpoint_can_be_saved(tmp_path):
    case = CASES["network"]
    model = case.model()
    model.set_params(regressor__checkpoint=tmp_path / "checkpoint")
    case.learn(model, case.data()).save(tmp_path / "m")
    assert (tmp_path / "checkpoint").is_dir()
    assert load(tmp_path / "m").regressor.checkpoint is None


# --- small files that ask for large work ---


def test_no_polynomial_of_absurd_degree():
    with pytest.raises(DimensionError, match="more than any number of labels needs: take r=2"):
        Nelson(5, dim=2**31 - 1, r=2_000_000_000)
    with pytest.raises(LocoleError, match=r"at most 2\*\*40"):
        ReedSolomonSimplex(10**30, dim=528)


def test_many_large_tables_are_refused(tmp_path):
    """Forty Reed–Solomon codes over a field of 4093 elements would take gigabytes of tables."""
    forged = Forgery.of(GOLDEN / "default")
    code = {"n_classes": 5, "dim": 4093**2 - 1, "random_state": 0, "assignment": "index"}
    part = {"$part": {"kind": "embedding.reed_solomon", "values": code}}
    part_of(forged)["params"]["embedding"] = [part] * 40
    refused(
        forged, tmp_path, r"part embedding.reed_solomon would take 1.1 GB or more with the parts"
    )


def test_columns_far_away_are_refused_when_saved_and_when_loaded(tmp_path):
    """The decoder would look at 31^6 columns for the sake of one."""
    columns = np.array([*range(11), 31**6 - 1])
    data = CASES["elastic_net_nelson"].data()
    model = LocoleClassifier(Nelson(12, 31, r=6, assignment=columns[::-1].copy() % 31**2))
    model.fit(data.X, data.y).save(tmp_path / "m")
    forged = Forgery.of(tmp_path / "m")
    name = next(name for name, array in forged.arrays.items() if array.dtype.kind == "i" and
                array.size == 12 and not name.endswith(("classes_", "counts_")))  # fmt: skip
    forged.arrays[name] = columns
    refused(forged, tmp_path, r"part embedding.nelson would take 56.8 GB")
    far = Nelson(12, 31, r=6, assignment=columns)
    model.scorer_.embedding_ = far
    with pytest.raises(ModelFileError, match="cannot be saved: its part"):
        model.save(tmp_path / "other")


def test_one_array_is_not_shared_by_thousands_of_parts(tmp_path):
    forged = Forgery.of(GOLDEN / "default")
    ensemble = part_of(forged, "scorer_")["learnt"]
    ensemble["scorers_"] *= 1000
    ensemble["weights_"] *= 1000
    refused(forged, tmp_path, "would take")


def test_a_code_over_a_large_field_is_fine_if_the_model_is_large():
    values = Kerdock(40, dim=1024)._state()
    assert 10_000 < Kerdock._bytes_to_make(values) < 1_000_000


def test_a_model_that_learns_for_ever_can_be_saved(tmp_path):
    data = CASES["softmax"].data()
    model = CASES["softmax"].fitted()
    regressor = model.regressor_
    regressor.history_ = regressor.history_ * 20_000
    model.partial_fit(data.X[:5], data.y[:5]).save(tmp_path / "m")
    assert len(load(tmp_path / "m").regressor_.history_) == 10_000


@pytest.mark.parametrize("value", ["x", [1], {"$float": "nan"}, {"$tuple": []}])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("softmax", "random_state"),
        ("softmax", "batch_size"),
        ("elastic_net_kerdock", "tol"),
        ("elastic_net_kerdock", "random_state"),
        ("network", "patience"),
    ],
)
def test_parameters_of_wrong_types_are_refused(tmp_path, kind, name, value):
    """They would be raw errors of whatever meets them first in `partial_fit`."""
    forged = Forgery.of(GOLDEN / kind)
    for part in part_of(forged, "scorer_")["learnt"]["regressors_"].values():
        part["$part"]["values"]["params"][name] = value
    refused(forged, tmp_path, name)


def test_texts_without_their_ngrams_are_refused(tmp_path):
    """Counting terms would be a TypeError of `predict`."""
    for name, value in (("word_ngrams", None), ("char_ngrams", None), ("word_ngrams", [1])):
        forged = Forgery.of(GOLDEN / "texts")
        part_of(forged, "features_")["learnt"]["_settings"][name] = value
        refused(forged, tmp_path, name)
    del part_of(forged, "features_")["learnt"]["_settings"]["word_ngrams"]
    refused(forged, tmp_path, "does not say how its terms are counted")


def test_a_penalty_of_zero_and_vectors_that_nobody_learns_are_refused(tmp_path):
    forged = Forgery.of(GOLDEN / "elastic_net_kerdock")
    for part in part_of(forged, "scorer_")["learnt"]["regressors_"].values():
        part["$part"]["values"]["learnt"]["l2_"] = 0.0
    refused(forged, tmp_path, "penalty that is not positive")
    forged = Forgery.of(GOLDEN / "network_vectors")
    for part in part_of(forged, "scorer_")["learnt"]["regressors_"].values():
        part["$part"]["values"]["learnt"]["settings_"]["embedding_rate"] = None
    refused(forged, tmp_path, "arrays that do not fit together")


def test_dense_weights_become_sparse_when_l1_is_set_later():
    case = CASES["candidates"]
    model, data = case.fitted(), case.data()
    model.regressor_.set_params(l1=0.01)
    assert model.partial_fit(data.X[:3], data.y[:3]).regressor_.coef_.shape == (16, 150)
