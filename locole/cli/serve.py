"""``locole serve``: models behind HTTP, with a page for people."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locole.cli.options import EncoderName, Jobs, Json

if TYPE_CHECKING:
    from locole.serving.registry import Registry
    from locole.serving.settings import Settings

__all__ = ["EXAMPLES", "check_extra", "serve", "serve_here"]

EXAMPLES = (
    "locole serve model",
    "locole serve animals=model --host 0.0.0.0 --port 8080 --token-file token.txt",
    "locole serve model --check",
)


def serve(
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL...", help="Folders of models, or NAME=FOLDER."),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines ask.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")
    ] = 8000,
    token_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File with the token that clients must send; by default the variable LOCOLE_TOKEN.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Name by which the server may be called, * for any; repeatable."
        ),
    ] = None,
    learn: Annotated[
        bool, typer.Option("--learn", help="Let clients teach the models, which are saved.")
    ] = False,
    log_texts: Annotated[
        bool, typer.Option("--log-texts", help="Write the texts of requests to the log.")
    ] = False,
    batch: Annotated[int, typer.Option(min=1, help="Rows that are answered together.")] = 64,
    max_rows: Annotated[int, typer.Option(min=1, help="Rows of a request.")] = 1000,
    max_chars: Annotated[int, typer.Option(min=1, help="Characters of a text.")] = 100_000,
    max_body: Annotated[int, typer.Option(min=1, help="Megabytes of a request.")] = 16,
    max_waiting: Annotated[
        int, typer.Option(min=1, help="Rows that may wait; more are refused with 503.")
    ] = 4096,
    timeout: Annotated[float, typer.Option(help="Seconds until a request is given up.")] = 30.0,
    reload: Annotated[
        float, typer.Option(min=0, help="Seconds between looks at the folders; 0 for never.")
    ] = 1.0,
    encoder: EncoderName = None,
    jobs: Jobs = -1,
    check: Annotated[
        bool, typer.Option("--check", help="Load the models, say what would be served, and end.")
    ] = False,
    json: Json = False,
) -> None:
    """Serve models over HTTP: a page for people, JSON for programs, and Annif's REST interface.

    The page is at /, a description of all addresses at /docs. A model whose folder is replaced is
    taken up without a break; one that cannot be loaded is refused, and the old one stays. The log is
    one JSON object a line on standard error, without the texts. Ctrl-C or SIGTERM ends the server
    when the requests that have begun are answered.
    """
    from locole.parallel.blocks import n_threads

    settings = _settings(
        workers=n_threads(jobs),
        batch_rows=batch,
        max_rows=max_rows,
        max_chars=max_chars,
        max_body_bytes=max_body << 20,
        max_waiting=max_waiting,
        timeout_s=timeout,
        reload_s=reload,
        token=_token(token_file),
        hosts=(host, tuple(allow_host or ())),
        learn=learn,
        log_texts=log_texts,
    )
    _run(models, settings, host=host, port=port, encoder=encoder, check=check, json=json)


def serve_here(model: str, *, port: int, jobs: int, json: bool = False) -> None:
    """Serve one model to this machine, with the limits that are usual."""
    from locole.parallel.blocks import n_threads

    host = "127.0.0.1"
    settings = _settings(workers=n_threads(jobs), hosts=(host, ()), token=None)
    _run([model], settings, host=host, port=port, json=json)


def _run(
    models: list[str],
    settings: Settings,
    *,
    host: str,
    port: int,
    encoder: str | None = None,
    check: bool = False,
    json: bool = False,
) -> None:
    """Load models and serve them; with ``check`` only say what would be served."""
    check_extra()
    from locole.cli.examples import open_model
    from locole.cli.show import warn
    from locole.serving.registry import Registry, places_of
    from locole.serving.settings import is_loopback

    # Batches are side by side, not rows: so each thread answers alone.
    registry = Registry(places_of(models), partial(open_model, jobs=1, encoder=encoder))
    registry.load()
    if not (settings.token or is_loopback(host)):
        warn(f"{host} can be reached by other machines, and no token is asked for (--token-file).")
    if check:
        _tell(registry, None, json=json)
        return
    from locole.serving.server import serve

    serve(
        registry,
        settings,
        host=host,
        port=port,
        on_ready=lambda url: _tell(registry, url, json=json),
    )


def check_extra() -> None:
    """Raise ImportError, which names the extra, if something is not installed."""
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"locole serve needs the package {error.name}: pip install 'locole[serve]'"
        ) from None


def _settings(*, hosts: tuple[str, tuple[str, ...]], **limits: Any) -> Settings:
    from locole.serving.settings import Settings

    return Settings(hosts=Settings.hosts_for(*hosts), **limits)


def _token(file: str | None) -> str | None:
    """Token from a file or the environment; on a command line everybody could read it."""
    from locole.exceptions import LocoleError

    if file is None:
        return os.environ.get("LOCOLE_TOKEN") or None
    with open(file, encoding="utf-8") as lines:
        token = lines.read().strip()
    if not (token and token.isascii() and token.isprintable()):
        raise LocoleError(f"{file} holds no token: write one line of letters and digits into it.")
    return token


def _tell(registry: Registry, url: str | None, *, json: bool) -> None:
    import sys

    from locole.cli.show import print_json, print_table

    models = [
        {"id": one.id, "version": one.version, "labels": one.n_labels} for one in registry.all()
    ]
    if json:
        print_json({"url": url, "models": models})
    else:
        print_table(["model", "version", "labels"], [list(one.values()) for one in models])
        if url is not None:
            print(f"\n{url} (Ctrl-C ends)")
    sys.stdout.flush()
