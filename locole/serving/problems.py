"""What goes wrong with a request, as problem+json (RFC 9457)."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from locole.exceptions import LocoleError

__all__ = ["Problem", "busy", "handle_problems", "problem_response"]

MEDIA_TYPE = "application/problem+json"
# Mistakes of one request that are told.
_TOLD = 3
# What to do where the framework says the name of the status only.
_WAYS_OUT = {
    404: "there is nothing at this address: /docs describes those that there are.",
    405: "this address does not take the method: /docs says which it takes.",
}


class Problem(HTTPException):
    """An answer with an error status and one sentence that says what to do."""

    def __init__(
        self, status: int, detail: str, *, title: str | None = None, retry_s: int | None = None
    ) -> None:
        headers = {} if retry_s is None else {"Retry-After": str(retry_s)}
        super().__init__(status, detail, headers)
        self.title = title


def busy(detail: str) -> Problem:
    """Too much to do: come again in a second."""
    return Problem(503, detail, retry_s=1)


def problem_response(
    status: int, detail: str, *, title: str | None = None, headers: Any = None
) -> Response:
    """Problem as JSON."""
    content = {
        "type": "about:blank",
        "title": title or HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    body = json.dumps(content, ensure_ascii=False).encode(errors="backslashreplace")
    return Response(body, status, headers, MEDIA_TYPE)


def handle_problems(app: FastAPI) -> None:
    """Let every error of the app be a problem."""
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(LocoleError, _of_locole)
    app.add_exception_handler(Exception, _of_bug)


async def _of_http(request: Request, error: Any) -> Response:
    title, detail = getattr(error, "title", None), str(error.detail)
    if detail == HTTPStatus(error.status_code).phrase:
        detail = _WAYS_OUT.get(error.status_code, detail)
    return problem_response(error.status_code, detail, title=title, headers=error.headers)


async def _of_validation(request: Request, error: Any) -> Response:
    # Where and what, without what was sent.
    found = [_mistake(e) for e in error.errors()]
    more = [f"{len(found) - _TOLD} more"] if len(found) > _TOLD else []
    return problem_response(400, "; ".join([*found[:_TOLD], *more]) + ".")


def _mistake(error: Any) -> str:
    """One mistake in a request."""
    place = error["loc"][1:]
    if error["type"] == "json_invalid":
        return f"the request is no JSON from its character {place[-1]} on: correct it"
    if error["loc"] == ("body",):
        wanted = "a list" if error["type"] == "list_type" else "an object"
        return f"the request must be {wanted} in JSON, sent as Content-Type: application/json"
    return f"{'.'.join(map(str, place)) or 'request'}: {error['msg']}"


async def _of_locole(request: Request, error: Any) -> Response:
    return problem_response(400, str(error))


async def _of_bug(request: Request, error: Any) -> Response:
    return problem_response(500, "an error in the server, which its log describes.")
