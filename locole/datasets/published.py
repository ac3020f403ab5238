"""The paper's data sets, from files that the user has: LSHTC1, DMOZ and ODP, in LIBSVM format."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from locole.datasets.base import Dataset
from locole.datasets.libsvm import load_libsvm_files
from locole.exceptions import LocoleError, LocoleWarning

__all__ = ["load_dmoz", "load_lshtc1", "load_odp"]

_PARTS = {
    "train": re.compile(r"(?<![a-z])(train|training|trn)(?![a-z])", re.IGNORECASE),
    "test": re.compile(r"(?<![a-z])(test|testing|tst)(?![a-z])", re.IGNORECASE),
}


@dataclass(frozen=True)
class _Facts:
    """What is known of a published data set."""

    name: str
    n_train: tuple[int, ...]
    """Training rows of the paper, then of other tables."""
    n_test: tuple[int, ...]
    n_features: tuple[int, ...]
    n_classes: tuple[int, ...]
    why: str
    """Why counts differ."""
    other_split: tuple[int, int] | None = None
    """Rows of a split that must not be mixed up with this one."""


LSHTC1 = _Facts(
    name="LSHTC1",
    n_train=(83_805,),
    n_test=(5_000,),
    n_features=(328_282, 347_255),
    n_classes=(12_046, 12_294),
    why="the paper counts the features and labels that occur, other tables count all ids",
    other_split=(126_871, 31_718),
)
DMOZ = _Facts(
    name="DMOZ",
    n_train=(335_068, 345_068),
    n_test=(38_340,),
    n_features=(561_127, 833_484),
    n_classes=(11_879, 11_947),
    why="the paper counts the features and labels that occur, other tables count all ids, and 345,068 "
    "rows where the paper has 335,068",
)
ODP = _Facts(
    name="ODP",
    n_train=(975_936,),
    n_test=(493_014,),
    n_features=(423_000,),
    n_classes=(103_361,),
    why="the paper's 493,014 features repeat the number of test rows: there are about 423,000",
)


def load_lshtc1(folder: str | os.PathLike[str], *, check: bool = True) -> Dataset:
    r"""LSHTC1: web pages of the DMOZ directory, 12,046 labels; 83,805 training and 5,000 test rows.

    Parameters
    ----------
    folder : str or path
        Where the two files are: one with "train" in its name, one with "test", LIBSVM with one label
        a line, also packed by gzip, xz or bzip2.
    check : bool
        Whether to compare the counts with those of the paper. A wrong number of rows is an error, a
        wrong number of features or labels a warning.

    Returns
    -------
    Dataset
        The features of both parts have the same columns; ``label_names`` are the label numbers of the
        files. There are no texts and no feature names.

    Notes
    -----
    Another split of LSHTC1, with 126,871 and 31,718 rows, is easier (accuracies of 44 to 46 % instead
    of about 30 %). It is refused, because figures of the two must never be compared.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = pathlib.Path(folder.name, "LSHTC1.train").write_text("12 1:0.5 3:2\n7 2:1\n")
    >>> _ = pathlib.Path(folder.name, "LSHTC1.test").write_text("7 2:1 5:1\n")
    >>> data = load_lshtc1(folder.name, check=False)
    >>> data.X_train.shape, data.label_names
    ((2, 5), ['7', '12'])
    >>> folder.cleanup()
    """
    return _load(folder, LSHTC1, check)


def load_dmoz(folder: str | os.PathLike[str], *, check: bool = True) -> Dataset:
    r"""DMOZ: web pages of the DMOZ directory, 11,879 labels; 335,068 training and 38,340 test rows.

    Parameters
    ----------
    folder, check
        As for `load_lshtc1`.

    Returns
    -------
    Dataset
        As of `load_lshtc1`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = pathlib.Path(folder.name, "dmoz.train").write_text("12 1:0.5 3:2\n7 2:1\n")
    >>> _ = pathlib.Path(folder.name, "dmoz.test").write_text("7 2:1 5:1\n")
    >>> load_dmoz(folder.name, check=False).X_test.shape
    (1, 5)
    >>> folder.cleanup()
    """
    return _load(folder, DMOZ, check)


def load_odp(folder: str | os.PathLike[str], *, check: bool = True) -> Dataset:
    r"""ODP: web pages of the Open Directory, 103,361 labels; 975,936 training and 493,014 test rows.

    Parameters
    ----------
    folder, check
        As for `load_lshtc1`.

    Returns
    -------
    Dataset
        As of `load_lshtc1`.

    Notes
    -----
    About a fifth of the test rows have no feature. They are kept, as in the paper: leaving them out
    would raise the accuracy.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = pathlib.Path(folder.name, "odp.train").write_text("12 1:0.5 3:2\n7 2:1\n")
    >>> _ = pathlib.Path(folder.name, "odp.test").write_text("7 2:1 5:1\n")
    >>> load_odp(folder.name, check=False).X_test.shape
    (1, 5)
    >>> folder.cleanup()
    """
    return _load(folder, ODP, check)


def _load(folder: str | os.PathLike[str], facts: _Facts, check: bool) -> Dataset:
    paths = [_find(Path(folder), part, facts.name) for part in _PARTS]
    (X_train, y_train), (X_test, y_test) = load_libsvm_files(paths, labels="int")
    names, codes = np.unique(np.concatenate([y_train, y_test]), return_inverse=True)
    data = Dataset(
        X_train=X_train,
        y_train=codes[: len(y_train)],
        X_test=X_test,
        y_test=codes[len(y_train) :],
        text_train=None,
        text_test=None,
        label_names=[str(name) for name in names.tolist()],
        feature_names=None,
    )
    if check:
        _check_rows(data, facts)
        _compare_columns(data, facts)
    return data


def _find(folder: Path, part: str, name: str) -> Path:
    """The one file of a part; of several, the one that has the data set's name."""
    if not folder.is_dir():
        raise LocoleError(f"{folder} is no folder: name the one that holds {name}.")
    files = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    found = [path for path in files if _PARTS[part].search(path.name)]
    if len(found) > 1:
        found = [path for path in found if name.casefold() in path.name.casefold()] or found
    if len(found) == 1:
        return found[0]
    shown = ", ".join(path.name for path in (found or files)[:10]) or "nothing"
    raise LocoleError(
        f"{folder}: exactly one file with the word {part} in its name is needed, such as {name}.{part} "
        f"or {part}.svm.xz; there is {shown}."
    )


def _check_rows(data: Dataset, facts: _Facts) -> None:
    rows = data.X_train.shape[0], data.X_test.shape[0]
    if facts.other_split is not None and (
        rows[0] == facts.other_split[0] or rows[1] == facts.other_split[1]
    ):
        raise LocoleError(
            f"these {rows[0]:,} and {rows[1]:,} rows are another split of {facts.name}, on which "
            "accuracies are much higher: get the paper's split, or pass check=False and never compare "
            "figures of the two."
        )
    if rows[0] not in facts.n_train or rows[1] not in facts.n_test:
        raise LocoleError(
            f"{facts.name} has {_either(facts.n_train)} training and {_either(facts.n_test)} test rows, "
            f"not {rows[0]:,} and {rows[1]:,}: is it the right set, and complete? check=False takes it "
            "as it is."
        )


def _compare_columns(data: Dataset, facts: _Facts) -> None:
    """Warn of counts that are neither the paper's nor those of other tables."""
    used = np.zeros(data.X_train.shape[1], dtype=bool)
    used[data.X_train.indices] = True
    used[data.X_test.indices] = True
    n_used, n_ids, n_labels = int(used.sum()), used.size, len(data.label_names)
    # The number of ODP's features is known to three digits only.
    close = any(
        abs(n - known) <= known // 100 for n in (n_used, n_ids) for known in facts.n_features
    )
    if close and n_labels <= max(facts.n_classes):
        return
    warnings.warn(
        f"{facts.name}: {n_used:,} features occur (ids up to {n_ids:,}) and {n_labels:,} labels, but "
        f"{_either(facts.n_features)} features and {_either(facts.n_classes)} labels are known "
        f"({facts.why}).",
        LocoleWarning,
        stacklevel=4,
    )


def _either(counts: tuple[int, ...]) -> str:
    return " or ".join(f"{count:,}" for count in counts)
