"""regressor="auto": scorers are weighed on validation rows, and the best of them is not lost."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from same import assert_same_bits
from sklearn.base import clone
from sklearn.linear_model import Ridge

from locole import LocoleClassifier, load
from locole.datasets import make_topics
from locole.exceptions import LocoleError, LocoleWarning, ModelFileError
from locole.regressors import ElasticNetRegressor, MLPRegressor, SoftmaxRegressor
from locole.samples import Rows, Samples
from locole.scoring import Ensemble, ProfileScorer, PrototypeScorer, VectorScorer
from locole.scoring.default import are_dense
from locole.scoring.vectors import weigh_features


def loud_themes(*, seed: int, n_samples: int = 2400):
    """A few words of the label among sixty loud ones of a theme that has nothing to do with it.

    Labels and themes share their words: a regression learns to subtract the theme, but profiles,
    whatever a word counts in them, can only add up.
    """
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(99)
    y = np.arange(n_samples) % 60
    own, themes = (
        np.array(
            [np.isin(np.arange(300), fixed.choice(300, size, replace=False)) for _ in range(n)]
        )
        for n, size in ((60, 12), (20, 60))
    )
    heard = rng.random((n_samples, 300)) < 0.6
    rows = own[y] * heard + 3 * themes[rng.integers(0, 20, n_samples)]
    return sp.csr_array(rows.astype(np.float32)), y


def many_small_topics():
    """Two rows for each of many labels: too few for a regression with 512 outputs."""
    return make_topics(4000, 600, 2000, nnz_per_row=12, noise=0.3, power=0.0, test_size=400)


def topics(**options):
    return make_topics(1200, 300, 30, nnz_per_row=15, noise=0.5, power=0.5, **options)


DATA = topics()
X, y = DATA.X_train, DATA.y_train


@pytest.fixture(scope="module")
def fitted():
    return LocoleClassifier().fit(X, y)


def without_profiles(classifier):
    classifier = copy.copy(classifier)
    vectors = classifier.scorer_["vectors"]
    classifier.scorer_ = copy.copy(classifier.scorer_)
    classifier.scorer_.scorers_, classifier.scorer_.weights_ = [vectors], [1.0]
    return classifier


def profile_weight(classifier):
    """Weight of the profiles beside the vectors, whose weight is 1."""
    scorers = classifier.scorer_.scorers_
    weights = dict(zip([part.name for part in scorers], classifier.scorer_.weights_, strict=True))
    assert isinstance(scorers[0], VectorScorer)
    assert weights["vectors"] == 1
    return weights["profiles"]


def regressor_types(classifier):
    return [type(part) for part in classifier.scorer_["vectors"].regressors_.values()]


# --- the choice ---


def test_squared_loss_is_found_to_be_best():
    (X, y), (X_test, y_test) = loud_themes(seed=0), loud_themes(seed=1)
    auto = LocoleClassifier().fit(X, y)
    alone = LocoleClassifier(regressor="elastic_net").fit(X, y)
    profiles = ProfileScorer(tune=False).fit(Samples(X, y, 60)).candidates(Rows(X_test), 1)[0][:, 0]
    assert (profiles == y_test).mean() < 0.2
    assert alone.score(X_test, y_test) > 0.8
    assert auto.score(X_test, y_test) > alone.score(X_test, y_test) - 0.02
    agree = without_profiles(auto).predict(X_test) == auto.predict(X_test)
    assert agree.mean() > 0.97


def test_profiles_are_found_to_be_best():
    data = many_small_topics()
    auto = LocoleClassifier().fit(data.X_train, data.y_train)
    alone = LocoleClassifier(regressor="elastic_net").fit(data.X_train, data.y_train)
    first = auto.scorer_["profiles"].candidates(Rows(data.X_test), 1)[0][:, 0]
    best = (first == data.y_test).mean()
    assert best > alone.score(data.X_test, data.y_test) + 0.1
    assert auto.score(data.X_test, data.y_test) > best - 0.02
    assert without_profiles(auto).score(data.X_test, data.y_test) < best - 0.05
    assert profile_weight(auto) > 0


def test_the_best_part_is_not_lost(fitted):
    scores = [
        LocoleClassifier(regressor=name).fit(X, y).score(DATA.X_test, DATA.y_test)
        for name in ("elastic_net", "softmax")
    ]
    assert fitted.score(DATA.X_test, DATA.y_test) > max(scores) - 0.03


def test_it_says_what_it_chose(fitted):
    choice = fitted.choice_
    assert list(choice) == ["validation_rows", "accuracy", "sources", "nearest"]
    assert choice["validation_rows"] == 120
    names = ["elastic_net", "profiles", "tuned profiles", "factors"]
    assert list(choice["sources"]) == names
    assert 0 < choice["accuracy"] <= 1
    assert all(0 <= source["accuracy"] <= 1 for source in choice["sources"].values())
    weights = [source["weight"] for source in choice["sources"].values()]
    assert all(weight >= 0 for weight in weights)
    assert weights[:1] == fitted.scorer_["vectors"].weights_
    np.testing.assert_allclose(sum(weights[1:3]), profile_weight(fitted), rtol=1e-12)
    assert choice["nearest"]["used"] == (fitted.scorer_.reranker_ is not None)


def test_it_says_in_one_line_what_it_chose(fitted):
    line = str(fitted.choice_)
    assert "\n" not in line
    accuracy = 100 * fitted.choice_["accuracy"]
    assert line.startswith(
        f"{accuracy:.1f} % of 120 validation rows are right (alone: elastic net "
    )
    for name, source in fitted.choice_["sources"].items():
        assert f"{name.replace('_', ' ')} {100 * source['accuracy']:.1f} %" in line
    assert "; reranking by the nearest training rows changes that by " in line


def test_the_parts_have_learnt_all_rows(fitted):
    vectors = fitted.scorer_["vectors"]
    (elastic_net,) = vectors.regressors_.values()
    assert isinstance(elastic_net, ElasticNetRegressor)
    weighed = weigh_features(X, vectors.feature_weights_)
    whole = ElasticNetRegressor(l2=elastic_net.l2_).fit(weighed, np.zeros((1200, 1)))
    np.testing.assert_allclose(elastic_net.curvature_, whole.curvature_, rtol=1e-5)
    prior = vectors.embedding_.real_rows(y).mean(axis=0)
    np.testing.assert_allclose(vectors.prior_point_, prior, atol=1e-6)
    assert vectors.weight_seen_ == 1200
    member = sp.csr_array((np.ones(1200), (y, np.arange(1200))))
    np.testing.assert_allclose(
        fitted.scorer_["profiles"].sums_.toarray(), (member @ X).toarray().T, rtol=1e-5, atol=1e-6
    )


# --- when there is little to choose from ---


@pytest.mark.parametrize("part", [(slice(None, 999), slice(None)), (slice(None), slice(None, 256))])
def test_small_problems_are_the_elastic_nets_alone(part):
    rows, columns = part
    some, labels = X[rows][:, columns], y[rows]
    auto = LocoleClassifier().fit(some, labels)
    plain = LocoleClassifier(regressor="elastic_net").fit(some, labels)
    assert isinstance(auto.regressor_, ElasticNetRegressor)
    assert isinstance(auto.scorer_, VectorScorer)
    assert auto.choice_ == {}
    assert str(auto.choice_) == ""
    assert_same_bits(auto.decision_function(some), plain.decision_function(some))


@pytest.mark.parametrize(
    ("weight", "expected"),
    [(None, Ensemble), (np.ones(1000), Ensemble), (np.arange(1000.0), VectorScorer)],
)
def test_rows_of_weight_zero_are_not_counted(weight, expected):
    samples = Samples(np.ones((1000, 257)), np.arange(1000) % 7, 7, weight)
    assert type(LocoleClassifier()._plan(seed=0).scorer(samples)) is expected


def test_negative_features_have_no_profiles():
    signed = X.copy()
    signed.data[7] *= -1
    auto = LocoleClassifier().fit(signed, y)
    with pytest.raises(KeyError, match="profiles"):
        auto.scorer_["profiles"]
    assert list(auto.choice_["sources"]) == ["elastic_net", "factors"]
    assert isinstance(auto.scorer_, Ensemble)
    assert auto.scorer_.weights_[0] == 1.0
    labels, scores = auto.predict_topk(signed, k=30)
    np.testing.assert_array_equal(labels[:, 0], auto.predict(signed))
    np.testing.assert_allclose(scores[:, 0], auto.decision_function(signed).max(axis=1), rtol=1e-5)


def test_every_label_has_one_row():
    """No label of a validation row was seen before: there is nothing to go by, but all is learnt."""
    rows = make_topics(1000, 900, 1000, nnz_per_row=20, noise=0.1, power=0.0, test_size=1).X_train
    with pytest.warns(LocoleWarning, match="every label has only one row") as told:
        auto = LocoleClassifier().fit(rows, np.arange(1000))
    assert len(told) == 1
    assert np.isfinite(auto.predict_topk(rows)[1]).all()
    assert auto.score(rows, np.arange(1000)) > 0.9


def test_labels_that_rows_say_nothing_of():
    labels = np.arange(1200) % 1000
    rows = X[np.random.default_rng(1).permutation(1200)]
    with pytest.warns(
        LocoleWarning, match=r"only 0\.0% of 120 validation rows are right: is y a col"
    ):
        LocoleClassifier().fit(rows, labels)


def dense_rows(n_rows, n_classes=150, n_features=40, noise=1.0):
    """Noisy copies of a vector of each label."""
    rng = np.random.default_rng(0)
    labels = np.arange(n_rows) % n_classes
    centres = rng.normal(size=(n_classes, n_features))
    return centres[labels] + noise * rng.normal(size=(n_rows, n_features)), labels


@pytest.mark.parametrize("form", [np.asarray, np.float32, np.float16, sp.csr_array])
def test_dense_rows_are_for_prototypes(form):
    rows, labels = dense_rows(1500, n_classes=300)
    classifier = LocoleClassifier().fit(form(rows[:1200]), labels[:1200])
    assert list(classifier.choice_["sources"]) == ["prototypes"]
    linear = LocoleClassifier(regressor="elastic_net").fit(rows[:1200], labels[:1200])
    found = classifier.score(form(rows[1200:]), labels[1200:])
    assert found > linear.score(rows[1200:], labels[1200:])
    assert found > 0.8
    with pytest.raises(AttributeError, match="prototypes have no embedding"):
        _ = classifier.embedding_


@pytest.mark.parametrize(("n_classes", "is_known"), [(50, True), (100, False)])
def test_dense_rows_of_well_known_labels(n_classes, is_known):
    """Two views and a local kernel need many rows for each label."""
    rows, labels = dense_rows(1100, n_classes=n_classes)
    classifier = LocoleClassifier().fit(rows, labels)
    scorer = classifier.scorer_["prototypes"]
    assert scorer.vectors_.shape[1] == (80 if is_known else 40)
    assert ("local kernel" in classifier.choice_["sources"]) is is_known
    assert classifier.scorer_.reranker_ is None
    without = LocoleClassifier(nearest=False).fit(rows, labels)
    assert list(without.choice_["sources"]) == ["prototypes"]
    near = LocoleClassifier(nearest=True).fit(rows, labels)
    assert near.scorer_.reranker_ is not None
    new, new_labels = dense_rows(2200, n_classes=n_classes)
    assert classifier.score(new[1100:], new_labels[1100:]) > 0.9


@pytest.mark.parametrize("sources", [3.0, {"prototypes": 1.0}, {"prototypes": {"accuracy": 1.0}}])
def test_sources_of_a_file_are_checked(sources):
    """Learning more asks for their weights."""
    scorer = LocoleClassifier().fit(*dense_rows(1100, n_classes=50)).scorer_
    scorer._check_learnt()
    scorer.choice_ = {**scorer.choice_, "sources": sources}
    with pytest.raises(ModelFileError, match="do not fit together"):
        scorer._check_learnt()


@pytest.mark.parametrize(
    "parameters", [{"regressor": "elastic_net"}, {"embedding": "gold"}, {"dim": 512}]
)
def test_dense_rows_for_whoever_asks_for_something_else(parameters):
    rows, labels = dense_rows(300, n_classes=10)
    classifier = LocoleClassifier(**parameters).fit(rows, labels)
    assert isinstance(classifier.scorer_, VectorScorer)


@pytest.mark.parametrize(
    ("rows", "is_one"),
    [
        (dense_rows(250)[0], True),
        (dense_rows(150)[0], False),  # few rows
        (abs(dense_rows(250)[0]), False),  # of one sign
        (dense_rows(250, n_features=20)[0], False),  # few numbers
        (dense_rows(250)[0] * (np.arange(40) % 3 == 0), False),  # mostly zeros
    ],
)
def test_which_rows_are_dense(rows, is_one):
    for form in (np.asarray, sp.csr_array):
        assert are_dense(form(rows)) is is_one
    classifier = LocoleClassifier().fit(rows, np.arange(len(rows)) % 9)
    assert isinstance(classifier.scorer_, PrototypeScorer) is is_one


def test_dense_rows_in_a_stream():
    rows, labels = dense_rows(900)
    classifier = LocoleClassifier().partial_fit(rows[:450], labels[:450] % 100)
    classifier.partial_fit(rows[450:750], labels[450:750])
    assert isinstance(classifier.scorer_, PrototypeScorer)
    assert classifier.classes_.size == 150
    assert classifier.score(rows[750:], labels[750:]) > 0.4


@pytest.mark.parametrize(
    ("n_rows", "n_features", "few"),
    [(1200, 256, "256 features"), (900, 300, "900 rows"), (900, 200, "900 rows")],
)
def test_what_several_scorers_are_short_of(n_rows, n_features, few):
    rows = sp.csr_array(sp.random_array((n_rows, n_features), density=0.1, rng=0))
    wanted = f"nearest=True needs 1,000 rows and 257 features, and there are only {few}: leave it"
    with pytest.raises(LocoleError, match=wanted):
        LocoleClassifier(nearest=True).fit(rows, np.arange(n_rows) % 9)


def test_rows_without_features():
    empty = sp.csr_array((1000, 300), dtype=np.float32)
    labels = np.repeat([3, 5, 9], [700, 200, 100])
    auto = LocoleClassifier().fit(empty, labels)
    assert (auto.predict(empty) == 3).all()
    half = sp.csr_array(sp.vstack([X, empty[:200]]))
    auto = LocoleClassifier().fit(half, np.concatenate([y, labels[:200]]))
    assert np.isfinite(auto.predict_topk(empty)[1]).all()


def test_two_labels():
    auto = LocoleClassifier().fit(X, y % 2)
    difference = auto.decision_function(X)
    assert difference.shape == (1200,)
    np.testing.assert_array_equal(auto.predict(X), (difference > 0).astype(int))


@pytest.mark.parametrize("options", [{"embedding": "nelson"}, {"embedding": "gaussian", "dim": 24}])
def test_other_embeddings(options):
    auto = LocoleClassifier(**options).fit(X, y)
    assert "profiles" in auto.choice_["sources"]
    assert auto.score(DATA.X_test, DATA.y_test) > 0.5


# --- the same bits ---


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_change_no_bit(fitted, n_jobs):
    other = LocoleClassifier(n_jobs=n_jobs).fit(X, y)
    assert other.choice_ == fitted.choice_
    assert_same_bits(other.decision_function(X), fitted.decision_function(X))
    for a, b in zip(other.predict_topk(X), fitted.predict_topk(X), strict=True):
        assert_same_bits(a, b)


def test_seeds(fitted):
    again = LocoleClassifier().fit(X, y)
    other = LocoleClassifier(random_state=1).fit(X, y)
    assert_same_bits(again.decision_function(X), fitted.decision_function(X))
    assert other.choice_ != fitted.choice_


def test_forms_of_x(fitted):
    expected = fitted.predict(X)
    for form in (X.toarray(), sp.csc_array(X), X.astype(np.float64)):
        assert (LocoleClassifier().fit(form, y).predict(form) == expected).mean() > 0.99


@pytest.mark.parametrize("remake", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies(fitted, remake):
    twin = remake(fitted)
    assert_same_bits(twin.decision_function(X), fitted.decision_function(X))
    twin.partial_fit(X[:40], y[:40])
    assert twin.scorer_["profiles"] is not fitted.scorer_["profiles"]
    assert fitted.scorer_["vectors"].weight_seen_ == 1200
    assert repr(clone(twin)) == repr(clone(fitted))


def test_files_hold_the_model_to_the_bit(tmp_path):
    before = LocoleClassifier("kerdock", dim=64).fit(X, y)
    before.save(tmp_path / "m")
    after = load(tmp_path / "m")
    new = np.where(y % 7 == 0, y + 100, y)
    for learn_more in (False, True):
        if learn_more:
            before.partial_fit(X[:300], new[:300])
            after.partial_fit(X[:300], new[:300])
        assert after.choice_ == before.choice_
        assert_same_bits(after.decision_function(X), before.decision_function(X))
        for a, b in zip(after.predict_topk(X), before.predict_topk(X), strict=True):
            assert_same_bits(a, b)


# --- one order for all methods ---


def check_order(classifier, rows, k):
    """Labels by falling score, as `decision_function` has them, but for gaps of rounding."""
    labels, scores = classifier.predict_topk(rows, k=k)
    every = classifier.decision_function(rows)
    ours = np.take_along_axis(every, np.searchsorted(classifier.classes_, labels), 1)
    size = np.abs(every).max()
    np.testing.assert_allclose(scores, ours, atol=1e-5 * size)
    assert (np.diff(scores, axis=1) <= 0).all()
    best = -np.sort(-every, axis=1)[:, :k]
    np.testing.assert_allclose(scores, best, atol=1e-5 * size)
    assert all(len(set(row)) == k for row in labels)
    np.testing.assert_array_equal(classifier.predict(rows), labels[:, 0])


@pytest.mark.parametrize("k", [1, 5, 30])
def test_topk_follows_the_scores_of_all_labels(fitted, k):
    check_order(fitted, DATA.X_test, k)


# --- sample weights ---


def test_rows_of_weight_zero_are_absent():
    weight = np.random.default_rng(0).integers(0, 8, 1200).astype(float)
    there = np.flatnonzero(weight)
    whole = LocoleClassifier().fit(X, y, sample_weight=weight)
    part = LocoleClassifier().fit(X[there], y[there], sample_weight=weight[there])
    assert whole.choice_ == part.choice_ != {}
    assert whole.scorer_["vectors"].weight_seen_ == part.scorer_["vectors"].weight_seen_
    np.testing.assert_allclose(whole.decision_function(X), part.decision_function(X), rtol=1e-5)


def test_nearly_all_weights_are_zero():
    many = sp.csr_array(sp.vstack([X] * 10))
    labels = np.tile(y, 10)
    weight = np.zeros(12_000)
    weight[:1100] = 1
    auto = LocoleClassifier().fit(many, labels, sample_weight=weight)
    assert auto.choice_["validation_rows"] == 110
    weight[90:] = 0
    auto = LocoleClassifier().fit(many, labels, sample_weight=weight)
    assert auto.choice_ == {}


def test_heavier_rows_win():
    twice, both = sp.csr_array(sp.vstack([X, X])), np.concatenate([y, (y + 1) % 30])
    weight = np.repeat([1.0, 10.0], 1200)
    auto = LocoleClassifier().fit(twice, both, sample_weight=weight)
    assert auto.score(X, (y + 1) % 30) > 0.6


# --- learning more ---


def test_new_labels_after_the_choice():
    old = y < 22
    auto = LocoleClassifier("kerdock", dim=64).fit(X[old], y[old])
    before = auto.embedding_.rows(np.arange(22))
    choice = auto.choice_
    assert choice
    auto.partial_fit(X[~old], y[~old])
    np.testing.assert_array_equal(auto.classes_, np.arange(30))
    assert_same_bits(auto.embedding_.rows(np.arange(22)), before)
    assert auto.scorer_["profiles"].sums_.shape == (300, 30)
    assert auto.choice_ == choice
    new = DATA.y_test >= 22
    assert auto.score(DATA.X_test[new], DATA.y_test[new]) > 0.3
    assert auto.score(DATA.X_test, DATA.y_test) > 0.6
    check_order(auto, DATA.X_test, 5)


def test_learning_more_does_not_touch_a_copy(fitted):
    twin = copy.copy(fitted)
    expected = fitted.decision_function(X)
    twin.partial_fit(X[:100], y[:100])
    assert_same_bits(fitted.decision_function(X), expected)
    assert not np.array_equal(twin.decision_function(X), expected)


def test_negative_features_are_refused_later_on(fitted):
    expected = fitted.decision_function(X)
    with pytest.raises(LocoleError, match="label profiles need features that are not negative"):
        fitted.partial_fit(-X[:100], y[:100])
    assert fitted.scorer_["vectors"].weight_seen_ == 1200
    assert_same_bits(fitted.decision_function(X), expected)


@pytest.mark.parametrize("moment", ["fit", "source_scores", "partial_fit"])
def test_an_interrupted_fit_leaves_the_old_model(fitted, moment, monkeypatch):
    expected, kept = fitted.decision_function(X), dict(vars(fitted))

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(ProfileScorer, moment, stop)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X[:1100], y[:1100])
    monkeypatch.undo()
    assert vars(fitted) == kept
    assert_same_bits(fitted.decision_function(X), expected)


def test_a_regressor_that_counts_for_nothing_takes_no_room(tmp_path):
    """Labels with two rows each and features of their own: the profiles decide alone."""
    rng = np.random.default_rng(0)
    n_classes = 700
    own = rng.integers(0, 4000, (n_classes, 6))
    labels = np.tile(np.arange(n_classes), 3)
    columns = np.hstack([own[labels], rng.integers(0, 4000, (labels.size, 6))])
    shown = rng.random(columns.shape) < 0.6
    rows = np.repeat(np.arange(labels.size), 12)[shown.ravel()]
    some = sp.csr_array(
        (np.ones(rows.size, dtype=np.float32), (rows, columns.ravel()[shown.ravel()])),
        shape=(labels.size, 4000),
    )
    classifier = LocoleClassifier("gold", dim=32).fit(some, labels)
    vectors = classifier.scorer_["vectors"]
    vectors.set_source_weights(np.zeros(len(vectors.regressors_)))
    assert vectors.regressors_ == {}
    with pytest.raises(AttributeError, match="no regressor counts"):
        classifier.regressor_  # noqa: B018
    before = classifier.predict_topk(some, k=3)
    classifier.save(tmp_path / "model")
    after = load(tmp_path / "model").predict_topk(some, k=3)
    np.testing.assert_array_equal(before[0], after[0])
    np.testing.assert_array_equal(before[1], after[1])
    classifier.partial_fit(some[:50], labels[:50])
    assert vectors.regressors_ == {}


# --- which regressors ---


# --- factors ---


def test_factors_are_left_out_on_wish(fitted):
    without = LocoleClassifier(factors=False).fit(X, y)
    assert "factors" not in without.choice_["sources"]
    asked = LocoleClassifier(factors=True).fit(X, y)
    assert asked.choice_ == fitted.choice_
    with pytest.raises(LocoleError, match=r"factors must be .*, not 'yes'"):
        LocoleClassifier(factors="yes").fit(X, y)


def test_factors_that_are_worth_nothing_are_left_out(fitted):
    data = many_small_topics()
    auto = LocoleClassifier().fit(data.X_train, data.y_train)
    names = [scorer.name for scorer in auto.scorer_.scorers_]
    assert ("factors" in names) == (auto.choice_["sources"]["factors"]["weight"] > 0)
    noise = np.random.default_rng(0).integers(0, 30, 1200)
    lost = LocoleClassifier().fit(X, noise)
    assert lost.choice_["sources"]["factors"]["weight"] == 0
    with pytest.raises(KeyError, match="factors"):
        lost.scorer_["factors"]


def test_many_labels_have_no_factors():
    rows = np.ones((1000, 257))
    few, many = (Samples(rows, np.arange(1000), n) for n in (262_144, 262_145))
    names = [
        [part.name for part in LocoleClassifier()._plan(seed=0).scorer(some).scorers]
        for some in (few, many)
    ]
    assert names == [["vectors", "profiles", "factors"], ["vectors", "profiles"]]
    assert LocoleClassifier()._plan(seed=0).scorer(many).scorers[0].embedding.real_dim == 256


# --- profiles beside another regressor ---


def test_profiles_are_added_to_a_named_regressor():
    both = LocoleClassifier(regressor="softmax", profiles=True).fit(X, y)
    alone = LocoleClassifier(regressor="softmax").fit(X, y)
    assert isinstance(both.scorer_, Ensemble)
    assert regressor_types(both) == [SoftmaxRegressor]
    assert profile_weight(both) > 0
    assert next(iter(both.choice_["sources"])) == "softmax"
    assert isinstance(alone.scorer_, VectorScorer)
    assert alone.choice_ == {}
    found = (both.score(DATA.X_test, DATA.y_test), alone.score(DATA.X_test, DATA.y_test))
    assert found[0] > found[1] - 0.02


def test_networks_have_profiles():
    both = LocoleClassifier(regressor="mlp").fit(X, y)
    assert profile_weight(both) > 0
    assert "mlp" in both.choice_["sources"]
    for network in (MLPRegressor("labels", hidden=16, epochs=1), MLPRegressor(epochs=1)):
        assert profile_weight(LocoleClassifier(regressor=network).fit(X, y)) > 0
        alone = LocoleClassifier(regressor=network, profiles=False).fit(X, y)
        assert isinstance(alone.scorer_, VectorScorer)
    for alone in (
        LocoleClassifier(regressor="mlp", profiles=False).fit(X, y),
        LocoleClassifier(regressor="mlp").fit(-X, y),
        LocoleClassifier(regressor="mlp").fit(X[:200], y[:200]),
    ):
        assert isinstance(alone.scorer_, VectorScorer)
        assert isinstance(alone.regressor_, MLPRegressor)


def test_a_network_is_weighed_beside_the_linear_models_of_the_default():
    """It puts more validation rows right, or it is gone, and what is left is the default to the bit."""
    network, default = (LocoleClassifier(regressor=name).fit(X, y) for name in ("mlp", "auto"))
    found = dict(network.choice_["sources"])
    own = found.pop("mlp")
    assert {name: part["accuracy"] for name, part in found.items()} == {
        name: part["accuracy"] for name, part in default.choice_["sources"].items()
    }
    if "network" in network.scorer_:
        assert own["weight"] > 0
        assert network.choice_["accuracy"] >= default.choice_["accuracy"]
    else:
        assert own["weight"] == 0
        assert_same_bits(
            network.predict_topk(DATA.X_test, k=5), default.predict_topk(DATA.X_test, k=5)
        )


def test_a_network_that_is_not_worth_it_leaves_the_default_model(monkeypatch):
    """Whatever it proposes: here it has learnt labels at random."""

    def spoilt(self, X, targets, sample_weight=None, **others):
        rng = np.random.default_rng(0)
        return fit(self, X, targets.take(rng.permutation(X.shape[0])), sample_weight)

    fit = MLPRegressor.fit
    monkeypatch.setattr(MLPRegressor, "fit", spoilt)
    network, default = (LocoleClassifier(regressor=name).fit(X, y) for name in ("mlp", "auto"))
    assert "network" not in network.scorer_
    assert network.choice_["sources"].pop("mlp")["weight"] == 0
    assert network.choice_ == default.choice_
    assert_same_bits(network.decision_function(DATA.X_test), default.decision_function(DATA.X_test))


def test_profiles_are_weighed_beside_vectors_that_are_learnt():
    """Points belong to these: by the vectors that the network began with they would say nothing."""
    network = MLPRegressor(
        loss="softmax", hidden=64, epochs=8, learning_rate=0.05, skip=False, embedding_rate=3.0
    )
    both = LocoleClassifier("gaussian", dim=32, regressor=network, profiles=True).fit(X, y)
    assert_same_bits(both.embedding_.real_block(0, 30), both.regressor_.vectors_)
    assert both.scorer_["vectors"].weights_[0] > 0
    both.partial_fit(X[:100], y[:100])
    assert_same_bits(both.embedding_.real_block(0, 30), both.regressor_.vectors_)
    alone = without_profiles(both)
    assert alone.score(DATA.X_test, DATA.y_test) > 0.5
    found = (both.score(DATA.X_test, DATA.y_test), alone.score(DATA.X_test, DATA.y_test))
    assert found[0] > found[1] - 0.02


def test_a_regressor_of_ones_own_is_named_by_its_class():
    own = ElasticNetRegressor(l2=0.5)
    both = LocoleClassifier(regressor=own, profiles=True).fit(X, y)
    assert next(iter(both.choice_["sources"])) == "ElasticNetRegressor"


def test_without_profiles_the_others_are_weighed_alone():
    plain = LocoleClassifier(profiles=False).fit(X, y)
    assert plain.scorer_["vectors"].feature_weights_ is None
    assert list(plain.choice_["sources"]) == ["elastic_net", "factors"]


def test_a_sum_with_profiles_is_saved_and_learns_more(tmp_path):
    both = LocoleClassifier(regressor="elastic_net", profiles=True).fit(X[:1100], y[:1100])
    both.partial_fit(X[1100:], y[1100:])
    both.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.profiles is True
    assert_same_bits(again.decision_function(X), both.decision_function(X))


@pytest.mark.parametrize(
    ("settings", "rows", "message"),
    [
        ({"profiles": "yes"}, X, "profiles must be True, False or 'auto', not 'yes'"),
        ({"regressor": Ridge()}, X, "needs a regressor of locole's own"),
        ({}, X[:, :256], "needs 1,000 rows and 257 features"),
        ({}, -X, "profiles=True needs features that are not negative"),
    ],
    ids=["value", "foreign", "few", "negative"],
)
def test_profiles_that_cannot_be_had_are_refused(settings, rows, message):
    with pytest.raises(LocoleError, match=message):
        LocoleClassifier(**{"profiles": True, **settings}).fit(rows, y)


def test_profiles_do_not_begin_with_a_part_of_the_labels():
    with pytest.raises(LocoleError, match="a first fit with all labels"):
        LocoleClassifier(profiles=True).partial_fit(X, y)
