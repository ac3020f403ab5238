"""Writing a report: the page, and beside it a folder with CSV, SVG and PNG files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from locole._version import __version__
from locole.datasets.writing import complete_or_absent
from locole.exceptions import LocoleError
from locole.experiments.report import sentences
from locole.experiments.report.entries import entries
from locole.experiments.report.page import Section, render
from locole.experiments.report.sections import make_sections

__all__ = ["Written", "write_report"]

# Lists the files of the last report, so that the next one removes what it does not make.
_LIST = "files.txt"


class Written(NamedTuple):
    """What a report has become.

    Attributes
    ----------
    page : path
        The HTML file.
    files : path
        The folder with CSV, SVG and PNG files.
    runs, done : int
        Runs on the page, and those with figures.
    sections : tuple of str
        Names of its sections.
    """

    page: Path
    files: Path
    runs: int
    done: int
    sections: tuple[str, ...]


def write_report(
    records: Sequence[Mapping[str, Any]],
    out: str | os.PathLike[str],
    *,
    folder: str | os.PathLike[str] = ".",
    latex: bool = False,
) -> Written:
    """Write a page of tables and figures that needs no network, and its figures as files.

    The files stand in a folder named after the page: ``report.html`` has ``report_files``. The same
    records give the same bytes. Each file appears when it is complete, the page last.

    Parameters
    ----------
    records : sequence of mappings
        As `locole.experiments.records.read` gives them.
    out : str or path
        The page.
    folder : str or path
        Where files that records name are: the points of t-SNE pictures.
    latex : bool
        Whether every table is written as a LaTeX file, too.

    Returns
    -------
    Written
        Where it is, and what is on it.

    Raises
    ------
    LocoleError
        If there are no records, or no place for the page.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> import tempfile
    >>> run = {"experiment": "table2", "data": "city_names", "method": "mach", "status": "timeout"}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     written = write_report([run], f"{place}/report.html")
    >>> written.runs, written.done, written.sections
    (1, 0, ('table2', 'trouble', 'setting'))
    """
    found = entries(records)
    if not found:
        raise LocoleError("there are no records: make some by locole bench table2 --quick.")
    page = _checked(Path(out))
    made = make_sections(found, Path(folder))
    files = page.with_name(f"{page.stem}_files")
    _write_files(files, _contents(made) | (_latex_files(made) if latex else {}))
    summary = sentences.about_counts(found)
    footer = (
        f"Made by locole {__version__} from records alone; every sentence in a box is computed from "
        f"them. Figures as SVG and PNG and tables as CSV are in the folder {files.name}."
    )
    text = render("Label embeddings: experiments", summary, made, footer)
    with complete_or_absent(page) as file:
        file.write(text.encode())
    done = sum(entry.is_done for entry in found)
    return Written(page, files, len(found), done, tuple(section.name for section in made))


def _checked(out: Path) -> Path:
    # What is behind a link is replaced, and the link stays.
    page = Path(os.path.realpath(out))
    if page.is_dir():
        raise LocoleError(f"{out} is a folder: give the name of a file, such as report.html.")
    if not page.parent.is_dir():
        raise LocoleError(f"{out}: there is no folder {page.parent}: make it first.")
    if page.suffix.lower() not in (".html", ".htm"):
        raise LocoleError(f"{out}: a report is a page: give a name that ends in .html.")
    return page


def _contents(made: Sequence[Section]) -> dict[str, bytes]:
    """Names of files and what is in them."""
    files: dict[str, bytes] = {}
    for section in made:
        if section.csv:
            files[f"{section.name}.csv"] = section.csv.encode()
        for picture in (picture for block in section.blocks for picture in block.pictures):
            files[f"{picture.name}.svg"] = picture.svg
            files[f"{picture.name}.png"] = picture.png
    return files


def _latex_files(made: Sequence[Section]) -> dict[str, bytes]:
    """Names of LaTeX files, numbered within their section, and what is in them."""
    files: dict[str, bytes] = {}
    for section in made:
        tables = [table for block in section.blocks for table in block.tables]
        for number, table in enumerate(tables, start=1):
            files[f"{section.name}_{number}.tex"] = table.latex().encode()
    return files


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir(exist_ok=True)
    listed = folder / _LIST
    old = listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else []
    for name in {*old} - {*files}:
        # Only plain names that a report could have written.
        if Path(name).name == name and Path(name).suffix in (".csv", ".svg", ".png"):
            (folder / name).unlink(missing_ok=True)
    for name, content in {**files, _LIST: "".join(f"{n}\n" for n in files).encode()}.items():
        with complete_or_absent(folder / name) as file:
            file.write(content)
