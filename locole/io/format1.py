"""Models of format 1 in the words of format 2: from one tree of JSON values to another.

In format 1 a classifier held embedding, regressor, decoder, label profiles and nearest rows side by
side. Since format 2 it holds one scorer. Nothing is checked here, because the new tree is read and
checked as one of format 2.
"""

from __future__ import annotations

from typing import Any

__all__ = ["upgraded"]

Tree = Any

_KINDS = {"profiles": "scorer.profiles", "neighbours": "scorer.nearest"}


def upgraded(tree: Tree) -> Tree:
    """Tree of format 2 that means the same as this one of format 1.

    Examples
    --------
    >>> upgraded({"$part": {"kind": "neighbours", "values": {}}})
    {'$part': {'kind': 'scorer.nearest', 'values': {}}}
    """
    if isinstance(tree, list):
        return [upgraded(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    tree = {key: upgraded(value) for key, value in tree.items()}
    part = tree.get("$part")
    if not isinstance(part, dict) or not isinstance(part.get("kind"), str):
        return tree
    kind, values = part["kind"], part.get("values")
    if kind in ("embedding.gaussian", "embedding.complex_gaussian") and isinstance(values, dict):
        # All families drew from one stream.
        values = {**values, "stream": 0}
    if kind == "classifier" and isinstance(values, dict):
        values = _classifier(values)
    return {**tree, "$part": {**part, "kind": _KINDS.get(kind, kind), "values": values}}


def _classifier(values: dict[str, Tree]) -> dict[str, Tree]:
    params, learnt = values.get("params"), values.get("learnt")
    if not isinstance(params, dict) or not isinstance(learnt, dict):
        return values
    params = {"nearest" if name == "neighbours" else name: v for name, v in params.items()}
    if not learnt:
        return {**values, "params": params}
    kept = ("classes_", "n_features_in_", "feature_names_in_")
    new = {name: learnt[name] for name in kept if name in learnt}
    return {**values, "params": params, "learnt": {**new, "scorer_": _scorer(learnt)}}


def _scorer(learnt: dict[str, Tree]) -> Tree:
    """Vectors alone, or an ensemble if there was anything to weigh."""
    profiles, nearest = learnt.get("profiles_"), learnt.get("neighbours_")
    regressor = learnt.get("regressor_")
    is_sum = _kind(regressor) == "regressor.blend"
    vectors = _part(
        "scorer.vectors",
        {"others_speak": profiles is not None},
        _vectors(learnt, regressor, is_sum),
    )
    if not is_sum and profiles is None and nearest is None:
        return vectors
    scorers, weights = [vectors], [1.0]
    if profiles is not None:
        scorers.append(profiles)
        weights.append(learnt.get("profile_weight_", 0.0))
    choice = learnt.get("choice_")
    ensemble = {
        "scorers_": scorers,
        "weights_": weights,
        "reranker_": nearest,
        "choice_": {"summary": choice} if choice else {},
    }
    return _part("scorer.ensemble", {}, ensemble)


def _vectors(learnt: dict[str, Tree], regressor: Tree, is_sum: bool) -> dict[str, Tree]:
    names = ("embedding_", "decoder_", "prior_point_", "weight_seen_", "decoder_recall_")
    new = {name: learnt[name] for name in names if name in learnt}
    if not is_sum:
        return {**new, "regressors_": _named([regressor]), "weights_": [1.0]}
    values = regressor["$part"].get("values")
    params = values.get("params") if isinstance(values, dict) else None
    if not isinstance(params, dict):
        return new
    return {
        **new,
        "regressors_": _named(params.get("parts", [])),
        "weights_": params.get("weights"),
        "feature_weights_": params.get("feature_weights"),
    }


def _named(regressors: Tree) -> Tree:
    """Regressors by the last word of their kind."""
    if not isinstance(regressors, list):
        return regressors
    return {(_kind(part) or f"{i}").rpartition(".")[2]: part for i, part in enumerate(regressors)}


def _kind(tree: Tree) -> str | None:
    part = tree.get("$part") if isinstance(tree, dict) else None
    kind = part.get("kind") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else None


def _part(kind: str, params: dict[str, Tree], learnt: dict[str, Tree]) -> Tree:
    return {"$part": {"kind": kind, "values": {"params": params, "learnt": learnt}}}
