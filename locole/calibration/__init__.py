"""From scores to answers that can be trusted."""

from locole.calibration.marginals import Marginals

__all__ = ["Marginals"]
