"""Experiments: a spec names runs, every run leaves one flat record, reports read records only."""

from locole.experiments.records import read
from locole.experiments.runner import run_spec
from locole.experiments.runs import Run
from locole.experiments.spec import Spec, load_spec, shipped_specs

__all__ = ["Run", "Spec", "load_spec", "read", "run_spec", "shipped_specs"]
