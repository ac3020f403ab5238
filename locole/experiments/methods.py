"""From the methods that specs and records name to estimators."""

from __future__ import annotations

import importlib.util
import inspect
from typing import Any

from locole.exceptions import LocoleError
from locole.experiments.runs import Run
from locole.methods import METHODS, Method

__all__ = ["ENGINES", "make_estimator", "missing_package"]

#: Where fits can run.
ENGINES = ("threads", "ray")


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
    if method.kind != "baseline":
        return _classifier(run, method, threads)
    import locole.baselines

    kind = getattr(locole.baselines, method.made)
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
