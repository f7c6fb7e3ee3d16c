"""``ptedge inspect``: what a file or folder is and where it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ptedge.artifacts.torch_zip import is_torch_zip
from ptedge.commands.describe_bundle import describe_onnx
from ptedge.commands.describe_checkpoint import describe_checkpoint
from ptedge.commands.describe_engine import describe_engine
from ptedge.commands.describe_folder import describe_folder
from ptedge.errors import ArtifactError, InputError
from ptedge.files import open_regular
from ptedge.text import printable


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def inspect(file: Path, as_json: bool) -> None:
    """Tell what FILE is: checkpoint, bundle, ONNX file, engine, run folder or field folder. Needs no torch.

    \b
    Example:
      ptedge inspect runs/adapted/model.pt
    """
    description = describe(file)
    text = json.dumps(description, indent=2, ensure_ascii=False) if as_json else format_text(description)
    click.echo(printable(text))


def describe(path: Path) -> dict[str, Any]:
    """What stands at a path.

    Args:
        path: file or folder.

    Returns:
        Plain values; ``kind`` says what it is, the rest depends on it.

    Raises:
        InputError: nothing there, or nothing ptedge knows.
        ArtifactError: one of ptedge's own, but damaged.
    """
    if path.is_dir():
        return describe_folder(path)
    try:
        with open_regular(path) as file:
            empty = not file.read(1)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if empty:
        raise ArtifactError(f"{path} is empty. Copy it again")
    if is_torch_zip(path) or path.suffix in {".pt", ".pth"}:
        return describe_checkpoint(path)
    if path.suffix == ".onnx":
        return describe_onnx(path)
    if path.suffix in {".engine", ".plan"}:
        return describe_engine(path)
    raise InputError(
        f"{path} is none of: checkpoint (.pt), bundle folder, .onnx, .engine, run folder, field folder. "
        "For labelled data see: ptedge data stats"
    )


def format_text(description: Mapping[str, Any], indent: str = "") -> str:
    """A description as lines of name and value, tables indented.

    Args:
        description: of :func:`describe`.
        indent: what each line starts with.
    """
    width = max((len(name) for name in description), default=0)
    lines = []
    for name, value in description.items():
        if isinstance(value, Mapping) and value:
            lines += [f"{indent}{name}", format_text(value, indent + "  ")]
        else:
            lines.append(f"{indent}{name:<{width}}  {_text(name, value)}".rstrip())
    return "\n".join(lines)


def _text(name: str, value: Any) -> str:
    if name == "input_size" and isinstance(value, (list, tuple)):
        return " x ".join(map(str, value)) + " (height x width)"
    if name == "anchors" and isinstance(value, (list, tuple)):
        return ", ".join(f"{w:.0f}x{h:.0f}" for w, h in value) + " (width x height, input pixels)"
    if name == "bytes":
        return f"{value} ({value / 1e6:.1f} MB)"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, Mapping) or value is None or value == "":
        return "none"
    return str(value)
