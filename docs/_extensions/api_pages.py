"""Sphinx extension: a page for every public name, written from ``__all__`` of the public packages.

``reference/index.rst`` and a page for each package are written before the build; autosummary writes the
pages of the names. In docstrings a name stands for the public object that is called so.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from docstrings import full_docstring

#: Packages whose names may change without notice: machinery below the public ones.
INTERNAL = {"locole.cli", "locole.io", "locole.kernels", "locole.serving"}
#: Names that users meet in other modules than the packages.
MODULES = {
    "locole.base": ("LabelClassifier",),
    "locole.choice": ("Choice",),
    "locole.dense_rows": ("DenseRows", "PairedRows"),
    "locole.exceptions": None,
    "locole.explanations": ("Explanation", "Explanations"),
    "locole.labels": ("LabelFeatures",),
}
#: The order of the menu; packages that are not named come after them.
ORDER = ("locole", "locole.text", "locole.datasets", "locole.metrics", "locole.scoring")


def public_modules() -> list[ModuleType]:
    """Return the packages (and a few modules) whose ``__all__`` is public."""
    root = importlib.import_module("locole")
    found = [
        name for _, name, is_package in pkgutil.iter_modules(root.__path__, "locole.") if is_package
    ]
    names = {"locole", *found, *MODULES} - INTERNAL
    place = {name: at for at, name in enumerate(ORDER)}
    return [importlib.import_module(n) for n in sorted(names, key=lambda n: (place.get(n, 99), n))]


def documented_names(module: ModuleType) -> list[str]:
    """Return the public names of a module, without dunders."""
    names = MODULES.get(module.__name__) or module.__all__
    return sorted((name for name in names if not name.startswith("__")), key=str.lower)


def first_sentence(module: ModuleType) -> str:
    """Return the first line of a module's docstring."""
    return (module.__doc__ or "").strip().splitlines()[0]


def module_page(module: ModuleType) -> str:
    """Return the page of a package: its docstring and tables of its names."""
    name = module.__name__
    lines = [name, "=" * len(name), "", f".. automodule:: {name}", "   :no-members:", ""]
    for title, members in _by_kind(module):
        lines += [f".. rubric:: {title}", "", ".. autosummary::", "   :toctree: generated", ""]
        lines += [f"   {member}" for member in members]
        lines += [""]
    return "\n".join(lines)


def _by_kind(module: ModuleType) -> Iterator[tuple[str, list[str]]]:
    names = documented_names(module)
    values = {name: getattr(module, name) for name in names}
    classes = [name for name in names if inspect.isclass(values[name])]
    functions = [name for name in names if inspect.isfunction(values[name])]
    rest = [name for name in names if name not in {*classes, *functions}]
    kinds = (("Classes", classes), ("Functions", functions), ("Constants", rest))
    return ((title, members) for title, members in kinds if members)


def index_page(modules: list[ModuleType]) -> str:
    """Return the first page of the reference."""
    title = "API reference"
    lines = [
        title,
        "=" * len(title),
        "",
        "Every public name, with its parameters and examples.",
        "",
    ]
    lines += [".. list-table::", "   :widths: 30 70", ""]
    for module in modules:
        lines += [f"   * - :doc:`{module.__name__}`", f"     - {first_sentence(module)}"]
    lines += ["", ".. toctree::", "   :hidden:", ""]
    return "\n".join([*lines, *[f"   {module.__name__}" for module in modules], ""])


def write_pages(folder: Path) -> None:
    """Write the pages of the reference where they have changed."""
    modules = public_modules()
    pages = {"index": index_page(modules), **{m.__name__: module_page(m) for m in modules}}
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def short_names() -> dict[str, str]:
    """Return the full public name for every unambiguous ending of it."""
    full: dict[str, set[str]] = {}
    for module in public_modules():
        for name in documented_names(module):
            whole = f"{module.__name__}.{name}"
            value = getattr(module, name)
            members = [f"{whole}.{m}" for m in dir(value) if not m.startswith("_")]
            for each in [whole, *(members if inspect.isclass(value) else [])]:
                parts = each.split(".")
                for start in range(1, len(parts) - (each != whole)):
                    full.setdefault(".".join(parts[start:]), set()).add(each)
    return {short: names.pop() for short, names in full.items() if len(names) == 1}


def _resolve(app: Any, env: Any, node: Any, text: Any) -> Any:
    """Return a reference to the public object that a docstring calls by its last names."""
    if node.get("refdomain") != "py":
        return None
    target = app.locole_short_names.get(node["reftarget"])
    if target is None or target == node["reftarget"]:
        return None
    domain = env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, text)


def _complete(app: Any, kind: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Give an override the parameters that its base class describes."""
    owner, _, last = name.rpartition(".")
    if kind == "class" and inspect.isclass(value):
        lines[:] = full_docstring(value).splitlines()
    elif kind == "method":
        module, _, cls = owner.rpartition(".")
        lines[:] = full_docstring(getattr(importlib.import_module(module), cls), last).splitlines()


def _skip(app: Any, kind: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what classes inherit from other libraries, which document it."""
    module = getattr(getattr(value, "fget", value), "__module__", None) or "locole"
    return None if module.startswith("locole") else True


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    # Before Sphinx looks for pages, and autosummary for names on them.
    app.connect("config-inited", lambda app, _: write_pages(Path(app.srcdir) / "reference"))
    app.locole_short_names = short_names()
    # Before numpydoc.
    app.connect("autodoc-process-docstring", _complete, priority=100)
    app.connect("autodoc-skip-member", _skip)
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
