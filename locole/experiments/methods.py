"""Methods by name: the one table from the names in specs and records to estimators."""

from __future__ import annotations

import importlib.util
import inspect
from dataclasses import dataclass
from typing import Any

from locole.exceptions import LocoleError
from locole.experiments.runs import Run

__all__ = ["ENGINES", "METHODS", "Method", "make_estimator", "missing_package"]

#: Where fits can run.
ENGINES = ("threads", "ray")


@dataclass(frozen=True)
class Method:
    """How a name becomes an estimator.

    Attributes
    ----------
    made : str
        Class of `locole.regressors`, for `LocoleClassifier`, or of `locole.baselines`; empty for the
        default model.
    embedded : bool
        Whether it takes an embedding and a dim.
    needs : str
        The extra of the package that it needs, and by a colon the module that this brings.
    seeded : bool
        Whether another seed may give another answer.
    engines : bool
        Whether its fit can be distributed.
    """

    made: str
    embedded: bool = False
    needs: str = ""
    seeded: bool = True
    engines: bool = False


#: Name → method.
METHODS = {
    "elastic_net": Method("ElasticNetRegressor", embedded=True, engines=True),
    "softmax": Method("SoftmaxRegressor", embedded=True),
    "mlp": Method("MLPRegressor", embedded=True, needs="mlp:torch", engines=True),
    "auto": Method(""),
    "mlp_cross_entropy": Method("MLPCrossEntropy", needs="mlp:torch"),
    "mlp_squared_error": Method("MLPSquaredError", needs="mlp:torch"),
    "pd_sparse": Method("PDSparse"),
    "ppd_sparse": Method("PPDSparse", engines=True),
    "parabel": Method("Parabel"),
    "bonsai": Method("Bonsai"),
    "annexml": Method("AnnexML"),
    "wltls": Method("WLTLS"),
    "mach": Method("MACH"),
    "linear_one_vs_rest": Method("LinearOneVsRest"),
    "centroids": Method("Centroids", seeded=False),
}


def missing_package(run: Run) -> str | None:
    """Say what must be installed for a run, if something must.

    Examples
    --------
    >>> missing_package(Run("table2", "clinc150", "centroids")) is None
    True
    """
    needs = [METHODS[run.method].needs] if run.method in METHODS else []
    needs += ["ray:ray"] if run.engine == "ray" else []
    for need in filter(None, needs):
        extra, module = need.split(":")
        if importlib.util.find_spec(module) is None:
            return f"install locole[{extra}]: {run.title} needs the package {module}"
    return None


def make_estimator(run: Run, *, threads: int) -> Any:
    """Make the estimator of a run, ready for `fit`.

    Parameters
    ----------
    run : Run
    threads : int
        ``n_jobs`` of the estimator.

    Examples
    --------
    >>> make_estimator(Run("mine", "clinc150", "elastic_net", embedding="gold", dim=128), threads=2)
    LocoleClassifier(dim=128, embedding='gold', n_jobs=2, profiles=False,
                     regressor=ElasticNetRegressor())
    >>> make_estimator(Run("mine", "clinc150", "parabel", settings='{"n_trees":1}'), threads=1)
    Parabel(n_jobs=1, n_trees=1)
    """
    method = METHODS[run.method]
    if method.made == "" or method.embedded:
        return _classifier(run, method, threads)
    import locole.baselines

    kind = getattr(locole.baselines, method.made, None)
    if kind is None:
        raise LocoleError(f"this version of locole has no {method.made}: get a newer one.")
    given = {"random_state": run.seed, "n_jobs": threads, **_engine(run, method, kind)}
    known = inspect.signature(kind).parameters
    ready = {name: value for name, value in given.items() if name in known}
    return kind(**_checked(run, run.parameters, kind, given), **ready)


def _classifier(run: Run, method: Method, threads: int) -> Any:
    """Locole's own model with the regressor, the embedding and the dim of the run."""
    import locole.regressors
    from locole import LocoleClassifier

    regressor: Any = "auto"
    settings = run.parameters
    # A regressor that is named is meant alone.
    profiles = settings.pop("profiles", False if method.made else "auto")
    if method.made:
        kind = getattr(locole.regressors, method.made)
        regressor = kind(**_checked(run, settings, kind, {"random_state"}), random_state=run.seed)
    elif settings:
        raise LocoleError(f"the method {run.method} has no settings but profiles.")
    return LocoleClassifier(
        profiles=profiles,
        embedding=run.embedding or "auto",
        dim=run.dim,
        regressor=regressor,
        random_state=run.seed,
        n_jobs=threads,
        **_engine(run, method, LocoleClassifier),
    )


def _checked(run: Run, settings: dict[str, Any], kind: Any, ours: Any) -> dict[str, Any]:
    """Settings of the run, if the class has them."""
    known = [name for name in inspect.signature(kind).parameters if name not in ours]
    for name in settings:
        if name not in known:
            raise LocoleError(
                f"the method {run.method} has no setting {name!r}; it has {', '.join(known)}."
            )
    return settings


def _engine(run: Run, method: Method, kind: Any) -> dict[str, Any]:
    if run.engine == "threads":
        return {}
    if not method.engines or "engine" not in inspect.signature(kind).parameters:
        raise LocoleError(f"{run.method} cannot be fitted on {run.engine}: take engine threads.")
    return {"engine": run.engine}
