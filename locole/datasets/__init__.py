"""Data sets with very many labels, and readers of the field's file formats."""

from locole.datasets.base import Dataset
from locole.datasets.city_names import load_city_names
from locole.datasets.dense import iter_dense, load_dense
from locole.datasets.files import Examples, iter_examples, read_examples
from locole.datasets.libsvm import iter_libsvm, load_libsvm, load_libsvm_files
from locole.datasets.npz import load_npz
from locole.datasets.published import load_dmoz, load_lshtc1, load_odp
from locole.datasets.synthetic import make_topics
from locole.datasets.tables import iter_texts, load_texts
from locole.datasets.writing import save_libsvm
from locole.datasets.xmc import iter_xmc, load_xmc

__all__ = [
    "Dataset",
    "Examples",
    "iter_dense",
    "iter_examples",
    "iter_libsvm",
    "iter_texts",
    "iter_xmc",
    "load_city_names",
    "load_dense",
    "load_dmoz",
    "load_libsvm",
    "load_libsvm_files",
    "load_lshtc1",
    "load_npz",
    "load_odp",
    "load_texts",
    "load_xmc",
    "make_topics",
    "read_examples",
    "save_libsvm",
]
