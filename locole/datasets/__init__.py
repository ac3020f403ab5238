"""Data sets with very many labels, ready to fit: one file per set."""

from locole.datasets.city_names import Dataset, load_city_names

__all__ = ["Dataset", "load_city_names"]
