"""The manifest: what a model consists of, in JSON that is read strictly."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from reprlib import repr  # short, whatever a file says
from typing import Any, NamedTuple

from locole._version import __version__
from locole.exceptions import ModelFileError
from locole.io.arrays import DTYPES, Entry
from locole.io.format1 import upgraded

__all__ = ["FORMAT", "MAX_BYTES", "MAX_NDIM", "Manifest", "dump_manifest", "parse_manifest"]

#: Number of the format that is written. It is raised by one when a file of the new kind would be
#: misread, or refused without a reason, by the readers before; a new kind of part or a new parameter
#: does not need it. Files of every earlier number stay readable: each has its reader here and a model
#: under tests/io/golden.
FORMAT = 2
#: Labels and terms are arrays, so that an honest manifest is small.
MAX_BYTES = 1 << 24

_KEYS = {"format", "made_by", "model", "arrays_file", "arrays", "sha256"}
_FILE = re.compile(r"arrays-[0-9a-f]{32}\.safetensors")
# More than any file has, and small enough for numpy to make an empty array with it.
_MAX_SIZE = 1 << 48
# Tables and lists are all that models consist of.
MAX_NDIM = 2


class Manifest(NamedTuple):
    """A manifest that was read."""

    model: Any
    """The tree of values as the present format has it; see `locole.io.tree`."""
    arrays_file: str
    arrays: dict[str, Entry]
    made_by: dict[str, str]


def file_name(table: Mapping[str, Entry]) -> str:
    """Name for the file of these arrays: equal names mean equal contents."""
    text = json.dumps(_table_to_json(table))
    return f"arrays-{hashlib.sha256(text.encode()).hexdigest()[:32]}.safetensors"


def dump_manifest(
    model: Any, table: Mapping[str, Entry], notes: Mapping[str, str] | None = None
) -> bytes:
    """Text of the manifest of a model, with its own hash."""
    content = {
        "format": FORMAT,
        "made_by": {"locole": __version__, **(notes or {})},
        "model": model,
        "arrays_file": file_name(table),
        "arrays": _table_to_json(table),
    }
    content["sha256"] = _digest(content)
    raw = json.dumps(content, indent=1, allow_nan=False).encode() + b"\n"
    if len(raw) > MAX_BYTES:
        raise ModelFileError(
            f"the model has {len(raw):,} bytes of parameters and history, more than the "
            f"{MAX_BYTES:,} that a manifest may have"
        )
    return raw


def _table_to_json(table: Mapping[str, Entry]) -> dict[str, Any]:
    return {name: {**entry._asdict(), "shape": list(entry.shape)} for name, entry in table.items()}


def _digest(content: Mapping[str, Any]) -> str:
    """Hash of everything but the hash, as JSON in the same order and without blanks."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(rest, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def parse_manifest(raw: bytes) -> Manifest:
    """Read a manifest; anything unexpected is an error."""
    content = _parse_json(raw)
    if not isinstance(content, dict) or type(content.get("format")) is not int:
        raise ModelFileError("its manifest has no format number")
    if content["format"] > FORMAT:
        raise ModelFileError(
            f"it was made by a newer locole (format {content['format']}, this one reads up to "
            f"{FORMAT}): upgrade locole"
        )
    if content["format"] < 1 or set(content) != _KEYS:
        raise ModelFileError("its manifest has other entries than it should")
    if content["sha256"] != _digest(content):
        raise ModelFileError("its manifest has changed since it was saved")
    name = content["arrays_file"]
    # The name is opened beside the manifest: no path may hide in it.
    if not isinstance(name, str) or not _FILE.fullmatch(name):
        raise ModelFileError(
            f"its manifest names the file {repr(name)}, which is none of a model's"
        )
    model = upgraded(content["model"]) if content["format"] == 1 else content["model"]
    return Manifest(model, name, _table(content["arrays"]), _made_by(content["made_by"]))


def _parse_json(raw: bytes) -> Any:
    try:
        return json.loads(
            raw.decode(), object_pairs_hook=_once_each, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise ModelFileError("its manifest is nested too deeply") from None
    except ModelFileError:
        raise
    except ValueError:
        # Also bytes that are no UTF-8, and numbers with thousands of digits.
        raise ModelFileError("its manifest is no JSON") from None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ModelFileError("its manifest has an entry twice")
    return found


def _refuse_constant(name: str) -> None:
    raise ModelFileError(f"its manifest has {name} in it, which is no JSON")


def _made_by(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise ModelFileError("its manifest does not say what made it")
    return value


def _table(value: Any) -> dict[str, Entry]:
    if not isinstance(value, dict):
        raise ModelFileError("its manifest has no table of arrays")
    return {name: _entry(name, entry) for name, entry in value.items()}


def _entry(name: str, value: Any) -> Entry:
    if not isinstance(value, dict) or set(value) != set(Entry._fields):
        raise ModelFileError(
            f"its manifest describes the array {repr(name)} with the wrong entries"
        )
    dtype, shape, digest = value["dtype"], value["shape"], value["sha256"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ModelFileError(f"its array {repr(name)} has the unknown type {repr(dtype)}")
    if not isinstance(shape, list) or len(shape) > MAX_NDIM or not all(map(_is_size, shape)):
        raise ModelFileError(f"its array {repr(name)} has the shape {repr(shape)}")
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise ModelFileError(f"its array {repr(name)} has no hash")
    return Entry(dtype, tuple(shape), digest)


def _is_size(number: Any) -> bool:
    return type(number) is int and 0 <= number < _MAX_SIZE
