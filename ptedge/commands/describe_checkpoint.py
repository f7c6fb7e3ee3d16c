"""What a checkpoint is, read without torch: settings, classes, anchors, lineage, number of weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ptedge.artifacts.torch_pickle import StoredTensor
from ptedge.artifacts.torch_zip import read_tensor, read_torch_zip, stored_tensors
from ptedge.commands.file_digest import digest_of
from ptedge.errors import ArtifactError
from ptedge.files import parse_json

MOST_HEADER = 1 << 20  # characters
MOST_ANCHORS = 2000  # numbers; a detector has twenty or so


def describe_checkpoint(path: Path) -> dict[str, Any]:
    """What a file of ``torch.save`` is.

    Args:
        path: checkpoint, or another file that torch wrote.

    Returns:
        Plain values; ``kind`` says what it is.

    Raises:
        ArtifactError: damaged, or in a form that can be read with torch only.
    """
    document = read_torch_zip(path)
    about: dict[str, Any] = {"path": str(path), "bytes": path.stat().st_size}
    if isinstance(document, dict) and str(document.get("format", "")).startswith("ptedge-"):
        kind = document["format"].removeprefix("ptedge-")
        return {**about, "kind": kind, "sha256": digest_of(path), **_own(document, path)}
    entries = list(document) if isinstance(document, dict) else []
    return {
        **about,
        "kind": "torch file, not written by ptedge",
        "sha256": digest_of(path),
        "entries": [str(name) for name in entries[:20]],
        "tensors": len(list(stored_tensors(document))),
    }


def _own(document: dict[str, Any], path: Path) -> dict[str, Any]:
    about: dict[str, Any] = {}
    about["version"] = document.get("version")
    header = parse_object(document.get("header"), path)
    config = header.pop("config", {})
    if "class_names" in header:
        about["class_names"] = header.pop("class_names")
    if isinstance(config, dict) and config:
        about |= {"input_size": config.get("input_size"), "backbone": config.get("backbone")}
    reference = header.get("reference")
    if isinstance(reference, dict):
        header["reference"] = f"{reference.get('frames')} frames ({reference.get('origin')})"
    state = document.get("state")
    weights = state if isinstance(state, dict) else {}
    anchors = weights.get("anchors.log_wh")
    if isinstance(anchors, StoredTensor) and anchors.size <= MOST_ANCHORS:
        about["anchors"] = np.exp(read_tensor(path, anchors)).round(1).tolist()
    about["weights"] = sum(tensor.size for tensor in stored_tensors(document))
    return {**about, **header, "config": config}


def parse_object(text: Any, path: Path) -> dict[str, Any]:
    """A JSON object as a table; empty for no text at all.

    Args:
        text: of the object.
        path: where it stands, for messages.

    Raises:
        ArtifactError: it is not JSON.
    """
    if text is None:
        return {}
    if isinstance(text, str) and len(text) > MOST_HEADER:
        raise ArtifactError(f"{path} is damaged: its header has more than {MOST_HEADER >> 20} MB")
    try:
        value = parse_json(text)
    except (TypeError, ValueError):
        raise ArtifactError(f"{path} is damaged: what should be JSON is not") from None
    if not isinstance(value, dict):
        raise ArtifactError(f"{path} is damaged: what should be a JSON table is not")
    return value
