"""The version, in the one place that packaging and the package both read."""

__version__ = "0.2.0.dev0"
