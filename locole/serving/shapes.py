"""Requests and answers of the JSON interface, as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from locole.serving.answers import Asked

__all__ = [
    "Answer",
    "Answers",
    "Batch",
    "Card",
    "Labels",
    "Models",
    "One",
    "ProblemDetails",
    "Row",
]

Label = str | int | float | bool
Number = Annotated[float, Field(allow_inf_nan=False)]
Row = Annotated[
    dict[int, Number] | list[Number],
    Field(description="Numbers by the numbers of their features; or all numbers of a dense row."),
]
Share = Annotated[float | None, Field(gt=0, lt=1)]


class Options(BaseModel):
    """What is asked."""

    model_config = ConfigDict(extra="forbid")

    k: int = Field(5, ge=1, le=1000, description="Number of labels, best first.")
    min_proba: float | None = Field(
        None, ge=0, le=1, description="Hold the answer back if its probability is smaller."
    )
    max_error: Share = Field(
        None, description="Hold answers back so that at most this share of the others is wrong."
    )
    coverage: Share = Field(
        None, description="Also give a set of labels that holds the right one this often."
    )
    explain: int = Field(
        0, ge=0, le=10, description="Explain this many of the best labels: what each word adds."
    )

    def asked(self) -> Asked:
        """Options as models are asked with them."""
        return Asked(self.k, self.min_proba, self.max_error, self.coverage, self.explain)


class One(Options):
    """One text, or one row if the model takes numbers."""

    text: str | None = None
    row: Row | None = None


class Batch(Options):
    """Several texts, or rows."""

    texts: list[str] | None = None
    rows: list[Row] | None = None


class Ranked(BaseModel):
    """A label and how likely it is."""

    label: Label
    probability: float | None = None
    score: float | None = Field(None, description="In place of a probability, if none is known.")


class LabelSet(BaseModel):
    """Labels that hold the right one with a guaranteed probability."""

    coverage: float
    size: int
    labels: list[Label] = Field(description="Likeliest first; at most 100 are listed.")


class Reason(BaseModel):
    """What adds up to the score of a label."""

    label: Label
    score: float
    features: list[dict[str, Any]] = Field(description="Name and what it adds, largest first.")
    more_features: int = Field(description="Features that are not listed.")
    others: dict[str, float]
    words: list[dict[str, Any]] | None = Field(None, description="Words in order, what each adds.")


class Result(BaseModel):
    """Answer to a text or row."""

    labels: list[Ranked] = Field(description="Best labels, best first.")
    answer: list[Label] = Field(
        description="What the model gives: one label, none if held back, several if rows have several."
    )
    set: LabelSet | None = None
    explanations: list[Reason] | None = None


class Answer(Result):
    """Answer to one text or row, and who gave it."""

    model: str
    version: str


class Answers(BaseModel):
    """Answers to several, in their order, all of one version of the model."""

    model: str
    version: str
    results: list[Result]


class Summary(BaseModel):
    """A model in the list of models."""

    id: str
    version: str
    takes: str = Field(description="texts or rows.")
    labels: int
    several_labels: bool
    probabilities: bool


class Models(BaseModel):
    """All models."""

    models: list[Summary]


class Card(Summary):
    """A model's card."""

    kind: str
    features: int
    first_index: int
    bytes: int
    modified: str
    made_by: dict[str, str]
    choice: str | None
    training_rows: int | None
    validation: dict[str, Any] | None


class FoundLabel(BaseModel):
    """A label and its number of training rows."""

    label: Label
    rows: int | None


class Labels(BaseModel):
    """A part of the labels."""

    total: int
    labels: list[FoundLabel]


class ProblemDetails(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
