"""Classification with very many labels by low-coherence label embeddings."""

from locole._version import __version__
from locole.classifier import LocoleClassifier

__all__ = ["LocoleClassifier", "__version__"]
