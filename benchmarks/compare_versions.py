"""Compare the answers of two versions of locole, bit for bit.

Every golden case of ``tests/io/golden_cases.py`` is fitted anew with each version, and every golden
model under ``tests/io/golden`` is loaded with each. This happens in separate processes, with the source
tree of the version as ``PYTHONPATH``. Labels, scores and their types must be equal exactly. With
``--data`` the default model is also fitted on real data, by both versions in turn, with CPU seconds.

A version is a folder that holds the package ``locole``, or a revision of this repository. It is given
the cases of its own tree. A tree without cases is given those of this repository or, where these cannot
be imported, the first ones in its history. ``golden_cases.NAMES`` lists names that parameters have had.

The exit code is 0 if everything is equal, and 1 if an answer differs, a version fails, or AFTER lacks a
case of BEFORE. Cases that only AFTER has are listed and not compared.

Examples
--------
::

    python benchmarks/compare_versions.py HEAD~5
    python benchmarks/compare_versions.py ../old . --only 'default*'
    python benchmarks/compare_versions.py HEAD --data ../shared/data --sets clinc150 --repeats 3
"""

from __future__ import annotations

import argparse
import fnmatch
import io
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "io" / "golden"
CASES = Path("tests", "io", "golden_cases.py")
SETS = ("clinc150", "gesetze_de")
K = 5
# Enough rows for every kernel of the default model to be compiled before the clock starts.
_WARM_UP_ROWS = 3000

#: Answers by what was asked, such as ``("fit", "softmax", "labels")``.
Answers = dict[tuple[str, str, str], np.ndarray]


# Versions -----------------------------------------------------------------------------------------


def source_tree(version: str, scratch: Path) -> Path:
    """Folder of a version: itself, or a revision exported from git."""
    if (Path(version) / "locole" / "__init__.py").exists():
        return Path(version).resolve()
    tree = scratch / "exported" / version.replace(os.sep, "_")
    archive = _git("archive", version)
    if archive is None:
        raise SystemExit(f"{version} is neither a folder with locole in it nor a revision.")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(tree, filter="data")
    return tree


def case_folders(tree: Path, scratch: Path) -> list[Path]:
    """Folders whose cases are tried for a version, in this order."""
    if (tree / CASES).exists():
        return [(tree / CASES).parent]
    folders = [(ROOT / CASES).parent]
    commits = (_git("log", "--diff-filter=A", "--format=%H", "--", CASES.as_posix()) or b"").split()
    first = _git("show", f"{commits[-1].decode()}:{CASES.as_posix()}") if commits else None
    if first is not None:
        folders.append(scratch / "first")
        folders[-1].mkdir(exist_ok=True)
        (folders[-1] / CASES.name).write_bytes(first)
    return folders


def _git(*words: str) -> bytes | None:
    """Output of a command of git; None if it fails."""
    run = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False)
    return run.stdout if run.returncode == 0 else None


def run_child(tree: Path, output: Path, *words: str) -> Answers:
    """Answers of one version, from a process that sees no other."""
    command = [sys.executable, "-P", __file__, "--child", str(tree), str(output), *words]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONWARNINGS": "ignore"}
    run = subprocess.run(
        command, env=environment, cwd=output.parent, capture_output=True, text=True, check=False
    )
    if run.returncode != 0:
        raise SystemExit(f"{tree} failed:\n{run.stderr[-2000:]}")
    with np.load(output) as found:
        return {tuple(key.split("|")): found[key] for key in found.files}


# In the child -------------------------------------------------------------------------------------


def child(tree: str, output: str, task: str, *words: str) -> None:
    """Answer with the version that this process sees, and write the answers down."""
    import locole

    if not Path(locole.__file__).resolve().is_relative_to(tree):
        raise SystemExit(f"locole was imported from {locole.__file__}, not from {tree}.")
    answers = {"golden": golden_answers, "data": data_answers}[task](*words)
    np.savez(output, **{"|".join(key): value for key, value in answers.items()})


def golden_answers(pattern: str, *folders: str) -> Answers:
    """Answers of every case fitted anew, and of every golden model that this version can read."""
    from locole import load
    from locole.io import FORMAT

    cases = _imported_cases(folders)
    answers: Answers = {}
    for name, case in cases.items():
        if not fnmatch.fnmatch(name, pattern):
            continue
        answers |= _asked("fit", name, case, case.fitted)
        for number in range(1, FORMAT + 1):
            path = GOLDEN / f"format{number}" / name
            if path.exists():
                answers |= _asked(f"load format {number}", name, case, partial(load, path))
    return answers


def _imported_cases(folders: tuple[str, ...]) -> dict[str, Any]:
    """Cases of the first folder whose cases can be imported."""
    for place, folder in enumerate(folders):
        sys.path.insert(0, folder)
        try:
            import golden_cases
        except (ImportError, AttributeError):
            if place == len(folders) - 1:
                raise
            sys.path.remove(folder)
        else:
            return golden_cases.CASES
    raise SystemExit("there are no cases")


def _asked(task: str, name: str, case: Any, make: Callable[[], Any]) -> Answers:
    """Answers of one model, or what went wrong."""
    try:
        found = case.ask(make())
    except Exception as error:  # the others are still compared
        found = {"error": np.array(f"{type(error).__name__}: {error}")}
    return {(task, name, what): value for what, value in found.items()}


def data_answers(folder: str, name: str) -> Answers:
    """Answers of the default model about the test rows, and CPU seconds of fit and answers."""
    from locole import LocoleClassifier

    X, X_test = (sp.load_npz(Path(folder) / f"X_{part}.npz") for part in ("train", "test"))
    y = np.load(Path(folder) / "y_train.npy")
    rows = slice(0, _WARM_UP_ROWS)
    LocoleClassifier().fit(X[rows], y[rows]).predict_topk(X_test[rows], k=K)
    times = [time.process_time()]
    model = LocoleClassifier().fit(X, y)
    times.append(time.process_time())
    labels, scores = model.predict_topk(X_test, k=K)
    times.append(time.process_time())
    found = {"labels": labels, "scores": scores, "cpu_s": np.diff(times)}
    return {("data", name, what): value for what, value in found.items()}


# Comparison ---------------------------------------------------------------------------------------


def same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether type, shape and every bit are equal."""
    kinds = [(array.dtype, array.shape) for array in (left, right)]
    return kinds[0] == kinds[1] and left.tobytes() == right.tobytes()


def difference(left: np.ndarray, right: np.ndarray) -> float:
    """Largest absolute difference of two tables of scores; NaN if their shapes differ."""
    if left.shape != right.shape:
        return float("nan")
    apart = np.abs(left.astype(np.float64) - right.astype(np.float64))
    return float(np.where(left == right, 0.0, apart).max(initial=0.0))


def compare(before: Answers, after: Answers) -> bool:
    """Print a line for each model; True if all are equal."""
    models = list(dict.fromkeys(key[:2] for key in [*before, *after]))
    width = max((len(name) for _, name in models), default=0)
    print(f"{'':15} {'model':{width}} {'labels':>8} {'scores':>8} {'max |difference|':>17}")
    results = [
        _compare_model(task, name, width, *(_of_model(a, task, name) for a in (before, after)))
        for task, name in models
    ]
    n_equal, n_other = results.count(True), results.count(False)
    print(f"\n{n_equal} equal bit for bit, {n_other} not; {results.count(None)} only in AFTER")
    return n_other == 0


def _of_model(answers: Answers, task: str, name: str) -> dict[str, np.ndarray]:
    return {key[2]: value for key, value in answers.items() if key[:2] == (task, name)}


def _compare_model(
    task: str,
    name: str,
    width: int,
    before: dict[str, np.ndarray],
    after: dict[str, np.ndarray],
) -> bool | None:
    """Print one line; True if equal, None if there is nothing to compare with."""
    start = f"{task:15} {name:{width}}"
    errors = [str(side["error"]) for side in (before, after) if "error" in side]
    if errors or not after:
        print(f"{start} failed: {'; '.join(errors) or 'not there in AFTER'}")
        return False
    if not before:
        print(f"{start} only in AFTER")
        return None
    tables = [what for what in before if what.endswith("scores")]
    if any(what not in after for what in tables):
        print(f"{start} failed: AFTER answers with {', '.join(after)}")
        return False
    labels = same_bits(before["labels"], after["labels"])
    scores = all(same_bits(before[what], after[what]) for what in tables)
    largest = max(difference(before[what], after[what]) for what in tables)
    said = ["equal" if is_same else "DIFFER" for is_same in (labels, scores)]
    print(f"{start} {said[0]:>8} {said[1]:>8} {largest:17.3g}")
    return labels and scores


# Real data ----------------------------------------------------------------------------------------


def convert(name: str, data: Path, folder: Path) -> None:
    """Write what every child reads. Nothing of locole is used: it might be neither version's."""
    folder.mkdir()
    n_features = None
    for part in ("train", "test"):
        with lzma.open(data / name / f"{part}.svm.xz") as file:
            X, y = load_svmlight_file(
                file, n_features=n_features, dtype=np.float32, zero_based=False
            )
        n_features = X.shape[1]
        sp.save_npz(folder / f"X_{part}.npz", X, compressed=False)
        np.save(folder / f"y_{part}.npy", y.astype(np.int64))


def compare_on_data(
    name: str, data: Path, trees: list[Path], scratch: Path, *, repeats: int
) -> bool:
    """Fit the default model with both versions in turn; True if the answers are equal."""
    folder = scratch / name
    convert(name, data, folder)
    found: list[Answers] = [{}, {}]
    seconds = np.full((2, repeats, 2), np.nan)
    for turn in range(repeats):
        for side, tree in enumerate(trees):
            answers = run_child(tree, folder / "out.npz", "data", str(folder), name)
            seconds[side, turn] = answers.pop(("data", name, "cpu_s"))
            found[side] = answers
    print()
    is_equal = compare(*found)
    truth = np.load(folder / "y_test.npy")
    for side, label in enumerate(("before", "after")):
        accuracy = (found[side]["data", name, "labels"][:, 0] == truth).mean()
        fit, predict = seconds[side].min(axis=0)
        print(
            f"{name} {label}: fit {fit:.2f} CPU s, predict {predict:.2f} CPU s (least of {repeats}), "
            f"accuracy {100 * accuracy:.2f} %"
        )
    return is_equal


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", help="folder with the package locole in it, or a git revision")
    parser.add_argument(
        "after", nargs="?", default=str(ROOT), help="the same; by default this repository"
    )
    parser.add_argument(
        "--only", default="*", metavar="PATTERN", help="names of cases, such as 'default*'"
    )
    parser.add_argument("--data", type=Path, help="folder with <set>/train.svm.xz and test.svm.xz")
    parser.add_argument("--sets", nargs="+", default=SETS, help="data sets to fit (%(default)s)")
    parser.add_argument("--repeats", type=int, default=1, help="fits of each set by each version")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="locole-compare-") as name:
        scratch = Path(name)
        trees = [source_tree(version, scratch) for version in (options.before, options.after)]
        found = [
            run_child(
                tree,
                scratch / f"golden-{side}.npz",
                *("golden", options.only, *map(str, case_folders(tree, scratch))),
            )
            for side, tree in enumerate(trees)
        ]
        if not any(found):
            parser.error(f"no case has a name like {options.only!r}")
        is_equal = compare(*found)
        for data_set in options.sets if options.data else ():
            is_equal &= compare_on_data(
                data_set, options.data, trees, scratch, repeats=options.repeats
            )
    return 0 if is_equal else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        sys.exit(main())
