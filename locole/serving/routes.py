"""The JSON interface: predict, labels, cards; health and figures."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from locole.serving.answers import Question
from locole.serving.card import card, summary
from locole.serving.problems import Problem
from locole.serving.rows import checked_rows
from locole.serving.served import ServedModel
from locole.serving.shapes import (
    Answer,
    Answers,
    Batch,
    Card,
    Labels,
    Models,
    One,
    Options,
    ProblemDetails,
)
from locole.serving.state import State, state_of

__all__ = ["PROBLEMS", "api", "as_json", "health", "predictions", "problems"]

ModelName = Annotated[str, Path(alias="model", description="Name of a model.")]
PROBLEMS = {
    400: "The request cannot be answered; the detail says why.",
    401: "The token is missing or wrong.",
    403: "Not allowed.",
    404: "No such model.",
    413: "Too much at a time.",
    503: "Too much to do; Retry-After says when to come again.",
}


def problems(*statuses: int) -> dict[int | str, Any]:
    """Description of these problems for OpenAPI."""
    return {
        status: {
            "description": PROBLEMS[status],
            "content": {
                "application/problem+json": {
                    "schema": {"$ref": f"#/components/schemas/{ProblemDetails.__name__}"}
                }
            },
        }
        for status in statuses
    }


api = APIRouter(prefix="/api", tags=["models"])
health = APIRouter(tags=["service"])


def as_json(content: Any, status: int = 200) -> Response:
    """JSON of what models answer, which needs no checks."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Names of labels may hold what UTF-8 cannot say.
    return Response(body.encode(errors="backslashreplace"), status, media_type="application/json")


@api.get("/models", responses={200: {"model": Models}, **problems(401)})
async def list_models(request: Request) -> Response:
    """All models that are served."""
    return as_json({"models": [summary(served) for served in state_of(request).registry.all()]})


@api.get("/models/{model}", responses={200: {"model": Card}, **problems(401, 404)})
async def show_card(name: ModelName, request: Request) -> Response:
    """A model's card: what it was made from, accuracy, calibration, size."""
    state = state_of(request)
    served = named(request, name)
    return as_json(await state.batcher.run(card, served))


@api.get("/models/{model}/labels", responses={200: {"model": Labels}, **problems(400, 401, 404)})
async def find_labels(
    name: ModelName,
    request: Request,
    q: Annotated[str, Query(max_length=200, description="Part of the name; empty for all.")] = "",
    offset: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """Labels that contain a text."""
    index = named(request, name).labels
    state = state_of(request)
    found = await state.batcher.run(lambda: index.search(q, offset=offset, limit=limit))
    return as_json(found._asdict())


@api.get(
    "/models/{model}/vocabulary.tsv",
    responses={
        200: {"content": {"text/tab-separated-values": {}}, "description": "URI, tab, name."},
        **problems(401, 404),
    },
)
async def show_vocabulary(name: ModelName, request: Request) -> Response:
    """All labels with their URIs, as `annif load-vocab` reads them."""
    uris = named(request, name).labels.uris()
    lines = (f"<{uri}>\t{' '.join(label.split())}\n" for uri, label in uris)
    body = "".join(lines).encode(errors="backslashreplace")
    return Response(body, media_type="text/tab-separated-values")


@api.post(
    "/models/{model}/predict",
    responses={200: {"model": Answer}, **problems(400, 401, 404, 413, 503)},
)
async def predict(name: ModelName, asked: One, request: Request) -> Response:
    """Best labels of one text or row: probabilities, and if asked for a set and explanations."""
    texts = None if asked.text is None else [asked.text]
    rows = None if asked.row is None else [asked.row]
    served, found = await _answers(request, name, asked, texts, rows)
    return as_json({"model": served.id, "version": served.version, **found[0]})


@api.post(
    "/models/{model}/predict-batch",
    responses={200: {"model": Answers}, **problems(400, 401, 404, 413, 503)},
)
async def predict_batch(name: ModelName, asked: Batch, request: Request) -> Response:
    """Best labels of several texts or rows, all of the same version of the model."""
    served, found = await _answers(request, name, asked, asked.texts, asked.rows)
    return as_json({"model": served.id, "version": served.version, "results": found})


async def _answers(
    request: Request, name: str, asked: Options, texts: Any, rows: Any
) -> tuple[ServedModel, list[dict[str, Any]]]:
    served = named(request, name)
    given = checked_rows(served, texts, rows, state_of(request).settings)
    return served, await predictions(request, Question(served, asked.asked()), given)


def named(request: Request, name: str) -> ServedModel:
    """Return the model of that name, noted for the log."""
    served = state_of(request).registry.get(name)
    request.scope["about"] |= {"model": served.id, "version": served.version}
    return served


async def predictions(
    request: Request, question: Question, rows: list[Any]
) -> list[dict[str, Any]]:
    """Answers to checked rows, counted."""
    state: State = state_of(request)
    about = request.scope["about"]
    about["rows"] = len(rows)
    if state.settings.log_texts:
        about["texts"] = rows
    found = await state.batcher.ask(question, rows)
    state.figures.rows.labels(question.served.id).inc(len(rows))
    return found


# Service ----------------------------------------------------------------------------------------


@health.get("/healthz", responses={200: {"content": {"text/plain": {}}}})
async def is_alive() -> Response:
    """Whether the process answers."""
    return Response("ok\n", media_type="text/plain")


@health.get("/readyz", responses={200: {"content": {"text/plain": {}}}, **problems(503)})
async def is_ready(request: Request) -> Response:
    """Whether requests should be sent here: all models are loaded and the server is not ending."""
    if state_of(request).is_ending():
        raise Problem(503, "the server is ending.", retry_s=1)
    return Response("ready\n", media_type="text/plain")


@health.get("/metrics", responses={200: {"content": {"text/plain": {}}}, **problems(401)})
async def show_figures(request: Request) -> Response:
    """Figures for Prometheus."""
    state = state_of(request)
    state.figures.waiting.set(state.batcher.waiting)
    return Response(state.figures.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
