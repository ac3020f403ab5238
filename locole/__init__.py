"""Classification with very many labels by low-coherence label embeddings."""

from typing import TYPE_CHECKING, Any

from locole._version import __version__
from locole.classifier import LocoleClassifier

if TYPE_CHECKING:
    from locole.models import load

__all__ = ["LocoleClassifier", "__version__", "load"]


def __getattr__(name: str) -> Any:
    """Import what only some programs need when it is asked for."""
    if name == "load":
        from locole.models import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
