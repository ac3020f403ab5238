"""The page for people: files that are part of the package."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib.resources import files

from fastapi import APIRouter, Request, Response

__all__ = ["pages"]

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def pages() -> APIRouter:
    """Routes of the page: a route for each file, so that no address is ever a path."""
    router = APIRouter(include_in_schema=False)
    for file in sorted(files("locole.serving").joinpath("page").iterdir(), key=lambda f: f.name):
        name, _, ending = file.name.rpartition(".")
        if ending in _TYPES:
            path = f"/page/{file.name}" if ending != "html" else f"/{name}".replace("/index", "/")
            router.add_api_route(path, _sender(file.read_bytes(), _TYPES[ending]), methods=["GET"])
    return router


def _sender(content: bytes, media_type: str) -> Callable[[Request], Response]:
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}

    async def send(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    return send  # type: ignore[return-value]
