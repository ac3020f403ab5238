"""Embeddings by name."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from locole.embeddings.assignment import AssignmentLike
from locole.embeddings.base import Embedding
from locole.embeddings.explicit import Explicit
from locole.embeddings.nelson import Nelson
from locole.embeddings.one_hot import OneHot, Simplex
from locole.embeddings.quadratic import DelsarteGoethals, Gold, Kerdock
from locole.embeddings.random import ComplexGaussian, Gaussian, Rademacher
from locole.embeddings.reed_solomon import ReedSolomonSimplex
from locole.exceptions import LocoleError
from locole.io import saved_as

__all__ = ["FAMILIES", "make_embedding"]

#: Generated families by name; `Explicit` needs vectors and has no entry.
FAMILIES: dict[str, type[Embedding]] = {
    family.name: family
    for family in (
        Rademacher,
        Gaussian,
        ComplexGaussian,
        Nelson,
        Kerdock,
        DelsarteGoethals,
        Gold,
        ReedSolomonSimplex,
        OneHot,
        Simplex,
    )
}

for _name, _family in FAMILIES.items():
    saved_as(f"embedding.{_name}")(_family)
saved_as("embedding.explicit")(Explicit)

# Up to this many labels one output a label is cheap and loses nothing.
_FEW_LABELS = 256
# Capacity of Gold-512: fewer outputs train faster and lose little at first place, more at the top five.
_GOLD_LABELS = 512**2


def make_embedding(
    name: str,
    n_classes: int,
    *,
    dim: int | None = None,
    random_state: int = 0,
    assignment: AssignmentLike = "index",
    **options: Any,
) -> Embedding:
    """Make an embedding by name.

    Parameters
    ----------
    name : str
        rademacher, gaussian, complex_gaussian, nelson, kerdock, delsarte_goethals, gold,
        reed_solomon, one_hot, simplex, or auto: one_hot up to 256 labels, gold (512 outputs) up to
        262,144, kerdock above; with a dim the structured code that has it, or else rademacher.
    n_classes : int
        Number of labels.
    dim : int, optional
        Entries of a vector; by default the family's own choice for this many labels.
    random_state : int
        Seed of random vectors and of ``assignment="random"``.
    assignment : {"index", "random"} or array
        Which column each label gets.
    **options
        Further parameters of the family, e.g. ``r=3`` for nelson.

    Returns
    -------
    Embedding
        Of the family of that name.

    Examples
    --------
    >>> make_embedding("kerdock", 12046, dim=256)
    Kerdock(n_classes=12046, dim=256)
    >>> make_embedding("auto", 12046)
    Gold(n_classes=12046, dim=512)
    """
    if name == "auto":
        name = _auto(n_classes, dim)
    if name not in FAMILIES:
        raise LocoleError(f"unknown embedding {name!r}: take one of {', '.join(FAMILIES)}, auto.")
    family = FAMILIES[name]
    if dim is None:
        dim = family.default_dim(int(np.maximum(n_classes, 1)))
    known = inspect.signature(family.__init__).parameters
    for option in options:
        if option not in known:
            raise LocoleError(f"{name} has no parameter {option!r}: leave it out.")
    return family(n_classes, dim, random_state=random_state, assignment=assignment, **options)


def _auto(n_classes: int, dim: int | None) -> str:
    if dim is None:
        few = n_classes <= _FEW_LABELS
        return "one_hot" if few else "gold" if n_classes <= _GOLD_LABELS else "kerdock"
    if dim >= 4 and dim & (dim - 1) == 0 and n_classes <= dim * dim // 2:
        return "kerdock" if dim.bit_length() % 2 == 1 else "gold" if dim >= 8 else "rademacher"
    return "rademacher"
