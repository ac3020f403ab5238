"""``locole report``: one page of tables and figures from the records of experiments."""

from __future__ import annotations

from typing import Annotated

import typer

from locole.cli.options import Json

__all__ = ["EXAMPLES", "report"]

EXAMPLES = (
    "locole report records",
    "locole report records --out figures.html --json",
    "locole report records --latex",
)


def report(
    folder: Annotated[
        str, typer.Argument(metavar="[FOLDER]", help="Where locole bench has left its records.")
    ] = "locole_results",
    out: Annotated[str, typer.Option("--out", "-o", help="Page to write.")] = "report.html",
    open_page: Annotated[
        bool, typer.Option("--open", help="Show the page in a browser when it is written.")
    ] = False,
    latex: Annotated[
        bool, typer.Option("--latex", help="Write every table as a .tex file, too (booktabs).")
    ] = False,
    json: Json = False,
) -> None:
    """Write the tables and figures of all recorded experiments as one page.

    The page needs no network. Beside it, in a folder of its name, are the figures as SVG and PNG and the
    tables as CSV. Needs the package matplotlib (pip install locole[plots]).
    """
    from locole.cli.show import print_json
    from locole.experiments.records import read
    from locole.experiments.report import write_report

    written = write_report(read(folder), out, folder=folder, latex=latex)
    if json:
        print_json(written._asdict() | {"page": str(written.page), "files": str(written.files)})
    else:
        print(f"{written.done:,} of {written.runs:,} runs have figures.")
        print(f"{out} is the page; {written.files.name} beside it has figures and tables as files.")
    if open_page:
        _show(written.page.as_uri())


def _show(address: str) -> None:
    import webbrowser

    from locole.cli.show import say

    if not webbrowser.open(address):
        say(f"locole: no browser was found: open {address} in one.")
