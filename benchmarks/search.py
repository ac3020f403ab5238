"""The same small validation search for every system: ``make bench-linear ARGS=--search``."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: share of the training rows that settings are compared on, drawn once for all systems
VALIDATION = 0.2

#: what is tried beside the setting of the other table: parameters that each system's own documents name
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "locole": [
        {"nearest": True},
        {"factors": False},
        {"dim": 512},
        {"regressor": "softmax"},
    ],
    "output_code": [{"alpha": alpha} for alpha in (1e-7, 3e-7, 3e-6, 1e-5)],
    "pecos": [{"Cp": 4.0}, {"Cp": 16.0}, {"Cn": 4.0, "Cp": 4.0}, {"threshold": 0.01}],
    "omikuji": [
        {"linear_c": 0.3},
        {"linear_c": 3.0},
        {"linear_loss_type": 1},  # log; 0 is the squared hinge
        {"linear_loss_type": 1, "linear_c": 10.0},
        {"min_branch_size": 20},
    ],
    "napkinxc": [
        {"liblinear_c": 3},
        {"liblinear_c": 30},
        {"loss": "l2", "liblinear_c": 1},
        {"max_leaves": 400},
        {"arity": 16},
    ],
    "fasttext": [
        {"lr": 0.5},
        {"lr": 2.0},
        {"epoch": 50},
        {"epoch": 50, "dim": 100},
        {"dim": 200},
    ],
    "libmultilabel": [{"C": C} for C in (0.3, 3.0, 10.0)],
    "libmultilabel-tree": [{"C": C} for C in (0.3, 3.0, 10.0)],
    "vowpalwabbit": [
        {"learning_rate": 0.2},
        {"learning_rate": 1.0},
        {"passes": 10},
        {"learning_rate": 1.0, "passes": 10},
        {"kary_tree": 2},
    ],
}


def divided(rows: Any) -> Any:
    """The training rows alone: a fifth of them, always the same, in place of the test rows."""
    n_rows = rows.X_train.shape[0]
    order = np.random.default_rng(1).permutation(n_rows)
    test, train = np.split(order, [round(VALIDATION * n_rows)])
    X, y, text = rows.X_train.tocsr(), np.asarray(rows.y_train), rows.text_train

    def texts(some: np.ndarray) -> list[str] | None:
        return None if text is None else [text[i] for i in some]

    return type(rows)(X[train], y[train], X[test], y[test], texts(train), texts(test))


def searched(
    system: Any,
    settings: list[dict[str, Any]],
    run: Callable[..., dict[str, Any]],
    folders: tuple[Path, Path],
    *,
    limit_s: float,
) -> dict[str, Any]:
    """Try settings on validation rows, then fit the best one to all rows: the record of that fit.

    Parameters
    ----------
    system : System
        With its own setting, which is tried first.
    settings : list of dict
        Parameters that are tried after it; of equally good ones the first is taken.
    run : callable
        Takes a system, a folder of data and ``limit_s``.
    folders : (path, path)
        Rows divided for the search, and all rows with the test rows.
    limit_s : float
        Seconds for the whole search, and once more for the fit. What is not tried by then is left out.
    """
    begun = time.perf_counter()
    tried: list[dict[str, Any]] = []
    for options in [{}, *settings]:
        left = limit_s - (time.perf_counter() - begun)
        if left <= 0:
            tried.append({"options": options, "status": "left out: no time"})
            continue
        start = time.perf_counter()
        found = run(with_options(system, options), folders[0], limit_s=left)
        kept = ("status", "accuracy_1", "accuracy_5", "train_cpu_s", "predict_cpu_s")
        figures = {name: found[name] for name in kept if name in found}
        tried.append({"options": options, **figures, "wall_s": time.perf_counter() - start})
    search = {"limit_s": limit_s, "tried": tried, "cpu_s": sum(map(cpu_s, tried))}
    done = [one for one in tried if one["status"] == "done"]
    if not done:
        return {"status": tried[0]["status"], "search": search}
    best = max(done, key=lambda one: one["accuracy_1"])["options"]
    final = run(with_options(system, best), folders[1], limit_s=limit_s)
    return {**final, "options": best, "search": search}


def cpu_s(one: dict[str, Any]) -> float:
    """CPU seconds of a try; of one that was stopped, at least its wall seconds."""
    if one["status"] == "done":
        return float(one["train_cpu_s"] + one["predict_cpu_s"])
    return float(one.get("wall_s", 0))


def with_options(system: Any, options: dict[str, Any]) -> Any:
    """Return the system with these parameters in place of its own."""
    return dataclasses.replace(system, options=json.dumps(options))
