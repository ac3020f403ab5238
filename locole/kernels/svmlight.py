"""Lines of ``label index:value …`` to arrays: one pass over bytes, numbers rounded correctly.

Every text ends with a newline, at which all loops stop: no other bound is needed. Helpers get addresses
instead of the text, because numba counts references whenever an array is handed on, which takes longer
than to parse a number.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from locole.kernels.jit import inline, kernel

__all__ = [
    "ASCENDING",
    "BAD_INDEX",
    "BAD_PAIR",
    "BAD_VALUE",
    "DONE",
    "ENTRIES",
    "HARD",
    "HIGH",
    "HUGE_VALUE",
    "LABELS",
    "LOW",
    "MANY_LABELS",
    "NO_LABEL",
    "PLACE",
    "ROWS",
    "count_marks",
    "fill_integers",
    "fill_rows",
]

# What fill_rows returns.
DONE, BAD_PAIR, BAD_INDEX, BAD_VALUE, HUGE_VALUE, NO_LABEL, MANY_LABELS = range(7)
# What it leaves in ``found``: counts, the place of an error, whether all rows have rising indices,
# the smallest and the largest index.
ROWS, ENTRIES, LABELS, HARD, PLACE, ASCENDING, LOW, HIGH = range(8)

_TAB, _NEWLINE, _RETURN, _SPACE, _HASH = 9, 10, 13, 32, 35
_PLUS, _COMMA, _MINUS, _POINT, _ZERO, _COLON = 43, 44, 45, 46, 48, 58
_E, _e, _q, _i, _d = 69, 101, 113, 105, 100

# Another digit still fits into int64 below this.
_FULL = 9 * 10**17
# A mantissa of up to 19 digits is zero in float32 below 10^-70 and infinite above 10^40.
_POWERS = np.array([float(f"1e{k}") for k in range(71)])
_MAX_POWER = 40
# The double has three roundings, less than 2^-51 in all. If both ends of this interval become the
# same float32, so does the number written; otherwise the caller decides with exact arithmetic.
_BELOW, _ABOVE = 1 - 2.0**-50, 1 + 2.0**-50


@intrinsic
def _byte(typingctx, address):
    """Byte at an address."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        return builder.zext(builder.load(pointer), ir.IntType(64))

    return types.int64(types.int64), codegen


@kernel
def count_marks(text):
    """Count newlines, colons and commas: how many rows, entries and labels there can be."""
    newlines = colons = commas = 0
    for c in text:
        newlines += c == _NEWLINE
        colons += c == _COLON
        commas += c == _COMMA
    return newlines, colons, commas


@inline
def _is_blank(c):
    return c in (_SPACE, _TAB, _RETURN)


@inline
def _ends_value(c):
    return _is_blank(c) or c in (_NEWLINE, _HASH)


@inline
def _skip_blanks(at):
    while _is_blank(_byte(at)):
        at += 1
    return at


@inline
def _skip_line(at):
    while _byte(at) != _NEWLINE:
        at += 1
    return at


@inline
def _skip_token(at):
    while not _is_blank(_byte(at)) and _byte(at) != _NEWLINE:
        at += 1
    return at


@inline
def _digits(at, mantissa, exponent, step):
    """Go on with a mantissa; each digit taken adds ``step`` to the exponent, each left out 1 more."""
    while True:
        digit = _byte(at) - _ZERO
        if digit < 0 or digit > 9:
            return at, mantissa, exponent
        if mantissa < _FULL:
            mantissa = 10 * mantissa + digit
            exponent += step
        else:
            exponent += step + 1
        at += 1


@inline
def _number(at):
    """Return the place after a decimal number (−1 if there is none) and its value, a few ulp off."""
    negative = _byte(at) == _MINUS
    if negative or _byte(at) == _PLUS:
        at += 1
    start = at
    at, mantissa, exponent = _digits(at, 0, 0, 0)
    n_digits = at - start
    if _byte(at) == _POINT:
        start = at + 1
        at, mantissa, exponent = _digits(start, mantissa, exponent, -1)
        n_digits += at - start
    if n_digits == 0:
        return -1, 0.0
    if _byte(at) == _e or _byte(at) == _E:
        at += 1
        down = _byte(at) == _MINUS
        if down or _byte(at) == _PLUS:
            at += 1
        start = at
        # The mantissa's limit makes the exponent stop growing, too.
        at, shift, _ = _digits(at, 0, 0, 0)
        if at == start:
            return -1, 0.0
        exponent += -shift if down else shift
    if mantissa == 0 or exponent < 1 - _POWERS.size:
        value = 0.0
    elif exponent > _MAX_POWER:
        value = np.inf
    elif exponent < 0:
        value = mantissa / _POWERS[-exponent]
    else:
        value = mantissa * _POWERS[exponent]
    return at, -value if negative else value


@inline
def _label_spans(base, at, spans, count):
    """Note where the labels of a line stand; a first token with a colon is no label."""
    first, start, before = at, at, count
    while True:
        c = _byte(at)
        if c == _COLON:
            return first, before
        ends = _is_blank(c) or c == _NEWLINE
        if ends or c == _COMMA:
            spans[count, 0] = start - base
            spans[count, 1] = at - base
            count += 1
            start = at + 1
        if ends:
            return at, count
        at += 1


@inline
def _pair(at, min_index, max_index):
    """Parse ``index:value``: what is wrong, the place after it, index, value, where the value starts."""
    start = at
    at, index, dropped = _digits(at, 0, 0, 0)
    if at == start or _byte(at) != _COLON:
        return BAD_PAIR, at, 0, 0.0, at
    if index < min_index or index > max_index or dropped > 0:
        return BAD_INDEX, at, 0, 0.0, at
    start = at + 1
    at, value = _number(start)
    if at < 0 or not _ends_value(_byte(at)):
        return BAD_VALUE, at, 0, 0.0, start
    if np.isinf(np.float32(value * _BELOW)):
        return HUGE_VALUE, at, 0, 0.0, start
    return DONE, at, index, value, start


@inline
def _is_query(at):
    """Whether ``qid:`` stands here; the newline at the latest ends the comparison."""
    return (
        _byte(at) == _q and _byte(at + 1) == _i and _byte(at + 2) == _d and _byte(at + 3) == _COLON
    )


@kernel
def fill_rows(
    text,
    blank_is_row,
    label_range,
    index_range,
    indices,
    data,
    row_ends,
    spans,
    label_ends,
    hard,
    found,
):
    """Parse whole lines; return DONE or what is wrong at ``found[PLACE]``.

    text : (bytes,) of uint8, ends with a newline; label_range : least and most labels of a line;
    index_range : smallest and largest index allowed; indices, data : the entries, indices as they
    stand there; row_ends, label_ends : entries and labels up to the end of each row; spans :
    (labels, 2) places of the labels; hard : (any, 2) entry and place of values whose float32 needs
    exact arithmetic, which are counted even if there is no room.
    """
    least, most = label_range
    min_index, max_index = index_range
    # The address is unsigned: sums with signed numbers would become floating-point ones.
    base = np.int64(text.ctypes.data)
    end = base + text.size
    at = place = base
    rows = entries = labels = n_hard = 0
    low, high = max_index + 1, -1
    ascending = True
    status = DONE
    while at < end and status == DONE:
        at = _skip_blanks(at)
        if _byte(at) == _HASH or (_byte(at) == _NEWLINE and not blank_is_row):
            at = _skip_line(at) + 1
            continue
        place, before, previous = at, labels, -1
        if _byte(at) != _NEWLINE:
            at, labels = _label_spans(base, at, spans, labels)
        if labels - before < least:
            status = NO_LABEL
        elif labels - before > most:
            status = MANY_LABELS
        while status == DONE:
            at = _skip_blanks(at)
            if _byte(at) == _HASH:
                at = _skip_line(at)
            if _byte(at) == _NEWLINE:
                break
            if _is_query(at):
                at = _skip_token(at)
                continue
            place = at
            status, at, index, value, start = _pair(at, min_index, max_index)
            if status != DONE:
                break
            indices[entries] = index
            data[entries] = value
            if np.float32(value * _BELOW) != np.float32(value * _ABOVE):
                if n_hard < hard.shape[0]:
                    hard[n_hard, 0] = entries
                    hard[n_hard, 1] = start - base
                n_hard += 1
            entries += 1
            ascending &= index > previous
            previous = index
            low = min(low, index)
            high = max(high, index)
        row_ends[rows] = entries
        label_ends[rows] = labels
        rows += 1
        at += 1
    found[ROWS], found[ENTRIES], found[LABELS], found[HARD] = rows, entries, labels, n_hard
    found[PLACE], found[ASCENDING], found[LOW], found[HIGH] = place - base, ascending, low, high
    return status


@kernel
def fill_integers(text, spans, out):
    """Whole numbers, also written as ``3.0``; return the first span that is not one, or −1."""
    base = np.int64(text.ctypes.data)
    for i in range(spans.shape[0]):
        at, stop = base + spans[i, 0], base + spans[i, 1]
        negative = _byte(at) == _MINUS
        if negative or _byte(at) == _PLUS:
            at += 1
        start = at
        at, value, dropped = _digits(at, 0, 0, 0)
        good = at > start and dropped == 0
        if _byte(at) == _POINT:
            at += 1
            while _byte(at) == _ZERO:
                at += 1
        if not good or at != stop:
            return i
        out[i] = -value if negative else value
    return -1
