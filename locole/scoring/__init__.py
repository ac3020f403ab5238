"""Everything that scores labels, behind one contract: `LabelScorer`."""

from locole.scoring.base import LabelScorer
from locole.scoring.ensemble import Ensemble
from locole.scoring.factors import FactorScorer
from locole.scoring.local_kernel import LocalKernelScorer
from locole.scoring.name_vectors import NameVectorScorer
from locole.scoring.names import NameScorer
from locole.scoring.nearest import NearestScorer
from locole.scoring.network import NetworkScorer
from locole.scoring.profiles import ProfileScorer
from locole.scoring.prototypes import PrototypeScorer
from locole.scoring.vectors import VectorScorer

__all__ = [
    "Ensemble",
    "FactorScorer",
    "LabelScorer",
    "LocalKernelScorer",
    "NameScorer",
    "NameVectorScorer",
    "NearestScorer",
    "NetworkScorer",
    "ProfileScorer",
    "PrototypeScorer",
    "VectorScorer",
]
