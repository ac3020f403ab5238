"""A server process: socket, signals, and an orderly end."""

from __future__ import annotations

import gc
import logging
import socket
import sys
from collections.abc import Callable

import uvicorn

from locole.exceptions import LocoleError
from locole.serving.app import make_app
from locole.serving.logs import log
from locole.serving.registry import Registry
from locole.serving.settings import Settings

__all__ = ["serve"]

# Connections that may wait to be taken.
_BACKLOG = 1024
# How long a thread that answers may keep the event loop waiting; with 5 ms, the usual, waits add up.
_SWITCH_S = 0.0005


def serve(
    registry: Registry,
    settings: Settings,
    *,
    host: str,
    port: int,
    on_ready: Callable[[str], None],
) -> None:
    """Serve models until the process is told to end; requests that have begun are answered.

    Parameters
    ----------
    registry : Registry
        Models, loaded.
    settings : Settings
    host, port : str and int
        Where to listen; port 0 takes any that is free.
    on_ready : callable
        Told the address when the socket listens.
    """
    listener = _listen(host, port)
    servers: list[uvicorn.Server] = []
    app = make_app(registry, settings, is_ending=lambda: servers[0].should_exit)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_graceful_shutdown=int(settings.timeout_s) + 1,
    )
    servers.append(uvicorn.Server(config))
    logging.getLogger("uvicorn").handlers[:] = [_ToLog(logging.WARNING)]
    # What is here now stays. Looking through it for cycles would take a quarter of a second each time.
    gc.collect()
    gc.freeze()
    on_ready(_url(listener, host))
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        servers[0].run(sockets=[listener])
    except (KeyboardInterrupt, SystemExit):
        # uvicorn repeats the signal after its orderly end.
        pass
    finally:
        sys.setswitchinterval(usual)
        gc.unfreeze()
        listener.close()
        log("ended")


class _ToLog(logging.Handler):
    """Brings what uvicorn has to say into the log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        log("uvicorn", level=record.levelname, message=record.getMessage())


def _listen(host: str, port: int) -> socket.socket:
    """Socket that listens, or an error that says why not."""
    listener = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # By the protocol asyncio knows TCP, and then does not wait for full packets (40 ms an answer).
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        if listener is not None:
            listener.close()
        reason = getattr(error, "strerror", None) or error
        raise LocoleError(
            f"cannot listen on {host} port {port}: {reason}; take another --host or --port."
        ) from None
    return listener


def _url(listener: socket.socket, host: str) -> str:
    port = listener.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
