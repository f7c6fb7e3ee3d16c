"""What a folder is: a bundle, a training run, or collected frames."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ptedge.artifacts.bundle import MANIFEST_NAME
from ptedge.commands.describe_bundle import describe_bundle
from ptedge.commands.describe_checkpoint import describe_checkpoint, parse_object
from ptedge.errors import InputError


def describe_folder(path: Path) -> dict[str, Any]:
    """What a folder is.

    Args:
        path: the folder.

    Raises:
        InputError: none that ptedge knows.
        ArtifactError: one of ptedge's own, but damaged.
    """
    if (path / MANIFEST_NAME).is_file():
        return describe_bundle(path)
    if (path / "field.json").is_file() or (path / "frames.jsonl").is_file():
        return describe_field(path)
    if any((path / name).is_file() for name in ("model.pt", "last.pt", "metrics.jsonl")):
        return describe_run(path)
    found = sorted(entry.name for entry in path.iterdir())[:6]
    raise InputError(
        f"{path} is no bundle (manifest.json), run folder (model.pt, metrics.jsonl) or field folder (field.json); "
        f"it holds: {', '.join(found) or 'nothing'}. For labelled data see: ptedge data stats"
    )


def describe_run(path: Path) -> dict[str, Any]:
    """What the folder of a training run holds.

    Args:
        path: the folder.

    Raises:
        ArtifactError: a file in it is damaged.
    """
    files = sorted(entry.name for entry in path.iterdir() if entry.is_file())
    about: dict[str, Any] = {"path": str(path), "kind": "run folder", "files": files}
    if (path / "metrics.jsonl").is_file():
        lines = list(_json_lines(path / "metrics.jsonl"))
        about |= {"logged_steps": len(lines), "last_logged": lines[-1] if lines else {}}
    if (path / "summary.json").is_file():
        about["summary"] = parse_object((path / "summary.json").read_text("utf-8"), path / "summary.json")
    if (path / "model.pt").is_file():
        about["model"] = describe_checkpoint(path / "model.pt")
    return about


def describe_field(path: Path) -> dict[str, Any]:
    """What a folder of collected frames holds.

    Args:
        path: the folder.

    Raises:
        ArtifactError: ``field.json`` is damaged.
    """
    about: dict[str, Any] = {"path": str(path), "kind": "field folder"}
    if (path / "field.json").is_file():
        about["field"] = parse_object((path / "field.json").read_text("utf-8"), path / "field.json")
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


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Lines that are whole; power may have been lost while the last one was written."""
    for line in path.read_text("utf-8", errors="replace").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value
