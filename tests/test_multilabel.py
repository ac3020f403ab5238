"""Several labels for a row: forms of Y, what is learnt from them, and that one label each is y."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from same import assert_same_bits
from scipy.special import expit, logsumexp
from sklearn.base import clone
from sklearn.metrics import accuracy_score

from locole import LocoleClassifier, load
from locole.baselines import AnnexML, Bonsai, Centroids, Parabel, PDSparse, PPDSparse
from locole.calibration import Marginals
from locole.dense_rows import PairedRows
from locole.embeddings import Kerdock, OneHot
from locole.exceptions import LocoleError, ModelFileError
from locole.label_past import Relabelling
from locole.metrics import f1_score
from locole.regressors import ElasticNetRegressor, KernelRegressor, MLPRegressor
from locole.samples import Rows, Samples
from locole.scoring import FactorScorer, NearestScorer, ProfileScorer, VectorScorer
from locole.targets import Targets
from locole.text import TextClassifier


def word_sets(n_rows=1200, n_labels=40, n_features=300, seed=0):
    """Rows with up to three labels, of which every one adds words of its own; some rows have none."""
    own = np.random.default_rng(9).integers(0, n_features, (n_labels, 4))
    rng = np.random.default_rng(seed)
    sets = [np.sort(rng.choice(n_labels, rng.integers(0, 4), replace=False)) for _ in range(n_rows)]
    X = np.zeros((n_rows, n_features), dtype=np.float32)
    for row, labels in zip(X, sets, strict=True):
        row[own[labels].ravel()] += 1
        row[rng.integers(0, n_features, 3)] += 1
    return sp.csr_array(X), sets


def indicator(sets, n_labels):
    Y = np.zeros((len(sets), n_labels), dtype=int)
    for row, labels in zip(Y, sets, strict=True):
        row[labels] = 1
    return Y


X, SETS = word_sets()
Y = indicator(SETS, 40)
NAMES = np.array([f"label {i:02d}" for i in range(40)])
TEST, TEST_SETS = word_sets(seed=1)


def several(rows=slice(None)):
    some = SETS[rows]
    starts = np.append(0, np.cumsum([len(labels) for labels in some]))
    return Samples(X[rows], np.concatenate(some), 40, starts=starts)


def share_found(codes):
    """How many of a test row's labels, n of them, are among its first n answers."""
    pairs = zip(codes, TEST_SETS, strict=False)
    return np.mean([np.isin(own, row[: own.size]).mean() for row, own in pairs if own.size])


# --- samples and targets ---


def test_samples_are_taken_as_lists_are():
    samples, rows = several(), np.array([7, 3, 3, 1100])
    taken = samples.take(rows)
    assert [labels.tolist() for labels in np.split(taken.codes, taken.starts[1:-1])] == [
        SETS[row].tolist() for row in rows
    ]
    assert (X[rows] != taken.X).nnz == 0
    assert taken.n_labels.tolist() == [len(SETS[row]) for row in rows]


def test_samples_know_their_labels():
    asked = np.tile(np.arange(40), (len(SETS), 1))
    assert np.array_equal(several().has(asked), Y.astype(bool))
    assert np.array_equal(several().has(asked[:2], np.array([9, 4])), Y[[9, 4]].astype(bool))
    none = Samples(X[:2], np.empty(0, np.int64), 40, starts=np.zeros(3, np.int64))
    assert not none.has(asked[:2]).any()


def test_every_label_as_a_row_of_its_own():
    samples = several()._replace(weight=np.arange(len(SETS), dtype=float))
    single = samples.single()
    pairs = [(row, label) for row, labels in enumerate(SETS) for label in labels]
    assert list(zip(samples.owners, single.codes, strict=True)) == pairs
    assert single.weight.tolist() == [row for row, _ in pairs]
    assert single.n_rows == len(pairs)
    assert samples.labelled().n_rows == sum(len(labels) > 0 for labels in SETS)


@pytest.mark.parametrize("embedding", [OneHot(40, dim=40), Kerdock(40, dim=64)])
def test_targets_are_sums_of_label_vectors(embedding):
    samples = several()
    targets = Targets(samples.codes, embedding, starts=samples.starts)
    expected = Y @ embedding.real_block(0, 40)
    np.testing.assert_allclose(targets.rows(slice(None)), expected, atol=1e-6)
    table = np.hstack([targets.table(0, 30), targets.table(30, embedding.real_dim)])
    np.testing.assert_allclose(table[targets.codes], expected, atol=1e-6)
    some = targets.take(np.array([5, 2]))
    np.testing.assert_allclose(some.rows(np.array([1])), expected[[2]], atol=1e-6)
    weight = np.random.default_rng(0).random(len(SETS))
    np.testing.assert_allclose(
        targets.mean(weight), weight @ expected / weight.sum(), rtol=1e-5, atol=1e-8
    )
    assert len(table) == len({tuple(labels) for labels in SETS})


# --- scorers ---


def test_profiles_count_every_label_of_a_row():
    scorer = ProfileScorer(tune=False).fit(several())
    expected = X.T @ sp.csr_array(Y.astype(np.float32))
    np.testing.assert_allclose(scorer.sums_.toarray(), expected.toarray(), rtol=1e-6)


def test_the_nearest_row_of_each_label():
    found = NearestScorer().fit(several()).similarity(TEST[:20], np.tile(np.arange(40), (20, 1)))
    lengths = [np.sqrt(A.multiply(A).sum(axis=1)) for A in (TEST[:20], X)]
    cosines = (TEST[:20] @ X.T).toarray() / np.outer(*lengths)
    expected = np.stack([cosines[:, Y[:, label] == 1].max(axis=1) for label in range(40)], axis=1)
    np.testing.assert_allclose(found, expected, atol=0.01)


@pytest.mark.parametrize("scorer", [ProfileScorer(), FactorScorer(n_blocks=1, epochs=10)])
def test_scorers_put_the_labels_of_a_row_first(scorer):
    codes, _ = scorer.fit(several()).candidates(Rows(TEST), 3)
    assert share_found(codes) > 0.8


# --- forms of Y ---

FORMS = {
    "dense": Y,
    "bools": Y.astype(bool),
    "floats": Y.astype(float),
    "sparse": sp.csr_matrix(Y),
    "coo": sp.coo_array(Y),
    "lists": [labels.tolist() for labels in SETS],
    "tuples": tuple(tuple(labels.tolist()) for labels in SETS),
    "sets": [set(labels.tolist()) for labels in SETS],
    "arrays": list(SETS),
    "objects": np.array([labels.tolist() for labels in SETS], dtype=object),
    "twice, turned": [[*labels[::-1].tolist(), *labels.tolist()] for labels in SETS],
}


@pytest.fixture(scope="module")
def model():
    return LocoleClassifier().fit(X, Y)


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_y_are_one(model, form):
    other = LocoleClassifier().fit(X, FORMS[form])
    assert_same_bits(other.predict_topk(TEST, k=40), model.predict_topk(TEST, k=40))
    assert_same_bits(other.classes_, model.classes_)


def test_labels_may_be_texts(model):
    named = LocoleClassifier().fit(X, [NAMES[labels].tolist() for labels in SETS])
    assert np.array_equal(named.classes_, NAMES)
    labels, scores = named.predict_topk(TEST, k=3)
    codes, expected = model.predict_topk(TEST, k=3)
    assert np.array_equal(labels, NAMES[codes])
    assert_same_bits(scores, expected)


def test_labels_of_rows_are_found(model):
    assert share_found(model.predict_topk(TEST, k=3)[0]) > 0.9


def as_sets(y, n_labels=40):
    return [[label] for label in y], sp.csr_array(np.eye(n_labels, dtype=int)[y])


DENSE = np.random.default_rng(5).normal(size=(1200, 32)).astype(np.float32)
ROWS = {
    "few": X[:600],
    "sparse": X,
    "dense": DENSE,
    "both": PairedRows(X, DENSE),
}


@pytest.mark.parametrize("rows", ROWS)
def test_one_label_in_each_row_is_y_at_the_door(rows):
    """So it is for whatever learns from the samples."""
    rows, classifier = ROWS[rows], LocoleClassifier()
    y = np.random.default_rng(2).integers(0, 40, rows.shape[0])
    weight = np.random.default_rng(3).random(y.size)
    samples, classes = classifier._samples(rows, y, sample_weight=weight)
    assert samples.starts is None
    for form in as_sets(y):
        other, labels = classifier._samples(rows, form, sample_weight=weight)
        assert other.starts is None
        for name in ("codes", "weight", "n_classes"):
            assert_same_bits(getattr(other, name), getattr(samples, name))
        assert_same_bits(labels, classes)


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ("few", {}),
        ("sparse", {}),
        ("sparse", {"regressor": "elastic_net"}),
        ("sparse", {"regressor": "softmax"}),
        ("sparse", {"regressor": KernelRegressor(l2=0.5)}),
        ("sparse", {"regressor": MLPRegressor(epochs=1, hidden=8)}),
        ("sparse", {"nearest": True}),
        ("dense", {}),
        ("both", {}),
    ],
    ids=str,
)
def test_one_label_in_each_row_is_y(rows, options):
    """All scorers of the default model, of sparse and dense rows, and every regressor; also later."""
    rows = ROWS[rows]
    y = np.random.default_rng(2).integers(0, 40, rows.shape[0])
    weight = np.random.default_rng(3).random(y.size)
    plain = LocoleClassifier(**options).fit(rows, y, sample_weight=weight)
    later = y[:100].copy()
    later[:5] = 40
    asked = rows[:50]
    before = plain.predict_topk(asked, k=40)
    grows = "softmax" not in str(options) and "MLP" not in str(options)
    if grows:
        plain.partial_fit(rows[:100], later)
    for form, more in zip(as_sets(y), as_sets(later, 41), strict=True):
        other = LocoleClassifier(**options).fit(rows, form, sample_weight=weight)
        assert_same_bits(other.predict_topk(asked, k=40), before)
        if grows:
            other.partial_fit(rows[:100], more)
            assert_same_bits(other.predict_topk(asked, k=41), plain.predict_topk(asked, k=41))


@pytest.mark.parametrize("baseline", [Parabel(max_leaf=8), PPDSparse(), Centroids()], ids=repr)
def test_baselines_take_one_label_in_either_form(baseline):
    y = np.random.default_rng(2).integers(0, 40, 1200)
    plain = clone(baseline).fit(X, y).predict_topk(TEST[:50], k=5)
    for form in as_sets(y):
        assert_same_bits(clone(baseline).fit(X, form).predict_topk(TEST[:50], k=5), plain)


def test_threads_and_files_change_no_bit(model, tmp_path):
    threaded = LocoleClassifier(n_jobs=3).fit(X, Y)
    assert_same_bits(threaded.predict_topk(TEST, k=40), model.predict_topk(TEST, k=40))
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.multilabel_ == "dense"
    assert_same_bits(loaded.predict_topk(TEST, k=4), model.predict_topk(TEST, k=4))


def test_new_labels_arrive():
    lists = [NAMES[labels[labels < 30]].tolist() for labels in SETS]
    model = LocoleClassifier("kerdock").fit(X, lists)
    assert model.classes_.size == 30
    model.partial_fit(X, [NAMES[labels].tolist() for labels in SETS])
    assert np.array_equal(model.classes_, NAMES)
    answers = model.predict_topk(TEST, k=3)[0]
    assert share_found(np.searchsorted(NAMES, answers)) > 0.8


@pytest.mark.parametrize("form", ["lists", "sparse"])
def test_rows_of_weight_zero_are_absent(form):
    rows = np.flatnonzero(np.arange(len(SETS)) % 12 > 0)
    weight = np.zeros(len(SETS))
    weight[rows] = 1.0
    few = [FORMS["lists"][row] for row in rows] if form == "lists" else FORMS[form][rows]
    left = LocoleClassifier().fit(X[rows], few, sample_weight=np.ones(rows.size))
    made = LocoleClassifier().fit(X, FORMS[form], sample_weight=weight)
    assert_same_bits(made.predict_topk(TEST, k=3), left.predict_topk(TEST, k=3))


def test_rows_without_labels_speak_against_labels():
    """Words of a label in rows without labels make it less likely."""
    own = np.flatnonzero(Y[:, 7])
    empty = X[np.repeat(own, 3)]
    more = sp.csr_array(sp.vstack([X, empty]))
    sets = [*FORMS["lists"], *([] for _ in range(empty.shape[0]))]
    asked = TEST[np.flatnonzero(indicator(TEST_SETS, 40)[:, 7])]
    scores = [
        LocoleClassifier().fit(rows, given).predict_proba(asked)[:, 7].mean()
        for rows, given in ((X, FORMS["lists"]), (more, sets))
    ]
    assert scores[1] < 0.7 * scores[0]


@pytest.mark.parametrize("kind", ["dense", "both"])
def test_dense_rows_with_several_labels(kind, tmp_path):
    """Answers, probabilities, thresholds, reasons, more rows and files are those of sparse rows."""
    centres = np.random.default_rng(4).normal(size=(41, 64))

    def rows_of(sets, sparse, seed):
        noise = 0.3 * np.random.default_rng(seed).normal(size=(len(sets), 64))
        rows = (indicator(sets, 41) @ centres + noise).astype(np.float32)
        return rows if kind == "dense" else PairedRows(sparse, rows)

    rows, asked = rows_of(SETS, X, 0), rows_of(TEST_SETS, TEST, 1)
    model = LocoleClassifier().fit(rows, FORMS["lists"])
    assert "prototypes" in model.choice_["sources"]
    known = indicator(TEST_SETS, 40)
    assert share_found(model.predict_topk(asked, k=3)[0]) > 0.85
    assert f1_score(known, model.predict(asked)) > 0.75
    assert f1_score(known, model.predict(asked, average="macro")) > 0.7
    assert model.predict_proba(asked).sum() == pytest.approx(known.sum(), rel=0.1)
    why = model.explain(asked[:3])
    best, scores = model.predict_topk(asked[:3], k=1)
    assert [one.label for one in why] == best[:, 0].tolist()
    np.testing.assert_allclose([one.score for one in why], scores[:, 0], rtol=1e-3)
    model.partial_fit(rows_of([[40]] * 30, X[:30], 2), [[40]] * 30)
    new = rows_of([[40]] * 20, TEST[:20], 3)
    assert (model.predict_topk(new, k=2)[0] == 40).any(axis=1).mean() > 0.7
    model.save(tmp_path / "model")
    assert_same_bits(load(tmp_path / "model").predict(asked), model.predict(asked))


def test_texts_and_vectors_with_several_labels(tmp_path):
    names = np.array([f"word{i}" for i in range(X.shape[1])])
    texts = [" ".join(names[row]) for row in np.split(X.indices, X.indptr[1:-1])]
    table = np.random.default_rng(0).normal(size=(X.shape[1] + 1, 32))

    def encoder(some):
        known = {name: i for i, name in enumerate(names)}
        places = [[known.get(word, -1) for word in text.split()] or [-1] for text in some]
        return np.stack([table[place].mean(axis=0) for place in places])

    model = TextClassifier(encoder=encoder).fit(texts, FORMS["lists"])
    assert "prototypes" in model.classifier_.choice_["sources"]
    found = model.predict(texts[:100])
    assert f1_score(Y[:100], found) > 0.7
    model.save(tmp_path / "model")
    again = load(tmp_path / "model", encoder=encoder)
    assert_same_bits(again.predict(texts[:100]), found)
    again.partial_fit(texts[:50], [[*own, 40] for own in FORMS["lists"][:50]])
    assert 40 in again.classes_


def test_texts_with_several_labels():
    texts = ["it purrs and swims", "it barks", "it swims", "it purrs"] * 10
    sets = [["cat", "fish"], ["dog"], ["fish"], ["cat"]] * 10
    labels, _ = TextClassifier().fit(texts, sets).predict_topk(["purrs and swims"], k=2)
    assert sorted(labels[0]) == ["cat", "fish"]


def test_rows_are_taken_at_unit_length(model):
    """Several labels only: the length of a row changes no answer."""
    scale = np.random.default_rng(0).uniform(0.5, 2, len(SETS)).astype(np.float32)
    scaled = LocoleClassifier().fit(sp.diags_array(scale) @ X, Y)
    answers = scaled.predict_topk(TEST * 3, k=2)
    assert (answers[0] == model.predict_topk(TEST, k=2)[0]).mean() > 0.99
    assert model.scorer_.unit_rows
    assert not LocoleClassifier().fit(X, np.arange(len(SETS)) % 40).scorer_.unit_rows


# --- baselines ---


def test_centroids_of_several_labels():
    model = Centroids().fit(X, sp.csr_array(Y))
    sums = (X.T @ sp.csr_array(Y.astype(np.float32))).toarray()
    np.testing.assert_allclose(
        model.centroids_.toarray(), sums / np.linalg.norm(sums, axis=0), rtol=1e-5
    )


@pytest.mark.parametrize(
    "baseline",
    [
        Parabel(max_leaf=8),
        Parabel(max_leaf=8, engine="omikuji"),
        Bonsai(max_leaf=8),
        PPDSparse(),
        AnnexML(n_learners=2),
    ],
    ids=["parabel", "omikuji", "bonsai", "ppd_sparse", "annexml"],
)
def test_baselines_that_learn_several_labels(baseline, tmp_path):
    model = baseline.fit(X, Y)
    answers = model.predict_topk(TEST[:200], k=3)
    assert share_found(answers[0]) > 0.8
    if getattr(baseline, "engine", "") != "omikuji":
        model.save(tmp_path / "model")
        assert_same_bits(load(tmp_path / "model").predict_topk(TEST[:200], k=3), answers)


def test_a_label_without_rows_is_answered_last():
    empty = np.hstack([Y, np.zeros((len(Y), 1), dtype=int)])
    models = (Centroids(), PPDSparse(), Parabel(max_leaf=8), AnnexML(n_learners=2))
    for model in (LocoleClassifier(), *models):
        assert (model.fit(X, empty).predict_topk(TEST[:100], k=1)[0] < 40).mean() > 0.95


# --- errors ---


@pytest.mark.parametrize(
    ("bad", "part"),
    [
        (2 * Y, "no indicator of several labels"),
        (Y[:-1], r"X has 1200 rows but y has 1199"),
        ([*FORMS["lists"][:-1], 3], "lists of labels, but also 3 alone"),
        ([*FORMS["lists"][:-1], None], "also None alone: give a row without labels an empty list"),
        ([*FORMS["lists"][:-1], [[3]]], "lists within lists"),
        ([["a", "b"], ["a", None]] * 600, "missing label, None or NaN, in row 1: leave it out"),
        (np.array([["a", "b"]] * 1200), "no indicator of several labels"),
        (0 * Y, "no row has a label: a classifier needs at least two"),
        ([*FORMS["lists"][:-1], ["a"]], "both texts and other labels"),
        ([[] for _ in SETS], "no row has a label: a classifier needs at least two"),
        ([[1] for _ in SETS], "only one class, '1'"),
        ([[0.5], [1.5]] * 600, "Unknown label type"),
    ],
)
def test_what_is_refused(bad, part):
    with pytest.raises(ValueError, match=part):
        LocoleClassifier().fit(X, bad)


def test_forms_are_not_mixed(model):
    with pytest.raises(
        LocoleError, match=r"has learnt an indicator .* y is one label for each row"
    ):
        model.partial_fit(X, np.arange(len(SETS)) % 40)
    with pytest.raises(LocoleError, match=r"has learnt an indicator .* y is a list of labels"):
        model.partial_fit(X, FORMS["lists"])
    single = LocoleClassifier(regressor="elastic_net").fit(X, np.arange(len(SETS)) % 40)
    with pytest.raises(
        LocoleError, match=r"has learnt one label for each row, and y is an indicator"
    ):
        single.partial_fit(X, Y)


def test_weights_of_labels_are_for_one_label_each():
    with pytest.raises(LocoleError, match="class_weight is for rows with one label each"):
        LocoleClassifier(class_weight="balanced").fit(X, Y)
    with pytest.raises(LocoleError, match="which PDSparse does not learn"):
        PDSparse().fit(X, Y)


# --- predict ---


def test_predicted_sets(model):
    found = model.predict(TEST)
    assert found.shape == (len(TEST_SETS), 40)
    assert found.dtype.kind == "i"
    assert (found.sum(axis=1) >= 1).all()
    assert f1_score(indicator(TEST_SETS, 40), found) > 0.8
    answers = model.predict_topk(TEST, k=40)[0]
    for row, best in zip(found, answers, strict=True):
        assert sorted(best[: row.sum()]) == np.flatnonzero(row).tolist()


@pytest.mark.parametrize("form", ["sparse", "lists"])
def test_predictions_are_sparse_unless_y_was_dense(model, form):
    found = LocoleClassifier().fit(X, FORMS[form]).predict(TEST)
    assert sp.issparse(found)
    assert np.array_equal(found.toarray(), model.predict(TEST))


def test_the_score_is_that_of_scikit_learn(model):
    known = indicator(TEST_SETS, 40)
    expected = accuracy_score(known, model.predict(TEST))
    assert 0.3 < expected < 1
    assert model.score(TEST, known) == pytest.approx(expected)
    weight = np.random.default_rng(0).random(len(known))
    expected = accuracy_score(known, model.predict(TEST), sample_weight=weight)
    assert model.score(TEST, sp.csr_array(known), sample_weight=weight) == pytest.approx(expected)
    named = LocoleClassifier().fit(X, [NAMES[labels].tolist() for labels in SETS])
    sets = [NAMES[labels].tolist() for labels in TEST_SETS]
    assert named.score(TEST, sets) == pytest.approx(accuracy_score(known, model.predict(TEST)))
    assert named.score(TEST, [[*own, "new"] for own in sets]) == 0
    with pytest.raises(LocoleError, match="several labels for each row: give y so, too"):
        model.score(TEST, np.zeros(len(TEST_SETS)))


def test_small_problems_answer_with_the_usual_number_of_labels():
    few = LocoleClassifier(regressor="elastic_net").fit(X[:300], Y[:300])
    wanted = max(1, round(Y[:300].sum() / 300))
    assert (few.predict(TEST).sum(axis=1) == wanted).all()


def test_texts_are_answered_by_sets():
    texts = ["it purrs and swims", "it barks", "it swims", "it purrs"] * 10
    sets = [["cat", "fish"], ["dog"], ["fish"], ["cat"]] * 10
    found = TextClassifier().fit(texts, sets).predict(texts[:3])
    assert found.shape == (3, 3)
    assert sp.issparse(found)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_texts_are_answered_by_labels_that_are_likely_enough(monkeypatch, kind):
    names = np.array([f"word{i}" for i in range(X.shape[1])])
    texts = [" ".join(names[row]) for row in np.split(X.indices, X.indptr[1:-1])]
    given = sp.csr_array(Y) if kind == "sparse" else Y
    model = TextClassifier().fit(texts, given)
    monkeypatch.setattr("locole.text.classifier._BLOCK_TEXTS", 7)
    for asked in ({}, {"min_proba": 0.5}, {"average": "micro"}):
        found = model.predict(texts[:30], **asked)
        assert sp.issparse(found) == (kind == "sparse")
        expected = model.classifier_.predict(model.features_.transform(texts[:30]), **asked)
        assert found.shape == (30, Y.shape[1])
        assert abs(found - expected).sum() == 0
    _, proba = model.predict_topk(
        texts[:30], k=model.classifier_.marginals_.n_candidates_, proba=True
    )
    likely = model.predict(texts[:30], min_proba=0.5)
    np.testing.assert_array_equal(likely.sum(axis=1), (proba >= 0.5).sum(axis=1))


def test_marginals_are_the_optimum_of_their_likelihood():
    rng = np.random.default_rng(0)
    scores = -np.sort(-rng.normal(size=(2000, 12)), axis=1)
    total = logsumexp(scores, axis=1, keepdims=True)
    truth = -1 + 1.5 * scores + 0.3 * total - 0.4 * np.log(np.arange(1, 13))
    right = rng.random(scores.shape) < expit(truth)
    made = Marginals.fit(scores, right, right.sum(axis=1), n_classes=12)
    np.testing.assert_allclose(made.proba(scores), expit(truth), atol=0.08)
    assert np.abs(made.proba(scores).sum() - right.sum()) < 0.02 * right.sum()
    sizes = made.chosen(scores).sum(axis=1)
    f1 = 2 * (made.chosen(scores) & right).sum(axis=1) / (sizes + right.sum(axis=1))
    for k in range(1, 12):
        fixed = 2 * right[:, :k].sum(axis=1) / (k + right.sum(axis=1))
        assert fixed.mean() <= f1.mean() + 1e-9


def test_probabilities_of_labels(model):
    labels, proba = model.predict_topk(TEST, k=40, proba=True)
    everything = model.predict_proba(TEST)
    assert_same_bits(np.take_along_axis(everything, labels, axis=1), proba)
    assert (np.diff(proba, axis=1) <= 1e-12).all()
    assert proba.min() >= 0
    assert proba.max() <= 1
    assert everything.sum() == pytest.approx(indicator(TEST_SETS, 40).sum(), rel=0.1)


def test_a_threshold_of_ones_own(model):
    found = model.predict(TEST, min_proba=0.3)
    inside = np.zeros_like(found)
    labels, proba = model.predict_topk(TEST, k=32, proba=True)
    np.put_along_axis(inside, labels, (proba >= 0.3).astype(int), axis=1)
    assert np.array_equal(found, inside)
    with pytest.raises(LocoleError, match="rows have several labels"):
        model.predict(TEST, max_error=0.1)
    few = LocoleClassifier(regressor="elastic_net").fit(X[:30], Y[:30])
    with pytest.raises(LocoleError, match="no validation rows"):
        few.predict_proba(TEST)


def best_threshold(f1):
    """The first of the thresholds tried that has the largest value."""
    tried = np.linspace(0.01, 0.9, 90)
    return tried[int(np.argmax([f1(threshold) for threshold in tried]))]


def test_thresholds_for_each_average_of_the_f1():
    """By brute force, with a mean curve for labels that have few rows."""
    rng = np.random.default_rng(4)
    p = -np.sort(-rng.random((300, 6)), axis=1)
    scores, codes = np.log(p / (1 - p)), np.argsort(rng.random((300, 9)), axis=1)[:, :6]
    right = rng.random((300, 6)) < p ** (1 + codes % 3)
    weight = rng.integers(1, 3, 300)
    missed = rng.random(300) < 0.2  # a label that is not among the best
    counts = np.bincount(codes[right], np.broadcast_to(weight[:, None], p.shape)[right], 10)
    counts[8] += weight[missed].sum()
    made = Marginals.fit(
        scores, right, right.sum(axis=1) + missed, n_classes=10, weight=weight,
        codes=codes, label_counts=counts,
    )  # fmt: skip
    proba, each = made.proba(scores), np.broadcast_to(weight[:, None], p.shape)

    def f1(threshold, label=None):
        inside = (codes == label) if label is not None else np.ones(p.shape, dtype=bool)
        taken = (proba >= threshold) & inside
        wanted = counts[label] if label is not None else counts.sum()
        return 2 * each[taken & right].sum() / (each[taken].sum() + wanted)

    def macro(threshold):
        return np.mean([f1(threshold, label) for label in range(9)])

    assert made.thresholds_["micro"] == best_threshold(f1)
    assert counts[9] == 0
    assert made.thresholds_["macro"][9] == best_threshold(macro)
    for label in (0, 5):
        n = counts[label]
        expected = best_threshold(lambda t, i=label, n=n: (n * f1(t, i) + 10 * macro(t)) / (n + 10))
        assert made.thresholds_["macro"][label] == expected


def test_answers_for_each_average_of_the_f1(model, tmp_path):
    truth = indicator(TEST_SETS, 40)
    found = {name: model.predict(TEST, average=name) for name in ("samples", "micro", "macro")}
    assert_same_bits(found["samples"], model.predict(TEST))
    for name, answers in found.items():
        assert f1_score(truth, answers, average=name) > 0.7  # a quarter of the rows have no label
    model.save(tmp_path / "model")
    assert_same_bits(load(tmp_path / "model").predict(TEST, average="macro"), found["macro"])
    with pytest.raises(LocoleError, match="'samples', 'micro' or 'macro'"):
        model.predict(TEST, average="mean")
    with pytest.raises(LocoleError, match="min_proba replaces them: give one of the two"):
        model.predict(TEST, average="macro", min_proba=0.5)
    with pytest.raises(LocoleError, match="reject_label is for one label for each row"):
        model.predict(TEST, min_proba=0.5, reject_label="?")


def test_training_rows_of_labels_are_counted():
    model = LocoleClassifier("kerdock", regressor="elastic_net")
    model.fit(X[:300], [NAMES[some[some < 30]].tolist() for some in SETS[:300]])
    model.partial_fit(X[300:400], [NAMES[some].tolist() for some in SETS[300:400]])
    assert model.marginals_.n_rows_ == 400
    both = [some[some < 30] for some in SETS[:300]] + SETS[300:400]
    expected = np.bincount(np.concatenate(both), minlength=40)
    codes = np.searchsorted(NAMES, model.classes_)
    assert np.array_equal(model.label_rows_, expected[codes])
    model.forget(X[300:400], [NAMES[some].tolist() for some in SETS[300:400]])
    assert model.marginals_.n_rows_ == 300


@pytest.mark.filterwarnings("error")
def test_thresholds_of_validation_rows_without_labels():
    codes, scores = np.tile(np.arange(4), (30, 1)), np.zeros((30, 4))
    right, counts = np.zeros((30, 4), dtype=bool), np.zeros(30, dtype=np.int64)
    found = Marginals.fit(scores, right, counts, n_classes=4, codes=codes, label_counts=np.zeros(4))
    assert not found.chosen(scores, codes, average="micro")[:, 1:].any()


def test_thresholds_of_labels_that_change():
    made = Marginals(
        np.zeros(4), threshold=0.3, n_answers=2, n_candidates=4,
        others={"macro": np.array([0.1, 0.2, 0.3, 0.4])}, n_rows=10,
    )  # fmt: skip
    change = Relabelling.of(4, merged={3: 0}, retired=[1])
    fewer = made.relabelled(change)
    assert fewer.thresholds_["macro"].tolist() == [0.1, 0.3]
    assert (fewer.n_candidates_, fewer.n_rows_) == (2, 10)
    assert fewer.fits_labels(2)
    more = made.grown(6, 5)
    assert more.thresholds_["macro"].tolist() == [0.1, 0.2, 0.3, 0.4, 0.25, 0.25]
    assert more.n_rows_ == 15
    assert not made.fits_labels(6)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_the_order_of_labels_changes_nothing(seed):
    """Nor does a label that is named twice."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(30, 60))
    lists = [rng.permutation(np.append(some, some[:1])).tolist() for some in SETS[:n_rows]]
    sets = [some.tolist() for some in SETS[:n_rows]]
    one, other = (
        LocoleClassifier("kerdock", dim=64, regressor="elastic_net").fit(X[:n_rows], form)
        for form in (sets, lists)
    )
    assert_same_bits(one.classes_, other.classes_)
    assert_same_bits(one.predict_topk(TEST[:50], k=3), other.predict_topk(TEST[:50], k=3))
    assert_same_bits(one.predict(TEST[:50]), other.predict(TEST[:50]))


def test_damaged_marginals_are_refused():
    state = Marginals.guess(2.0, 40)._state()
    for name, value in [("coef", np.zeros(3)), ("threshold", 2.0), ("n_answers", 0),
                        ("n_candidates", True), ("coef", np.full(4, np.nan)), ("n_rows", -1),
                        ("micro", np.zeros(2)), ("macro", np.full(40, np.nan)),
                        ("other", 1)]:  # fmt: skip
        with pytest.raises(ModelFileError, match="several labels are invalid"):
            Marginals._from_state({**state, name: value})


def test_no_sketch_decides_about_sums_of_vectors():
    """A few outputs may tell labels apart, but not the labels of a sum."""
    many = Samples(sp.csr_array((30_000, 5)), np.zeros(30_000, np.int64), 2)
    scorer = VectorScorer(
        {"elastic_net": ElasticNetRegressor()}, OneHot(2, dim=2), others_speak=True
    )
    assert scorer.sketch(many) is not None
    assert scorer.sketch(many._replace(starts=np.arange(30_001))) is None
