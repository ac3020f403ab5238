"""The one table of methods: what they are called by the classifier, specs, records and options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["METHODS", "Method", "names_of"]

Kind = Literal["default", "regressor", "baseline"]


@dataclass(frozen=True)
class Method:
    """What there is to know of a method before anything heavy is imported.

    Attributes
    ----------
    title : str
        What people call it.
    kind : {"default", "regressor", "baseline"}
        The default model; a regressor for `locole.LocoleClassifier`, which takes an embedding and a dim;
        or a system that locole is compared with.
    made : str
        Class of `locole.regressors` or `locole.baselines`.
    preset : dict
        Parameters that differ from those of the class where the regressor is taken by its name.
    needs : str
        The extra of the package that it needs, and by a colon the module that this brings.
    seeded : bool
        Whether another seed may give another answer.
    engines : bool
        Whether its fit can be distributed.
    """

    title: str
    kind: Kind
    made: str = ""
    preset: dict[str, Any] = field(default_factory=dict)
    needs: str = ""
    seeded: bool = True
    engines: bool = False

    @property
    def embedded(self) -> bool:
        """Whether it takes an embedding and a dim."""
        return self.kind == "regressor"


def _baseline(title: str, made: str, **others: Any) -> Method:
    return Method(title, "baseline", made, **others)


#: Name → method, in the order of tables.
METHODS = {
    "elastic_net": Method("elastic net", "regressor", "ElasticNetRegressor", engines=True),
    "kernel": Method("kernel ridge regression", "regressor", "KernelRegressor"),
    "softmax": Method("softmax", "regressor", "SoftmaxRegressor"),
    "mlp": Method(
        "network",
        "regressor",
        "MLPRegressor",
        {"recipe": "labels", "patience": 8},
        "mlp:torch",
        engines=True,
    ),
    "auto": Method("locole, defaults", "default"),
    "mlp_cross_entropy": _baseline("MLP (CE)", "MLPCrossEntropy", needs="mlp:torch"),
    "mlp_squared_error": _baseline("MLP (SE)", "MLPSquaredError", needs="mlp:torch"),
    "annexml": _baseline("AnnexML", "AnnexML"),
    "parabel": _baseline("Parabel", "Parabel"),
    "bonsai": _baseline("Bonsai", "Bonsai"),
    "wltls": _baseline("W-LTLS", "WLTLS"),
    "mach": _baseline("MACH", "MACH"),
    "pd_sparse": _baseline("PD-Sparse", "PDSparse"),
    "ppd_sparse": _baseline("PPD-Sparse", "PPDSparse", engines=True),
    "linear_one_vs_rest": _baseline("linear one-vs-rest", "LinearOneVsRest"),
    "centroids": _baseline("class centroids", "Centroids", seeded=False),
}


def names_of(*kinds: Kind) -> list[str]:
    """Names of the methods of these kinds.

    Examples
    --------
    >>> names_of("regressor")
    ['elastic_net', 'kernel', 'softmax', 'mlp']
    """
    return [name for name, method in METHODS.items() if method.kind in kinds]
