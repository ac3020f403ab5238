"""Which unit vector represents a label."""

from locole.embeddings.assignment import group_columns
from locole.embeddings.base import Embedding, InnerProducts
from locole.embeddings.explicit import Explicit
from locole.embeddings.nelson import Nelson
from locole.embeddings.one_hot import OneHot, Simplex
from locole.embeddings.quadratic import DelsarteGoethals, Gold, Kerdock
from locole.embeddings.random import ComplexGaussian, Gaussian, Rademacher
from locole.embeddings.reed_solomon import ReedSolomonSimplex
from locole.embeddings.registry import FAMILIES, make_embedding

__all__ = [
    "FAMILIES",
    "ComplexGaussian",
    "DelsarteGoethals",
    "Embedding",
    "Explicit",
    "Gaussian",
    "Gold",
    "InnerProducts",
    "Kerdock",
    "Nelson",
    "OneHot",
    "Rademacher",
    "ReedSolomonSimplex",
    "Simplex",
    "group_columns",
    "make_embedding",
]
