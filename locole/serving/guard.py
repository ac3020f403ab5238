"""Between network and app: who may ask, how much and how long; headers, log and figures."""

from __future__ import annotations

import asyncio
import hmac
import time
from typing import Any

from starlette.exceptions import HTTPException

from locole.serving.figures import Figures
from locole.serving.logs import log, log_error
from locole.serving.problems import Problem, busy, problem_response
from locole.serving.settings import Settings

__all__ = ["OPEN", "Guard"]

#: Paths that are answered without a token: they tell nothing of the models.
OPEN = ("/healthz", "/readyz", "/", "/docs", "/page/")

_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]


class Guard:
    """Middleware around a whole app.

    Parameters
    ----------
    app : ASGI application
    settings : Settings
    figures : Figures
    """

    def __init__(self, app: Any, settings: Settings, figures: Figures) -> None:
        self.app, self._settings, self._figures = app, settings, figures
        self._wanted = None if settings.token is None else f"Bearer {settings.token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on if it may be, and note what becomes of it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, sent = time.perf_counter(), _Sent(send)
        scope["about"] = {}
        try:
            self._check(scope)
            async with asyncio.timeout(self._settings.timeout_s):
                await self.app(scope, self._counted(receive), sent)
        except TimeoutError:
            late = busy(f"no answer within {self._settings.timeout_s:g} seconds: come again later.")
            await self._refuse(late, "timeout", scope, receive, sent)
        except HTTPException as problem:
            await self._refuse(problem, _REASONS[problem.status_code], scope, receive, sent)
        except Exception as error:
            log_error("error", error, path=scope["path"])
            if not sent.status:
                await problem_response(500, "an error in the server.")(scope, receive, sent)
        finally:
            self._note(scope, sent.status, time.perf_counter() - start)

    # Checks -------------------------------------------------------------------------------------

    def _check(self, scope: Any) -> None:
        """Raise `Problem` for a request that may not be asked."""
        headers = dict(scope["headers"])
        hosts = self._settings.hosts
        if hosts and _host_name(headers.get(b"host", b"")) not in hosts:
            raise Problem(421, "the server is not known by this name: see --allow-host.")
        is_open = scope["path"] in OPEN or scope["path"].startswith("/page/")
        given = headers.get(b"authorization", b"")
        if self._wanted and not is_open and not hmac.compare_digest(given, self._wanted):
            problem = Problem(401, "give the token: Authorization: Bearer TOKEN.")
            problem.headers = {"WWW-Authenticate": "Bearer"}
            raise problem
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._settings.max_body_bytes:
            raise self._too_long()

    def _counted(self, receive: Any) -> Any:
        """Receive, up to so many bytes: a length may be missing or wrong."""
        n_bytes = 0

        async def counted() -> Any:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > self._settings.max_body_bytes:
                raise self._too_long()
            return message

        return counted

    def _too_long(self) -> Problem:
        limit = self._settings.max_body_bytes
        return Problem(413, f"the request is longer than {limit} bytes: send fewer rows at a time.")

    # Answers ------------------------------------------------------------------------------------

    async def _refuse(
        self, problem: HTTPException, reason: str, scope: Any, receive: Any, sent: _Sent
    ) -> None:
        self._figures.rejected.labels(reason).inc()
        if sent.status:  # half of an answer is gone: the connection has to end
            log("cut", path=scope["path"], reason=reason)
            return
        status, detail = problem.status_code, str(problem.detail)
        await problem_response(status, detail, headers=problem.headers)(scope, receive, sent)

    def _note(self, scope: Any, status: int, seconds: float) -> None:
        about = scope["about"]
        route = getattr(scope.get("route"), "path", "other")
        self._figures.requests.labels(route, status, about.get("model", "")).inc()
        self._figures.seconds.labels(route).observe(seconds)
        log(
            "request",
            method=scope["method"],
            route=route,
            status=status,
            ms=round(1e3 * seconds, 2),
            **about,
        )


_REASONS = {401: "token", 413: "size", 421: "host"}


class _Sent:
    """Sends an answer with the headers of all answers, and remembers its status."""

    def __init__(self, send: Any) -> None:
        self._send = send
        self.status = 0

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", []))
            if not any(name == b"cache-control" for name, _ in headers):
                headers.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*headers, *_HEADERS]}
        await self._send(message)


def _host_name(host: bytes) -> str:
    """Name without the port.

    Examples
    --------
    >>> _host_name(b"localhost:8000"), _host_name(b"[::1]:8000"), _host_name(b"Models.example.org")
    ('localhost', '[::1]', 'models.example.org')
    """
    name = host.decode("latin-1").lower()
    return name.partition("]")[0] + "]" if name.startswith("[") else name.partition(":")[0]
