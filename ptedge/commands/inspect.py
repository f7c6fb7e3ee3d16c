"""``ptedge inspect``: what a file or folder is and where it came from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from ptedge.errors import ArtifactError, InputError


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
    click.echo(json.dumps(description, indent=2, ensure_ascii=False) if as_json else format_text(description))


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
    from ptedge.artifacts.torch_zip import is_torch_zip

    if not path.exists():
        raise InputError(f"{path} does not exist")
    if path.is_dir():
        return {"path": str(path), **_describe_folder(path)}
    size = path.stat().st_size
    head = {"path": str(path), "bytes": size}
    if is_torch_zip(path):
        return {**head, **_describe_checkpoint(path)}
    if path.suffix == ".onnx":
        return {**head, **_describe_onnx(path)}
    if path.suffix in {".engine", ".plan"}:
        from ptedge.commands.inspect_engine import describe_engine

        about = describe_engine(path)
        return {**head, **about, **({"bundle": _manifest(about["bundle"])} if "bundle" in about else {})}
    if path.suffix in {".pt", ".pth"}:
        raise ArtifactError(
            f"{path} is no whole checkpoint: it is truncated, or in the form torch wrote before version 1.6"
            if size
            else f"{path} is empty. Copy the checkpoint again"
        )
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


def _describe_folder(path: Path) -> dict[str, Any]:
    if (path / "manifest.json").is_file():
        return _describe_bundle(path)
    if (path / "field.json").is_file() or (path / "frames.jsonl").is_file():
        return _describe_field(path)
    if any((path / name).is_file() for name in ("model.pt", "last.pt", "metrics.jsonl")):
        return _describe_run(path)
    found = sorted(entry.name for entry in path.iterdir())[:6]
    raise InputError(
        f"{path} is no bundle (manifest.json), run folder (model.pt, metrics.jsonl) or field folder (field.json); "
        f"it holds: {', '.join(found) or 'nothing'}. For labelled data see: ptedge data stats"
    )


def _describe_checkpoint(path: Path) -> dict[str, Any]:
    import numpy as np

    from ptedge.artifacts.torch_zip import StoredTensor, read_tensor, read_torch_zip, stored_tensors
    from ptedge.files import sha256_file

    document = read_torch_zip(path)
    own = isinstance(document, dict) and str(document.get("format", "")).startswith("ptedge-")
    kind = document["format"].removeprefix("ptedge-") if own else "torch file, not written by ptedge"
    about: dict[str, Any] = {"kind": kind, "sha256": sha256_file(path)}
    if not own:
        entries = list(document) if isinstance(document, dict) else []
        return {
            **about,
            "entries": [str(name) for name in entries[:20]],
            "tensors": len(list(stored_tensors(document))),
        }
    about["version"] = document.get("version")
    header = _parse(document.get("header"), path)
    config = header.pop("config", {})
    if "class_names" in header:
        about["class_names"] = header.pop("class_names")
    if isinstance(config, dict) and config:
        about |= {"input_size": config.get("input_size"), "backbone": config.get("backbone")}
    state = document.get("state")
    weights = state if isinstance(state, dict) else {}
    anchors = weights.get("anchors.log_wh")
    if isinstance(anchors, StoredTensor):
        about["anchors"] = np.exp(read_tensor(path, anchors)).round(1).tolist()
    about["weights"] = sum(tensor.size for tensor in stored_tensors(document))
    return {**about, **header, "config": config}


def _describe_bundle(path: Path) -> dict[str, Any]:
    from ptedge.artifacts.bundle import open_bundle
    from ptedge.commands.inspect_engine import describe_engines

    bundle = open_bundle(path)
    engines = describe_engines(path, bundle.manifest.engines, bundle.model_hash)
    return {"kind": "bundle", **_manifest(bundle.manifest.to_json()), "engines_here": engines}


def _describe_onnx(path: Path) -> dict[str, Any]:
    from ptedge.artifacts.bundle import METADATA_KEY, open_bundle
    from ptedge.artifacts.onnx_metadata import read_metadata
    from ptedge.files import sha256_file

    try:
        metadata = read_metadata(path)
    except (ValueError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path} is not a whole ONNX file ({error}). Copy or export it again") from None
    if METADATA_KEY not in metadata:
        return {"kind": "ONNX file, not written by ptedge", "sha256": sha256_file(path), "metadata": metadata}
    bundle = open_bundle(path)
    return {"kind": "ONNX file of a bundle", "sha256": bundle.model_hash, **_manifest(bundle.manifest.to_json())}


def _describe_run(path: Path) -> dict[str, Any]:
    about: dict[str, Any] = {"kind": "run folder", "files": sorted(e.name for e in path.iterdir() if e.is_file())}
    if (path / "metrics.jsonl").is_file():
        lines = list(_json_lines(path / "metrics.jsonl"))
        about |= {"logged_steps": len(lines), "last_logged": lines[-1] if lines else {}}
    if (path / "summary.json").is_file():
        about["summary"] = _parse((path / "summary.json").read_text("utf-8"), path / "summary.json")
    if (path / "model.pt").is_file():
        about["model"] = describe(path / "model.pt")
    return about


def _describe_field(path: Path) -> dict[str, Any]:
    about: dict[str, Any] = {"kind": "field folder"}
    if (path / "field.json").is_file():
        about["field"] = _parse((path / "field.json").read_text("utf-8"), path / "field.json")
    frames = list(_json_lines(path / "frames.jsonl")) if (path / "frames.jsonl").is_file() else []
    images = [file for file in (path / "images").glob("*") if file.is_file()] if (path / "images").is_dir() else []
    about |= {"frames": len(frames), "images": len(images), "image_bytes": sum(f.stat().st_size for f in images)}
    times = [frame["time"] for frame in frames if isinstance(frame.get("time"), (int, float, str))]
    if times:
        about |= {"first_time": times[0], "last_time": times[-1]}
    for key, name in (("model", "models"), ("camera", "cameras"), ("why", "kept_for")):
        values = [frame[key] for frame in frames if key in frame]
        counts = Counter(str(v) for value in values for v in (value if isinstance(value, list) else [value]))
        if counts:
            about[name] = dict(counts.most_common())
    return about


def _manifest(values: dict[str, Any]) -> dict[str, Any]:
    """A manifest with what people ask for first."""
    first = ("class_names", "input_size", "backbone", "precision", "lineage")
    return {**{name: values[name] for name in first if name in values}, **values}


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Lines that are whole; power may have been lost while the last one was written."""
    for line in path.read_text("utf-8", errors="replace").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _parse(text: Any, path: Path) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except (TypeError, ValueError):
        raise ArtifactError(f"{path} is damaged: what should be JSON is not") from None
    return value if isinstance(value, dict) else {"value": value}


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
