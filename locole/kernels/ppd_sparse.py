"""One label against the rest by squared hinge loss: dual coordinate ascent on a growing set of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from locole.kernels.jit import inline, kernel
from locole.kernels.shrink import shrunk

__all__ = ["N_BINS", "LabelWeights", "LabelWork", "SquaredHinge", "solve_label"]

# What a row is to the label being solved.
_IDLE, _ACTIVE, _POSITIVE = 0, 1, 2
# At least so many rows join at a time.
_FEWEST = 64
#: Bins by which they are chosen.
N_BINS = 256


class SquaredHinge(NamedTuple):
    """The loss of all labels, and when to stop."""

    l1: Any
    cost: Any
    tol: Any
    max_rounds: Any
    max_inner: Any


class LabelWork(NamedTuple):
    """Room for one label; all but the last are zero before and after."""

    v: Any
    """(features,): Σ_i sign·α_i·x_i, of which the weights are the soft threshold."""
    alpha: Any
    roles: Any
    scores: Any
    touched: Any
    active: Any
    seen: Any
    known: Any
    bins: Any


class LabelWeights(NamedTuple):
    """What was found: features and their weights, the intercept, and gap, active rows, rounds."""

    features: Any
    weights: Any
    bias: Any
    report: Any


@inline
def _pass(X, sizes, loss, work, bias, n, m):
    """Visit the n active rows once; returns the largest projected gradient and the new m."""
    indptr, indices, data = X
    v, alpha, roles, _, _, active, seen, known, _ = work
    l1, cost, worst = loss.l1, loss.cost, 0.0
    for a in range(n):
        i = active[a]
        sign = 1.0 if roles[i] == _POSITIVE else -1.0
        begin, end = indptr[i], indptr[i + 1]
        score = bias[0]
        for p in range(begin, end):
            score += np.float64(data[p]) * shrunk(v[indices[p]], l1)
        slope = 1.0 - sign * score - alpha[i] / (2 * cost)
        new = max(alpha[i] + slope / (sizes[i] + 1.0 + 1 / (2 * cost)), 0.0)
        step = sign * (new - alpha[i])
        if step != 0:
            worst = max(worst, abs(slope))
            alpha[i] = new
            bias[0] += step
            for p in range(begin, end):
                f = indices[p]
                v[f] += step * data[p]
                if not known[f]:
                    known[f] = True
                    seen[m] = f
                    m += 1
    return worst, m


@inline
def _fill_scores(by_feature, l1, work, m):
    """Scores of the rows that have a feature with a weight; returns how many these are."""
    t_indptr, t_indices, t_data = by_feature
    v, _, _, scores, touched, _, seen, _, _ = work
    n = 0
    for j in range(m):
        w = shrunk(v[seen[j]], l1)
        if w != 0:
            for p in range(t_indptr[seen[j]], t_indptr[seen[j] + 1]):
                i = t_indices[p]
                if scores[i] == 0:
                    touched[n] = i
                    n += 1
                scores[i] += w * t_data[p]
                if scores[i] == 0:
                    scores[i] = 1e-30  # once in the list, never again
    return n


@inline
def _bin(above, scale):
    """Bin of a score that is so much above the level, whatever number that is."""
    place = above * scale
    if place >= N_BINS - 1:
        return N_BINS - 1
    return int(place) if place > 0 else 0


@inline
def _join(work, n_touched, level, limit, n):
    """Let the idle rows whose scores exceed ``level`` most join, up to ``limit``; returns the new count.

    They are chosen by counting, not by sorting: whole bins of scores from the top, then rows of the
    next bin as they come.
    """
    _, _, roles, scores, touched, active, _, _, bins = work
    top = level
    for t in range(n_touched):
        if roles[touched[t]] == _IDLE:
            top = max(top, scores[touched[t]])
    if top <= level:
        return n
    scale = N_BINS / (top - level)
    bins[:] = 0
    for t in range(n_touched):
        i = touched[t]
        if roles[i] == _IDLE and scores[i] > level:
            bins[_bin(scores[i] - level, scale)] += 1
    cut, left = N_BINS - 1, limit - bins[N_BINS - 1]
    while cut > 0 and left > 0:
        cut -= 1
        left -= bins[cut]
    # Of the last bin only so many: left is negative by what is too much.
    left += bins[cut]
    for t in range(n_touched):
        i = touched[t]
        if roles[i] == _IDLE and scores[i] > level:
            b = _bin(scores[i] - level, scale)
            if b > cut or (b == cut and left > 0):
                left -= b == cut
                roles[i] = _ACTIVE
                active[n] = i
                n += 1
    return n


@inline
def _join_untouched(work, start, limit, n):
    """Let idle rows without a feature of weight join, the next ones from ``start`` on."""
    _, _, roles, scores, _, active, _, _, _ = work
    added, size = 0, roles.size
    for t in range(size):
        if added >= limit:
            break
        i = (start + t) % size
        if roles[i] == _IDLE and scores[i] == 0:
            roles[i] = _ACTIVE
            active[n] = i
            n += 1
            added += 1
    return n


@inline
def _drop(work, n):
    """Send negatives without a dual variable away; returns how many rows stay."""
    _, alpha, roles, _, _, active, _, _, _ = work
    kept = 0
    for a in range(n):
        i = active[a]
        if roles[i] == _POSITIVE or alpha[i] > 0:
            active[kept] = i
            kept += 1
        else:
            roles[i] = _IDLE
    return kept


@inline
def _gap(work, n_touched, n, bias, cost):
    """Fenchel–Young gaps of all rows, and the largest violation of an idle one."""
    _, alpha, roles, scores, touched, active, _, _, _ = work
    total, worst, idle = 0.0, 0.0, roles.size - n
    for a in range(n):
        i = active[a]
        sign = 1.0 if roles[i] == _POSITIVE else -1.0
        margin = 1.0 - sign * (scores[i] + bias)
        total += cost * max(margin, 0.0) ** 2 - alpha[i] * (margin - alpha[i] / (4 * cost))
    for t in range(n_touched):
        i = touched[t]
        if roles[i] == _IDLE:
            excess = max(1.0 + scores[i] + bias, 0.0)
            total += cost * excess**2
            worst = max(worst, excess)
            idle -= 1
    excess = max(1.0 + bias, 0.0)
    if idle > 0:
        worst = max(worst, excess)
    return total + idle * cost * excess**2, worst


@kernel
def solve_label(X, by_feature, sizes, loss, positives, start, work, found):
    """Weights of one label; returns how many there are, in ``found``.

    The active rows are at first the positives and as many others from row ``start`` on. Rounds of
    ``max_inner`` passes at most over them alternate with a search of all rows, by feature, for negatives
    with a score above −1 + tol. X : Csr; by_feature : Csr of its transpose; sizes : ‖x‖².
    """
    v, alpha, roles, scores, touched, active, seen, known, _ = work
    features, weights, bias, report = found
    l1, cost, tol, max_rounds, max_inner = loss
    n, m, worst = 0, 0, 0.0
    for i in positives:
        roles[i] = _POSITIVE
        active[n] = i
        n += 1
    bias[0] = 0
    n = _join_untouched(work, start, positives.size, n)
    for turn in range(max_rounds):
        for _ in range(max_inner):
            worst, m = _pass(X, sizes, loss, work, bias, n, m)
            if worst <= tol / 2:
                break
        n = _drop(work, n)
        n_touched = _fill_scores(by_feature, l1, work, m)
        gap, excess = _gap(work, n_touched, n, bias[0], cost)
        report[0], report[1], report[2] = gap, n, turn + 1
        done = turn + 1 == max_rounds or max(excess, worst) <= tol
        if not done:
            limit = max(n, _FEWEST)
            level = tol - 1.0 - bias[0]
            before = n
            n = _join(work, n_touched, level, limit, n)
            if level < 0:
                n = _join_untouched(work, start, limit - (n - before), n)
        for t in range(n_touched):
            scores[touched[t]] = 0
        if done:
            break
    count = 0
    for j in range(m):
        w = shrunk(v[seen[j]], l1)
        if w != 0:
            features[count] = seen[j]
            weights[count] = w
            count += 1
        v[seen[j]] = 0
        known[seen[j]] = False
    for a in range(n):
        alpha[active[a]] = 0
        roles[active[a]] = _IDLE
    return count
