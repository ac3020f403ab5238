"""``locole coherence``: the largest inner product of two label vectors."""

from __future__ import annotations

from typing import Annotated

import typer

from locole.cli.options import Json

__all__ = ["EXAMPLES", "coherence"]

EXAMPLES = (
    "locole coherence kerdock --classes 12046 --dim 256",
    "locole coherence rademacher --classes 2000 --dim 128 --json",
)


def coherence(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Family: kerdock, gold, nelson, ...")],
    classes: Annotated[int, typer.Option("--classes", "-c", help="Number of labels.")],
    dim: Annotated[
        int | None, typer.Option("--dim", "-d", help="Entries of a vector. [default: the family's]")
    ] = None,
    method: Annotated[
        str, typer.Option(help="structure, gram (all pairs), sampled, or auto.")
    ] = "auto",
    pairs: Annotated[int, typer.Option(help="Random pairs for the method sampled.")] = 1_000_000,
    seed: Annotated[int, typer.Option(help="Seed of random vectors and pairs.")] = 0,
    json: Json = False,
) -> None:
    """Compute the coherence of an embedding, and how low it could be.

    Says whether it is exact, by structure or over all pairs, or a lower bound from random pairs. Beside
    it are the bounds below which no vectors of so many entries can go.
    """
    from dataclasses import asdict

    from locole.cli.show import print_json
    from locole.embeddings import make_embedding
    from locole.theory import coherence as coherence_of
    from locole.theory import coherence_lower_bound, welch_bound

    embedding = make_embedding(name, classes, dim=dim, random_state=seed)
    found = coherence_of(embedding, method=method, n_pairs=pairs, random_state=seed)  # type: ignore[arg-type]
    field = "complex" if embedding.is_complex else "real"
    welch = welch_bound(classes, embedding.dim)
    lowest = coherence_lower_bound(classes, embedding.dim, field=field)  # type: ignore[arg-type]
    if json:
        sizes = {"dim": embedding.dim, "outputs": embedding.real_dim}
        bounds = {"welch_bound": welch, "lower_bound": lowest}
        print_json(
            {"embedding": embedding.name, "classes": classes, **sizes, **asdict(found), **bounds}
        )
    else:
        print(found)
        print(f"lower bound {lowest:.4f} for any {field} vectors; Welch's alone {welch:.4f}")
