"""The table from verb to function, and what becomes of errors."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from locole._version import __version__
from locole.cli.compiling import told_of_compiling
from locole.cli.process import as_a_process, drop_output, one_line
from locole.cli.reading import with_reading_options
from locole.cli.words import in_our_words
from locole.exceptions import LocoleError

__all__ = ["VERBS", "main", "make_app"]

#: Verb → the module with a function of that name (- as _), whose docstring is the help, and EXAMPLES.
VERBS = {
    "fit": "locole.cli.fit",
    "predict": "locole.cli.predict",
    "evaluate": "locole.cli.evaluate",
    "explain": "locole.cli.explain",
    "update": "locole.cli.update",
    "labels": "locole.cli.labels",
    "inspect": "locole.cli.inspect",
    "serve": "locole.cli.serve",
    "coherence": "locole.cli.coherence",
    "advise": "locole.cli.advise",
    "bound": "locole.cli.bound",
    "bench": "locole.cli.bench",
    "report": "locole.cli.report",
    "demo": "locole.cli.demo",
    "warm-up": "locole.cli.warm_up",
}
_DOCS = "Classification with very many labels. Each verb has --help with an example, and --json."
# Exit codes: of a bug, of bad input, and what shells use for signals.
_BUG, _BAD_INPUT, _INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the name of the program; by default what it was started with.

    Returns
    -------
    int
        0, or 2 for bad input, 130 after Ctrl-C and 1 for a bug in locole.

    Examples
    --------
    >>> main(["coherence", "kerdock", "--classes", "12046", "--dim", "256"])
    coherence 0.062500 (exact, by structure); real part in [-0.062500, 0.062500], RMS 0.061836
    lower bound 0.0618 for any real vectors; Welch's alone 0.0618
    0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    words, debug = _without_debug(words or ["--help"])
    try:
        with as_a_process(), told_of_compiling():
            return _run(words, debug=debug)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(words: list[str], *, debug: bool) -> int:
    try:
        return int(make_app()(words, prog_name="locole", standalone_mode=False) or 0)
    except Exception as error:
        if debug:
            traceback.print_exc()
        code, message = _complaint(error)
        print(f"locole: {one_line(message)}", file=sys.stderr)
        return code


def make_app() -> typer.Typer:
    """All verbs, with their examples in the help; none of them imports its heavy parts here."""
    # Plain help: boxes would take as long again as everything else.
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.callback(help=_DOCS)(_root)
    for verb, module_name in VERBS.items():
        module = importlib.import_module(module_name)
        function = getattr(module, verb.replace("-", "_"))
        docs = inspect.cleandoc(function.__doc__ or "")
        examples = "\n".join(f"  {line}" for line in module.EXAMPLES)
        # \b keeps the lines of a paragraph apart.
        text = f"{docs}\n\n\b\nExamples:\n{examples}"
        add = app.command(verb, cls=_Command, help=text, short_help=docs.split("\n")[0])
        add(_guarded(with_reading_options(function)))
    return app


class _Command(TyperCommand):
    """Command of which an option that has one value may be given once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for parameter in given:
            if given.count(parameter) > 1 and not parameter.multiple:
                raise LocoleError(f"{parameter.opts[0]} is given twice: give it once.")
        return super().parse_args(ctx, args)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"locole {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from; may stand anywhere.")
    ] = False,
) -> None:
    """Options of no verb; --debug is gone before it could get here."""


def _without_debug(words: list[str]) -> tuple[list[str], bool]:
    """Take --debug out, wherever it stands before a bare --."""
    end = words.index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word != "--debug"]
    return kept + words[end:], len(kept) < end


def _guarded(function: Callable[..., None]) -> Callable[..., None]:
    """Verb that ends quietly when it is interrupted or when nobody reads its answers on."""

    @functools.wraps(function)
    def verb(*args: Any, **options: Any) -> None:
        try:
            function(*args, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            drop_output(sys.stdout)
            raise typer.Exit from None
        except KeyboardInterrupt:
            print("locole: interrupted", file=sys.stderr)
            raise typer.Exit(_INTERRUPTED) from None

    return verb


def _complaint(error: Exception) -> tuple[int, str]:
    """Exit code and one line."""
    if hasattr(error, "format_message"):  # typer's errors, whatever they are called
        command = getattr(getattr(error, "ctx", None), "command_path", "locole")
        return _BAD_INPUT, f"{error.format_message()} (see {command} --help)"
    if isinstance(error, LocoleError | ImportError):
        return _BAD_INPUT, in_our_words(str(error))
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return _BAD_INPUT, f"{error.filename}: {reason}." if error.filename else f"{reason}."
    if isinstance(error, MemoryError):
        return _BAD_INPUT, f"not enough memory: {error}"
    kind = type(error).__name__
    return _BUG, f"a bug, please report it: {kind}: {error} (--debug shows where)"
