"""What a model chose by itself, as data with a readable form."""

from __future__ import annotations

from typing import Any

__all__ = ["Choice"]


class Choice(dict[str, Any]):
    """A dict that prints as a sentence; see `locole.scoring.Ensemble` for its entries.

    Examples
    --------
    >>> sources = {"elastic_net": {"accuracy": 0.5, "weight": 2.0}}
    >>> print(Choice(validation_rows=100, accuracy=0.5, sources=sources))
    accuracy on 100 validation rows: 50.0 % (elastic_net 50.0 %, weight 2)
    """

    def __str__(self) -> str:
        if "summary" in self:  # of a model file of format 1
            return str(self["summary"])
        if not self:
            return ""
        alone = ", ".join(
            f"{name} {100 * source['accuracy']:.1f} %, weight {source['weight']:.3g}"
            for name, source in self["sources"].items()
        )
        rows, accuracy = self["validation_rows"], 100 * self["accuracy"]
        text = f"accuracy on {rows:,} validation rows: {accuracy:.1f} % ({alone})"
        return text if "nearest" not in self else f"{text}; {self._nearest()}"

    def _nearest(self) -> str:
        found = self["nearest"]
        return (
            f"reranking by nearest rows puts {found['after']:,} instead of {found['before']:,} of "
            f"{found['rows']:,} rows right, {'used' if found['used'] else 'not used'}"
        )
