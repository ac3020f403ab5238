"""``locole bound``: what coherence can cost."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from locole.cli.options import Json

__all__ = ["EXAMPLES", "bound"]

EXAMPLES = (
    "locole bound --excess 0.01 --coherence 0.0625 --massart 0.6",
    "locole bound --excess 0.01 --low -0.045 --high 0.042 --json",
)


def bound(
    excess: Annotated[float, typer.Option(help="Excess squared risk of the regressor.")],
    coherence: Annotated[float | None, typer.Option(help="Coherence of the embedding.")] = None,
    low: Annotated[float | None, typer.Option(help="Smallest inner product, with --high.")] = None,
    high: Annotated[float | None, typer.Option(help="Largest inner product, with --low.")] = None,
    massart: Annotated[
        float | None, typer.Option(help="Margin below which no row ever falls.")
    ] = None,
    margins: Annotated[
        str | None, typer.Option(help="File of margins of sampled rows, a number a line.")
    ] = None,
    constant: Annotated[
        str, typer.Option(help="tight, or paper for the larger constant of the paper.")
    ] = "tight",
    json: Json = False,
) -> None:
    """Bound the accuracy that is lost by embedding labels.

    The bound is on the excess 0-1 risk, given the excess of the squared risk, ½|f(x) - g|², over its
    minimum. Without --massart or --margins nothing is assumed about the margins of rows.
    """
    from dataclasses import asdict

    from locole.cli.show import print_json, print_pairs
    from locole.theory import excess_risk_bound

    found = excess_risk_bound(
        excess,
        coherence,
        low=low,
        high=high,
        massart=massart,
        margins=None if margins is None else _read_margins(margins),
        constant=constant,  # type: ignore[arg-type]
    )
    if json:
        print_json(asdict(found))
        return
    says = "nothing: it is 1 or more" if found.vacuous else f"{found.value:.4g}"
    shown: dict[str, Any] = {
        "bound on the excess risk": says,
        "split at the margin": found.r,
        "term that stays": found.irreducible,
        "term of the square root": found.mixed,
        "term of the risk itself": found.fast,
        "lossless margin": found.threshold,
        "constant": found.constant,
    }
    print_pairs(shown)


def _read_margins(path: str) -> list[float]:
    from locole.datasets import load_texts
    from locole.exceptions import LocoleError

    lines, _ = load_texts(path, format="txt")
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(float(line))
        except ValueError:
            raise LocoleError(f"{path}, line {number}: {line[:40]!r} is no number.") from None
    return found
