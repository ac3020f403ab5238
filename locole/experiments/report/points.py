"""Points of t-SNE pictures: reading them, and how evenly they lie."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from locole.experiments.report.entries import Entry

__all__ = ["clark_evans", "read_points"]

_MOST_POINTS = 100_000


def read_points(folder: Path, entry: Entry) -> NDArray | None:
    """Points x, y, index of a picture of vectors; None if the file is missing or holds none."""
    name = entry.texts.get("points", "")
    # A record names a file beside itself, and nothing else on this machine.
    if not name or name != Path(name).name or "\\" in name or not (folder / name).is_file():
        return None
    points: list[list[float]] = []
    with open(folder / name, encoding="utf-8", errors="replace", newline="") as file:
        for line in csv.reader(file):
            try:
                row = [float(cell) for cell in line[:3]]
            except ValueError:  # the header
                continue
            if len(row) >= 2 and all(map(math.isfinite, row)):
                points.append([*row, float(len(points))][:3])
            if len(points) == _MOST_POINTS:
                break
    return np.array(points) if len(points) >= 2 else None


def clark_evans(points: NDArray) -> float | None:
    """Mean distance to the nearest neighbour, relative to points thrown at random on the convex hull.

    Examples
    --------
    >>> grid = np.stack(np.meshgrid(range(30), range(30)), axis=-1).reshape(-1, 2)
    >>> 1.9 < clark_evans(grid.astype(float)) < 2.1
    True
    """
    from scipy.spatial import ConvexHull, QhullError, cKDTree

    place = np.unique(np.asarray(points, dtype=float)[:, :2], axis=0)
    if len(place) < 10:
        return None
    try:
        area = ConvexHull(place).volume
    except QhullError:  # all on a line
        return None
    nearest = cKDTree(place).query(place, k=2)[0][:, 1].mean()
    return float(nearest / (0.5 * math.sqrt(area / len(place))))
