"""What methods and embeddings are called on the page, their order, and how figures tell them apart."""

from __future__ import annotations

import json
from typing import NamedTuple

from locole.methods import METHODS, names_of

__all__ = [
    "DATA",
    "FAMILIES",
    "INK",
    "OURS",
    "PALETTE",
    "Look",
    "data_name",
    "family_name",
    "look",
    "method_name",
    "order",
    "row_name",
    "settings_text",
    "short_data_name",
    "style_of_method",
    "vectors_name",
]

#: The colours of Okabe and Ito, which colour-blind readers can tell apart, on paper and on dark.
PALETTE = {
    "vermillion": ("#d55e00", "#f0803c"),
    "blue": ("#0072b2", "#4ba3dc"),
    "green": ("#009e73", "#2fc49b"),
    "purple": ("#cc79a7", "#dd9cc1"),
    "orange": ("#e69f00", "#f3bb45"),
    "sky": ("#56b4e9", "#8accf2"),
    "grey": ("#6b7480", "#98a2ae"),
}
#: Text and lines of figures; the page puts its own colours in their places.
INK = {"ink": "#1b1f24", "soft": "#5b6674", "line": "#d5dbe1", "paper": "#ffffff"}


class Look(NamedTuple):
    """Name, colour of `PALETTE` or `INK`, and marker of an embedding."""

    name: str
    colour: str
    marker: str


#: Embeddings in the order of the paper's table, then ours. No two share a marker.
FAMILIES = {
    "gaussian": Look("Gaussian", "blue", "o"),
    "complex_gaussian": Look("ℂ-Gaussian", "green", "D"),
    "rademacher": Look("Rademacher", "vermillion", "s"),
    "nelson": Look("Nelson", "purple", "^"),
    "kerdock": Look("Kerdock", "orange", "P"),
    "gold": Look("Gold", "sky", "X"),
    "delsarte_goethals": Look("Delsarte–Goethals", "ink", "v"),
    "reed_solomon": Look("Reed–Solomon", "grey", "h"),
    "one_hot": Look("one-hot", "ink", "*"),
    "simplex": Look("simplex", "grey", "p"),
    "explicit": Look("explicit", "ink", "<"),
}
#: Methods that are not compared with but compared.
OURS = names_of("regressor", "default")
DATA = {
    "lshtc1": "LSHTC1",
    "dmoz": "DMOZ",
    "odp": "ODP",
    "city_names": "city names",
}
_LINES = {"elastic_net": "-", "mlp": "--", "softmax": ":", "auto": "-."}


def family_name(embedding: str) -> str:
    """Name of an embedding as people write it.

    Examples
    --------
    >>> family_name("reed_solomon"), family_name("my_own")
    ('Reed–Solomon', 'my_own')
    """
    return FAMILIES[embedding].name if embedding in FAMILIES else embedding


def method_name(method: str) -> str:
    """Name of a method as people write it.

    Examples
    --------
    >>> method_name("pd_sparse"), method_name("other")
    ('PD-Sparse', 'other')
    """
    return METHODS[method].title if method in METHODS else method


def data_name(set_name: str) -> str:
    """Name of a data set, with what was taken of it and whether the runs were quick ones.

    Examples
    --------
    >>> data_name("lshtc1"), data_name("city_names, max_cities=500, quick"), data_name("")
    ('LSHTC1', 'city names (max_cities=500, quick)', '–')
    """
    data, _, rest = set_name.partition(", ")
    return (DATA.get(data, data) + (f" ({rest})" if rest else "")) or "–"


def short_data_name(set_name: str) -> str:
    """Name of a data set for sentences and panels, below a heading that says what was taken of it.

    Examples
    --------
    >>> short_data_name("city_names, max_cities=500, quick"), short_data_name("odp, max_rows=9")
    ('city names (quick)', 'ODP')
    """
    data, _, rest = set_name.partition(", ")
    return data_name(f"{data}, quick" if rest.split(", ")[-1] == "quick" else data)


def look(embedding: str) -> Look:
    """Colour and marker; those of families that are not known are all alike."""
    return FAMILIES.get(embedding, Look(embedding or "no embedding", "ink", ">"))


def style_of_method(method: str) -> str:
    """How lines of a method are dashed."""
    return _LINES.get(method, "-")


def settings_text(settings: str) -> str:
    """Further options of a run, as short as they can be read.

    Examples
    --------
    >>> settings_text('{"l2":0.1,"passes":20}'), settings_text("")
    ('l2=0.1, passes=20', '')
    """
    try:
        options = json.loads(settings)
    except (ValueError, RecursionError):
        return settings
    if not isinstance(options, dict):
        return settings
    return ", ".join(f"{name}={value}" for name, value in options.items())


def vectors_name(embedding: str, dim: int | None = None) -> str:
    """Name of an embedding with its dim.

    Examples
    --------
    >>> vectors_name("nelson", 509)
    'Nelson-509'
    """
    return family_name(embedding) + (f"-{dim}" if dim else "")


def row_name(method: str, embedding: str = "", dim: int | None = None, settings: str = "") -> str:
    """What a row of a table is called.

    Examples
    --------
    >>> row_name("elastic_net", "nelson", 509), row_name("mach", settings='{"r":25}')
    ('elastic net, Nelson-509', 'MACH (r=25)')
    """
    name = method_name(method)
    if embedding:
        name += f", {vectors_name(embedding, dim)}"
    options = settings_text(settings)
    return f"{name} ({options})" if options else name


def order(
    method: str, embedding: str, dim: int | None, settings: str
) -> tuple[int, str, int, str, int, str]:
    """Sort rows as the paper does: embeddings by dim, then the other systems; unknown ones last."""
    methods, families = list(METHODS), list(FAMILIES)
    return (
        methods.index(method) if method in METHODS else len(methods),
        method,
        families.index(embedding) if embedding in FAMILIES else len(families),
        embedding,
        dim or 0,
        settings,
    )
