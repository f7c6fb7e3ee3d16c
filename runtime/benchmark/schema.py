"""Check a document against a JSON Schema, as far as ptedge's own schemas go.

Known are ``type``, ``const``, ``enum``, ``minimum``, ``properties``, ``required``, ``additionalProperties``, ``items``
and ``$ref`` into ``$defs``. Any other word in a schema is an error here, so that none is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

KNOWN = {"type", "const", "enum", "minimum", "properties", "required", "additionalProperties", "items", "$ref"}
NOTES = {"$schema", "$id", "$defs", "title", "description"}
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def report_schema() -> dict[str, Any]:
    """The schema of a benchmark's report."""
    text = resources.files(__package__).joinpath("benchmark.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def problem(value: Any, schema: Mapping[str, Any], whole: Mapping[str, Any] | None = None, where: str = "") -> str:
    """The first thing that does not fit, in words; empty when all does.

    Args:
        value: of a JSON document.
        schema: for it.
        whole: the document ``schema`` is part of, for ``$ref``.
        where: path of the value, for the message.
    """
    whole = schema if whole is None else whole
    unknown = set(schema) - KNOWN - NOTES
    if unknown:
        raise ValueError(f"the schema uses {sorted(unknown)}, which is not checked here")
    if "$ref" in schema:
        return problem(value, whole["$defs"][schema["$ref"].removeprefix("#/$defs/")], whole, where)
    wrong = _value_problem(value, schema)
    if wrong:
        return f"{where or 'the document'} must be {wrong}"
    if isinstance(value, dict):
        return _object_problem(value, schema, whole, where)
    if isinstance(value, list) and "items" in schema:
        found = (problem(entry, schema["items"], whole, f"{where}[{i}]") for i, entry in enumerate(value))
        return next(filter(None, found), "")
    return ""


def _value_problem(value: Any, schema: Mapping[str, Any]) -> str:
    """What the value itself must be and is not."""
    if "type" in schema and not _is_of_type(value, schema["type"]):
        return _types_text(schema["type"])
    if "const" in schema and value != schema["const"]:
        return repr(schema["const"])
    if "enum" in schema and value not in schema["enum"]:
        return f"one of {schema['enum']}"
    if "minimum" in schema and isinstance(value, (int, float)) and not value >= schema["minimum"]:
        return f"at least {schema['minimum']}"
    return ""


def _object_problem(value: dict[str, Any], schema: Mapping[str, Any], whole: Mapping[str, Any], where: str) -> str:
    dot = f"{where}." if where else ""
    for name in schema.get("required", ()):
        if name not in value:
            return f"{dot}{name} is missing"
    for name, entry in value.items():
        below = schema.get("properties", {}).get(name, schema.get("additionalProperties", True))
        if below is False:
            return f"{dot}{name} is not known"
        if isinstance(below, Mapping) and (found := problem(entry, below, whole, f"{dot}{name}")):
            return found
    return ""


def _is_of_type(value: Any, names: str | list[str]) -> bool:
    allowed = [names] if isinstance(names, str) else names
    if isinstance(value, bool):
        return "boolean" in allowed
    return any(isinstance(value, TYPES[name]) for name in allowed)


def _types_text(names: str | list[str]) -> str:
    return names if isinstance(names, str) else " or ".join(names)
