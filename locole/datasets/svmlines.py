"""Lines of the kind ``label index:value …``: what is allowed in them, and what errors say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole.datasets.sources import Chunk
from locole.exceptions import LocoleError
from locole.kernels import svmlight

__all__ = ["MAX_INDEX", "LabelKind", "LineParser", "LineRules", "ParsedLines", "nearest_float32"]

LabelKind = Literal["auto", "int", "text"] | None

#: Indices are int32, also when a 0-based file has one feature more than its largest index.
MAX_INDEX = np.iinfo(np.int32).max - 1
_SHOWN_CHARACTERS = 40
# Enough for every double written out in full; more is no number that a program wrote.
_MAX_HARD_CHARACTERS = 1000
_FIRST_HARD = 256
# Halfway between the largest float32 and the number after it, which would be 2^128.
_FLOAT32_END = 2**128 - 2**103


@dataclass(frozen=True)
class LineRules:
    """What lines may hold."""

    labels: LabelKind = "auto"
    """``"int"``, ``"text"``, or ``"auto"`` as the first label is; None: labels are skipped."""
    n_labels: tuple[int, int] = (1, 1)
    """Fewest and most labels of a line."""
    label_range: tuple[int, int] | None = None
    """Smallest and largest label, if labels are places in a table."""
    indices: tuple[int, int] = (0, MAX_INDEX)
    """Smallest and largest index, as they stand in the file."""
    way_out: str = "is the file right?"
    """What to do about an index outside, as the end of a sentence."""
    blank_is_row: bool = False
    """Whether an empty line is a row without label and features; otherwise it is skipped."""


class ParsedLines(NamedTuple):
    """Rows of some lines."""

    data: NDArray[np.float32]
    indices: NDArray[np.int32]
    """As they stand in the file, rising within a row."""
    row_ends: NDArray[np.int64]
    """Number of entries up to the end of each row."""
    labels: NDArray[np.int64] | list[str] | None
    label_ends: NDArray[np.int64]
    """Number of labels up to the end of each row."""

    @property
    def n_labels(self) -> int:
        """Number of labels of all rows."""
        return int(self.label_ends[-1]) if self.label_ends.size else 0


class LineParser:
    """Parser of the lines of one file.

    Attributes
    ----------
    low, high : int or None
        Smallest and largest index so far.
    """

    def __init__(self, name: str, rules: LineRules) -> None:
        self._name, self._rules = name, rules
        self._kind = rules.labels
        self._texts: dict[bytes, str] = {}
        self.low: int | None = None
        self.high: int | None = None

    def parse(self, chunk: Chunk) -> ParsedLines:
        """Rows of a chunk, or an error that names line and token."""
        n_lines, n_entries, n_commas = svmlight.count_marks(chunk.text)
        indices = np.empty(n_entries, dtype=np.int32)
        data = np.empty(n_entries, dtype=np.float32)
        row_ends, label_ends = np.empty((2, n_lines), dtype=np.int64)
        spans = np.empty((n_lines + n_commas, 2), dtype=np.int64)
        found = np.empty(8, dtype=np.int64)
        rules, n_hard = self._rules, _FIRST_HARD
        while True:
            hard = np.empty((n_hard, 2), dtype=np.int64)
            status = svmlight.fill_rows(
                chunk.text, rules.blank_is_row, rules.n_labels, rules.indices,
                indices, data, row_ends, spans, label_ends, hard, found,
            )  # fmt: skip
            n_hard = found[svmlight.HARD]
            if status != svmlight.DONE:
                raise self._error(chunk, status, found[svmlight.PLACE])
            if n_hard <= len(hard):
                break
        n_rows, n_entries = found[svmlight.ROWS], found[svmlight.ENTRIES]
        self._settle(chunk, data, hard[:n_hard])
        self._note_range(found)
        rows = data[:n_entries], indices[:n_entries], row_ends[:n_rows]
        if not found[svmlight.ASCENDING]:
            rows = self._in_order(chunk, *rows)
        labels = self._labels(chunk, spans[: found[svmlight.LABELS]])
        return ParsedLines(*rows, labels, label_ends[:n_rows])

    def _note_range(self, found: NDArray[np.int64]) -> None:
        if found[svmlight.ENTRIES]:
            low, high = int(found[svmlight.LOW]), int(found[svmlight.HIGH])
            self.low = low if self.low is None else min(low, self.low)
            self.high = high if self.high is None else max(high, self.high)

    def _settle(self, chunk: Chunk, data: NDArray, hard: NDArray[np.int64]) -> None:
        """Round the values that double precision cannot decide."""
        for entry, place in hard:
            number = _token(rb"[-+.\deE]*", chunk, place, _MAX_HARD_CHARACTERS + 1)
            if len(number) > _MAX_HARD_CHARACTERS:
                raise self._error(chunk, svmlight.BAD_VALUE, place)
            data[entry] = nearest_float32(number.decode())
            if np.isinf(data[entry]):
                raise self._error(chunk, svmlight.HUGE_VALUE, place)

    def _in_order(
        self, chunk: Chunk, data: NDArray, indices: NDArray, row_ends: NDArray
    ) -> tuple[NDArray, NDArray, NDArray]:
        """Sort each row; a feature that a row has twice counts with the sum of its values."""
        rows = np.repeat(np.arange(row_ends.size), np.diff(row_ends, prepend=0))
        order = np.lexsort((indices, rows))
        indices = indices[order]
        new = np.ones(order.size, dtype=bool)
        new[1:] = (indices[1:] != indices[:-1]) | (rows[1:] != rows[:-1])
        starts = np.flatnonzero(new)
        sums = np.add.reduceat(data[order].astype(np.float64), starts)
        if (np.abs(sums) >= _FLOAT32_END).any():
            raise LocoleError(
                f"{self._name}, after line {chunk.first_line}: values of a repeated feature add up to "
                "more than float32 can hold: scale the feature."
            )
        ends = np.searchsorted(rows[starts], np.arange(row_ends.size), side="right")
        return sums.astype(np.float32), indices[starts], ends

    # Labels -------------------------------------------------------------------------------------

    def _labels(
        self, chunk: Chunk, spans: NDArray[np.int64]
    ) -> NDArray[np.int64] | list[str] | None:
        if self._kind is None:
            return None
        numbers = np.empty(len(spans), dtype=np.int64)
        if self._kind == "auto" and len(spans):
            is_number = svmlight.fill_integers(chunk.text, spans[:1], numbers[:1]) < 0
            self._kind = "int" if is_number else "text"
        if self._kind == "text":
            return self._text_labels(chunk, spans)
        bad = svmlight.fill_integers(chunk.text, spans, numbers)
        if bad >= 0:
            raise self._bad_label(
                chunk, spans[bad],
                "is not a whole number of at most 18 digits: "
                'pass labels="text" to take labels as they stand.',
            )  # fmt: skip
        if self._rules.label_range is not None:
            low, high = self._rules.label_range
            outside = np.flatnonzero((numbers < low) | (numbers > high))
            if outside.size:
                reason = f"is not between {low:,} and {high:,}: is the file right?"
                raise self._bad_label(chunk, spans[outside[0]], reason)
        return numbers

    def _text_labels(self, chunk: Chunk, spans: NDArray[np.int64]) -> list[str]:
        data, labels = chunk.text.tobytes(), []
        for start, stop in spans.tolist():
            token = data[start:stop]
            # Labels repeat: one string for each keeps them small.
            label = self._texts.get(token)
            if label is None:
                try:
                    label = self._texts[token] = token.decode("utf-8")
                except UnicodeDecodeError:
                    raise self._bad_label(chunk, (start, stop), "is not UTF-8.") from None
            labels.append(label)
        return labels

    def _bad_label(self, chunk: Chunk, span: Any, reason: str) -> LocoleError:
        start, stop = span
        return self._at(chunk, start, f"label {_brief(chunk.text[start:stop])} {reason}")

    # Errors -------------------------------------------------------------------------------------

    def _error(self, chunk: Chunk, status: int, place: int) -> LocoleError:
        token = _token(rb"\S*", chunk, place, _SHOWN_CHARACTERS + 1)
        return self._at(chunk, place, self._reason(status, token))

    def _reason(self, status: int, token: bytes) -> str:
        shown = _brief(token)
        if status == svmlight.BAD_INDEX:
            index, (low, high) = _brief(token.split(b":")[0]), self._rules.indices
            return f"feature {index} is not between {low:,} and {high:,}: {self._rules.way_out}"
        return {
            svmlight.BAD_PAIR: f"{shown} is not index:value, as in 17:0.25; a first line with three "
            "numbers is the header of another format, see load_xmc.",
            svmlight.BAD_VALUE: f"{shown} does not have a finite number as its value.",
            svmlight.HUGE_VALUE: f"the value of {shown} is too large for float32: scale the feature.",
            svmlight.NO_LABEL: "there is no label: write one in front of the features.",
            svmlight.MANY_LABELS: f"{shown} are several labels: keep one, or pass multilabel=True.",
        }[status]

    def _at(self, chunk: Chunk, place: int, reason: str) -> LocoleError:
        line = chunk.first_line + int(np.count_nonzero(chunk.text[:place] == ord("\n")))
        return LocoleError(f"{self._name}, line {line}: {reason}")


def _token(pattern: bytes, chunk: Chunk, place: int, length: int) -> bytes:
    """Bytes that match from a place on, at most ``length``; the pattern also matches nothing."""
    found = re.match(pattern, chunk.text[place : place + length].tobytes())
    return found[0] if found else b""


def _brief(token: NDArray[np.uint8] | bytes) -> str:
    """Token in quotes, shortened, with escapes for what is not printable."""
    text = bytes(token[: _SHOWN_CHARACTERS + 1]).decode("utf-8", "backslashreplace")
    if len(text) > _SHOWN_CHARACTERS:
        text = text[: _SHOWN_CHARACTERS - 1] + "…"
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f"'{''.join(shown)}'"


def nearest_float32(number: str) -> np.float32:
    """Float32 nearest to a decimal number, also where rounding to double first would miss it.

    Examples
    --------
    >>> nearest_float32("1.00000005960464477540")  # just above the middle of two float32
    np.float32(1.0000001)
    >>> import numpy as np
    >>> np.float32(float("1.00000005960464477540"))
    np.float32(1.0)
    """
    value = float(number)
    with np.errstate(over="ignore"):
        nearest = np.float32(value)
    if np.isinf(nearest):
        below = np.isfinite(value) and abs(Fraction(number)) < _FLOAT32_END
        return np.copysign(np.finfo(np.float32).max, nearest) if below else nearest
    with np.errstate(over="ignore"):
        other = np.nextafter(nearest, np.float32(np.inf if value > float(nearest) else -np.inf))
    if np.isinf(other) or 2 * Fraction(value) != Fraction(float(nearest)) + Fraction(float(other)):
        return nearest
    # The double is exactly in the middle. The number itself decides; if it is there, too, the even
    # one that the conversion took stays.
    exact, middle = Fraction(number), Fraction(value)
    if exact == middle:
        return nearest
    return max(nearest, other) if exact > middle else min(nearest, other)
