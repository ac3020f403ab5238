"""The paper's figures: those that the specification quotes, and sums over whole tables."""

from __future__ import annotations

import pytest

from locole.experiments import paper


def best(data: str, family: str) -> tuple[int, float]:
    rows = {r.dim: a.mean for r, a in paper.TABLE2[data].items() if r.embedding == family}
    dim = max(rows, key=rows.__getitem__)
    return dim, rows[dim]


def test_best_dims():
    assert [best(data, "nelson") for data in paper.TABLE2] == [
        (509, 31.08), (509, 48.02), (2039, 22.30),
    ]  # fmt: skip
    assert best("lshtc1", "rademacher") == (512, 30.66)
    assert best("odp", "complex_gaussian") == (2048, 22.14)


@pytest.mark.parametrize(
    ("method", "figures"),
    [
        ("mlp_cross_entropy", (26.30, 46.71, 13.99)),
        ("mlp_squared_error", (28.03, 38.38, 18.64)),
        ("annexml", (29.06, 39.82, 21.61)),
        ("parabel", (22.24, 38.56, 17.09)),
        ("pd_sparse", (22.04, 39.76, None)),
        ("ppd_sparse", (22.60, 39.30, 13.66)),
        ("wltls", (16.52, 13.60, None)),
    ],
)
def test_other_systems(method, figures):
    found = tuple(table[paper.Row(method)].mean for table in paper.TABLE2.values())
    assert found == figures


def test_no_digit_is_misread():
    assert [len(table) for table in paper.TABLE2.values()] == [26, 26, 26]
    assert {len(table) for table in paper.TABLE3.values()} == {4}
    found = []
    for table in paper.TABLE2.values():
        known = [figure for figure in table.values() if figure.mean is not None]
        found.append((len(known), sum(f.mean for f in known), sum(f.std for f in known)))
    # Counted and added up from the paper's own text.
    for sums, expected in zip(
        found, [(26, 697.10, 6.14), (26, 1131.31, 3.31), (24, 479.58, 1.33)], strict=True
    ):
        assert sums == pytest.approx(expected)


def test_times():
    single = paper.TABLE3["lshtc1"]["single", paper.Row("elastic_net", "rademacher", 360)]
    assert single == paper.Cost(23.42, 55)
    ray = paper.TABLE3["odp"]["distributed", paper.Row("elastic_net", "rademacher", 360)]
    assert ray == paper.Cost(15.06, 350)


def test_other_splits_and_parts_are_other_data():
    assert paper.is_same_data("dmoz", 345_068)
    assert not paper.is_same_data("lshtc1", 126_871)
    assert not paper.is_same_data("lshtc1", 8_000)
    assert not paper.is_same_data("lshtc1", None)
    assert not paper.is_same_data("cve_product", 83_805)
