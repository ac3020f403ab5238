"""The contract of engines, on threads; names, errors, and what is not saved."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
import time
from operator import mul

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import locole
from locole import LocoleClassifier
from locole.baselines import PPDSparse
from locole.exceptions import LocoleError, ModelFileError
from locole.parallel import ENGINES, Engine, RayEngine, Threads, in_order, make_engine, read_only
from locole.regressors import ElasticNetRegressor, SoftmaxRegressor

RNG = np.random.default_rng(0)
X = sp.random_array((300, 400), density=0.05, rng=RNG, format="csr").astype(np.float32)
y = RNG.integers(0, 30, 300)


@given(st.lists(st.integers(-99, 99), max_size=30), st.sampled_from([None, 1, 2, 3, -1]))
def test_every_task_is_done_once(tasks, n_jobs):
    found = list(Threads().map(mul, tasks, shared=3, n_jobs=n_jobs))
    assert sorted(place for place, _ in found) == list(range(len(tasks)))
    assert all(result == 3 * tasks[place] for place, result in found)
    assert in_order(Threads(), mul, tasks, shared=3, n_jobs=n_jobs) == [3 * t for t in tasks]


@pytest.mark.parametrize("name", ENGINES)
def test_engines_are_what_they_should_be(name):
    engine = make_engine(name)
    assert isinstance(engine, Engine)
    assert make_engine(engine) is engine
    assert repr(engine) == f"{type(engine).__name__}()"


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_error_comes_through_and_no_thread_is_left(n_jobs):
    def refuse(shared, task):
        raise LocoleError("no.")

    before = threading.active_count()
    with pytest.raises(LocoleError, match=r"^no\.$"):
        in_order(Threads(), refuse, [1, 2, 3], shared=None, n_jobs=n_jobs)
    assert threading.active_count() == before


def test_who_stops_reading_stops_the_work():
    before, begun = threading.active_count(), []

    def count(shared, task):
        begun.append(task)
        time.sleep(1e-4)

    found = Threads().map(count, range(10_000), shared=None, n_jobs=2)
    next(found)
    found.close()
    assert len(begun) < 10_000
    assert threading.active_count() == before


def test_a_view_is_read_only_and_the_array_is_not():
    array = np.arange(4)
    view = read_only(array)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    array[0] = 7
    assert view[0] == 7


@pytest.mark.parametrize("engine", ["Ray", "", None, 3, Threads])
def test_unknown_engines_are_refused(engine):
    for estimator in (LocoleClassifier(engine=engine), PPDSparse(engine=engine)):
        with pytest.raises(LocoleError, match="engine must be 'ray', 'threads' or an Engine, not "):
            estimator.fit(X, y)
    with pytest.raises(LocoleError, match="engine must be 'ray', 'threads' or an Engine, not "):
        ElasticNetRegressor(engine=engine).fit(X, y)


def test_without_ray_the_error_names_the_extra(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "ray" else found(name, *a)
    )
    for engine in ("ray", RayEngine("10.0.0.1:6379")):
        with pytest.raises(ImportError, match=r"pip install locole\[ray\]"):
            LocoleClassifier(engine=engine).fit(X, y)
    assert LocoleClassifier().fit(X, y).predict(X[:2]).shape == (2,)


def test_nothing_imports_ray_unless_it_is_used():
    code = (
        "import sys, locole, locole.baselines, locole.parallel as e; e.make_engine('ray');"
        "print('ray' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_addresses_for_clients_are_refused():
    engine = RayEngine("ray://10.0.0.1:10001")
    with pytest.raises(LocoleError, match="HOST:PORT of the head"):
        list(engine.map(mul, [1], shared=1))


@pytest.mark.parametrize("regressor", ["softmax", SoftmaxRegressor()])
def test_regressors_of_one_machine_say_so(regressor):
    with pytest.raises(LocoleError, match="SoftmaxRegressor learns on one machine only"):
        LocoleClassifier(regressor=regressor, engine="ray").fit(X, y)


def test_foreign_regressors_say_so():
    from sklearn.linear_model import Ridge

    with pytest.raises(LocoleError, match="Ridge learns on one machine only"):
        LocoleClassifier(regressor=Ridge(), engine="ray").fit(X, y)


def test_copies_keep_the_engine():
    copied = clone(LocoleClassifier(engine=RayEngine("10.0.0.1:6379")))
    assert copied.engine.address == "10.0.0.1:6379"


class Recorded(Threads):
    """Threads that do not share memory, hand arrays out read-only, and finish in reverse."""

    shares_memory = False

    def __init__(self):
        self.calls = self.sessions = 0

    def running(self, n_jobs=None):
        self.sessions += 1
        return super().running(n_jobs)

    def map(self, function, tasks, *, shared, n_jobs=None, description=None):
        self.calls += 1
        found = list(super().map(function, tasks, shared=shared, n_jobs=n_jobs))
        yield from reversed(found)


@pytest.mark.parametrize("l1", [0.0, 0.05])
@pytest.mark.parametrize("n_outputs", [1, 64, 65, 200])
def test_neither_order_nor_place_matters(l1, n_outputs):
    Y = RNG.normal(size=(300, n_outputs)).astype(np.float32)
    engine, settings = Recorded(), {"l1": l1, "l2": 0.3, "max_passes": 4}
    here = ElasticNetRegressor(**settings).fit(X, Y)
    there = ElasticNetRegressor(**settings, engine=engine, n_jobs=2).fit(X, Y)
    assert engine.calls == 1
    assert np.abs(here.coef_.T - there.coef_.T).max() == 0
    for model in (here, there):
        model.partial_fit(X[:50], Y[:50])
    assert engine.calls == 2
    assert np.abs(here.coef_.T - there.coef_.T).max() == 0
    for ours, theirs in zip(here.history_, there.history_, strict=True):
        assert (ours["gap"], ours["objective"]) == (theirs["gap"], theirs["objective"])


def test_the_classifier_hands_its_engine_on():
    many = sp.random_array((1200, 400), density=0.03, rng=RNG, format="csr").astype(np.float32)
    labels = RNG.integers(0, 30, 1200)
    for regressor in ("elastic_net", ElasticNetRegressor(), "auto"):
        engine = Recorded()
        LocoleClassifier(regressor=regressor, engine=engine).fit(many, labels)
        assert engine.calls >= 1
        # One session holds what several models need.
        assert engine.sessions == (regressor == "auto")


def test_several_labels_for_a_row_are_learnt_anywhere():
    many = sp.random_array((1200, 400), density=0.03, rng=RNG, format="csr").astype(np.float32)
    sets = [RNG.choice(30, RNG.integers(0, 4), replace=False).tolist() for _ in range(1200)]
    here, there = LocoleClassifier(), LocoleClassifier(engine=Recorded())
    for model in (here, there):
        model.fit(many, sets).partial_fit(many[:50], sets[:50])
    assert there.engine.calls >= 1
    for one, other in zip(*(model.predict_topk(many, k=5) for model in (here, there)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_models_do_not_say_where_they_were_learnt(tmp_path):
    """An address in a file would be one that whoever made the file has chosen."""
    engine = Recorded()
    model = LocoleClassifier("rademacher", dim=128, regressor="elastic_net", engine=engine)
    for number, fitted in enumerate((model, PPDSparse(engine=engine))):
        path = tmp_path / str(number)
        fitted.fit(X, y).save(path)
        loaded = locole.load(path)
        assert loaded.engine == "threads"
        np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
        manifest = path / "manifest.json"
        text = manifest.read_text()
        assert '"engine"' not in text
        forged = text.replace('"n_jobs":', '"engine": "ray", "n_jobs":', 1)
        assert forged != text
        json.loads(forged)
        manifest.write_text(forged)
        with pytest.raises(ModelFileError, match=r"engine|changed|damaged"):
            locole.load(path)
