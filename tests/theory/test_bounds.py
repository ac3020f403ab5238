"""The bounds against brute force, tight examples and simulated problems."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locole.exceptions import LocoleError
from locole.theory import (
    coherence_lower_bound,
    excess_risk_bound,
    levenshtein_bound,
    lossless_margin,
    orthoplex_bound,
    posterior_error_bar,
    required_coherence,
    welch_bound,
)

DOC = Path(__file__).parents[2] / "docs" / "research" / "theory.md"
unit = st.floats(0.0, 1.0)
coherences = st.floats(0.0, 0.95)


def off_diagonal(rows: np.ndarray) -> np.ndarray:
    gram = rows @ rows.conj().T
    return gram[~np.eye(len(rows), dtype=bool)]


def real_mubs_in_four_dimensions() -> np.ndarray:
    x = np.array([[i >> 1, i & 1] for i in range(4)])
    hadamard = (-1.0) ** (x @ x.T) / 2
    bent = (-1.0) ** (x[:, 0] * x[:, 1])
    return np.concatenate([np.eye(4), hadamard, hadamard * bent])


def complex_mubs(prime: int) -> np.ndarray:
    a, b, u = np.ogrid[:prime, :prime, :prime]
    chirps = np.exp(2j * np.pi / prime * (a * u**2 + b * u)) / np.sqrt(prime)
    return np.concatenate([np.eye(prime), chirps.reshape(-1, prime)])


# --- lower bounds on the coherence ---


def test_welch_is_attained_by_three_vectors_in_the_plane():
    angles = 2 * np.pi * np.arange(3) / 3
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert np.abs(off_diagonal(rows)).max() == pytest.approx(welch_bound(3, 2))


def test_real_unbiased_bases_attain_levenshtein():
    rows = real_mubs_in_four_dimensions()
    assert rows.shape == (4 * (4 + 2) // 2, 4)
    assert np.abs(off_diagonal(rows)).max() == pytest.approx(0.5)
    assert levenshtein_bound(12, 4) == pytest.approx(0.5)
    assert coherence_lower_bound(12, 4) == pytest.approx(0.5)


@pytest.mark.parametrize("prime", [3, 5, 7])
def test_complex_unbiased_bases_attain_levenshtein(prime):
    rows = complex_mubs(prime)
    assert len(rows) == prime * (prime + 1)
    measured = np.abs(off_diagonal(rows)).max()
    assert measured == pytest.approx(levenshtein_bound(len(rows), prime, field="complex"))
    assert measured == pytest.approx(coherence_lower_bound(len(rows), prime, field="complex"))


@pytest.mark.parametrize("dim", [1, 2, 3, 16, 64, 1024])
def test_levenshtein_continues_welch_and_crosses_the_orthoplex(dim):
    for field, gerzon, full in [
        ("real", dim * (dim + 1) // 2, dim * (dim + 2) / 2),
        ("complex", dim**2, dim * (dim + 1)),
    ]:
        assert levenshtein_bound(gerzon, dim, field=field) == 0
        assert orthoplex_bound(gerzon, dim, field=field) == 0
        assert levenshtein_bound(gerzon + 1, dim, field=field) >= welch_bound(gerzon + 1, dim)
        assert orthoplex_bound(gerzon + 1, dim, field=field) == 1 / np.sqrt(dim)
        if full == int(full):
            assert levenshtein_bound(int(full), dim, field=field) == pytest.approx(1 / np.sqrt(dim))


@given(st.integers(1, 60), st.integers(1, 6), st.booleans(), st.integers(0, 2**32 - 1))
def test_no_vectors_beat_the_lower_bound(n_classes, dim, is_complex, seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n_classes, dim))
    if is_complex:
        rows = rows + 1j * rng.standard_normal((n_classes, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    measured = np.abs(off_diagonal(rows)).max(initial=0.0)
    field = "complex" if is_complex else "real"
    assert measured >= coherence_lower_bound(n_classes, dim, field=field) - 1e-9


def test_few_labels_need_no_coherence():
    assert welch_bound(1, 1) == welch_bound(5, 5) == welch_bound(3, 10) == 0.0
    assert coherence_lower_bound(np.int64(4), np.int64(8), field="complex") == 0.0


@pytest.mark.parametrize(("n_classes", "dim"), [(0, 3), (3, 0), (-1, 2)])
def test_sizes_must_be_positive(n_classes, dim):
    with pytest.raises(LocoleError, match="at least 1"):
        welch_bound(n_classes, dim)


def test_unknown_field_is_named():
    with pytest.raises(LocoleError, match="'quaternion'"):
        coherence_lower_bound(10, 2, field="quaternion")


# --- margins ---


@given(coherences)
def test_a_coherence_is_a_symmetric_range(coherence):
    expected = 2 * coherence / (1 + coherence)
    assert lossless_margin(coherence) == pytest.approx(expected)
    assert lossless_margin(low=-coherence, high=coherence) == pytest.approx(expected)
    assert required_coherence(lossless_margin(coherence)) == pytest.approx(coherence)


def test_the_lossless_margin_cannot_be_smaller():
    # Inner products ±1/3 and η = (1/2, 1/2, 0): d = 1/2 = 2λ/(1+λ), and all three scores tie.
    gram = np.array([[3, -1, 1], [-1, 3, 1], [1, 1, 3]]) / 3
    assert np.linalg.eigvalsh(gram).min() > -1e-12
    assert gram @ [0.5, 0.5, 0.0] == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert lossless_margin(1 / 3) == pytest.approx(0.5)


# --- the risk bound ---


def objective(r, *, margins, a, b, excess, numerator):
    p = (np.asarray(margins)[None, :] < r[:, None]).mean(axis=1)
    return (
        (b - a) / (1 - a) * p
        + np.sqrt(numerator * p * excess) / (1 - a)
        + numerator * excess / ((1 - a) * r - (b - a)) ** 2
    )


@given(
    st.lists(unit, min_size=1, max_size=12),
    st.tuples(st.floats(-0.9, 0.9), st.floats(-0.9, 0.9)).map(sorted),
    st.floats(0.0, 0.2),
)
def test_infimum_matches_a_fine_grid(margins, low_high, excess):
    a, b = low_high
    bound = excess_risk_bound(excess, low=a, high=b, margins=margins)
    grid = np.concatenate([np.linspace(bound.threshold, 1, 3001), margins, [1e9]])
    grid = grid[grid > bound.threshold + 1e-6]
    brute = objective(grid, margins=margins, a=a, b=b, excess=excess, numerator=4 - 4 * b).min()
    assert bound.value <= min(1, brute) + 1e-6
    terms = bound.irreducible + bound.mixed + bound.fast
    assert bound.value == min(1.0, terms)
    assert bound.vacuous == (terms >= 1)
    if bound.r > bound.threshold + 1e-6:
        chosen = np.array([bound.r])
        at_r = objective(chosen, margins=margins, a=a, b=b, excess=excess, numerator=4 - 4 * b)
        assert terms == pytest.approx(at_r[0], rel=1e-6)
        assert brute == pytest.approx(terms, rel=1e-6)


@given(st.floats(0.0, 0.1), coherences, st.lists(unit, min_size=1, max_size=8))
def test_papers_constant_is_never_the_smaller(excess, coherence, margins):
    tight = excess_risk_bound(excess, coherence, margins=margins)
    paper = excess_risk_bound(excess, coherence, margins=margins, constant="paper")
    assert tight.value <= paper.value
    assert (tight.constant, paper.constant) == ("tight", "paper")


def test_closed_forms():
    lam, c, excess = 0.1, 0.7, 1e-4
    for constant, k in [("tight", 4 - 4 * lam), ("paper", 4 - 2 * lam)]:
        bound = excess_risk_bound(excess, lam, massart=c, constant=constant)
        assert bound.value == pytest.approx(k / ((1 + lam) * c - 2 * lam) ** 2 * excess)
        assert (bound.r, bound.irreducible, bound.mixed) == (c, 0.0, 0.0)
        deterministic = excess_risk_bound(excess, lam, massart=1.0, constant=constant)
        assert deterministic.value == pytest.approx(k / (1 - lam) ** 2 * excess)
        worst = excess_risk_bound(excess, lam, constant=constant)
        slow = 2 * lam / (1 + lam) + np.sqrt(k * excess) / (1 + lam)
        assert worst.value == pytest.approx(slow)
        assert (worst.r, worst.fast) == (np.inf, 0.0)


def test_no_excess_leaves_the_labels_below_the_threshold():
    bound = excess_risk_bound(0.0, 0.25, margins=[0.1, 0.2, 0.9, 1.0])
    assert bound.value == pytest.approx(0.4 * 0.5)
    assert bound.r == 0.9


def test_bound_is_clipped_and_says_so():
    bound = excess_risk_bound(100.0, 0.5)
    assert bound.value == 1.0
    assert bound.vacuous
    assert bound.irreducible + bound.mixed > 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        bound.value = 0.0


@given(st.floats(-0.9, 0.9), st.floats(0.0, 1.0))
def test_no_smaller_constant_is_true(high, share):
    # Certain labels, all of the second class, and f at the midpoint: the tie goes to the first.
    rows = np.array([[1.0, 0.0], [high, np.sqrt(1 - high**2)]])
    squared = 0.5 * np.sum((rows.mean(axis=0) - rows[1]) ** 2)
    low = high - share * (1 + high)
    bound = excess_risk_bound(squared, low=low, high=high, massart=1.0)
    assert bound.irreducible + bound.mixed + bound.fast == pytest.approx(1.0)
    if high >= 0:
        assert excess_risk_bound(squared, high, massart=1.0).value == pytest.approx(1.0)


def test_a_margin_right_above_the_threshold_does_no_harm():
    lam = 0.1
    just_above = np.nextafter(lossless_margin(lam), 1)
    bound = excess_risk_bound(1e-3, lam, margins=[just_above, 0.9])
    assert bound.r in (0.9, np.inf)
    assert excess_risk_bound(1e-3, 0.0, margins=[5e-324, 0.9]).r == 0.9


def simulate(seed, *, n_classes, dim, is_complex, spread):
    """Finitely many x of equal weight, some outputs pushed just over the nearest wrong boundary."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n_classes, dim * (1 + is_complex)))
    rows += rng.uniform(0, 1.5) * rng.standard_normal(rows.shape[1])  # one-sided ranges too
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    eta = rng.dirichlet(np.full(n_classes, spread), size=30)
    ideal = eta @ rows
    wrong = rng.integers(n_classes, size=30)
    towards = rows[wrong] - rows[eta.argmax(axis=1)]
    norm = np.linalg.norm(towards, axis=1, keepdims=True)
    towards = np.divide(towards, norm, out=np.zeros_like(towards), where=norm > 0)
    needed = np.maximum(0, -(ideal * towards).sum(axis=1)) * (1 + 1e-9) + 1e-12
    pushed = rng.random(30) < rng.random()
    noise = np.where(pushed, needed, 0.0)[:, None] * towards
    noise += rng.choice([0, 0, 0.01, 0.1]) * rng.standard_normal(noise.shape)
    return rows, eta, ideal, ideal + noise


def zero_one_excess(rows, eta, output):
    decoded = np.argmax(output @ rows.T, axis=1)
    return float((eta.max(axis=1) - eta[np.arange(len(eta)), decoded]).mean())


def margins_of(eta):
    top = eta.max(axis=1, keepdims=True)
    return (top - np.where(eta == top, 0.0, eta).max(axis=1, keepdims=True))[:, 0]


@settings(max_examples=400, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 12),
    st.integers(2, 24),
    st.booleans(),
    st.sampled_from([0.01, 0.05, 0.3, 2.0]),
)
def test_the_theorem_holds_on_simulated_problems(seed, n_classes, dim, is_complex, spread):
    rows, eta, ideal, output = simulate(
        seed, n_classes=n_classes, dim=dim, is_complex=is_complex, spread=spread
    )
    inner = off_diagonal(rows)
    low, high = float(inner.min()), float(inner.max())
    coherence = max(abs(low), abs(high))
    if coherence > 0.99:
        return
    excess01 = zero_one_excess(rows, eta, output)
    squared = float(0.5 * ((output - ideal) ** 2).sum(axis=1).mean())
    d = margins_of(eta)
    for where in (
        {"coherence": coherence},
        {"coherence": coherence, "constant": "paper"},
        {"low": low, "high": high},
    ):
        bounds = [
            excess_risk_bound(squared, **where),
            excess_risk_bound(squared, **where, margins=d),
        ]
        if d.min() > bounds[0].threshold:
            bounds.append(excess_risk_bound(squared, **where, massart=float(d.min())))
            assert zero_one_excess(rows, eta, ideal) == 0.0
        assert all(excess01 <= bound.value + 1e-8 for bound in bounds)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"excess_squared_risk": -1e-9, "coherence": 0.1}, "excess_squared_risk must be finite"),
        ({"excess_squared_risk": np.nan, "coherence": 0.1}, "excess_squared_risk must be finite"),
        ({"excess_squared_risk": np.inf, "coherence": 0.1}, "excess_squared_risk must be finite"),
        ({"coherence": 1.0}, r"coherence must lie in \[0, 1\)"),
        ({"coherence": -0.1}, r"coherence must lie in \[0, 1\)"),
        ({"coherence": np.nan}, r"coherence must lie in \[0, 1\)"),
        ({}, "either a coherence"),
        ({"low": 0.1}, "either a coherence"),
        ({"coherence": 0.1, "low": -0.1, "high": 0.1}, "either a coherence"),
        ({"low": 0.2, "high": 0.1}, "low <= high"),
        ({"low": np.nan, "high": 0.1}, "low <= high"),
        ({"low": -0.2, "high": 1.0}, "high < 1"),
        ({"coherence": 0.1, "margins": []}, "one or more numbers"),
        ({"coherence": 0.1, "margins": [0.5, 1.1]}, r"in \[0, 1\]"),
        ({"coherence": 0.1, "margins": [0.5, np.nan]}, "without NaN"),
        ({"coherence": 0.1, "margins": [0.5], "massart": 0.5}, "not both"),
        ({"coherence": 0.1, "massart": 1.5}, r"massart must be in \[0, 1\]"),
        ({"coherence": 0.5, "massart": 0.5}, r"c/\(2-c\) = 0.3333"),
        ({"low": -0.5, "high": 0.5, "massart": 0.5}, r"c/\(2-c\) = 0.3333"),
        ({"coherence": 0.1, "constant": "best"}, "'best'"),
        ({"low": -0.1, "high": 0.1, "constant": "paper"}, "needs a coherence"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(LocoleError, match=message):
        excess_risk_bound(**{"excess_squared_risk": 0.01, **arguments})


# --- posteriors ---


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(3, 24))
def test_error_bars_hold_the_posterior(seed, n_classes, dim):
    rows, eta, ideal, _ = simulate(seed, n_classes=n_classes, dim=dim, is_complex=False, spread=0.3)
    coherence = float(np.abs(off_diagonal(rows)).max())
    if coherence > 0.99:
        return
    low, high = posterior_error_bar(ideal @ rows.T, coherence)
    assert low.shape == high.shape == eta.shape
    assert ((low - 1e-9 <= eta) & (eta <= high + 1e-9)).all()


@given(
    st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(3, 60), st.sampled_from([0.3, 2.0])
)
def test_a_lead_above_the_lossless_margin_certifies_the_label(seed, n_classes, dim, spread):
    rows, eta, ideal, _ = simulate(
        seed, n_classes=n_classes, dim=dim, is_complex=False, spread=spread
    )
    coherence = float(np.abs(off_diagonal(rows)).max())
    if coherence > 0.99:
        return
    scores = np.sort(ideal @ rows.T, axis=1)
    sure = scores[:, -1] - scores[:, -2] > lossless_margin(coherence)
    decoded = np.argmax(ideal @ rows.T, axis=1)
    assert (decoded == eta.argmax(axis=1))[sure].all()


@given(st.floats(-3, 3), coherences)
def test_error_bars_solve_both_inequalities(score, coherence):
    low, high = (float(x) for x in posterior_error_bar(score, coherence))
    assert 0 <= low <= high <= 1
    eta = np.linspace(0, 1, 501)
    allowed = eta[np.abs(score - eta) <= coherence * (1 - eta) - 1e-9]
    if len(allowed):
        assert low <= allowed.min()
        assert allowed.max() <= high
    inside = eta[(eta >= low + 1e-9) & (eta <= high - 1e-9)]
    assert (np.abs(score - inside) <= coherence * (1 - inside) + 1e-9).all()


def test_error_bars_refuse_nan_and_bad_coherence():
    with pytest.raises(LocoleError, match="NaN"):
        posterior_error_bar([0.1, np.nan], 0.1)
    with pytest.raises(LocoleError, match="coherence"):
        posterior_error_bar([0.1], 1.0)
    with pytest.raises(LocoleError, match="margin"):
        required_coherence(1.5)


# --- the page for users ---


def test_snippets_of_the_theory_page_run():
    blocks = re.findall(r"```python\n(.*?)```", DOC.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(DOC), "exec"), {})
