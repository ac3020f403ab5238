"""``locole report``: records in, one HTML page out, with its figures and tables as files beside it."""

from locole.experiments.report.overview import markdown_tables
from locole.experiments.report.writing import Written, write_report

__all__ = ["Written", "markdown_tables", "write_report"]
