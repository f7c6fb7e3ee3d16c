"""The few lines of YAML that a YOLO ``data.yaml`` needs: scalars, lists and maps of scalars, one level deep."""

from __future__ import annotations

import re
from pathlib import Path

from ptedge.errors import InputError

Value = str | list[str] | dict[str, str]


def read_tiny_yaml(path: Path) -> dict[str, Value]:
    """Read top-level keys whose values are a scalar, a list or a map of scalars.

    Lists and maps may be written in brackets (over several lines, too) or one entry a line. Every scalar stays text.
    Deeper nesting is passed over.

    Raises:
        InputError: unreadable.
    """
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is no UTF-8 text") from None
    lines = [line.rstrip() for line in map(_without_comment, text.splitlines()) if line.strip()]
    content: dict[str, Value] = {}
    while lines:
        line = lines.pop(0)
        match = re.match(r"([\w\-\"' ]+?)\s*:(?:\s+(.*))?$", line)
        if match is None or line[0] in " \t":
            continue
        key, value = _scalar(match[1]), (match[2] or "").strip()
        if value[:1] in ("[", "{"):
            while lines and not value.endswith(("]", "}")):
                value += " " + lines.pop(0).strip()
            content[key] = _in_brackets(value)
        elif value:
            content[key] = _scalar(value)
        else:
            block = []
            while lines and lines[0][0] in " \t-":
                block.append(lines.pop(0))
            content[key] = _block(block)
    return content


def _block(lines: list[str]) -> Value:
    if lines and lines[0].lstrip().startswith("-"):
        return [_scalar(line.lstrip()[1:]) for line in lines if line.lstrip().startswith("-")]
    pairs = (line.partition(":") for line in lines)
    return {_scalar(key): _scalar(value) for key, colon, value in pairs if colon}


def _in_brackets(value: str) -> Value:
    parts = [part.strip() for part in re.findall(r"""(?:"[^"]*"|'[^']*'|[^,"'])+""", value[1:-1])]
    if value[0] == "[":
        return [_scalar(part) for part in parts if part]
    pairs = (part.partition(":") for part in parts)
    return {_scalar(key): _scalar(text) for key, colon, text in pairs if colon}


def _scalar(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _without_comment(line: str) -> str:
    """The line up to a ``#`` that starts a comment: at the beginning or after a space, outside quotes."""
    quote = ""
    for i, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "#" and (i == 0 or line[i - 1] in " \t"):
            return line[:i]
    return line
