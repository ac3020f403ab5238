"""The systems that the paper compares with, and simpler anchors, behind one interface."""

from locole.baselines.base import Baseline
from locole.baselines.centroids import Centroids

__all__ = ["Baseline", "Centroids"]
