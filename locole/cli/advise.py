"""``locole advise``: the cheapest embeddings for a number of labels."""

from __future__ import annotations

from typing import Annotated

import typer

from locole.cli.options import Json

__all__ = ["EXAMPLES", "advise"]

EXAMPLES = (
    "locole advise --classes 12046 --coherence 0.05",
    "locole advise --classes 100000 --features 500000 --memory 2GB",
)

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def advise(
    classes: Annotated[int, typer.Option("--classes", "-c", help="Number of labels.")],
    coherence: Annotated[float | None, typer.Option(help="Largest coherence allowed.")] = None,
    margin: Annotated[
        float | None, typer.Option(help="Lead of a label that must be decoded without loss.")
    ] = None,
    features: Annotated[int | None, typer.Option(help="Columns of the data.")] = None,
    memory: Annotated[
        str | None, typer.Option(help="Memory for the weights, such as 2GB; needs --features.")
    ] = None,
    nonzeros: Annotated[int | None, typer.Option(help="Non-zeros of the data.")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Time to train on one core; needs --nonzeros.")
    ] = None,
    passes: Annotated[int, typer.Option(help="Passes over the data for that.")] = 5,
    json: Json = False,
) -> None:
    """List the cheapest embedding of each family for so many labels, fewest outputs first.

    With a target (coherence, margin) each has the smallest dim that reaches it; with a budget (memory,
    seconds) only, the largest within it; with neither, the family's usual dim.
    """
    from dataclasses import asdict

    from locole.cli.show import print_json
    from locole.theory import advise as advice_for

    advice = advice_for(
        classes,
        coherence=coherence,
        margin=margin,
        n_features=features,
        memory_bytes=None if memory is None else parse_size(memory),
        nnz=nonzeros,
        time_s=seconds,
        passes=passes,
    )
    if json:
        print_json({"classes": classes, "candidates": [asdict(candidate) for candidate in advice]})
    else:
        print(advice)


def parse_size(text: str) -> float:
    """Bytes of a size as people write it.

    Examples
    --------
    >>> parse_size("1.5GB"), parse_size("200 mb"), parse_size("4096")
    (1500000000.0, 200000000.0, 4096.0)
    """
    from locole.exceptions import LocoleError

    plain = text.strip().upper()
    number = plain.rstrip("BKMGT ")
    try:
        value = float(number) * _UNITS[plain[len(number) :].strip()]
    except (ValueError, KeyError):
        value = -1.0
    if not 0 < value < float("inf"):
        raise LocoleError(f"{text!r} is no size: write 2GB, 500MB or a number of bytes.")
    return value
