"""Validation rows for as long as a model learns: what scorers said of rows that they had not learnt."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.dense_rows import PairedRows
from locole.exceptions import ModelFileError
from locole.io import saved_as
from locole.io.trust import check_pointers
from locole.label_past import Relabelling
from locole.parallel.blocks import slices
from locole.samples import Samples
from locole.scoring.base import ValidationScores
from locole.scoring.nearest import RERANKED, Evidence
from locole.scoring.trial import Trial

__all__ = ["Reservoir", "Said", "row_keys"]

# Candidates of a row that are kept: the right ones, and the best others.
_KEPT = 64
# Dense rows read at a time.
_BLOCK_ROWS = 1024
# Most rows and scorers that a file may ask for.
_MOST_ROWS, _MOST_SCORERS = 1 << 20, 64


class Said(NamedTuple):
    """What scorers say of rows, a line for each."""

    codes: NDArray[np.int32]
    """Candidates, shape (rows, 64); −1 at places without one."""
    counts: NDArray[np.int32]
    """Rows of the candidates that had been learnt by then, shape (rows, 64)."""
    scores: NDArray[np.float32]
    """By each scorer, shape (rows, 64 · scorers), those of a candidate side by side."""
    near: NDArray[np.float32]
    """Cosine of the nearest row of the candidate, −1 where it was not asked for; (rows, 64)."""
    weight: NDArray[np.float64]
    keys: NDArray[np.uint64]
    """By which a row is recognised; see `row_keys`."""

    @classmethod
    def of(
        cls, trial: Trial, totals: NDArray, near: NDArray | None, keys: NDArray[np.uint64]
    ) -> Said:
        """Right candidates and the best others; ``near`` is of the best by ``totals``."""
        n_rows, n_scorers = len(trial.codes), trial.scores.shape[2]
        totals = np.where(trial.valid, totals, -np.inf)
        similarity = np.full(totals.shape, -1.0, dtype=np.float32)
        if near is not None:
            best = np.argsort(-totals, axis=1, kind="stable")[:, : near.shape[1]]
            np.put_along_axis(similarity, best, near, 1)
        right = trial.right & trial.valid
        order = np.lexsort((-totals, ~right), axis=1)[:, :_KEPT]
        is_one = np.take_along_axis(trial.valid, order, 1)
        said = np.zeros((n_rows, _KEPT, n_scorers), dtype=np.float32)
        said[:, : order.shape[1]] = np.take_along_axis(trial.scores, order[..., None], 1)
        codes, cosines = np.full((2, n_rows, _KEPT), -1.0)
        codes[:, : order.shape[1]] = np.where(is_one, np.take_along_axis(trial.codes, order, 1), -1)
        cosines[:, : order.shape[1]] = np.take_along_axis(similarity, order, 1)
        counts = np.zeros((n_rows, _KEPT), dtype=np.int32)
        counts[:, : order.shape[1]] = np.take_along_axis(trial.counts, order, 1)
        weight = np.ones(n_rows) if trial.validation.weight is None else trial.validation.weight
        return cls(
            codes.astype(np.int32), counts, said.reshape(n_rows, -1), cosines.astype(np.float32),
            weight.astype(np.float64), keys,
        )  # fmt: skip

    def take(self, rows: NDArray) -> Said:
        """Some of the rows."""
        return Said(*(array[rows] for array in self))

    def narrowed(self) -> Said:
        """The same in fewer bytes, for a file: smaller types, no cosines behind the last known one."""
        asked = np.flatnonzero((self.near >= 0).any(axis=0))
        near = np.ascontiguousarray(self.near[:, : asked[-1] + 1 if asked.size else 0])
        return self._replace(codes=_narrow(self.codes), counts=_narrow(self.counts), near=near)

    def widened(self) -> Said:
        """What was narrowed, as it was."""
        codes, counts = (
            array.astype(np.int32) if array.dtype.name in ("int8", "int16") else array
            for array in (self.codes, self.counts)
        )
        missing = max(_KEPT - self.near.shape[1], 0)
        near = np.pad(self.near, [(0, 0), (0, missing)], constant_values=-1)
        return self._replace(codes=codes, counts=counts, near=near)

    def followed_by(self, more: Said) -> Said:
        """Rows of both."""
        pairs: Any = zip(self, more, strict=True)
        return Said(*(np.concatenate(arrays) for arrays in pairs))


@saved_as("reservoir")
class Reservoir:
    """A sample of the rows that an ensemble has met, as it was scored before it was learnt.

    It holds no rows, only their candidates and what every scorer said of these at that time: to score a
    row again that has been learnt since would flatter the scorers that remember most. The price is that
    old lines are those of an older model.

    Once the sample is full, every new row takes the place of a random one (Aggarwal's biased reservoir,
    with no rows passed over), so that a line lives for ``size`` rows on average. A uniform sample of all
    rows would be kept by hundreds of updates, and ask for weights of a model that did not know the
    labels of today. Rows of labels that were not known are not met: no scorer could
    have proposed these.

    Parameters
    ----------
    size : int
        Most rows.
    n_seen : int
        Rows met.
    said : Said
    samples : Samples
        Labels of the rows; X has no columns.
    """

    def __init__(self, size: int, n_seen: int, said: Said, samples: Samples) -> None:
        self.size, self.n_seen, self.said, self.samples = size, n_seen, said, samples

    @property
    def n_rows(self) -> int:
        """Rows in the sample."""
        return len(self.said.codes)

    @property
    def n_scorers(self) -> int:
        """Scorers that have said something."""
        return self.said.scores.shape[1] // _KEPT

    # Rows that come and go ----------------------------------------------------------------------

    def drawn(self, n_rows: int, *, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which of the next rows enter, and the places that they take, those after the end included."""
        rng = np.random.default_rng([seed, self.n_seen, 9])
        places = rng.integers(self.size, size=n_rows)
        free = max(min(self.size - self.n_rows, n_rows), 0)
        places[:free] = self.n_rows + np.arange(free)
        enters = np.flatnonzero(places < self.size)
        # The last of those that draw the same place has it.
        last = places[enters][::-1]
        _, first = np.unique(last, return_index=True)
        rows = np.sort(enters[enters.size - 1 - first])
        return rows, places[rows]

    def entered(
        self, said: Said, samples: Samples, places: NDArray[np.int64], n_met: int
    ) -> Reservoir:
        """With rows at these places, after so many more rows were met."""
        known = self.n_rows
        order = np.arange(known + places.size)[: max(known, int(places.max(initial=-1)) + 1)]
        order[places] = known + np.arange(places.size)
        return Reservoir(
            self.size,
            self.n_seen + n_met,
            self.said.followed_by(said).take(order),
            _followed(self.samples, samples).take(order),
        )

    def grown(self, n_classes: int) -> Reservoir:
        """The same with more labels."""
        samples = self.samples._replace(n_classes=n_classes)
        return Reservoir(self.size, self.n_seen, self.said, samples)

    def without(self, keys: NDArray[np.uint64]) -> Reservoir:
        """Without these rows, which have not been met."""
        stays = np.flatnonzero(~np.isin(self.said.keys, keys))
        n_seen = max(self.n_seen - keys.size, stays.size)
        return Reservoir(self.size, n_seen, self.said.take(stays), self.samples.take(stays))

    def relabelled(self, change: Relabelling) -> Reservoir:
        """With other codes of labels; candidates that are the same now have the larger scores."""
        codes = np.where(self.said.codes >= 0, change.codes[self.said.codes], -1)
        scores = self.said.scores.reshape(*codes.shape, self.n_scorers).copy()
        for row, place in zip(
            *np.nonzero(np.isin(codes, change.codes[change.merged])), strict=True
        ):
            first = int(np.argmax(codes[row] == codes[row, place]))
            if codes[row, place] >= 0 and first != place:
                scores[row, first] = np.maximum(scores[row, first], scores[row, place])
                codes[row, place] = -1
        said = self.said._replace(
            codes=codes.astype(np.int32), scores=scores.reshape(len(codes), -1)
        )
        samples, stays = _relabelled(self.samples, change)
        return Reservoir(self.size, self.n_seen, said.take(stays), samples)

    # What it says -------------------------------------------------------------------------------

    def trial(self, names: list[str]) -> Trial:
        """The rows as validation rows, with a source for each scorer."""
        codes = self.said.codes.astype(np.int64)
        scores = self.said.scores.reshape(*codes.shape, self.n_scorers).astype(np.float64)
        valid = codes >= 0
        samples = self.samples._replace(weight=self.said.weight)
        right, counts = samples.has(codes) & valid, self.said.counts.astype(np.int64)
        return Trial(samples, names, codes, scores, right, valid, counts)

    def evidence(self, trial: Trial, totals: NDArray) -> Evidence:
        """What there is to fit the curve of similarities to."""
        known = trial.valid & (self.said.near >= 0)
        totals = np.where(known, totals, -np.inf)
        order = np.argsort(-totals, axis=1, kind="stable")[:, :RERANKED]
        codes, scores, right, near = (
            np.take_along_axis(table, order, 1)
            for table in (trial.codes, totals, trial.right, np.maximum(self.said.near, 0))
        )
        return Evidence.gather(ValidationScores(codes, scores, right, trial.validation), near)

    # Save ---------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        samples = self.samples
        return {
            "size": self.size,
            "n_seen": self.n_seen,
            "labels": samples.codes,
            "starts": samples.starts,
            "n_classes": samples.n_classes,
            **self.said.narrowed()._asdict(),
        }

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        names = ("size", "n_seen", "labels", "starts", "n_classes")
        size, n_seen, labels, starts, n_classes = (values[name] for name in names)
        said = Said(*(values[name] for name in Said._fields)).widened()
        counts = (size, n_seen, n_classes)
        fits = len(values) == len(names) + len(said) and all(
            type(count) is int and 0 <= count < 1 << 48 for count in counts
        )
        if not fits or size > _MOST_ROWS or not _are_lines(said, n_classes):
            raise ModelFileError("its reservoir of validation rows is invalid")
        n_rows = len(said.codes)
        if starts is not None:
            check_pointers(starts, "labels of validation rows", end=labels.size, dtypes=("int64",))
        is_set = labels.ndim == 1 and labels.dtype == np.int64
        is_set = is_set and (labels.size if starts is None else starts.size - 1) == n_rows <= size
        if not is_set or not ((labels >= 0) & (labels < n_classes)).all():
            raise ModelFileError("its validation rows have no labels")
        samples = Samples(np.empty((n_rows, 0)), labels, n_classes, None, starts)
        return cls(size, n_seen, said, samples)


def _narrow(numbers: NDArray[np.int32]) -> NDArray:
    """The same whole numbers in the smallest type that holds them."""
    least, most = numbers.min(initial=0), numbers.max(initial=0)
    fits = (t for t in (np.int8, np.int16) if np.iinfo(t).min <= least and most <= np.iinfo(t).max)
    return numbers.astype(next(fits, np.int32))


def _are_lines(said: Said, n_classes: int) -> bool:
    kinds = (np.int32, np.int32, np.float32, np.float32, np.float64, np.uint64)
    if not all(
        isinstance(array, np.ndarray) and array.dtype == kind
        for array, kind in zip(said, kinds, strict=True)
    ):
        return False
    codes, counts, scores, near, weight, keys = said
    n_rows = len(codes) if codes.ndim == 2 else -1
    shapes = (
        codes.shape == counts.shape == near.shape == (n_rows, _KEPT)
        and scores.ndim == 2
        and len(scores) == n_rows
        and scores.shape[1] % _KEPT == 0
        and _KEPT <= scores.shape[1] <= _KEPT * _MOST_SCORERS
        and weight.shape == keys.shape == (n_rows,)
    )
    return bool(
        shapes
        and ((codes >= -1) & (codes < n_classes)).all()
        and (counts >= 0).all()
        and np.isfinite(scores).all()
        and ((near >= -1) & (near <= 2)).all()
        and np.isfinite(weight).all()
        and (weight > 0).all()
    )


def _followed(first: Samples, second: Samples) -> Samples:
    """Labels of both; of one label for each row or of several as either has them."""
    n_classes = max(first.n_classes, second.n_classes)
    codes = np.concatenate([first.codes, second.codes])
    n_rows = first.n_rows + second.n_rows
    starts = None
    if first.starts is not None or second.starts is not None:
        starts = np.append(0, np.cumsum(np.append(first.n_labels, second.n_labels)))
    return Samples(np.empty((n_rows, 0)), codes, n_classes, None, starts)


def _relabelled(samples: Samples, change: Relabelling) -> tuple[Samples, NDArray[np.int64]]:
    """Labels with other codes, and the rows that stay: those that have a label left, or had none."""
    codes = change.codes[samples.codes]
    if samples.starts is None:
        stays = np.flatnonzero(codes >= 0)
        left = samples._replace(codes=codes, n_classes=change.n_classes)
        return left.take(stays), stays
    is_left = codes >= 0
    ones, shape = np.ones(is_left.sum(), dtype=np.int8), (samples.n_rows, change.n_classes)
    member = sp.csr_array((ones, (samples.owners[is_left], codes[is_left])), shape=shape)
    member.sum_duplicates()
    left = samples._replace(
        codes=member.indices.astype(np.int64),
        starts=member.indptr.astype(np.int64),
        n_classes=change.n_classes,
    )
    stays = np.flatnonzero((left.n_labels > 0) | (samples.n_labels == 0))
    return left.take(stays), stays


def row_keys(samples: Samples) -> NDArray[np.uint64]:
    """Numbers by which rows are recognised: hashes of their entries.

    Examples
    --------
    >>> X = sp.csr_array(np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]))
    >>> a, b, c = row_keys(Samples(X, np.array([0, 0, 1]), 2))
    >>> bool(a == b), bool(a == c)
    (True, False)
    """
    rows = (hashlib.blake2b(row, digest_size=8).digest() for row in _rows_as_bytes(samples.X))
    return np.frombuffer(b"".join(rows), dtype="<u8").astype(np.uint64)


def _rows_as_bytes(X: Any) -> Iterator[bytes]:
    """The entries of each row: columns and numbers of sparse ones, all numbers of dense ones."""
    if isinstance(X, PairedRows):
        for pair in zip(_rows_as_bytes(X.sparse), _rows_as_bytes(X.dense), strict=True):
            yield b"".join(pair)
    elif sp.issparse(X):
        columns, numbers = X.indices.astype(np.int64), X.data.astype(np.float32)
        for start, stop in itertools.pairwise(X.indptr.tolist()):
            yield columns[start:stop].tobytes() + numbers[start:stop].tobytes()
    else:
        for part in slices(len(X), _BLOCK_ROWS):
            for row in np.asarray(X[part], dtype=np.float32):
                yield row.tobytes()
