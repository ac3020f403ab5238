"""The metrics against scikit-learn, and at the size that they are made for."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from locole.exceptions import LocoleError
from locole.metrics import accuracy, per_label_report, precision_recall, top_k_accuracy

NAMES = np.array(["ash", "birch", "cedar", "dogwood", "elm", "fir", "gum"])


@st.composite
def predictions(draw):
    """Return labels, predictions, weights: integers or strings, with labels of only one side."""
    rows = draw(st.integers(1, 40))
    codes = st.lists(st.integers(0, 6), min_size=rows, max_size=rows)
    weight = draw(st.lists(st.floats(0.1, 5.0), min_size=rows, max_size=rows))
    true, pred = np.array(draw(codes)), np.array(draw(codes))
    if draw(st.booleans()):
        true, pred = NAMES[true], NAMES[pred]
    return true, pred, np.array(weight)


@given(predictions(), st.sampled_from(["macro", "micro"]), st.booleans())
def test_averages_match_sklearn(data, average, weighted):
    true, pred, weight = data
    weight = weight if weighted else None
    expected = precision_recall_fscore_support(
        true, pred, average=average, zero_division=0, sample_weight=weight
    )[:2]
    assert precision_recall(true, pred, average=average, sample_weight=weight) == pytest.approx(
        expected
    )
    assert accuracy(true, pred, sample_weight=weight) == pytest.approx(
        accuracy_score(true, pred, sample_weight=weight)
    )


@given(predictions(), st.permutations(range(7)), st.integers(1, 7), st.booleans())
def test_chosen_labels_match_sklearn(data, order, size, weighted):
    true, pred, weight = data
    weight = weight if weighted else None
    labels = np.array(order[:size])
    labels = NAMES[labels] if true.dtype.kind == "U" else labels
    options = {"labels": labels, "zero_division": 0, "sample_weight": weight}
    for average in ("macro", "micro"):
        expected = precision_recall_fscore_support(true, pred, average=average, **options)[:2]
        assert precision_recall(
            true, pred, average=average, labels=labels, sample_weight=weight
        ) == pytest.approx(expected)
    precision, recall, f1, support = precision_recall_fscore_support(true, pred, **options)
    report = per_label_report(true, pred, labels=labels, sample_weight=weight)
    assert report["label"].tolist() == labels.tolist()
    assert report["precision"] == pytest.approx(precision)
    assert report["recall"] == pytest.approx(recall)
    assert report["f1"] == pytest.approx(f1)
    assert report["support"] == pytest.approx(support)


@given(predictions())
def test_counts_of_the_report_add_up(data):
    true, pred, _ = data
    report = per_label_report(true, pred)
    assert report["label"].tolist() == sorted({*true.tolist(), *pred.tolist()})
    assert report["support"].sum() == report["predicted"].sum() == len(true)
    assert report["correct"].sum() / len(true) == pytest.approx(accuracy(true, pred))


def test_top_k_counts_a_label_at_any_place():
    topk = [["a", "b"], ["b", "a"], ["c", "b"]]
    assert top_k_accuracy(["a", "a", "a"], topk) == pytest.approx(2 / 3)
    assert top_k_accuracy(["a", "a", "a"], topk, sample_weight=[0, 0, 1]) == 0.0
    true, pred = np.array([1, 2, 3]), np.array([1, 3, 3])
    assert top_k_accuracy(true, pred[:, None]) == accuracy(true, pred)


def test_undefined_values_are_zero():
    report = per_label_report([1, 1], [2, 2], labels=[1, 2, 3])
    assert report["precision"].tolist() == report["recall"].tolist() == [0.0, 0.0, 0.0]
    assert report["f1"].tolist() == [0.0, 0.0, 0.0]
    assert report["support"].tolist() == [2, 0, 0]
    assert report["predicted"].tolist() == [0, 2, 0]
    assert precision_recall([1], [1], labels=[3], average="micro") == (0.0, 0.0)


def test_object_labels_work():
    true = np.array(["a", "b"], dtype=object)
    assert precision_recall(true, np.array(["a", "a"])) == (0.25, 0.5)


def as_strings(codes):
    return codes.astype("U6")


@pytest.mark.parametrize("convert", [np.asarray, as_strings])
def test_a_hundred_thousand_labels_fit_in_little_memory(convert):
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.arange(100_000), rng.integers(100_000, size=20_000)])
    true, pred = convert(codes), convert(np.where(rng.random(codes.size) < 0.3, codes, codes[::-1]))
    tracemalloc.start()
    try:
        report = per_label_report(true, pred)
        macro = precision_recall(true, pred)
        hits = top_k_accuracy(true, np.stack([pred, true], axis=1))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(report["label"]) == 100_000
    assert macro == pytest.approx((report["precision"].mean(), report["recall"].mean()))
    assert hits == 1.0
    assert peak_bytes < 64 * 2**20


@pytest.mark.parametrize("function", [accuracy, precision_recall, per_label_report])
@pytest.mark.parametrize(
    ("true", "pred", "message"),
    [
        ([1, 2], [1], "y_true has 2 rows, y_pred has 1"),
        ([], [], "y_true is empty"),
        ([[1, 2]], [1], "y_true must have 1 dimension"),
        ([1, 2], ["1", "2"], "use one type"),
        ([1.0, np.nan], [1.0, 2.0], "y_true holds NaN"),
    ],
)
def test_bad_labels_are_refused(function, true, pred, message):
    with pytest.raises(LocoleError, match=message):
        function(true, pred)


@pytest.mark.parametrize(
    ("weight", "message"),
    [([1.0], "shape"), ([-1.0, 1.0], "negative"), ([0, 0], "not all 0"), ([np.nan, 1], "finite")],
)
def test_bad_weights_are_refused(weight, message):
    for function in (accuracy, precision_recall, per_label_report):
        with pytest.raises(LocoleError, match=message):
            function([1, 2], [1, 2], sample_weight=weight)


def test_other_bad_input_is_refused():
    with pytest.raises(LocoleError, match="topk_labels must have 2"):
        top_k_accuracy([1, 2], [1, 2])
    with pytest.raises(LocoleError, match="topk_labels has 1"):
        top_k_accuracy([1, 2], [[1, 2]])
    with pytest.raises(LocoleError, match="'weighted'"):
        precision_recall([1], [1], average="weighted")
    with pytest.raises(LocoleError, match="twice"):
        precision_recall([1], [1], labels=[1, 1])
    with pytest.raises(LocoleError, match="labels is empty"):
        precision_recall([1], [1], labels=[])
    with pytest.raises(LocoleError, match="use one type"):
        precision_recall([1], [1], labels=["1"])
    mixed = np.array([1, "a"], dtype=object)
    with pytest.raises(LocoleError, match="cannot be compared"):
        precision_recall(mixed, mixed)
