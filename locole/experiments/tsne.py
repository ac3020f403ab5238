"""Pictures of vectors: points in the plane by t-SNE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from locole.datasets.writing import complete_or_absent
from locole.embeddings import make_embedding
from locole.experiments.machine import Stopwatch
from locole.experiments.runs import Run

__all__ = ["draw", "points_name"]


def points_name(run: Run) -> str:
    """Name of the file of points.

    Examples
    --------
    >>> points_name(Run("tsne", "", "tsne", embedding="nelson", dim=127))
    'tsne_nelson.csv'
    """
    words = [run.experiment, run.embedding]
    words += [f"seed{run.seed}"] if run.seed else []
    words += ["quick"] if run.quick else []
    return "_".join(words) + ".csv"


def draw(run: Run, folder: Path) -> dict[str, Any]:
    """Write the points of a run's vectors, and return the outcome's part of its record.

    Parameters
    ----------
    run : Run
        Its family, dim and seed; the option ``vectors`` of its data says how many.
    folder : Path
        Where the file of points goes: lines of x, y and the number of the label.
    """
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    from locole.theory import coherence

    n = run.options["vectors"]
    embedding = make_embedding(run.embedding, n, dim=run.dim, random_state=run.seed)
    vectors = embedding.real_rows(np.arange(n))
    picture = TSNE(2, init="random", perplexity=min(30, (n - 1) / 4), random_state=run.seed)
    # One thread: sums in another order would move every point.
    with Stopwatch() as watch, threadpool_limits(1):
        points = picture.fit_transform(vectors)
    lines = [f"{x:.6g},{y:.6g},{label}\n" for label, (x, y) in enumerate(points.tolist())]
    with complete_or_absent(folder / points_name(run)) as file:
        file.write(("x,y,label\n" + "".join(lines)).encode())
    return {
        "status": "done",
        "outputs": int(embedding.real_dim),
        "coherence": round(float(coherence(embedding)), 6),
        "fit_wall_s": watch.wall_s,
        "fit_cpu_s": watch.cpu_s,
        "labels": n,
        "points": points_name(run),
    }
