"""What an experiment is: a TOML file that names data, methods, embeddings, dims and seeds."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from locole.embeddings import FAMILIES
from locole.exceptions import LocoleError
from locole.experiments.checking import among, filled, nearest
from locole.experiments.methods import ENGINES
from locole.methods import METHODS

__all__ = ["KINDS", "Entry", "Quick", "Spec", "load_spec", "parse_spec", "shipped_specs"]

#: All combinations; dims that grow while that helps; pictures of vectors.
KINDS = ("grid", "dimension", "tsne")

_SHIPPED = resources.files("locole.experiments") / "specs"


@dataclass(frozen=True)
class Entry:
    """One ``[[methods]]`` of a spec: a method, and for locole's own its embeddings with their dims."""

    method: str
    embeddings: dict[str, list[int]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    engine: str = "threads"
    data: list[str] | None = None
    """Only on these data sets."""
    skip_data: list[str] = field(default_factory=list)
    """On all but these."""
    seeds: list[int] | None = None
    """In place of the spec's."""
    time_limit_s: float | None = None
    """In place of the spec's."""
    quick: bool = True
    """Whether it is run by ``--quick``."""


@dataclass(frozen=True)
class Quick:
    """``[quick]``: what ``--quick`` takes in place of the spec's own; None takes the spec's."""

    data: list[str] | None = None
    seeds: list[int] | None = None
    time_limit_s: float | None = None
    max_rows: int | None = None
    max_test_rows: int | None = None
    max_dim: int | None = None
    """Larger dims are left out."""
    vectors: int | None = None
    data_options: dict[str, dict[str, Any]] | None = None


@dataclass(frozen=True)
class Spec:
    """An experiment.

    Attributes
    ----------
    name, title : str
        The name is that of the file of records.
    kind : str
        One of ``KINDS``.
    data : list of str
        Names of data sets, or "auto" or "small": see ``locole.experiments.data.choose_sets``.
    methods : list of Entry
        What is compared.
    seeds : list of int
        Seeds; every method is run once with each.
    time_limit_s : float
        Seconds that a run may take.
    time_limits_s : dict
        The same for data sets by their names.
    max_rows, max_test_rows : int or None
        Take only so many rows.
    data_options : dict
        Options of data sets by their names.
    min_gain : float
        For kind "dimension": a larger dim must add so much to the accuracy.
    vectors : int
        For kind "tsne": how many are drawn.
    quick : Quick
        What is smaller in a rehearsal.

    Examples
    --------
    >>> spec = parse_spec({"name": "mine", "methods": [{"method": "centroids"}]})
    >>> spec.seeds, spec.methods[0].method
    ([0], 'centroids')
    """

    name: str
    title: str = ""
    kind: str = "grid"
    data: list[str] = field(default_factory=lambda: ["auto"])
    methods: list[Entry] = field(default_factory=list)
    seeds: list[int] = field(default_factory=lambda: [0])
    time_limit_s: float = 600.0
    time_limits_s: dict[str, float] = field(default_factory=dict)
    max_rows: int | None = None
    max_test_rows: int | None = None
    data_options: dict[str, dict[str, Any]] = field(default_factory=dict)
    min_gain: float = 0.002
    vectors: int = 2048
    quick: Quick = field(default_factory=Quick)

    def quickened(self) -> Spec:
        """The spec as ``--quick`` runs it."""
        given = {
            item.name: getattr(self.quick, item.name)
            for item in fields(Quick)
            if item.name != "max_dim" and getattr(self.quick, item.name) is not None
        }
        kept = [entry for entry in self.methods if entry.quick]
        if self.quick.seeds is not None:
            kept = [replace(entry, seeds=None) for entry in kept]
        if self.quick.time_limit_s is not None:
            kept = [replace(entry, time_limit_s=None) for entry in kept]
            given["time_limits_s"] = {}
        if self.quick.max_dim is not None:
            kept = [_with_small_dims(entry, self.quick.max_dim) for entry in kept]
        return replace(self, methods=kept, **given)


def _with_small_dims(entry: Entry, max_dim: int) -> Entry:
    """The entry without dims above ``max_dim``, but with at least one of each family."""
    small = {
        family: [dim for dim in dims if dim <= max_dim] or [min(dims)]
        for family, dims in entry.embeddings.items()
    }
    return replace(entry, embeddings=small)


def shipped_specs() -> dict[str, Spec]:
    """The specs that come with the package, by name.

    Returns
    -------
    dict of str to Spec
        By name.

    Examples
    --------
    >>> "table2" in shipped_specs()
    True
    """
    files = [file for file in _SHIPPED.iterdir() if file.name.endswith(".toml")]
    names = sorted(file.name.removesuffix(".toml") for file in files)
    return {name: load_spec(name) for name in names}


def load_spec(source: str) -> Spec:
    """Read a spec: the name of a shipped one, or the path of a ``.toml`` file.

    Parameters
    ----------
    source : str
        Name or path.

    Returns
    -------
    Spec
        What the experiment is.

    Examples
    --------
    >>> load_spec("table3").name
    'table3'
    """
    if not source.endswith(".toml"):
        file: Any = _SHIPPED / f"{source}.toml"
        if not source.isidentifier() or not file.is_file():
            names = sorted(item.name.removesuffix(".toml") for item in _SHIPPED.iterdir())
            raise LocoleError(
                f"there is no experiment {source!r}{nearest(source, names)}: take one of "
                f"{', '.join(names)}, or the path of a .toml file."
            )
    else:
        file = Path(source)
        if not file.is_file():
            raise LocoleError(f"{source}: there is no such file.")
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LocoleError(f"{source} is no TOML file: {error}.") from None
    try:
        return parse_spec({"name": Path(source).stem, **content})
    except LocoleError as error:
        raise LocoleError(f"{source}: {error}") from None


def parse_spec(content: Mapping[str, Any]) -> Spec:
    """Check the content of a spec, and say in one sentence what is wrong with it.

    Examples
    --------
    >>> parse_spec({"name": "mine", "sedes": [1]})
    Traceback (most recent call last):
        ...
    locole.exceptions.LocoleError: the spec has no key 'sedes' (did you mean 'seeds'?).
    """
    content = dict(content)
    quick = content.pop("quick", {})
    entries = content.pop("methods", [])
    if not isinstance(quick, dict) or not isinstance(entries, list):
        raise LocoleError("quick must be a table and methods a list of tables, as in [[methods]].")
    spec = replace(
        filled(Spec, content, "the spec"),
        methods=[filled(Entry, entry, "[[methods]]") for entry in entries],
        quick=filled(Quick, quick, "[quick]"),
    )
    _check_spec(spec)
    return spec


def _check_spec(spec: Spec) -> None:
    if not spec.name.replace("-", "_").isidentifier():
        raise LocoleError(f"name must be a word, as it becomes a file's, not {spec.name!r}.")
    among("kind", spec.kind, KINDS)
    if not spec.methods:
        raise LocoleError("there is nothing to run: add a [[methods]].")
    for entry in spec.methods:
        _check_entry(entry, spec.kind)


def _check_entry(entry: Entry, kind: str) -> None:
    if kind == "tsne":
        among("method", entry.method, ["tsne"])
    else:
        among("method", entry.method, METHODS)
    among("engine", entry.engine, ENGINES)
    for family in entry.embeddings:
        among("embedding", family, FAMILIES)
    takes = kind == "tsne" or METHODS[entry.method].embedded
    if takes and not entry.embeddings:
        raise LocoleError(
            f"the method {entry.method} needs embeddings with their dims, such as "
            "embeddings = { rademacher = [128, 256] }."
        )
    if entry.embeddings and not takes:
        raise LocoleError(f"the method {entry.method} has no embeddings: leave them out.")
    if kind == "dimension" and not takes:
        raise LocoleError(f"the method {entry.method} has no dim that could grow: leave it out.")
