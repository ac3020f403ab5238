"""A running list of the best columns of each row."""

from __future__ import annotations

from locole.kernels.jit import inline, kernel

__all__ = ["insert", "push_rows"]


@inline
def insert(best_scores, best_codes, score, column, labels):
    """Put one column into a row's list, which is sorted by falling score; equals keep their order."""
    code = labels[column] if labels.size else column
    if code < 0:
        return
    i = best_scores.size - 1
    if score <= best_scores[i]:
        return
    while i > 0 and score > best_scores[i - 1]:
        best_scores[i] = best_scores[i - 1]
        best_codes[i] = best_codes[i - 1]
        i -= 1
    best_scores[i] = score
    best_codes[i] = code


@inline
def _push_row(scores, first, labels, best_scores, best_codes):
    # Runs whose maximum does not exceed the list's last entry are skipped whole: after the first few
    # blocks that is nearly all of them. Four maxima, because each waits for the one before.
    run = 64
    for start in range(0, scores.size, run):
        part = scores[start : start + run]
        a = b = c = d = part[0]
        fours = part.size - part.size % 4
        for j in range(0, fours, 4):
            a, b = max(a, part[j]), max(b, part[j + 1])
            c, d = max(c, part[j + 2]), max(d, part[j + 3])
        for j in range(fours, part.size):
            a = max(a, part[j])
        if max(max(a, b), max(c, d)) > best_scores[-1]:
            for j in range(part.size):
                if part[j] > best_scores[-1]:
                    insert(best_scores, best_codes, part[j], first + start + j, labels)


@kernel
def push_rows(scores, first, labels, best_scores, best_codes):
    """Merge ``scores`` (rows, columns first, first+1, …) into the rows' lists."""
    for i in range(scores.shape[0]):
        _push_row(scores[i], first, labels, best_scores[i], best_codes[i])
