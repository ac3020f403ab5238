"""Why a label: what each feature adds to its score, as data, as text and as HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locole.samples import Rows
from locole.scoring.base import Contributions, entries_of

__all__ = ["Explanation", "Explanations", "explanations"]

# Features that are shown; all are in the object.
_SHOWN = 12


@dataclass(frozen=True)
class Explanation:
    """What adds up to the score of a label, or to its lead over another.

    Attributes
    ----------
    label : object
        The label.
    against : object
        The label that it is compared with, or None.
    score : float
        Score of the label, less that of the other: the sum of all contributions.
    features : list of (str, float)
        Names of the row's features and what each adds, largest first, whatever the sign.
    others : dict of str to float
        What is added by nothing of the row: intercepts, priors, nearest rows, a network.
    words : list of (str, float)
        For texts, their words in order, and what all terms of each add up to.
    """

    label: Any
    against: Any
    score: float
    features: list[tuple[str, float]]
    others: dict[str, float]
    words: list[tuple[str, float]] = field(default_factory=list)

    @property
    def title(self) -> str:
        """What is explained."""
        against = "" if self.against is None else f" against {self.against}"
        return f"{self.label}{against}: {self.score:+.3f}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        plain = [x.item() if hasattr(x, "item") else x for x in (self.label, self.against)]
        found: dict[str, Any] = {"label": plain[0], "against": plain[1], "score": self.score}
        found["features"] = [{"name": name, "adds": value} for name, value in self.features]
        found["others"] = dict(self.others)
        if self.words:
            found["words"] = [{"word": word, "adds": value} for word, value in self.words]
        return found

    def __str__(self) -> str:
        lines = [f"{value:+10.3f}  {name}" for name, value in self._shown()]
        return "\n".join([self.title, *lines])

    def _shown(self) -> list[tuple[str, float]]:
        """Features that count most, what the other features add together, and the rest."""
        shown, more = self.features[:_SHOWN], self.features[_SHOWN:]
        if more:
            shown = [*shown, (f"{len(more)} other features", sum(value for _, value in more))]
        return [*shown, *((f"({name})", value) for name, value in self.others.items())]

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:right'>{value:+.3f}</td><td>{escape(name)}</td></tr>"
            for name, value in self._shown()
        )
        return (
            f"<div><p><b>{escape(self.title)}</b></p>{self._marked()}"
            f"<table><tr><th>adds</th><th>feature</th></tr>{rows}</table></div>"
        )

    def _marked(self) -> str:
        """Text with its words in colour: green for, red against."""
        if not self.words:
            return ""
        largest = max(abs(value) for _, value in self.words) or 1.0
        marks = [
            f"<span title='{value:+.3f}' style='background:rgba("
            f"{'40,160,80' if value > 0 else '210,60,60'},{0.7 * abs(value) / largest:.2f})'>"
            f"{escape(word)}</span>"
            for word, value in self.words
        ]
        return f"<p>{' '.join(marks)}</p>"


class Explanations(list[Explanation]):
    """Explanations of several rows, shown one below the other."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self)


def explanations(
    rows: Rows, said: Contributions, labels: NDArray, names: NDArray | None
) -> list[Explanation]:
    """Explain the first label of each row, or its lead over the second.

    Parameters
    ----------
    rows : Rows
    said : Contributions
        Of one or two labels.
    labels : array of shape (rows, 1 or 2)
    names : array of shape (n_features,), optional
        Names of the features; by default their numbers.
    """
    sign = np.array([1.0, -1.0])[: labels.shape[1]]
    features = said.features @ sign
    others = {name: part @ sign for name, part in said.others.items()}
    found = []
    for i, part in enumerate(entries_of(rows.csr)):
        columns, values = rows.csr.indices[part], features[part]
        order = np.argsort(-np.abs(values), kind="stable")
        mine = {name: float(value[i]) for name, value in others.items() if value[i]}
        pairs = [
            (str(columns[j]) if names is None else str(names[columns[j]]), float(values[j]))
            for j in order
        ]
        against = labels[i, 1] if labels.shape[1] == 2 else None
        score = float(values.sum()) + sum(mine.values())
        found.append(Explanation(labels[i, 0], against, score, pairs, mine))
    return found
