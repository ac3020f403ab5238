"""Labels that are renamed, merged and retired, rows that are forgotten: against fits to changed data."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import words
from same import assert_same_bits

from locole import LocoleClassifier, load
from locole.embeddings import OneHot
from locole.exceptions import LocoleError, LocoleWarning, ModelFileError
from locole.label_past import LabelPast, Relabelling
from locole.labels import label_sets
from locole.regressors import ElasticNetRegressor
from locole.samples import Rows, Samples
from locole.scoring import NearestScorer, ProfileScorer, VectorScorer

N = 12
X, CODES = words(N, n_samples=180, n_features=50)
X = sp.csr_array(X, dtype=np.float32)
ASKED = Rows(X[::9])


def ridge(storage="float32"):
    regressor = ElasticNetRegressor(l2=0.3, storage=storage, fit_intercept=False)
    return VectorScorer({"elastic_net": regressor}, OneHot(N, dim=N))


EXACT = {
    "profiles": lambda: ProfileScorer(tune=False),
    "nearest rows": NearestScorer,
    "ridge with one-hot vectors": ridge,
}


@st.composite
def changes(draw):
    """One to three changes of labels after each other, each with two labels left."""
    found, n_classes = [], N
    for _ in range(draw(st.integers(1, 3))):
        order = draw(st.permutations(range(n_classes)))
        n_gone = draw(st.integers(0, n_classes - 3))
        n_merged = draw(st.integers(0, n_gone))
        kept = order[n_gone:]
        merged = {old: draw(st.sampled_from(kept)) for old in order[:n_merged]}
        found.append(Relabelling.of(n_classes, merged=merged, retired=order[n_merged:n_gone]))
        n_classes = len(kept)
    return found


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=20, deadline=None)
@given(steps=changes())
def test_merging_and_retiring_is_a_fit_to_the_changed_rows(name, steps):
    scorer = EXACT[name]().fit(Samples(X, CODES, N))
    codes = CODES
    for step in steps:
        scorer.relabel(step)
        codes = np.where(codes >= 0, step.codes[codes], -1)
    left, n_classes = np.flatnonzero(codes >= 0), steps[-1].n_classes
    rows = left
    if name.startswith("ridge"):
        # What it has learnt of retired labels stays, and says nothing of the others.
        rows, codes = np.arange(codes.size), np.where(codes >= 0, codes, n_classes)
        n_classes += 1
    again = EXACT[name]()
    if name.startswith("ridge"):
        again.embedding = OneHot(n_classes, dim=n_classes)
    again.fit(Samples(X[rows], codes[rows], n_classes))
    expected = again.all_scores(Rows(ASKED.X))[:, : steps[-1].n_classes]
    np.testing.assert_allclose(scorer.all_scores(Rows(ASKED.X)), expected, atol=2e-4)


@pytest.mark.parametrize("name", ["profiles", "nearest rows"])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_forgetting_is_a_fit_to_the_other_rows(name, data):
    gone = data.draw(st.sets(st.integers(0, CODES.size - 1), min_size=1, max_size=100))
    out = np.array(sorted(gone))
    weight = np.random.default_rng(0).uniform(0.5, 2, CODES.size)
    left = np.delete(np.arange(CODES.size), out)
    scorer = EXACT[name]().fit(Samples(X, CODES, N, weight))
    scorer.forget(Samples(X[out], CODES[out], N, weight[out]))
    again = EXACT[name]().fit(Samples(X[left], CODES[left], N, weight[left]))
    found, expected = (one.all_scores(Rows(ASKED.X)) for one in (scorer, again))
    np.testing.assert_allclose(found, expected, atol=2e-4)
    if name == "profiles":
        assert (
            scorer.sums_.steps.size == again.sums_.steps.size
        )  # nothing tells which features there were


def test_the_elastic_net_goes_back_to_where_it_was_before_the_rows():
    """With a tight solution: then it is the inverse of `partial_fit`."""
    regressor = ElasticNetRegressor(l2=0.3, fit_intercept=False, tol=1e-9, max_passes=300)
    scorer = VectorScorer({"elastic_net": regressor}, OneHot(N, dim=N))
    scorer.fit(Samples(X[:150], CODES[:150], N))
    before = scorer.all_scores(Rows(ASKED.X))
    later = Samples(X[150:], CODES[150:], N, np.linspace(0.5, 2, 30))
    scorer.partial_fit(later)
    assert np.abs(scorer.all_scores(Rows(ASKED.X)) - before).max() > 0.05
    assert scorer.forget(later) == {"elastic_net": "nearly"}
    np.testing.assert_allclose(scorer.all_scores(Rows(ASKED.X)), before, atol=1e-4)
    np.testing.assert_allclose(scorer.prior_point_.sum(), 1, atol=1e-6)


def test_rows_that_were_not_learnt_cannot_be_forgotten():
    for name in ("profiles", "nearest rows"):
        scorer = EXACT[name]().fit(Samples(X[:150], CODES[:150], N))
        with pytest.raises(LocoleError, match="only what was learnt can be forgotten"):
            scorer.forget(Samples(X[150:], (CODES[150:] + 1) % N, N))


# --- the classifier ---


@pytest.fixture(scope="module")
def data():
    rows, codes = words(30, n_samples=1200, n_features=300)
    return sp.csr_array(rows, dtype=np.float32), np.array([f"label {c}" for c in codes])


@pytest.fixture(scope="module")
def first(data):
    return LocoleClassifier(nearest=True).fit(data[0][:1040], data[1][:1040])


@pytest.fixture
def model(first):
    return copy.copy(first)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_renaming_changes_names_alone(first, data):
    model = copy.copy(first)
    old = data.draw(st.lists(st.sampled_from(model.classes_.tolist()), unique=True, min_size=1))
    new = data.draw(st.permutations([*old, *(f"a longer name {i}" for i in range(3))]))
    names = dict(zip(old, new, strict=False))
    model.rename_labels(names)
    assert model.classes_.tolist() == [names.get(label, label) for label in first.classes_.tolist()]
    assert_same_bits(model.scorer_, first.scorer_)
    assert model.past_.journal_[-1]["did"] == "rename"
    assert first.past_ is None


def test_merged_labels_answer_as_one(model, data):
    X, y = data
    is_one = np.isin(y, ["label 3", "label 4"])
    assert model.score(X[is_one], y[is_one]) > 0.8
    before = model.predict(X)
    model.merge_labels({"label 3": "label 4"})
    assert model.classes_.size == 29
    assert (model.predict(X[is_one]) == "label 4").mean() > 0.9
    others = ~is_one & ~np.isin(before, ["label 3", "label 4"])
    assert (model.predict(X[others]) == before[others]).mean() > 0.99
    assert model.label_rows_.sum() == 1040
    # rows under the old name count for the new one
    rows = np.flatnonzero(is_one)[:20]
    counts = model.label_rows_.copy()
    model.partial_fit(X[rows], y[rows])
    assert "label 3" not in model.classes_
    assert (model.label_rows_ - counts)[model.classes_ == "label 4"] == 20


def test_retired_labels_are_never_answered_again(model, data, tmp_path):
    X, y = data
    out = ["label 0", "label 29", "label 7"]
    model.retire_labels(out)
    assert not np.isin(model.predict_topk(X, k=27)[0], out).any()
    assert model.predict_proba(X[:5]).shape == (5, 27)
    columns = model.embedding_.columns(np.arange(27))
    with pytest.warns(LocoleWarning, match="rows are skipped: their labels were retired"):
        model.partial_fit(X[1040:], y[1040:])
    model.partial_fit(X[:40], np.repeat(["new a", "new b"], 20))
    model.save(tmp_path / "model")
    back = load(tmp_path / "model")
    for each in (model, back):
        assert not np.isin(each.predict_topk(X, k=29)[0], out).any()
        np.testing.assert_array_equal(each.embedding_.columns(np.arange(27)), columns)
        assert each.embedding_.columns([27, 28]).tolist() == [30, 31]
        with pytest.raises(LocoleError, match="nothing to learn"):
            each.partial_fit(X[:1], ["label 7"])
        with pytest.warns(LocoleWarning, match="^1 row is skipped: its labels were retired"):
            copy.copy(each).partial_fit(X[:2], ["label 7", "label 1"])
    assert_same_bits(back, model)


def test_forgotten_rows_leave_no_trace_where_that_is_promised(model, data):
    X, y = data
    sums = model.scorer_["profiles"].sums_
    before, n_nearest = model.predict(X), model.scorer_.reranker_.rows_.shape[0]
    model.partial_fit(X[1040:], y[1040:])
    kept = model.scorer_.reservoir_.said.keys
    model.forget(X[1040:], y[1040:])
    assert not np.isin(model.scorer_.reservoir_.said.keys, kept[-1:]).any()
    left = abs(model.scorer_["profiles"].sums_.csr() - sums.csr())
    assert left.max() < 1e-4
    assert model.scorer_.reranker_.rows_.shape[0] == n_nearest
    assert model.label_rows_.sum() == 1040 == model.calibration_.counts_.sum()
    entry = model.past_.journal_[-1]
    assert entry["did"] == "forget"
    assert entry["parts"]["profiles"].startswith("exactly")
    assert (model.predict(X) == before).mean() > 0.98


def test_changes_that_cannot_be_made_change_nothing(model, data):
    X = data[0]
    kept = vars(model).copy()
    wrong = [
        (lambda: model.rename_labels({"label 99": "x"}), "does not know the label label 99"),
        (lambda: model.rename_labels({"label 1": "label 2"}), "another label label 2"),
        (lambda: model.rename_labels({"label 1": 7}), "labels of one type"),
        (lambda: model.merge_labels({"label 1": "x"}), "does not know the label x"),
        (lambda: model.merge_labels({"label 1": "label 1"}), "is merged into another"),
        (
            lambda: model.merge_labels({"label 1": "label 2", "label 2": "label 3"}),
            "is merged into another",
        ),
        (lambda: model.merge_labels([("label 1", "label 2")]), "give a dict of label to label"),
        (lambda: model.rename_labels("label 1"), "give a dict of label to label"),
        (lambda: model.retire_labels("label 1"), "a list of labels, not 'label 1'"),
        (lambda: model.retire_labels(1), "a list of labels, not 1"),
        (lambda: model.merge_labels({}), "no label is named"),
        (lambda: model.retire_labels(model.classes_[1:]), "fewer than two labels"),
        (lambda: model.forget(X[:1], ["label 99"]), "does not know the label 'label 99'"),
        (lambda: model.forget(X[:200], ["label 1"] * 200), "more rows of 'label 1'"),
        (lambda: model.grow_features(3), "must not be less"),
    ]
    for change, message in wrong:
        with pytest.raises(LocoleError, match=message):
            change()
        assert vars(model) == kept or all(vars(model)[k] is v for k, v in kept.items())


def test_a_chain_of_changes_is_kept(model, data, tmp_path):
    """Merged into one that is merged, renamed and retired later."""
    model.merge_labels({"label 1": "label 2"}).merge_labels({"label 2": "label 3"})
    model.rename_labels({"label 3": "three"})
    assert model.past_.into_.tolist() == ["three", "three"]
    model.save(tmp_path / "model")
    model = load(tmp_path / "model")
    model.retire_labels(["three"])
    assert sorted(model.past_.retired_.tolist()) == ["label 1", "label 2", "three"]
    assert [entry["did"] for entry in model.past_.journal_] == [
        "merge",
        "merge",
        "rename",
        "retire",
    ]
    with pytest.raises(LocoleError, match="was, another label three"):
        model.rename_labels({"label 5": "three"})
    # a name that was merged, given to another label, is that label's
    model.merge_labels({"label 6": "label 7"}).rename_labels({"label 8": "label 6"})
    y, stays = model.past_.present(np.array(["label 6", "three", "label 9"]))
    assert y.tolist() == ["label 6", "three", "label 9"]
    assert stays.tolist() == [True, False, True]


def test_labels_that_are_gone_are_not_known_again_by_classes(model, data, tmp_path):
    """As scikit-learn's users give all labels with every batch; a file would be refused by `load`."""
    X, y = data
    everything = model.classes_
    model.merge_labels({"label 1": "label 2"}).retire_labels(["label 3"])
    rows = np.flatnonzero(y == "label 4")[:5]
    model.partial_fit(X[rows], y[rows], classes=[*everything, "new"])
    left = everything[~np.isin(everything, ["label 1", "label 3"])]
    assert model.classes_.tolist() == [*left, "new"]
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").classes_.tolist() == model.classes_.tolist()


def test_the_journal_is_bounded():
    past = LabelPast.none(np.array(["a", "b"]))
    for number in range(1000):
        past = past.noted("learn", rows=number)
    assert len(past.journal_) == 200
    assert past.dated("today").journal_[0] == {"did": "learn", "rows": 800, "date": "today"}
    _, past = past.renamed(np.array(["a" * 500, "b"]), {"a" * 500: "c"})
    assert len(past.journal_[-1]["first"][0]) < 100


def test_several_labels_for_each_row(tmp_path):
    rng = np.random.default_rng(0)
    own = rng.integers(0, 280, (20, 5))
    sets = [rng.choice(20, rng.integers(1, 4), replace=False).tolist() for _ in range(1100)]
    table = np.zeros((1100, 280), dtype=np.float32)
    for row, labels in zip(table, sets, strict=True):
        row[own[labels].ravel()] += 1
    table = sp.csr_array(table)
    model = LocoleClassifier(factors=False).fit(table[:1040], sets[:1040])
    model.merge_labels({3: 4}).retire_labels([7])
    model.partial_fit(table[1040:], [[*labels, 25] for labels in sets[1040:]])
    assert model.classes_.tolist() == [*(c for c in range(20) if c not in (3, 7)), 25]
    assert not np.isin(model.predict_topk(table, k=10)[0], [3, 7]).any()
    first = model.predict_topk(table[:1040], k=1)[0][:, 0]
    right = [
        label in {4 if own == 3 else own for own in labels}
        for label, labels in zip(first, sets[:1040], strict=True)
    ]
    assert np.mean(right) > 0.9
    assert model.label_rows_[model.classes_ == 25] == 60
    model.forget(table[1040:], [[*labels, 25] for labels in sets[1040:]])
    assert model.label_rows_[model.classes_ == 25] == 0
    model.save(tmp_path / "model")
    back = load(tmp_path / "model")
    assert_same_bits(back.scorer_, model.scorer_)
    assert_same_bits(back.predict_topk(table), model.predict_topk(table))
    past = LabelPast(np.array([1]), np.array([2]), np.array([5, 6]), [])
    found = past.present_sets(label_sets([[5, 1], [6], [], [2, 3]]))
    codes, starts = found.canonical(found.labels, 7)
    assert (codes.tolist(), starts.tolist()) == ([2, 2, 3], [0, 1, 1, 1, 3])


def test_a_file_that_lies_about_the_past_is_refused(model, tmp_path):
    model.merge_labels({"label 1": "label 2"}).retire_labels(["label 3"])
    wrong = [
        {"into_": np.array(["nobody"])},
        {"retired_": np.array(["label 5"])},
        {"merged_": np.array([3])},
        {"journal_": [{"did": "x"}] * 300},
        {"journal_": ["x"]},
        {"merged_": np.array(["a", "b"])},
    ]
    for change in wrong:
        other = copy.copy(model)
        other.past_ = copy.copy(model.past_)
        vars(other.past_).update(change)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other.save(tmp_path / "model")
        with pytest.raises(ModelFileError):
            load(tmp_path / "model")
    other = copy.copy(model)
    other.label_rows_ = model.label_rows_[1:]
    other.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="numbers of rows"):
        load(tmp_path / "model")


def test_rows_whose_labels_were_all_retired_are_skipped():
    X, y = words(12, n_samples=1200, n_features=300)
    X = sp.csr_array(X)
    sets = [[] if i % 7 == 0 else [label] for i, label in enumerate(y.tolist())]
    model = LocoleClassifier(factors=False).fit(X, sets).retire_labels([3])
    expected = copy.copy(model).partial_fit(X[1:3], [[1, 2], []])
    with pytest.warns(LocoleWarning, match="^2 rows are skipped: their labels were retired"):
        model.partial_fit(X[:4], [[3], [1, 2, 3], [], [3]])
    assert_same_bits(model.decision_function(X[:50]), expected.decision_function(X[:50]))
