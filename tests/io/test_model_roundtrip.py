"""Classifiers answer after a load as before the save, to the bit, and learn on as if nothing was."""

from __future__ import annotations

import copy
import inspect
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bags import STRANGE, assert_same, places_of, seal
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import EMBEDDINGS, name_of
from problems import prototypes, texts, words
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

import locole
from locole import LocoleClassifier, load
from locole.decoders import DECODERS, CandidateDecoder
from locole.embeddings import FAMILIES, Explicit, Kerdock, group_columns
from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_manifest, read_model, write_model
from locole.io.state import kind_of
from locole.regressors import ElasticNetRegressor, RegressorAdapter, direct
from locole.scoring import PrototypeScorer
from locole.text import TextClassifier

X_WORDS, Y_WORDS = words()
X_DENSE, Y_DENSE = prototypes()


def saved_and_loaded(model, path):
    model.save(path)
    return load(path)


def learnt_by(regressor):
    """What fit has left, without the times that two fits never share."""
    learnt = {k: v for k, v in vars(regressor).items() if k not in regressor.get_params()}
    times = ("cpu_s", "examples_per_s")
    learnt["history_"] = [
        {k: v for k, v in record.items() if k not in times} for record in learnt["history_"]
    ]
    return dict(sorted(learnt.items()))


def assert_same_answers(before, after, X):
    """Parameters, labels and scores are the same."""
    assert type(before) is type(after)
    assert repr(before.get_params()) == repr(after.get_params())
    k = min(5, before.classes_.size)
    for a, b in zip(before.predict_topk(X, k), after.predict_topk(X, k), strict=True):
        assert_same(np.asarray(a), np.asarray(b))
    assert_same(before.decision_function(X), after.decision_function(X))
    assert_same(before.classes_, after.classes_)


def assert_same_model(before, after, X):
    """Answers, parameters and everything that fit has left are the same."""
    assert_same_answers(before, after, X)
    assert_same(before.scorer_.prior_point_, after.scorer_.prior_point_)
    assert before.scorer_.weight_seen_ == after.scorer_.weight_seen_
    assert before.scorer_.decoder_recall_ == after.scorer_.decoder_recall_
    assert before.embedding_ == after.embedding_
    assert repr(before.decoder_) == repr(after.decoder_)
    left, right = learnt_by(before.regressor_), learnt_by(after.regressor_)
    assert_same(left, right)


@pytest.fixture
def iterate(monkeypatch):
    """No problem is small enough to be solved directly."""
    monkeypatch.setattr(direct, "_SMALL", 0)


# --- parts ---


@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=name_of)
def test_every_embedding(embedding, tmp_path):
    write_model(tmp_path / "m", embedding)
    back = read_model(tmp_path / "m")
    codes = np.arange(embedding.n_classes)
    assert back == embedding
    assert back.spec() == embedding.spec()
    assert_same(embedding.real_rows(codes), back.real_rows(codes))
    assert_same(embedding.columns(codes), back.columns(codes))


def test_every_part_that_is_listed_can_be_saved():
    assert all(kind_of(e) == f"embedding.{e.name}" for e in EMBEDDINGS)
    assert {e.name for e in EMBEDDINGS} == {*FAMILIES, "explicit"}
    assert all(kind_of(decoder()) == f"decoder.{name}" for name, decoder in DECODERS.items())


@pytest.mark.parametrize("decoder", DECODERS)
def test_every_decoder(decoder, tmp_path):
    write_model(tmp_path / "m", DECODERS[decoder]())
    assert repr(read_model(tmp_path / "m")) == repr(DECODERS[decoder]())


def test_every_regressor_lists_what_it_learns():
    """Whatever fit leaves is either listed or a parameter."""
    regressor = ElasticNetRegressor().fit(X_DENSE, X_DENSE[:, :3])
    known = {*type(regressor)._learnt, *regressor.get_params(), "n_features_in_"}
    assert set(vars(regressor)) == known


# --- classifiers ---


@pytest.mark.parametrize("name", ["auto", *FAMILIES])
def test_every_family(name, tmp_path):
    before = LocoleClassifier(embedding=name).fit(X_WORDS, Y_WORDS)
    assert_same_model(before, saved_and_loaded(before, tmp_path / "m"), X_WORDS)


REGRESSORS = {
    "float32": {},
    "float16": {"storage": "float16"},
    "int8": {"storage": "int8"},
    "sparse": {"l1": 0.05, "l2": 0.1},
    "sparse with intercept": {"l1": 0.05, "l2": 0.1, "fit_intercept": True},
    "intercept": {"fit_intercept": True},
    "recipe": {"recipe": "dmoz"},
}


@pytest.mark.parametrize("solver", ["direct", "iterate"])
@pytest.mark.parametrize("options", REGRESSORS.values(), ids=REGRESSORS)
def test_every_storage_before_and_after_learning_more(options, solver, tmp_path, request):
    if solver == "iterate":
        request.getfixturevalue("iterate")
    regressor = ElasticNetRegressor(**options)
    before = LocoleClassifier("kerdock", dim=64, regressor=regressor).fit(X_WORDS, Y_WORDS)
    after = saved_and_loaded(before, tmp_path / "m")
    assert_same_model(before, after, X_WORDS)
    # Some new labels among the rows that are learnt next.
    more = np.where(Y_WORDS % 7 == 0, Y_WORDS + 100, Y_WORDS)
    for model in (before, after):
        model.partial_fit(X_WORDS, more)
    assert before.classes_.size > np.unique(Y_WORDS).size
    assert_same_model(before, after, X_WORDS)
    assert_same_model(before, saved_and_loaded(after, tmp_path / "m"), X_WORDS)


def test_dense_rows_with_names(tmp_path):
    X = pd.DataFrame(X_DENSE, columns=[f"größe {i}" for i in range(X_DENSE.shape[1])])
    before = LocoleClassifier().fit(X, Y_DENSE)
    after = saved_and_loaded(before, tmp_path / "m")
    assert_same(before.feature_names_in_, after.feature_names_in_)
    assert_same_answers(before, after, X)
    for name in PrototypeScorer._learnt:
        assert_same(getattr(before.scorer_, name), getattr(after.scorer_, name))
    with pytest.raises(ValueError, match="feature names"):
        after.predict(X.rename(columns=str.upper))


LABELS = {
    "int64": Y_WORDS,
    "int8": Y_WORDS.astype(np.int8),
    "uint64": Y_WORDS.astype(np.uint64) + 2**63,
    "bool": Y_WORDS % 2 == 0,
    "float": Y_WORDS / 1.0,
    "str": np.array([f"märz {y}" for y in Y_WORDS]),
    "object": np.array([f"label {y}" * (y % 3 + 1) for y in Y_WORDS], dtype=object),
    "list": [str(y) for y in Y_WORDS],
}


@pytest.mark.parametrize("kind", LABELS)
def test_every_kind_of_label(kind, tmp_path):
    before = LocoleClassifier().fit(X_WORDS, LABELS[kind])
    after = saved_and_loaded(before, tmp_path / "m")
    assert_same_model(before, after, X_WORDS)
    assert_same(before.predict(X_WORDS), after.predict(X_WORDS))


def test_labels_that_a_file_cannot_hold_are_refused(tmp_path):
    labels = np.array([int(y) for y in Y_WORDS], dtype=object)
    before = LocoleClassifier().fit(X_WORDS, Y_WORDS)
    before.classes_ = np.unique(labels)
    with pytest.raises(ModelFileError, match=r"classes_ cannot be saved.*make all of it strings"):
        before.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


N = np.unique(Y_WORDS).size
RNG = np.random.default_rng(0)
OBJECTS = {
    "vectors": Explicit(RNG.standard_normal((N, 12))),
    "complex vectors": Explicit(
        RNG.standard_normal((N, 6)) - 1j * RNG.standard_normal((N, 6)), labels=np.arange(N)
    ),
    "zero-shot": Explicit(RNG.standard_normal((N + 9, 12)), labels=np.arange(N + 9)),
    "grouped": Kerdock(N, 64, assignment=group_columns(np.arange(N) % 5, basis=64)),
    "random places": Kerdock(N, 64, assignment="random", random_state=3),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_embeddings_given_as_objects(name, tmp_path):
    before = LocoleClassifier(OBJECTS[name]).fit(X_WORDS, Y_WORDS)
    after = saved_and_loaded(before, tmp_path / "m")
    assert after.embedding == before.embedding
    assert_same_model(before, after, X_WORDS)


def test_vectors_given_and_used_are_kept_once(tmp_path):
    before = LocoleClassifier(OBJECTS["vectors"]).fit(X_WORDS, Y_WORDS)
    before.save(tmp_path / "m")
    shapes = [entry.shape for entry in read_manifest(tmp_path / "m").arrays.values()]
    assert shapes.count((N, 12)) == 1


def test_a_decoder_with_options(tmp_path):
    decoder = CandidateDecoder(shortlist=1, shifts=2)
    before = LocoleClassifier("kerdock", dim=16, decoder=decoder).fit(X_WORDS, Y_WORDS)
    after = saved_and_loaded(before, tmp_path / "m")
    assert after.decoder_.shortlist == 1
    assert_same_model(before, after, X_WORDS)


def test_a_loaded_model_is_an_ordinary_estimator(tmp_path):
    before = LocoleClassifier(random_state=5, n_jobs=2).fit(X_WORDS, Y_WORDS)
    after = saved_and_loaded(before, tmp_path / "m")
    assert_same_model(before, clone(after).fit(X_WORDS, Y_WORDS), X_WORDS)
    assert_same_model(before, copy.deepcopy(after), X_WORDS)
    refitted = after.fit(X_WORDS[:100], Y_WORDS[:100])
    assert_same_model(refitted, saved_and_loaded(refitted, tmp_path / "m"), X_WORDS)


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        LocoleClassifier().save(tmp_path / "m")


@pytest.mark.parametrize("hidden", [False, True])
def test_regressors_of_others_are_refused_with_a_way_out(tmp_path, hidden):
    model = LocoleClassifier(regressor=Ridge()).fit(X_WORDS, Y_WORDS)
    if hidden:
        model.set_params(regressor="auto")
    assert isinstance(model.regressor_, RegressorAdapter)
    with pytest.raises(ModelFileError, match=r"need pickle.*regressor=\"elastic_net\""):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_an_old_model_survives_a_refusal(tmp_path):
    good = LocoleClassifier().fit(X_WORDS, Y_WORDS)
    good.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="need pickle"):
        LocoleClassifier(regressor=Ridge()).fit(X_WORDS, Y_WORDS).save(tmp_path / "m")
    assert_same_model(good, load(tmp_path / "m"), X_WORDS)


def test_load_is_public_and_the_error_is_ours(tmp_path):
    assert "load" in locole.__all__
    assert list(inspect.signature(locole.load).parameters) == ["path", "verify", "encoder"]
    with pytest.raises(LocoleError, match="path of a folder"):
        load(tmp_path / "nothing")
    with pytest.raises(AttributeError, match="no attribute"):
        _ = locole.nothing


# --- hostile models ---


REGRESSOR = "$.scorer_.regressors_.elastic_net"


def hostile_copies():
    return {
        "embedding of other size": ("$.scorer_.embedding_.n_classes", 41, "fit together"),
        "embedding of other dim": ("$.scorer_.embedding_.dim", 256, "do not fit together"),
        "absurd dim": ("$.scorer_.embedding_.dim", 2**62, "would take .* GB or more"),
        "absurd number of labels": (
            "$.scorer_.embedding_.n_classes", 2**62, "cannot be made|fit together"
        ),
        "random places": ("$.scorer_.embedding_.assignment", "random", "columns of its labels"),
        "more features": ("$.n_features_in_", 10**6, "do not fit together"),
        "more features inside": (f"{REGRESSOR}.n_features_in_", 10**6, "do not fit together"),
        "more outputs": (f"{REGRESSOR}.n_outputs_", 10**6, "do not fit together"),
        "no outputs": (f"{REGRESSOR}.n_outputs_", 0, "do not fit together"),
        "outputs are true": (f"{REGRESSOR}.n_outputs_", True, "n_outputs_ is a bool"),
        "scales are weights": (f"{REGRESSOR}._scales", {"$array": "W"}, "do not fit together"),
        "constant is weights": (f"{REGRESSOR}._constant", {"$array": "W"}, "fit together"),
        "weights are a number": (f"{REGRESSOR}._weights", 1, "_weights is a int"),
        "labels are weights": ("$.classes_", {"$array": "W"}, "it has fewer than two labels"),
        "a number for an embedding": ("$.scorer_.embedding_", 5, "embedding_ is a int"),
        "a number for a scorer": ("$.scorer_", 5, "scorer_ is a int"),
        "a decoder for a regressor": (
            REGRESSOR, {"$part": {"kind": "decoder.dense", "values": {}}}, "do not fit together",
        ),
        "a decoder that does not fit": (
            "$.scorer_.decoder_",
            {"$part": {"kind": "decoder.fft", "values": {}}},
            "do not fit together",
        ),
        "no regressors": ("$.scorer_.regressors_", {}, "do not fit together"),
        "a weight too many": ("$.scorer_.weights_", [1.0, 1.0], "do not fit together"),
        "a weight is a text": ("$.scorer_.weights_", ["1"], "do not fit together"),
        "a prior of other size": ("$.scorer_.prior_point_", {"$array": "W"}, "fit together"),
        "unknown parameter": ("$params.engine", "ray", "unknown parameter"),
        "unknown attribute": ("$.predict", 1, "unknown attribute"),
        "lost attribute": ("$.classes_", ..., "classes_ is missing"),
        "lost scorer": ("$.scorer_", ..., "scorer_ is missing"),
    }  # fmt: skip


def put(tree, place, value):
    """Set what stands at a place like ``$.scorer_.embedding_.dim`` of a model's tree."""
    node = tree["model"]["$part"]["values"]
    head, *names = place.split(".")
    node = node["params" if head == "$params" else "learnt"]
    for name in names[:-1]:
        node = node[name]
        node = node["$part"]["values"] if "$part" in node else node
        node = node.get("learnt", node)
    if value is ...:
        del node[names[-1]]
    else:
        node[names[-1]] = value


def weights_name(tree):
    return max(tree["arrays"], key=lambda name: np.prod(tree["arrays"][name]["shape"]))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A folder with a classifier whose weights the compiled loops read."""
    path = tmp_path_factory.mktemp("small") / "m"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(direct, "_SMALL", 0)
        LocoleClassifier("kerdock", dim=64).fit(X_WORDS, Y_WORDS).save(path)
    return path


@pytest.mark.parametrize("name", hostile_copies())
def test_parts_that_do_not_fit_together_are_refused(small, tmp_path, name):
    place, value, part = hostile_copies()[name]
    tree = json.loads((small / "manifest.json").read_text())
    if isinstance(value, dict) and "$array" in value:
        value = {"$array": weights_name(tree)}
    put(tree, place, value)
    path = tmp_path / "m"
    path.mkdir()
    (path / tree["arrays_file"]).write_bytes((small / tree["arrays_file"]).read_bytes())
    (path / "manifest.json").write_text(json.dumps(seal(tree)))
    with pytest.raises(ModelFileError, match=f"{part}|lists an array"):
        load(path)


@pytest.fixture(scope="module")
def small_text(tmp_path_factory):
    """A folder with a classifier of texts."""
    path = tmp_path_factory.mktemp("small text") / "m"
    TextClassifier().fit(*texts()).save(path)
    return path


@pytest.fixture(scope="module")
def old():
    """A folder with a classifier of format 1 that has every part."""
    return Path(__file__).parent / "golden" / "format1" / "default"


QUESTIONS = {"small": X_WORDS[:5], "small_text": ["a cat", "fish"], "old": np.ones((5, 264))}


@pytest.mark.parametrize("which", QUESTIONS)
@settings(max_examples=150)
@given(st.data())
def test_any_change_gives_an_error_or_a_model_that_does_not_crash(
    which, request, tmp_path_factory, data
):
    small = request.getfixturevalue(which)
    tree = json.loads((small / "manifest.json").read_text())
    places = list(places_of(tree["model"]))
    others = [node[key] for node, key in places]
    node, key = data.draw(st.sampled_from(places))
    node[key] = copy.deepcopy(data.draw(st.sampled_from([*others, *STRANGE])))
    path = tmp_path_factory.mktemp("fuzz")
    (path / tree["arrays_file"]).hardlink_to(small / tree["arrays_file"])
    (path / "manifest.json").write_text(json.dumps(seal(tree)))
    with suppress(ModelFileError):
        model = load(path)
        # A strange parameter may be refused, by a message and not by a crash.
        with suppress(ValueError, TypeError, AttributeError):
            model.predict(QUESTIONS[which])


# --- large ---


SCRIPT = """
import resource, sys
import numpy as np, scipy.sparse as sp
from locole import load

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

before = peak()
model = load(sys.argv[1])
X = sp.csr_array(([1.0, 1.0], ([0, 0], [3, model.n_features_in_ - 1])))
model.predict(X.astype(np.float32))
print(peak() - before)
"""


def test_a_large_model_is_not_read_but_mapped(tmp_path):
    """320 MB: more than is hashed by default. One query takes some pages of it."""
    before = LocoleClassifier("kerdock", dim=1024).fit(X_WORDS, Y_WORDS)
    regressor = before.regressor_
    regressor._weights = np.zeros((80_000, 1024), dtype=np.float32)
    regressor._constant = np.zeros(1024, dtype=np.float32)
    regressor.curvature_ = np.zeros(80_000)
    regressor.n_features_in_ = before.n_features_in_ = 80_000
    before.save(tmp_path / "m")
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "m"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 150
