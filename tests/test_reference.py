"""The API reference: every public name has a page, every parameter, result and attribute a sentence."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import itertools
import pkgutil
import re
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString

import locole

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_extensions"))
docstrings = importlib.import_module("docstrings")
reference = importlib.import_module("api_pages")

NAMES = [
    (module, name)
    for module in reference.public_modules()
    for name in reference.documented_names(module)
]
OBJECTS = [
    (module, name)
    for module, name in NAMES
    if inspect.isclass(getattr(module, name)) or inspect.isfunction(getattr(module, name))
]
#: Classes whose methods users call: these say what they return.
ANSWERS = ("locole.base", "locole.confidence", "locole.classifier", "locole.text.")

#: Classes that others are built on, or that a model makes for itself.
CONTRACTS = {"Baseline", "Calibration", "LabelClassifier", "TargetRegressor"}


def short(value):
    return value if isinstance(value, str) else value.__name__


each_object = pytest.mark.parametrize(("module", "name"), OBJECTS, ids=short)


def is_record(cls):
    """Whether a class is a set of fields that users read and do not make."""
    return dataclasses.is_dataclass(cls) or issubclass(cls, (tuple, list, dict))


def is_made_by_users(cls):
    is_contract = inspect.isabstract(cls) or getattr(cls, "_is_protocol", False)
    return not (
        is_contract or is_record(cls) or issubclass(cls, Exception) or cls.__name__ in CONTRACTS
    )


def methods_of(cls):
    """Public methods that are defined in locole."""
    for name in dir(cls):
        value = inspect.getattr_static(cls, name)
        function = getattr(value, "__func__", value)
        ours = inspect.isfunction(function) and function.__module__.startswith("locole")
        if ours and not name.startswith("_"):
            yield name, function


@cache
def parsed(text):
    return NumpyDocString(textwrap.dedent(text))


def described(doc, section):
    """Names in a section that have a sentence."""
    return {
        name.strip().lstrip("*")
        for entry in doc[section]
        for name in entry.name.split(",")
        if any(line.strip() for line in entry.desc)
    }


def parameters(function):
    names = list(inspect.signature(function).parameters.values())
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {p.name for p in names if p.name not in ("self", "cls") and p.kind not in kinds}


def field_docstrings(cls):
    """Fields with a docstring below them or a comment ``#:`` above."""
    found = set()
    for base in cls.__mro__:
        if not (base.__module__ or "").startswith("locole"):
            continue
        source = textwrap.dedent(inspect.getsource(base))
        body = ast.parse(source).body[0].body
        found |= {
            a.target.id
            for a, b in itertools.pairwise(body)
            if isinstance(a, ast.AnnAssign) and isinstance(b, ast.Expr)
        }
        found |= set(re.findall(r"^\s*#:.*\n(?:\s*#.*\n)*\s*(\w+)", source, flags=re.MULTILINE))
    return found


def test_every_package_is_public_or_said_to_be_internal():
    packages = {m.name for m in pkgutil.iter_modules(locole.__path__, "locole.") if m.ispkg}
    public = {module.__name__ for module in reference.public_modules()}
    assert packages == (public & packages) | reference.INTERNAL
    assert not public & reference.INTERNAL


def test_every_public_name_is_on_the_page_of_its_package():
    index = reference.index_page(reference.public_modules())
    for module in reference.public_modules():
        page = reference.module_page(module).splitlines()
        assert f"   {module.__name__}" in index.splitlines()
        assert {f"   {name}" for name in reference.documented_names(module)} <= set(page)
        assert reference.first_sentence(module).endswith(".")
    assert len(NAMES) > 150


@each_object
def test_parameters_have_a_sentence(module, name):
    value = getattr(module, name)
    doc = parsed(docstrings.full_docstring(value))
    assert doc["Summary"]
    known = described(doc, "Parameters") | described(doc, "Attributes")
    if inspect.isclass(value):
        if is_record(value):
            fields = getattr(value, "_fields", ()) or getattr(value, "__dataclass_fields__", ())
            assert {f for f in fields if not f.startswith("_")} <= known | field_docstrings(value)
        elif is_made_by_users(value):
            assert parameters(value) <= known
        for method, function in methods_of(value):
            doc = parsed(docstrings.full_docstring(value, method))
            missing = parameters(function) - described(doc, "Parameters")
            assert doc["Summary"], method
            assert not missing, f"{method}: {missing}"
    else:
        assert parameters(value) <= known


@each_object
def test_what_is_listed_has_a_sentence(module, name):
    """No entry of Parameters or Attributes is a bare name."""
    value = getattr(module, name)
    docs = [docstrings.full_docstring(value)]
    if inspect.isclass(value):
        docs += [docstrings.full_docstring(value, method) for method, _ in methods_of(value)]
    for doc in map(parsed, docs):
        for section in ("Parameters", "Attributes"):
            bare = [e.name for e in doc[section] if not any(map(str.strip, e.desc))]
            assert not bare, bare


@each_object
def test_results_are_described(module, name):
    value = getattr(module, name)
    if inspect.isclass(value):
        functions = [
            (docstrings.full_docstring(value, method), function)
            for method, function in methods_of(value)
            if function.__module__.startswith(ANSWERS)
        ]
    else:
        functions = [(docstrings.full_docstring(value), value)]
    for text, function in functions:
        returns = function.__annotations__.get("return")
        if returns not in ("None", None, "Self", "NoReturn"):
            doc = parsed(text)
            assert doc["Returns"] or doc["Yields"], function.__qualname__


@each_object
def test_examples_are_there(module, name):
    value = getattr(module, name)
    if not inspect.isclass(value) or is_made_by_users(value):
        assert parsed(docstrings.full_docstring(value))["Examples"]


@each_object
def test_single_backticks_are_names_that_exist(module, name):
    """The build of the site would fail otherwise, and takes longer."""
    value = getattr(module, name)
    known = known_names()
    docs = [(docstrings.full_docstring(value), ())]
    if inspect.isclass(value):
        docs = [(docs[0][0], dir(value))]
        docs += [(docstrings.full_docstring(value, m), dir(value)) for m, _ in methods_of(value)]
    for text, members in docs:
        linked = set(re.findall(r"(?<![`:\w])`([^`\s<>]+)`(?![`_])", text))
        unknown = {n for n in linked if n not in known and n not in members}
        assert not unknown, unknown


@cache
def known_names():
    short_names = reference.short_names()
    modules = {module.__name__ for module in reference.public_modules()}
    return {*short_names, *short_names.values(), *modules}
