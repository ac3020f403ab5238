"""The systems that the paper compares with, and simpler anchors, behind one interface."""

from locole.baselines.annexml import AnnexML
from locole.baselines.base import Baseline
from locole.baselines.centroids import Centroids
from locole.baselines.mach import MACH
from locole.baselines.networks import MLPCrossEntropy, MLPSquaredError
from locole.baselines.one_vs_rest import LinearOneVsRest
from locole.baselines.parabel import Bonsai, Parabel
from locole.baselines.pd_sparse import PDSparse
from locole.baselines.ppd_sparse import PPDSparse
from locole.baselines.wltls import WLTLS

__all__ = [
    "MACH",
    "WLTLS",
    "AnnexML",
    "Baseline",
    "Bonsai",
    "Centroids",
    "LinearOneVsRest",
    "MLPCrossEntropy",
    "MLPSquaredError",
    "PDSparse",
    "PPDSparse",
    "Parabel",
]
