"""Annif's REST interface: a model is a project, its labels are subjects, probabilities are scores."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Body, Path, Query, Request, Response
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from locole._version import __version__
from locole.exceptions import LocoleError
from locole.serving.answers import Asked, Question
from locole.serving.labels import uri_of
from locole.serving.learning import Example, learn
from locole.serving.problems import Problem
from locole.serving.routes import as_json, named, predictions, problems
from locole.serving.rows import checked_rows
from locole.serving.served import ServedModel
from locole.serving.state import state_of

__all__ = ["annif"]

# Documents of a batch, as in Annif's own interface, and fields of a form.
_MAX_DOCUMENTS, _MAX_FIELDS = 32, 100
_FORM = "application/x-www-form-urlencoded"

ProjectId = Annotated[str, Path(alias="project_id", description="Name of a model.")]
Limit = Annotated[int, Field(ge=0, le=1 << 31, description="Number of subjects.")]
Threshold = Annotated[float, Field(ge=0, le=1, description="Smallest score of a subject.")]


class Document(BaseModel):
    """A text, with what is known of it; the metadata are not looked at."""

    text: str
    document_id: str | None = None
    metadata: dict[str, str] | None = None


class Documents(BaseModel):
    """Up to 32 documents."""

    documents: list[Document] = Field(max_length=_MAX_DOCUMENTS)


class Subject(BaseModel):
    """A label by its URI."""

    uri: str
    label: str | None = None


class IndexedDocument(BaseModel):
    """A text with its right labels."""

    text: str
    subjects: list[Subject]
    metadata: dict[str, str] | None = None


class Form(BaseModel):
    """Fields of a form; others, such as metadata_title, are not looked at."""

    text: str
    limit: Limit = 10
    threshold: Threshold = 0.0
    language: str | None = None


annif = APIRouter(prefix="/v1", tags=["Annif"])
_form = TypeAdapter(Form)
_FORM_BODY = {
    "requestBody": {"required": True, "content": {_FORM: {"schema": Form.model_json_schema()}}}
}
_SUGGESTED: dict[int | str, Any] = {
    200: {"description": "Subjects, best first.", "content": {"application/json": {}}}
}


@annif.get("/", responses={200: {"content": {"application/json": {}}}, **problems(401)})
async def show_info() -> Response:
    """Name and version of the service."""
    return as_json({"title": "locole, in the shape of Annif's REST API", "version": __version__})


@annif.get("/projects", responses={200: {"content": {"application/json": {}}}, **problems(401)})
async def list_projects(request: Request) -> Response:
    """All models."""
    return as_json({"projects": [_project(one) for one in state_of(request).registry.all()]})


@annif.get(
    "/projects/{project_id}",
    responses={200: {"content": {"application/json": {}}}, **problems(401, 404)},
)
async def show_project(name: ProjectId, request: Request) -> Response:
    """A model."""
    return as_json(_project(named(request, name)))


@annif.post(
    "/projects/{project_id}/suggest",
    openapi_extra=_FORM_BODY,
    responses={**_SUGGESTED, **problems(400, 401, 404, 413, 503)},
)
async def suggest(name: ProjectId, request: Request) -> Response:
    """Labels of a text."""
    served = named(request, name)
    form = _parsed(await request.body(), request.headers.get("content-type", ""))
    found = await _suggested(request, served, [form.text], form.limit, form.threshold)
    return as_json({"results": found[0]})


@annif.post(
    "/projects/{project_id}/suggest-batch",
    responses={**_SUGGESTED, **problems(400, 401, 404, 413, 503)},
)
async def suggest_batch(
    name: ProjectId,
    body: Documents,
    request: Request,
    limit: Annotated[Limit, Query()] = 10,
    threshold: Annotated[Threshold, Query()] = 0.0,
    language: Annotated[str | None, Query()] = None,
) -> Response:
    """Labels of up to 32 texts."""
    served = named(request, name)
    if not body.documents:
        return as_json([])
    texts = [document.text for document in body.documents]
    found = await _suggested(request, served, texts, limit, threshold)
    return as_json(
        [
            {"results": results, "document_id": document.document_id}
            for results, document in zip(found, body.documents, strict=True)
        ]
    )


@annif.post(
    "/projects/{project_id}/learn",
    status_code=204,
    responses=problems(400, 401, 403, 404, 413, 503),
)
async def learn_more(
    name: ProjectId, body: Annotated[list[IndexedDocument], Body()], request: Request
) -> Response:
    """Learn from texts with their right labels; only if the server was started with --learn."""
    state = state_of(request)
    served = named(request, name)
    if not state.settings.learn:
        raise Problem(
            403,
            "learning is off: start the server with --learn to allow it.",
            title="Learning not allowed",
        )
    checked_rows(served, [document.text for document in body], None, state.settings)
    examples = [Example(one.text, [subject.uri for subject in one.subjects]) for one in body]
    await state.batcher.run(learn, state.registry, name, examples)
    return Response(status_code=204)


def _parsed(body: bytes, media_type: str) -> Form:
    """Fields of a form."""
    if media_type.partition(";")[0].strip().lower() != _FORM:
        raise LocoleError(f"the request must be a form ({_FORM}) with the field text.")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
        return _form.validate_python(dict(pairs))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise LocoleError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}.") from None
    except ValueError:  # neither UTF-8 nor few enough fields
        raise LocoleError("the form cannot be read: send it in UTF-8.") from None


async def _suggested(
    request: Request, served: ServedModel, texts: list[str], limit: int, threshold: float
) -> list[list[dict[str, Any]]]:
    """Subjects of each text."""
    if not served.has_probabilities:
        raise LocoleError(
            f"the model {served.id} knows no probabilities, which are the scores here."
        )
    rows = checked_rows(served, texts, None, state_of(request).settings)
    k = min(limit, served.n_labels)
    if k == 0:
        return [[] for _ in texts]
    found = await predictions(request, Question(served, Asked(k)), rows)
    return [
        [_subject(one) for one in answer["labels"] if one["probability"] >= threshold]
        for answer in found
    ]


def _subject(found: dict[str, Any]) -> dict[str, Any]:
    label = found["label"]
    score = min(found["probability"], 1.0)
    return {"uri": uri_of(label), "label": str(label), "notation": None, "score": score}


def _project(served: ServedModel) -> dict[str, Any]:
    return {
        "project_id": served.id,
        "name": served.id,
        "language": "und",
        "backend": {"backend_id": "locole"},
        "vocab": {"vocab_id": served.id, "languages": ["und"], "size": served.n_labels},
        "vocab_language": "und",
        "is_trained": True,
        "modification_time": served.modified.isoformat(),
    }
