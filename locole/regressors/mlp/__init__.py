"""A neural network from sparse rows to points. Its dense layers are torch's, the first one is ours."""

from locole.regressors.mlp.estimator import MLPRegressor

__all__ = ["MLPRegressor"]
