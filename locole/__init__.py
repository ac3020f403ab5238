"""Classification with very many labels by low-coherence label embeddings."""

from typing import TYPE_CHECKING, Any

from locole._version import __version__

if TYPE_CHECKING:
    from locole.classifier import LocoleClassifier
    from locole.models import load

__all__ = ["LocoleClassifier", "__version__", "load"]


def __getattr__(name: str) -> Any:
    """Import when asked for: the command line shows its help without scikit-learn and numba."""
    if name == "LocoleClassifier":
        from locole.classifier import LocoleClassifier

        return LocoleClassifier
    if name == "load":
        from locole.models import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
