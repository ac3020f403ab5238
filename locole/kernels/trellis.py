"""Best paths through a trellis by dynamic programming; `locole.baselines.trellis` says what one is."""

from __future__ import annotations

import numpy as np

from locole.kernels.jit import inline, kernel

__all__ = ["best_paths", "fill_path_gains"]


@inline
def _insert(scores, paths, size, score, path):
    """Put a path into a list sorted by falling score; return how many there are now."""
    if size == scores.size:
        if score <= scores[size - 1]:
            return size
    else:
        size += 1
    i = size - 1
    while i > 0 and score > scores[i - 1]:
        scores[i], paths[i] = scores[i - 1], paths[i - 1]
        i -= 1
    scores[i], paths[i] = score, path
    return size


@kernel
def best_paths(gains, width, digits, inner, sinks, offsets, best_scores, best):
    """Fill the heaviest paths of each row and the sums of their gains, heaviest first.

    gains : (rows, edges). State s of slice t has the edges ``inner[t] + s · (width of slice t+1)`` and
    on to the next slice, and ``sinks[t] + s`` to the sink if s < digits[t]; state s of slice 0 is
    reached by edge s. A state keeps its best ``k = best.shape[1]`` ways from the source: the best k of
    its predecessors' are enough. A way is the number that the states before spell in base ``width``;
    with it the path has the number offsets[t] + s·width^t + way. There must be k paths.
    """
    k, last = best.shape[1], digits.size - 1
    scores, ways = np.empty((2, width, k)), np.empty((2, width, k), dtype=np.int64)
    sizes = np.zeros((2, width), dtype=np.int64)
    for i in range(gains.shape[0]):
        gain, found, power = gains[i], 0, 1
        now = 0
        for s in range(width if last > 0 else digits[0]):
            scores[0, s, 0], ways[0, s, 0], sizes[0, s] = gain[s], 0, 1
        for t in range(digits.size):
            for s in range(digits[t]):
                out, base = gain[sinks[t] + s], offsets[t] + s * power
                for m in range(sizes[now, s]):
                    # The lists are sorted: after the first that does not fit, none will.
                    score = scores[now, s, m] + out
                    if found == k and score <= best_scores[i, k - 1]:
                        break
                    found = _insert(best_scores[i], best[i], found, score, base + ways[now, s, m])
            if t == last:
                break
            onward, power, then = width if t + 1 < last else digits[last], power * width, 1 - now
            for v in range(onward):
                size = 0
                for s in range(width):
                    step = gain[inner[t] + s * onward + v]
                    for m in range(sizes[now, s]):
                        score = scores[now, s, m] + step
                        if size == k and score <= scores[then, v, k - 1]:
                            break
                        size = _insert(
                            scores[then, v], ways[then, v], size, score,
                            ways[now, s, m] * width + s,
                        )  # fmt: skip
                sizes[then, v] = size
            now = then


@kernel
def fill_path_gains(gain, width, digits, inner, sinks, offsets, room, out):
    """Fill the sum of gains of every path of one row, in the order of the paths' numbers.

    room : (2 · width · width^last,), the sums of all ways to a slice and to the next.
    """
    last = digits.size - 1
    half = room.size // 2
    now, then = room[:half], room[half:]
    for s in range(width if last > 0 else digits[0]):
        now[s] = gain[s]
    power = 1
    for t in range(digits.size):
        # now[s · power + way] is the sum of a way to state s.
        for s in range(digits[t]):
            for m in range(power):
                out[offsets[t] + s * power + m] = now[s * power + m] + gain[sinks[t] + s]
        if t == last:
            break
        onward = width if t + 1 < last else digits[last]
        for v in range(onward):
            for s in range(width):
                step = gain[inner[t] + s * onward + v]
                for m in range(power):
                    then[(v * power + m) * width + s] = now[s * power + m] + step
        power *= width
        now, then = then, now
