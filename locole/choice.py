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
    50.0 % of 100 validation rows are right (alone: elastic net 50.0 %)
    """

    def __str__(self) -> str:
        if "summary" in self:  # of a model file of format 1
            return str(self["summary"])
        try:
            return self._sentence() if self else ""
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return "unknown: the file says nothing that makes sense"

    def _sentence(self) -> str:
        alone = ", ".join(
            f"{name.replace('_', ' ')} {100 * source['accuracy']:.1f} %"
            for name, source in self["sources"].items()
        )
        rows, accuracy = self["validation_rows"], 100 * self["accuracy"]
        text = f"{accuracy:.1f} % of {rows:,} validation rows are right (alone: {alone})"
        return text if "nearest" not in self else f"{text}; {self._nearest()}"

    def _nearest(self) -> str:
        found = self["nearest"]
        gain, used = found["after"] - found["before"], "used" if found["used"] else "not used"
        return (
            f"reranking by the nearest training rows changes that by {gain:+,} rows and is {used}"
        )
