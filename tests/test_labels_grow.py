"""Labels that arrive after training: partial_fit, full embeddings, rehash."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor

from locole import LocoleClassifier
from locole.embeddings import DelsarteGoethals, Kerdock
from locole.exceptions import CapacityError, LocoleError
from locole.regressors import ElasticNetRegressor

RNG = np.random.default_rng(0)
N_LABELS = 60
CENTRES = sp.random_array((N_LABELS, 400), density=0.05, rng=RNG, format="csr")


def rows_of(labels, seed=0):
    """Rows near the centres of their labels, of unit length."""
    noise = sp.random_array(
        (len(labels), 400), density=0.01, rng=np.random.default_rng(seed), format="csr"
    )
    X = sp.csr_array(CENTRES[labels] + 0.3 * noise)
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    return sp.csr_array(X.multiply(1 / norms[:, None])).astype(np.float32)


OLD = np.repeat(np.arange(40), 8)
NEW = np.repeat(np.arange(40, N_LABELS), 8)


def grown(regressor="auto", **options):
    classifier = LocoleClassifier(regressor=regressor, **options)
    return classifier.partial_fit(rows_of(OLD), OLD).partial_fit(rows_of(NEW, seed=1), NEW)


@pytest.mark.parametrize(
    "options", [{}, {"embedding": "kerdock", "dim": 64}, {"embedding": "nelson", "dim": 37}]
)
def test_new_labels_are_learnt_and_old_ones_kept(options):
    classifier = grown(**options)
    np.testing.assert_array_equal(classifier.classes_, np.arange(N_LABELS))
    both = np.concatenate([OLD, NEW])
    assert classifier.score(rows_of(NEW, seed=2), NEW) > 0.9
    assert classifier.score(rows_of(both, seed=2), both) > 0.9


def test_old_vectors_do_not_move():
    first = LocoleClassifier("kerdock", dim=64).partial_fit(rows_of(OLD), OLD)
    before = first.embedding_.rows(np.arange(40))
    first.partial_fit(rows_of(NEW), NEW)
    np.testing.assert_array_equal(first.embedding_.rows(np.arange(40)), before)


def test_new_labels_come_last_whatever_their_order():
    classifier = LocoleClassifier().partial_fit(rows_of(NEW), NEW)
    classifier.partial_fit(rows_of(OLD), OLD)
    np.testing.assert_array_equal(
        classifier.classes_, np.concatenate([np.arange(40, N_LABELS), np.arange(40)])
    )
    assert classifier.score(rows_of(OLD, seed=2), OLD) > 0.9


def test_longer_names_are_not_cut():
    names = np.array(["a", "b"])[OLD % 2]
    classifier = LocoleClassifier().partial_fit(rows_of(OLD), names)
    classifier.partial_fit(rows_of(NEW), np.full(len(NEW), "a much longer name"))
    assert "a much longer name" in classifier.classes_


def test_labels_known_in_advance():
    classifier = LocoleClassifier().partial_fit(rows_of(OLD), OLD, classes=np.arange(100))
    assert classifier.classes_.size == 100
    classifier.partial_fit(rows_of(NEW), NEW)
    assert classifier.classes_.size == 100


def test_a_full_embedding_says_so_and_changes_nothing():
    classifier = LocoleClassifier("simplex").fit(rows_of(OLD), OLD)
    before = classifier.predict(rows_of(OLD))
    with pytest.raises(CapacityError, match=r"60 labels do not fit into Simplex .* dim=59"):
        classifier.partial_fit(rows_of(NEW), NEW)
    assert classifier.classes_.size == 40
    np.testing.assert_array_equal(classifier.predict(rows_of(OLD)), before)
    both = np.concatenate([OLD, NEW])
    classifier.rehash(rows_of(both), both)
    assert classifier.embedding_.capacity >= 80
    assert classifier.score(rows_of(both, seed=2), both) > 0.9


@pytest.mark.parametrize("storage", ["float32", "int8"])
@pytest.mark.parametrize("max_passes", [1, 50])
def test_one_hot_vectors_get_more_outputs(storage, max_passes):
    """The new outputs of old rows are zero, which is what ridge regression makes of them."""
    regressor = ElasticNetRegressor(l2=0.1, storage=storage, max_passes=max_passes)
    classifier = LocoleClassifier("one_hot", regressor=regressor).fit(rows_of(OLD), OLD)
    before = classifier.decision_function(rows_of(OLD))
    classifier.partial_fit(rows_of(NEW[:8]), NEW[:8]).partial_fit(rows_of(NEW), NEW)
    assert classifier.embedding_.dim == 60
    both = np.concatenate([OLD, NEW])
    assert classifier.score(rows_of(both, seed=2), both) > 0.9
    after = classifier.decision_function(rows_of(OLD))[:, :40]
    assert np.abs(after - before).mean() < 0.05


def test_a_full_kerdock_code_runs_over_without_moving_a_label():
    y = np.arange(240) % 120
    X = sp.csr_array(np.random.default_rng(0).random((240, 40)), dtype=np.float32)
    classifier = LocoleClassifier("kerdock", dim=16, regressor="elastic_net").fit(X, y)
    before = classifier.embedding_.rows(np.arange(120))
    classifier.retire_labels([119, 5]).partial_fit(X[:40], np.arange(200, 240))
    assert type(classifier.embedding_) is DelsarteGoethals
    kept = np.delete(np.arange(120), [119, 5])
    np.testing.assert_array_equal(classifier.embedding_.rows(np.arange(118)), before[kept])
    products = classifier.embedding_.rows(np.arange(118, 158)) @ before[[119, 5]].T
    assert np.abs(products).max() < 0.9  # the vectors of retired labels are nobody's


def test_rehash_to_a_dim_of_choice():
    classifier = LocoleClassifier("kerdock", dim=16).fit(rows_of(OLD), OLD)
    classifier.rehash(rows_of(OLD), OLD, dim=256)
    assert classifier.embedding_ == Kerdock(40, dim=256)
    assert classifier.dim == 256


def test_the_prior_follows_all_rows():
    classifier = grown("elastic_net", embedding="kerdock", dim=64)
    whole = LocoleClassifier("kerdock", dim=64).fit(
        rows_of(np.concatenate([OLD, NEW])), np.concatenate([OLD, NEW])
    )
    ours, theirs = classifier.scorer_, whole.scorer_
    np.testing.assert_allclose(ours.prior_point_, theirs.prior_point_, atol=1e-6)
    assert ours.weight_seen_ == theirs.weight_seen_ == 480


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_any_regressor_with_partial_fit():
    classifier = LocoleClassifier(
        "kerdock", dim=16, regressor=MLPRegressor(hidden_layer_sizes=(8,), max_iter=3)
    )
    classifier.partial_fit(rows_of(OLD), OLD).partial_fit(rows_of(NEW), NEW)
    assert classifier.classes_.size == N_LABELS


def test_a_regressor_without_partial_fit_says_so():
    classifier = LocoleClassifier("kerdock", dim=64, regressor=Ridge()).fit(rows_of(OLD), OLD)
    with pytest.raises(LocoleError, match="Ridge cannot learn more rows: fit again"):
        classifier.partial_fit(rows_of(NEW), NEW)


def test_threads_change_no_bit():
    one, two = (grown(ElasticNetRegressor(l2=0.1, max_passes=3), n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(
        one.predict_topk(rows_of(OLD))[1], two.predict_topk(rows_of(OLD))[1]
    )
