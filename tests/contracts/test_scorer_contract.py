"""What every scorer promises: sorted candidates, and the same scores for every way to ask."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from problems import words
from same import assert_same_bits
from sklearn.base import clone

from locole import LocoleClassifier, load, scoring
from locole.cli import main
from locole.datasets import make_topics
from locole.embeddings import Kerdock
from locole.exceptions import LocoleError
from locole.io import outline, read_model, saved_as, write_model
from locole.io.state import _CLASSES, kind_of
from locole.label_past import Relabelling
from locole.regressors import ElasticNetRegressor, KernelRegressor, SoftmaxRegressor
from locole.samples import Rows, Samples
from locole.scoring import (
    Ensemble,
    FactorScorer,
    LabelScorer,
    LocalKernelScorer,
    NameScorer,
    NameVectorScorer,
    NearestScorer,
    NetworkScorer,
    ProfileScorer,
    PrototypeScorer,
    VectorScorer,
)
from locole.scoring.base import best_of, entries_of, every_code


@saved_as("scorer.constant_for_tests")
class ConstantScorer(LabelScorer):
    """Share of each label among the training rows, whatever the row: the least that a scorer has."""

    name = "constant"
    _learnt = {"counts_": np.ndarray}  # noqa: RUF012

    @property
    def n_classes(self):
        return self.counts_.size

    def fit(self, samples, *, before=()):
        self.counts_ = np.zeros(samples.n_classes)
        return self.partial_fit(samples)

    def partial_fit(self, samples):
        new = np.bincount(samples.codes, samples.weight, minlength=samples.n_classes)
        self.counts_ = np.pad(self.counts_, (0, new.size - self.counts_.size)) + new
        return self

    def relabel(self, change):
        self.counts_ = change.added(self.counts_)

    def forget(self, samples):
        out = np.bincount(samples.codes, samples.weight, minlength=self.n_classes)
        self.counts_ = self.counts_ - out
        return {self.name: "exactly"}

    def add_labels(self, n_classes):
        self.counts_ = np.pad(self.counts_, (0, n_classes - self.n_classes))
        return self

    def candidates(self, rows, k):
        return best_of(self.all_scores(rows), k)

    def scores_at(self, rows, codes):
        return self.counts_[codes] / self.counts_.sum()


# Few labels: all are candidates of an ensemble. The last two have the same rows, so they tie.
X, y = words(14, n_samples=280, n_features=60)
X = sp.csr_array(sp.vstack([X, X[y == 13]]), dtype=np.float32)
y = np.append(y, np.full((y == 13).sum(), 14))
N = 15
# Rows that were learnt, and new ones.
NEW = words(14, n_samples=300, n_features=60)[0][280:].astype(np.float32)
ROWS = sp.csr_array(sp.vstack([X[::7], NEW]))
EMPTY = sp.csr_array((1, 60), dtype=np.float32)
SAMPLES = Samples(X, y, N)
# Rows that are known, now with other labels, two of them new.
MORE = Samples(X[:60], np.arange(60) % 3 + N - 1, N + 2)
ROUNDING = 1e-5
# The text of a label is made of the features of its rows; one label has no text.
NAMES = sp.csr_array(np.eye(N, dtype=np.float32)[:, y] @ X)[: N - 1]
NAMES.resize((N, X.shape[1]))
TERMS = sp.csr_array(sp.random_array((X.shape[1], 20), density=0.2, rng=np.random.default_rng(0)))


def vectors(*names, **settings):
    known = {
        "elastic_net": ElasticNetRegressor(l2=1.0),
        "softmax": SoftmaxRegressor(epochs=2),
        "kernel": KernelRegressor(l2=0.5),
    }
    return VectorScorer({name: known[name] for name in names}, Kerdock(N, dim=16), **settings)


def several(**settings):
    scorers = [vectors("elastic_net", "softmax", others_speak=True), ProfileScorer()]
    return Ensemble([*scorers, ConstantScorer()], **settings)


SCORERS: dict[str, LabelScorer] = {
    "one regressor": vectors("elastic_net"),
    "two regressors": vectors("elastic_net", "softmax"),
    "kernel": vectors("kernel"),
    "weighted features": vectors("elastic_net", feature_power=0.5, feature_floor=0.1),
    "network": NetworkScorer({"softmax": SoftmaxRegressor(epochs=2)}, Kerdock(N, dim=16)),
    "factors": FactorScorer(n_blocks=1),
    "profiles": ProfileScorer(),
    "plain profiles": ProfileScorer(tune=False),
    "prototypes": PrototypeScorer(),
    "prototypes without whitening": PrototypeScorer(ridge=None, epochs=1),
    "prototypes in two views": PrototypeScorer(ridge=0.3, views=2, epochs=2),
    "local kernel": LocalKernelScorer(),
    "names": NameScorer(NAMES),
    "names in other terms": NameScorer(NAMES @ TERMS, feature_terms=TERMS),
    "name vectors": NameVectorScorer(NAMES.toarray()),
    "nearest rows": NearestScorer(),
    "ensemble": several(nearest=False),
    "reranked ensemble": several(nearest=True),
    "dense ensemble": Ensemble([PrototypeScorer(), ConstantScorer()], nearest=False),
    "reranked dense ensemble": Ensemble([PrototypeScorer(ridge=0.3, views=2)], nearest=True),
    "dense ensemble with a local kernel": Ensemble(
        [PrototypeScorer(ridge=0.3, views=2), LocalKernelScorer()], nearest=False
    ),
    "ensemble with names": Ensemble([vectors("elastic_net"), NameScorer(NAMES)], nearest=False),
    "ensemble of one": Ensemble([vectors("elastic_net")], nearest=False),
    "ensemble in an ensemble": Ensemble([several(nearest=True), ConstantScorer()], nearest=False),
    "constant": ConstantScorer(),
}


@pytest.fixture(params=SCORERS)
def unfitted(request):
    return copy.deepcopy(SCORERS[request.param])


@pytest.fixture
def scorer(unfitted):
    before = [ProfileScorer().fit(SAMPLES)] if unfitted.stage > 0 else []
    return unfitted.fit(SAMPLES, before=before)


def rows(X=ROWS):
    """New ones each time: what a scorer has once made of them is kept."""
    return Rows(X)


def close(found, expected):
    atol = ROUNDING * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def answers(scorer):
    """Everything it says of the rows."""
    codes = np.random.default_rng(0).integers(0, N, (ROWS.shape[0], 4))
    return [
        *scorer.candidates(rows(), N),
        scorer.scores_at(rows(), codes),
        scorer.all_scores(rows()),
    ]


def test_every_scorer_is_listed():
    ours = {
        cls
        for kind, cls in _CLASSES.items()
        if kind.startswith("scorer.") and cls.__module__.startswith("locole.scoring")
    }
    assert ours == {type(scorer) for scorer in SCORERS.values()} - {ConstantScorer}
    assert ours == {getattr(scoring, name) for name in scoring.__all__} - {LabelScorer}


def test_what_a_scorer_must_have():
    class Half(LabelScorer):
        name = "half"

    with pytest.raises(TypeError, match="candidates"):
        Half()


# --- answers ---


@pytest.mark.parametrize("k", [1, 3, 8, 11, N])
def test_candidates_are_those_of_brute_force(scorer, k):
    every = scorer.all_scores(rows())
    codes, scores = scorer.candidates(rows(), k)
    assert codes.shape == scores.shape == (ROWS.shape[0], k)
    assert codes.dtype == np.int64
    assert all(len(set(row)) == k for row in codes)
    close(scores, -np.sort(-every, axis=1)[:, :k])
    close(np.take_along_axis(every, codes, 1), scores)


def test_candidates_are_sorted_and_ties_go_to_the_smaller_code(scorer):
    codes, scores = scorer.candidates(rows(), N)
    np.testing.assert_array_equal(np.lexsort((codes, -scores), axis=1), [np.arange(N)] * len(codes))


@pytest.mark.parametrize("name", ["profiles", "plain profiles", "nearest rows", "constant"])
def test_labels_with_the_same_rows_tie(name):
    scorer = copy.deepcopy(SCORERS[name]).fit(SAMPLES)
    codes, scores = scorer.candidates(rows(), N)
    places = np.argsort(codes, axis=1)
    np.testing.assert_array_equal(places[:, 14], places[:, 13] + 1)
    by_code = np.take_along_axis(scores, places, 1)
    np.testing.assert_array_equal(by_code[:, 13], by_code[:, 14])


@pytest.mark.parametrize(
    "name", ["one regressor", "two regressors", "profiles", "plain profiles", "nearest rows"]
)
def test_all_labels_tie(name):
    scorer = copy.deepcopy(SCORERS[name]).fit(SAMPLES)
    scorer.prior_point_ = np.zeros(16)
    reranked = Ensemble()
    reranked.scorers_, reranked.weights_ = [scorer, scorer], [0.5, 2.0]
    reranked.reranker_, reranked.choice_ = NearestScorer().fit(SAMPLES), {}
    for each in (scorer, reranked):
        for k in (1, 5, 9, N):
            codes, scores = each.candidates(rows(EMPTY), k)
            np.testing.assert_array_equal(codes, [np.arange(k)])
            assert not scores.any()
        assert not each.all_scores(rows(EMPTY)).any()


def test_a_row_without_features(scorer):
    """Which of the labels that tie is the eighth, and thus reranked, is up to rounding."""
    codes, scores = scorer.candidates(rows(EMPTY), N)
    np.testing.assert_array_equal(np.sort(codes[0]), np.arange(N))
    assert (np.diff(scores) <= 0).all()
    every = scorer.all_scores(rows(EMPTY))
    close(scores, -np.sort(-every, axis=1))
    close(scorer.scores_at(rows(EMPTY), codes[:, :3]), scores[:, :3])
    among = scorer.all_scores(rows(sp.csr_array(sp.vstack([ROWS, EMPTY]))))
    close(np.sort(among[-1:], axis=1), np.sort(every, axis=1))
    close(among[:-1], scorer.all_scores(rows()))


def test_scores_are_the_same_for_every_way_to_ask(scorer):
    every = scorer.all_scores(rows())
    assert every.shape == (ROWS.shape[0], N)
    assert every.dtype in (np.float32, np.float64)
    assert np.isfinite(every).all()
    codes = np.random.default_rng(0).integers(0, N, (ROWS.shape[0], 6))  # some of them repeat
    close(scorer.scores_at(rows(), codes), np.take_along_axis(every, codes, 1))
    assert scorer.scores_at(rows(), codes[:, :0]).shape == (ROWS.shape[0], 0)


@pytest.mark.parametrize("k", [1, 5])
def test_both_at_once(scorer, k):
    codes = np.random.default_rng(0).integers(0, N, (ROWS.shape[0], 6))
    found = scorer.candidates_and_scores(rows(), k, codes)
    assert_same_bits(found, (*scorer.candidates(rows(), k), scorer.scores_at(rows(), codes)))


def test_the_same_rows_may_be_asked_about_again(scorer):
    expected, same = answers(scorer), rows()
    codes = np.random.default_rng(0).integers(0, N, (ROWS.shape[0], 4))
    for _ in range(2):
        found = [
            *scorer.candidates(same, N),
            scorer.scores_at(same, codes),
            scorer.all_scores(same),
        ]
        assert_same_bits(found, expected)


def test_rows_do_not_depend_on_each_other(scorer):
    every = scorer.all_scores(rows())
    _, best = scorer.candidates(rows(), 3)
    for i in range(ROWS.shape[0]):
        alone = ROWS[[i]]
        close(scorer.all_scores(rows(alone))[0], every[i])
        codes, scores = scorer.candidates(rows(alone), 3)
        close(scores[0], best[i])
        close(every[i, codes[0]], scores[0])


def test_rows_may_be_dense(scorer):
    close(scorer.all_scores(rows(ROWS.toarray())), scorer.all_scores(rows()))


def test_silent_means_that_all_scores_are_zero(scorer):
    for some in (EMPTY, *(ROWS[[i]] for i in range(ROWS.shape[0]))):
        if scorer.is_silent(rows(some)):
            assert not scorer.all_scores(rows(some)).any()


def test_explanations_add_up_to_the_scores(scorer):
    asked = sp.csr_array(sp.vstack([ROWS, EMPTY]))
    codes = np.random.default_rng(0).integers(0, N, (asked.shape[0], 6))
    said = scorer.explain(rows(asked), codes)
    assert said.features.shape == (asked.nnz, 6)
    sums = np.array([said.features[part].sum(axis=0) for part in entries_of(asked)])
    for part in said.others.values():
        assert part.shape == codes.shape
        sums += part
    close(sums, scorer.scores_at(rows(asked), codes))


@pytest.mark.parametrize("name", ["one regressor", "weighted features", "factors", "profiles"])
def test_a_feature_adds_what_the_score_loses_without_it(name):
    scorer = copy.deepcopy(SCORERS[name]).fit(SAMPLES, before=[ProfileScorer().fit(SAMPLES)])
    one = ROWS[[-1]]
    codes = np.arange(N)[None]
    said = scorer.explain(rows(one), codes)
    for place in range(one.nnz):
        less = one.copy()
        less.data[place] = 0
        lost = scorer.scores_at(rows(one), codes) - scorer.scores_at(rows(less), codes)
        close(said.features[place], lost[0])


def test_validation_rows_are_scored_before_they_are_learnt(scorer):
    """By an ensemble, which has such; ranked as its candidates are."""
    found = scorer.validation_scores()
    assert (found is not None) is isinstance(scorer, Ensemble)
    if found is not None:
        assert found.codes.shape == found.scores.shape == found.right.shape
        assert_same_bits(
            found.right & True, found.samples.has(found.codes) & (found.scores > -np.inf)
        )
        assert (np.diff(np.where(np.isfinite(found.scores), found.scores, -1e300)) <= 0).all()


def test_shape(scorer):
    assert scorer.n_classes == N
    assert scorer.n_features == (None if isinstance(scorer, ConstantScorer) else 60)


def test_arguments_are_left_as_they_were(unfitted):
    kept, codes, weight = X.copy(), y.copy(), np.ones(y.size)
    unfitted.fit(Samples(X, y, N, weight))
    asked = np.zeros((X.shape[0], 2), dtype=np.int64)
    unfitted.candidates_and_scores(Rows(X), 3, asked)
    assert_same_bits([X, y, weight, asked], [kept, codes, np.ones(y.size), np.zeros_like(asked)])


# --- sources ---


def test_sources(scorer):
    names = scorer.sources
    assert len(set(names)) == len(names) >= 1
    assert all(isinstance(name, str) for name in names)
    codes = scorer.source_candidates(rows(), 4)
    assert codes.shape[0] == ROWS.shape[0]
    assert ((codes >= 0) & (codes < N)).all()
    assert scorer.source_scores(rows(), codes).shape == (*codes.shape, len(names))


@pytest.mark.parametrize("weights", [(1.0, 1.0), (2.0, 0.5), (0.25, 0.0)])
def test_the_weighted_sum_of_sources_is_the_score_afterwards(scorer, weights):
    codes = np.broadcast_to(np.arange(N), (ROWS.shape[0], N))
    sources = scorer.source_scores(rows(), codes)
    weights = np.resize(weights, sources.shape[-1])
    factor = scorer.set_source_weights(weights)
    assert isinstance(factor, float)
    close(factor * scorer.scores_at(rows(), codes), sources @ weights)
    close(factor * scorer.all_scores(rows()), sources @ weights)


# --- learning more ---


def test_more_rows_and_labels(scorer):
    before, twin = answers(scorer), copy.copy(scorer)
    assert scorer.partial_fit(MORE) is scorer
    assert scorer.n_classes == N + 2
    every = scorer.all_scores(rows())
    assert every.shape == (ROWS.shape[0], N + 2)
    assert np.isfinite(every).all()
    # What labels are called is not learnt from rows.
    assert np.array_equal(every[:, :N], before[-1]) == isinstance(scorer, NameScorer)
    codes, scores = scorer.candidates(rows(), N + 2)
    np.testing.assert_array_equal(np.sort(codes, axis=1), [np.arange(N + 2)] * len(codes))
    close(np.take_along_axis(every, codes, 1), scores)
    # the copy has learnt nothing
    assert twin.n_classes == N
    assert_same_bits(answers(twin), before)


def test_a_copy_learns_apart(scorer):
    before, twin = answers(scorer), copy.copy(scorer)
    twin.partial_fit(MORE)
    assert scorer.n_classes == N
    assert_same_bits(answers(scorer), before)


# --- labels and features that change ---

# Labels 3 and 7 are gone, 9 has become 2.
CHANGE = Relabelling.of(N, merged={9: 2}, retired=[3, 7])


def test_labels_are_merged_and_retired(scorer, tmp_path):
    before, twin = answers(scorer), copy.copy(scorer)
    scorer.relabel(CHANGE)
    n_left = N - 3
    assert scorer.n_classes == n_left
    every = scorer.all_scores(rows())
    assert every.shape == (ROWS.shape[0], n_left)
    assert np.isfinite(every).all()
    for k in (1, 4, n_left):
        codes, scores = scorer.candidates(rows(), k)
        assert all(len(set(row)) == k for row in codes)
        assert (codes < n_left).all()
        close(scores, -np.sort(-every, axis=1)[:, :k])
    said = scorer.explain(rows(), codes)
    sums = np.array([said.features[part].sum(axis=0) for part in entries_of(ROWS)])
    close(sums + sum(said.others.values()), scores)
    # a copy has its labels, files hold the change, and new labels can come
    assert_same_bits(answers(twin), before)
    write_model(tmp_path / "m", scorer)
    back = read_model(tmp_path / "m")
    assert_same_bits(back.all_scores(rows()), every)
    for each in (back, scorer):
        each.partial_fit(MORE._replace(codes=MORE.codes - 3, n_classes=N - 1))
    assert_same_bits(back.all_scores(rows()), scorer.all_scores(rows()))
    assert scorer.n_classes == N - 1


@pytest.mark.parametrize("name", ["one regressor", "factors", "prototypes", "nearest rows"])
def test_scores_of_other_labels_stay_when_one_is_retired(name):
    scorer = copy.deepcopy(SCORERS[name]).fit(SAMPLES)
    before = scorer.all_scores(rows())
    scorer.relabel(Relabelling.of(N, retired=[4, N - 1]))
    close(scorer.all_scores(rows()), np.delete(before, [4, N - 1], axis=1))
    codes = np.arange(N - 2)[None].repeat(ROWS.shape[0], axis=0)
    kept = np.delete(np.arange(N), [4, N - 1])
    again = copy.deepcopy(SCORERS[name]).fit(SAMPLES)
    assert_same_bits(scorer.scores_at(rows(), codes), again.scores_at(rows(), kept[codes]))


@pytest.mark.parametrize("name", ["plain profiles", "nearest rows", "constant"])
def test_merged_and_retired_as_by_a_fit_to_changed_rows(name):
    scorer = copy.deepcopy(SCORERS[name]).fit(SAMPLES)
    scorer.relabel(CHANGE)
    left = np.flatnonzero(CHANGE.codes[y] >= 0)
    again = Samples(X[left], CHANGE.codes[y[left]], N - 3)
    close(scorer.all_scores(rows()), copy.deepcopy(SCORERS[name]).fit(again).all_scores(rows()))


def test_more_features(scorer):
    parts = getattr(scorer, "scorers_", [scorer])
    assert scorer.grows is not any(
        isinstance(part, PrototypeScorer | LocalKernelScorer | NameVectorScorer) for part in parts
    )
    if not scorer.grows:
        with pytest.raises(LocoleError, match="cannot take more features"):
            scorer.grow(64)
        return
    before, twin = answers(scorer), copy.copy(scorer)
    scorer.grow(64)
    wide = sp.csr_array((ROWS.data, ROWS.indices, ROWS.indptr), shape=(ROWS.shape[0], 64))
    close(scorer.all_scores(rows(wide)), before[-1])
    assert_same_bits(answers(twin), before)
    with_new = sp.csr_array(sp.hstack([MORE.X, sp.csr_array(np.ones((60, 4)))]), dtype=np.float32)
    scorer.partial_fit(MORE._replace(X=with_new))
    every = scorer.all_scores(rows(with_new))
    assert np.isfinite(every).all()
    assert every.shape == (60, N + 2)


def test_rows_are_forgotten_as_far_as_is_said(unfitted):
    """Rows that came later, all of one label; exact parts are then those of before."""
    before = [ProfileScorer().fit(SAMPLES)] if unfitted.stage > 0 else []
    scorer = unfitted.fit(SAMPLES, before=before)
    expected = scorer.all_scores(rows())
    later = Samples(X[:30], np.full(30, 5), N)
    scorer.partial_fit(later)
    twin, learnt = copy.copy(scorer), scorer.all_scores(rows())
    said = scorer.forget(later)
    assert said
    assert isinstance(scorer, Ensemble) or set(said) == set(scorer.sources)
    found = scorer.all_scores(rows())
    assert_same_bits(twin.all_scores(rows()), learnt)
    if isinstance(scorer, Ensemble):
        return  # whose weights are fitted anew
    if all(word.startswith("exactly") for word in said.values()):
        close(found, expected)
    elif set(said.values()) == {"nearly"}:
        assert np.abs(found - expected).mean() < 0.5 * np.abs(learnt - expected).mean()
    elif set(said.values()) == {"not"}:
        assert_same_bits(found, learnt)


# --- scikit-learn's habits, copies, files ---


def test_constructors_only_store(unfitted):
    parameters = unfitted.get_params(deep=False)
    assert vars(unfitted) == parameters
    strange = {name: object() for name in parameters}
    assert vars(type(unfitted)(**strange)) == strange


def test_clones_are_unfitted_and_learn_the_same(unfitted):
    unfitted.fit(SAMPLES)
    twin = clone(unfitted)
    assert not [name for name in vars(twin) if name.endswith("_")]
    assert_same_bits(answers(twin.fit(SAMPLES)), answers(unfitted))


def test_fitting_again_forgets_the_first_fit(unfitted):
    expected = answers(copy.deepcopy(unfitted).fit(SAMPLES))
    parts = [unfitted, *getattr(unfitted, "scorers", ())]
    n_features = 60 if any(isinstance(part, NameScorer) for part in parts) else 50
    unfitted.fit(Samples(X[:100, :n_features], y[:100], N))
    assert_same_bits(answers(unfitted.fit(SAMPLES)), expected)


@pytest.mark.parametrize("remake", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_answer_alike(scorer, remake):
    assert_same_bits(answers(remake(scorer)), answers(scorer))


def test_files_hold_the_scorer_to_the_bit(scorer, tmp_path):
    write_model(tmp_path / "m", scorer)
    back = read_model(tmp_path / "m")
    assert type(back) is type(scorer)
    assert_same_bits(back, scorer)
    assert_same_bits(answers(back), answers(scorer))
    for each in (back, scorer):
        each.partial_fit(MORE)
    assert_same_bits(answers(back), answers(scorer))


def test_whatever_fit_leaves_is_listed(scorer):
    known = {*type(scorer)._learnt, *scorer.get_params(deep=False)}
    assert {name for name in vars(scorer) if not name.startswith("_")} == known
    assert kind_of(scorer).startswith("scorer.")


def test_the_outline_names_the_class(scorer):
    found = outline(scorer)
    assert found.name == found.to_dict()["class"] == type(scorer).__name__
    assert found.n_bytes > 0
    json.dumps(found.to_dict())
    if isinstance(scorer, Ensemble):
        names = [found.parts[f"scorers_[{i}]"].name for i in range(len(scorer.scorers_))]
        assert names == [type(part).__name__ for part in scorer.scorers_]


# --- a new scorer ---


def test_a_new_scorer_defined_in_a_test_file_alone_joins_the_default_model(tmp_path, capfd):
    topics = make_topics(1200, 300, 30, nnz_per_row=15, noise=0.5, power=0.5)
    classifier = LocoleClassifier(scorers=[ConstantScorer()])
    classifier.fit(topics.X_train, topics.y_train)
    plain = LocoleClassifier().fit(topics.X_train, topics.y_train)
    assert list(classifier.choice_["sources"]) == [*plain.choice_["sources"], "constant"]
    assert "constant" in str(classifier.choice_)
    assert isinstance(classifier.scorer_["constant"], ConstantScorer)
    # It has learnt all rows in the end, the validation rows too.
    counts = classifier.scorer_["constant"].counts_
    assert_same_bits(counts, np.bincount(topics.y_train, minlength=30).astype(float))
    assert classifier.score(topics.X_test, topics.y_test) > 0.3

    classifier.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert isinstance(back.scorer_["constant"], ConstantScorer)
    assert back.choice_ == classifier.choice_
    expected = classifier.decision_function(topics.X_test)
    assert_same_bits(back.decision_function(topics.X_test), expected)

    capfd.readouterr()
    assert main(["inspect", str(tmp_path / "m")]) == 0
    assert ": ConstantScorer" in capfd.readouterr().out
    assert main(["inspect", str(tmp_path / "m"), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert "constant" in found["choice"]["sources"]
    assert "ConstantScorer" in json.dumps(found["parts"])


# --- several labels ---


def learns_several(scorer):
    """Whether the scorer has no softmax over all labels."""
    parts = [scorer, *(getattr(scorer, "scorers", None) or ())]
    inner = [one for part in parts for one in getattr(part, "scorers", ()) or ()]
    regressors = [getattr(part, "regressors", None) or {} for part in [*parts, *inner]]
    return not any("softmax" in names for names in regressors)


def test_one_label_for_each_row_may_be_given_as_sets(unfitted):
    if not learns_several(unfitted):
        return
    plain = copy.deepcopy(unfitted).fit(SAMPLES)
    sets = unfitted.fit(SAMPLES._replace(starts=np.arange(X.shape[0] + 1)))
    every = np.tile(np.arange(N), (ROWS.shape[0], 1))
    np.testing.assert_allclose(
        sets.scores_at(rows(), every), plain.scores_at(rows(), every), rtol=1e-4, atol=1e-5
    )


def test_several_labels_are_learnt_or_refused(unfitted):
    both = np.sort(np.stack([y, (y + 1) % N], axis=1), axis=1)
    samples = Samples(X, both.ravel(), N, starts=2 * np.arange(X.shape[0] + 1))
    if not learns_several(unfitted):
        with pytest.raises(LocoleError, match="one label for each row"):
            unfitted.fit(samples)
        return
    codes, scores = unfitted.fit(samples).candidates(rows(X), 2)
    assert np.isfinite(scores).all()
    # A constant answers every row alike, and names are what they are.
    if not isinstance(unfitted, ConstantScorer | NameScorer):
        assert samples.has(codes).mean() > 0.4


def test_labels_without_rows_change_no_other_score(scorer):
    before, kept = scorer.scores_at(rows(), every_code(len(rows()), N)), copy.copy(scorer)
    more = copy.copy(scorer).add_labels(N + 2)
    assert more.n_classes == N + 2
    # Which labels are among the best, to be reranked, may change.
    if getattr(scorer, "reranker_", None) is None:
        assert_same_bits(more.scores_at(rows(), every_code(len(rows()), N)), before)
    assert np.isfinite(more.all_scores(rows())).all()
    assert kept.n_classes == N
    assert_same_bits(kept.scores_at(rows(), every_code(len(rows()), N)), before)
