"""The app: routes, what they share, and the guard around them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from locole._version import __version__
from locole.serving.annif import annif
from locole.serving.answers import answer
from locole.serving.batching import Batcher
from locole.serving.figures import Figures
from locole.serving.guard import Guard
from locole.serving.logs import log
from locole.serving.pages import pages
from locole.serving.problems import handle_problems
from locole.serving.registry import Registry
from locole.serving.routes import api, health
from locole.serving.settings import Settings
from locole.serving.shapes import ProblemDetails
from locole.serving.state import State

__all__ = ["make_app"]

_ABOUT = "Labels of texts and rows, with probabilities, from the models that are served here."


def make_app(
    registry: Registry, settings: Settings, *, is_ending: Callable[[], bool] = lambda: False
) -> Guard:
    """App of a server.

    Parameters
    ----------
    registry : Registry
        Its models, loaded.
    settings : Settings
    is_ending : callable
        Whether the server is about to end.
    """
    figures = Figures()
    registry.listener = lambda event, name, about: _note(figures, event, name, about)
    for served in registry.all():
        figures.models.labels(served.id, served.version).set(served.loaded_at)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        batcher = Batcher(
            answer,
            workers=settings.workers,
            batch_rows=settings.batch_rows,
            max_waiting=settings.max_waiting,
            on_batch=figures.batches.observe,
        )
        app.state.serving = State(registry, settings, figures, batcher, is_ending)
        registry.watch(settings.reload_s)
        yield
        registry.close()
        batcher.close()

    # The pages that FastAPI would make load scripts from elsewhere: /docs is our own.
    app = FastAPI(
        title="locole",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    for router in (api, annif, health, pages()):
        app.include_router(router)
    handle_problems(app)
    app.openapi = lambda: _schema(app)  # type: ignore[method-assign]
    return Guard(app, settings, figures)


def _note(figures: Figures, event: str, name: str, about: dict[str, Any]) -> None:
    """Log and count what became of a model."""
    log(event, model=name, **about)
    figures.reloads.labels(name, event).inc()
    if event == "reloaded":
        for labels in list(figures.models._metrics):
            if labels[0] == name:
                figures.models.remove(*labels)
        figures.models.labels(name, about["version"]).set_to_current_time()


def _schema(app: FastAPI) -> dict[str, Any]:
    """OpenAPI, in which bad requests are problems and not FastAPI's own errors."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, description=_ABOUT, routes=app.routes
        )
        for operations in found["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
        schemas = found["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas[ProblemDetails.__name__] = ProblemDetails.model_json_schema()
        app.openapi_schema = found
    return app.openapi_schema
