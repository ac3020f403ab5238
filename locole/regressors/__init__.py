"""From features to a point in the embedding's space."""

from locole.regressors.adapter import RegressorAdapter
from locole.regressors.base import TargetRegressor, TargetsLike
from locole.regressors.elastic_net import ElasticNetRegressor

__all__ = ["ElasticNetRegressor", "RegressorAdapter", "TargetRegressor", "TargetsLike"]
