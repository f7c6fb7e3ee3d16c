"""What a folder is: a bundle, a training run, or collected frames."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ptedge.artifacts.bundle import MANIFEST_NAME
from ptedge.commands.describe_bundle import describe_bundle
from ptedge.commands.describe_checkpoint import describe_checkpoint, parse_object
from ptedge.errors import ArtifactError, InputError
from ptedge.files import open_regular, parse_json, read_bounded

MOST_SUMMARY_BYTES = 4 << 20
MOST_READ = 32 << 20  # bytes of a log
MOST_LINES = 50_000  # of a log: steps, or frames


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
        count, last = 0, dict[str, Any]()
        for line in _json_lines(path / "metrics.jsonl", about):
            count, last = count + 1, line
        about |= {"logged_steps": count, "last_logged": last}
    if (path / "summary.json").is_file():
        about["summary"] = _read_object(path / "summary.json")
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
        about["field"] = _read_object(path / "field.json")
    frames = list(_json_lines(path / "frames.jsonl", about)) if (path / "frames.jsonl").is_file() else []
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


def _read_object(path: Path) -> dict[str, Any]:
    try:
        return parse_object(read_bounded(path, MOST_SUMMARY_BYTES), path)
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}") from None


def _json_lines(path: Path, about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Lines that are whole, up to a limit, which ``about`` then tells; power may have been lost during the last one."""
    try:
        with open_regular(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(MOST_READ), b""), start=1):
                with contextlib.suppress(ValueError):
                    value = parse_json(line)
                    if isinstance(value, dict):
                        yield value
                if number >= MOST_LINES or file.tell() > MOST_READ:
                    about["note"] = f"only the first {number} lines of {path.name} were read"
                    return
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}") from None
