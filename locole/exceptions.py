"""What can go wrong, each with a message that says what to do."""

from __future__ import annotations

__all__ = ["CapacityError", "DimensionError", "LocoleError", "LocoleWarning", "ModelFileError"]


class LocoleError(ValueError):
    """Bad input to locole; a ``ValueError``, so callers need not know the class."""


class DimensionError(LocoleError):
    """A dimension that the embedding's construction cannot have."""


class CapacityError(LocoleError):
    """More labels than the embedding has vectors."""

    def __init__(self, *, name: str, n_classes: int, capacity: int, way_out: str) -> None:
        super().__init__(
            f"{n_classes:,} labels do not fit into {name}, which has {capacity:,} vectors: {way_out}."
        )
        self.n_classes = n_classes
        self.capacity = capacity


class ModelFileError(LocoleError):
    """A model that a file cannot hold, or a file that holds no model."""


class LocoleWarning(UserWarning):
    """Something that works, but not as well as it could."""
