"""From scores to answers that can be trusted: probabilities, thresholds, label sets with a guarantee."""

from locole.calibration.calibration import MIN_ROWS, Calibration
from locole.calibration.conformal import SetRule, in_sets, set_rule
from locole.calibration.marginals import Marginals
from locole.calibration.probabilities import SHORT_LIST, Probabilities
from locole.calibration.thresholds import Threshold, error_threshold

__all__ = [
    "MIN_ROWS",
    "SHORT_LIST",
    "Calibration",
    "Marginals",
    "Probabilities",
    "SetRule",
    "Threshold",
    "error_threshold",
    "in_sets",
    "set_rule",
]
