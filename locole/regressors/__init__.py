"""From features to a point in the embedding's space."""

from locole.regressors.adapter import RegressorAdapter
from locole.regressors.base import TargetRegressor, TargetsLike
from locole.regressors.elastic_net import ElasticNetRegressor
from locole.regressors.kernel import KernelRegressor
from locole.regressors.mlp import MLPRegressor
from locole.regressors.softmax import SoftmaxRegressor

__all__ = [
    "ElasticNetRegressor",
    "KernelRegressor",
    "MLPRegressor",
    "RegressorAdapter",
    "SoftmaxRegressor",
    "TargetRegressor",
    "TargetsLike",
]
