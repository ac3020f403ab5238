"""What became of labels: merged, retired and renamed ones, their new codes, and a journal."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.labels import LabelSets, as_type_of, codes_of, kind_of_labels

__all__ = ["LabelPast", "Relabelling"]

# Entries that a journal keeps, labels that an entry names, and characters of a label.
_KEPT, _SHOWN, _SHOWN_CHARS = 200, 5, 60


class Relabelling(NamedTuple):
    """New codes of labels of which some are merged into others or retired.

    Examples
    --------
    >>> change = Relabelling.of(4, merged={3: 0}, retired=[1])
    >>> change.codes, change.kept
    (array([ 0, -1,  1,  0]), array([0, 2]))
    >>> change.added(np.array([5, 6, 7, 8]))
    array([13,  7])
    """

    codes: NDArray[np.int64]
    """New code of each label, that of another one if it is merged into that; −1 if it is retired."""
    kept: NDArray[np.int64]
    """Old code of each label that is left."""

    @classmethod
    def of(
        cls, n_classes: int, *, merged: Mapping[int, int] | None = None, retired: Any = ()
    ) -> Relabelling:
        """From the codes of labels that are merged, each with the one that it becomes, or retired."""
        merged = merged or {}
        gone = np.zeros(n_classes, dtype=bool)
        gone[[*merged, *retired]] = True
        kept = np.flatnonzero(~gone)
        codes = np.where(gone, -1, np.cumsum(~gone) - 1)
        codes[[*merged]] = codes[[*merged.values()]]
        return cls(codes, kept)

    @property
    def n_classes(self) -> int:
        """Number of labels that are left."""
        return self.kept.size

    @property
    def merged(self) -> NDArray[np.int64]:
        """Old codes of the labels that became others."""
        is_gone = np.ones(self.codes.size, dtype=bool)
        is_gone[self.kept] = False
        return np.flatnonzero(is_gone & (self.codes >= 0))

    def added(self, values: NDArray) -> NDArray:
        """Values of labels, those of merged ones added up."""
        out = values[self.kept].copy()
        np.add.at(out, self.codes[self.merged], values[self.merged])
        return out


@saved_as("labels.past")
class LabelPast:
    """Names that labels had, and a journal of what was done to a model.

    Rows that come later under the name of a merged label are rows of the label that it became; those of
    a retired label are skipped.

    Attributes
    ----------
    merged_, into_ : arrays
        Names of merged labels, and of the labels that they became.
    retired_ : array
        Names of retired labels.
    journal_ : list of dict
        The last 200 things done, oldest first: ``did``, and ``labels`` or ``rows``.
    """

    def __init__(
        self, merged: NDArray, into: NDArray, retired: NDArray, journal: list[dict[str, Any]]
    ) -> None:
        self.merged_, self.into_, self.retired_, self.journal_ = merged, into, retired, journal

    @classmethod
    def none(cls, classes: NDArray) -> LabelPast:
        """Nothing has happened."""
        return cls(classes[:0], classes[:0], classes[:0], [])

    def noted(self, did: str, **what: Any) -> LabelPast:
        """With another entry in the journal, without those that are too old."""
        return LabelPast(
            self.merged_, self.into_, self.retired_, [*self.journal_, {"did": did, **what}][-_KEPT:]
        )

    def dated(self, date: str) -> LabelPast:
        """With a date for the entries since the last that has one."""
        journal = [entry if "date" in entry else {**entry, "date": date} for entry in self.journal_]
        return LabelPast(self.merged_, self.into_, self.retired_, journal)

    # Labels -------------------------------------------------------------------------------------

    def renamed(self, classes: NDArray, names: Mapping[Any, Any]) -> tuple[NDArray, LabelPast]:
        """Labels with these new names, and their past."""
        _check_pairs(names)
        codes = self._codes(classes, names)
        new = as_type_of(classes, np.asarray(list(names.values())))
        kind = np.result_type(classes, new)
        out = classes.astype(kind)
        out[codes] = new
        twice = _first_twice(out)
        if twice is None and codes_of(new, self.retired_.astype(kind)).max(initial=-1) >= 0:
            twice = new[codes_of(new, self.retired_.astype(kind)) >= 0][0]
        if twice is not None:
            raise LocoleError(
                f"there is, or was, another label {_shown(twice)}: take a new name, or merge_labels."
            )
        into = self.into_.astype(kind)
        old = codes_of(into, classes)
        past = LabelPast(self.merged_, np.where(old >= 0, out[old], into), self.retired_, [])
        past.journal_ = self.journal_
        return out, past._without(new).noted("rename", **_listed(names))

    def merged(
        self, classes: NDArray, names: Mapping[Any, Any]
    ) -> tuple[NDArray, Relabelling, LabelPast]:
        """Labels without those that become others, their new codes, and their past."""
        _check_pairs(names)
        old = self._codes(classes, names)
        kept = self._codes(classes, dict.fromkeys(names.values()), each=list(names.values()))
        both = np.intersect1d(old, kept)
        if both.size:
            raise LocoleError(
                f"the label {_shown(classes[both[0]])} is merged into another and has one merged into "
                "it: name the label that is to be kept for each."
            )
        pairs = dict(zip(old.tolist(), kept.tolist(), strict=True))
        change = self._change(classes, Relabelling.of(classes.size, merged=pairs))
        # Who became one that is merged now became what that becomes.
        at = codes_of(self.into_, classes)
        into = np.where(at >= 0, classes[change.kept[change.codes[at]]], self.into_)
        past = LabelPast(
            np.append(self.merged_, classes[old]), np.append(into, classes[kept]),
            self.retired_, self.journal_,
        )  # fmt: skip
        return classes[change.kept], change, past.noted("merge", **_listed(names))

    def without(
        self, classes: NDArray, names: Sequence[Any]
    ) -> tuple[NDArray, Relabelling, LabelPast]:
        """Labels without these, their new codes, and their past."""
        if isinstance(names, str) or not np.iterable(names):
            raise LocoleError(f"labels must be a list of labels, not {names!r:.40}.")
        codes = self._codes(classes, dict.fromkeys(names))
        change = self._change(classes, Relabelling.of(classes.size, retired=codes))
        # Who became one that is retired now is retired too.
        lost = np.isin(self.into_, classes[codes])
        past = LabelPast(
            self.merged_[~lost], self.into_[~lost],
            np.concatenate([self.retired_, classes[codes], self.merged_[lost]]), self.journal_,
        )  # fmt: skip
        return classes[change.kept], change, past.noted("retire", **_listed(names))

    def _codes(self, classes: NDArray, names: Any, each: list[Any] | None = None) -> NDArray:
        """Codes of labels that the model must know."""
        if not names:
            raise LocoleError("no label is named: give at least one.")
        asked = as_type_of(classes, np.asarray(list(names) if each is None else each))
        codes = codes_of(asked, classes)
        if (codes < 0).any():
            missing = _shown(asked[codes < 0][0])
            raise LocoleError(f"the model does not know the label {missing}: see classes_.")
        return codes

    def _change(self, classes: NDArray, change: Relabelling) -> Relabelling:
        if change.n_classes < 2:
            raise LocoleError("fewer than two labels would be left: a classifier needs two.")
        return change

    def _without(self, names: NDArray) -> LabelPast:
        """Without the memory of merged labels that had these names, which others have now."""
        stays = ~np.isin(self.merged_, names)
        return LabelPast(self.merged_[stays], self.into_[stays], self.retired_, self.journal_)

    # Rows that come later -----------------------------------------------------------------------

    def check_free(self, names: NDArray) -> None:
        """Refuse names of labels that are gone: rows under them would not be rows of a new label."""
        gone = names[np.isin(names, np.append(self.merged_, self.retired_))]
        if gone.size:
            raise LocoleError(
                f"the label {_shown(gone[0])} was merged or retired: take a new name for a new label."
            )

    def present(self, y: NDArray) -> tuple[NDArray, NDArray[np.bool_]]:
        """Present name of each label, and which of them are not retired."""
        if not (self.merged_.size or self.retired_.size):
            return y, np.ones(y.size, dtype=bool)
        stays = ~np.isin(y, self.retired_)
        if not self.merged_.size:
            return y, stays
        at = codes_of(y, self.merged_)
        return np.where(at >= 0, self.into_[at], y), stays

    def present_sets(self, sets: LabelSets) -> LabelSets:
        """Present labels of rows that may have several; retired ones are left out."""
        labels, stays = self.present(sets.labels)
        if stays.all():
            return sets._replace(labels=labels)
        is_in = stays[sets.codes]
        counts = np.add.reduceat(np.append(is_in, 0), sets.starts[:-1]) if sets.n_rows else is_in
        counts = np.where(np.diff(sets.starts) > 0, counts, 0)
        numbers = np.cumsum(stays) - 1
        starts = np.append(0, np.cumsum(counts)).astype(np.int64)
        return LabelSets(labels[stays], numbers[sets.codes[is_in]], starts, sets.form)

    # Save ---------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return {
            "merged": self.merged_,
            "into": self.into_,
            "retired": self.retired_,
            "journal": self.journal_,
        }

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> LabelPast:
        merged, into, retired, journal = (
            values[name] for name in ("merged", "into", "retired", "journal")
        )
        names = (merged, into, retired)
        fits = (
            len(values) == len(names) + 1
            and all(isinstance(array, np.ndarray) and array.ndim == 1 for array in names)
            and merged.size == into.size
            and isinstance(journal, list)
            and len(journal) <= _KEPT
            and all(isinstance(entry, dict) and "did" in entry for entry in journal)
        )
        if not fits:
            raise ModelFileError("its journal of labels is invalid")
        return cls(merged, into, retired, journal)

    def check(self, classes: NDArray) -> None:
        """Raise ModelFileError if a file gives the past of other labels."""
        names = (self.merged_, self.into_, self.retired_)
        fits = all(
            kind_of_labels(array) == kind_of_labels(classes) for array in names if array.size
        )
        fits = fits and bool((codes_of(self.into_, classes) >= 0).all())
        gone = np.append(self.merged_, self.retired_) if fits else classes[:0]
        if not fits or (codes_of(gone, classes) >= 0).any():
            raise ModelFileError("its labels and their past do not fit together")


def _check_pairs(names: Any) -> None:
    """Refuse what does not say for each label what becomes of it."""
    if not isinstance(names, Mapping):
        raise LocoleError(
            f"give a dict of label to label, such as {{'old': 'new'}}, not {names!r:.40}."
        )


def _listed(names: Any) -> dict[str, Any]:
    """Labels for the journal: how many, and the first of them."""
    pairs = names.items() if isinstance(names, Mapping) else ((name,) for name in names)
    first = itertools.islice(pairs, _SHOWN)
    shown = [" → ".join(_shown(name) for name in pair) for pair in first]
    return {"labels": len(names), "first": shown}


def _shown(label: Any) -> str:
    """Label as a message or a journal has it."""
    text = str(label)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def _first_twice(labels: NDArray) -> Any:
    ordered = np.sort(labels)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    return twice[0] if twice.size else None
