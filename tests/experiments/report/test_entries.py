"""Records as the report reads them: whatever is in them, and each run once."""

from __future__ import annotations

import math

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from made import record

from locole.experiments.report.entries import entries, pool, printable
from locole.experiments.report.groups import by_set, clusters, groups, rank_correlation

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
names = st.sampled_from(sorted({*record("a", "b", "c"), "macro_f1", "points", "coherence"}))


@given(st.lists(st.dictionaries(names, anything), max_size=4))
def test_records_may_hold_anything(records):
    for entry in entries(records):
        assert entry.is_done or entry.status == "timeout" or entry.status.startswith("failed: ")
        assert all(math.isfinite(value) and value >= 0 for value in entry.values.values())
        for text in (entry.data, entry.method, entry.status, *entry.texts.values()):
            assert text.isprintable()
            text.encode()
    found = groups(entries(records))
    assert sum(len(group.runs) for group in found) == len(entries(records))


@given(st.text())
def test_texts_become_printable_and_stay_short(text):
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown) <= 300


def test_a_done_run_without_accuracy_has_failed():
    (entry,) = entries([record("table2", "d", "mach", accuracy=None)])
    assert entry.status == "failed: the record has no accuracy."
    for wrong in ("0.5", -0.1, 1.1, math.nan, True, [0.5]):
        assert not entries([record("table2", "d", "mach", accuracy=wrong)])[0].is_done


def test_an_unknown_status_is_a_failure_that_names_it():
    for status in (None, "", "ok", 3):
        (entry,) = entries([record("table2", "d", "mach", status=status)])
        assert entry.status.startswith("failed: the record has the unknown status")


def test_the_later_record_of_a_run_counts():
    first = record("table2", "d", "mach", status="timeout")
    (entry,) = entries([first, record("table2", "d", "mach", accuracy=0.25)])
    assert entry.values["accuracy"] == 0.25


def test_quick_runs_and_parts_of_data_are_sets_of_their_own():
    records = [record("table2", "d", "mach"), record("table2", "d", "mach", quick=True)]
    records.append(record("table2", "d", "mach", data_options='{"max_rows":10}'))
    sets = by_set(groups(entries(records)))
    assert list(sets) == ["d", "d, max_rows=10", "d, quick"]


def test_a_pool_takes_runs_once_and_prefers_those_with_figures():
    failed = record("figure1", "d", "mach", status="failed: x")
    both = [failed, record("table2", "d", "mach", accuracy=0.3)]
    (entry,) = pool(entries(both), "figure1", "table2")
    assert entry.values["accuracy"] == 0.3
    done = [record("figure1", "d", "mach", accuracy=0.1), both[1]]
    (entry,) = pool(entries(done), "figure1", "table2")
    assert entry.values["accuracy"] == 0.1


def test_means_and_spreads_by_hand():
    records = [record("table2", "d", "mach", seed=s, accuracy=a) for s, a in enumerate((0.1, 0.4))]
    records.append(record("table2", "d", "mach", seed=2, status="timeout"))
    (group,) = groups(entries(records))
    assert group.mean("accuracy") == pytest.approx(0.25)
    assert group.std("accuracy") == pytest.approx(0.3 / math.sqrt(2))
    assert group.trouble == "1 of 3 runs: time limit reached"
    assert group.mean("coherence") is None
    (alone,) = groups(entries(records[:1]))
    assert alone.std("accuracy") is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=4, max_size=20))
def test_rank_correlation_is_spearmans(pairs):
    x, y = zip(*pairs, strict=True)
    found = rank_correlation(x, y)
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert found is None
    else:
        assert found == pytest.approx(scipy.stats.spearmanr(x, y).statistic)


def test_three_points_are_too_few_for_a_correlation():
    assert rank_correlation([1, 2, 3], [1, 2, 3]) is None


def test_outputs_within_six_percent_are_equal():
    records = [
        record("equal_outputs", "d", "elastic_net", embedding="e", dim=n, outputs=n)
        for n in (254, 255, 256, 300, 512, 528)
    ]
    found = [[group.outputs for group in some] for some in clusters(groups(entries(records)))]
    assert found == [[254, 255, 256], [300], [512, 528]]
