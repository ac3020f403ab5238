"""Tables: cells that know what they show, as HTML, Markdown and CSV need them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from locole.experiments import paper
from locole.experiments.records import SEVERAL
from locole.experiments.report.groups import Group

__all__ = [
    "Cell",
    "Table",
    "csv_of",
    "csv_of_groups",
    "heading",
    "mean_and_std",
    "number",
    "paper_accuracy",
    "percent",
    "trouble_row",
    "with_best",
]

#: Figures of a group in CSV files.
FIGURES = (
    "accuracy", "accuracy_at_5", "macro_precision", "macro_recall", "macro_f1", "micro_precision",
    "micro_recall", *SEVERAL, "coherence", "fit_wall_s", "fit_cpu_s", "predict_wall_s", "predict_cpu_s",
    "peak_memory_mb", "model_mb",
)  # fmt: skip
# A table that is opened in a spreadsheet must not run what a name says.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
# Characters that mean something in LaTeX, or that its fonts lack.
_LATEX = {
    **{character: "\\" + character for character in "&%$#_{}"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "×": r"$\times$", "≤": r"$\le$", "≥": r"$\ge$", "<": "$<$", ">": "$>$",
    "–": "--", "−": "$-$", "ℂ": r"$\mathbb{C}$", "ℓ": r"$\ell$", "λ": r"$\lambda$",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One cell: text, and how it stands out.

    Parameters
    ----------
    text : str
        What is shown, not yet escaped.
    kind : str
        "text", "word" (never broken), "number" (to the right), "trouble" (a run without figures),
        "soft" (nothing there) or "group" (the heading of the rows below).
    best : bool
        Whether it is the best of its column, shown bold.
    share : float, optional
        Length of a bar below the number, from 0 to 1 for the best.
    span : int
        Columns that it takes.
    note : str
        Said in smaller letters below.
    """

    text: str
    kind: str = "text"
    best: bool = False
    share: float | None = None
    span: int = 1
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells below a header; the first cell of a row names it."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def markdown(self) -> str:
        """Lay out as Markdown, numbers to the right, the best in bold.

        Examples
        --------
        >>> table = Table("", ("method", "%"), ((Cell("MACH"), Cell("84.5", "number", best=True)),))
        >>> print(table.markdown(), end="")
        | method | % |
        | --- | ---: |
        | MACH | **84.5** |
        """
        lines = [self.header, tuple("---:" if is_right else "---" for is_right in self._right)]
        for row in self.rows:
            cells: list[str] = []
            for cell in row:
                cells += [_markdown(cell)] + [""] * (cell.span - 1)
            lines.append(tuple(cells))
        return "".join("| " + " | ".join(line) + " |\n" for line in lines)

    def latex(self) -> str:
        r"""Lay out as a LaTeX table for the package booktabs.

        Examples
        --------
        >>> row = Cell("a_b"), Cell("84.5 ± 1", "number", best=True)
        >>> table = Table("All", ("method", "%"), (row,))
        >>> print(table.latex(), end="")
        \begin{table}
        \centering
        \caption{All}
        \begin{tabular}{lr}
        \toprule
        method & \% \\
        \midrule
        a\_b & \textbf{84.5 $\pm$ 1} \\
        \bottomrule
        \end{tabular}
        \end{table}
        """
        columns = "".join("r" if is_right else "l" for is_right in self._right)
        rows = [" & ".join(map(_latex_cell, row)) for row in self.rows]
        lines = [
            r"\begin{table}", r"\centering", rf"\caption{{{_latex(self.caption)}}}",
            rf"\begin{{tabular}}{{{columns}}}", r"\toprule",
            " & ".join(map(_latex, self.header)) + r" \\", r"\midrule",
            *(rf"{row} \\" for row in rows), r"\bottomrule", r"\end{tabular}", r"\end{table}",
        ]  # fmt: skip
        return "".join(f"{line}\n" for line in lines)

    @property
    def _right(self) -> list[bool]:
        """Which columns hold numbers."""
        places = range(len(self.header))
        return [any(_kind(row, i) == "number" for row in self.rows) for i in places]


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _latex_cell(cell: Cell) -> str:
    text = _latex(" ".join(filter(None, (cell.text, f"({cell.note})" if cell.note else ""))))
    if cell.best or cell.kind == "group":
        text = rf"\textbf{{{text}}}"
    return text if cell.span == 1 else rf"\multicolumn{{{cell.span}}}{{l}}{{{text}}}"


def _kind(row: Sequence[Cell], column: int) -> str:
    kinds = [cell.kind for cell in row for _ in range(cell.span)]
    return kinds[column] if column < len(kinds) else ""


def _markdown(cell: Cell) -> str:
    text = " ".join(part for part in (cell.text, f"({cell.note})" if cell.note else "") if part)
    text = "".join("\\" + c if c in "\\|<>[]*_`" else c for c in text)
    return f"**{text}**" if cell.best or cell.kind == "group" else text


def number(value: float | None, digits: int | None = None, *, share: float | None = None) -> Cell:
    """Cell with a number, rounded to three digits unless told, or a dash for none.

    Examples
    --------
    >>> number(1234.5).text, number(0.012345).text, number(12.3456, 1).text, number(None).text
    ('1,234', '0.0123', '12.3', '–')
    """
    if value is None:
        return Cell("–", "soft")
    if digits is not None:
        text = f"{value:,.{digits}f}"
    else:
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")
    return Cell(text, "number", share=share)


def percent(value: float | None) -> Cell:
    """Cell with a share as a percentage.

    Examples
    --------
    >>> percent(0.88125).text
    '88.12'
    """
    return number(None if value is None else 100 * value, 2)


def mean_and_std(group: Group, figure: str = "accuracy") -> Cell:
    """Percentage with its spread over the seeds, if there are several; troubles as a note."""
    mean, std = group.mean(figure), group.std(figure)
    if mean is None:
        return Cell("–", "soft")
    text = percent(mean).text + ("" if std is None else f" ± {100 * std:.2f}")
    return Cell(text, "number", share=mean, note=group.trouble)


def with_best(rows: Iterable[tuple[Cell, ...]], column: int) -> tuple[tuple[Cell, ...], ...]:
    """Mark the largest numbers of a column; equal ones, as they are shown, all of them.

    Bars become relative to the longest.
    """
    rows = tuple(rows)

    def value(row: tuple[Cell, ...]) -> float | None:
        if column >= len(row) or row[column].kind != "number":
            return None
        return float(row[column].text.split(" ")[0].replace(",", ""))

    found = [v for row in rows if (v := value(row)) is not None]
    best = max(found, default=0.0)
    longest = max((row[column].share or 0 for row in rows if column < len(row)), default=0) or 1

    def marked(row: tuple[Cell, ...]) -> tuple[Cell, ...]:
        if value(row) is None:
            return row
        cell, is_best = row[column], len(found) > 1 and value(row) == best
        share = None if cell.share is None else cell.share / longest
        return (*row[:column], replace(cell, best=is_best, share=share), *row[column + 1 :])

    return tuple(marked(row) for row in rows)


def heading(text: str, columns: int) -> tuple[Cell, ...]:
    """Row that says what the rows below have in common."""
    return (Cell(text, "group", span=columns),)


def trouble_row(group: Group, name: str, columns: int) -> tuple[Cell, ...]:
    """Row of a method without figures: its reason takes the place of all of them."""
    return Cell(name), Cell(group.trouble, "trouble", span=columns - 1)


def paper_accuracy(found: paper.Accuracy | None) -> Cell:
    """Cell with a figure of the paper's second table."""
    if found is None:
        return Cell("–", "soft")
    if found.mean is None:
        return Cell("> 50 h", "soft")
    return Cell(f"{found.mean:.2f} ± {found.std:.2f}", "number")


def csv_of(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as a CSV file; missing values are empty.

    Examples
    --------
    >>> print(csv_of(["name", "dim"], [["=cmd", None], ["a,b", 2]]), end="")
    name,dim
    '=cmd,
    "a,b",2
    """
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_plain(value) for value in row] for row in rows)
    return lines.getvalue()


def csv_of_groups(found: Iterable[Group]) -> str:
    """Means and standard deviations of all figures, a line for each group."""
    what = ["data", "taken", "quick", "method", "settings", "embedding", "dim", "outputs", "engine"]
    figures = [f"{name}_{kind}" for name in FIGURES for kind in ("mean", "std")]
    rows = []
    for group in found:
        first = group.runs[0]
        row: list[object] = [group.data, first.data_options, first.quick, group.method]
        row += [group.settings, group.embedding, group.dim, group.outputs, group.engine]
        row += [len(group.runs), len(group.done), group.trouble]
        for name in FIGURES:
            row += [group.mean(name), group.std(name)]
        rows.append(row)
    return csv_of([*what, "runs", "done", "trouble", *figures], rows)


def _plain(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value
